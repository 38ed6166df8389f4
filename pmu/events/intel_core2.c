/* SPDX-License-Identifier: MIT */
/* Core 2 (Merom, Penryn, Dunnington): beside the architectural events.
 * Source: Intel SDM vol. 3, "performance-monitoring events"; names as libpfm4 has them. */
#include "pmu/events/intel.h"

const struct pmu_event_row intel_core2_events[PMU_EVENT_COUNT] = {
    INTEL_ARCHITECTURAL,
    [PMU_LOADS] = { 0xc0, 0x01, "INST_RETIRED:LOADS",
        PMU_FIRST(2), 0, false },
    [PMU_STORES] = { 0xc0, 0x02, "INST_RETIRED:STORES",
        PMU_FIRST(2), 0, false },
    [PMU_L1I_READS] = { 0x80, 0x00, "L1I_READS",
        PMU_FIRST(2), 0, false },
    [PMU_L1I_MISSES] = { 0x81, 0x00, "L1I_MISSES",
        PMU_FIRST(2), 0, false },
    [PMU_INTERRUPTS] = { 0xc8, 0x00, "HW_INT_RCV",
        PMU_FIRST(2), 0, false },
};
