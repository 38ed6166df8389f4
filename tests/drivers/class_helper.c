/* SPDX-License-Identifier: MIT */
/* Of class_driver.cpp. */
int helper(int n);
int helper(int n) { return n * n; }
