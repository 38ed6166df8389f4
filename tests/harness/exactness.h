/* SPDX-License-Identifier: MIT */
/* Tests that want exact counts of ring 3, on processors that do not give them. Where what traps add
 * is not a stable number nobody can take it off: then ring 3 finds out how far off counts are, and
 * the test says that instead. */
#pragma once
#include "tests/ring3/exact.h"
#include "tests/harness/user.h"

/* USER_EXACT_LOOSE on a machine with such a CPU, else 0; for the argument of ring 3's half. */
uint64_t exactness(void);
/* Before user_finish: on such a machine prints what ring 3 found, and skips, with the reason. */
void exactness_print(const struct process *process);
/* Both, when the thread has ended. */
void exactness_finish(struct process *process, struct thread *thread);
/* Runs a function of tests/ring3/exact.c, chosen by exactness(), in a process of its own. */
void exactness_run(void (*function)(uint64_t), uint64_t argument);
