/* SPDX-License-Identifier: MIT */
/* The events of sources to add, as processor makers' tools describe them. Any IRQL.
 *
 * Source: EVENT_TRACE_PROFILE_ADD_INFORMATION in the community's phnt headers. */
#include "hal/hal.h"
#include "kernel/base/bits.h"
#include "kernel/base/string.h"
#include "pmu/pmu.h"

#define ANY 0xffffffffu

/* Offsets of the bytes; NONE: the format lacks it. */
enum { NONE = 0xff };
static const struct layout {
    const char *driver;
    UCHAR version, event_bytes, unit, threshold, invert, any_thread, edge;
} layouts[] = {
    { "intel", 2, 1, 1, 2, 3, 4, 5 },
    { "intel", 3, 1, 1, 2, 3, 4, 5 },
    { "amd", 2, 1, 1, NONE, NONE, NONE, NONE },
    { "amd", 3, 2, 2, 3, 4, NONE, 5 },
};

static UCHAR byte(const UCHAR *event, UCHAR where) { return where == NONE ? 0 : event[where]; }

static bool matches(ULONG wanted, unsigned found) { return wanted == ANY || wanted == found; }

/* Family, model and stepping are the same for all kinds of cores of a processor. */
static bool is_this_processor(const ULONG hierarchy[3])
{
    return matches(hierarchy[0], pmu_kinds->family) && matches(hierarchy[1], pmu_kinds->model) &&
           matches(hierarchy[2], pmu_kinds->stepping);
}

NTSTATUS hal_source_event(UCHAR version, const UCHAR event[8], const ULONG hierarchy[3],
                          HAL_PROFILE_SOURCE_ADD *add)
{
    if (version != 2 && version != 3)
        return STATUS_INVALID_PARAMETER;
    if (!is_this_processor(hierarchy))
        return STATUS_NOT_SUPPORTED;
    for (const struct layout *l = layouts; l < layouts + ARRAY_SIZE(layouts); l++)
        if (pmu_kinds->driver && strcmp(l->driver, pmu_kinds->driver) == 0 &&
            l->version == version) {
            add->EventSelect = (USHORT)(event[0] | (l->event_bytes == 2 ? event[1] << 8 : 0));
            add->UnitSelect = event[l->unit];
            add->CMask = byte(event, l->threshold);
            add->CInv = byte(event, l->invert);
            add->AnyThread = byte(event, l->any_thread);
            add->EdgeDetect = byte(event, l->edge);
            return STATUS_SUCCESS;
        }
    return STATUS_NOT_SUPPORTED;
}
