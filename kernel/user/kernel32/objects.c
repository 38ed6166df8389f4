/* SPDX-License-Identifier: MIT */
/* Events, semaphores and mutexes. NT: they have no names; one with a name is refused, because
 * another would not find it. */
#include "kernel32.h"

NTSTATUS NTAPI NtCreateEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess, PVOID ObjectAttributes,
                             ULONG EventType, BOOLEAN InitialState);
NTSTATUS NTAPI NtSetEvent(HANDLE EventHandle, PLONG PreviousState);
NTSTATUS NTAPI NtResetEvent(HANDLE EventHandle, PLONG PreviousState);
NTSTATUS NTAPI NtPulseEvent(HANDLE EventHandle, PLONG PreviousState);
NTSTATUS NTAPI NtCreateSemaphore(PHANDLE SemaphoreHandle, ACCESS_MASK DesiredAccess,
                                 PVOID ObjectAttributes, LONG InitialCount, LONG MaximumCount);
NTSTATUS NTAPI NtReleaseSemaphore(HANDLE SemaphoreHandle, LONG ReleaseCount, PLONG PreviousCount);
NTSTATUS NTAPI NtCreateMutant(PHANDLE MutantHandle, ACCESS_MASK DesiredAccess,
                              PVOID ObjectAttributes, BOOLEAN InitialOwner);
NTSTATUS NTAPI NtReleaseMutant(HANDLE MutantHandle, PLONG PreviousCount);

static HANDLE result(const void *name, NTSTATUS status, HANDLE *handle)
{
    if (!succeeded(status))
        return NULL;
    if (!name) {
        teb()->last_error = ERROR_SUCCESS; /* not ERROR_ALREADY_EXISTS */
        return *handle;
    }
    NtClose(*handle);
    fail(ERROR_NOT_SUPPORTED);
    return NULL;
}

static HANDLE event(const void *name, DWORD flags, DWORD access)
{
    HANDLE handle;
    ULONG type = flags & CREATE_EVENT_MANUAL_RESET ? 0 : 1;
    BOOLEAN set = (flags & CREATE_EVENT_INITIAL_SET) != 0;
    return result(name, NtCreateEvent(&handle, access, NULL, type, set), &handle);
}

static DWORD event_flags(BOOL manual, BOOL set)
{
    return (manual ? CREATE_EVENT_MANUAL_RESET : 0) | (set ? CREATE_EVENT_INITIAL_SET : 0);
}

HANDLE WINAPI CreateEventW(LPSECURITY_ATTRIBUTES lpEventAttributes, WINBOOL bManualReset,
                           WINBOOL bInitialState, LPCWSTR lpName)
{
    (void)lpEventAttributes;
    return event(lpName, event_flags(bManualReset, bInitialState), EVENT_ALL_ACCESS);
}

HANDLE WINAPI CreateEventA(LPSECURITY_ATTRIBUTES lpEventAttributes, WINBOOL bManualReset,
                           WINBOOL bInitialState, LPCSTR lpName)
{
    (void)lpEventAttributes;
    return event(lpName, event_flags(bManualReset, bInitialState), EVENT_ALL_ACCESS);
}

HANDLE WINAPI CreateEventExW(LPSECURITY_ATTRIBUTES lpEventAttributes, LPCWSTR lpName, DWORD dwFlags,
                             DWORD dwDesiredAccess)
{
    (void)lpEventAttributes;
    return event(lpName, dwFlags, dwDesiredAccess);
}

HANDLE WINAPI CreateEventExA(LPSECURITY_ATTRIBUTES lpEventAttributes, LPCSTR lpName, DWORD dwFlags,
                             DWORD dwDesiredAccess)
{
    (void)lpEventAttributes;
    return event(lpName, dwFlags, dwDesiredAccess);
}

WINBOOL WINAPI SetEvent(HANDLE hEvent) { return succeeded(NtSetEvent(hEvent, NULL)); }
WINBOOL WINAPI ResetEvent(HANDLE hEvent) { return succeeded(NtResetEvent(hEvent, NULL)); }
WINBOOL WINAPI PulseEvent(HANDLE hEvent) { return succeeded(NtPulseEvent(hEvent, NULL)); }

static HANDLE semaphore(const void *name, LONG initial, LONG maximum)
{
    HANDLE handle;
    return result(name,
                  NtCreateSemaphore(&handle, SEMAPHORE_ALL_ACCESS, NULL, initial, maximum),
                  &handle);
}

HANDLE WINAPI CreateSemaphoreW(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount,
                               LONG lMaximumCount, LPCWSTR lpName)
{
    (void)lpSemaphoreAttributes;
    return semaphore(lpName, lInitialCount, lMaximumCount);
}

HANDLE WINAPI CreateSemaphoreA(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount,
                               LONG lMaximumCount, LPCSTR lpName)
{
    (void)lpSemaphoreAttributes;
    return semaphore(lpName, lInitialCount, lMaximumCount);
}

WINBOOL WINAPI ReleaseSemaphore(HANDLE hSemaphore, LONG lReleaseCount, LPLONG lpPreviousCount)
{
    return succeeded(NtReleaseSemaphore(hSemaphore, lReleaseCount, lpPreviousCount));
}

static HANDLE mutex(const void *name, BOOL owned)
{
    HANDLE handle;
    return result(name, NtCreateMutant(&handle, MUTANT_ALL_ACCESS, NULL, owned != 0), &handle);
}

HANDLE WINAPI CreateMutexW(LPSECURITY_ATTRIBUTES lpMutexAttributes, WINBOOL bInitialOwner,
                           LPCWSTR lpName)
{
    (void)lpMutexAttributes;
    return mutex(lpName, bInitialOwner);
}

HANDLE WINAPI CreateMutexA(LPSECURITY_ATTRIBUTES lpMutexAttributes, WINBOOL bInitialOwner,
                           LPCSTR lpName)
{
    (void)lpMutexAttributes;
    return mutex(lpName, bInitialOwner);
}

WINBOOL WINAPI ReleaseMutex(HANDLE hMutex) { return succeeded(NtReleaseMutant(hMutex, NULL)); }
