/* SPDX-License-Identifier: MIT */
/* Suspended threads with counts, calls queued to threads (APCs) and alertable waits. */
#include "nt.h"

NTSTATUS NTAPI NtSuspendThread(HANDLE, PULONG);
NTSTATUS NTAPI NtResumeThread(HANDLE, PULONG);
NTSTATUS NTAPI NtQueueApcThread(HANDLE, PVOID, PVOID, PVOID, PVOID);
NTSTATUS NTAPI NtTestAlert(VOID);
NTSTATUS NTAPI NtDelayExecution(BOOLEAN, PLARGE_INTEGER);

static volatile LONG iterations, stop, called;
static HANDLE event;

static DWORD WINAPI spin(LPVOID unused)
{
    while (!stop)
        iterations++;
    return 3;
}

static DWORD WINAPI wait_once(LPVOID alertable)
{
    return WaitForSingleObjectEx(event, 60000, alertable != NULL);
}

static void let_it_stop(void) { Sleep(20); }

/* Whether a thread that counts iterations does. */
static BOOL moves(void)
{
    LONG before;
    let_it_stop();
    before = iterations;
    for (int i = 0; i < 100 && iterations == before; i++)
        Sleep(2);
    return iterations != before;
}

/* --- Suspending. --- */

static void check_counts(void)
{
    HANDLE thread = CreateThread(NULL, 0, spin, NULL, 0, NULL), weak;
    ULONG count = 99;
    IS(moves(), TRUE);
    IS(SuspendThread(thread), 0);
    IS(moves(), FALSE);
    IS(SuspendThread(thread), 1);
    IS(ResumeThread(thread), 2);
    IS(moves(), FALSE);
    IS(ResumeThread(thread), 1);
    IS(moves(), TRUE);
    IS(ResumeThread(thread), 0);
    for (ULONG i = 0; i < 127; i++)
        if (SuspendThread(thread) != i)
            failures++;
    FAILS(SuspendThread(thread), (DWORD)-1, ERROR_SIGNAL_REFUSED);
    IS(NtSuspendThread(thread, &count), STATUS_SUSPEND_COUNT_EXCEEDED);
    IS(count, 0);
    for (ULONG i = 127; i > 1; i--)
        if (ResumeThread(thread) != i)
            failures++;
    IS(moves(), FALSE);
    IS(NtResumeThread(thread, NULL), STATUS_SUCCESS);
    IS(moves(), TRUE);
    weak = limited(thread, SYNCHRONIZE);
    IS(NtSuspendThread(weak, NULL), STATUS_ACCESS_DENIED);
    IS(NtResumeThread(weak, NULL), STATUS_ACCESS_DENIED);
    CloseHandle(weak);
    IS(NtSuspendThread(NULL, NULL), STATUS_INVALID_HANDLE);
    IS(NtSuspendThread(event, NULL), STATUS_OBJECT_TYPE_MISMATCH);
    IS(NtSuspendThread(thread, KERNEL_ADDRESS), STATUS_ACCESS_VIOLATION);
    IS(NtSuspendThread(thread, NULL), STATUS_SUCCESS);
    stop = 1;
    IS(WaitForSingleObject(thread, 20), WAIT_TIMEOUT);
    IS(ResumeThread(thread), 1);
    IS(WaitForSingleObject(thread, 60000), WAIT_OBJECT_0);
    IS(NtSuspendThread(thread, NULL), STATUS_THREAD_IS_TERMINATING);
    IS(ResumeThread(thread), 0);
    IS(end_of(thread), 3);
    stop = 0;
}

/* One that waits and is suspended takes nothing, and goes on waiting when it is resumed. */
static void check_waiter(void)
{
    HANDLE thread = CreateThread(NULL, 0, wait_once, NULL, 0, NULL);
    let_it_stop();
    IS(SuspendThread(thread), 0);
    let_it_stop();
    IS(SetEvent(event), TRUE);
    IS(WaitForSingleObject(thread, 20), WAIT_TIMEOUT);
    IS(WaitForSingleObject(event, 0), WAIT_OBJECT_0); /* still there */
    IS(ResumeThread(thread), 1);
    IS(WaitForSingleObject(thread, 20), WAIT_TIMEOUT);
    IS(SetEvent(event), TRUE);
    IS(end_of(thread), WAIT_OBJECT_0);
}

