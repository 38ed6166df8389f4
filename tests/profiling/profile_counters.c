/* SPDX-License-Identifier: MIT */
/* The counters of profile objects: shared, refused, freed; added sources; many CPUs.
 *
 * Source: PO-44 to PO-46, PO-71 and PO-72 of tests/contract.md. */
#include "kernel/services/services.h"
#include "tests/harness/counter_list.h"
#include "tests/harness/lab.h"
#include "tests/harness/printed.h"
#include "tests/harness/profile.h"

#define PERIOD 5000u
#define LOOP_INSTRUCTIONS 10u /* profile_loop.asm */
#define LOOP_BYTES 64u

static HANDLE of_loop(ULONG *counts, KPROFILE_SOURCE source)
{
    return profile_made((uint64_t)profile_loop_start, LOOP_BYTES, 6, counts, sizeof *counts, source,
                        ~0ul);
}

static void close_handle(HANDLE handle) { CHECK_STATUS(NtClose(handle), STATUS_SUCCESS); }

TEST(profile_counters, busy,
     "without a free counter a start returns STATUS_DEVICE_BUSY, and the object stays stopped; "
     "the owner can be named [PO-44 HC-45]")
{
    HANDLE everything;
    ULONG counts = 0;
    SKIP_WITHOUT_SOURCE();
    HANDLE profile = of_loop(&counts, SOURCE);
    REQUIRE_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &everything), STATUS_SUCCESS);
    CHECK_STATUS(NtStartProfile(profile), STATUS_DEVICE_BUSY);
    CHECK_STATUS(NtStopProfile(profile), STATUS_PROFILING_NOT_STARTED);
    CHECK_EQ(profiles_started(), 0);
    CHECK(is_owned_by(nth_counter(0), 0, "HalAllocateHardwareCounters"));
    CHECK_STATUS(HalFreeHardwareCounters(everything), STATUS_SUCCESS);
    profile_start(profile);
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &everything),
                 STATUS_INSUFFICIENT_RESOURCES);
    profile_stop(profile);
    CHECK_EQ(hal_counters_owned(), 0);
    close_handle(profile);
}

TEST(profile_counters, time_needs_none,
     "while only ProfileTime is sampled all counters are free [HC-46]")
{
    HANDLE everything;
    ULONG counts = 0;
    SKIP_WITHOUT_PMU();
    HANDLE profile = of_loop(&counts, ProfileTime);
    profile_start(profile);
    CHECK_EQ(hal_counters_owned(), 0);
    REQUIRE_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &everything), STATUS_SUCCESS);
    for (unsigned i = 0; i < 100000 && __atomic_load_n(&counts, __ATOMIC_RELAXED) < 3; i++)
        profile_loop(1000);
    CHECK(counts >= 3); /* and it does sample */
    CHECK_STATUS(HalFreeHardwareCounters(everything), STATUS_SUCCESS);
    profile_stop(profile);
    close_handle(profile);
}

TEST(profile_counters, shared,
     "two objects of one source share one counter, and both count every sample [PO-45]")
{
    ULONG a = 0, b = 0;
    SKIP_WITHOUT_SOURCE();
    HANDLE first = of_loop(&a, SOURCE), second = of_loop(&b, SOURCE);
    hal_source_set_interval(SOURCE, PERIOD);
    profile_start(first);
    profile_start(second);
    CHECK_EQ(hal_counters_owned(), 1);
    profile_loop_alone(20 * PERIOD / LOOP_INSTRUCTIONS);
    profile_stop(first);
    CHECK_EQ(hal_counters_owned(), 1);
    ULONG at_stop = a;
    CHECK_RANGE(a, 19, 40);
    CHECK_EQ(b, a);
    profile_loop_alone(20 * PERIOD / LOOP_INSTRUCTIONS);
    CHECK_EQ(a, at_stop); /* PO-46, with samples still coming */
    CHECK_RANGE(b, at_stop + 19, at_stop + 40);
    profile_stop(second);
    CHECK_EQ(hal_counters_owned(), 0);
    at_stop = b;
    profile_loop_alone(20 * PERIOD / LOOP_INSTRUCTIONS);
    CHECK_EQ(b, at_stop);
    hal_source_set_interval(SOURCE, 65536);
    close_handle(first);
    close_handle(second);
}

TEST(profile_counters, rate,
     "half the interval gives twice the samples, from the next interrupt on, on every processor "
     "[PO-71 PO-72 slow]")
{
    ULONG counts = 0;
    SKIP_WITHOUT_SOURCE();
    HANDLE profile = of_loop(&counts, SOURCE);
    hal_source_set_interval(SOURCE, 2 * PERIOD);
    profile_start(profile);
    for (unsigned cpu = 0; test_run_on_each(cpu); cpu++) {
        ULONG before = counts;
        profile_loop_alone(40 * PERIOD / LOOP_INSTRUCTIONS);
        CHECK_RANGE(counts - before, 19, 21 + 2); /* interrupts and ticks are instructions too */
        CHECK_STATUS(NtSetIntervalProfile(PERIOD, SOURCE), STATUS_SUCCESS);
        before = counts;
        profile_loop_alone(40 * PERIOD / LOOP_INSTRUCTIONS);
        CHECK_RANGE(counts - before, 38, 41 + 4); /* the first one still has the old interval */
        CHECK_STATUS(NtSetIntervalProfile(2 * PERIOD, SOURCE), STATUS_SUCCESS);
    }
    hal_source_set_interval(SOURCE, 65536);
    close_handle(profile);
}

