/* SPDX-License-Identifier: MIT */
/* For tests/vpmu/vpmu_speed.c. */
#include "tests/ring3/ring3.h"

/* Two instructions an iteration. */
void user_speed_loop(uint64_t iterations)
{
    asm volatile("1: dec %0\njnz 1b" : "+r"(iterations) : : "cc");
}
