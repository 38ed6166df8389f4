/* SPDX-License-Identifier: MIT */
/* What counters of ring 3 count too much. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum hal_trap { HAL_INTERRUPT, HAL_EXCEPTION, HAL_NMI, HAL_TRAPS };

/* A run in ring 3, which kernel/ makes: an exception if `what` says so, then `iterations` of a
 * loop of two instructions. RFLAGS.IF is `interrupts`. */
struct hal_ring3_run {
    enum { HAL_RING3_PLAIN, HAL_RING3_UNDEFINED, HAL_RING3_PAGE_FAULT } what;
    bool interrupts;
    uint64_t iterations;
    uint32_t selector; /* of RDPMC */
    unsigned taken;    /* out: interrupts and NMIs that came in ring 3 */
    unsigned nmis;     /* out: those of them that were NMIs */
    uint64_t value;    /* out: what the counter showed at the first of them */
};
/* Whether this CPU's kind is not measured yet. hal_measure does it (struct pmu_measured), in some
 * ms; `nmi`: NMIs are allowed. The function that runs ring 3 handles the counters' interrupt and
 * NMIs. CPU start, interrupts off. */
bool hal_unmeasured(void);
void hal_measure(void (*run)(struct hal_ring3_run *), bool nmi);
/* How many counts a trap out of ring 3 adds to a counter of this CPU beyond what ring 3 executed; 0
 * if that is not the same number each time. ctr: its number. Any IRQL, NMI included. */
int64_t hal_trap_adds(unsigned ctr, enum hal_trap trap);
bool hal_traps_add(void); /* whether any trap adds to any counter */
