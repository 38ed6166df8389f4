/* SPDX-License-Identifier: MIT */
/* Events, semaphores, mutexes and timers. Their names are in the kernel's folder \BaseNamedObjects,
 * with or without Local\ or Global\ in front. NT: in Windows each session has its own folder. */
#include "kernel32.h"

NTSTATUS NTAPI NtCreateEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess,
                             POBJECT_ATTRIBUTES ObjectAttributes, ULONG EventType,
                             BOOLEAN InitialState);
NTSTATUS NTAPI NtOpenEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess,
                           POBJECT_ATTRIBUTES ObjectAttributes);
NTSTATUS NTAPI NtSetEvent(HANDLE EventHandle, PLONG PreviousState);
NTSTATUS NTAPI NtResetEvent(HANDLE EventHandle, PLONG PreviousState);
NTSTATUS NTAPI NtPulseEvent(HANDLE EventHandle, PLONG PreviousState);
NTSTATUS NTAPI NtCreateSemaphore(PHANDLE SemaphoreHandle, ACCESS_MASK DesiredAccess,
                                 POBJECT_ATTRIBUTES ObjectAttributes, LONG InitialCount,
                                 LONG MaximumCount);
NTSTATUS NTAPI NtOpenSemaphore(PHANDLE SemaphoreHandle, ACCESS_MASK DesiredAccess,
                               POBJECT_ATTRIBUTES ObjectAttributes);
NTSTATUS NTAPI NtReleaseSemaphore(HANDLE SemaphoreHandle, LONG ReleaseCount, PLONG PreviousCount);
NTSTATUS NTAPI NtCreateMutant(PHANDLE MutantHandle, ACCESS_MASK DesiredAccess,
                              POBJECT_ATTRIBUTES ObjectAttributes, BOOLEAN InitialOwner);
NTSTATUS NTAPI NtOpenMutant(PHANDLE MutantHandle, ACCESS_MASK DesiredAccess,
                            POBJECT_ATTRIBUTES ObjectAttributes);
NTSTATUS NTAPI NtCreateTimer(PHANDLE TimerHandle, ACCESS_MASK DesiredAccess,
                             POBJECT_ATTRIBUTES ObjectAttributes, ULONG TimerType);
NTSTATUS NTAPI NtOpenTimer(PHANDLE TimerHandle, ACCESS_MASK DesiredAccess,
                           POBJECT_ATTRIBUTES ObjectAttributes);
NTSTATUS NTAPI NtSetTimer(HANDLE TimerHandle, const LARGE_INTEGER *DueTime,
                          PTIMERAPCROUTINE TimerApcRoutine, PVOID TimerContext, BOOLEAN ResumeTimer,
                          LONG Period, PBOOLEAN PreviousState);
NTSTATUS NTAPI NtCancelTimer(HANDLE TimerHandle, PBOOLEAN CurrentState);
NTSTATUS NTAPI NtReleaseMutant(HANDLE MutantHandle, PLONG PreviousCount);

/* --- Names. --- */

static const WCHAR folder[] = L"\\BaseNamedObjects\\";
#define FOLDER (ARRAYSIZE(folder) - 1)

struct name {
    OBJECT_ATTRIBUTES attributes;
    UNICODE_STRING string;
    WCHAR text[FOLDER + MAX_PATH];
};

static const WCHAR *without_scope(const WCHAR *name)
{
    static const WCHAR *const scopes[] = { L"Local\\", L"Global\\" };
    for (unsigned i = 0; i < ARRAYSIZE(scopes); i++) {
        unsigned n = 0;
        while (scopes[i][n] && name[n] == scopes[i][n])
            n++;
        if (!scopes[i][n])
            return name + n;
    }
    return name;
}

