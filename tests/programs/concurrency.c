/* SPDX-License-Identifier: MIT */
/* What kernel32 and ntdll have for threads beside the kernel's objects, which tests/ring3 and
 * tests/kernel prove: calls queued to threads, timers and their calls, locks, lists without a lock;
 * each function once, and that nothing is left. */
#define _WIN32_WINNT 0x0a00
#include "nt.h"

#define MS 10000ll /* 100 ns */
#define QUEUE 120  /* calls that may wait for a thread; two fewer with a timer's */
#define THREADS 4
#define ITERATIONS 25000
#define ENTRIES 5 /* few, so that the same come back soon */

/* Handles that are closed are the next ones that are given; one that stays open makes others of
 * them. */
static ULONG_PTR next_handle(void)
{
    HANDLE handles[16];
    ULONG_PTR sum = 0;
    for (unsigned i = 0; i < ARRAYSIZE(handles); i++)
        sum += (ULONG_PTR)(handles[i] = CreateEventA(NULL, TRUE, FALSE, NULL));
    for (unsigned i = 0; i < ARRAYSIZE(handles); i++)
        CloseHandle(handles[i]);
    return sum;
}

static HANDLE start(LPTHREAD_START_ROUTINE routine, PVOID argument, DWORD flags)
{
    return CreateThread(NULL, 0, routine, argument, flags, NULL);
}

/* --- Threads, and calls that are queued to them. --- */

static HANDLE event;
static volatile LONG calls;

static VOID CALLBACK note(ULONG_PTR n) { calls = 10 * calls + (LONG)n; }

/* Inside a call another one comes, and after it a third. */
static VOID CALLBACK nest(ULONG_PTR n)
{
    note(n);
    QueueUserAPC(note, GetCurrentThread(), n + 1);
    IS(SleepEx(0, TRUE), WAIT_IO_COMPLETION);
    QueueUserAPC(note, GetCurrentThread(), n + 2);
}

static DWORD WINAPI wait_for(LPVOID alertable)
{
    return WaitForSingleObjectEx(event, 60000, alertable != NULL);
}

static void check_threads(void)
{
    DWORD_PTR own, all;
    DWORD id, flags = 9;
    HANDLE thread = CreateThread(NULL, 0, wait_for, NULL, CREATE_SUSPENDED, &id);
    HANDLE weak = limited(thread, SYNCHRONIZE);
    IS(GetThreadId(thread), id);
    IS(GetHandleInformation(weak, &flags) && !flags, TRUE);
    FAILS(QueueUserAPC(note, weak, 3), 0, ERROR_ACCESS_DENIED);
    IS(ResumeThread(thread), 1);
    Sleep(20);
    IS(SuspendThread(thread), 0);
    IS(SetEvent(event), TRUE); /* who is suspended takes nothing */
    IS(WaitForSingleObject(event, 20), WAIT_OBJECT_0);
    IS(ResumeThread(thread), 1);
    IS(WaitForSingleObject(thread, 20), WAIT_TIMEOUT); /* and goes on waiting */
    IS(SetEvent(event) && CloseHandle(weak), TRUE);
    IS(end_of(thread), WAIT_OBJECT_0);
    IS(GetProcessAffinityMask(GetCurrentProcess(), &own, &all) && own == all, TRUE);
    IS(SetProcessAffinityMask(GetCurrentProcess(), all), TRUE);
    FAILS(SetProcessAffinityMask(GetCurrentProcess(), ~all), FALSE, ERROR_INVALID_PARAMETER);
    HANDLE self = OpenProcess(PROCESS_ALL_ACCESS, FALSE, GetCurrentProcessId());
    IS(self && CloseHandle(self), TRUE);
    FAILS(OpenProcess(PROCESS_ALL_ACCESS, FALSE, GetCurrentProcessId() + 4), NULL,
          ERROR_INVALID_PARAMETER);
}

