/* SPDX-License-Identifier: MIT */
/* The event of each KPROFILE_SOURCE on this machine, and its interval.
 *
 * Locking: source_added_lock guards the sources added at run time. Intervals are single words that
 * the interrupt reads without a lock. IRQL <= DISPATCH_LEVEL, except hal_source_interval of a
 * supported source: any.
 *
 * Sources: ntddk.h; intervals and limits as tools on Windows print them;
 * EVENT_TRACE_PROFILE_ADD_INFORMATION in the community's phnt headers. */
#include "hal/source.h"
#include "hal/hal.h"
#include "kernel/base/assert.h"
#include "kernel/base/bits.h"
#include "kernel/base/lock.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "pmu/pmu.h"

#define TIME_MIN 1221u
#define TIME_MAX 1000000u
#define EVENTS_MIN 4096u
#define EVENTS_MAX 2147483647u
#define SAMPLING (PMU_USER | PMU_KERNEL | PMU_INTERRUPT)

static struct lock source_added_lock = LOCK("profile sources", DISPATCH_LEVEL);
struct source_row source_added[SOURCES_ADDED_MAX];
uint64_t source_intervals[SOURCE_IDS];
static const struct source_row none; /* a table without rows */

void hal_sources_init(void)
{
    for (unsigned id = 0; id < SOURCE_IDS; id++)
        source_intervals[id] = id == ProfileTime ? SOURCE_TIME_DEFAULT : SOURCE_EVENTS_DEFAULT;
}

const struct source_set *source_set_of(const struct pmu_kind *pmu)
{
    const struct source_set *set = source_sets;
    while (set->driver && (!pmu->driver || strcmp(set->driver, pmu->driver) != 0))
        set++;
    return set->driver && (pmu->events & set->needs) == set->needs ? set : NULL;
}

/* The counters that can count the row; `unless_named` limits them if the row names none. */
static uint64_t row_counters(const struct pmu_kind *pmu, const struct source_row *row,
                             uint64_t unless_named)
{
    if (!source_row_of(row, pmu->table))
        return 0;
    uint64_t able = row->event == PMU_EVENT_COUNT ? pmu_raw_counters(pmu, row->code, row->flags)
                                                  : pmu_counters_for(pmu, row->event);
    return able & (row->fixed ? row->fixed : unless_named);
}

/* The source's row on that kind of CPU, or NULL. An added source is copied to *copy, because it may
 * be removed. */
static const struct source_row *row_of(const struct pmu_kind *pmu, KPROFILE_SOURCE source,
                                       struct source_row *copy)
{
    const struct source_set *set = source_set_of(pmu);
    for (const struct source_row *row = set ? set->rows : &none; row->name; row++)
        if (row->id == (uint32_t)source && row_counters(pmu, row, PMU_ANY_GP))
            return row;
    KIRQL irql = lock_acquire(&source_added_lock);
    const struct source_row *found = NULL;
    for (const struct source_row *row = source_added; row < source_added + SOURCES_ADDED_MAX; row++)
        if (row->name && row->id == (uint32_t)source && set && row_counters(pmu, row, PMU_ANY_GP)) {
            *copy = *row;
            found = copy;
        }
    lock_release(&source_added_lock, irql);
    return found;
}

static uint64_t counters_of(const struct pmu_kind *pmu, KPROFILE_SOURCE source,
                            uint64_t unless_named, uint64_t *select)
{
    struct source_row copy;
    const struct source_row *row = row_of(pmu, source, &copy);
    if (!row)
        return 0;
    *select = row->event == PMU_EVENT_COUNT
                  ? pmu_raw_select(row->code, row->umask, row->flags | SAMPLING)
                  : pmu_select(pmu, row->event, SAMPLING);
    return row_counters(pmu, row, unless_named);
}

uint64_t source_counters(const struct pmu_kind *pmu, KPROFILE_SOURCE source, uint64_t *select)
{
    return counters_of(pmu, source, PMU_ANY_GP, select);
}

uint64_t source_counting(const struct pmu_kind *pmu, KPROFILE_SOURCE source, uint64_t *select)
{
    return counters_of(pmu, source, ~0ul, select);
}

bool hal_source_supported_on(KPROFILE_SOURCE source, struct cpu_set among)
{
    const struct pmu_kind *first = NULL;
    uint64_t of_first = 0, select;
    if (source == ProfileTime)
        return true;
    for_each_bit(kind, pmu_kinds_of(among)) {
        const struct pmu_kind *pmu = &pmu_kinds[kind];
        if (!source_counters(pmu, source, &select))
            return false;
        if (first && !pmu_same_meaning(first, of_first, pmu, select))
            return false;
        first = pmu;
        of_first = select;
    }
    return first != NULL;
}

bool hal_source_supported(KPROFILE_SOURCE source)
{
    return hal_source_supported_on(source, cpu_all());
}

