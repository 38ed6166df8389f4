/* SPDX-License-Identifier: MIT */
/* Enable, disable and query as a ring-3 program sees them. Without a driver's configuration;
 * reading is in tp_read.c, what counters add in tp_run.c, bad pointers in tp_input.c.
 *
 * Sources: Microsoft's pages of the four Win32 functions; statuses as in TP-33 to TP-53 of
 * tests/contract.md. */
#include "tests/ring3/helpers.h"

#define MARK ((HANDLE)0x1234567) /* what a failing call must leave alone */

/* What a child and its creator share; one test at a time. */
static struct {
    uint64_t go, ready; /* atomic */
    HANDLE profile, thread;
} shared;

TEST_USER(tp_enable, enable_disable,
          "enable, query and disable agree; a second disable is refused; no privilege is needed "
          "[TP-33 TP-41 TP-45 TP-48 TP-49]")
{
    BOOLEAN was;
    CHECK_OK(RtlAdjustPrivilege(SE_SYSTEM_PROFILE_PRIVILEGE, FALSE, FALSE, &was));
    ring3_query(GetCurrentThread(), FALSE);
    for (unsigned i = 0; i < 3; i++) {
        HANDLE profile = ring3_enable(THREAD_PROFILING_FLAG_DISPATCH, 0);
        CHECK(profile != NULL);
        ring3_query(GetCurrentThread(), TRUE);
        ring3_disable(profile);
        ring3_query(GetCurrentThread(), FALSE);
        CHECK_EQ(DisableThreadProfiling(profile), ERROR_WMI_ALREADY_DISABLED);
        CHECK_STATUS(RtlDisableThreadProfiling(profile), STATUS_WMI_ALREADY_DISABLED);
    }
}

TEST_USER(
    tp_enable, real_handle,
    "a real handle of the calling thread works as the pseudo-handle does, with one right [TP-34 "
    "TP-40 TP-43 TP-47]")
{
    HANDLE profile = NULL, set = ring3_handle(THREAD_SET_INFORMATION),
           query = ring3_handle(THREAD_QUERY_INFORMATION);
    BOOLEAN on;
    CHECK_EQ(EnableThreadProfiling(query, 0, 0, &profile), ERROR_ACCESS_DENIED);
    CHECK_EQ(QueryThreadProfiling(set, &on), ERROR_ACCESS_DENIED);
    CHECK_EQ(EnableThreadProfiling(set, 0, 0, &profile), ERROR_SUCCESS);
    CHECK(ring3_profiled());
    ring3_query(query, TRUE);
    ring3_disable(profile);
    ring3_query(query, FALSE);
    CHECK(CloseHandle(set) && CloseHandle(query));
}

/* Any enable that must fail: with both names, and nothing is written or enabled. */
static void refused_enable(HANDLE thread, ULONG flags, ULONG64 mask, NTSTATUS status)
{
    PVOID profile = MARK;
    bool before = ring3_profiled();
    CHECK_STATUS(RtlEnableThreadProfiling(thread, flags, mask, &profile), status);
    CHECK(profile == MARK);
    CHECK_EQ(EnableThreadProfiling(thread, flags, mask, &profile), RtlNtStatusToDosError(status));
    CHECK(profile == MARK);
    CHECK(ring3_profiled() == before);
}

