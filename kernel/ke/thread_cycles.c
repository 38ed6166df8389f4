/* SPDX-License-Identifier: MIT */
/* What a thread has used; sched.c notes it at each switch. */
#include "kernel/base/x86.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"

uint64_t thread_cycles(const struct thread *thread, uint64_t *ended_ns)
{
    KIRQL irql = sched_lock();
    uint64_t cycles = thread->cycles;
    if (thread->state == THREAD_RUNNING)
        cycles += rdtsc() - thread->since;
    *ended_ns = thread->ended;
    sched_unlock(irql);
    return cycles;
}
