/* SPDX-License-Identifier: MIT */
/* For tests on machines whose CPUs are of several kinds. */
#pragma once
#include "kernel/nt/nt.h"
#include "pmu/pmu.h"

#define EVERYWHERE cpu_all()

static inline uint64_t common_counters(void) { return pmu_common_counters(EVERYWHERE); }

/* Counters that count the event on all of these CPUs, each by its own table. */
static inline uint64_t common_counters_for(struct cpu_set among, enum pmu_event event)
{
    uint64_t common = pmu_common_counters(among);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        if (cpu_set_has(&among, cpu))
            common &= pmu_counters_for(pmu_of(cpu), event);
    return common;
}

/* Counters that count instructions on every CPU. */
static inline uint64_t common_instructions(void)
{
    return common_counters_for(EVERYWHERE, PMU_INSTRUCTIONS);
}

static inline bool first_of_kind(unsigned cpu)
{
    for (unsigned other = 0; other < cpu; other++)
        if (pmu_of(other) == pmu_of(cpu))
            return false;
    return true;
}

/* The verdict of the first kind that is not good. */
static inline const char *verdict_of_kinds(void)
{
    unsigned i = 0;
    while (i + 1 < pmu_kind_count && pmu_kinds[i].verdict == PMU_OK)
        i++;
    return pmu_verdict_text(pmu_kinds[i].verdict);
}

/* The set as the API has it: an element for each group that is not empty. Returns how many. */
static inline USHORT groups_of(struct cpu_set set, GROUP_AFFINITY groups[CPU_GROUPS_MAX])
{
    USHORT count = 0;
    for (USHORT i = 0; i < CPU_GROUPS_MAX; i++)
        if (set.bits[i])
            groups[count++] = (GROUP_AFFINITY){ .Mask = set.bits[i], .Group = i };
    return count;
}

/* One CPU of each kind. */
#define EACH_KIND(cpu)                                                                             \
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)                                                 \
        if (first_of_kind(cpu))
