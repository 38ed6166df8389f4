/* SPDX-License-Identifier: MIT */
/* Sets of counters of one processor, which trace sessions read. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "hal/measure_traps.h"
#include "kernel/base/x86.h"
#include "kernel/nt/nt_profile.h"

/* Claims a counter of one processor for each of Count sources, fixed ones first, clears it
 * and lets it count both rings, or with PROFILE_SOURCE_RING3 ring 3 only. Trace sessions read them
 * at events. Element i of what is collected is Sources[i]; a source given twice takes two counters.
 * On Windows in HAL_PRIVATE_DISPATCH. *Handle: out; NULL after a failure. STATUS_SUCCESS, or:
 *
 * STATUS_INVALID_PARAMETER       no such processor; Count 0 or over MAX_HW_COUNTERS; a NULL Handle
 * STATUS_NOT_SUPPORTED           an event that this processor does not count, or ProfileTime
 * STATUS_INSUFFICIENT_RESOURCES  all counters of the processor cannot count these together, or all
 *                                owner slots are used
 * STATUS_DEVICE_BUSY             somebody has too many of them (hal_counter_owner_name)
 * They are tested in this order. IRQL PASSIVE_LEVEL. Source: Geoff Chappell's study of
 * HAL_PRIVATE_DISPATCH. The statuses are our choice: no source gives them. */
NTSTATUS HalAllocatePmcCounterSet(ULONG Processor, KPROFILE_SOURCE *Sources, ULONG Count,
                                  PMC_HANDLE *Handle);
/* Writes a 64-bit value for each source. No wrap of a counter is lost if one of these calls, or the
 * overflow's interrupt (which needs a status register), comes between two wraps. Values begin near
 * 0. On the processor of the set; any IRQL, NMI included; takes no lock. */
VOID HalCollectPmcCounters(PMC_HANDLE PmcCounterSet, ULONG64 *Values);
/* HalCollectPmcCounters reads one counter by this, inline; records, which must be quick, read by it
 * too. Only for this is the structure of a set public. */
struct _HAL_PMC_COUNTERS {
    bool used;    /* L: sets_lock in pmc.c */
    HANDLE owner; /* atomic; of the counters; NULL: none */
    ULONG processor, count;
    struct hal_pmc_counter {
        uint64_t value; /* atomic; collected last; its low bits are what the counter showed then */
        uint64_t mask;
        uint64_t taken_off; /* what traps added to the counter, by hal_trap_adds */
        uint32_t selector;
        unsigned ctr;
        ULONG source;
    } counters[MAX_HW_COUNTERS];
};
static inline uint64_t hal_pmc_read(struct hal_pmc_counter *c)
{
    /* The value is loaded before the counter is read. An interrupt in between may store a newer
     * value. Ours overwrites it, and is as good a start for the next difference. */
    uint64_t value = __atomic_load_n(&c->value, __ATOMIC_RELAXED);
    value += (rdpmc_exact(c->selector) - value) & c->mask;
    __atomic_store_n(&c->value, value, __ATOMIC_RELAXED);
    return value - c->taken_off;
}
/* Writes the first n counters of a set, at most HAL_PMC_QUICK. Unrolled: it takes a third of the
 * time of a loop. */
#define HAL_PMC_QUICK 7
static inline void hal_pmc_collect(struct hal_pmc_counter *c, ULONG n, ULONG64 *values)
{
    switch (n) {
    case 7: values[6] = hal_pmc_read(c + 6); __attribute__((fallthrough));
    case 6: values[5] = hal_pmc_read(c + 5); __attribute__((fallthrough));
    case 5: values[4] = hal_pmc_read(c + 4); __attribute__((fallthrough));
    case 4: values[3] = hal_pmc_read(c + 3); __attribute__((fallthrough));
    case 3: values[2] = hal_pmc_read(c + 2); __attribute__((fallthrough));
    case 2: values[1] = hal_pmc_read(c + 1); __attribute__((fallthrough));
    case 1: values[0] = hal_pmc_read(c + 0); break;
    case 0: break;
    default: __builtin_unreachable();
    }
}
/* Called by trap.c on the CPU that took a trap out of ring 3: subtracts what the trap added
 * (hal_trap_adds) from the sets of this CPU. Any IRQL, NMI included. */
void hal_pmc_trapped(enum hal_trap trap);
/* Stops, clears and frees the counters. Nobody may collect the set any more. IRQL PASSIVE_LEVEL. */
VOID HalFreePmcCounterSet(PMC_HANDLE PmcCounterSet);
/* The source that the counter counts for a set; ProfileTime: none. IRQL <= DISPATCH_LEVEL. */
KPROFILE_SOURCE hal_pmc_source(unsigned ctr, unsigned cpu);
/* Whether a set counts the source. */
bool pmc_in_use(KPROFILE_SOURCE source);

/* For tests alone, as hal_counters_release_all: how many sets there are, and their end. */
unsigned hal_pmc_sets(void);
void hal_pmc_release_all(void);
