/* SPDX-License-Identifier: MIT */
/* Waits of ring 3: statuses, several objects at once, what a wait costs in context
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

TEST_USER(synch_waits, refusals,
          "waits refuse counts, types, pointers, handles, rights, and a wait for all that names "
          "one object twice")
{
    make_events(4);
    CHECK_STATUS(ZwWaitForMultipleObjects(0, UNMAPPED, 7, FALSE, UNMAPPED),
                 STATUS_INVALID_PARAMETER_1);
    CHECK_STATUS(ZwWaitForMultipleObjects(65, handles, WaitAny, FALSE, NOW),
                 STATUS_INVALID_PARAMETER_1);
    CHECK_STATUS(ZwWaitForMultipleObjects(2, UNMAPPED, 2, FALSE, UNMAPPED),
                 STATUS_INVALID_PARAMETER_3);
    CHECK_STATUS(ZwWaitForMultipleObjects(2, handles, WaitAny, FALSE, UNMAPPED),
                 STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(ZwWaitForMultipleObjects(2, UNMAPPED, WaitAny, FALSE, NOW),
                 STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(ZwWaitForMultipleObjects(2, KERNEL_ADDRESS, WaitAny, FALSE, NOW),
                 STATUS_ACCESS_VIOLATION);
    HANDLE whole = handles[2], weak = ring3_limited(whole, EVENT_MODIFY_STATE);
    handles[2] = NULL;
    CHECK_STATUS(ZwWaitForMultipleObjects(3, handles, WaitAny, FALSE, NOW), STATUS_INVALID_HANDLE);
    CHECK_STATUS(ZwWaitForMultipleObjects(2, handles, WaitAny, FALSE, NOW), STATUS_TIMEOUT);
    handles[2] = weak;
    CHECK_STATUS(ZwWaitForMultipleObjects(4, handles, WaitAll, FALSE, NOW), STATUS_ACCESS_DENIED);
    CHECK_STATUS(ZwWaitForSingleObject(weak, FALSE, NOW), STATUS_ACCESS_DENIED);
    handles[2] = handles[0];
    CHECK_STATUS(ZwWaitForMultipleObjects(4, handles, WaitAll, FALSE, NOW),
                 STATUS_INVALID_PARAMETER_MIX);
    CHECK_STATUS(ZwWaitForMultipleObjects(4, handles, WaitAny, FALSE, NOW), STATUS_TIMEOUT);
    CHECK_EQ(WaitForMultipleObjects(4, handles, TRUE, 0), WAIT_FAILED);
    CHECK_EQ(GetLastError(), ERROR_INVALID_PARAMETER);
    CHECK_STATUS(ZwWaitForSingleObject(NULL, FALSE, UNMAPPED), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(ZwWaitForSingleObject(NULL, FALSE, NOW), STATUS_INVALID_HANDLE);
    CHECK_STATUS(ZwWaitForSingleObject(NtCurrentThread(), FALSE, NOW), STATUS_TIMEOUT);
    CHECK_STATUS(ZwWaitForSingleObject(NtCurrentProcess(), FALSE, NOW), STATUS_TIMEOUT);
    CHECK_STATUS(ZwDelayExecution(FALSE, UNMAPPED), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(ZwDelayExecution(FALSE, &(LARGE_INTEGER){ .QuadPart = -1 }), STATUS_SUCCESS);
    handles[2] = whole;
    CHECK(CloseHandle(weak));
    close_all(4);
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
    for (unsigned i = 0; all && i + 1 < MAXIMUM_WAIT_OBJECTS; i++)
        SetEvent(handles[i]);
    SetEvent(ready);
    ring3_read(profile, READ_THREAD_PROFILING_FLAG_DISPATCHING, &before);
    DWORD found = WaitForMultipleObjects(MAXIMUM_WAIT_OBJECTS, handles, all, INFINITE);
    ring3_read(profile, READ_THREAD_PROFILING_FLAG_DISPATCHING, &after);
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
