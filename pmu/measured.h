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

/* Ways out of ring 3 that processors count as instructions and branches of ring 3. */
enum pmu_trap { PMU_TRAP_INTERRUPT, PMU_TRAP_EXCEPTION, PMU_TRAP_NMI, PMU_TRAPS };
/* What they are counted as. */
enum pmu_retired { PMU_RETIRED_INSTRUCTIONS, PMU_RETIRED_BRANCHES, PMU_RETIRED };

struct pmu_measured {
    /* By measure.c. */
    struct pmu_spread enabling;    /* instructions that the WRMSR which enables counts */
    struct pmu_spread exit;        /* that an instruction counts which hypervisors intercept */
    struct pmu_spread exit_at_255; /* the same with a threshold of 255, which one cannot reach */
    struct pmu_spread cycles;      /* in 1,000 instructions of a loop of two */
    struct pmu_spread bus_cycle;   /* cycles in 1,000 PMU_BUS_CYCLES */
    struct pmu_spread tsc;         /* from one value of the TSC to the next that RDTSC shows */
    unsigned at_once; /* counters that count while all run that have an event which must happen */
    unsigned wanted;  /* those; fewer count where a host that needs some itself lends them */
    /* By hal/measure.c, from a visit to ring 3. */
    bool done;
    struct pmu_spread quiet[PMU_RETIRED]; /* counted too many in ring 3 while no trap comes */
    struct pmu_spread trap[PMU_TRAPS][PMU_RETIRED]; /* counted too many for each trap */
    bool traps_add;                                 /* one of these is known, and not 0 */
    struct pmu_spread skid; /* instructions of ring 3 from an overflow to its interrupt */
};

/* Adds the result of a try. */
void pmu_spread_add(struct pmu_spread *s, int64_t value);
/* For kinds.c: measures, on the first CPU of the kind, what needs no ring 3; and prints a line
 * of all. */
struct pmu_kind;
void pmu_measure(struct pmu_kind *kind);
void pmu_report_measured(const struct pmu_kind *kind);
/* A sentence, without its full stop, that says why counts of ring 3 are not exact on this kind;
 * NULL: they are exact. */
const char *pmu_ring3_inexact(const struct pmu_kind *kind);
