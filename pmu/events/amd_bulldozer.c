/* SPDX-License-Identifier: MIT */
/* AMD family 15h: cycles and cache only on counters 0 to 2.
 * Source: BIOS and Kernel Developer's Guide for family 15h, "Performance counter events". */
#include "pmu/pmu.h"

#define LOW_THREE (PMU_GP(0) | PMU_GP(1) | PMU_GP(2))

const struct pmu_event_row amd_bulldozer_events[PMU_EVENT_COUNT] = {
    [PMU_CYCLES]         = { 0x076, 0x00, "CPU Clocks not Halted", LOW_THREE },
    [PMU_INSTRUCTIONS]   = { 0x0c0, 0x00, "Retired Instructions", PMU_ANY_GP },
    [PMU_LLC_REFERENCES] = { 0x07d, 0x07, "Requests to L2 Cache", LOW_THREE },
    [PMU_LLC_MISSES]     = { 0x07e, 0x17, "L2 Cache Misses", LOW_THREE },
    [PMU_BRANCHES]       = { 0x0c2, 0x00, "Retired Branch Instructions", PMU_ANY_GP },
    [PMU_BRANCH_MISSES]  = { 0x0c3, 0x00, "Retired Mispredicted Branch Instructions", PMU_ANY_GP },
};
