/* SPDX-License-Identifier: MIT */
/* Per-thread counts. */
#pragma once
#include "hal/measure.h"
#include "kernel/counting/switch_counters.h"

struct thread_profiling;

/* Called once, at boot: "accumulate" or "isolate"; false: neither. */
bool thread_profiling_policy(const char *name);

/* From switch.asm, under the scheduler's lock: a thread leaves this CPU, another arrives. NULL:
 * that one is not profiled; not both. */
void thread_profiling_switch(struct thread_profiling *out, struct thread_profiling *in,
                             unsigned cpu, KWAIT_REASON reason);
/* Called by trap.c: an interrupt took that many time stamp ticks of the current thread.
 * UpdateCount stays, because counters have not changed: who reads its counters need not begin
 * again. */
void thread_profiling_exclude(struct thread_profiling *p, uint64_t ticks);
/* Called by trap.c when a trap takes the current thread out of ring 3: subtracts what the trap
 * adds to its counters. Any IRQL, NMI included. */
void thread_profiling_trapped(struct thread_profiling *p, enum hal_trap trap);
/* At IPI_LEVEL on the CPU where the thread runs, after the configuration was emptied. */
void thread_profiling_refresh(struct thread_profiling *p);
