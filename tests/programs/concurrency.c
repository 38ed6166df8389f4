/* SPDX-License-Identifier: MIT */
/* What kernel32 and ntdll have for threads beside the kernel's objects, which tests/ring3 and
 * tests/kernel prove: timers, locks, lists without a lock; each function once, and that nothing is
 * left. */
#define _WIN32_WINNT 0x0a00
#include "nt.h"
#include <string.h>

#define MS 10000ll /* 100 ns */
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

/* --- Threads. --- */

static HANDLE event;

static DWORD WINAPI wait_for(LPVOID unused)
{
    return WaitForSingleObjectEx(event, 60000, unused != NULL);
}

static void check_threads(void)
{
    DWORD_PTR own, all;
    DWORD id, flags = 9;
    HANDLE thread = CreateThread(NULL, 0, wait_for, NULL, CREATE_SUSPENDED, &id);
    IS(GetThreadId(thread), id);
    IS(GetHandleInformation(thread, &flags) && !flags, TRUE);
    IS(ResumeThread(thread), 1);
    Sleep(20);
    IS(SuspendThread(thread), 0);
    IS(SetEvent(event), TRUE); /* who is suspended takes nothing */
    IS(WaitForMultipleObjectsEx(1, &event, FALSE, 20, TRUE), WAIT_OBJECT_0);
    IS(ResumeThread(thread), 1);
    IS(SetThreadPriority(thread, THREAD_PRIORITY_HIGHEST), TRUE);
    IS(GetThreadPriority(thread), THREAD_PRIORITY_HIGHEST);
    IS(SetEvent(event), TRUE);
    IS(end_of(thread), WAIT_OBJECT_0);
    IS(GetProcessAffinityMask(GetCurrentProcess(), &own, &all) && own == all, TRUE);
    IS(SetProcessAffinityMask(GetCurrentProcess(), all) && !SleepEx(1, TRUE), TRUE);
    HANDLE self = OpenProcess(PROCESS_ALL_ACCESS, FALSE, GetCurrentProcessId());
    IS(self && CloseHandle(self), TRUE);
    FAILS(OpenProcess(PROCESS_ALL_ACCESS, FALSE, GetCurrentProcessId() + 4), NULL,
          ERROR_INVALID_PARAMETER);
}

/* --- Timers. --- */

static BOOL set(HANDLE timer, LONGLONG ms, LONG period)
{
    const LARGE_INTEGER due = { .QuadPart = -MS * ms };
    return SetWaitableTimer(timer, &due, period, NULL, NULL, FALSE);
}

static void check_timers(void)
{
    HANDLE one = CreateWaitableTimerW(NULL, FALSE, NULL),
           all = CreateWaitableTimerA(NULL, TRUE, "clock"), both[2] = { one, all };
    HANDLE unset = CreateWaitableTimerExW(NULL, L"clock", 0, SYNCHRONIZE);
    IS(set(one, 20, 0) && set(all, 5, 0), TRUE);
    IS(WaitForMultipleObjects(2, both, FALSE, INFINITE), WAIT_OBJECT_0 + 1);
    IS(WaitForMultipleObjects(2, both, TRUE, INFINITE), WAIT_OBJECT_0);
    IS(WaitForSingleObject(one, 0), WAIT_TIMEOUT); /* one wait takes it */
    IS(WaitForSingleObject(unset, 0), WAIT_TIMEOUT);
    IS(set(one, 6, 4), TRUE);
    for (int i = 0; i < 3; i++)
        IS(WaitForSingleObject(one, INFINITE), WAIT_OBJECT_0);
    IS(CancelWaitableTimer(one), TRUE);
    WaitForSingleObject(one, 0);
    IS(WaitForSingleObject(one, 20), WAIT_TIMEOUT);
    IS(CloseHandle(one) && CloseHandle(all) && CloseHandle(unset), TRUE);
}

/* --- Locks; tests/ring3/wakes.c has who waits for them. --- */

