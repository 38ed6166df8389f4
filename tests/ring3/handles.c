/* SPDX-License-Identifier: MIT */
/* The table of handles: how many there are; what is no handle of a service. */
#include "tests/ring3/helpers.h"

#define LIMIT 4096 /* HANDLES_MAX of kernel/ke/object.h */

static DWORD WINAPI note_run(LPVOID run)
{
    *(volatile BOOL *)run = TRUE;
    return 0;
}

TEST_USER(handles, limit,
          "a process has 4096 handles, numbered 4 to 16384 in steps of 4; a further one is "
          "refused, and the number after the last is none; a thread without one does not run")
{
    volatile BOOL run = FALSE;
    HANDLE first = CreateEvent(NULL, TRUE, TRUE, NULL), made = NULL, last = first;
    LARGE_INTEGER now = { .QuadPart = 0 };
    NTSTATUS status = STATUS_SUCCESS;
    unsigned count = 0;
    REQUIRE(first != NULL);
    while (count <= LIMIT &&
           NT_SUCCESS(status = NtDuplicateObject(NtCurrentProcess(), first, NtCurrentProcess(),
                                                 &made, EVENT_ALL_ACCESS, 0, 0))) {
        CHECK(made > last);
        last = made;
        count++;
    }
    CHECK_STATUS(status, STATUS_INSUFFICIENT_RESOURCES);
    CHECK_EQ((uint64_t)first, 4);
    CHECK_EQ((uint64_t)last, LIMIT * 4);
    CHECK_EQ(count, LIMIT - 1);
    CHECK_STATUS(ZwWaitForSingleObject(last, FALSE, &now), STATUS_SUCCESS);
    for (uint64_t wrong = 1; wrong < 8; wrong++)
        CHECK_STATUS(ZwWaitForSingleObject((HANDLE)((uint64_t)last + wrong), FALSE, &now),
                     STATUS_INVALID_HANDLE);
    CHECK(CreateEvent(NULL, TRUE, TRUE, NULL) == NULL);
    CHECK_EQ(GetLastError(), ERROR_NO_SYSTEM_RESOURCES);
    CHECK(CreateThread(NULL, 0, note_run, (LPVOID)&run, 0, NULL) == NULL);
    CHECK_EQ(GetLastError(), ERROR_NO_SYSTEM_RESOURCES);
    Sleep(5);
    CHECK(!run);
    CHECK(CloseHandle((HANDLE)2400));
    CHECK_EQ((uint64_t)ring3_limited(first, EVENT_ALL_ACCESS), 2400);
}

#define TAKES(name, ...)                                                                           \
    static NTSTATUS name(HANDLE h) { return __VA_ARGS__; }

static HANDLE an_event, a_semaphore, a_mutant, a_timer, a_profile, a_copy;
static const HANDLE me = NtCurrentThread(), us = NtCurrentProcess();
static LARGE_INTEGER zero;
static void *place;
static SIZE_T size;
static ULONG old, counts[4];
static THREAD_PERFORMANCE_DATA block;
static MEMORY_BASIC_INFORMATION region;
static KERNEL_USER_TIMES times;
static CONTEXT context = { .ContextFlags = CONTEXT_INTEGER };
static THREAD_PROFILING_INFORMATION on = { 0, 1, TRUE, &block };

TAKES(set, ZwSetEvent(h, NULL))
TAKES(reset, ZwResetEvent(h, NULL))
TAKES(release, ZwReleaseSemaphore(h, 1, NULL))
TAKES(release_mutant, ZwReleaseMutant(h, NULL))
TAKES(set_timer, ZwSetTimer(h, &zero, NULL, NULL, FALSE, 0, NULL))
TAKES(cancel_timer, ZwCancelTimer(h, NULL))
TAKES(suspend, ZwSuspendThread(h, NULL))
TAKES(resume, ZwResumeThread(h, NULL))
TAKES(terminate, NtTerminateThread(h, 0))
TAKES(set_priority, NtSetInformationThread(h, ThreadBasePriority, &zero, 4))
TAKES(profile, NtSetInformationThread(h, ThreadCounterProfiling, &on, sizeof on))
TAKES(enable, RtlEnableThreadProfiling(h, 1, 1, &place))
TAKES(is_profiled, RtlQueryThreadProfiling(h, (PBOOLEAN)&place))
TAKES(create_profile, ZwCreateProfile((PHANDLE)&place, h, (PVOID)0x400000, 64, 4, counts,
                                      sizeof counts, ProfileTime, 1))
