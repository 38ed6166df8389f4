/* SPDX-License-Identifier: MIT */
/* HalAllocateHardwareCounters and HalFreeHardwareCounters: who may have which counter, and every
 * refusal. What happens when an owned counter overflows is in hal_overflow.c.
 *
 * Source: ntddk.h and its pages; what they leave open is as in spec/windows-api.md 2.5. */
#include "hal/hal.h"
#include "kernel/cpu.h"
#include "kernel/string.h"
#include "pmu/pmu.h"
#include "tests/test.h"

#define LIST_MAX 20
#define NO_HANDLE ((HANDLE)0x1234567) /* what a failing call must overwrite */

/* A PHYSICAL_COUNTER_RESOURCE_LIST with room for more than one descriptor. */
struct list {
    ULONG Count;
    PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR Descriptors[LIST_MAX];
};
ABI_FIELD(struct list, Descriptors, 8);

#define DESCRIPTOR(...) ((PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR){ __VA_ARGS__ })

static void no_handler(ULONGLONG OverflowBits, HANDLE OwningHandle)
{
    (void)OverflowBits;
    (void)OwningHandle;
}

static PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR single(ULONG index)
{
    return DESCRIPTOR(.Type = ResourceTypeSingle, .u.CounterIndex = index);
}

static PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR range(ULONG begin, ULONG end)
{
    return DESCRIPTOR(.Type = ResourceTypeRange, .u.Range = { begin, end });
}

static PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR overflow(PPHYSICAL_COUNTER_OVERFLOW_HANDLER handler)
{
    return DESCRIPTOR(.Type = ResourceTypeOverflow, .u.OverflowHandler = handler);
}

static PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR tag(ULONG value)
{
    return DESCRIPTOR(.Type = ResourceTypeIdenitificationTag, .u.IdentificationTag = value);
}

static PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR of_type(ULONG type)
{
    return DESCRIPTOR(.Type = (PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE)type);
}

/* The n-th counter that works, or the last one. */
static unsigned nth_counter(unsigned n)
{
    uint64_t rest = pmu_caps.counters;
    while (n-- && (rest & (rest - 1)))
        rest &= rest - 1;
    return (unsigned)__builtin_ctzll(rest);
}

static NTSTATUS take_on(uint64_t cpu_mask, struct list *list, HANDLE *handle)
{
    GROUP_AFFINITY where = { .Mask = cpu_mask };
    return HalAllocateHardwareCounters(cpu_mask ? &where : NULL, cpu_mask != 0,
                                       (PPHYSICAL_COUNTER_RESOURCE_LIST)(void *)list, handle);
}

static NTSTATUS take_one(uint64_t cpu_mask, unsigned ctr, HANDLE *handle)
{
    struct list list = { 1, { single(ctr) } };
    return take_on(cpu_mask, &list, handle);
}

/* The list is refused with that status, nothing is owned, and the handle is NULL. */
static void refused(struct list list, NTSTATUS status)
{
    HANDLE handle = NO_HANDLE;
    unsigned owned = hal_counters_owned();
    CHECK_STATUS(take_on(0, &list, &handle), status);
    CHECK(handle == NULL);
    CHECK_EQ(hal_counters_owned(), owned);
}

#define REFUSED(status, ...) \
    do { \
        PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR list_[] = { __VA_ARGS__ }; \
        struct list whole_ = { sizeof list_ / sizeof *list_, { { 0 } } }; \
        memcpy(whole_.Descriptors, list_, sizeof list_); \
        refused(whole_, status); \
    } while (0)

static void free_and_check(HANDLE handle)
{
    CHECK_STATUS(HalFreeHardwareCounters(handle), STATUS_SUCCESS);
}