static CRITICAL_SECTION section;

static BOOL CALLBACK count_once(PINIT_ONCE once, PVOID count, PVOID *context)
{
    return ++*(int *)count;
}

static void check_locks(void)
{
    HMODULE base = GetModuleHandleA("kernelbase.dll");
    BOOL(WINAPI * wait_on)
    (PVOID, PVOID, SIZE_T, DWORD) = (void *)GetProcAddress(base, "WaitOnAddress");
    VOID(WINAPI * wake_all)(PVOID) = (void *)GetProcAddress(base, "WakeByAddressAll");
    LONG value = 0, zero = 0;
    SRWLOCK lock = SRWLOCK_INIT;
    INIT_ONCE done = INIT_ONCE_STATIC_INIT;
    int count = 0;
    wake_all(&value);
    FAILS(wait_on(&value, &zero, sizeof zero, 2), FALSE, ERROR_TIMEOUT);
    IS(InitializeCriticalSectionEx(&section, 7, 0), TRUE);
    DeleteCriticalSection(&section);
    IS(InitializeCriticalSectionAndSpinCount(&section, 77), TRUE);
    IS(SetCriticalSectionSpinCount(&section, 99), 77);
    IS(TryEnterCriticalSection(&section) && TryEnterCriticalSection(&section), TRUE);
    LeaveCriticalSection(&section);
    LeaveCriticalSection(&section);
    DeleteCriticalSection(&section);
    IS(TryAcquireSRWLockShared(&lock) && !TryAcquireSRWLockExclusive(&lock), TRUE);
    ReleaseSRWLockShared(&lock);
    for (int i = 0; i < 2; i++)
        IS(InitOnceExecuteOnce(&done, count_once, &count, NULL) && count == 1, TRUE);
}

static LONG ended;
static VOID WINAPI on_end(PVOID value) { ended += (LONG)(LONG_PTR)value; }
static DWORD slot;
static DWORD WINAPI use_slot(LPVOID value) { return FlsSetValue(slot, value); }

/* A thread's value gets its call when the thread ends. */
static void check_slots(void)
{
    slot = FlsAlloc(on_end);
    IS(end_of(start(use_slot, (PVOID)7, 0)), TRUE);
    IS(ended, 7);
    IS(FlsFree(slot) && !FlsFree(slot), TRUE);
}

/* --- Lists that threads push to, and take whole, at once. --- */

static SLIST_HEADER list;
static SLIST_ENTRY entries[ENTRIES];

static DWORD WINAPI take_and_give(LPVOID unused)
{
    for (unsigned i = 0; i < ITERATIONS; i++)
        for (PSLIST_ENTRY e = InterlockedFlushSList(&list), next; e; e = next) {
            next = e->Next;
            InterlockedPushEntrySList(&list, e);
        }
    return unused != NULL;
}

static void check_lists(void)
{
    HANDLE threads[THREADS];
    unsigned n;
    InitializeSListHead(&list);
    IS(InterlockedFlushSList(&list) == NULL, TRUE);
    for (n = 0; n < ENTRIES; n++)
        IS(InterlockedPushEntrySList(&list, &entries[n]) == (n ? &entries[n - 1] : NULL), TRUE);
    for (n = 0; n < THREADS; n++)
        threads[n] = start(take_and_give, NULL, 0);
    for (n = 0; n < THREADS; n++)
        IS(end_of(threads[n]), 0);
    n = 0;
    for (PSLIST_ENTRY e = InterlockedFlushSList(&list); e && n <= ENTRIES; e = e->Next)
        n++;
    IS(n, ENTRIES);
}

/* With a word: without what waits, where the machine's time is the host's. */
int main(int count, char **words)
{
    event = CreateEventA(NULL, FALSE, FALSE, NULL);
    const ULONG_PTR next = next_handle();
    check_threads();
    if (count == 1)
        check_timers();
    IS(next_handle(), next);
    check_locks();
    check_slots();
    check_lists();
    return check_result();
}
