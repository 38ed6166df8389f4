/* SPDX-License-Identifier: MIT */
/* The first lines of a log: what machine this is, for whoever is sent it. */
#pragma once

struct boot_info;

/* Prints who made the machine, which processor it has, and which hypervisor runs it: a line each.
 * Boot CPU, once, when it can take exceptions and before there are processes. */
void identity_print(const struct boot_info *boot);