TEST(hal_counters, sizes, "structures of ntddk.h have their x64 layout [HC-47]")
{
    CHECK_EQ(sizeof(PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR), 0x18);
    CHECK_EQ(sizeof(PHYSICAL_COUNTER_RESOURCE_LIST), 0x20);
    CHECK_EQ(offsetof(PHYSICAL_COUNTER_RESOURCE_LIST, Descriptors), 8);
    CHECK_EQ(offsetof(PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR, Flags), 4);
    CHECK_EQ(offsetof(PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR, u), 8);
    CHECK_EQ(sizeof(PHYSICAL_COUNTER_EVENT_BUFFER_CONFIGURATION), 0x10);
    CHECK_EQ(sizeof(GROUP_AFFINITY), 0x10);
}

TEST(hal_counters, types, "resource types have their numbers [HC-48]")
{
    CHECK_EQ(ResourceTypeSingle, 0);
    CHECK_EQ(ResourceTypeRange, 1);
    CHECK_EQ(ResourceTypeExtendedCounterConfiguration, 2);
    CHECK_EQ(ResourceTypeOverflow, 3);
    CHECK_EQ(ResourceTypeEventBuffer, 4);
    CHECK_EQ(ResourceTypeIdenitificationTag, 5);
    CHECK_EQ(ResourceTypeMax, 6);
}

TEST(hal_counters, no_pmu,
     "without counters the answer is NOT_SUPPORTED, never success [HC-44 HC-15]")
{
    if (pmu_caps.counters)
        SKIP("this machine has a PMU");
    HANDLE handle = NO_HANDLE;
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &handle), STATUS_NOT_SUPPORTED);
    CHECK(handle == NULL);
    REFUSED(STATUS_NOT_SUPPORTED, single(0));
    REFUSED(STATUS_INVALID_PARAMETER, single(0), single(0)); /* parameters come first */
    CHECK_EQ(hal_counter_count(), 0);
}

TEST(hal_counters, exclusive,
     "NULL, 0, NULL owns the whole PMU until freed [HC-01 HC-02 HC-03 HC-04]")
{
    SKIP_WITHOUT_PMU();
    HANDLE first = NULL, second = NO_HANDLE;
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &first), STATUS_SUCCESS);
    CHECK(first != NULL);
    CHECK_EQ(hal_counters_owned(), 1);
    CHECK_EQ(hal_counters_available(1), 0);
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &second),
                 STATUS_INSUFFICIENT_RESOURCES);
    CHECK(second == NULL);
    free_and_check(first);
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &second), STATUS_SUCCESS);
    free_and_check(second);
    CHECK_EQ(hal_counters_available(1), pmu_caps.counters);
}

TEST(hal_counters, free_of_nonsense,
     "a value that is no handle is refused, not touched [HC-05 HC-06]")
{
    static const uint64_t values[] = { 0,
                                       1,
                                       4,
                                       0x400,
                                       0x404,
                                       0x1000,
                                       0xfffffffffffffffc,
                                       0x8000000000000000,
                                       0xffffffff80000000,
                                       0xdead0000 };
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
        CHECK_STATUS(HalFreeHardwareCounters((HANDLE)values[i]), STATUS_INVALID_PARAMETER);
}

TEST(hal_counters, free_near_handle,
     "only the very handle frees, not one that resembles it [HC-06]")
{
    SKIP_WITHOUT_PMU();
    HANDLE handle = NULL;
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &handle), STATUS_SUCCESS);
    for (unsigned bit = 0; bit < 64; bit++)
        CHECK_STATUS(HalFreeHardwareCounters((HANDLE)((uint64_t)handle ^ PMU_BIT(bit))),
                     STATUS_INVALID_PARAMETER);
    CHECK_EQ(hal_counters_owned(), 1);
    free_and_check(handle);
}

TEST(hal_counters, free_twice, "a handle is dead once freed, also after another allocation [HC-07]")
{
    SKIP_WITHOUT_PMU();
    HANDLE old = NULL, next = NULL;
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &old), STATUS_SUCCESS);
    free_and_check(old);
    CHECK_STATUS(HalFreeHardwareCounters(old), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &next), STATUS_SUCCESS);
    CHECK(next != old);
    CHECK_STATUS(HalFreeHardwareCounters(old), STATUS_INVALID_PARAMETER);
    CHECK_EQ(hal_counters_owned(), 1);
    free_and_check(next);
}

