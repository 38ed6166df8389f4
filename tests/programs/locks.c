/* SPDX-License-Identifier: MIT */
/* Objects, threads and locks of kernel32: what fails and why, what a thread leaves, who is woken.
 * Prints what is wrong, and how many checks it made. */
#define _WIN32_WINNT 0x0a00
#include <windows.h>
#include "check.h"

/* Handles that are closed are the next ones that are given; one that stays open, also after some
 * that were closed, makes others of them. */
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

static void objects(void)
{
    const ULONG_PTR next = next_handle();
    HANDLE shorter = CreateEventA(NULL, TRUE, FALSE, "system");
    SetLastError(ERROR_BUSY);
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, "Global\\system.c");
    IS(GetLastError(), ERROR_SUCCESS);
    HANDLE again = CreateEventA(NULL, TRUE, FALSE, "Local\\system.c");
    IS(GetLastError(), ERROR_ALREADY_EXISTS);
    IS(CloseHandle(event) && CloseHandle(again) && CloseHandle(shorter), 1);
    FAILS(CreateEventA(NULL, TRUE, FALSE, "a\\b") != NULL, 0, ERROR_PATH_NOT_FOUND);
    FAILS(HeapDestroy(GetProcessHeap()), 0, ERROR_INVALID_HANDLE);
    IS(next_handle(), next);
}

static volatile LONG calls;
static VOID NTAPI call(ULONG_PTR n) { calls = 10 * calls + (LONG)n; }

static DWORD WINAPI wait_alertably(LPVOID event)
{
    return WaitForSingleObjectEx(event, INFINITE, TRUE);
}

static void threads(void)
{
    const ULONG_PTR next = next_handle();
    static const int priorities[] = { THREAD_PRIORITY_IDLE,         THREAD_PRIORITY_LOWEST,
                                      THREAD_PRIORITY_BELOW_NORMAL, THREAD_PRIORITY_NORMAL,
                                      THREAD_PRIORITY_HIGHEST,      THREAD_PRIORITY_TIME_CRITICAL };
    DWORD id, code, flags = 9;
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, NULL);
    HANDLE thread = CreateThread(NULL, 0, wait_alertably, event, CREATE_SUSPENDED, &id);
    IS(GetThreadId(thread), id);
    IS(GetExitCodeThread(thread, &code) && code == STILL_ACTIVE, 1);
    for (unsigned i = 0; i < ARRAYSIZE(priorities); i++) {
        IS(SetThreadPriority(thread, priorities[i]), 1);
        IS(GetThreadPriority(thread), priorities[i]);
    }
    for (DWORD n = 1; n < MAXIMUM_SUSPEND_COUNT; n++)
        IS(SuspendThread(thread), n);
    FAILS(SuspendThread(thread), (DWORD)-1, ERROR_SIGNAL_REFUSED);
    for (DWORD n = MAXIMUM_SUSPEND_COUNT; n > 1; n--)
        IS(ResumeThread(thread), n);
    IS(QueueUserAPC(call, thread, 1) && QueueUserAPC(call, thread, 2), 1);
    HANDLE weak;
    weak = limited(thread, SYNCHRONIZE | THREAD_QUERY_INFORMATION);
    FAILS(QueueUserAPC(call, weak, 3), 0, ERROR_ACCESS_DENIED);
    IS(SuspendThread(weak), (DWORD)-1);
    IS(GetHandleInformation(weak, &flags) && !flags, 1);
    IS(CloseHandle(weak), 1);
    FAILS(GetHandleInformation(weak, &flags), 0, ERROR_INVALID_HANDLE);
    IS(SetEvent(event) && ResumeThread(thread) == 1, 1);
    IS(WaitForSingleObject(thread, 10000), WAIT_OBJECT_0);
    IS(calls, 12); /* before it began, and so not in its wait */
    IS(GetExitCodeThread(thread, &code) && code == WAIT_OBJECT_0, 1);
    FAILS(QueueUserAPC(call, thread, 3), 0, ERROR_GEN_FAILURE);
    IS(ResumeThread(thread), 0);
    IS(CloseHandle(thread) && CloseHandle(event), 1);
    DWORD_PTR own, all;
    IS(GetProcessAffinityMask(GetCurrentProcess(), &own, &all) && own == all, 1);
    IS(SetProcessAffinityMask(GetCurrentProcess(), all), 1);
    FAILS(SetProcessAffinityMask(GetCurrentProcess(), 0), 0, ERROR_INVALID_PARAMETER);
    FAILS(SetProcessAffinityMask(GetCurrentProcess(), ~all), 0, ERROR_INVALID_PARAMETER);
    HANDLE self = OpenProcess(PROCESS_ALL_ACCESS, FALSE, GetCurrentProcessId());
    IS(self && CloseHandle(self), 1);
    FAILS(OpenProcess(PROCESS_ALL_ACCESS, FALSE, GetCurrentProcessId() + 4) != NULL, 0,
          ERROR_INVALID_PARAMETER);
    IS(next_handle(), next);
}

