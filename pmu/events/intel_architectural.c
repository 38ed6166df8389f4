/* SPDX-License-Identifier: MIT */
/* What is known of an Intel processor without a table of its own: the architectural events. */
#include "pmu/events/intel.h"

const struct pmu_event_row intel_architectural_events[PMU_EVENT_COUNT] = { INTEL_ARCHITECTURAL };
