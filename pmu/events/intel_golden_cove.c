/* SPDX-License-Identifier: MIT */
/* GoldenCove (Alder/Raptor Lake P): beside the architectural events.
 * Source: Intel perfmon event files for these processors. */
#include "pmu/events/intel.h"

const struct pmu_event_row intel_golden_cove_events[PMU_EVENT_COUNT] = {
    INTEL_ARCHITECTURAL,
    [PMU_PIPELINE_DRY] = { 0x9c, 0x01, "IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE",
        PMU_FIRST(8), PMU_THRESHOLD(6), true },
    [PMU_LOADS] = { 0xd0, 0x81, "MEM_INST_RETIRED.ALL_LOADS",
        PMU_FIRST(4), 0, false },
    [PMU_PIPELINE_FROZEN] = { 0xa3, 0x04, "CYCLE_ACTIVITY.STALLS_TOTAL",
        PMU_FIRST(8), PMU_THRESHOLD(4), true },
    [PMU_NONISSUES] = { 0xae, 0x01, "UOPS_ISSUED.ANY",
        PMU_FIRST(8), PMU_THRESHOLD(1) | PMU_INVERT, true },
    [PMU_L1D_MISSES] = { 0x51, 0x01, "L1D.REPLACEMENT",
        PMU_FIRST(4), 0, true },
    [PMU_L1I_MISSES] = { 0x24, 0xe4, "L2_RQSTS.ALL_CODE_RD",
        PMU_FIRST(4), 0, true },
    [PMU_STORES] = { 0xd0, 0x82, "MEM_INST_RETIRED.ALL_STORES",
        PMU_FIRST(4), 0, false },
    [PMU_FP_INSTRUCTIONS] = { 0xc7, 0x3f, "FP_ARITH_INST_RETIRED all umask bits",
        PMU_FIRST(8), 0, true },
    [PMU_ISSUE_2] = { 0xae, 0x01, "UOPS_ISSUED.ANY",
        PMU_FIRST(8), PMU_THRESHOLD(2), true },
    [PMU_ISSUE_3] = { 0xae, 0x01, "UOPS_ISSUED.ANY",
        PMU_FIRST(8), PMU_THRESHOLD(3), true },
    [PMU_ISSUE_4] = { 0xae, 0x01, "UOPS_ISSUED.ANY",
        PMU_FIRST(8), PMU_THRESHOLD(4), true },
    [PMU_L1D_ACCESSES] = { 0xd0, 0x83, "MEM_INST_RETIRED.ANY",
        PMU_FIRST(4), 0, true },
    [PMU_LOCKED] = { 0xd0, 0x21, "MEM_INST_RETIRED.LOCK_LOADS",
        PMU_FIRST(4), 0, true },
    [PMU_CONDITIONAL_BRANCHES] = { 0xc4, 0x11, "BR_INST_RETIRED.COND",
        PMU_FIRST(8), 0, false },
};
