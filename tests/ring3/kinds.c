/* SPDX-License-Identifier: MIT */
/* Profiled threads that go from one CPU to another, which may be of another kind. */
#include "tests/ring3/helpers.h"

#define TRIES 100
#define ITERATIONS 1000

static NTSTATUS run_on(uint64_t cpu_mask)
{
    return NtSetInformationThread(NtCurrentThread(), ThreadAffinityMask, &cpu_mask,
                                  sizeof cpu_mask);
}

/* Element 0; false: the reading was repeated, and cost more. */
static bool read_once(HANDLE profile, uint64_t *value)
{
    /* Not zeroed: that would be a REP, which some processors count as many. */
    PERFORMANCE_DATA data;
    data.Size = sizeof data;
    data.Version = PERFORMANCE_DATA_VERSION;
    CHECK_EQ(ReadThreadProfilingData(profile, READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS, &data),
             ERROR_SUCCESS);
    *value = data.HwCounters[0].Value;
    return !data.RetryCount;
}

/* The instructions of a journey over so many CPUs, or of staying where it begins. */
static uint64_t journey(HANDLE profile, uint64_t cpus, bool moves)
{
    uint64_t before, after;
    for (unsigned tries = 0; tries < TRIES; tries++) {
        run_on(1);
        bool once = read_once(profile, &before);
        for (uint64_t cpu = 0; cpu < cpus; cpu++) {
            run_on(UINT64_C(1) << cpu * moves); /* no branch: as many instructions */
            Sleep(0);                           /* the move */
            ring3_work(ITERATIONS);
        }
        if (read_once(profile, &after) && once)
            return after - before;
    }
    CHECK(!"two readings that were not repeated");
    return 0;
}

void user_kinds_journey(uint64_t cpus)
{
    HANDLE profile = ring3_enable(0, 1);
    uint64_t staying = journey(profile, cpus, false);
    CHECK(staying >= 2 * ITERATIONS * cpus);
    for (unsigned i = 0; i < 5; i++)
        CHECK_EQ(journey(profile, cpus, true), staying);
    ring3_disable(profile);
}

void user_kinds_emptied(uint64_t cpu_mask)
{
    HANDLE profile = NULL;
    CHECK_STATUS(RtlEnableThreadProfiling(NtCurrentThread(), 0, 1, &profile), STATUS_SUCCESS);
    NTSTATUS status = run_on(cpu_mask);
    CHECK_STATUS(status, STATUS_DEVICE_CONFIGURATION_ERROR);
    __atomic_store_n(&user_state, 1, __ATOMIC_RELEASE);
    for (unsigned tries = 0; tries < TRIES && !NT_SUCCESS(status); tries++) {
        Sleep(1);
        status = run_on(cpu_mask);
    }
    CHECK_STATUS(status, STATUS_SUCCESS);
    CHECK_STATUS(RtlDisableThreadProfiling(profile), STATUS_SUCCESS);
}

/* High half: the status that enabling must have; low half: CPUs that it then may not go to. */
void user_kinds_refused(uint64_t wanted)
{
    HANDLE profile = NULL;
    NTSTATUS status = RtlEnableThreadProfiling(NtCurrentThread(), 0, 1, &profile);
    CHECK_STATUS(status, (NTSTATUS)(wanted >> 32));
    if (!NT_SUCCESS(status))
        return;
    CHECK_STATUS(run_on((uint32_t)wanted), STATUS_DEVICE_CONFIGURATION_ERROR);
    CHECK_STATUS(run_on(UINT64_C(1) << GetCurrentProcessorNumber()), STATUS_SUCCESS);
    CHECK_STATUS(RtlDisableThreadProfiling(profile), STATUS_SUCCESS);
    CHECK_STATUS(run_on((uint32_t)wanted), STATUS_SUCCESS);
}