TEST(hal_counters, null_handle_pointer, "CounterSetHandle must not be NULL [HC-08]")
{
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, NULL), STATUS_INVALID_PARAMETER);
    CHECK_EQ(hal_counters_owned(), 0);
}

static void affinity_refused(GROUP_AFFINITY *affinity, ULONG count)
{
    HANDLE handle = NO_HANDLE;
    CHECK_STATUS(HalAllocateHardwareCounters(affinity, count, NULL, &handle),
                 STATUS_INVALID_PARAMETER);
    CHECK(handle == NULL);
}

TEST(hal_counters, affinity_count, "an affinity and its count come together [HC-09 HC-10 HC-15]")
{
    GROUP_AFFINITY affinity = { .Mask = 1 };
    affinity_refused(NULL, 1);
    affinity_refused(&affinity, 0);
}

TEST(hal_counters, affinity_values,
     "group 0, active processors, nothing reserved [HC-11 HC-12 HC-13 HC-14 HC-15]")
{
    affinity_refused(&(GROUP_AFFINITY){ .Mask = 0 }, 1);
    for (unsigned cpu = cpu_count; cpu < 64; cpu++) {
        affinity_refused(&(GROUP_AFFINITY){ .Mask = PMU_BIT(cpu) }, 1);
        affinity_refused(&(GROUP_AFFINITY){ .Mask = PMU_BIT(cpu) | 1 }, 1);
    }
    affinity_refused(&(GROUP_AFFINITY){ .Mask = 1, .Group = 1 }, 1);
    affinity_refused(&(GROUP_AFFINITY){ .Mask = 1, .Group = 0xffff }, 1);
    for (unsigned i = 0; i < 3; i++) {
        GROUP_AFFINITY affinity = { .Mask = 1 };
        affinity.Reserved[i] = 1;
        affinity_refused(&affinity, 1);
    }
    GROUP_AFFINITY good_then_bad[] = { { .Mask = 1 }, { .Mask = 0 } };
    affinity_refused(good_then_bad, 2);
}

TEST(hal_counters, affinity_united, "the same group twice: the masks are united")
{
    SKIP_WITHOUT_PMU();
    unsigned last = cpu_count - 1;
    GROUP_AFFINITY affinity[] = { { .Mask = 1 }, { .Mask = PMU_BIT(last) }, { .Mask = 1 } };
    HANDLE handle = NULL;
    CHECK_STATUS(HalAllocateHardwareCounters(affinity, 3, NULL, &handle), STATUS_SUCCESS);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        CHECK((hal_counter_owner_name(nth_counter(0), cpu) != NULL) == (cpu == 0 || cpu == last));
    free_and_check(handle);
}

TEST(hal_counters, single, "each counter by itself can be owned, by one only [HC-16 HC-18]")
{
    SKIP_WITHOUT_PMU();
    for (uint64_t rest = pmu_caps.counters; rest; rest &= rest - 1) {
        unsigned ctr = (unsigned)__builtin_ctzll(rest);
        HANDLE handle = NULL, other = NO_HANDLE;
        CHECK_STATUS(take_one(0, ctr, &handle), STATUS_SUCCESS);
        CHECK(handle != NULL);
        CHECK_STATUS(take_one(0, ctr, &other), STATUS_INSUFFICIENT_RESOURCES);
        CHECK(other == NULL);
        CHECK_EQ(hal_counters_available(1), pmu_caps.counters & ~PMU_BIT(ctr));
        free_and_check(handle);
    }
}