TEST(profile_counters, ownership, "the HAL reports the number of counters and the owner of each")
{
    struct {
        ULONG processor, count;
        ETW_PMC_COUNTER_OWNER owners[64];
    } status = { 0 };
    BOOLEAN timer_only = 0xa5;
    ULONG count = 0, returned = 0, sources = 0;
    CHECK_OK(HalQuerySystemInformation(HalQueryProfileNumberOfCounters, 4, &count, NULL));
    CHECK_EQ(count, hal_counter_count());
    CHECK_STATUS(HalQuerySystemInformation(HalQueryProfileNumberOfCounters, 3, &count, NULL),
                 STATUS_INFO_LENGTH_MISMATCH);
    CHECK_OK(HalQuerySystemInformation(HalQueryProfileIsTimerBasedProfiling, 1, &timer_only, NULL));
    CHECK_EQ(timer_only, !count);
    SKIP_WITHOUT_SOURCE();
    HANDLE profile = of_loop(&count, SOURCE);
    profile_start(profile);
    CHECK_STATUS(HalQuerySystemInformation(HalQueryProfileCounterOwnership, 8, &status, &returned),
                 STATUS_INFO_LENGTH_MISMATCH);
    CHECK_EQ(returned, 8 + 12 * bit_count(pmu_of(0)->counters));
    CHECK_OK(
        HalQuerySystemInformation(HalQueryProfileCounterOwnership, sizeof status, &status, NULL));
    CHECK_EQ(status.count, bit_count(pmu_of(0)->counters));
    for (ULONG i = 0; i < status.count; i++) {
        bool ours = status.owners[i].OwnerType == EtwPmcOwnerTaggedWithSource;
        sources += ours;
        CHECK_EQ(status.owners[i].ProfileSource, ours ? SOURCE : 0);
        CHECK(ours || status.owners[i].OwnerType == EtwPmcOwnerFree);
    }
    CHECK_EQ(sources, 1);
    status.processor = cpu_count;
    CHECK_STATUS(HalQuerySystemInformation(HalQueryProfileCounterOwnership, sizeof status, &status,
                                           NULL),
                 STATUS_INVALID_PARAMETER);
    close_handle(profile);
}

static uint64_t rewritten_on(ULONG cpu)
{
    HAL_PROFILE_CORRUPTION_STATUS status = { .ProcessorNumber = cpu };
    CHECK_OK(
        HalQuerySystemInformation(HalQueryProfileCorruptionStatus, sizeof status, &status, NULL));
    return status.Counters;
}

/* What another driver would do that does not ask. */
static void rewrite_here(void *value)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    wrmsr(pmu_select_msr(pmu_here(), bit_lowest(pmu_running())), *(const uint64_t *)value);
    irql_lower(old);
}

static void stop_reported(HANDLE profile, uint64_t changed)
{
    char line[100];
    print_to(line, sizeof line, "# counters: profile: somebody else has changed its counters %lx\n",
             changed);
    struct printed before = printed_now();
    profile_stop(profile);
    check_printed(before, line);
}

TEST(profile_counters, corruption,
     "a counter whose select or enable bit somebody else has changed is reported, on its "
     "processor only [ET-58]")
{
    HAL_PROFILE_CORRUPTION_STATUS status = { .ProcessorNumber = cpu_count };
    ULONG counts = 0;
    SKIP_WITHOUT_SOURCE();
    CHECK_STATUS(HalQuerySystemInformation(HalQueryProfileCorruptionStatus, sizeof status, &status,
                                           NULL),
                 STATUS_INVALID_PARAMETER);
    CHECK_STATUS(HalQuerySystemInformation(HalQueryProfileCorruptionStatus, sizeof status - 1,
                                           &status, NULL),
                 STATUS_INFO_LENGTH_MISMATCH);
    HANDLE profile = of_loop(&counts, SOURCE);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        uint64_t changes[] = { 0, pmu_raw_select(0xff, 0, PMU_KERNEL | PMU_USER | PMU_INTERRUPT) |
                                      PMU_ENABLE };
        for (unsigned i = 0; i < 2; i++) {
            profile_start(profile);
            CHECK_EQ(rewritten_on(cpu), 0);
            smp_call(cpu_set_one(cpu), rewrite_here, &changes[i]);
            CHECK(rewritten_on(cpu) != 0);
            CHECK_EQ(rewritten_on(cpu) & ~pmu_of(cpu)->counters, 0);
            CHECK_EQ(rewritten_on((cpu + 1) % cpu_count) != 0, cpu_count == 1);
            stop_reported(profile, rewritten_on(cpu));
            CHECK_EQ(rewritten_on(cpu), 0);
        }
    }
    close_handle(profile);
}
