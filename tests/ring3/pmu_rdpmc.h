/* SPDX-License-Identifier: MIT */
/* Ring-3 halves of the conformance tests, as ring 0 knows them. */
#pragma once
#include <stdint.h>

#define USER_RDPMC_NOTHING 0xdeadull
extern uint64_t user_rdpmc_value; /* what was read */
/* Each with the selector or MSR as argument; those that are not allowed do not survive. */
extern void user_rdpmc_allowed(void); /* enables counting first, so that CR4.PCE is set */
extern void user_rdpmc_plain(void);
extern void user_rdmsr(void), user_wrmsr(void);