TEST(hal_counters, all_singles, "every counter to an owner of its own, all at once [HC-17]")
{
    SKIP_WITHOUT_PMU();
    HANDLE handles[64] = { NULL };
    unsigned n = 0;
    for (uint64_t rest = pmu_caps.counters; rest; rest &= rest - 1)
        CHECK_STATUS(take_one(0, (unsigned)__builtin_ctzll(rest), &handles[n++]), STATUS_SUCCESS);
    CHECK_EQ(hal_counters_owned(), n);
    CHECK_EQ(hal_counters_available(1), 0);
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j < i; j++)
            CHECK(handles[i] != handles[j]);
    for (unsigned i = 0; i < n; i++)
        free_and_check(handles[i]);
}

TEST(hal_counters, all_or_nothing, "a list with one taken counter takes none of the others [HC-19]")
{
    SKIP_WITHOUT_PMU();
    unsigned free_ctr = nth_counter(0), taken_ctr = nth_counter(1);
    HANDLE taken = NULL, handle = NULL;
    CHECK_STATUS(take_one(0, taken_ctr, &taken), STATUS_SUCCESS);
    REFUSED(STATUS_INSUFFICIENT_RESOURCES, single(free_ctr), single(taken_ctr));
    REFUSED(STATUS_INSUFFICIENT_RESOURCES, single(taken_ctr), single(free_ctr));
    CHECK_STATUS(take_one(0, free_ctr, &handle), STATUS_SUCCESS);
    free_and_check(handle);
    free_and_check(taken);
}

TEST(hal_counters, disjoint_processors, "one counter, an owner for each processor [HC-20 HC-23]")
{
    SKIP_WITHOUT_PMU();
    SKIP_BELOW_CPUS(2);
    HANDLE here = NULL, there = NULL, all = NO_HANDLE;
    unsigned ctr = nth_counter(0);
    CHECK_STATUS(take_one(1, ctr, &here), STATUS_SUCCESS);
    CHECK_STATUS(take_one(2, ctr, &there), STATUS_SUCCESS);
    CHECK_STATUS(take_one(0, ctr, &all), STATUS_INSUFFICIENT_RESOURCES);
    free_and_check(there);
    /* The whole PMU of processor 1, while processor 0 has an owner. */
    CHECK_STATUS(take_on(2, NULL, &there), STATUS_SUCCESS);
    CHECK_STATUS(take_on(1, NULL, &all), STATUS_INSUFFICIENT_RESOURCES);
    free_and_check(there);
    free_and_check(here);
}

TEST(hal_counters, exclusive_against_single,
     "whole PMU and single counter exclude each other [HC-21 HC-22]")
{
    SKIP_WITHOUT_PMU();
    HANDLE one = NULL, all = NO_HANDLE;
    CHECK_STATUS(take_one(0, nth_counter(1), &one), STATUS_SUCCESS);
    CHECK_STATUS(take_on(0, NULL, &all), STATUS_INSUFFICIENT_RESOURCES);
    CHECK(all == NULL);
    free_and_check(one);
    CHECK_STATUS(take_on(0, NULL, &all), STATUS_SUCCESS);
    for (uint64_t rest = pmu_caps.counters; rest; rest &= rest - 1)
        CHECK_STATUS(take_one(0, (unsigned)__builtin_ctzll(rest), &one),
                     STATUS_INSUFFICIENT_RESOURCES);
    free_and_check(all);
}

TEST(hal_counters, range, "a range has both its ends, and no more [HC-24]")
{
    SKIP_WITHOUT_PMU();
    /* The first two neighbours, and one that is neither. */
    uint64_t pairs = pmu_caps.counters & pmu_caps.counters >> 1;
    if (!pairs)
        SKIP("no two counters have neighbouring numbers");
    unsigned begin = (unsigned)__builtin_ctzll(pairs);
    uint64_t others = pmu_caps.counters & ~(UINT64_C(3) << begin);
    HANDLE pair = NULL, handle = NULL;
    struct list list = { 1, { range(begin, begin + 1) } };
    CHECK_STATUS(take_on(0, &list, &pair), STATUS_SUCCESS);
    CHECK_STATUS(take_one(0, begin, &handle), STATUS_INSUFFICIENT_RESOURCES);
    CHECK_STATUS(take_one(0, begin + 1, &handle), STATUS_INSUFFICIENT_RESOURCES);
    CHECK_EQ(hal_counters_available(1), others);
    if (others) {
        CHECK_STATUS(take_one(0, (unsigned)__builtin_ctzll(others), &handle), STATUS_SUCCESS);
        free_and_check(handle);
    }
    free_and_check(pair);
}

