/* SPDX-License-Identifier: MIT */
/* What holds on every CPU while no test runs: a table of registers and of what each CPU's own
 * structures say, with what they must be. */
#pragma once
#include <stdint.h>

/* Once, before the first test. */
void invariants_init(void);
/* How many do not hold now, on all CPUs; and a line for each of the first of them. */
uint64_t invariants_broken(void);
void invariants_print(void);
/* Puts back on every CPU what can be. */
void invariants_restore(void);
