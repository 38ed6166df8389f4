/* SPDX-License-Identifier: MIT */
/* Changes of sources: their intervals, sources added at run time, and the events of these as
 * processor makers' tools describe them. IRQL <= DISPATCH_LEVEL.
 *
 * Source: EVENT_TRACE_PROFILE_ADD_INFORMATION in the community's phnt headers. */
#include "hal/pmc.h"
#include "hal/profile_interrupt.h"
#include "hal/source.h"
#include "hal/sources.h"
#include "kernel/base/bits.h"
#include "kernel/base/lock.h"
#include "kernel/base/refuse.h"
#include "kernel/base/string.h"
#include "pmu/pmu.h"

static char added_names[SOURCES_ADDED_MAX][HAL_SOURCE_NAME_MAX]; /* L: source_added_lock */

ULONG hal_source_set_interval(KPROFILE_SOURCE source, ULONG_PTR interval)
{
    ULONG lowest, preset, highest;
    if (!hal_source_known(source))
        return 0;
    hal_source_limits(source, &lowest, &preset, &highest);
    ULONG now = interval < lowest ? lowest : interval > highest ? highest : (ULONG)interval;
    __atomic_store_n(&source_intervals[(uint8_t)source], now, __ATOMIC_RELAXED);
    if (source == ProfileTime)
        profile_time_changed();
    return now;
}

ULONG_PTR HalSetProfileInterval(ULONG_PTR Interval)
{
    return hal_source_set_interval(ProfileTime, Interval);
}

/* L: source_added_lock. A free element for a source of that name; NULL: the name exists, or the
 * table is full. */
static struct source_row *place_for(const char *name, uint8_t first)
{
    struct source_row *free = NULL;
    uint8_t id = first;
    for_each_in(row, source_added) {
        if (!row->name)
            free = free ? free : row;
        else if (strcmp(row->name, name) == 0)
            return NULL;
    }
    for (unsigned i = 0; i < SOURCES_ADDED_MAX; i++)
        for_each_in(row, source_added)
            id += row->name && row->id == id;
    if (free)
        free->id = id;
    return free;
}

/* The set of sources of the CPUs that have counters; all are of one vendor. */
static const struct source_set *this_set(void)
{
    const struct source_set *set = NULL;
    for (unsigned i = 0; i < pmu_kind_count && !set; i++)
        set = pmu_kinds[i].counters ? source_set_of(&pmu_kinds[i]) : NULL;
    return set;
}

static const struct source_row no_rows;

static bool is_built_in(const char *name)
{
    const struct source_set *set = this_set();
    for (const struct source_row *row = set ? set->rows : &no_rows; row->name; row++)
        if (strcmp(row->name, name) == 0)
            return true;
    return strcmp(name, "Timer") == 0;
}

NTSTATUS hal_source_add(const char *name, unsigned code, uint8_t umask, uint32_t flags,
                        ULONG interval, KPROFILE_SOURCE *source)
{
    const struct source_set *set = this_set();
    NTSTATUS status = STATUS_INSUFFICIENT_RESOURCES;
    uint64_t able = 0;

    if (!set)
        return STATUS_NOT_SUPPORTED;
    if (!name[0] || strlen(name) >= HAL_SOURCE_NAME_MAX || code > HAL_SOURCE_CODE_MAX)
        return STATUS_INVALID_PARAMETER;
    for (unsigned i = 0; i < pmu_kind_count; i++)
        able |= source_raw_counters(&pmu_kinds[i], code, flags);
    if (!able)
        return STATUS_NOT_SUPPORTED;
    if (is_built_in(name))
        return status;
    KIRQL irql = lock_acquire(&source_added_lock);
    struct source_row *row = claim_fails() ? NULL : place_for(name, set->next_id);
    if (row) {
        char *text = added_names[row - source_added];
        memcpy(text, name, strlen(name) + 1);
        *row = (struct source_row){ .id = row->id,
                                    .event = PMU_EVENT_COUNT,
                                    .code = (uint16_t)code,
                                    .umask = umask,
                                    .flags = flags,
                                    .name = text };
        *source = (KPROFILE_SOURCE)row->id;
        status = STATUS_SUCCESS;
    }
    lock_release(&source_added_lock, irql);
    if (row)
        hal_source_set_interval(*source, interval ? interval : SOURCE_EVENTS_DEFAULT);
    return status;
}

NTSTATUS hal_source_remove(KPROFILE_SOURCE source)
{
    NTSTATUS status = STATUS_INVALID_PARAMETER;
    KIRQL irql = lock_acquire(&source_added_lock);
    for_each_in(row, source_added)
        if (row->name && row->id == (uint32_t)source) {
            status =
                profile_in_use(source) || pmc_in_use(source) ? STATUS_DEVICE_BUSY : STATUS_SUCCESS;
            if (NT_SUCCESS(status)) {
                row->name = NULL;
                __atomic_store_n(&source_intervals[(uint8_t)source], SOURCE_EVENTS_DEFAULT,
                                 __ATOMIC_RELAXED);
            }
        }
    lock_release(&source_added_lock, irql);
    return status;
}

/* --- The events of sources to add, as processor makers' tools describe them. --- */

#define ANY 0xffffffffu

/* Offsets of the bytes; NONE: the format lacks it. */
enum { NONE = 0xff };
static const struct layout {
    const char *driver;
    UCHAR version, event_bytes, unit, threshold, invert, any_thread, edge;
    UCHAR precise; /* NT: ours; there Windows has nothing */
} layouts[] = {
    { "intel", 2, 1, 1, 2, 3, 4, 5, 6 },
    { "intel", 3, 1, 1, 2, 3, 4, 5, 6 },
    { "amd", 2, 1, 1, NONE, NONE, NONE, NONE, NONE },
    { "amd", 3, 2, 2, 3, 4, NONE, 5, NONE },
};

static UCHAR byte_of(const UCHAR *event, UCHAR where) { return where == NONE ? 0 : event[where]; }

static bool matches_model(ULONG wanted, unsigned found) { return wanted == ANY || wanted == found; }

/* Family, model and stepping are the same for all kinds of cores of a processor. */
static bool is_this_processor(const ULONG hierarchy[3])
{
    return matches_model(hierarchy[0], pmu_kinds->family) &&
           matches_model(hierarchy[1], pmu_kinds->model) &&
           matches_model(hierarchy[2], pmu_kinds->stepping);
}

NTSTATUS hal_source_event(UCHAR version, const UCHAR event[8], const ULONG hierarchy[3],
                          HAL_PROFILE_SOURCE_ADD *add)
{
    if (version != 2 && version != 3)
        return STATUS_INVALID_PARAMETER;
    if (!is_this_processor(hierarchy))
        return STATUS_NOT_SUPPORTED;
    for_each_in(l, layouts)
        if (pmu_kinds->driver && strcmp(l->driver, pmu_kinds->driver) == 0 &&
            l->version == version) {
            add->EventSelect = (USHORT)(event[0] | (l->event_bytes == 2 ? event[1] << 8 : 0));
            add->UnitSelect = event[l->unit];
            add->CMask = byte_of(event, l->threshold);
            add->CInv = byte_of(event, l->invert);
            add->AnyThread = byte_of(event, l->any_thread);
            add->EdgeDetect = byte_of(event, l->edge);
            add->Precise = byte_of(event, l->precise);
            return STATUS_SUCCESS;
        }
    return STATUS_NOT_SUPPORTED;
}