TAKES(allocate, NtAllocateVirtualMemory(h, &place, 0, &size, MEM_RESERVE, PAGE_NOACCESS))
TAKES(free_memory, NtFreeVirtualMemory(h, &place, &size, MEM_RELEASE))
TAKES(protect, NtProtectVirtualMemory(h, &place, &size, PAGE_READONLY, &old))
TAKES(query_memory,
      NtQueryVirtualMemory(h, &size, MemoryBasicInformation, &region, sizeof region, NULL))
TAKES(query_process, NtQueryInformationProcess(h, ProcessTimes, &times, sizeof times, NULL))
TAKES(query_thread, NtQueryInformationThread(h, ThreadTimes, &times, sizeof times, NULL))
TAKES(get_context, NtGetContextThread(h, &context))

static const struct taker {
    NTSTATUS (*call)(HANDLE h);
    const HANDLE *of;
    const char *name;
    ACCESS_MASK right; /* that it needs */
} takers[] = {
    { set, &an_event, "ZwSetEvent", EVENT_MODIFY_STATE },
    { reset, &an_event, "ZwResetEvent", EVENT_MODIFY_STATE },
    { release, &a_semaphore, "ZwReleaseSemaphore", SEMAPHORE_MODIFY_STATE },
    { release_mutant, &a_mutant, "ZwReleaseMutant", 0 },
    { set_timer, &a_timer, "ZwSetTimer", TIMER_MODIFY_STATE },
    { cancel_timer, &a_timer, "ZwCancelTimer", TIMER_MODIFY_STATE },
    { suspend, &me, "ZwSuspendThread", THREAD_SUSPEND_RESUME },
    { resume, &me, "ZwResumeThread", THREAD_SUSPEND_RESUME },
    { terminate, &me, "NtTerminateThread", THREAD_TERMINATE },
    { set_priority, &me, "NtSetInformationThread", THREAD_SET_INFORMATION },
    { profile, &me, "ThreadCounterProfiling", THREAD_SET_INFORMATION },
    { enable, &me, "RtlEnableThreadProfiling", THREAD_SET_INFORMATION },
    { is_profiled, &me, "RtlQueryThreadProfiling", THREAD_QUERY_INFORMATION },
    { create_profile, &us, "ZwCreateProfile", PROCESS_QUERY_INFORMATION },
    { ZwStartProfile, &a_profile, "ZwStartProfile", PROFILE_CONTROL },
    { ZwStopProfile, &a_profile, "ZwStopProfile", PROFILE_CONTROL },
    { allocate, &us, "NtAllocateVirtualMemory", PROCESS_VM_OPERATION },
    { free_memory, &us, "NtFreeVirtualMemory", PROCESS_VM_OPERATION },
    { protect, &us, "NtProtectVirtualMemory", PROCESS_VM_OPERATION },
    { query_memory, &us, "NtQueryVirtualMemory", PROCESS_QUERY_INFORMATION },
    { query_process, &us, "NtQueryInformationProcess", PROCESS_QUERY_INFORMATION },
    { query_thread, &me, "NtQueryInformationThread", THREAD_QUERY_INFORMATION },
    { get_context, &me, "NtGetContextThread", THREAD_GET_CONTEXT },
};

/* What a handle to such an object may have at most, or some of it. */
static ACCESS_MASK rights_of(const struct taker *t)
{
    return t->of == &me || t->of == &us ? THREAD_ALL_ACCESS : PROFILE_ALL_ACCESS | t->right;
}

