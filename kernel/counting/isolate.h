/* SPDX-License-Identifier: MIT */
/* Between thread_profiling.c, profiling_enable.c and isolate.c: what a profiled thread has, and the
 * policy `isolate`. */
#pragma once
#include "kernel/base/cpu.h"
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
    size_t plain;        /* bytes of the readings if `active` is the first n, each counter by
                     `value_mask`; else 0 */
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

/* switch_counters.c. For the reader in ring 3 (profiling.c): bits 7:0 how many bits counters lack
 * to 64 on this CPU; bits 15:8 the same of fixed ones, if they differ; and
 * THREAD_PROFILING_NO_RDPMC. */
ULONG thread_profiling_unused_bits(void);
/* thread_profiling.c, both at IPI_LEVEL. Ends the time slice of `out` and begins that of `in`;
 * either may be NULL. And: begins a thread's first time slice. */
void thread_profiling_sample(struct thread_profiling *out, struct thread_profiling *in);
void thread_profiling_begin(struct thread_profiling *p, unsigned cpu);

#define ISOLATE_NONE 0xffffffffu

extern bool isolate_on;
/* Constant while a thread with a mask is profiled: the configured counters, and which of them their
 * driver had running before. No other counter runs. */
extern uint64_t isolate_configured, isolate_ran[MAX_CPUS];
/* A thread with a mask enables (PASSIVE_LEVEL), or has disabled. The first one takes every counter
 * that is not configured, so that ring 3's RDPMC, which opens all, shows nobody else's:
 * STATUS_INSUFFICIENT_RESOURCES if another owner has one. */
NTSTATUS isolate_join(struct thread_profiling *p);
void isolate_leave(void);
/* Ends the time slice of `out` on this CPU and begins that of `in`, at IPI_LEVEL. Either may be
 * NULL. */
void isolate_switch(struct thread_profiling *out, struct thread_profiling *in);
