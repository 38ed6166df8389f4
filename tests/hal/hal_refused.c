/* SPDX-License-Identifier: MIT */
/* Counters, sources: refuse.h's table of what they claim. Beside each call there is an owner, whose
 * counter counts on and whose handler is called afterwards, too. */
#include "kernel/driver/nt_driver.h"
#include "tests/harness/kernel.h"
#include "tests/harness/records.h"
#include "tests/harness/refuse.h"

NTSTATUS driver_HalAllocateHardwareCounters(PGROUP_AFFINITY, ULONG, PPHYSICAL_COUNTER_RESOURCE_LIST,
                                            PHANDLE);
NTSTATUS driver_HalFreeHardwareCounters(HANDLE);

#define LOOPS 3000u
#define PERIOD 2000u

/* --- The first owner. --- */

static HANDLE first;
static unsigned first_ctr;
static uint32_t overflows; /* atomic */

static void count_overflow(ULONGLONG, HANDLE)
{
    __atomic_fetch_add(&overflows, 1, __ATOMIC_RELAXED);
}

static void own_first(void)
{
    first_ctr = nth_counter(0);
    struct list list = { 2, { single(first_ctr), overflow(count_overflow) } };
    test_run_on(0);
    CHECK_OK(take_on(BY_NULL, &list, &first));
}

static void free_owned(void)
{
    free_and_check(first);
    test_run_anywhere();
}

static void overflow_owned(void)
{
    const uint64_t mask = pmu_mask(pmu_here(), first_ctr), all = PMU_KERNEL | PMU_INTERRUPT;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_program(first_ctr, pmu_select(pmu_here(), PMU_INSTRUCTIONS, (uint32_t)all),
                -(uint64_t)PERIOD & mask);
    pmu_start(PMU_BIT(first_ctr));
    irql_lower(old);
    for (uint64_t n = 0; n < LOOPS || (pmu_read(first_ctr) > mask / 2 && n < 4 * LOOPS); n++)
        pause_rarely(n);
    old = irql_raise(PROFILE_LEVEL);
    pmu_clear(PMU_BIT(first_ctr));
    irql_lower(old);
}

static void use_owned(void)
{
    const uint32_t before = __atomic_load_n(&overflows, __ATOMIC_RELAXED);
    overflow_owned();
    CHECK_EQ(__atomic_load_n(&overflows, __ATOMIC_RELAXED), before + 1);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        CHECK(is_owned_by(first_ctr, cpu, "HalAllocateHardwareCounters"));
}

/* --- Allocations. --- */

static struct list list_with(unsigned ctr)
{
    return (struct list){ 2, { single(ctr), overflow(count_overflow) } };
}

static NTSTATUS allocate_second(void)
{
    struct list list = list_with(nth_counter(1));
    return take_on(BY_NULL, &list, &refuse_made);
}

static void free_made(void) { free_and_check(refuse_made); }

static NTSTATUS allocate_taken(void) { return take_one(BY_NULL, first_ctr, &refuse_made); }
static NTSTATUS allocate_all(void) { return take_on(BY_NULL, NULL, &refuse_made); }
static NTSTATUS allocate_absent(void) { return take_one(BY_NULL, 64, &refuse_made); }

static NTSTATUS allocate_unsupported(void)
{
    struct list list = { 1, { of_type(ResourceTypeExtendedCounterConfiguration) } };
    return take_on(BY_NULL, &list, &refuse_made);
}

static NTSTATUS allocate_buffer_of(unsigned ctr, ULONG entry_size)
{
    struct list list = { 2, { single(ctr), buffered(ignore_records, entry_size, 1) } };
    return take_on(BY_NULL, &list, &refuse_made);
}

static NTSTATUS allocate_buffer(void) { return allocate_buffer_of(nth_counter(1), 0); }
static NTSTATUS allocate_odd_buffer(void) { return allocate_buffer_of(nth_counter(1), 9); }
static NTSTATUS allocate_taken_buffer(void) { return allocate_buffer_of(first_ctr, 0); }

static NTSTATUS allocate_for_driver(const struct list *list)
{
    return driver_HalAllocateHardwareCounters(NULL, 0, (PPHYSICAL_COUNTER_RESOURCE_LIST)list,
                                              &refuse_made);
}

static NTSTATUS driver_allocate(void)
{
    const struct list list = list_with(nth_counter(1));
    return allocate_for_driver(&list);
}

static void driver_free(void) { CHECK_OK(driver_HalFreeHardwareCounters(refuse_made)); }

static NTSTATUS driver_allocate_taken(void)
{
    const struct list list = list_with(first_ctr);
    return allocate_for_driver(&list);
}

static NTSTATUS driver_allocate_absent(void)
{
    const struct list list = list_with(64);
    return allocate_for_driver(&list);
}

/* --- Sets, and sources that count for ring 3. --- */

static PMC_HANDLE set;

static NTSTATUS allocate_set_on(ULONG cpu, KPROFILE_SOURCE source, ULONG count)
{
    KPROFILE_SOURCE sources[MAX_HW_COUNTERS];
    PMC_HANDLE made = REFUSE_MARK;
    for (ULONG i = 0; i < ARRAY_SIZE(sources); i++)
        sources[i] = i + 1 < count ? SOURCE : source;
    NTSTATUS status = HalAllocatePmcCounterSet(cpu, sources, count, &made);
    CHECK_EQ(made != NULL, NT_SUCCESS(status));
    if (made)
        set = made;
    return status;
}

