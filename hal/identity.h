/* SPDX-License-Identifier: MIT */
/* The first lines of a log: they say what machine this is. */
#pragma once

struct boot_info;

/* Prints a line each on the machine's maker, its processor and its hypervisor. Boot CPU, once, when
 * it can take exceptions and before there are processes. */
void identity_print(const struct boot_info *boot);
