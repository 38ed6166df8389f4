/* SPDX-License-Identifier: MIT */
/* Debug registers: what ring 0 calls, and what the assembler has. */
#pragma once
#include <stdint.h>

/* Steps over a jump with these bits of Dr7. user_values: DebugControl at its target; how far the
 * last branch's ends are from the jump and its target, plus 1, 0 for none; the last branch of a
 * later step. user_reads: 1 if that was at the end, not after the next branch. */
void user_debug_walk(uint64_t dr7);

extern volatile uint64_t debug_ss; /* a selector for SS */