/* False with the last error: the name is too long. NULL: no name. */
static bool set_object_name(struct name *n, const WCHAR *name)
{
    unsigned length = 0;
    InitializeObjectAttributes(&n->attributes, NULL, OBJ_OPENIF, NULL, NULL);
    if (!name)
        return true;
    memcpy(n->text, folder, sizeof folder);
    for (name = without_scope(name); name[length]; length++) {
        if (length == MAX_PATH - 1)
            return fail(ERROR_FILENAME_EXCED_RANGE);
        n->text[FOLDER + length] = name[length];
    }
    n->string.Length = n->string.MaximumLength = (USHORT)((FOLDER + length) * sizeof(WCHAR));
    n->string.Buffer = n->text;
    n->attributes.ObjectName = length ? &n->string : NULL;
    return true;
}

/* Converts a narrow name; NULL stays NULL. False as above. */
static bool widen_name(const char *name, WCHAR *buffer, const WCHAR **wide)
{
    UNICODE_STRING string;
    *wide = name ? buffer : NULL;
    return !name || widen(name, &string, buffer) || fail(ERROR_FILENAME_EXCED_RANGE);
}

/* The last error is ERROR_ALREADY_EXISTS if the object existed. */
static HANDLE object_handle(NTSTATUS status, const HANDLE *handle)
{
    if (!succeeded(status))
        return NULL;
    teb()->last_error = status == STATUS_OBJECT_NAME_EXISTS ? ERROR_ALREADY_EXISTS : ERROR_SUCCESS;
    return *handle;
}

typedef NTSTATUS NTAPI open_function(PHANDLE handle, ACCESS_MASK access,
                                     POBJECT_ATTRIBUTES attributes);