static ULONGLONG free_memory(void)
{
    MEMORYSTATUSEX status = { .dwLength = sizeof status };
    IS(GlobalMemoryStatusEx(&status), 1);
    return status.ullAvailPhys;
}

/* Calls to this thread, and the ends of others, give back their pages. */
static void pages(void)
{
    CONTEXT context = { .ContextFlags = CONTEXT_CONTROL };
    HANDLE weak;
    calls = 0;
    IS(QueueUserAPC(call, GetCurrentThread(), 0) && SleepEx(0, TRUE) == WAIT_IO_COMPLETION, 1);
    const ULONGLONG before = free_memory();
    for (int i = 0; i < 100; i++)
        IS(QueueUserAPC(call, GetCurrentThread(), 0) && SleepEx(0, TRUE) == WAIT_IO_COMPLETION, 1);
    for (int i = 0; i < 20; i++) {
        HANDLE thread = CreateThread(NULL, 0, wait_alertably, NULL, CREATE_SUSPENDED, NULL);
        weak = limited(thread, THREAD_GET_CONTEXT);
        IS(GetThreadContext(weak, &context) && context.Rip, 1);
        FAILS(SetThreadContext(weak, &context), 0, ERROR_ACCESS_DENIED);
        IS(CloseHandle(weak) && TerminateThread(thread, 5), 1);
        IS(WaitForSingleObject(thread, 10000), WAIT_OBJECT_0);
        IS(ResumeThread(thread), 0); /* no longer suspended */
        IS(CloseHandle(thread), 1);
    }
    IS((LONGLONG)(before - free_memory()) < 50 * 4096,
       1); /* a thread's kernel stack has more than two */
}

/* --- Locks. --- */

static CRITICAL_SECTION section;
static CONDITION_VARIABLE condition = CONDITION_VARIABLE_INIT;
static SRWLOCK lock = SRWLOCK_INIT;
static LONG waiting, woken, value;

static DWORD WINAPI sleep_in_section(LPVOID unused)
{
    EnterCriticalSection(&section);
    for (waiting++; !value;)
        SleepConditionVariableCS(&condition, &section, INFINITE);
    woken++;
    LeaveCriticalSection(&section);
    return unused != NULL;
}

static DWORD WINAPI take_alone(LPVOID unused)
{
    AcquireSRWLockExclusive(&lock);
    InterlockedIncrement(&woken);
    ReleaseSRWLockExclusive(&lock);
    return unused != NULL;
}

/* Of a library that this program is not linked with. */
static BOOL(WINAPI *wait_on)(volatile VOID *address, PVOID compare, SIZE_T size, DWORD ms);
static VOID(WINAPI *wake_all)(PVOID address);

static DWORD WINAPI wait_on_value(LPVOID unused)
{
    LONG old = 1;
    while (value == 1)
        wait_on(&value, &old, sizeof old, INFINITE);
    return unused != NULL;
}

static void start_two(HANDLE *threads, LPTHREAD_START_ROUTINE routine)
{
    for (unsigned i = 0; i < 2; i++)
        threads[i] = CreateThread(NULL, 0, routine, NULL, 0, NULL);
}

