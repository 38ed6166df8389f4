/* SPDX-License-Identifier: MIT */
/* AMD family 17h and later.
 * Source: the Processor Programming References, "Core performance monitor counters". */
#include "pmu/pmu.h"

const struct pmu_event_row amd_zen_events[PMU_EVENT_COUNT] = {
    [PMU_CYCLES]         = { 0x076, 0x00, "Cycles not in Halt", PMU_ANY_GP },
    [PMU_INSTRUCTIONS]   = { 0x0c0, 0x00, "Retired Instructions", PMU_ANY_GP },
    [PMU_LLC_REFERENCES] = { 0x060, 0xff, "Requests to L2 Group 1", PMU_ANY_GP },
    [PMU_LLC_MISSES]     = { 0x064, 0x09, "Core to L2 Cacheable Request Misses", PMU_ANY_GP },
    [PMU_BRANCHES]       = { 0x0c2, 0x00, "Retired Branch Instructions", PMU_ANY_GP },
    [PMU_BRANCH_MISSES]  = { 0x0c3, 0x00, "Retired Branch Instructions Mispredicted", PMU_ANY_GP },
};