TEST(hal_counters, range_of_one, "Begin = End is a range of one counter")
{
    SKIP_WITHOUT_PMU();
    unsigned ctr = nth_counter(0);
    HANDLE handle = NULL;
    struct list list = { 1, { range(ctr, ctr) } };
    CHECK_STATUS(take_on(0, &list, &handle), STATUS_SUCCESS);
    CHECK_EQ(hal_counters_available(1), pmu_caps.counters & ~PMU_BIT(ctr));
    free_and_check(handle);
}

TEST(hal_counters, fixed_by_selector, "a fixed counter is 32 + n, or its RDPMC selector")
{
    SKIP_WITHOUT_PMU();
    if (!(pmu_caps.counters >> PMU_FIXED))
        SKIP("no fixed counters");
    for (uint64_t rest = pmu_caps.counters & ~PMU_ANY_GP; rest; rest &= rest - 1) {
        unsigned ctr = (unsigned)__builtin_ctzll(rest);
        HANDLE handle = NULL, other = NULL;
        CHECK_STATUS(take_one(0, 0x40000000 + ctr - PMU_FIXED, &handle), STATUS_SUCCESS);
        CHECK_STATUS(take_one(0, ctr, &other), STATUS_INSUFFICIENT_RESOURCES);
        free_and_check(handle);
    }
}

TEST(hal_counters, bad_range, "Begin > End, and ranges that leave what exists [HC-25 HC-26]")
{
    REFUSED(STATUS_INVALID_PARAMETER, range(1, 0));
    REFUSED(STATUS_INVALID_PARAMETER, range(0, 64));
    REFUSED(STATUS_INVALID_PARAMETER, range(0, 0xffffffff));
    REFUSED(STATUS_INVALID_PARAMETER, range(0xffffffff, 0));
    REFUSED(STATUS_INVALID_PARAMETER, range(0xfffffffe, 0xffffffff));
    if (pmu_caps.counters)
        REFUSED(STATUS_INVALID_PARAMETER, range(0, 63));
}

TEST(hal_counters, absent_index, "every index that the processor lacks is refused [HC-26]")
{
    REFUSED(STATUS_INVALID_PARAMETER, single(64));
    REFUSED(STATUS_INVALID_PARAMETER, single(0xffffffff));
    REFUSED(STATUS_INVALID_PARAMETER, single(0x40000020));
    REFUSED(STATUS_INVALID_PARAMETER, single(0x80000000));
    for (unsigned ctr = 0; ctr < 64; ctr++)
        if (pmu_caps.counters && !(pmu_caps.counters >> ctr & 1))
            REFUSED(STATUS_INVALID_PARAMETER, single(ctr));
}

TEST(hal_counters, counter_twice, "a counter stands in a list once [HC-27]")
{
    unsigned ctr = pmu_caps.counters ? nth_counter(0) : 0;
    REFUSED(STATUS_INVALID_PARAMETER, single(ctr), single(ctr));
    REFUSED(STATUS_INVALID_PARAMETER, single(ctr), range(ctr, ctr));
    REFUSED(STATUS_INVALID_PARAMETER, range(ctr, ctr), single(ctr));
}

TEST(hal_counters, empty_list, "a list must ask for a counter [HC-28]")
{
    struct list empty = { 0, { { 0 } } };
    refused(empty, STATUS_INVALID_PARAMETER);
    REFUSED(STATUS_INVALID_PARAMETER, tag(1));
}