TEST_USER(tp_enable, bad_arguments,
          "every flag but THREAD_PROFILING_FLAG_DISPATCH is refused, then every mask bit above 15 "
          "[TP-36 TP-37 TP-42]")
{
    for (unsigned bit = 1; bit < 32; bit++) {
        refused_enable(NtCurrentThread(), 1u << bit, 0, STATUS_INVALID_PARAMETER_2);
        refused_enable(NtCurrentThread(), 1u << bit | THREAD_PROFILING_FLAG_DISPATCH, 1,
                       STATUS_INVALID_PARAMETER_2);
    }
    refused_enable(NtCurrentThread(), THREAD_PROFILING_FLAG_HARDWARE_COUNTERS, 0x10000,
                   STATUS_INVALID_PARAMETER_2);
    refused_enable(NULL, THREAD_PROFILING_FLAG_HARDWARE_COUNTERS, 0, STATUS_INVALID_PARAMETER_2);
    for (unsigned bit = MAX_HW_COUNTERS; bit < 64; bit++)
        refused_enable(NtCurrentThread(), 0, UINT64_C(1) << bit, STATUS_INVALID_PARAMETER_3);
    refused_enable(NtCurrentThread(), 1, ~UINT64_C(0), STATUS_INVALID_PARAMETER_3);
    refused_enable(NULL, 0, 0x10000, STATUS_INVALID_PARAMETER_3);
    CHECK_EQ(RtlNtStatusToDosError(STATUS_INVALID_PARAMETER_3), ERROR_INVALID_PARAMETER);
}

TEST_USER(tp_enable, enabled_twice,
          "a second enable is refused and does not disturb the first [TP-38 TP-42]")
{
    PERFORMANCE_DATA data;
    HANDLE profile = ring3_enable(1, 1);
    refused_enable(NtCurrentThread(), 1, 1, STATUS_WMI_ALREADY_ENABLED);
    refused_enable(NtCurrentThread(), 0, 0xffff, STATUS_WMI_ALREADY_ENABLED);
    ring3_read(profile, 1, &data);
    ring3_disable(profile);
}

static HANDLE start_child(LPTHREAD_START_ROUTINE function)
{
    shared.go = shared.ready = 0;
    HANDLE child = ring3_start(function, NULL);
    ring3_wait(&shared.ready, 1);
    return child;
}

static void end_child(HANDLE child)
{
    __atomic_store_n(&shared.go, 1, __ATOMIC_RELEASE);
    CHECK_STATUS((NTSTATUS)ring3_end(child), STATUS_SUCCESS);
}

static DWORD profiled_for_a_while(PVOID unused)
{
    shared.profile = ring3_enable(1, 0);
    __atomic_store_n(&shared.ready, 1, __ATOMIC_RELEASE);
    ring3_wait(&shared.go, 2);
    ring3_disable(shared.profile);
    __atomic_store_n(&shared.ready, 2, __ATOMIC_RELEASE);
    ring3_wait(&shared.go, 1);
    return 0;
}

TEST_USER(tp_enable, query_another,
          "a query works for any thread, an enable does not; one that has ended is not profiled "
          "[TP-35 TP-42 TP-46 TP-53]")
{
    HANDLE child = start_child(profiled_for_a_while);
    ring3_query(child, TRUE);
    CHECK(!ring3_profiled());
    __atomic_store_n(&shared.go, 2, __ATOMIC_RELEASE);
    ring3_wait(&shared.ready, 2);
    refused_enable(child, 0, 0, STATUS_NOT_SUPPORTED);
    refused_enable(child, 1, 0xffff, STATUS_NOT_SUPPORTED);
    ring3_query(child, FALSE);
    end_child(child);
    child = start_child(profiled_for_a_while);
    CHECK_STATUS(NtTerminateThread(child, STATUS_SUCCESS), STATUS_SUCCESS);
    CHECK_EQ(WaitForSingleObject(child, INFINITE), WAIT_OBJECT_0);
    ring3_query(child, FALSE);
    CHECK(CloseHandle(child));
}

static DWORD disable_others(PVOID profile)
{
    CHECK_EQ(DisableThreadProfiling(profile), ERROR_WMI_ALREADY_DISABLED);
    HANDLE mine = ring3_enable(0, 0);
    CHECK(mine != profile);
    CHECK_EQ(DisableThreadProfiling(profile), ERROR_INVALID_PARAMETER);
    CHECK_STATUS(RtlDisableThreadProfiling(profile), STATUS_INVALID_PARAMETER);
    CHECK(ring3_profiled());
    ring3_disable(mine);
    return 0;
}

