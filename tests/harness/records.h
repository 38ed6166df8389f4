/* SPDX-License-Identifier: MIT */
/* For tests of records that processors write. */
#pragma once
#include "hal/buffers/event_buffer.h"
#include "tests/harness/kernel.h"

static inline bool writes_records(void)
{
    return pmu_some_counters(cpu_all()) && NT_SUCCESS(event_buffer_check(cpu_all(), 0));
}

#define SKIP_WITHOUT_RECORDS() SKIP_IF(!writes_records(), "the processor writes no records")
