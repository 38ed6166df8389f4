/* SPDX-License-Identifier: MIT */
/* AMD families 0Fh to 16h but 15h.
 * Source: AMD BIOS and Kernel Developer's Guides, "Performance counter events". */
#include "pmu/pmu.h"

const struct pmu_event_row amd_k8_events[PMU_EVENT_COUNT] = {
    [PMU_CYCLES]         = { 0x076, 0x00, "CPU Clocks not Halted", PMU_ANY_GP },
    [PMU_INSTRUCTIONS]   = { 0x0c0, 0x00, "Retired Instructions", PMU_ANY_GP },
    [PMU_LLC_REFERENCES] = { 0x07d, 0x07, "Requests to L2 Cache", PMU_ANY_GP },
    [PMU_LLC_MISSES]     = { 0x07e, 0x07, "L2 Cache Misses", PMU_ANY_GP },
    [PMU_BRANCHES]       = { 0x0c2, 0x00, "Retired Branch Instructions", PMU_ANY_GP },
    [PMU_BRANCH_MISSES]  = { 0x0c3, 0x00, "Retired Mispredicted Branch Instructions", PMU_ANY_GP },
};
