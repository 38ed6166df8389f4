/* SPDX-License-Identifier: MIT */
/* Events, semaphores, mutexes and timers. NT: names are ignored, and nothing opens by one. */
#include "kernel32.h"

NTSTATUS NTAPI NtCreateEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess,
                             POBJECT_ATTRIBUTES ObjectAttributes, ULONG EventType,
                             BOOLEAN InitialState);
NTSTATUS NTAPI NtSetEvent(HANDLE EventHandle, PLONG PreviousState);
NTSTATUS NTAPI NtResetEvent(HANDLE EventHandle, PLONG PreviousState);
NTSTATUS NTAPI NtCreateSemaphore(PHANDLE SemaphoreHandle, ACCESS_MASK DesiredAccess,
                                 POBJECT_ATTRIBUTES ObjectAttributes, LONG InitialCount,
                                 LONG MaximumCount);
NTSTATUS NTAPI NtReleaseSemaphore(HANDLE SemaphoreHandle, LONG ReleaseCount, PLONG PreviousCount);
NTSTATUS NTAPI NtCreateMutant(PHANDLE MutantHandle, ACCESS_MASK DesiredAccess,
                              POBJECT_ATTRIBUTES ObjectAttributes, BOOLEAN InitialOwner);
NTSTATUS NTAPI NtCreateTimer(PHANDLE TimerHandle, ACCESS_MASK DesiredAccess,
                             POBJECT_ATTRIBUTES ObjectAttributes, ULONG TimerType);
NTSTATUS NTAPI NtSetTimer(HANDLE TimerHandle, const LARGE_INTEGER *DueTime,
                          PTIMERAPCROUTINE TimerApcRoutine, PVOID TimerContext, BOOLEAN ResumeTimer,
                          LONG Period, PBOOLEAN PreviousState);
NTSTATUS NTAPI NtCancelTimer(HANDLE TimerHandle, PBOOLEAN CurrentState);
NTSTATUS NTAPI NtReleaseMutant(HANDLE MutantHandle, PLONG PreviousCount);

/* The last error is not ERROR_ALREADY_EXISTS. */
static HANDLE object_handle(NTSTATUS status, const HANDLE *handle)
{
    if (!succeeded(status))
        return NULL;
    teb()->last_error = ERROR_SUCCESS;
    return *handle;
}

/* --- Events. --- */

HANDLE WINAPI CreateEventExW(LPSECURITY_ATTRIBUTES lpEventAttributes, LPCWSTR lpName, DWORD dwFlags,
                             DWORD dwDesiredAccess)
{
    HANDLE handle = NULL;
    return object_handle(NtCreateEvent(&handle, dwDesiredAccess, NULL,
                                       dwFlags & CREATE_EVENT_MANUAL_RESET ? 0 : 1,
                                       (dwFlags & CREATE_EVENT_INITIAL_SET) != 0),
                         &handle);
}

static DWORD event_flags(BOOL manual, BOOL set)
{
    return (manual ? CREATE_EVENT_MANUAL_RESET : 0) | (set ? CREATE_EVENT_INITIAL_SET : 0);
}

HANDLE WINAPI CreateEventW(LPSECURITY_ATTRIBUTES lpEventAttributes, WINBOOL bManualReset,
                           WINBOOL bInitialState, LPCWSTR lpName)
{
    return CreateEventExW(lpEventAttributes, lpName, event_flags(bManualReset, bInitialState),
                          EVENT_ALL_ACCESS);
}

WINBOOL WINAPI SetEvent(HANDLE hEvent) { return succeeded(NtSetEvent(hEvent, NULL)); }
WINBOOL WINAPI ResetEvent(HANDLE hEvent) { return succeeded(NtResetEvent(hEvent, NULL)); }

/* --- Semaphores. --- */