static void end_two(HANDLE *threads)
{
    IS(WaitForMultipleObjects(2, threads, TRUE, 10000), WAIT_OBJECT_0);
    IS(CloseHandle(threads[0]) && CloseHandle(threads[1]), 1);
}

static void locks(void)
{
    HANDLE threads[2];
    HMODULE base = GetModuleHandleA("kernelbase.dll");
    wait_on = (void *)GetProcAddress(base, "WaitOnAddress");
    wake_all = (void *)GetProcAddress(base, "WakeByAddressAll");
    FAILS(wait_on(&woken, &woken, sizeof woken, 1), 0,
          ERROR_TIMEOUT); /* from now on it has an event */
    const ULONG_PTR next = next_handle();
    IS(InitializeCriticalSectionEx(&section, 7, 0), 1);
    IS(InitializeCriticalSectionAndSpinCount(&section, 77), 1);
    IS(SetCriticalSectionSpinCount(&section, 99), 77);
    IS(SetCriticalSectionSpinCount(&section, 0), 99);
    start_two(threads, sleep_in_section);
    for (LONG n = 0; n < 2;) {
        EnterCriticalSection(&section);
        n = waiting;
        LeaveCriticalSection(&section);
        Sleep(1);
    }
    EnterCriticalSection(&section);
    value = 1;
    IS(woken, 0);
    LeaveCriticalSection(&section);
    WakeAllConditionVariable(&condition);
    end_two(threads);
    IS(woken, 2);
    DeleteCriticalSection(&section);
    AcquireSRWLockShared(&lock);
    AcquireSRWLockShared(&lock);
    start_two(threads, take_alone);
    Sleep(5); /* until they wait */
    ReleaseSRWLockShared(&lock);
    IS(WaitForSingleObject(threads[0], 2), WAIT_TIMEOUT);
    IS(woken, 2);
    ReleaseSRWLockShared(&lock);
    end_two(threads);
    IS(woken, 4);
    start_two(threads, wait_on_value);
    Sleep(5);
    value = 2;
    wake_all(&value);
    end_two(threads);
    LONG now = 2;
    FAILS(wait_on(&value, &now, sizeof now, 2), 0, ERROR_TIMEOUT);
    FAILS(wait_on(&value, &now, 3, 2), 0, ERROR_INVALID_PARAMETER);
    INIT_ONCE once = INIT_ONCE_STATIC_INIT;
    BOOL pending;
    PVOID context;
    FAILS(InitOnceBeginInitialize(&once, INIT_ONCE_ASYNC | INIT_ONCE_CHECK_ONLY, &pending, NULL), 0,
          ERROR_INVALID_PARAMETER);
    FAILS(InitOnceBeginInitialize(&once, INIT_ONCE_CHECK_ONLY, &pending, NULL), 0,
          ERROR_GEN_FAILURE);
    IS(InitOnceBeginInitialize(&once, 0, &pending, &context) && pending, 1);
    FAILS(InitOnceComplete(&once, 0, (PVOID)2), 0, ERROR_INVALID_PARAMETER);
    IS(InitOnceComplete(&once, 0, &section), 1);
    FAILS(InitOnceComplete(&once, 0, &section), 0, ERROR_GEN_FAILURE);
    IS(InitOnceBeginInitialize(&once, 0, &pending, &context) && !pending, 1);
    IS(context == &section, 1);
    IS(next_handle(), next); /* what threads waited by went with them */
}

/* Stacks of threads that reserve little and much. */
static DWORD WINAPI stack_room(LPVOID unused)
{
    MEMORY_BASIC_INFORMATION info = { 0 };
    VirtualQuery(&info, &info, sizeof info);
    return (DWORD)((char *)&info - (char *)info.AllocationBase);
}

int main(void)
{
    DWORD code;
    objects();
    threads();
    pages();
    locks();
    HANDLE thread =
        CreateThread(NULL, 0x80000, stack_room, NULL, STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    WaitForSingleObject(thread, 10000);
    IS(GetExitCodeThread(thread, &code) && code >= 0x70000, 1);
    return check_result();
}