static DWORD WINAPI suspend_itself(LPVOID unused) { return SuspendThread(GetCurrentThread()); }

static void check_ends(void)
{
    HANDLE thread = CreateThread(NULL, 0, suspend_itself, NULL, 0, NULL);
    IS(WaitForSingleObject(thread, 20), WAIT_TIMEOUT);
    IS(ResumeThread(thread), 1);
    IS(end_of(thread), 0);
    thread = CreateThread(NULL, 0, suspend_itself, NULL, 0, NULL);
    let_it_stop();
    IS(TerminateThread(thread, 8), TRUE); /* suspended or not */
    IS(end_of(thread), 8);
    thread = CreateThread(NULL, 0, wait_once, NULL, CREATE_SUSPENDED, NULL);
    IS(SuspendThread(thread), 1);
    IS(ResumeThread(thread), 2);
    IS(SetEvent(event), TRUE);
    IS(WaitForSingleObject(thread, 20), WAIT_TIMEOUT);
    IS(ResumeThread(thread), 1);
    IS(end_of(thread), WAIT_OBJECT_0);
}

/* --- Calls that are queued. --- */

static ULONG_PTR order[200];
static DWORD caller;

static VOID CALLBACK note(ULONG_PTR value)
{
    caller = GetCurrentThreadId();
    order[called++] = value;
}

/* Queues two more when it comes first. */
static VOID CALLBACK more(ULONG_PTR value)
{
    note(value);
    QueueUserAPC(note, GetCurrentThread(), value + 1);
    IS(SleepEx(0, TRUE), WAIT_IO_COMPLETION); /* inside a call */
    QueueUserAPC(note, GetCurrentThread(), value + 2);
}

static VOID CALLBACK use_registers(ULONG_PTR value)
{
    volatile double d = 1.5;
    for (int i = 0; i < 100; i++)
        d = d * 1.25 + (double)value;
    called++;
}

static void check_own(void)
{
    HANDLE set = CreateEventA(NULL, TRUE, TRUE, NULL), handles[2] = { event, set };
    LARGE_INTEGER none = { .QuadPart = 0 };
    double before = 3.25;
    called = 0;
    IS(SleepEx(0, TRUE), 0); /* nothing is queued */
    IS(QueueUserAPC(note, GetCurrentThread(), 1) != 0, TRUE);
    IS(QueueUserAPC(note, GetCurrentThread(), 2) != 0, TRUE);
    IS(SleepEx(1, FALSE), 0);
    IS(WaitForSingleObject(event, 1), WAIT_TIMEOUT);
    IS(called, 0);
    IS(WaitForSingleObjectEx(set, 0, TRUE), WAIT_OBJECT_0); /* what need not wait is not ended */
    IS(called, 0);
    IS(SleepEx(INFINITE, TRUE), WAIT_IO_COMPLETION);
    IS(called * 100 + order[0] * 10 + order[1], 212);
    IS(caller, GetCurrentThreadId());
    called = 0;
    QueueUserAPC(more, GetCurrentThread(), 5);
    IS(WaitForSingleObjectEx(event, INFINITE, TRUE), WAIT_IO_COMPLETION);
    IS(called * 1000 + order[0] * 100 + order[1] * 10 + order[2], 3567);
    QueueUserAPC(note, GetCurrentThread(), 8);
    handles[1] = event;
    IS(WaitForMultipleObjectsEx(1, handles, FALSE, 0, TRUE), WAIT_IO_COMPLETION);
    QueueUserAPC(note, GetCurrentThread(), 9);
    IS(SignalObjectAndWait(set, event, 0, TRUE), WAIT_IO_COMPLETION);
    QueueUserAPC(note, GetCurrentThread(), 10);
    IS(NtDelayExecution(TRUE, &none), STATUS_USER_APC);
    QueueUserAPC(use_registers, GetCurrentThread(), 11);
    IS(NtTestAlert(), STATUS_SUCCESS);
    IS(called, 7);
    IS(before * 2, 6); /* 6.5 */
    IS(NtTestAlert(), STATUS_SUCCESS);
    IS(called, 7);
    CloseHandle(set);
}

