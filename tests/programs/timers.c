/* SPDX-License-Identifier: MIT */
/* Waitable timers, with periods, dates, calls and names: each status of each service. */
#include "nt.h"
#include <stdint.h>

#define MS 10000ll /* 100 ns */

NTSTATUS NTAPI NtCreateTimer(PHANDLE, ACCESS_MASK, POBJECT_ATTRIBUTES, ULONG);
NTSTATUS NTAPI NtOpenTimer(PHANDLE, ACCESS_MASK, POBJECT_ATTRIBUTES);
NTSTATUS NTAPI NtSetTimer(HANDLE, const LARGE_INTEGER *, PTIMERAPCROUTINE, PVOID, BOOLEAN, LONG,
                          PBOOLEAN);
NTSTATUS NTAPI NtCancelTimer(HANDLE, PBOOLEAN);
NTSTATUS NTAPI NtQueryTimer(HANDLE, ULONG, PVOID, ULONG, PULONG);
struct information {
    LARGE_INTEGER left;
    BOOLEAN signaled;
};

static LARGE_INTEGER after(LONGLONG ms) { return (LARGE_INTEGER){ .QuadPart = -MS * ms }; }

static LONGLONG now(void)
{
    LARGE_INTEGER t;
    QueryPerformanceCounter(&t); /* 10 MHz */
    return t.QuadPart;
}

static LONGLONG date(void)
{
    FILETIME t;
    GetSystemTimePreciseAsFileTime(&t);
    return (LONGLONG)t.dwHighDateTime << 32 | t.dwLowDateTime;
}

static HANDLE timer(BOOL manual)
{
    HANDLE t = CreateWaitableTimerW(NULL, manual, NULL);
    IS(t != NULL, TRUE);
    return t;
}

static BOOL set(HANDLE t, LONGLONG ms, LONG period)
{
    LARGE_INTEGER due = after(ms);
    return SetWaitableTimer(t, &due, period, NULL, NULL, FALSE);
}

/* --- Waits. --- */

static void check_waits(void)
{
    HANDLE one = timer(FALSE), all = timer(TRUE), both[2] = { one, all };
    LONGLONG before = now();
    IS(WaitForSingleObject(one, 0), WAIT_TIMEOUT); /* one that was never set */
    IS(set(one, 20, 0), TRUE);
    IS(set(all, 5, 0), TRUE);
    IS(WaitForSingleObject(one, 0), WAIT_TIMEOUT);
    IS(WaitForMultipleObjects(2, both, FALSE, INFINITE), WAIT_OBJECT_0 + 1);
    IS(now() - before >= 5 * MS, TRUE);
    IS(WaitForMultipleObjects(2, both, TRUE, INFINITE), WAIT_OBJECT_0);
    IS(now() - before >= 20 * MS, TRUE);
    IS(WaitForSingleObject(one, 0), WAIT_TIMEOUT); /* one wait takes it */
    IS(WaitForSingleObject(all, 0), WAIT_OBJECT_0);
    IS(WaitForSingleObject(all, 0), WAIT_OBJECT_0);
    IS(set(all, 3600000, 0), TRUE); /* not signaled any more */
    IS(WaitForSingleObject(all, 0), WAIT_TIMEOUT);
    IS(set(all, 0, 0), TRUE); /* at once */
    IS(WaitForSingleObject(all, 0), WAIT_OBJECT_0);
    IS(CancelWaitableTimer(all), TRUE); /* which leaves the state alone */
    IS(WaitForSingleObject(all, 0), WAIT_OBJECT_0);
    IS(set(one, 10, 0), TRUE);
    IS(CancelWaitableTimer(one), TRUE);
    IS(WaitForSingleObject(one, 40), WAIT_TIMEOUT);
    CloseHandle(one);
    CloseHandle(all);
}

static void check_dates(void)
{
    HANDLE t = timer(FALSE);
    LARGE_INTEGER due = { .QuadPart = date() + 10 * MS };
    IS(SetWaitableTimer(t, &due, 0, NULL, NULL, FALSE), TRUE);
    IS(WaitForSingleObject(t, INFINITE), WAIT_OBJECT_0);
    IS(date() >= due.QuadPart, TRUE);
    due.QuadPart = 125911584000000000; /* 2000-01-01 */
    IS(SetWaitableTimer(t, &due, 0, NULL, NULL, FALSE), TRUE);
    IS(WaitForSingleObject(t, 0), WAIT_OBJECT_0);
    due.QuadPart = date() + 3600000 * MS;
    IS(SetWaitableTimer(t, &due, 0, NULL, NULL, FALSE), TRUE);
    IS(WaitForSingleObject(t, 10), WAIT_TIMEOUT);
    due.QuadPart = INT64_MAX;
    IS(SetWaitableTimer(t, &due, 0, NULL, NULL, FALSE), TRUE);
    due.QuadPart = INT64_MIN;
    IS(SetWaitableTimer(t, &due, 0, NULL, NULL, FALSE), TRUE);
    IS(WaitForSingleObject(t, 3), WAIT_TIMEOUT);
    CloseHandle(t);
}

