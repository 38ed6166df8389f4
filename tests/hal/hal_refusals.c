/* SPDX-License-Identifier: MIT */
/* HalAllocateHardwareCounters: every parameter that it must refuse, the status, and the order of
 * the checks. Afterwards nothing is owned and the handle is NULL.
 *
 * Source: ntddk.h and its pages; what they leave open is as in the HC lines of tests/contract.md.
 */
#include "tests/harness/kernel.h"

static void no_handler(ULONGLONG, HANDLE) {}
TEST(hal_refusals, no_pmu,
     "without working counters an allocation returns STATUS_NOT_SUPPORTED [HC-44 HC-15]")
{
    SKIP_IF(pmu_some_counters(cpu_all()), "this machine has a PMU");
    HANDLE handle = NO_HANDLE;
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &handle), STATUS_NOT_SUPPORTED);
    CHECK(handle == NULL);
    REFUSED(STATUS_NOT_SUPPORTED, single(0));
    REFUSED(STATUS_INVALID_PARAMETER, single(0), single(0)); /* parameters come first */
    CHECK_EQ(hal_counter_count(), 0);
    CHECK_STATUS(hal_pmi_set_driver(NULL), STATUS_NOT_SUPPORTED);
    handle = NO_HANDLE;
    CHECK_STATUS(hal_counters_claim("none", cpu_all(), 1, NULL, &handle), STATUS_NOT_SUPPORTED);
    CHECK(handle == NULL);
    CHECK_EQ(hal_source_next(ProfileTime), ProfileTime);
}

static void affinity_refused(GROUP_AFFINITY *affinity, ULONG count)
{
    HANDLE handle = NO_HANDLE;
    CHECK_STATUS(HalAllocateHardwareCounters(affinity, count, NULL, &handle),
                 STATUS_INVALID_PARAMETER);
    CHECK(handle == NULL);
}

TEST(hal_refusals, affinity_values,
     "an affinity without a count or a count without one, groups that do not exist, empty masks, "
     "inactive processors and reserved fields are refused, and so is no handle [HC-08 HC-09 HC-10 "
     "HC-11 HC-12 HC-13 HC-14 "
     "HC-15 PO-17 PO-19 PO-20]")
{
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, NULL), STATUS_INVALID_PARAMETER);
    affinity_refused(NULL, 1);
    affinity_refused(&(GROUP_AFFINITY){ .Mask = 1 }, 0);
    affinity_refused(&(GROUP_AFFINITY){ .Mask = 0 }, 1);
    for (unsigned cpu = cpu_count; cpu < 64; cpu++) {
        affinity_refused(&(GROUP_AFFINITY){ .Mask = PMU_BIT(cpu) }, 1);
        affinity_refused(&(GROUP_AFFINITY){ .Mask = PMU_BIT(cpu) | 1 }, 1);
    }
    affinity_refused(&(GROUP_AFFINITY){ .Mask = 1, .Group = cpu_groups() }, 1);
    affinity_refused(&(GROUP_AFFINITY){ .Mask = 1, .Group = 0xffff }, 1);
    for (unsigned i = 0; i < 3; i++) {
        GROUP_AFFINITY affinity = { .Mask = 1 };
        affinity.Reserved[i] = 1;
        affinity_refused(&affinity, 1);
    }
    GROUP_AFFINITY good_then_bad[] = { { .Mask = 1 }, { .Mask = 0 } };
    affinity_refused(good_then_bad, 2);
}

/* Lists that are refused whatever counters there are. */
static const struct bad_list {
    ULONG count;
    NTSTATUS status;
    PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR what[2];
} bad_lists[] = {
/* clang-format off */
#define SINGLE(index) { .Type = ResourceTypeSingle, .u.CounterIndex = (index) }
#define RANGE(begin, end) { .Type = ResourceTypeRange, .u.Range = { (begin), (end) } }
#define TAG(value) { .Type = ResourceTypeIdenitificationTag, .u.IdentificationTag = (value) }
#define OVERFLOW(handler) { .Type = ResourceTypeOverflow, .u.OverflowHandler = (handler) }
#define BUFFER(handler, threshold)                                                                 \
    { .Type = ResourceTypeEventBuffer, .u.EventBufferConfiguration = { (handler), 0, (threshold) } }
#define OF_TYPE(type) { .Type = (PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE)(type) }
    /* clang-format on */
    { 1, STATUS_INVALID_PARAMETER, { RANGE(1, 0) } },
    { 1, STATUS_INVALID_PARAMETER, { RANGE(0, 64) } },
    { 1, STATUS_INVALID_PARAMETER, { RANGE(64, 65) } },
    { 1, STATUS_INVALID_PARAMETER, { RANGE(0, 0xffffffff) } },
    { 1, STATUS_INVALID_PARAMETER, { RANGE(0xffffffff, 0) } },
    { 1, STATUS_INVALID_PARAMETER, { RANGE(0xfffffffe, 0xffffffff) } },
    { 1, STATUS_INVALID_PARAMETER, { SINGLE(64) } },
    { 1, STATUS_INVALID_PARAMETER, { SINGLE(0xffffffff) } },
    { 1, STATUS_INVALID_PARAMETER, { SINGLE(0x40000020) } },
    { 1, STATUS_INVALID_PARAMETER, { SINGLE(0x80000000) } },
    { 1, STATUS_INVALID_PARAMETER, { OF_TYPE(ResourceTypeMax) } },
    { 1, STATUS_INVALID_PARAMETER, { OF_TYPE(0x7fffffff) } },
    { 1, STATUS_INVALID_PARAMETER, { OF_TYPE(0xffffffff) } },
    { 1, STATUS_INVALID_PARAMETER, { OVERFLOW(NULL) } },
    { 2, STATUS_INVALID_PARAMETER, { OVERFLOW(no_handler), OVERFLOW(no_handler) } },
    { 2, STATUS_INVALID_PARAMETER, { TAG(1), TAG(1) } },
    { 1, STATUS_INVALID_PARAMETER, { BUFFER(NULL, 1) } },
    { 1, STATUS_INVALID_PARAMETER, { BUFFER(ignore_records, 0) } },
    { 2, STATUS_INVALID_PARAMETER, { BUFFER(ignore_records, 1), BUFFER(ignore_records, 1) } },
    { 2, STATUS_INVALID_PARAMETER, { BUFFER(ignore_records, 1), OVERFLOW(NULL) } },
    { 1, STATUS_NOT_SUPPORTED, { OF_TYPE(ResourceTypeExtendedCounterConfiguration) } },
};