static NTSTATUS allocate_set_of(KPROFILE_SOURCE source, ULONG count)
{
    return allocate_set_on(0, source, count);
}

static NTSTATUS allocate_set(void) { return allocate_set_of(SOURCE, 1); }
static void free_set(void) { HalFreePmcCounterSet(set); }
static NTSTATUS set_of_time(void) { return allocate_set_of(ProfileTime, 2); }
static NTSTATUS set_beyond(void) { return allocate_set_of((KPROFILE_SOURCE)0xffffffff, 2); }
static NTSTATUS set_of_nothing(void) { return allocate_set_of(SOURCE, 0); }
static NTSTATUS set_nowhere(void) { return allocate_set_on(cpu_count, SOURCE, 1); }

static ULONG most_for_sets(void)
{
    uint64_t select;
    return bit_count(source_counting(pmu_of(0), SOURCE, &select));
}

/* With the first owner and this set there are too few. */
static NTSTATUS set_of_busy(void) { return allocate_set_of(SOURCE, most_for_sets()); }

static NTSTATUS count_of(KPROFILE_SOURCE source, ULONG count)
{
    ULONG sources[MAX_HW_COUNTERS], selectors[MAX_HW_COUNTERS];
    for (ULONG i = 0; i < count; i++)
        sources[i] = (ULONG)source;
    return hal_count_sources("refused", sources, count, selectors, &refuse_made);
}

static NTSTATUS count_one(void) { return count_of(SOURCE, 1); }
static NTSTATUS count_time(void) { return count_of(ProfileTime, 1); }
static NTSTATUS count_busy(void) { return count_of(SOURCE, most_for_sets()); }

/* --- Sources. --- */

static KPROFILE_SOURCE added;

static NTSTATUS add_named(const char *name) { return hal_source_add(name, 0xc0, 0, 0, 0, &added); }

static NTSTATUS add_new_source(void) { return add_named("RefusedSource"); }
static NTSTATUS add_unnamed(void) { return add_named(""); }
static NTSTATUS add_timer(void) { return add_named("Timer"); }
static void remove_source(void) { CHECK_OK(hal_source_remove(added)); }

#define FIRST .make = own_first, .unmake = free_owned, .use = use_owned
#define FULL .least = 1, .may = { STATUS_INSUFFICIENT_RESOURCES }
static const struct refusal_row counters[] = {
    { "HalAllocateHardwareCounters", allocate_second, free_made, FULL, .clears = true, FIRST,
      .others = { { allocate_taken, STATUS_INSUFFICIENT_RESOURCES },
                  { allocate_all, STATUS_INSUFFICIENT_RESOURCES },
                  { allocate_absent, STATUS_INVALID_PARAMETER },
                  { allocate_unsupported, STATUS_NOT_SUPPORTED } } },
    { "a driver's counters", driver_allocate, driver_free, .least = 2,
      .may = { STATUS_INSUFFICIENT_RESOURCES }, .clears = true, FIRST,
      .others = { { driver_allocate_taken, STATUS_INSUFFICIENT_RESOURCES },
                  { driver_allocate_absent, STATUS_INVALID_PARAMETER } } },
    { "HalAllocatePmcCounterSet", allocate_set, free_set, FULL, FIRST,
      .others = { { set_of_time, STATUS_NOT_SUPPORTED },
                  { set_beyond, STATUS_NOT_SUPPORTED },
                  { set_of_nothing, STATUS_INVALID_PARAMETER },
                  { set_nowhere, STATUS_INVALID_PARAMETER },
                  { set_of_busy, STATUS_DEVICE_BUSY } } },
    { "hal_count_sources", count_one, free_made, FULL, .clears = true, FIRST,
      .others = { { count_time, STATUS_NOT_SUPPORTED },
                  { count_busy, STATUS_INSUFFICIENT_RESOURCES } } },
    { "hal_source_add", add_new_source, remove_source, FULL, FIRST,
      .others = { { add_new_source, STATUS_INSUFFICIENT_RESOURCES },
                  { add_unnamed, STATUS_INVALID_PARAMETER },
                  { add_timer, STATUS_INSUFFICIENT_RESOURCES } } },
};

/* Its claims: the owner, and pages of each CPU. */
static const struct refusal_row buffer = {
    "an event buffer",
    allocate_buffer,
    free_made,
    .least = 2,
    .may = { STATUS_INSUFFICIENT_RESOURCES },
    .clears = true,
    FIRST,
    .others = { { allocate_taken_buffer, STATUS_INSUFFICIENT_RESOURCES },
                { allocate_odd_buffer, STATUS_INVALID_PARAMETER },
                { allocate_buffer, STATUS_INSUFFICIENT_RESOURCES } }
};

TEST(hal_refused, buffer,
     "an event buffer that is refused, for want of pages too, leaves the first owner's counter and "
     "handler, and no buffer [HC-54 HC-55]")
{
    SKIP_WITHOUT_RECORDS();
    refuse_each(&buffer, 1);
}

TEST(hal_refused, counters,
     "counters, sets and sources that are refused leave the first owner's counter and handler "
     "[HC-50 HC-51 ET-55]")
{
    SKIP_WITHOUT_SOURCE();
    SKIP_IF(bit_count(common_counters()) < 2, "this needs two counters");
    refuse_each(counters, ARRAY_SIZE(counters));
}
