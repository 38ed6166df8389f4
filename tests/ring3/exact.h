/* SPDX-License-Identifier: MIT */
/* The ring-3 half of exactness, as ring 0 knows it. */
#pragma once
#include <stdint.h>

/* In an argument: do not fail on counts that are not exact, but find out how far off they are. */
#define USER_EXACT_LOOSE (UINT64_C(1) << 63)
extern struct user_exact_spread {
    int64_t least, most; /* instructions that a region was counted too many, less than 0: too few */
    uint64_t regions, exact;
} user_exact_spread;

void user_exact_known(uint64_t how);
void user_exact_runs(uint64_t what);
/* Each form of a repeated string instruction counts 1. */
void user_exact_strings(uint64_t how);
void user_exact_switched(uint64_t wanted);
void user_exact_jump(uint64_t jump);
void user_exact_rounds(uint64_t rounds);
void user_exact_load(uint64_t unused);
void user_exact_raw(uint64_t what);
/* Touches so many pages so often, each at first with a page fault. */
#define USER_EXACT_TOUCHES 20u
#define USER_EXACT_PAGES 10u
void user_exact_faults(uint64_t how);
/* Computes for so many thousands of instructions; 0: until it is ended. */
void user_exact_spin(uint64_t thousands);
/* Atomic; threads that are profiled; that have done their work. */
extern uint64_t user_exact_ready[2];
