/* SPDX-License-Identifier: MIT */
/* What the files of hal/ that deal with sources share. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernel/nt/nt_profile.h"
#include "pmu/pmu.h"

#define SOURCE_IDS 256 /* the capacity for sources */

/* One source on some families of processors. The last row of a table has no name. */
struct source_row {
    uint8_t id;
    uint8_t event; /* enum pmu_event; PMU_EVENT_COUNT: by code and unit mask */
    uint8_t umask;
    uint16_t code;
    uint16_t families; /* bits of pmu_table.family that it is for; 0: all */
    uint32_t flags;    /* of an added source: PMU_EDGE and so on */
    uint64_t fixed;    /* this counter only; 0: the general-purpose ones */
    const char *name;  /* the symbol without Profile */
};

/* The sources of one driver in pmu/. */
struct source_set {
    const char *driver; /* NULL: end */
    const struct source_row *rows;
    uint64_t needs;  /* events without which the processor has no counter sources at all */
    uint8_t next_id; /* the first number for sources that are added */
};

extern const struct source_set source_sets[];
extern const struct source_row amd_sources[];

/* General sources, with the same meaning on every processor: supported if its family's table has
 * the event. */
#define GENERAL_SOURCES                                                                            \
    { .id = 0x03, .name = "PipelineDry", .event = PMU_PIPELINE_DRY },                              \
        { .id = 0x04, .name = "LoadInstructions", .event = PMU_LOADS },                            \
        { .id = 0x05, .name = "PipelineFrozen", .event = PMU_PIPELINE_FROZEN },                    \
        { .id = 0x07, .name = "TotalNonissues", .event = PMU_NONISSUES },                          \
        { .id = 0x0a, .name = "CacheMisses", .event = PMU_LLC_MISSES },                            \
        { .id = 0x0c, .name = "StoreInstructions", .event = PMU_STORES },                          \
        { .id = 0x0f, .name = "2Issue", .event = PMU_ISSUE_2 },                                    \
        { .id = 0x10, .name = "3Issue", .event = PMU_ISSUE_3 },                                    \
        { .id = 0x11, .name = "4Issue", .event = PMU_ISSUE_4 },                                    \
        { .id = 0x13, .name = "TotalCycles", .event = PMU_CYCLES },                                \
    {                                                                                              \
        .id = 0x17, .name = "LoadLinkedIssues", .event = PMU_LOCKED                                \
    }

/* Whether a row is for processors of this table. */
static inline bool source_row_of(const struct source_row *row, const struct pmu_table *table)
{
    return !row->families || (row->families & table->family);
}

extern uint64_t source_intervals[SOURCE_IDS]; /* atomic; each a ULONG */
#define SOURCE_TIME_DEFAULT 10000u            /* 100 ns each */
#define SOURCE_EVENTS_DEFAULT 65536u

/* Inline for the interrupt. */
static inline uint64_t source_interval(KPROFILE_SOURCE source)
{
    return __atomic_load_n(&source_intervals[(uint8_t)source], __ATOMIC_RELAXED);
}

/* Counters that can count the source on CPUs of a kind; 0: unsupported. *select: for pmu_program
 * there, with both rings and the interrupt. */
uint64_t source_counters(const struct pmu_kind *pmu, KPROFILE_SOURCE source, uint64_t *select);
/* Counters, fixed ones included, that can count the source where nothing is sampled; select as
 * above. */
uint64_t source_counting(const struct pmu_kind *pmu, KPROFILE_SOURCE source, uint64_t *select);

/* Counters that can count a code with flags, and write records of it if it shall be precise. */
uint64_t source_raw_counters(const struct pmu_kind *pmu, unsigned code, uint32_t flags);
/* Whether it was added with SOURCE_PRECISE. */
bool source_is_precise(KPROFILE_SOURCE source);

/* In source_assign.c: the counter of each source, and its select on each kind of CPU. */
struct source_assignment {
    ULONG count;
    unsigned ctrs[MAX_HW_COUNTERS];
    uint64_t selects[MAX_HW_COUNTERS][PMU_KINDS_MAX];
    uint32_t without[MAX_HW_COUNTERS]; /* bits to leave out of the select */
    uint64_t mask;                     /* all of the counters */
};
/* Assigns a counter to each of `count` sources, at most MAX_HW_COUNTERS, from those that are free
 * on all of the processors. Claims nothing. STATUS_NOT_SUPPORTED: not all of the processors have
 * one of them; STATUS_INSUFFICIENT_RESOURCES: the processors cannot count them together;
 * STATUS_DEVICE_BUSY: they could, if all counters were free. */
NTSTATUS source_assign(const ULONG *sources, ULONG count, struct cpu_set among,
                       struct source_assignment *a);
/* Runs on each of the processors, once the counters are claimed: starts them at 0, or before their
 * wrap (boot_wraps). */
void source_start_assigned(void *assignment);

/* Sources added at run time. L: source_added_lock; name NULL: a free element. */
#define SOURCES_ADDED_MAX 16
extern struct lock source_added_lock;
extern struct source_row source_added[SOURCES_ADDED_MAX];
/* The sources of CPUs of that kind; NULL: it has none. */
const struct source_set *source_set_of(const struct pmu_kind *pmu);
