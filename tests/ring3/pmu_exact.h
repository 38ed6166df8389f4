/* SPDX-License-Identifier: MIT */
/* The ring-3 half of tests/pmu/pmu_exact.c, as ring 0 knows it. */
#pragma once

extern void user_exact_loop(void); /* executes a million instructions, and reads no counter */
