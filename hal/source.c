/* SPDX-License-Identifier: MIT */
/* The event of each KPROFILE_SOURCE on this machine, and its interval.
 *
 * Locking: source_added_lock guards the sources added at run time. Intervals are single words that
 * the interrupt reads without a lock. IRQL <= DISPATCH_LEVEL, except hal_source_interval of a
 * supported source: any.
 *
 * Sources: ntddk.h; intervals and limits as tools on Windows print them. */
#include "hal/source.h"
#include "hal/buffers/event_buffer.h"
#include "hal/sources.h"
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

struct lock source_added_lock = LOCK("profile sources", DISPATCH_LEVEL);
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

uint64_t source_raw_counters(const struct pmu_kind *pmu, unsigned code, uint32_t flags)
{
    uint64_t able = pmu_raw_counters(pmu, code, flags & ~SOURCE_PRECISE);
    return flags & SOURCE_PRECISE ? able & event_buffer_counters(pmu) : able;
}

/* The counters that can count the row; `unless_named` limits them if the row names none. */
static uint64_t row_counters(const struct pmu_kind *pmu, const struct source_row *row,
                             uint64_t unless_named)
{
    if (!source_row_of(row, pmu->table))
        return 0;
    uint64_t able = row->event == PMU_EVENT_COUNT ? source_raw_counters(pmu, row->code, row->flags)
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
    for_each_in(row, source_added)
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
                  ? pmu_raw_select(row->code, row->umask, (row->flags & ~SOURCE_PRECISE) | SAMPLING)
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

bool source_is_precise(KPROFILE_SOURCE source)
{
    bool precise = false;
    KIRQL irql = lock_acquire(&source_added_lock);
    for_each_in(row, source_added)
        precise |= row->name && row->id == (uint32_t)source && row->flags & SOURCE_PRECISE;
    lock_release(&source_added_lock, irql);
    return precise;
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
