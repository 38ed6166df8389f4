/* SPDX-License-Identifier: MIT */
/* Thread profiling with handles that are closed, of the wrong kind, without the access, or random.
 * Statuses as in TP-39, TP-40 and TP-47 of tests/contract.md. Another process's handles:
 * user_foreign_handle. */
#include "tests/ring3/helpers.h"

#define CLASS ThreadCounterProfiling
#define MARK ((HANDLE)0x1234567)

/* Every call with this handle gets the status, and nothing is enabled, disabled or written. */
static void refused_handle(HANDLE handle, NTSTATUS set, NTSTATUS query)
{
    THREAD_PERFORMANCE_DATA block;
    THREAD_PROFILING_INFORMATION on = { 0, 1, TRUE, &block }, off = { 0, 0, FALSE, &block };
    HANDLE profile = MARK;
    BOOLEAN enabled = FILL;
    ULONG length = 1234;
    CHECK_STATUS(ZwSetInformationThread(handle, CLASS, &on, sizeof on), set);
    CHECK_STATUS(ZwSetInformationThread(handle, CLASS, &off, sizeof off), set);
    CHECK_STATUS(RtlEnableThreadProfiling(handle, 1, 1, &profile), set);
    CHECK_EQ(EnableThreadProfiling(handle, 1, 1, &profile), RtlNtStatusToDosError(set));
    CHECK(profile == MARK);
    CHECK_STATUS(ZwQueryInformationThread(handle, CLASS, &enabled, 1, &length), query);
    CHECK_STATUS(RtlQueryThreadProfiling(handle, &enabled), query);
    CHECK_EQ(QueryThreadProfiling(handle, &enabled), RtlNtStatusToDosError(query));
    CHECK_EQ(enabled, FILL);
    CHECK_EQ(length, 1234);
    CHECK(!ring3_profiled());
}

static void invalid(HANDLE handle)
{
    refused_handle(handle, STATUS_INVALID_HANDLE, STATUS_INVALID_HANDLE);
}

TEST_USER(tp_handles, closed,
          "NULL, closed handles and values between handles are refused [TP-39 TP-42]")
{
    HANDLE me = ring3_handle(THREAD_ALL_ACCESS);
    uint64_t value = (uint64_t)me;
    invalid(NULL);
    for (uint64_t i = 1; i < 4; i++)
        invalid((HANDLE)(value + i));
    invalid((HANDLE)(value | UINT64_C(1) << 32));
    invalid((HANDLE)(value | UINT64_C(1) << 63));
    CHECK(CloseHandle(me));
    invalid(me);
    CHECK_EQ(RtlNtStatusToDosError(STATUS_INVALID_HANDLE), ERROR_INVALID_HANDLE);
    for (int64_t i = -64; i < 0; i++)
        if (i != -1 && i != -2)
            invalid((HANDLE)i);
}

TEST_USER(tp_handles, wrong_type, "the handle of a process is refused")
{
    refused_handle(NtCurrentProcess(), STATUS_OBJECT_TYPE_MISMATCH, STATUS_OBJECT_TYPE_MISMATCH);
    CHECK_EQ(RtlNtStatusToDosError(STATUS_OBJECT_TYPE_MISMATCH), ERROR_INVALID_HANDLE);
}

TEST_USER(tp_handles, access,
          "enable needs THREAD_SET_INFORMATION and query THREAD_QUERY_INFORMATION; no other right "
          "helps [TP-40 TP-47]")
{
    HANDLE none = ring3_handle(0);
    HANDLE others = ring3_handle(THREAD_ALL_ACCESS &
                                 ~(ACCESS_MASK)(THREAD_SET_INFORMATION | THREAD_QUERY_INFORMATION));
    HANDLE set = ring3_handle(THREAD_SET_INFORMATION),
           query = ring3_handle(THREAD_QUERY_INFORMATION);
    HANDLE profile = MARK;
    BOOLEAN enabled = FILL;
    refused_handle(none, STATUS_ACCESS_DENIED, STATUS_ACCESS_DENIED);
    refused_handle(others, STATUS_ACCESS_DENIED, STATUS_ACCESS_DENIED);
    CHECK_EQ(EnableThreadProfiling(query, 0, 0, &profile), ERROR_ACCESS_DENIED);
    CHECK(profile == MARK);
    CHECK_EQ(QueryThreadProfiling(set, &enabled), ERROR_ACCESS_DENIED);
    CHECK_EQ(enabled, FILL);
    CHECK_EQ(EnableThreadProfiling(set, 0, 0, &profile), ERROR_SUCCESS);
    ring3_query(query, TRUE);
    ring3_disable(profile);
    CHECK(CloseHandle(none) && CloseHandle(others) && CloseHandle(set) && CloseHandle(query));
}

void user_own_handle(uint64_t n)
{
    HANDLE handle = NULL;
    while (n--)
        handle = ring3_handle(THREAD_ALL_ACCESS);
    __atomic_store_n(&user_handle, (uint64_t)handle, __ATOMIC_RELEASE);
    for (;;)
        Sleep(1);
}

void user_foreign_handle(uint64_t handle) { invalid((HANDLE)handle); }