static void check_calls(void)
{
    calls = 0;
    IS(QueueUserAPC(nest, GetCurrentThread(), 1) != 0, TRUE);
    IS(SleepEx(1, FALSE), 0);
    IS(WaitForMultipleObjectsEx(1, &event, FALSE, 1, FALSE), WAIT_TIMEOUT);
    IS(calls, 0);
    IS(WaitForMultipleObjectsEx(1, &event, FALSE, INFINITE, TRUE), WAIT_IO_COMPLETION);
    IS(calls, 123);
    HANDLE thread = start(wait_for, (PVOID)1, CREATE_SUSPENDED);
    IS(QueueUserAPC(note, thread, 4) != 0, TRUE); /* comes before it begins, not in its wait */
    IS(ResumeThread(thread), 1);
    Sleep(20);
    IS(calls, 1234);
    IS(QueueUserAPC(note, thread, 5) != 0, TRUE);
    IS(WaitForSingleObject(thread, 60000), WAIT_OBJECT_0);
    IS(calls, 12345);
    FAILS(QueueUserAPC(note, thread, 6), 0, ERROR_GEN_FAILURE);
    IS(end_of(thread), WAIT_IO_COMPLETION);
}

/* --- Timers. --- */

static LARGE_INTEGER after(LONGLONG ms) { return (LARGE_INTEGER){ .QuadPart = -MS * ms }; }

static VOID CALLBACK note_timed(LPVOID n, DWORD low, DWORD high)
{
    FILETIME t;
    GetSystemTimePreciseAsFileTime(&t);
    LONGLONG ago =
        ((LONGLONG)t.dwHighDateTime << 32 | t.dwLowDateTime) - ((LONGLONG)high << 32 | low);
    IS(ago >= 0 && ago < 60000 * MS, TRUE);
    note((ULONG_PTR)n);
}

static BOOL set(HANDLE timer, LONGLONG ms, LONG period, int n)
{
    LARGE_INTEGER due = after(ms);
    return SetWaitableTimer(timer, &due, period, n ? note_timed : NULL, (PVOID)(LONG_PTR)n, FALSE);
}

static DWORD WINAPI set_and_end(LPVOID timer) { return (DWORD)set(timer, 10, 5, 9); }

static void check_timers(void)
{
    HANDLE one = CreateWaitableTimerW(NULL, FALSE, NULL),
           all = CreateWaitableTimerA(NULL, TRUE, "clock"), both[2] = { one, all };
    IS(GetLastError(), ERROR_SUCCESS);
    HANDLE same = CreateWaitableTimerExA(NULL, "clock", 0, SYNCHRONIZE);
    IS(GetLastError(), ERROR_ALREADY_EXISTS);
    FAILS(set(same, 0, 0, 0), FALSE, ERROR_ACCESS_DENIED);
    FAILS(CreateWaitableTimerExW(NULL, NULL, 4, TIMER_ALL_ACCESS), NULL, ERROR_INVALID_PARAMETER);
    IS(WaitForSingleObject(one, 0), WAIT_TIMEOUT); /* one that was never set */
    IS(set(one, 20, 0, 0) && set(all, 5, 0, 0), TRUE);
    IS(WaitForMultipleObjects(2, both, FALSE, INFINITE), WAIT_OBJECT_0 + 1);
    IS(WaitForMultipleObjects(2, both, TRUE, INFINITE), WAIT_OBJECT_0);
    IS(WaitForSingleObject(one, 0), WAIT_TIMEOUT); /* one wait takes it */
    IS(WaitForSingleObject(same, 0), WAIT_OBJECT_0);
    IS(CancelWaitableTimer(all), TRUE); /* which leaves the state alone */
    IS(WaitForSingleObject(all, 0), WAIT_OBJECT_0);
    IS(set(one, 6, 4, 0), TRUE);
    for (int i = 0; i < 3; i++)
        IS(WaitForSingleObject(one, INFINITE), WAIT_OBJECT_0);
    IS(CancelWaitableTimer(one), TRUE);
    WaitForSingleObject(one, 0);
    IS(WaitForSingleObject(one, 20), WAIT_TIMEOUT);
    LARGE_INTEGER past = { .QuadPart = 125911584000000000 }; /* 2000-01-01 */
    IS(SetWaitableTimerEx(one, &past, 0, NULL, NULL, NULL, 5), TRUE);
    IS(WaitForSingleObject(one, 0), WAIT_OBJECT_0);
    IS(SetWaitableTimer(one, &past, 0, NULL, NULL, TRUE), TRUE);
    IS(GetLastError(), ERROR_NOT_SUPPORTED);
    FAILS(set(one, 0, -1, 0), FALSE, ERROR_INVALID_PARAMETER);
    IS(CloseHandle(one) && CloseHandle(all) && CloseHandle(same), TRUE);
}

