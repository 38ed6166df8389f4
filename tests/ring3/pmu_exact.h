/* SPDX-License-Identifier: MIT */
/* Ring-3 halves of tests/pmu/pmu_exact.c, as ring 0 knows them. Argument: an RDPMC selector. */
#pragma once
#include <stdint.h>

#define USER_STEPS_AROUND 5u /* trapped around the stretch: CALL, RET, PUSHFQ, AND, POPFQ */
extern uint64_t user_exact_counted;
extern void user_exact_steps(void); /* counts work_1000, then runs it with TF set */
extern void user_exact_long(void);  /* counts long stretches */
extern void user_exact_loop(void);  /* executes a million instructions, and reads no counter */
