/* SPDX-License-Identifier: MIT */
/* What a KPROFILE_SOURCE means on this machine, and the interval of each.
 *
 * Locking: sources_lock guards the sources added at run time. Intervals are single words that the
 * interrupt reads without a lock. IRQL <= DISPATCH_LEVEL, except hal_source_interval of a supported
 * source: any.
 *
 * Sources: ntddk.h; intervals and limits as tools on Windows print them. */
#include "hal/source.h"
#include "hal/hal.h"
#include "kernel/assert.h"
#include "kernel/lock.h"
#include "kernel/string.h"
#include "pmu/pmu.h"

#define TIME_MIN 1221u
#define TIME_MAX 1000000u
#define EVENTS_MIN 4096u
#define EVENTS_MAX 2147483647u
#define ADDED_MAX 16
#define SAMPLING (PMU_USER | PMU_KERNEL | PMU_INTERRUPT)

static struct lock sources_lock = LOCK("profile sources", DISPATCH_LEVEL);
static struct source_row added[ADDED_MAX]; /* L: sources_lock; name NULL: free */
static char added_names[ADDED_MAX][HAL_SOURCE_NAME_MAX];
ULONG source_intervals[SOURCE_IDS];

static const struct source_set *this_set(void)
{
    const struct source_set *set = source_sets;
    while (set->driver && (!pmu_caps.driver || strcmp(set->driver, pmu_caps.driver) != 0))
        set++;
    return set->driver && (pmu_caps.events & set->needs) == set->needs ? set : NULL;
}

/* With a row that names none, samples leave fixed counters alone. */
static uint64_t row_counters(const struct source_row *row, uint64_t unless_named)
{
    if (pmu_caps.family < row->first_family || pmu_caps.family > row->last_family)
        return 0;
    uint64_t able = row->event == PMU_EVENT_COUNT ? pmu_raw_counters(row->code)
                                                  : pmu_counters_for(row->event);
    return able & (row->fixed ? row->fixed : unless_named);
}

/* The row that counts here, if any; of an added source a copy in *copy, which may go away. */
static const struct source_row *row_of(KPROFILE_SOURCE source, struct source_row *copy)
{
    const struct source_set *set = this_set();
    for (size_t i = 0; set && i < set->count; i++)
        if (set->rows[i].id == (uint32_t)source && row_counters(&set->rows[i], PMU_ANY_GP))
            return &set->rows[i];
    uint8_t irql = lock_acquire(&sources_lock);
    const struct source_row *found = NULL;
    for (const struct source_row *row = added; row < added + ADDED_MAX; row++)
        if (row->name && row->id == (uint32_t)source && set && row_counters(row, PMU_ANY_GP)) {
            *copy = *row;
            found = copy;
        }
    lock_release(&sources_lock, irql);
    return found;
}

static uint64_t counters_of(KPROFILE_SOURCE source, uint64_t unless_named, uint64_t *select)
{
    struct source_row copy;
    const struct source_row *row = row_of(source, &copy);
    if (!row)
        return 0;
    *select = row->event == PMU_EVENT_COUNT
                  ? pmu_raw_select(row->code, row->umask, row->flags | SAMPLING)
                  : pmu_select(row->event, SAMPLING);
    return row_counters(row, unless_named);
}

uint64_t source_counters(KPROFILE_SOURCE source, uint64_t *select)
{
    return counters_of(source, PMU_ANY_GP, select);
}

uint64_t source_counting(KPROFILE_SOURCE source, uint64_t *select)
{
    return counters_of(source, ~UINT64_C(0), select);
}

bool hal_source_supported(KPROFILE_SOURCE source)
{
    uint64_t select;
    return source == ProfileTime || source_counters(source, &select);
}

const char *hal_source_name(KPROFILE_SOURCE source)
{
    struct source_row copy;
    const struct source_row *row = row_of(source, &copy);
    return source == ProfileTime ? "Timer" : row ? row->name : NULL;
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

ULONG hal_source_interval(KPROFILE_SOURCE source) { return source_interval(source); }

ULONG hal_source_set_interval(KPROFILE_SOURCE source, ULONG_PTR interval)
{
    ULONG lowest, preset, highest;
    if (!hal_source_supported(source))
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

/* L: sources_lock. A free number and place for a source of that name; NULL: there is none. */
static struct source_row *place_for(const char *name, uint8_t first)
{
    struct source_row *free = NULL;
    uint8_t id = first;
    for (struct source_row *row = added; row < added + ADDED_MAX; row++) {
        if (!row->name)
            free = free ? free : row;
        else if (strcmp(row->name, name) == 0)
            return NULL;
    }
    for (unsigned i = 0; i < ADDED_MAX; i++)
        for (const struct source_row *row = added; row < added + ADDED_MAX; row++)
            id += row->name && row->id == id;
    if (free)
        free->id = id;
    return free;
}

static bool is_built_in(const char *name)
{
    const struct source_set *set = this_set();
    for (size_t i = 0; set && i < set->count; i++)
        if (strcmp(set->rows[i].name, name) == 0)
            return true;
    return strcmp(name, "Timer") == 0;
}

NTSTATUS hal_source_add(const char *name, unsigned code, uint8_t umask, uint32_t flags,
                        ULONG interval, KPROFILE_SOURCE *source)
{
    const struct source_set *set = this_set();
    NTSTATUS status = STATUS_INSUFFICIENT_RESOURCES;

    if (!set || !pmu_raw_counters(code))
        return STATUS_NOT_SUPPORTED;
    if (!name[0] || strlen(name) >= HAL_SOURCE_NAME_MAX || code > HAL_SOURCE_CODE_MAX)
        return STATUS_INVALID_PARAMETER;
    if (is_built_in(name))
        return status;
    uint8_t irql = lock_acquire(&sources_lock);
    struct source_row *row = place_for(name, set->next_id);
    if (row) {
        char *text = added_names[row - added];
        memcpy(text, name, strlen(name) + 1);
        *row = (struct source_row){ .id = row->id, .event = PMU_EVENT_COUNT, .code = (uint16_t)code,
                                    .umask = umask, .last_family = 0xff, .flags = flags,
                                    .name = text };
        *source = (KPROFILE_SOURCE)row->id;
        status = STATUS_SUCCESS;
    }
    lock_release(&sources_lock, irql);
    if (row)
        hal_source_set_interval(*source, interval ? interval : SOURCE_EVENTS_DEFAULT);
    return status;
}

NTSTATUS hal_source_remove(KPROFILE_SOURCE source)
{
    NTSTATUS status = STATUS_INVALID_PARAMETER;
    uint8_t irql = lock_acquire(&sources_lock);
    for (struct source_row *row = added; row < added + ADDED_MAX; row++)
        if (row->name && row->id == (uint32_t)source) {
            status = profile_in_use(source) || pmc_in_use(source) ? STATUS_DEVICE_BUSY : STATUS_SUCCESS;
            if (NT_SUCCESS(status))
                row->name = NULL;
        }
    lock_release(&sources_lock, irql);
    return status;
}
