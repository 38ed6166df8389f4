/* SPDX-License-Identifier: MIT */
/* Pairs of calls on one profile object: the second comes at each instruction of the first. */
#include "tests/harness/kernel.h"

#define BASE 0xffffa00000001000 /* kernel space where nothing is */

static HANDLE handle;
static ULONG bucket, decoy[PAGE_SIZE / sizeof(ULONG)];

static NTSTATUS close_it(void) { return NtClose(handle); }
static NTSTATUS start_it(void) { return NtStartProfile(handle); }
static NTSTATUS stop_it(void) { return NtStopProfile(handle); }

static bool begin_profile(void)
{
    bucket = 0;
    handle = profile_made(BASE, 4, 2, &bucket, sizeof bucket, ProfileTime, ~0ul);
    return handle != NULL;
}

static bool begin_started(void) { return begin_profile() && CHECK_OK(NtStartProfile(handle)); }

/* A sample, after what is free was given to others, who write into it what leads astray. */
static NTSTATUS sample_it(void)
{
    const ULONG **pages[4];
    for (unsigned i = 0; i < ARRAY_SIZE(pages); i++) {
        pages[i] = phys_alloc(1);
        for (unsigned n = 0; CHECK(pages[i] != NULL) && n < PAGE_SIZE / sizeof *pages[i]; n++)
            pages[i][n] = decoy;
    }
    sample_at(BASE, ProfileTime);
    for (unsigned i = 0; i < ARRAY_SIZE(pages); i++)
        if (pages[i])
            phys_free(pages[i], 1);
    return STATUS_SUCCESS;
}

static void end_profile(void)
{
    NTSTATUS status = NtClose(handle); /* unless a call has */
    CHECK(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE);
    for (unsigned i = 0; i < ARRAY_SIZE(decoy); i++)
        CHECK_EQ(decoy[i], 0);
    CHECK(bucket <= 1);
    CHECK_EQ(profiles_started(), 0);
    sample_at(BASE, ProfileTime);
    CHECK(bucket <= 1);
}

static const struct collision of_profiles[] = {
    COLLISION(NtStartProfile, begin_profile, start_it, start_it, end_profile,
              ONE_WINS(STATUS_PROFILING_NOT_STOPPED)),
    COLLISION(NtStartProfile, begin_profile, start_it, sample_it, end_profile, BOTH_WIN),
    COLLISION(NtStartProfile, begin_profile, start_it, close_it, end_profile,
              LOSES(STATUS_INVALID_HANDLE, 0)),
    COLLISION(NtStopProfile, begin_started, stop_it, stop_it, end_profile,
              ONE_WINS(STATUS_PROFILING_NOT_STARTED)),
    COLLISION(NtStopProfile, begin_started, stop_it, start_it, end_profile,
              LOSES(0, STATUS_PROFILING_NOT_STOPPED)),
    COLLISION(NtStopProfile, begin_started, stop_it, sample_it, end_profile, BOTH_WIN),
    COLLISION(NtStopProfile, begin_started, stop_it, close_it, end_profile,
              LOSES(STATUS_INVALID_HANDLE, 0)),
    COLLISION(NtClose, begin_started, close_it, stop_it, end_profile,
              LOSES(0, STATUS_INVALID_HANDLE)),
    COLLISION(NtClose, begin_started, close_it, sample_it, end_profile, BOTH_WIN),
};

/* --- An object that a counter samples. --- */

static bool counted;

static bool begin_counted(void)
{
    counted = false;
    bucket = 0;
    handle = profile_made(BASE, 4, 2, &bucket, sizeof bucket, SOURCE, 1);
    return handle != NULL;
}

/* As its counter would, were it at its end. */
static NTSTATUS sample_counted(void)
{
    for (unsigned ctr = 0; ctr < 64 && !counted; ctr++)
        counted = hal_counter_source(ctr, cpu_number()) == SOURCE;
    sample_at(BASE, SOURCE);
    return STATUS_SUCCESS;
}

static void end_counted(void)
{
    CHECK_OK(NtStopProfile(handle));
    CHECK_OK(NtClose(handle));
    CHECK(bucket >= counted);
}

static const struct collision of_counters[] = {
    COLLISION(hal_profile_start, begin_counted, start_it, sample_counted, end_counted, BOTH_WIN),
};

TEST(profile_colliders, counted, "what a counter samples from its first instruction on is counted")
{
    SKIP_WITHOUT_SOURCE();
    test_run_on(0);
    STEP_COLLIDE(of_counters);
}

TEST(profile_colliders, objects,
     "a profile object that is started, stopped, closed and sampled at once is started or stopped "
     "once, and no sample goes where its buffer is not [slow]")
{
    test_run_on(0);
    STEP_COLLIDE(of_profiles);
}
