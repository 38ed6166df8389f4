/* SPDX-License-Identifier: MIT */
/* Profile objects and thread profiling: refuse.h's table of what they claim. What was started
 * before counts and samples afterwards, too. */
#include "tests/harness/kernel.h"
#include "tests/harness/refuse.h"

#define ITERATIONS 16384u /* of 10 instructions */
#define INTERVAL 16384u   /* longer than a line is printed, with interrupts off */

/* --- Profile objects. --- */

static HANDLE first, second;
static ULONG counts, more_counts; /* atomic */

static void start_old(void)
{
    test_run_on(0);
    CHECK_OK(NtSetIntervalProfile(INTERVAL, SOURCE));
    first = profile_of_loop(&counts, SOURCE, 1);
    profile_start(first);
}

static void stop_old(void)
{
    profile_stop(first);
    CHECK_OK(NtClose(first));
    CHECK_OK(NtSetIntervalProfile(SOURCE_EVENTS_DEFAULT, SOURCE));
    test_run_anywhere();
}

/* It samples as often as before: what is around the loop, and interrupts that are late, are far
 * from a quarter. */
static void use_old(void)
{
    const ULONG wanted = ITERATIONS * 10 / INTERVAL;
    ULONG before = __atomic_load_n(&counts, __ATOMIC_RELAXED);
    profile_loop_alone(ITERATIONS);
    CHECK_RANGE(__atomic_load_n(&counts, __ATOMIC_RELAXED) - before, wanted * 3 / 4,
                wanted * 5 / 4);
}

static NTSTATUS create_of(ULONG size, KPROFILE_SOURCE source)
{
    return NtCreateProfile(&refuse_made, NULL, (PVOID)(uint64_t)profile_loop_start, 64, 6,
                           &more_counts, size, source, 1);
}

static NTSTATUS create_second(void) { return create_of(sizeof more_counts, SOURCE); }
static NTSTATUS create_without_buffer(void) { return create_of(0, SOURCE); }
static NTSTATUS create_small(void) { return create_of(3, SOURCE); }

static NTSTATUS create_unknown(void)
{
    return create_of(sizeof more_counts, (KPROFILE_SOURCE)0x7fff);
}

static void make_stopped(KPROFILE_SOURCE source)
{
    start_old();
    second = profile_of_loop(&more_counts, source, 1);
}

static void make_stopped_branches(void) { make_stopped(ProfileBranchInstructions); }
static void make_stopped_time(void) { make_stopped(ProfileTime); }

static void close_stopped(void)
{
    CHECK_OK(NtClose(second));
    stop_old();
}

static NTSTATUS start_second(void) { return NtStartProfile(second); }
static void stop_second(void) { profile_stop(second); }
static NTSTATUS start_first(void) { return NtStartProfile(first); }
static NTSTATUS start_none(void) { return NtStartProfile(NULL); }

#define OTHERS_OF_START                                                                            \
    .others = { { start_second, STATUS_PROFILING_NOT_STOPPED },                                    \
                { start_first, STATUS_PROFILING_NOT_STOPPED },                                     \
                { start_none, STATUS_INVALID_HANDLE } }
static const struct refusal_row profiles[] = {
    { "NtCreateProfile", create_second, refuse_close_made, .least = 2,
      .may = { STATUS_INSUFFICIENT_RESOURCES }, .make = start_old, .unmake = stop_old,
      .use = use_old,
      .others = { { create_without_buffer, STATUS_INVALID_PARAMETER_7 },
                  { create_small, STATUS_BUFFER_TOO_SMALL },
                  { create_unknown, STATUS_NOT_SUPPORTED } } },
    { "NtStartProfile by branches", start_second, stop_second, .least = 4,
      .may = { STATUS_PROFILING_AT_LIMIT, STATUS_INSUFFICIENT_RESOURCES, STATUS_DEVICE_BUSY },
      .make = make_stopped_branches, .unmake = close_stopped, .use = use_old, OTHERS_OF_START },
    { "NtStartProfile by time", start_second, stop_second, .least = 2,
      .may = { STATUS_INSUFFICIENT_RESOURCES, STATUS_PROFILING_AT_LIMIT },
      .make = make_stopped_time, .unmake = close_stopped, .use = use_old, OTHERS_OF_START },
};

TEST(profile_refused, objects,
     "whatever a profile object lacks, it is refused, keeps nothing, and the first one samples "
     "on [slow]")
{
    SKIP_WITHOUT_SOURCE();
    SKIP_IF(!hal_source_supported(ProfileBranchInstructions), "no counter counts branches");
    refuse_each(profiles, ARRAY_SIZE(profiles));
}

/* --- Two grants: one counter is free on some processors, another one on the rest. --- */

static HANDLE taken;

static void make_uneven(void)
{
    uint64_t select, able = source_counters(pmu_of(0), SOURCE, &select);
    CHECK_OK(hal_counters_claim("uneven", cpu_set_one(1), able & -able, NULL, &taken));
    CHECK_OK(NtCreateProfile(&second, NULL, (PVOID)(uint64_t)profile_loop_start, 64, 6,
                             &more_counts, sizeof more_counts, SOURCE, ~0ul));
}

