/* SPDX-License-Identifier: MIT */
/* Waits of ring 3: statuses, several objects at once, signal and wait, what a wait costs in context
 * switches. */
#include "tests/ring3/helpers.h"

#define ROUNDS 20

static HANDLE handles[MAXIMUM_WAIT_OBJECTS + 1];
static const LARGE_INTEGER now;
#define NOW ((PLARGE_INTEGER)&now)

static HANDLE event(BOOL manual, BOOL state)
{
    HANDLE handle = CreateEvent(NULL, manual, state, NULL);
    CHECK(handle != NULL);
    return handle;
}

static void make_events(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        handles[i] = event(FALSE, FALSE);
}

static void close_all(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        CHECK(CloseHandle(handles[i]));
}

TEST_USER(synch_waits, signal_and_wait,
          "one object is signaled and another one waited for; what cannot be signaled is refused "
          "and nothing waited for")
{
    HANDLE semaphore = CreateSemaphoreA(NULL, 0, 1, NULL), mutex = CreateMutex(NULL, TRUE, NULL);
    make_events(2);
    CHECK_OK(ZwSignalAndWaitForSingleObject(handles[0], handles[0], FALSE, NOW));
    CHECK_STATUS(ZwSignalAndWaitForSingleObject(handles[0], handles[1], FALSE, NOW),
                 STATUS_TIMEOUT);
    CHECK_STATUS(ZwWaitForSingleObject(handles[0], FALSE, NOW), STATUS_SUCCESS);
    CHECK_STATUS(ZwSignalAndWaitForSingleObject(semaphore, semaphore, FALSE, NULL), STATUS_SUCCESS);
    CHECK_EQ(SignalObjectAndWait(semaphore, handles[1], 1, FALSE), WAIT_TIMEOUT);
    CHECK_STATUS(ZwSignalAndWaitForSingleObject(semaphore, handles[1], FALSE, NULL),
                 STATUS_SEMAPHORE_LIMIT_EXCEEDED);
    CHECK_STATUS(ZwSignalAndWaitForSingleObject(mutex, semaphore, FALSE, NULL), STATUS_SUCCESS);
    CHECK_STATUS(ZwSignalAndWaitForSingleObject(mutex, semaphore, FALSE, NULL),
                 STATUS_MUTANT_NOT_OWNED);
    CHECK_STATUS(ZwSignalAndWaitForSingleObject(NULL, NULL, FALSE, UNMAPPED),
                 STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(ZwSignalAndWaitForSingleObject(NULL, handles[1], FALSE, NOW),
                 STATUS_INVALID_HANDLE);
    CHECK_STATUS(ZwSignalAndWaitForSingleObject(NtCurrentThread(), NULL, FALSE, NOW),
                 STATUS_INVALID_HANDLE);
    CHECK_STATUS(ZwSignalAndWaitForSingleObject(NtCurrentThread(), handles[1], FALSE, NOW),
                 STATUS_OBJECT_TYPE_MISMATCH);
    HANDLE weak = ring3_limited(handles[0], EVENT_QUERY_STATE);
    CHECK_STATUS(ZwSignalAndWaitForSingleObject(weak, handles[1], FALSE, NOW),
                 STATUS_ACCESS_DENIED);
    CHECK_STATUS(ZwSignalAndWaitForSingleObject(handles[0], weak, FALSE, NOW),
                 STATUS_ACCESS_DENIED);
    CHECK_STATUS(ZwWaitForSingleObject(handles[0], FALSE, NOW),
                 STATUS_TIMEOUT); /* so it was not signaled */
    CHECK(CloseHandle(weak) && CloseHandle(semaphore) && CloseHandle(mutex));
    close_all(2);
}

/* --- What a wait costs. --- */

static HANDLE ready;
static DWORD late_ms; /* atomic */

static DWORD set_last(PVOID which)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        CHECK_EQ(WaitForSingleObject(ready, INFINITE), WAIT_OBJECT_0);
        Sleep(__atomic_load_n(&late_ms, __ATOMIC_ACQUIRE));
        CHECK(SetEvent(which));
    }
    return 0;
}

struct cost {
    DWORD switches;
    DWORD64 reasons;
};

static struct cost cost_of(HANDLE profile, bool all)
{
    PERFORMANCE_DATA before, after;
    ring3_data(&before);
    ring3_data(&after);
    for (unsigned i = 0; all && i + 1 < MAXIMUM_WAIT_OBJECTS; i++)
        SetEvent(handles[i]);
    SetEvent(ready);
    CHECK_EQ(ReadThreadProfilingData(profile, READ_THREAD_PROFILING_FLAG_DISPATCHING, &before),
             ERROR_SUCCESS);
    DWORD found = WaitForMultipleObjects(MAXIMUM_WAIT_OBJECTS, handles, all, INFINITE);
    CHECK_EQ(ReadThreadProfilingData(profile, READ_THREAD_PROFILING_FLAG_DISPATCHING, &after),
             ERROR_SUCCESS);
    CHECK_EQ(found, WAIT_OBJECT_0 + (all ? 0 : MAXIMUM_WAIT_OBJECTS - 1));
    return (struct cost){ after.ContextSwitchCount - before.ContextSwitchCount,
                          after.WaitReasonBitMap };
}

TEST_USER(synch_waits, one_switch,
          "a wait for 64 objects, any or all, is one context switch with one reason, UserRequest, "
          "however long it lasts")
{
    HANDLE profile;
    make_events(MAXIMUM_WAIT_OBJECTS);
    ready = event(FALSE, FALSE);
    profile = ring3_enable(THREAD_PROFILING_FLAG_DISPATCH, 0);
    for (unsigned all = 0; all < 2; all++) {
        struct cost least = { ~0u, 0 };
        DWORD late = 5; /* a wait that polls has looked several times by then */
        HANDLE other = ring3_start(set_last, handles[MAXIMUM_WAIT_OBJECTS - 1]);
        for (unsigned i = 0; i < ROUNDS; i++) {
            __atomic_store_n(&late_ms, late, __ATOMIC_RELEASE);
            struct cost cost = cost_of(profile, all);
            if (!(cost.reasons & 1ull << UserRequest)) /* set before this CPU's host let it wait */
                late = late < 500 ? 2 * late : late;
            else if (cost.switches < least.switches)
                least = cost;
        }
        CHECK_EQ(least.switches, 1); /* others were pre-empted too, between the readings */
        CHECK_EQ(least.reasons, 1ull << UserRequest);
        ring3_end(other);
    }
    ring3_disable(profile);
    CHECK(CloseHandle(ready));
    close_all(MAXIMUM_WAIT_OBJECTS);
}