static void check_timed_calls(void)
{
    HANDLE t = CreateWaitableTimerW(NULL, FALSE, NULL), u = CreateWaitableTimerW(NULL, TRUE, NULL);
    calls = 0;
    IS(set(t, 1, 2, 1), TRUE);
    Sleep(30); /* many times, one call */
    IS(SleepEx(0, TRUE), WAIT_IO_COMPLETION);
    IS(calls, 1);
    Sleep(10);
    IS(CancelWaitableTimer(t), TRUE); /* takes back the call that waits */
    IS(SleepEx(0, TRUE), 0);
    IS(set(t, 0, 0, 5) && QueueUserAPC(note, GetCurrentThread(), 2) != 0 && set(u, 0, 0, 3), TRUE);
    IS(set(t, 3600000, 0, 0), TRUE); /* the first goes */
    IS(SleepEx(0, TRUE), WAIT_IO_COMPLETION);
    IS(calls, 123);
    IS(set(t, 0, 0, 5) && CloseHandle(t), TRUE); /* and that of a timer that is gone */
    IS(SleepEx(0, TRUE), 0);
    for (int i = 0; i < QUEUE; i++)
        IS(QueueUserAPC(note, GetCurrentThread(), 0) != 0, TRUE);
    calls = 0;
    IS(set(u, 0, 0, 7), TRUE); /* while the queue is full a call is lost, and the next one comes */
    IS(SleepEx(0, TRUE), WAIT_IO_COMPLETION);
    IS(calls, 0);
    IS(set(u, 0, 0, 7) && SleepEx(0, TRUE) == WAIT_IO_COMPLETION, TRUE);
    IS(calls, 7);
    IS(end_of(start(set_and_end, u, 0)), TRUE);
    IS(WaitForSingleObject(u, 40), WAIT_TIMEOUT); /* with a call it ends with the thread */
    IS(CloseHandle(u), TRUE);
}

/* --- Locks. --- */

static CRITICAL_SECTION section;
static CONDITION_VARIABLE condition = CONDITION_VARIABLE_INIT;
static SRWLOCK lock = SRWLOCK_INIT;
static LONG sleeping, woken;
static volatile LONG value;
static BOOL(WINAPI *wait_on)(volatile VOID *address, PVOID compare, SIZE_T size, DWORD ms);

static DWORD WINAPI use_locks(LPVOID unused)
{
    EnterCriticalSection(&section);
    for (sleeping++; !value;)
        SleepConditionVariableCS(&condition, &section, INFINITE);
    woken++;
    LeaveCriticalSection(&section);
    AcquireSRWLockExclusive(&lock);
    woken++;
    ReleaseSRWLockExclusive(&lock);
    for (LONG one = 1; value == 1;)
        wait_on(&value, &one, sizeof one, INFINITE);
    return unused != NULL;
}

static LONG read_locked(const LONG *number)
{
    Sleep(2);
    EnterCriticalSection(&section);
    LONG found = *number;
    LeaveCriticalSection(&section);
    return found;
}

static void check_locks(void)
{
    HMODULE base = GetModuleHandleA("kernelbase.dll");
    VOID(WINAPI * wake_all)(PVOID) = (void *)GetProcAddress(base, "WakeByAddressAll");
    LONG zero = 0;
    wait_on = (void *)GetProcAddress(base, "WaitOnAddress");
    FAILS(wait_on(&value, &zero, sizeof zero, 2), FALSE, ERROR_TIMEOUT);
    FAILS(wait_on(&value, &zero, 3, 2), FALSE, ERROR_INVALID_PARAMETER);
    const ULONG_PTR next = next_handle(); /* by now this thread has what it waits with */
    IS(InitializeCriticalSectionEx(&section, 7, 0), TRUE);
    IS(InitializeCriticalSectionAndSpinCount(&section, 77), TRUE);
    IS(SetCriticalSectionSpinCount(&section, 99), 77);
    HANDLE threads[2] = { start(use_locks, NULL, 0), start(use_locks, NULL, 0) };
    while (read_locked(&sleeping) < 2)
        continue;
    AcquireSRWLockShared(&lock);
    AcquireSRWLockShared(&lock);
    IS(read_locked(&woken), 0);
    value = 1;
    WakeAllConditionVariable(&condition);
    while (read_locked(&woken) < 2)
        continue;
    ReleaseSRWLockShared(&lock);
    IS(WaitForSingleObject(threads[0], 5), WAIT_TIMEOUT);
    IS(woken, 2);
    ReleaseSRWLockShared(&lock);
    IS(WaitForSingleObject(threads[0], 5), WAIT_TIMEOUT); /* value is still 1 */
    value = 2;
    wake_all((PVOID)&value);
    IS(end_of(threads[0]) + end_of(threads[1]), 0);
    IS(woken, 4);
    DeleteCriticalSection(&section);
    IS(next_handle(), next); /* what threads waited by went with them */
}