TEST_USER(tp_enable, disable_another,
          "another thread's profiling cannot be disabled, by an enabled thread or another [TP-50 "
          "TP-51]")
{
    PERFORMANCE_DATA data;
    HANDLE profile = ring3_enable(1, 0);
    CHECK_STATUS(ring3_run(disable_others, profile), STATUS_SUCCESS);
    CHECK(ring3_profiled());
    ring3_read(profile, 1, &data);
    CHECK(data.ContextSwitchCount > 0);
    ring3_disable(profile);
}

TEST_USER(tp_enable, starts_again,
          "after disable and enable, switches and cycles start from zero [TP-52]")
{
    PERFORMANCE_DATA first, second;
    HANDLE profile = ring3_enable(1, 0);
    for (unsigned i = 0; i < 20; i++)
        Sleep(1);
    ring3_read(profile, 1, &first);
    ring3_disable(profile);
    CHECK(first.ContextSwitchCount >= 20);
    uint64_t passed = __rdtsc();
    profile = ring3_enable(1, 0);
    Sleep(1); /* the kernel's own total is in the block from the first switch on */
    ring3_read(profile, 1, &second);
    CHECK_RANGE(second.CycleTime, 1, __rdtsc() - passed);
    CHECK(second.ContextSwitchCount < 10); /* a quantum may have ended */
    ring3_disable(profile);
}

#define BLOCKS 1024u /* ntdll has, for each process */

static DWORD end_enabled(PVOID unused)
{
    HANDLE profile;
    return EnableThreadProfiling(GetCurrentThread(), 1, 0, &profile);
}

TEST_USER(tp_enable, blocks_leak,
          "a thread that ends enabled leaks its block until the process ends; without a block "
          "enable is refused [TP-42 TP-53 slow]")
{
    PVOID profile = MARK;
    for (unsigned i = 0; i < BLOCKS; i++)
        CHECK_STATUS(ring3_run(end_enabled, NULL), STATUS_SUCCESS);
    CHECK_STATUS(RtlEnableThreadProfiling(NtCurrentThread(), 1, 0, &profile), STATUS_NO_MEMORY);
    CHECK_EQ(EnableThreadProfiling(GetCurrentThread(), 1, 0, &profile), ERROR_NOT_ENOUGH_MEMORY);
    CHECK(profile == MARK);
    CHECK(!ring3_profiled());
    /* The kernel does not care where a block comes from. */
    THREAD_PERFORMANCE_DATA own;
    CHECK_STATUS(ring3_set(0, 1, TRUE, &own), STATUS_SUCCESS);
    CHECK_STATUS(ring3_set(0, 0, FALSE, &own), STATUS_SUCCESS);
}

TEST_USER(tp_enable, block,
          "the block shows size, version and mask, and changes with each switch [TP-94 TP-95]")
{
    PVOID profile = NULL;
    CHECK_STATUS(RtlEnableThreadProfiling(NtCurrentThread(), 1, 0x8421, &profile), STATUS_SUCCESS);
    PTHREAD_PERFORMANCE_DATA block = profile;
    CHECK_EQ(block->Size, 0x1c0);
    CHECK_EQ(block->Version, THREAD_PERFORMANCE_DATA_VERSION);
    CHECK_EQ(block->HardwareCounters, 0x8421);
    CHECK_EQ(block->HwCountersCount, 0);
    for (unsigned i = 0; i < 10; i++) {
        uint64_t updates = __atomic_load_n(&block->UpdateCount, __ATOMIC_ACQUIRE);
        ULONG switches = __atomic_load_n(&block->ContextSwitches, __ATOMIC_RELAXED);
        Sleep(1);
        CHECK(__atomic_load_n(&block->UpdateCount, __ATOMIC_ACQUIRE) != updates);
        CHECK(__atomic_load_n(&block->ContextSwitches, __ATOMIC_RELAXED) > switches);
    }
    CHECK_STATUS(RtlDisableThreadProfiling(profile), STATUS_SUCCESS);
}