bool hal_source_known(KPROFILE_SOURCE source)
{
    uint64_t select;
    bool found = source == ProfileTime;
    for (unsigned i = 0; i < pmu_kind_count && !found; i++)
        found = source_counters(&pmu_kinds[i], source, &select);
    return found;
}

const char *hal_source_name(KPROFILE_SOURCE source)
{
    struct source_row copy;
    if (source == ProfileTime)
        return "Timer";
    return hal_source_supported(source) ? row_of(pmu_kinds, source, &copy)->name : NULL;
}

KPROFILE_SOURCE hal_source_next(KPROFILE_SOURCE source)
{
    for (unsigned id = (unsigned)source + 1; id < SOURCE_IDS; id++)
        if (hal_source_supported((KPROFILE_SOURCE)id))
            return (KPROFILE_SOURCE)id;
    return ProfileTime;
}

void hal_source_limits(KPROFILE_SOURCE source, ULONG *lowest, ULONG *preset, ULONG *highest)
{
    bool time = source == ProfileTime;
    *lowest = time ? TIME_MIN : EVENTS_MIN;
    *preset = time ? SOURCE_TIME_DEFAULT : SOURCE_EVENTS_DEFAULT;
    *highest = time ? TIME_MAX : EVENTS_MAX;
}

ULONG hal_source_interval(KPROFILE_SOURCE source) { return (ULONG)source_interval(source); }

/* The kinds of CPU that have the source, by name; the source's name on the last of them. */
static const char *kinds_text(KPROFILE_SOURCE source, char *text, size_t size)
{
    struct source_row copy;
    const char *name = "Timer";
    size_t n = 0;
    for (unsigned i = 0; i < pmu_kind_count; i++) {
        const struct source_row *row = row_of(&pmu_kinds[i], source, &copy);
        if (source != ProfileTime && !row)
            continue;
        name = row ? row->name : name;
        n += print_to(text + n, size - n, "%s%s", n ? ", " : "",
                      pmu_kinds[i].counters ? pmu_kinds[i].table->name : "no PMU");
    }
    return name;
}

void hal_sources_print(void)
{
    print("Id   Name                             Interval   Least       Most  Kinds of CPU\n");
    for (unsigned id = 0; id < SOURCE_IDS; id++) {
        const KPROFILE_SOURCE source = (KPROFILE_SOURCE)id;
        char kinds[PMU_KINDS_MAX * 24] = "";
        ULONG least, preset, most;
        if (!hal_source_known(source))
            continue;
        const char *name = kinds_text(source, kinds, sizeof kinds);
        hal_source_limits(source, &least, &preset, &most);
        print("%4u  %-30s %10u %7u %10u  %s\n", id, name, hal_source_interval(source), least, most,
              kinds);
    }
}

/* --- Intervals, and sources added at run time. --- */

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
    for (struct source_row *row = source_added; row < source_added + SOURCES_ADDED_MAX; row++) {
        if (!row->name)
            free = free ? free : row;
        else if (strcmp(row->name, name) == 0)
            return NULL;
    }
    for (unsigned i = 0; i < SOURCES_ADDED_MAX; i++)
        for (const struct source_row *row = source_added; row < source_added + SOURCES_ADDED_MAX;
             row++)
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

static bool is_built_in(const char *name)
{
    const struct source_set *set = this_set();
    for (const struct source_row *row = set ? set->rows : &none; row->name; row++)
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
        able |= pmu_raw_counters(&pmu_kinds[i], code, flags);
    if (!able)
        return STATUS_NOT_SUPPORTED;
    if (is_built_in(name))
        return status;
    KIRQL irql = lock_acquire(&source_added_lock);
    struct source_row *row = place_for(name, set->next_id);
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
    for (struct source_row *row = source_added; row < source_added + SOURCES_ADDED_MAX; row++)
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
} layouts[] = {
    { "intel", 2, 1, 1, 2, 3, 4, 5 },
    { "intel", 3, 1, 1, 2, 3, 4, 5 },
    { "amd", 2, 1, 1, NONE, NONE, NONE, NONE },
    { "amd", 3, 2, 2, 3, 4, NONE, 5 },
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
    for (const struct layout *l = layouts; l < layouts + ARRAY_SIZE(layouts); l++)
        if (pmu_kinds->driver && strcmp(l->driver, pmu_kinds->driver) == 0 &&
            l->version == version) {
            add->EventSelect = (USHORT)(event[0] | (l->event_bytes == 2 ? event[1] << 8 : 0));
            add->UnitSelect = event[l->unit];
            add->CMask = byte_of(event, l->threshold);
            add->CInv = byte_of(event, l->invert);
            add->AnyThread = byte_of(event, l->any_thread);
            add->EdgeDetect = byte_of(event, l->edge);
            return STATUS_SUCCESS;
        }
    return STATUS_NOT_SUPPORTED;
}