static HANDLE open_wide(open_function *function, DWORD access, const WCHAR *name)
{
    struct name n;
    HANDLE handle = NULL;
    if (!name || !set_object_name(&n, name)) {
        if (!name)
            fail(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    return succeeded(function(&handle, access, &n.attributes)) ? handle : NULL;
}

static HANDLE open_narrow(open_function *function, DWORD access, const char *name)
{
    WCHAR buffer[MAX_PATH];
    const WCHAR *wide;
    return widen_name(name, buffer, &wide) ? open_wide(function, access, wide) : NULL;
}

#define OPEN(wide, narrow, service)                                                                \
    HANDLE WINAPI wide(DWORD dwDesiredAccess, WINBOOL bInheritHandle, LPCWSTR lpName)              \
    {                                                                                              \
        (void)bInheritHandle;                                                                      \
        return open_wide(service, dwDesiredAccess, lpName);                                        \
    }                                                                                              \
    HANDLE WINAPI narrow(DWORD dwDesiredAccess, WINBOOL bInheritHandle, LPCSTR lpName)             \
    {                                                                                              \
        (void)bInheritHandle;                                                                      \
        return open_narrow(service, dwDesiredAccess, lpName);                                      \
    }

/* --- Events. --- */

HANDLE WINAPI CreateEventExW(LPSECURITY_ATTRIBUTES lpEventAttributes, LPCWSTR lpName, DWORD dwFlags,
                             DWORD dwDesiredAccess)
{
    struct name n;
    HANDLE handle = NULL;
    (void)lpEventAttributes;
    return set_object_name(&n, lpName)
               ? object_handle(NtCreateEvent(&handle, dwDesiredAccess, &n.attributes,
                                             dwFlags & CREATE_EVENT_MANUAL_RESET ? 0 : 1,
                                             (dwFlags & CREATE_EVENT_INITIAL_SET) != 0),
                               &handle)
               : NULL;
}

HANDLE WINAPI CreateEventExA(LPSECURITY_ATTRIBUTES lpEventAttributes, LPCSTR lpName, DWORD dwFlags,
                             DWORD dwDesiredAccess)
{
    WCHAR buffer[MAX_PATH];
    const WCHAR *wide;
    return widen_name(lpName, buffer, &wide)
               ? CreateEventExW(lpEventAttributes, wide, dwFlags, dwDesiredAccess)
               : NULL;
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

HANDLE WINAPI CreateEventA(LPSECURITY_ATTRIBUTES lpEventAttributes, WINBOOL bManualReset,
                           WINBOOL bInitialState, LPCSTR lpName)
{
    return CreateEventExA(lpEventAttributes, lpName, event_flags(bManualReset, bInitialState),
                          EVENT_ALL_ACCESS);
}

OPEN(OpenEventW, OpenEventA, NtOpenEvent)

WINBOOL WINAPI SetEvent(HANDLE hEvent) { return succeeded(NtSetEvent(hEvent, NULL)); }
WINBOOL WINAPI ResetEvent(HANDLE hEvent) { return succeeded(NtResetEvent(hEvent, NULL)); }
WINBOOL WINAPI PulseEvent(HANDLE hEvent) { return succeeded(NtPulseEvent(hEvent, NULL)); }

/* --- Semaphores. --- */

HANDLE WINAPI CreateSemaphoreExW(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount,
                                 LONG lMaximumCount, LPCWSTR lpName, DWORD dwFlags,
                                 DWORD dwDesiredAccess)
{
    struct name n;
    HANDLE handle = NULL;
    (void)lpSemaphoreAttributes, (void)dwFlags;
    return set_object_name(&n, lpName)
               ? object_handle(NtCreateSemaphore(&handle, dwDesiredAccess, &n.attributes,
                                                 lInitialCount, lMaximumCount),
                               &handle)
               : NULL;
}

HANDLE WINAPI CreateSemaphoreExA(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount,
                                 LONG lMaximumCount, LPCSTR lpName, DWORD dwFlags,
                                 DWORD dwDesiredAccess)
{
    WCHAR buffer[MAX_PATH];
    const WCHAR *wide;
    return widen_name(lpName, buffer, &wide)
               ? CreateSemaphoreExW(lpSemaphoreAttributes, lInitialCount, lMaximumCount, wide,
                                    dwFlags, dwDesiredAccess)
               : NULL;
}

HANDLE WINAPI CreateSemaphoreW(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount,
                               LONG lMaximumCount, LPCWSTR lpName)
{
    return CreateSemaphoreExW(lpSemaphoreAttributes, lInitialCount, lMaximumCount, lpName, 0,
                              SEMAPHORE_ALL_ACCESS);
}

HANDLE WINAPI CreateSemaphoreA(LPSECURITY_ATTRIBUTES lpSemaphoreAttributes, LONG lInitialCount,
                               LONG lMaximumCount, LPCSTR lpName)
{
    return CreateSemaphoreExA(lpSemaphoreAttributes, lInitialCount, lMaximumCount, lpName, 0,
                              SEMAPHORE_ALL_ACCESS);
}

OPEN(OpenSemaphoreW, OpenSemaphoreA, NtOpenSemaphore)

WINBOOL WINAPI ReleaseSemaphore(HANDLE hSemaphore, LONG lReleaseCount, LPLONG lpPreviousCount)
{
    return succeeded(NtReleaseSemaphore(hSemaphore, lReleaseCount, lpPreviousCount));
}

/* --- Mutexes. --- */

HANDLE WINAPI CreateMutexExW(LPSECURITY_ATTRIBUTES lpMutexAttributes, LPCWSTR lpName, DWORD dwFlags,
                             DWORD dwDesiredAccess)
{
    struct name n;
    HANDLE handle = NULL;
    (void)lpMutexAttributes;
    return set_object_name(&n, lpName)
               ? object_handle(NtCreateMutant(&handle, dwDesiredAccess, &n.attributes,
                                              (dwFlags & CREATE_MUTEX_INITIAL_OWNER) != 0),
                               &handle)
               : NULL;
}

HANDLE WINAPI CreateMutexExA(LPSECURITY_ATTRIBUTES lpMutexAttributes, LPCSTR lpName, DWORD dwFlags,
                             DWORD dwDesiredAccess)
{
    WCHAR buffer[MAX_PATH];
    const WCHAR *wide;
    return widen_name(lpName, buffer, &wide)
               ? CreateMutexExW(lpMutexAttributes, wide, dwFlags, dwDesiredAccess)
               : NULL;
}

HANDLE WINAPI CreateMutexW(LPSECURITY_ATTRIBUTES lpMutexAttributes, WINBOOL bInitialOwner,
                           LPCWSTR lpName)
{
    return CreateMutexExW(lpMutexAttributes, lpName, bInitialOwner ? CREATE_MUTEX_INITIAL_OWNER : 0,
                          MUTANT_ALL_ACCESS);
}

HANDLE WINAPI CreateMutexA(LPSECURITY_ATTRIBUTES lpMutexAttributes, WINBOOL bInitialOwner,
                           LPCSTR lpName)
{
    return CreateMutexExA(lpMutexAttributes, lpName, bInitialOwner ? CREATE_MUTEX_INITIAL_OWNER : 0,
                          MUTANT_ALL_ACCESS);
}

OPEN(OpenMutexW, OpenMutexA, NtOpenMutant)

WINBOOL WINAPI ReleaseMutex(HANDLE hMutex) { return succeeded(NtReleaseMutant(hMutex, NULL)); }

/* --- Timers. --- */

#define TIMER_FLAGS (CREATE_WAITABLE_TIMER_MANUAL_RESET | 2 /* of high resolution: all are */)

HANDLE WINAPI CreateWaitableTimerExW(LPSECURITY_ATTRIBUTES lpTimerAttributes, LPCWSTR lpTimerName,
                                     DWORD dwFlags, DWORD dwDesiredAccess)
{
    struct name n;
    HANDLE handle = NULL;
    (void)lpTimerAttributes;
    if (dwFlags & ~(DWORD)TIMER_FLAGS) {
        fail(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    return set_object_name(&n, lpTimerName)
               ? object_handle(NtCreateTimer(&handle, dwDesiredAccess, &n.attributes,
                                             dwFlags & CREATE_WAITABLE_TIMER_MANUAL_RESET ? 0 : 1),
                               &handle)
               : NULL;
}

HANDLE WINAPI CreateWaitableTimerExA(LPSECURITY_ATTRIBUTES lpTimerAttributes, LPCSTR lpTimerName,
                                     DWORD dwFlags, DWORD dwDesiredAccess)
{
    WCHAR buffer[MAX_PATH];
    const WCHAR *wide;
    return widen_name(lpTimerName, buffer, &wide)
               ? CreateWaitableTimerExW(lpTimerAttributes, wide, dwFlags, dwDesiredAccess)
               : NULL;
}

HANDLE WINAPI CreateWaitableTimerW(LPSECURITY_ATTRIBUTES lpTimerAttributes, WINBOOL bManualReset,
                                   LPCWSTR lpTimerName)
{
    return CreateWaitableTimerExW(lpTimerAttributes, lpTimerName,
                                  bManualReset ? CREATE_WAITABLE_TIMER_MANUAL_RESET : 0,
                                  TIMER_ALL_ACCESS);
}

HANDLE WINAPI CreateWaitableTimerA(LPSECURITY_ATTRIBUTES lpTimerAttributes, WINBOOL bManualReset,
                                   LPCSTR lpTimerName)
{
    return CreateWaitableTimerExA(lpTimerAttributes, lpTimerName,
                                  bManualReset ? CREATE_WAITABLE_TIMER_MANUAL_RESET : 0,
                                  TIMER_ALL_ACCESS);
}

OPEN(OpenWaitableTimerW, OpenWaitableTimerA, NtOpenTimer)

/* fResume: TRUE, and the last error is ERROR_NOT_SUPPORTED. */
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

/* NT: WakeContext and TolerableDelay have no effect: it wakes nothing, and is not late. */
WINBOOL WINAPI SetWaitableTimerEx(HANDLE hTimer, const LARGE_INTEGER *lpDueTime, LONG lPeriod,
                                  PTIMERAPCROUTINE pfnCompletionRoutine,
                                  LPVOID lpArgToCompletionRoutine, PREASON_CONTEXT WakeContext,
                                  ULONG TolerableDelay)
{
    (void)WakeContext, (void)TolerableDelay;
    return SetWaitableTimer(hTimer, lpDueTime, lPeriod, pfnCompletionRoutine,
                            lpArgToCompletionRoutine, FALSE);
}

WINBOOL WINAPI CancelWaitableTimer(HANDLE hTimer) { return succeeded(NtCancelTimer(hTimer, NULL)); }
