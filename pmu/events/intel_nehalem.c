/* SPDX-License-Identifier: MIT */
/* Nehalem: beside the architectural events.
 * Source: Intel perfmon event files for these processors. */
#include "pmu/events/intel.h"

const struct pmu_event_row intel_nehalem_events[PMU_EVENT_COUNT] = {
    INTEL_ARCHITECTURAL,
    [PMU_PIPELINE_DRY] = { 0x80, 0x04, "L1I.CYCLES_STALLED",
        PMU_FIRST(4), 0, true },
    [PMU_LOADS] = { 0x0b, 0x01, "MEM_INST_RETIRED.LOADS",
        PMU_FIRST(4), 0, false },
    [PMU_PIPELINE_FROZEN] = { 0xa2, 0x01, "RESOURCE_STALLS.ANY",
        PMU_FIRST(4), 0, true },
    [PMU_NONISSUES] = { 0x0e, 0x01, "UOPS_ISSUED.STALL_CYCLES",
        PMU_FIRST(4), PMU_THRESHOLD(1) | PMU_INVERT, false },
    [PMU_L1D_MISSES] = { 0x51, 0x01, "L1D.REPL",
        PMU_FIRST(2), 0, true },
    [PMU_L1I_MISSES] = { 0x80, 0x02, "L1I.MISSES",
        PMU_FIRST(4), 0, true },
    [PMU_STORES] = { 0x0b, 0x02, "MEM_INST_RETIRED.STORES",
        PMU_FIRST(4), 0, false },
    [PMU_ISSUE_2] = { 0x0e, 0x01, "UOPS_ISSUED.ANY",
        PMU_FIRST(4), PMU_THRESHOLD(2), true },
    [PMU_ISSUE_3] = { 0x0e, 0x01, "UOPS_ISSUED.ANY",
        PMU_FIRST(4), PMU_THRESHOLD(3), true },
    [PMU_ISSUE_4] = { 0x0e, 0x01, "UOPS_ISSUED.ANY",
        PMU_FIRST(4), PMU_THRESHOLD(4), true },
    [PMU_L1I_READS] = { 0x80, 0x03, "L1I.READS",
        PMU_FIRST(4), 0, false },
    [PMU_L1D_ACCESSES] = { 0x43, 0x01, "L1D_ALL_REF.ANY",
        PMU_FIRST(2), 0, true },
    [PMU_CONDITIONAL_BRANCHES] = { 0xc4, 0x01, "BR_INST_RETIRED.CONDITIONAL",
        PMU_FIRST(4), 0, false },
};