static void check_periods(void)
{
    HANDLE t = timer(FALSE);
    LONGLONG before = now();
    IS(set(t, 6, 4), TRUE);
    for (int i = 0; i < 5; i++)
        IS(WaitForSingleObject(t, INFINITE), WAIT_OBJECT_0);
    IS(now() - before >= 22 * MS, TRUE);
    Sleep(40); /* ten of them are one */
    IS(WaitForSingleObject(t, 0), WAIT_OBJECT_0);
    IS(set(t, 1, 0), TRUE); /* and now once only */
    IS(WaitForSingleObject(t, INFINITE), WAIT_OBJECT_0);
    IS(WaitForSingleObject(t, 20), WAIT_TIMEOUT);
    CloseHandle(t);
}

/* --- Calls. --- */

static LONG calls;
static LPVOID argument;
static LONGLONG called_at;
static DWORD caller;

static VOID CALLBACK note(LPVOID context, DWORD low, DWORD high)
{
    calls++;
    argument = context;
    called_at = (LONGLONG)high << 32 | low;
    caller = GetCurrentThreadId();
}

static VOID CALLBACK note_plain(ULONG_PTR context) { calls = calls * 10 + (LONG)context; }

static VOID CALLBACK note_timed(LPVOID context, DWORD low, DWORD high)
{
    calls = calls * 10 + (LONG)(LONG_PTR)context;
}

static void check_calls(void)
{
    HANDLE t = timer(FALSE), u = timer(FALSE);
    LARGE_INTEGER soon = after(5), at_once = after(0);
    LONGLONG before = date();
    IS(SetWaitableTimer(t, &soon, 0, note, &calls, FALSE), TRUE);
    IS(SleepEx(20, FALSE), 0);
    IS(calls, 0);
    IS(SleepEx(INFINITE, TRUE), WAIT_IO_COMPLETION);
    IS(calls, 1);
    IS(argument == (LPVOID)&calls, TRUE);
    IS(caller, GetCurrentThreadId());
    IS(called_at >= before + 5 * MS && called_at <= date(), TRUE);
    IS(WaitForSingleObject(t, 0), WAIT_OBJECT_0);
    IS(SetWaitableTimer(t, &soon, 2, note, NULL, FALSE), TRUE);
    Sleep(30); /* many times, one call */
    IS(SleepEx(0, TRUE), WAIT_IO_COMPLETION);
    IS(calls, 2);
    IS(SleepEx(INFINITE, TRUE), WAIT_IO_COMPLETION);
    IS(calls, 3);
    Sleep(10);
    IS(CancelWaitableTimer(t), TRUE); /* takes back the call that waits */
    IS(SleepEx(0, TRUE), 0);
    IS(calls, 3);
    calls = 0;
    IS(SetWaitableTimer(t, &at_once, 0, note_timed, (LPVOID)1, FALSE), TRUE);
    QueueUserAPC(note_plain, GetCurrentThread(), 2);
    IS(SetWaitableTimer(u, &at_once, 0, note_timed, (LPVOID)3, FALSE), TRUE);
    QueueUserAPC(note_plain, GetCurrentThread(), 4);
    IS(SetWaitableTimer(t, &soon, 0, NULL, NULL, FALSE), TRUE); /* the first goes */
    IS(SleepEx(0, TRUE), WAIT_IO_COMPLETION);
    IS(calls, 234);
    IS(SetWaitableTimer(t, &at_once, 0, note_timed, (LPVOID)1, FALSE), TRUE);
    IS(CloseHandle(t), TRUE); /* and so does that of a timer that is gone */
    IS(SleepEx(0, TRUE), 0);
    IS(calls, 234);
    CloseHandle(u);
}

static HANDLE theirs;

static DWORD WINAPI set_and_end(LPVOID with_call)
{
    LARGE_INTEGER soon = after(10);
    return (DWORD)SetWaitableTimer(theirs, &soon, 5, with_call ? note : NULL, NULL, FALSE);
}

static DWORD WINAPI set_at_once_and_end(LPVOID unused)
{
    LARGE_INTEGER at_once = after(0);
    return (DWORD)SetWaitableTimer(theirs, &at_once, 0, note, NULL, FALSE);
}

