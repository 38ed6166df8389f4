/* SPDX-License-Identifier: MIT */
/* Between the files of hal/ that deal with sources. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernel/nt_profile.h"

#define SOURCE_IDS 256 /* numbers that tables have room for */

/* One source on some families of processors. */
struct source_row {
    uint8_t id;
    uint8_t event; /* enum pmu_event; PMU_EVENT_COUNT: by code and unit mask */
    uint8_t umask;
    uint8_t first_family, last_family;
    uint16_t code;
    uint32_t flags; /* of an added source: PMU_EDGE and so on */
    uint64_t fixed; /* this counter only; 0: the general-purpose ones */
    const char *name; /* the symbol without Profile */
};

/* The sources of one driver in pmu/. */
struct source_set {
    const char *driver; /* NULL: end */
    const struct source_row *rows;
    size_t count;
    uint64_t needs;  /* events of the processor without which there are none at all */
    uint8_t next_id; /* the first number for sources that are added */
};

extern const struct source_set source_sets[];

extern ULONG source_intervals[SOURCE_IDS]; /* atomic; 0: the default */
#define SOURCE_TIME_DEFAULT 10000u /* 100 ns each */
#define SOURCE_EVENTS_DEFAULT 65536u

/* Inline for the interrupt. */
static inline ULONG source_interval(KPROFILE_SOURCE source)
{
    ULONG set = __atomic_load_n(&source_intervals[(uint8_t)source], __ATOMIC_RELAXED);
    return set ? set : source == ProfileTime ? SOURCE_TIME_DEFAULT : SOURCE_EVENTS_DEFAULT;
}

/* Counters that can count it, 0: unsupported; *select for pmu_program: both rings, interrupt. */
uint64_t source_counters(KPROFILE_SOURCE source, uint64_t *select);
/* The same for counting without samples, which fixed counters do too. */
uint64_t source_counting(KPROFILE_SOURCE source, uint64_t *select);
/* In counting.c: a counter each for `count` sources, at most MAX_HW_COUNTERS, of those that are free on all of the
 * processors; nothing is claimed. *mask: all of them. STATUS_NOT_SUPPORTED: one is no source of this processor;
 * STATUS_INSUFFICIENT_RESOURCES: the processor cannot count these together; STATUS_DEVICE_BUSY: could, if all counters
 * were free. */
NTSTATUS source_assign(const ULONG *sources, ULONG count, uint64_t cpu_mask, unsigned *ctrs, uint64_t *selects,
                       uint64_t *mask);
extern bool pmi_by_nmi; /* in interrupt.c; const once CPUs run */
/* In profile.c, from the NMI: arms again those of the counters that sample. */
void profile_rearm(uint64_t counters);
/* In pmc.c: whether a set counts it. */
bool pmc_in_use(KPROFILE_SOURCE source);
/* In profile.c: whether somebody samples by it. */
bool profile_in_use(KPROFILE_SOURCE source);
/* In profile.c: the time between samples has changed. */
void profile_time_changed(void);
