/* SPDX-License-Identifier: MIT */
/* Debug registers: what ring 0 calls, and what the assembler has. */
#pragma once
#include <stdint.h>

/* Steps over a jump with these bits of Dr7. user_values: DebugControl at its target; how far the
 * last branch's ends are from the jump and its target, plus 1, 0 for none; the last branch of a
 * later step. user_reads: 1 if that was at the end, not after the next branch. */
void user_debug_walk(uint64_t dr7);
/* Steps over the jump with these bits of Dr7, and then raises STATUS_BREAKPOINT. user_values[0]: 1
 * if GetThreadContext in the step's handler, a switch later, has a last branch, and another than
 * the step. [1]: 1 if it has one after the steps. [2], [3]: DebugControl and the last branch's ends
 * of the breakpoint's context. */
void user_debug_watch(uint64_t dr7);
/* With these bits of Dr7 jumps to an instruction that faults. user_values: how far the ends of the
 * branch before the last exception are from the jump and its target, plus 1, 0 for none. */
void user_debug_exception(uint64_t dr7);
/* Runs with these bits of Dr7 until user_state is 2. */
void user_debug_spin(uint64_t dr7);

extern volatile uint64_t debug_ss; /* a selector for SS */