static void check_others(void)
{
    HANDLE thread = CreateThread(NULL, 0, wait_once, (PVOID)1, 0, NULL), weak;
    DWORD id = GetThreadId(thread);
    called = 0;
    let_it_stop();
    IS(QueueUserAPC(note, thread, 1) != 0, TRUE);
    IS(end_of(thread), WAIT_IO_COMPLETION);
    IS(called, 1);
    IS(caller, id);
    thread = CreateThread(NULL, 0, wait_once, (PVOID)1, CREATE_SUSPENDED, NULL);
    IS(QueueUserAPC(note, thread, 2) != 0,
       TRUE); /* before it has begun: comes before its routine */
    IS(ResumeThread(thread), 1);
    let_it_stop();
    IS(called, 2);
    IS(WaitForSingleObject(thread, 0), WAIT_TIMEOUT);
    IS(SuspendThread(thread), 0);
    let_it_stop();
    IS(QueueUserAPC(note, thread, 3) != 0, TRUE);
    let_it_stop();
    IS(called, 2);
    IS(ResumeThread(thread), 1);
    IS(end_of(thread), WAIT_IO_COMPLETION);
    IS(called, 3);
    thread = CreateThread(NULL, 0, wait_once, NULL, 0, NULL); /* its wait is not alertable */
    let_it_stop();
    weak = limited(thread, THREAD_ALL_ACCESS & ~THREAD_SET_CONTEXT);
    IS(NtQueueApcThread(weak, NULL, NULL, NULL, NULL), STATUS_ACCESS_DENIED);
    IS(CloseHandle(weak), TRUE);
    /* Never called */
    for (int i = 0; i < 120; i++)
        if (NtQueueApcThread(thread, KERNEL_ADDRESS, NULL, NULL, NULL) != STATUS_SUCCESS)
            failures++;
    IS(NtQueueApcThread(thread, KERNEL_ADDRESS, NULL, NULL, NULL), STATUS_NO_MEMORY);
    IS(SetEvent(event), TRUE);
    IS(WaitForSingleObject(thread, 60000), WAIT_OBJECT_0);
    FAILS(QueueUserAPC(note, thread, 4), 0, ERROR_GEN_FAILURE);
    IS(end_of(thread), WAIT_OBJECT_0);
    IS(NtQueueApcThread(NULL, NULL, NULL, NULL, NULL), STATUS_INVALID_HANDLE);
    IS(NtQueueApcThread(event, NULL, NULL, NULL, NULL), STATUS_OBJECT_TYPE_MISMATCH);
    IS(called, 3);
}

/* Each side sends the other one what it got, a hundred times. */
static HANDLE sides[2];
static volatile LONG ball;

static VOID CALLBACK hit(ULONG_PTR side)
{
    if (++ball < 200)
        QueueUserAPC(hit, sides[1 - side], 1 - side);
}

static DWORD WINAPI play(LPVOID unused)
{
    while (ball < 200)
        SleepEx(5, TRUE);
    return 0;
}

static void check_between(void)
{
    sides[0] = CreateThread(NULL, 0, play, NULL, 0, NULL);
    sides[1] = CreateThread(NULL, 0, play, NULL, 0, NULL);
    QueueUserAPC(hit, sides[0], 0);
    IS(end_of(sides[0]), 0);
    IS(end_of(sides[1]), 0);
    IS(ball, 200);
}

int main(void)
{
    event = CreateEventA(NULL, FALSE, FALSE, NULL);
    check_counts();
    check_waiter();
    check_ends();
    check_own();
    check_others();
    check_between();
    return check_result();
}
