/* SPDX-License-Identifier: MIT */
/* Gracemont (Alder/Raptor Lake E): beside the architectural events.
 * Source: Intel perfmon event files for these processors. */
#include "pmu/events/intel.h"

const struct pmu_event_row intel_gracemont_events[PMU_EVENT_COUNT] = {
    INTEL_ARCHITECTURAL,
    [PMU_PIPELINE_DRY] = { 0x71, 0x00, "TOPDOWN_FE_BOUND.ALL",
        PMU_FIRST(6), 0, true },
    [PMU_LOADS] = { 0xd0, 0x81, "MEM_UOPS_RETIRED.ALL_LOADS",
        PMU_FIRST(6), 0, true },
    [PMU_PIPELINE_FROZEN] = { 0x74, 0x00, "TOPDOWN_BE_BOUND.ALL",
        PMU_FIRST(6), 0, true },
    [PMU_NONISSUES] = { 0x0e, 0x00, "UOPS_ISSUED.ANY",
        PMU_FIRST(6), PMU_THRESHOLD(1) | PMU_INVERT, true },
    [PMU_L1D_MISSES] = { 0xd1, 0x08, "MEM_LOAD_UOPS_RETIRED.L1_MISS",
        PMU_FIRST(6), 0, true },
    [PMU_L1I_MISSES] = { 0x80, 0x02, "ICACHE.MISSES",
        PMU_FIRST(6), 0, true },
    [PMU_STORES] = { 0xd0, 0x82, "MEM_UOPS_RETIRED.ALL_STORES",
        PMU_FIRST(6), 0, true },
    [PMU_ISSUE_2] = { 0x0e, 0x00, "UOPS_ISSUED.ANY",
        PMU_FIRST(6), PMU_THRESHOLD(2), true },
    [PMU_ISSUE_3] = { 0x0e, 0x00, "UOPS_ISSUED.ANY",
        PMU_FIRST(6), PMU_THRESHOLD(3), true },
    [PMU_ISSUE_4] = { 0x0e, 0x00, "UOPS_ISSUED.ANY",
        PMU_FIRST(6), PMU_THRESHOLD(4), true },
    [PMU_L1I_READS] = { 0x80, 0x03, "ICACHE.ACCESSES",
        PMU_FIRST(6), 0, false },
    [PMU_L1D_ACCESSES] = { 0xd0, 0x83, "MEM_UOPS_RETIRED.ALL",
        PMU_FIRST(6), 0, true },
    [PMU_LOCKED] = { 0xd0, 0x21, "MEM_UOPS_RETIRED.LOCK_LOADS",
        PMU_FIRST(6), 0, true },
    [PMU_CONDITIONAL_BRANCHES] = { 0xc4, 0x7e, "BR_INST_RETIRED.COND",
        PMU_FIRST(6), 0, false },
};