/* Some counter, though there may be none. */
static unsigned some_counter(void) { return common_counters() ? nth_counter(0) : 0; }

TEST(
    hal_refusals, bad_lists,
    "ranges and indices of no counter, unknown types, a NULL handler, two handlers, two tags, two "
    "event buffers, one without a threshold, and what is not supported, are refused, alone, before "
    "a counter and after one [HC-25 HC-26 HC-30 HC-31 HC-35 HC-54]")
{
    const PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR good = single(some_counter());
    for (unsigned i = 0; i < ARRAY_SIZE(bad_lists); i++) {
        const struct bad_list *bad = &bad_lists[i];
        struct list alone = { bad->count, { { 0 } } }, after = { bad->count + 1, { good } };
        memcpy(alone.Descriptors, bad->what, sizeof bad->what);
        memcpy(after.Descriptors + 1, bad->what, sizeof bad->what);
        struct list before = alone;
        before.Descriptors[before.Count++] = good;
        refused(alone, bad->status);
        refused(after, bad->status);
        refused(before, bad->status);
    }
}

TEST(hal_refusals, bad_counters,
     "every index that the processor lacks is refused, and a list that names a counter twice, or "
     "none, or a handler alone, and every flag [HC-26 HC-27 HC-28 HC-29 HC-34]")
{
    const unsigned some = some_counter();
    for (unsigned ctr = 0; ctr < 64; ctr++)
        if (common_counters() && !(common_counters() >> ctr & 1)) {
            REFUSED(STATUS_INVALID_PARAMETER, single(ctr));
            REFUSED(STATUS_INVALID_PARAMETER, single(some), single(ctr));
        }
    REFUSED(STATUS_INVALID_PARAMETER, single(some), single(some));
    REFUSED(STATUS_INVALID_PARAMETER, single(some), range(some, some));
    REFUSED(STATUS_INVALID_PARAMETER, range(some, some), single(some));
    struct list empty = { 0, { { 0 } } };
    refused(empty, STATUS_INVALID_PARAMETER);
    REFUSED(STATUS_INVALID_PARAMETER, tag(1));
    REFUSED(STATUS_INVALID_PARAMETER, overflow(no_handler));
    REFUSED(STATUS_INVALID_PARAMETER, overflow(no_handler), buffered(ignore_records, 0, 1));
    for (unsigned bit = 0; bit < 32; bit++) {
        PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR d = single(some);
        d.Flags = 1u << bit;
        REFUSED(STATUS_INVALID_PARAMETER, d);
    }
}

TEST(hal_refusals, order_of_checks,
     "parameters are checked first, then support, then availability [HC-32]")
{
    SKIP_WITHOUT_PMU();
    unsigned ctr = nth_counter(0);
    HANDLE handle = NULL;
    CHECK_STATUS(take_one(BY_NULL, ctr, &handle), STATUS_SUCCESS);
    REFUSED(STATUS_INSUFFICIENT_RESOURCES, single(ctr));
    REFUSED(STATUS_NOT_SUPPORTED, single(ctr), of_type(ResourceTypeExtendedCounterConfiguration));
    REFUSED(STATUS_NOT_SUPPORTED, of_type(ResourceTypeExtendedCounterConfiguration), single(ctr));
    REFUSED(STATUS_INVALID_PARAMETER, of_type(ResourceTypeExtendedCounterConfiguration),
            single(ctr), single(64));
    free_and_check(handle);
}

TEST(hal_refusals, before_1903,
     "by the rules before Windows 10 1903 only NULL, 0, NULL is accepted, and gives every counter")
{
    GROUP_AFFINITY group = { .Mask = 1 };
    PHYSICAL_COUNTER_RESOURCE_LIST list = { .Count = 1 };
    HANDLE handle = (HANDLE)1, second;
    SKIP_WITHOUT_PMU();
    bool before = hal_counters_1809;
    hal_counters_1809 = true;
    CHECK_STATUS(HalAllocateHardwareCounters(&group, 1, NULL, &handle), STATUS_INVALID_PARAMETER);
    CHECK(handle == NULL);
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 1, NULL, &handle), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, &list, &handle), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &handle), STATUS_SUCCESS);
    CHECK_EQ(hal_counters_available(cpu_all()), 0);
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &second),
                 STATUS_INSUFFICIENT_RESOURCES);
    CHECK_STATUS(HalFreeHardwareCounters(handle), STATUS_SUCCESS);
    hal_counters_1809 = before;
}
