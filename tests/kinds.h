/* SPDX-License-Identifier: MIT */
/* For tests on machines whose CPUs are of several kinds. */
#pragma once
#include "pmu/pmu.h"

#define EVERYWHERE (~UINT64_C(0)) /* all CPUs */

static inline uint64_t common_counters(void) { return pmu_common_counters(EVERYWHERE); }

/* Counters that count instructions on every CPU. */
static inline uint64_t common_instructions(void)
{
    return pmu_common_counters_for(EVERYWHERE, PMU_INSTRUCTIONS);
}

static inline bool first_of_kind(unsigned cpu)
{
    for (unsigned other = 0; other < cpu; other++)
        if (pmu_of(other) == pmu_of(cpu))
            return false;
    return true;
}

/* One CPU of each kind. */
#define EACH_KIND(cpu)                                                                             \
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)                                                 \
        if (first_of_kind(cpu))
