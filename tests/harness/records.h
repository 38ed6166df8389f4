/* SPDX-License-Identifier: MIT */
/* For tests of records that processors write. */
#pragma once
#include "hal/buffers/event_buffer.h"
#include "hal/sources.h"
#include "tests/harness/kernel.h"

static inline bool writes_records(void)
{
    return pmu_some_counters(cpu_all()) && NT_SUCCESS(event_buffer_check(cpu_all(), 0));
}

#define SKIP_WITHOUT_RECORDS() SKIP_IF(!writes_records(), "the processor writes no records")

/* Whether a source for an event of models, stores, can be added and is then every processor's. */
static inline bool may_add_sources(void)
{
    HAL_PROFILE_SOURCE_ADD add = { .EventSelect = 0xd0,
                                   .UnitSelect = 0x82,
                                   .Description = u"AnyTest" };
    bool may = NT_SUCCESS(HalSetSystemInformation(HalProfileSourceAdd, sizeof add, &add)) &&
               hal_source_supported(add.Source);
    HalSetSystemInformation(HalProfileSourceRemove, sizeof add.Source, &add.Source);
    return may;
}

#define SKIP_WITHOUT_ADDED_SOURCES()                                                               \
    SKIP_IF(!may_add_sources(), "a processor's model is unknown: it has no added sources")
