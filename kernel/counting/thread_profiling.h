/* SPDX-License-Identifier: MIT */
/* What a profiled thread has, and what a switch does with its counts. */
#pragma once
#include "hal/measure_traps.h"
#include "kernel/base/cpu.h"
#include "kernel/counting/switch_counters.h"
#include "kernel/nt/ntddk.h"

/* Ring 3 must align its block to 4 only. */
typedef THREAD_PERFORMANCE_DATA block_at_4 __attribute__((aligned(4)));
typedef COUNTER_READING reading_at_4 __attribute__((aligned(4)));

/* An element that is sampled. As large as its COUNTER_READING, so that one index serves both. */
struct reading {
    uint64_t start, total;
    uint32_t selector; /* of RDPMC */
    uint32_t counter;  /* its number */
};
_Static_assert(sizeof(struct reading) == sizeof(COUNTER_READING), "one index");

struct thread_profiling {
    block_at_4 *block; /* the ring-3 block, through the window of `slot` */
    uint64_t cycle_start, cycle_total;
    uint32_t switches;
    uint32_t generation; /* of the configuration that `active` belongs to */
    uint64_t mask;       /* as asked for */
    uint64_t active;     /* of these, configured: the elements that are sampled */
    /* Bytes of the readings if `active` is the first n, each counter by `value_mask`; else 0. */
    size_t plain;
    bool lost; /* its counters were reset: no count of it is right */
    unsigned slot;
    uint64_t value_mask;   /* a counter's bits */
    uint64_t user_address; /* what ring 3 calls the block: the handle */
    unsigned loaded_on; /* isolate: the CPU whose counters hold its counts, if nobody came after it;
                           or ISOLATE_NONE */
    uint64_t counters;  /* bit per counter that it counts with */
    uint64_t taken_off[MAX_HW_COUNTERS]; /* by element: what traps added to the counter, and the
                                            total has not */
    struct reading readings[MAX_HW_COUNTERS]; /* by element */
};

/* Called once, at boot: "accumulate" or "isolate"; false: neither. */
bool thread_profiling_policy(const char *name);

/* From switch.asm, under the scheduler's lock: a thread leaves this CPU, another arrives. NULL:
 * that one is not profiled; not both. */
void thread_profiling_switch(struct thread_profiling *out, struct thread_profiling *in,
                             unsigned cpu, KWAIT_REASON reason);
/* At IPI_LEVEL on the thread's CPU: looks whether its counters were reset, which ends their
 * sampling. False: they were. */
bool thread_profiling_check(struct thread_profiling *p);
/* Called by trap.c: an interrupt took that many time stamp ticks of the current thread.
 * UpdateCount stays, because counters have not changed: who reads its counters need not begin
 * again. */
void thread_profiling_exclude(struct thread_profiling *p, uint64_t ticks);
/* Called by trap.c when a trap takes the current thread out of ring 3: subtracts what the trap
 * adds to its counters. Any IRQL, NMI included. */
void thread_profiling_trapped(struct thread_profiling *p, enum hal_trap trap);
/* At IPI_LEVEL on the CPU where the thread runs, after the configuration was emptied. */
void thread_profiling_refresh(struct thread_profiling *p);
/* Both at IPI_LEVEL. Ends the time slice of `out` and begins that of `in`;
 * either may be NULL. And: begins a thread's first time slice. */
void thread_profiling_sample(struct thread_profiling *out, struct thread_profiling *in);
void thread_profiling_begin(struct thread_profiling *p, unsigned cpu);
