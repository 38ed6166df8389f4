/* SPDX-License-Identifier: MIT */
/* Debug registers: what ring 0 calls, and what the assembler has. */
#pragma once
#include <stdint.h>

/* Steps over a jump with these bits of Dr7. user_values: DebugControl at its target; how far the
 * last branch's ends are from the jump and its target, plus 1, 0 for none; the last branch of a
 * later step. user_reads: 1 if that was at the end, not after the next branch. */
void user_debug_walk(uint64_t dr7);
/* Steps once with these bits of Dr7. user_values: 1 if the handler had a last branch, and a switch
 * later another, of its own; 1 if the thread had one, and an exception then that is no #DB; of
 * whose context DebugControl and the last branch. */
void user_debug_watch(uint64_t dr7);
/* With them until user_state is 2. */
void user_debug_spin(uint64_t dr7);

extern volatile uint64_t debug_ss; /* a selector for SS */
