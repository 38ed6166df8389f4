/* SPDX-License-Identifier: MIT */
/* What a switch does for threads that have a bit of at_switch, and for no others. Under the
 * scheduler's lock, interrupts off. */
#include "kernel/ke/thread.h"
#include "kernel/counting/thread_profiling.h"

/* From switch.asm. */
void switch_more(struct thread *from, struct thread *to, KWAIT_REASON reason);
void switch_more(struct thread *from, struct thread *to, KWAIT_REASON reason)
{
    uint64_t either = from->at_switch | to->at_switch;
    if (either & SWITCH_DEBUG)
        debug_switch(from, to);
    if (either & SWITCH_PROFILED)
        thread_profiling_switch(from->profiling, to->profiling, to->cpu, reason);
}
