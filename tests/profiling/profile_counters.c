/* SPDX-License-Identifier: MIT */
/* The counters of profile objects: shared, refused, freed; many CPUs.
 *
 * Source: PO-44 to PO-46, PO-71 and PO-72 of tests/contract.md. */
#include "tests/harness/lab.h"

#define PERIOD 5000u
#define LOOP_INSTRUCTIONS 10u /* profile_loop.asm */

static void close_handle(HANDLE handle) { CHECK_STATUS(NtClose(handle), STATUS_SUCCESS); }

TEST(profile_counters, busy,
     "without a free counter a start returns STATUS_DEVICE_BUSY, and the object stays stopped; one "
     "that is started hinders an exclusive owner [PO-44 HC-45]")
{
    HANDLE everything;
    ULONG counts = 0;
    SKIP_WITHOUT_SOURCE();
    HANDLE profile = profile_of_loop(&counts, SOURCE, ~0ul);
    REQUIRE_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &everything), STATUS_SUCCESS);
    CHECK_STATUS(NtStartProfile(profile), STATUS_DEVICE_BUSY);
    CHECK_STATUS(NtStopProfile(profile), STATUS_PROFILING_NOT_STARTED);
    CHECK_STATUS(HalFreeHardwareCounters(everything), STATUS_SUCCESS);
    profile_start(profile);
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &everything),
                 STATUS_INSUFFICIENT_RESOURCES);
    profile_stop(profile);
    close_handle(profile);
}

TEST(profile_counters, shared,
     "two objects of one source share one counter, and both count every sample [PO-45]")
{
    ULONG a = 0, b = 0;
    SKIP_WITHOUT_SOURCE();
    HANDLE first = profile_of_loop(&a, SOURCE, ~0ul), second = profile_of_loop(&b, SOURCE, ~0ul);
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
    HANDLE profile = profile_of_loop(&counts, SOURCE, ~0ul);
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