TEST(hal_counters, flags, "no flag is defined [HC-29]")
{
    for (unsigned bit = 0; bit < 32; bit++) {
        PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR d = single(pmu_caps.counters ? nth_counter(0) : 0);
        d.Flags = 1u << bit;
        REFUSED(STATUS_INVALID_PARAMETER, d);
    }
}

TEST(hal_counters, unknown_type, "a Type from ResourceTypeMax on is refused [HC-30]")
{
    REFUSED(STATUS_INVALID_PARAMETER, of_type(ResourceTypeMax));
    REFUSED(STATUS_INVALID_PARAMETER, of_type(ResourceTypeMax + 1));
    REFUSED(STATUS_INVALID_PARAMETER, of_type(0x7fffffff));
    REFUSED(STATUS_INVALID_PARAMETER, of_type(0xffffffff));
    REFUSED(STATUS_INVALID_PARAMETER, single(0), of_type(ResourceTypeMax));
}

TEST(hal_counters, unsupported, "extended configurations and event buffers [HC-31 HC-33]")
{
    REFUSED(STATUS_NOT_SUPPORTED, of_type(ResourceTypeExtendedCounterConfiguration));
    REFUSED(STATUS_NOT_SUPPORTED, of_type(ResourceTypeEventBuffer));
    REFUSED(STATUS_NOT_SUPPORTED, single(pmu_caps.counters ? nth_counter(0) : 0),
            of_type(ResourceTypeEventBuffer));
}

TEST(hal_counters, order_of_checks, "parameters, then support, then availability [HC-32]")
{
    SKIP_WITHOUT_PMU();
    unsigned ctr = nth_counter(0);
    HANDLE handle = NULL;
    CHECK_STATUS(take_one(0, ctr, &handle), STATUS_SUCCESS);
    REFUSED(STATUS_INSUFFICIENT_RESOURCES, single(ctr));
    REFUSED(STATUS_NOT_SUPPORTED, single(ctr), of_type(ResourceTypeExtendedCounterConfiguration));
    REFUSED(STATUS_NOT_SUPPORTED, of_type(ResourceTypeEventBuffer), single(ctr));
    REFUSED(STATUS_INVALID_PARAMETER, of_type(ResourceTypeEventBuffer), single(ctr), single(64));
    free_and_check(handle);
}

TEST(hal_counters, bad_handler, "a handler needs a counter, an address and no rival [HC-34 HC-35]")
{
    unsigned ctr = pmu_caps.counters ? nth_counter(0) : 0;
    REFUSED(STATUS_INVALID_PARAMETER, overflow(no_handler));
    REFUSED(STATUS_INVALID_PARAMETER, overflow(no_handler), tag(1));
    REFUSED(STATUS_INVALID_PARAMETER, single(ctr), overflow(NULL));
    REFUSED(STATUS_INVALID_PARAMETER, single(ctr), overflow(no_handler), overflow(no_handler));
}

TEST(hal_counters, tag, "a tag labels the owner; two are one too many")
{
    SKIP_WITHOUT_PMU();
    unsigned ctr = nth_counter(0);
    HANDLE handle = NULL;
    struct list list = { 3, { tag(0x6c616d41), single(ctr), overflow(no_handler) } };
    REFUSED(STATUS_INVALID_PARAMETER, single(ctr), tag(1), tag(1));
    CHECK_STATUS(take_on(0, &list, &handle), STATUS_SUCCESS);
    CHECK_EQ(hal_counter_owner_tag(ctr, 0), 0x6c616d41);
    free_and_check(handle);
    CHECK_EQ(hal_counter_owner_tag(ctr, 0), 0);
}

