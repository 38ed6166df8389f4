/* SPDX-License-Identifier: MIT */
/* What an operation of ours costs. The tests that limit a cost say here what they found, in lines
 * that `make bench` reads: "# cost: NAME: N instructions, ...". */
#pragma once
#include "tests/harness/test.h"
#include "tests/harness/vpmu.h"

#define COST_RUNS 11u

/* Runs of one operation; the least that calling nothing the same way costs is taken off when they
 * are printed. */
struct cost {
    unsigned runs;
    uint64_t instructions[COST_RUNS], cycles[COST_RUNS];
    uint64_t nothing, nothing_cycles;
    struct vpmu_accesses accesses; /* the fewest of a run; only on the virtual PMU */
};

/* Instructions of ring 0 are counted by this counter, which runs. Takes another one for cycles, if
 * one is free, until cost_end. PASSIVE_LEVEL. */
void cost_begin(unsigned ctr);
void cost_end(void);
/* Bit 32 and the index of its counter of cycles, or 0: for code in ring 3 that reads it. */
uint64_t cost_cycles(void);
/* One run more, on this CPU. What may not be interrupted is run at IPI_LEVEL; else the least of the
 * runs counts. nothing(argument): the same call without the operation; NULL: an empty function. */
void cost_run(struct cost *cost, void (*operation)(void *), void (*nothing)(void *),
              void *argument);
/* The fewest instructions of a run. */
uint64_t cost_least(const struct cost *cost);
void cost_sort(int64_t *values, unsigned n);
/* Prints them by a name. Not each test's log must have all: without `always` only a run of
 * `verbose`. */
__attribute__((format(printf, 3, 4))) void cost_print(const struct cost *cost, bool always,
                                                      const char *format, ...);
/* cost_print for figures that were found elsewhere. */
__attribute__((format(printf, 3, 4))) void cost_tell(uint64_t instructions,
                                                     struct vpmu_accesses accesses,
                                                     const char *format, ...);
