/* SPDX-License-Identifier: MIT */
/* For the tests of counter allocation: lists and their descriptors, and the calls made short. */
#pragma once
#include "hal/owners.h"
#include "kernel/base/bits.h"
#include "kernel/base/string.h"
#include "tests/harness/kinds.h"
#include "tests/harness/test.h"

#define LIST_MAX 20
#define NO_HANDLE ((HANDLE)0x1234567) /* what a failing call must overwrite */

/* A PHYSICAL_COUNTER_RESOURCE_LIST with space for more than one descriptor. */
struct list {
    ULONG Count;
    PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR Descriptors[LIST_MAX];
};
ABI_FIELD(struct list, Descriptors, 8);

#define DESCRIPTOR(...) ((PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR){ __VA_ARGS__ })

static inline PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR single(ULONG index)
{
    return DESCRIPTOR(.Type = ResourceTypeSingle, .u.CounterIndex = index);
}

static inline PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR range(ULONG begin, ULONG end)
{
    return DESCRIPTOR(.Type = ResourceTypeRange, .u.Range = { begin, end });
}

static inline PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR overflow(
    PPHYSICAL_COUNTER_OVERFLOW_HANDLER handler)
{
    return DESCRIPTOR(.Type = ResourceTypeOverflow, .u.OverflowHandler = handler);
}

static inline void ignore_records(PVOID, ULONGLONG, ULONGLONG, HANDLE) {}

static inline PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR buffered(
    PPHYSICAL_COUNTER_EVENT_BUFFER_OVERFLOW_HANDLER handler, ULONG entry_size, ULONG threshold)
{
    return DESCRIPTOR(.Type = ResourceTypeEventBuffer,
                      .u.EventBufferConfiguration = { handler, entry_size, threshold });
}

static inline PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR tag(ULONG value)
{
    return DESCRIPTOR(.Type = ResourceTypeIdenitificationTag, .u.IdentificationTag = value);
}

static inline PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR of_type(ULONG type)
{
    return DESCRIPTOR(.Type = (PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE)type);
}

/* The n-th counter that works on all CPUs, or the last one. */
static inline unsigned nth_counter(unsigned n)
{
    uint64_t rest = common_counters();
    while (n-- && (rest & (rest - 1)))
        rest &= rest - 1;
    return (unsigned)__builtin_ctzll(rest);
}

static inline bool is_owned_by(unsigned ctr, unsigned cpu, const char *name)
{
    const char *owner = hal_counter_owner_name(ctr, cpu);
    return owner && strcmp(owner, name) == 0;
}

#define BY_NULL cpu_set_none() /* for take_on: all CPUs, as the API says it */

static inline NTSTATUS take_on(struct cpu_set where, struct list *list, HANDLE *handle)
{
    GROUP_AFFINITY groups[CPU_GROUPS_MAX];
    ULONG count = groups_of(where, groups);
    return HalAllocateHardwareCounters(count ? groups : NULL, count,
                                       (PPHYSICAL_COUNTER_RESOURCE_LIST)(void *)list, handle);
}

static inline NTSTATUS take_one(struct cpu_set where, unsigned ctr, HANDLE *handle)
{
    struct list list = { 1, { single(ctr) } };
    return take_on(where, &list, handle);
}

static inline void free_and_check(HANDLE handle) { CHECK_OK(HalFreeHardwareCounters(handle)); }

/* The list is refused with that status, nothing is owned, and the handle is NULL. */
static inline void refused(struct list list, NTSTATUS status)
{
    HANDLE handle = NO_HANDLE;
    unsigned owned = hal_counters_owned();
    CHECK_STATUS(take_on(BY_NULL, &list, &handle), status);
    CHECK(handle == NULL);
    CHECK_EQ(hal_counters_owned(), owned);
}

#define REFUSED(status, ...)                                                                       \
    do {                                                                                           \
        PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR list_[] = { __VA_ARGS__ };                            \
        struct list whole_ = { ARRAY_SIZE(list_), { { 0 } } };                                     \
        memcpy(whole_.Descriptors, list_, sizeof list_);                                           \
        refused(whole_, status);                                                                   \
    } while (0)
