/* SPDX-License-Identifier: MIT */
/* Properties of a kind of CPU that no manual states, or that hypervisors change. They are
 * measured once for each kind, when its first CPU starts. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* The range of one quantity over several tries. */
struct pmu_spread {
    int64_t low, high;
    unsigned tries; /* 0: not measured */
};

/* Whether every try gave the same number. */
static inline bool pmu_stable(const struct pmu_spread *s) { return s->tries && s->low == s->high; }

/* Ways out of ring 3 that processors may count as instructions or branches of ring 3. */
enum pmu_trap { PMU_TRAP_INTERRUPT, PMU_TRAP_EXCEPTION, PMU_TRAP_NMI, PMU_TRAPS };
/* What they are counted as. */
enum pmu_retired { PMU_RETIRED_INSTRUCTIONS, PMU_RETIRED_BRANCHES, PMU_RETIRED };

/* Whether what a trap adds may be taken off counts: always the same, and as few as a trap can be.
 * Silicon adds one for a trap; a hundred and more was lost, or came from elsewhere. */
#define PMU_TRAP_MOST 128
static inline bool pmu_trap_known(const struct pmu_spread *s)
{
    return pmu_stable(s) && s->low >= 0 && s->low <= PMU_TRAP_MOST;
}

struct pmu_measured {
    /* By measure_traps.c. */
    struct pmu_spread enabling;    /* instructions counted for the WRMSR that enables */
    struct pmu_spread exit;        /* counted for one that hypervisors intercept */
    struct pmu_spread exit_at_255; /* the same at threshold 255, which no cycle reaches */
    struct pmu_spread cycles;      /* in 1,000 instructions of a loop of two */
    struct pmu_spread bus_cycle;   /* cycles in 1,000 PMU_BUS_CYCLES */
    struct pmu_spread ref_cycle;   /* cycles in 1,000 PMU_REF_CYCLES */
    struct pmu_spread tsc;         /* step between two different values of RDTSC */
    unsigned at_once; /* of the `wanted` counters, those that count while all of them run */
    unsigned wanted;  /* counters with an event that must happen; a host may need some itself */
    /* By hal/measure_traps.c, from a call into ring 3. */
    bool done;
    uint16_t stood[PMU_RETIRED];                    /* tries of `quiet` in which it stood still */
    struct pmu_spread quiet[PMU_RETIRED];           /* excess counts in ring 3 without a trap */
    struct pmu_spread trap[PMU_TRAPS][PMU_RETIRED]; /* excess counts for each trap */
    bool traps_add;                                 /* one of these is known, and not 0 */
    unsigned lost;          /* tries in which the counter stopped: they are in no spread */
    struct pmu_spread skid; /* instructions of ring 3 from an overflow to its interrupt */
    struct pmu_spread pmis; /* interrupts that one overflow raises while the LVT entry is left */
};

/* Adds the result of a try. */
void pmu_spread_add(struct pmu_spread *s, int64_t value);
/* For kinds.c: the first measures, on the first CPU of the kind, what needs no ring 3; the second
 * prints all in one line. */
struct pmu_kind;
void pmu_measure(struct pmu_kind *kind);
void pmu_report_measured(const struct pmu_kind *kind);
/* A sentence, without its full stop, that says why counts of ring 3 are not exact on this kind;
 * NULL: they are exact. */
const char *pmu_ring3_inexact(const struct pmu_kind *kind);