static void end_uneven(void)
{
    CHECK_OK(NtClose(second));
    CHECK_OK(HalFreeHardwareCounters(taken));
}

static const struct refusal_row uneven[] = {
    { "NtStartProfile by two counters", start_second, stop_second, .least = 5,
      .may = { STATUS_PROFILING_AT_LIMIT, STATUS_INSUFFICIENT_RESOURCES, STATUS_DEVICE_BUSY },
      .make = make_uneven, .unmake = end_uneven },
};

TEST(profile_refused, uneven,
     "an object that gets a counter of some processors, and none of the others, keeps none")
{
    SKIP_WITH_ONE_CPU();
    SKIP_WITHOUT_SOURCE();
    uint64_t select;
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        if (bit_count(source_counters(pmu_of(cpu), SOURCE, &select)) < 2)
            SKIP("this needs two counters");
    refuse_each(uneven, ARRAY_SIZE(uneven));
}

/* --- The end of sampling, during which a sample comes. --- */

/* Takes the page that was freed last, which is zero then, and samples. */
static void sample_now(void)
{
    void *page = phys_alloc(1);
    sample_at((uint64_t)profile_loop_start, ProfileTime);
    if (CHECK(page != NULL))
        phys_free(page, 1);
}

static void start_and_stop(void *)
{
    profile_start(second);
    profile_stop(second);
}

TEST(profile_refused, stop,
     "a sample at any moment of a stop is counted or not, and finds the buffer until sampling has "
     "ended [PO-75]")
{
    const struct step_window window = { (const void *)(uint64_t)NtStopProfile, STEP_SWITCH,
                                        test_long() ? 0 : 3, NULL };
    test_run_on(0);
    second = profile_of_loop(&more_counts, ProfileTime, 1);
    struct thread *partner = step_partner(sample_now);
    if (CHECK(partner != NULL))
        CHECK(step_through(&window, start_and_stop, NULL) > 10);
    step_partner_end(partner);
    CHECK_OK(NtClose(second));
}

/* --- Thread profiling. --- */

static NTSTATUS enable_self(void) { return user_profile(true, 1); }
static NTSTATUS enable_all(void) { return user_profile(true, 0xffff); }
static NTSTATUS enable_wrongly(void) { return user_profile(true, 0x10000); }
static void disable_self(void) { CHECK_OK(user_profile(false, 0)); }

static void configure_counter(void)
{
    unsigned ctr;
    counting_start(PMU_INSTRUCTIONS, PMU_KERNEL | PMU_USER, &ctr);
}

static void configure_none(void) { counting_stop(); }

static uint64_t own_count(void)
{
    PERFORMANCE_DATA data = { .Size = sizeof data, .Version = PERFORMANCE_DATA_VERSION };
    CHECK_OK(NtReadThreadProfilingData((HANDLE)thread_current()->profiling->user_address,
                                       READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS, &data));
    return data.HwCounters[0].Value;
}

/* If it is profiled, its counter counts. */
static void use_counts(void)
{
    if (!thread_current()->profiling)
        return;
    uint64_t before = own_count();
    profile_loop_alone(ITERATIONS);
    CHECK(own_count() - before >= ITERATIONS * 10);
}

static NTSTATUS count_sources(ULONG source, HARDWARE_COUNTER_TYPE type)
{
    HARDWARE_COUNTER counter = { .Type = type, .Index = source };
    return counter_driver_set(&counter, 1);
}

static NTSTATUS count_for_ring3(void) { return count_sources(SOURCE, PMCCounter); }
static NTSTATUS count_bad_type(void) { return count_sources(SOURCE, MaxHardwareCounterType); }
static void count_no_more(void) { CHECK_OK(counter_driver_set(NULL, 0)); }

static const struct refusal_row threads[] = {
    { "thread profiling", enable_self, disable_self, .least = 2,
      .may = { STATUS_NO_MEMORY, STATUS_INSUFFICIENT_RESOURCES }, .in_process = true,
      .make = configure_counter, .unmake = configure_none, .use = use_counts,
      .others = { { enable_self, STATUS_WMI_ALREADY_ENABLED },
                  { enable_all, STATUS_WMI_ALREADY_ENABLED },
                  { enable_wrongly, STATUS_INVALID_PARAMETER } } },
    { "ring 3's counters", count_for_ring3, count_no_more, .least = 1,
      .may = { STATUS_INSUFFICIENT_RESOURCES }, .in_process = true,
      .others = { { count_bad_type, STATUS_INVALID_PARAMETER } } },
};

TEST(tp_refused, threads,
     "whatever a thread's profiling or a program's counters lack, they are refused and keep "
     "nothing; a thread that is profiled counts on")
{
    SKIP_WITHOUT_SOURCE();
    refuse_each(threads, ARRAY_SIZE(threads));
}
