/* SPDX-License-Identifier: MIT */
/* A PMU made of software, for tests of the self-test: four general-purpose and three fixed
 * counters, and defects. */
#pragma once
#include "pmu/selftest.h"

#define FAKE_GP 4u
#define FAKE_FIXED 3u
#define FAKE_ALL (PMU_FIRST(FAKE_GP) | PMU_FIRST(FAKE_FIXED) << PMU_FIXED)
#define FAKE_INSTRUCTIONS                                                                          \
    (PMU_FIRST(FAKE_GP) | PMU_FIX(0)) /* what counts them: no other count is known */
#define FAKE_NEVER ~0u

enum defect {
    GOOD,
    RDPMC_UD,
    RDPMC_GP,
    SWALLOWED,
    MSR_FAULT,
    PCE_LIKE,
    RDPMC_OTHER,
    NARROW,
    WIDE,
    FIRMWARE,
    SELECT_STUCK,
    DEAD,
    DEAD_AT_FIRST,
    SLOW,
    FAST,
    NO_STATUS,
    LATE_STATUS,
    EXITS_TWICE,
    EXITS_LOST,
    JITTER,
    ONE_MORE,
    ONE_LESS
};

/* A good one, or one whose counters of `broken` have the defect. It has the registers of these
 * facts. */
void fake_make(const struct pmu_kind *facts, enum defect defect, uint64_t broken);
/* That access from now on faults, counted from 0. */
void fake_fault_at(unsigned access);
unsigned fake_accesses(void);
extern const struct pmu_access fake_access;
extern const struct pmu_kind fake_facts;