static void check_once(void)
{
    INIT_ONCE once = INIT_ONCE_STATIC_INIT;
    BOOL pending;
    PVOID context;
    FAILS(InitOnceBeginInitialize(&once, INIT_ONCE_CHECK_ONLY, &pending, NULL), FALSE,
          ERROR_GEN_FAILURE);
    IS(InitOnceBeginInitialize(&once, 0, &pending, &context) && pending, TRUE);
    FAILS(InitOnceComplete(&once, 0, (PVOID)2), FALSE, ERROR_INVALID_PARAMETER);
    IS(InitOnceComplete(&once, 0, &section), TRUE);
    IS(InitOnceBeginInitialize(&once, 0, &pending, &context) && !pending, TRUE);
    IS(context == &section, TRUE);
}

/* --- Lists that threads push to and pop from at once. --- */

static SLIST_HEADER list;
static LONG volatile shared_twice;

static PSLIST_ENTRY new_entry(void)
{
    return VirtualAlloc(NULL, 4096, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
}

/* What a thread has taken is its own: it may be freed, and another one put in its place. */
static PSLIST_ENTRY own(PSLIST_ENTRY e, BOOL replace)
{
    LONG volatile *owners = (LONG volatile *)(e + 1);
    if (InterlockedIncrement(owners) != 1)
        InterlockedIncrement(&shared_twice);
    InterlockedDecrement(owners);
    return replace && VirtualFree(e, 0, MEM_RELEASE) ? new_entry() : e;
}

static DWORD WINAPI take_and_give(LPVOID unused)
{
    for (unsigned i = 1; i <= ITERATIONS; i++) {
        PSLIST_ENTRY e = i % 64 ? InterlockedPopEntrySList(&list) : InterlockedFlushSList(&list);
        for (PSLIST_ENTRY next; e; e = next) {
            next = i % 64 ? NULL : e->Next;
            InterlockedPushEntrySList(&list, own(e, i % 32 == 1));
        }
    }
    return unused != NULL;
}

static void check_lists(void)
{
    HANDLE threads[THREADS];
    unsigned n = 0;
    InitializeSListHead(&list);
    IS(InterlockedPopEntrySList(&list) == NULL, TRUE);
    while (n < ENTRIES) {
        IS(InterlockedPushEntrySList(&list, new_entry()) == NULL, n == 0);
        IS(QueryDepthSList(&list), ++n);
    }
    for (n = 0; n < THREADS; n++)
        threads[n] = start(take_and_give, NULL, 0);
    for (n = 0; n < THREADS; n++)
        IS(end_of(threads[n]), 0);
    IS(QueryDepthSList(&list), ENTRIES);
    n = 0;
    for (PSLIST_ENTRY e = InterlockedFlushSList(&list); e && n <= ENTRIES; e = e->Next)
        n++;
    IS(n, ENTRIES);
    IS(shared_twice, 0);
}

/* With a word: without what waits, where the machine's time is the host's. */
int main(int count, char **words)
{
    (void)words;
    event = CreateEventA(NULL, FALSE, FALSE, NULL);
    check_calls(); /* this thread gets its queue */
    const ULONG_PTR next = next_handle();
    check_threads();
    check_calls();
    if (count == 1) {
        check_timers();
        check_timed_calls();
    }
    IS(next_handle(), next);
    check_locks();
    check_once();
    check_lists();
    return check_result();
}
