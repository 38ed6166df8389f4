/* SPDX-License-Identifier: MIT */
/* Haswell; IvyBridge: beside the architectural events.
 * Source: Intel perfmon event files for these processors. */
#include "pmu/events/intel.h"

const struct pmu_event_row intel_haswell_events[PMU_EVENT_COUNT] = {
    INTEL_ARCHITECTURAL,
    [PMU_PIPELINE_DRY] = { 0x9c, 0x01, "IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE",
        PMU_FIRST(4), PMU_THRESHOLD(4), true },
    [PMU_LOADS] = { 0xd0, 0x81, "MEM_UOPS_RETIRED.ALL_LOADS",
        PMU_FIRST(4), 0, true },
    [PMU_PIPELINE_FROZEN] = { 0xa2, 0x01, "RESOURCE_STALLS.ANY",
        PMU_FIRST(4), 0, true },
    [PMU_NONISSUES] = { 0x0e, 0x01, "UOPS_ISSUED.STALL_CYCLES",
        PMU_FIRST(4), PMU_THRESHOLD(1) | PMU_INVERT, false },
    [PMU_L1D_MISSES] = { 0x51, 0x01, "L1D.REPLACEMENT",
        PMU_FIRST(4), 0, true },
    [PMU_L1I_MISSES] = { 0x80, 0x02, "ICACHE.MISSES",
        PMU_FIRST(4), 0, true },
    [PMU_STORES] = { 0xd0, 0x82, "MEM_UOPS_RETIRED.ALL_STORES",
        PMU_FIRST(4), 0, true },
    [PMU_ISSUE_2] = { 0x0e, 0x01, "UOPS_ISSUED.ANY",
        PMU_FIRST(4), PMU_THRESHOLD(2), true },
    [PMU_ISSUE_3] = { 0x0e, 0x01, "UOPS_ISSUED.ANY",
        PMU_FIRST(4), PMU_THRESHOLD(3), true },
    [PMU_ISSUE_4] = { 0x0e, 0x01, "UOPS_ISSUED.ANY",
        PMU_FIRST(4), PMU_THRESHOLD(4), true },
    [PMU_L1I_READS] = { 0x80, 0x03, "ICACHE.HIT|MISSES",
        PMU_FIRST(4), 0, true },
    [PMU_L1D_ACCESSES] = { 0xd0, 0x83, "MEM_UOPS_RETIRED.ALL_LOADS|ALL_STORES",
        PMU_FIRST(4), 0, true },
    [PMU_LOCKED] = { 0xd0, 0x21, "MEM_UOPS_RETIRED.LOCK_LOADS",
        PMU_FIRST(4), 0, true },
    [PMU_CONDITIONAL_BRANCHES] = { 0xc4, 0x01, "BR_INST_RETIRED.CONDITIONAL",
        PMU_FIRST(4), 0, false },
};