/* One that has been closed, and what differs from one that is there in a low or a high bit. */
static bool refused_values(const struct taker *t)
{
    HANDLE there = ring3_limited(*t->of, rights_of(t)), closed = ring3_limited(there, 0);
    CHECK(CloseHandle(closed));
    bool ok = CHECK_STATUS(t->call(closed), STATUS_INVALID_HANDLE);
    for (unsigned bit = 0; bit < 64; bit += bit ? 31 : 1)
        ok &= CHECK_STATUS(t->call((HANDLE)((uint64_t)there ^ 1ull << bit)), STATUS_INVALID_HANDLE);
    CHECK(CloseHandle(there));
    return ok;
}

static void check_taker(const struct taker *t)
{
    HANDLE poor = ring3_limited(*t->of, rights_of(t) & ~t->right);
    HANDLE other = t->of == &an_event ? a_mutant : an_event;
    place = NULL;
    bool ok = refused_values(t) & CHECK_STATUS(t->call((HANDLE)0x7777), STATUS_INVALID_HANDLE) &
              CHECK_STATUS(t->call(other), STATUS_OBJECT_TYPE_MISMATCH);
    if (t->right)
        ok &= CHECK_STATUS(t->call(poor), STATUS_ACCESS_DENIED);
    if (!(ok & CHECK(!place && !ring3_profiled())))
        test_note("%s", t->name);
    CHECK(CloseHandle(poor));
}

/* A thread of the kernel may be ready now and then. */
static bool alone(void)
{
    unsigned tries = 0;
    while (tries < 100 && ZwYieldExecution() != STATUS_NO_YIELD_PERFORMED)
        tries++;
    return tries < 100;
}

TEST_USER(handles, refused,
          "each service refuses what is no handle, another object's, and one that lacks the right "
          "alone, and does nothing; who yields to nobody is told [TP-39 TP-40 TP-47 PO-24 PO-25 "
          "PO-26 PO-39 PO-40]")
{
    an_event = CreateEvent(NULL, TRUE, TRUE, NULL);
    a_semaphore = CreateSemaphore(NULL, 1, 2, NULL);
    a_mutant = CreateMutex(NULL, TRUE, NULL);
    a_timer = CreateWaitableTimerW(NULL, TRUE, NULL);
    REQUIRE(an_event && a_semaphore && a_mutant && a_timer);
    REQUIRE_OK(ZwCreateProfile(&a_profile, us, (PVOID)0x400000, 64, 4, counts, sizeof counts,
                               ProfileTime, 1));
    CHECK_STATUS(NtDuplicateObject(an_event, an_event, us, &a_copy, 0, 0, 0), STATUS_NOT_SUPPORTED);
    CHECK_STATUS(NtDuplicateObject(us, an_event, an_event, &a_copy, 0, 0, 0), STATUS_NOT_SUPPORTED);
    CHECK(!a_copy && alone());
    for (LONG before = 0, state = 1; before < 2; before++) { /* who asks is told the state before */
        CHECK_OK(before ? ZwSetEvent(an_event, &state) : ZwResetEvent(an_event, &state));
        CHECK_EQ(state, !before);
    }
    CHECK_STATUS(ZwReleaseSemaphore(a_semaphore, 2, NULL), STATUS_SEMAPHORE_LIMIT_EXCEEDED);
    CHECK_STATUS(ZwReleaseSemaphore(a_semaphore, 0, NULL), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(ZwReleaseSemaphore(a_semaphore, 1, NULL), STATUS_SUCCESS);
    for (const struct taker *t = takers; t < takers + ARRAYSIZE(takers); t++)
        check_taker(t);
    CHECK(CloseHandle(an_event) && CloseHandle(a_semaphore) && CloseHandle(a_mutant) &&
          CloseHandle(a_timer) && CloseHandle(a_profile));
}
