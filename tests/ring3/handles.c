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
           NT_SUCCESS(status = ZwDuplicateObject(NtCurrentProcess(), first, NtCurrentProcess(),
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

static HANDLE an_event, a_semaphore, a_mutant, a_timer, a_copy;
static const HANDLE me = NtCurrentThread(), us = NtCurrentProcess();
static LARGE_INTEGER zero;
static void *place;
static SIZE_T size;
static ULONG old;

TAKES(set, ZwSetEvent(h, NULL))
TAKES(reset, ZwResetEvent(h, NULL))
TAKES(release, ZwReleaseSemaphore(h, 1, NULL))
TAKES(release_mutant, ZwReleaseMutant(h, NULL))
TAKES(set_timer, ZwSetTimer(h, &zero, NULL, NULL, FALSE, 0, NULL))
TAKES(cancel_timer, ZwCancelTimer(h, NULL))
TAKES(suspend, ZwSuspendThread(h, NULL))
TAKES(resume, ZwResumeThread(h, NULL))
TAKES(terminate, ZwTerminateThread(h, 0))
TAKES(set_priority, ZwSetInformationThread(h, ThreadBasePriority, &zero, 4))
TAKES(allocate, ZwAllocateVirtualMemory(h, &place, 0, &size, MEM_RESERVE, PAGE_NOACCESS))
TAKES(free_memory, ZwFreeVirtualMemory(h, &place, &size, MEM_RELEASE))
TAKES(protect, ZwProtectVirtualMemory(h, &place, &size, PAGE_READONLY, &old))

static const struct taker {
    NTSTATUS (*call)(HANDLE h);
    const HANDLE *of;
    const char *name;
    bool no_right; /* is needed */
} takers[] = {
    { set, &an_event, "ZwSetEvent", false },
    { reset, &an_event, "ZwResetEvent", false },
    { ZwClearEvent, &an_event, "ZwClearEvent", false },
    { release, &a_semaphore, "ZwReleaseSemaphore", false },
    { release_mutant, &a_mutant, "ZwReleaseMutant", true },
    { set_timer, &a_timer, "ZwSetTimer", false },
    { cancel_timer, &a_timer, "ZwCancelTimer", false },
    { suspend, &me, "ZwSuspendThread", false },
    { resume, &me, "ZwResumeThread", false },
    { terminate, &me, "ZwTerminateThread", false },
    { set_priority, &me, "ZwSetInformationThread", false },
    { allocate, &us, "ZwAllocateVirtualMemory", false },
    { free_memory, &us, "ZwFreeVirtualMemory", false },
    { protect, &us, "ZwProtectVirtualMemory", false },
};

static void check_taker(const struct taker *t)
{
    HANDLE poor = ring3_limited(*t->of, READ_CONTROL);
    HANDLE other = t->of == &an_event ? a_mutant : an_event;
    bool ok = CHECK_STATUS(t->call((HANDLE)0x7777), STATUS_INVALID_HANDLE) &
              CHECK_STATUS(t->call((HANDLE)400), STATUS_INVALID_HANDLE) &
              CHECK_STATUS(t->call(other), STATUS_OBJECT_TYPE_MISMATCH);
    if (!t->no_right)
        ok &= CHECK_STATUS(t->call(poor), STATUS_ACCESS_DENIED);
    if (!ok)
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
          "each service refuses what is no handle, another object's, and one without the right; "
          "who yields to nobody is told")
{
    an_event = CreateEvent(NULL, TRUE, TRUE, NULL);
    a_semaphore = CreateSemaphore(NULL, 1, 2, NULL);
    a_mutant = CreateMutex(NULL, TRUE, NULL);
    a_timer = CreateWaitableTimerW(NULL, TRUE, NULL);
    REQUIRE(an_event && a_semaphore && a_mutant && a_timer);
    CHECK_STATUS(ZwDuplicateObject(an_event, an_event, us, &a_copy, 0, 0, 0), STATUS_NOT_SUPPORTED);
    CHECK_STATUS(ZwDuplicateObject(us, an_event, an_event, &a_copy, 0, 0, 0), STATUS_NOT_SUPPORTED);
    CHECK(!a_copy && alone());
    CHECK_STATUS(ZwReleaseSemaphore(a_semaphore, 2, NULL), STATUS_SEMAPHORE_LIMIT_EXCEEDED);
    CHECK_STATUS(ZwReleaseSemaphore(a_semaphore, 0, NULL), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(ZwReleaseSemaphore(a_semaphore, 1, NULL), STATUS_SUCCESS);
    for (const struct taker *t = takers; t < takers + ARRAYSIZE(takers); t++)
        check_taker(t);
    CHECK(CloseHandle(an_event) && CloseHandle(a_semaphore) && CloseHandle(a_mutant) &&
          CloseHandle(a_timer));
}