/* A call that was queued goes with its thread, and the timer can be set by another one. */
static void check_queued(void)
{
    LARGE_INTEGER at_once = after(0);
    theirs = timer(FALSE);
    HANDLE thread = CreateThread(NULL, 0, set_at_once_and_end, NULL, 0, NULL);
    IS(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
    CloseHandle(thread);
    calls = 0;
    IS(SetWaitableTimer(theirs, &at_once, 0, note, NULL, FALSE), TRUE);
    IS(SleepEx(INFINITE, TRUE), WAIT_IO_COMPLETION);
    IS(calls, 1);
    CloseHandle(theirs);
}

/* A timer with a call ends with the thread that set it; one without comes. */
static void check_threads(void)
{
    for (int with_call = 0; with_call < 2; with_call++) {
        theirs = timer(FALSE);
        HANDLE thread = CreateThread(NULL, 0, set_and_end, (PVOID)(LONG_PTR)with_call, 0, NULL);
        IS(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
        CloseHandle(thread);
        if (with_call) /* it may have come while the thread ended */
            WaitForSingleObject(theirs, 0);
        IS(WaitForSingleObject(theirs, with_call ? 40 : INFINITE),
           with_call ? WAIT_TIMEOUT : WAIT_OBJECT_0);
        CloseHandle(theirs);
    }
}

/* While the queue is full a call is lost, and the timer's next one finds a free entry. */
static void check_full(void)
{
    HANDLE t = timer(TRUE);
    LARGE_INTEGER at_once = after(0);
    calls = 0;
    for (int i = 0; i < 120; i++)
        IS(QueueUserAPC(note_plain, GetCurrentThread(), 0) != 0, TRUE);
    IS(SetWaitableTimer(t, &at_once, 0, note_timed, (LPVOID)7, FALSE), TRUE);
    IS(SleepEx(0, TRUE), WAIT_IO_COMPLETION);
    IS(calls, 0);
    IS(SetWaitableTimer(t, &at_once, 0, note_timed, (LPVOID)7, FALSE), TRUE);
    IS(SleepEx(0, TRUE), WAIT_IO_COMPLETION);
    IS(calls, 7);
    CloseHandle(t);
}

/* --- Names. --- */

static void check_names(void)
{
    HANDLE one = CreateWaitableTimerA(NULL, FALSE, "clock"), same;
    IS(GetLastError(), ERROR_SUCCESS);
    same = CreateWaitableTimerW(NULL, TRUE, L"Local\\clock");
    IS(GetLastError(), ERROR_ALREADY_EXISTS);
    IS(set(one, 0, 0), TRUE);
    IS(WaitForSingleObject(same, 0), WAIT_OBJECT_0);
    IS(WaitForSingleObject(same, 0), WAIT_TIMEOUT); /* of the first one's kind */
    CloseHandle(same);
    FAILS(CreateEventA(NULL, FALSE, FALSE, "clock"), NULL, ERROR_INVALID_HANDLE);
    same = OpenWaitableTimerA(SYNCHRONIZE, FALSE, "clock");
    IS(same != NULL, TRUE);
    FAILS(set(same, 0, 0), FALSE, ERROR_ACCESS_DENIED);
    CloseHandle(same);
    CloseHandle(one);
    FAILS(OpenWaitableTimerW(TIMER_ALL_ACCESS, FALSE, L"clock"), NULL, ERROR_FILE_NOT_FOUND);
    FAILS(CreateWaitableTimerExW(NULL, NULL, 4, TIMER_ALL_ACCESS), NULL, ERROR_INVALID_PARAMETER);
    one = CreateWaitableTimerExA(NULL, "precise", 3, TIMER_ALL_ACCESS);
    IS(one != NULL, TRUE);
    CloseHandle(one);
}

/* --- Statuses. --- */

static void check_refusals(void)
{
    HANDLE t = timer(FALSE), event = CreateEventA(NULL, FALSE, FALSE, NULL),
           weak = limited(t, SYNCHRONIZE), none = NULL;
    LARGE_INTEGER later = after(3600000);
    OBJECT_ATTRIBUTES short_one = { .Length = 40 };
    struct information info = { .signaled = 9 };
    BOOLEAN was = 9;
    ULONG size = 0;
    IS(NtCreateTimer(KERNEL_ADDRESS, TIMER_ALL_ACCESS, NULL, 2), STATUS_ACCESS_VIOLATION);
    IS(NtCreateTimer(&none, TIMER_ALL_ACCESS, KERNEL_ADDRESS, 0), STATUS_ACCESS_VIOLATION);
    IS(NtCreateTimer(&none, TIMER_ALL_ACCESS, &short_one, 0), STATUS_INVALID_PARAMETER);
    IS(NtCreateTimer(&none, TIMER_ALL_ACCESS, NULL, 2), STATUS_INVALID_PARAMETER_4);
    IS(NtOpenTimer(&none, TIMER_ALL_ACCESS, NULL), STATUS_INVALID_PARAMETER);
    IS(none == NULL, TRUE);
    IS(NtSetTimer(NULL, KERNEL_ADDRESS, NULL, NULL, FALSE, -1, NULL), STATUS_ACCESS_VIOLATION);
    IS(NtSetTimer(NULL, NULL, NULL, NULL, FALSE, 0, NULL), STATUS_ACCESS_VIOLATION);
    IS(NtSetTimer(NULL, &later, NULL, NULL, FALSE, -1, KERNEL_ADDRESS), STATUS_ACCESS_VIOLATION);
    IS(NtSetTimer(NULL, &later, NULL, NULL, FALSE, -1, NULL), STATUS_INVALID_PARAMETER_6);
    IS(NtSetTimer(NULL, &later, NULL, NULL, FALSE, 0, NULL), STATUS_INVALID_HANDLE);
    IS(NtSetTimer(event, &later, NULL, NULL, FALSE, 0, NULL), STATUS_OBJECT_TYPE_MISMATCH);
    IS(NtSetTimer(weak, &later, NULL, NULL, FALSE, 0, NULL), STATUS_ACCESS_DENIED);
    IS(NtSetTimer(t, &later, NULL, NULL, FALSE, 0, &was), STATUS_SUCCESS);
    IS(was, FALSE);
    IS(NtSetTimer(t, &later, NULL, NULL, TRUE, 0, &was), STATUS_TIMER_RESUME_IGNORED);
    IS(was, TRUE);
    IS(SetWaitableTimer(t, &later, 0, NULL, NULL, TRUE), TRUE);
    IS(GetLastError(), ERROR_NOT_SUPPORTED);
    IS(SetWaitableTimerEx(t, &later, 0, NULL, NULL, NULL, 5), TRUE);
    FAILS(SetWaitableTimer(t, &later, -1, NULL, NULL, FALSE), FALSE, ERROR_INVALID_PARAMETER);
    IS(NtQueryTimer(NULL, 1, &info, 0, NULL), STATUS_INVALID_INFO_CLASS);
    IS(NtQueryTimer(NULL, 0, &info, sizeof info - 1, NULL), STATUS_INFO_LENGTH_MISMATCH);
    IS(NtQueryTimer(NULL, 0, &info, sizeof info, NULL), STATUS_INVALID_HANDLE);
    IS(NtQueryTimer(event, 0, &info, sizeof info, NULL), STATUS_OBJECT_TYPE_MISMATCH);
    IS(NtQueryTimer(weak, 0, &info, sizeof info, NULL), STATUS_ACCESS_DENIED);
    IS(NtQueryTimer(t, 0, KERNEL_ADDRESS, sizeof info, NULL), STATUS_ACCESS_VIOLATION);
    IS(NtQueryTimer(t, 0, &info, sizeof info, &size), STATUS_SUCCESS);
    IS(size, sizeof info);
    IS(info.signaled, FALSE);
    IS(info.left.QuadPart > 0 && info.left.QuadPart <= 3600000 * MS, TRUE);
    later.QuadPart = INT64_MAX;
    IS(NtSetTimer(t, &later, NULL, NULL, FALSE, 0, NULL), STATUS_SUCCESS);
    IS(NtQueryTimer(t, 0, &info, sizeof info, NULL), STATUS_SUCCESS);
    IS(info.left.QuadPart > 3600000 * MS, TRUE); /* a date that does not come */
    IS(NtCancelTimer(NULL, KERNEL_ADDRESS), STATUS_ACCESS_VIOLATION);
    IS(NtCancelTimer(NULL, NULL), STATUS_INVALID_HANDLE);
    IS(NtCancelTimer(event, NULL), STATUS_OBJECT_TYPE_MISMATCH);
    IS(NtCancelTimer(weak, NULL), STATUS_ACCESS_DENIED);
    IS(set(t, 0, 0), TRUE);
    IS(NtQueryTimer(t, 0, &info, sizeof info, NULL), STATUS_SUCCESS);
    IS(info.signaled, TRUE);
    IS(info.left.QuadPart <= 0, TRUE);
    IS(NtCancelTimer(t, &was), STATUS_SUCCESS);
    IS(was, TRUE);
    CloseHandle(weak);
    CloseHandle(event);
    CloseHandle(t);
}

int main(void)
{
    check_waits();
    check_dates();
    check_periods();
    check_calls();
    check_threads();
    check_queued();
    check_full();
    check_names();
    check_refusals();
    return check_result();
}