TEST(hal_counters, claim, "parts of the kernel own by name, and exclude exclusive owners [HC-45]")
{
    SKIP_WITHOUT_PMU();
    unsigned ctr = nth_counter(0);
    HANDLE claimed = NULL, handle = NO_HANDLE;
    CHECK_STATUS(hal_counters_claim("a test", 1, PMU_BIT(ctr), NULL, &claimed), STATUS_SUCCESS);
    CHECK(strcmp(hal_counter_owner_name(ctr, 0), "a test") == 0);
    CHECK_STATUS(take_on(0, NULL, &handle), STATUS_INSUFFICIENT_RESOURCES);
    CHECK(handle == NULL);
    CHECK_STATUS(hal_counters_claim("another", 1, PMU_BIT(ctr), NULL, &handle),
                 STATUS_INSUFFICIENT_RESOURCES);
    free_and_check(claimed);
    CHECK(hal_counter_owner_name(ctr, 0) == NULL);
    CHECK_STATUS(hal_counters_claim("no CPU", 0, PMU_BIT(ctr), NULL, &handle),
                 STATUS_INVALID_PARAMETER);
    CHECK_STATUS(hal_counters_claim("no counter", 1, 0, NULL, &handle), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(hal_counters_claim("absent", 1, PMU_BIT(63), NULL, &handle),
                 STATUS_INVALID_PARAMETER);
}

TEST(hal_counters, selectors, "a selector is known exactly if RDPMC takes it")
{
    SKIP_WITHOUT_PMU();
    uint64_t mask = 0;
    for (unsigned ctr = 0; ctr < 64; ctr++) {
        bool exists = pmu_caps.counters >> ctr & 1;
        uint64_t selector = ctr < PMU_FIXED ? ctr : 0x40000000 + ctr - PMU_FIXED;
        CHECK_EQ(hal_counter_selector(selector, &mask), exists);
        if (exists)
            CHECK_EQ(mask, pmu_mask(ctr));
    }
    CHECK(!hal_counter_selector(PMU_FIXED, &mask));
    CHECK(!hal_counter_selector(UINT64_C(1) << 32, &mask));
    CHECK(!hal_counter_selector(0x80000000, &mask));
}

/* --- A thousand random requests against the simplest model of ownership. --- */

struct held {
    HANDLE handle;
    uint64_t cpu_mask, counters;
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static bool model_allows(const struct held *held, unsigned n, uint64_t cpu_mask, uint64_t counters)
{
    for (unsigned i = 0; i < n; i++)
        if (held[i].handle && (held[i].cpu_mask & cpu_mask) && (held[i].counters & counters))
            return false;
    return true;
}

static void random_step(struct held *held, unsigned n, uint64_t *state)
{
    struct held *h = &held[next_random(state) % n];
    if (h->handle) {
        free_and_check(h->handle);
        h->handle = NULL;
        return;
    }
    uint64_t all_cpus = cpu_count == 64 ? ~UINT64_C(0) : PMU_BIT(cpu_count) - 1;
    h->cpu_mask = next_random(state) & all_cpus;
    h->counters = next_random(state) & next_random(state) & pmu_caps.counters;
    struct list list = { 0, { { 0 } } };
    for (uint64_t rest = h->counters; rest && list.Count < LIST_MAX; rest &= rest - 1)
        list.Descriptors[list.Count++] = single((ULONG)__builtin_ctzll(rest));
    if (!h->cpu_mask || !list.Count)
        return;
    bool exclusive = next_random(state) % 8 == 0;
    if (exclusive)
        h->counters = ~UINT64_C(0);
    bool allowed = model_allows(held, n, h->cpu_mask, h->counters);
    CHECK_STATUS(take_on(h->cpu_mask, exclusive ? NULL : &list, &h->handle),
                 allowed ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES);
}

TEST(hal_counters, random, "1,000 random requests and frees agree with a model [HC-17 HC-18 HC-20]")
{
    SKIP_WITHOUT_PMU();
    struct held held[6] = { { NULL, 0, 0 } };
    uint64_t state = 0x9e3779b97f4a7c15;
    for (unsigned i = 0; i < 1000; i++)
        random_step(held, 6, &state);
    for (unsigned i = 0; i < 6; i++)
        if (held[i].handle)
            free_and_check(held[i].handle);
    CHECK_EQ(hal_counters_available(~UINT64_C(0)), pmu_caps.counters);
}