HANDLE WINAPI CreateSemaphoreExW(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount,
                                 LONG lMaximumCount, LPCWSTR lpName, DWORD dwFlags,
                                 DWORD dwDesiredAccess)
{
    HANDLE handle = NULL;
    return object_handle(
        NtCreateSemaphore(&handle, dwDesiredAccess, NULL, lInitialCount, lMaximumCount), &handle);
}

HANDLE WINAPI CreateSemaphoreW(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount,
                               LONG lMaximumCount, LPCWSTR lpName)
{
    return CreateSemaphoreExW(lpSemaphoreAttributes, lInitialCount, lMaximumCount, lpName, 0,
                              SEMAPHORE_ALL_ACCESS);
}

WINBOOL WINAPI ReleaseSemaphore(HANDLE hSemaphore, LONG lReleaseCount, LPLONG lpPreviousCount)
{
    return succeeded(NtReleaseSemaphore(hSemaphore, lReleaseCount, lpPreviousCount));
}

/* --- Mutexes. --- */

HANDLE WINAPI CreateMutexExW(LPSECURITY_ATTRIBUTES lpMutexAttributes, LPCWSTR lpName, DWORD dwFlags,
                             DWORD dwDesiredAccess)
{
    HANDLE handle = NULL;
    return object_handle(NtCreateMutant(&handle, dwDesiredAccess, NULL,
                                        (dwFlags & CREATE_MUTEX_INITIAL_OWNER) != 0),
                         &handle);
}

HANDLE WINAPI CreateMutexW(LPSECURITY_ATTRIBUTES lpMutexAttributes, WINBOOL bInitialOwner,
                           LPCWSTR lpName)
{
    return CreateMutexExW(lpMutexAttributes, lpName, bInitialOwner ? CREATE_MUTEX_INITIAL_OWNER : 0,
                          MUTANT_ALL_ACCESS);
}

WINBOOL WINAPI ReleaseMutex(HANDLE hMutex) { return succeeded(NtReleaseMutant(hMutex, NULL)); }

/* --- Timers. --- */

#define TIMER_FLAGS (CREATE_WAITABLE_TIMER_MANUAL_RESET | 2 /* of high resolution: all are */)

HANDLE WINAPI CreateWaitableTimerExW(LPSECURITY_ATTRIBUTES lpTimerAttributes, LPCWSTR lpTimerName,
                                     DWORD dwFlags, DWORD dwDesiredAccess)
{
    HANDLE handle = NULL;
    if (dwFlags & ~(DWORD)TIMER_FLAGS) {
        fail(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    return object_handle(NtCreateTimer(&handle, dwDesiredAccess, NULL,
                                       dwFlags & CREATE_WAITABLE_TIMER_MANUAL_RESET ? 0 : 1),
                         &handle);
}

HANDLE WINAPI CreateWaitableTimerW(LPSECURITY_ATTRIBUTES lpTimerAttributes, WINBOOL bManualReset,
                                   LPCWSTR lpTimerName)
{
    return CreateWaitableTimerExW(lpTimerAttributes, lpTimerName,
                                  bManualReset ? CREATE_WAITABLE_TIMER_MANUAL_RESET : 0,
                                  TIMER_ALL_ACCESS);
}

/* fResume: TRUE, and the last error is ERROR_NOT_SUPPORTED. NT: no routine is called. */
WINBOOL WINAPI SetWaitableTimer(HANDLE hTimer, const LARGE_INTEGER *lpDueTime, LONG lPeriod,
                                PTIMERAPCROUTINE pfnCompletionRoutine,
                                LPVOID lpArgToCompletionRoutine, WINBOOL fResume)
{
    NTSTATUS status = NtSetTimer(hTimer, lpDueTime, pfnCompletionRoutine, lpArgToCompletionRoutine,
                                 fResume != 0, lPeriod, NULL);
    if (status == STATUS_TIMER_RESUME_IGNORED)
        fail(ERROR_NOT_SUPPORTED);
    return succeeded(status);
}

WINBOOL WINAPI CancelWaitableTimer(HANDLE hTimer) { return succeeded(NtCancelTimer(hTimer, NULL)); }
