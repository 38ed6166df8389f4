/* SPDX-License-Identifier: MIT */
/* Silvermont: beside the architectural events.
 * Source: Intel perfmon event files for these processors. */
#include "pmu/events/intel.h"

const struct pmu_event_row intel_silvermont_events[PMU_EVENT_COUNT] = {
    INTEL_ARCHITECTURAL,
    [PMU_PIPELINE_DRY] = { 0xca, 0x50, "NO_ALLOC_CYCLES.NOT_DELIVERED",
        PMU_FIRST(2), 0, true },
    [PMU_LOADS] = { 0x04, 0x40, "MEM_UOPS_RETIRED.ALL_LOADS",
        PMU_FIRST(2), 0, true },
    [PMU_PIPELINE_FROZEN] = { 0xca, 0x3f, "NO_ALLOC_CYCLES.ALL",
        PMU_FIRST(2), 0, true },
    [PMU_NONISSUES] = { 0xca, 0x3f, "NO_ALLOC_CYCLES.ALL",
        PMU_FIRST(2), 0, true },
    [PMU_L1I_MISSES] = { 0x80, 0x02, "ICACHE.MISSES",
        PMU_FIRST(2), 0, true },
    [PMU_STORES] = { 0x04, 0x80, "MEM_UOPS_RETIRED.ALL_STORES",
        PMU_FIRST(2), 0, true },
    [PMU_L1I_READS] = { 0x80, 0x03, "ICACHE.ACCESSES",
        PMU_FIRST(2), 0, false },
    [PMU_L1D_ACCESSES] = { 0x04, 0xc0, "MEM_UOPS_RETIRED loads|stores",
        PMU_FIRST(2), 0, true },
    [PMU_CONDITIONAL_BRANCHES] = { 0xc4, 0x7e, "BR_INST_RETIRED.JCC",
        PMU_FIRST(2), 0, false },
};
