/* SPDX-License-Identifier: MIT */
/* What a C library needs at its start and end: pointers that no stray write can forge, settings of
 * heaps, local time. NT: local time is UTC. */
#include "kernel32.h"
#include "kernel/user/ntdll/random.h"

/* --- Encoded pointers. --- */

static ULONG_PTR secret(void)
{
    static ULONG_PTR chosen;
    ULONG_PTR none = 0;
    if (!__atomic_load_n(&chosen, __ATOMIC_RELAXED))
        __atomic_compare_exchange_n(&chosen, &none, random_bits() | 1, FALSE, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
    return __atomic_load_n(&chosen, __ATOMIC_RELAXED);
}

static ULONG_PTR turned(ULONG_PTR n, unsigned by) { return n >> by | n << (64 - by); }

PVOID WINAPI EncodePointer(PVOID Ptr) { return (PVOID)turned((ULONG_PTR)Ptr ^ secret(), 17); }

PVOID WINAPI DecodePointer(PVOID Ptr) { return (PVOID)(turned((ULONG_PTR)Ptr, 47) ^ secret()); }

/* --- Heaps: as they are. --- */

#define LOW_FRAGMENTATION 2u

WINBOOL WINAPI HeapSetInformation(HANDLE HeapHandle, HEAP_INFORMATION_CLASS HeapInformationClass,
                                  PVOID HeapInformation, SIZE_T HeapInformationLength)
{
    return HeapInformationClass == HeapCompatibilityInformation ||
                   HeapInformationClass == HeapEnableTerminationOnCorruption
               ? TRUE
               : fail(ERROR_INVALID_PARAMETER);
}

WINBOOL WINAPI HeapQueryInformation(HANDLE HeapHandle, HEAP_INFORMATION_CLASS HeapInformationClass,
                                    PVOID HeapInformation, SIZE_T HeapInformationLength,
                                    PSIZE_T ReturnLength)
{
    if (HeapInformationClass != HeapCompatibilityInformation)
        return fail(ERROR_INVALID_PARAMETER);
    if (ReturnLength)
        *ReturnLength = sizeof(ULONG);
    if (HeapInformationLength < sizeof(ULONG))
        return fail(ERROR_INSUFFICIENT_BUFFER);
    *(ULONG *)HeapInformation = LOW_FRAGMENTATION;
    return TRUE;
}

/* --- Ends. --- */

VOID WINAPI FreeLibraryAndExitThread(HMODULE hLibModule, DWORD dwExitCode)
{
    FreeLibrary(hLibModule);
    ExitThread(dwExitCode);
}

WINBOOL WINAPI IsWow64Process(HANDLE hProcess, PBOOL Wow64Process)
{
    *Wow64Process = FALSE;
    return TRUE;
}

/* --- Local time. --- */

DWORD WINAPI GetTimeZoneInformation(LPTIME_ZONE_INFORMATION lpTimeZoneInformation)
{
    *lpTimeZoneInformation =
        (TIME_ZONE_INFORMATION){ .StandardName = L"UTC", .DaylightName = L"UTC" };
    return TIME_ZONE_ID_UNKNOWN;
}

WINBOOL WINAPI FileTimeToLocalFileTime(CONST FILETIME *lpFileTime, LPFILETIME lpLocalFileTime)
{
    *lpLocalFileTime = *lpFileTime;
    return TRUE;
}

WINBOOL WINAPI SystemTimeToTzSpecificLocalTime(CONST TIME_ZONE_INFORMATION *lpTimeZoneInformation,
                                               CONST SYSTEMTIME *lpUniversalTime,
                                               LPSYSTEMTIME lpLocalTime)
{
    if (lpTimeZoneInformation && lpTimeZoneInformation->Bias)
        return fail(ERROR_NOT_SUPPORTED);
    *lpLocalTime = *lpUniversalTime;
    return TRUE;
}

WINBOOL WINAPI TzSpecificLocalTimeToSystemTime(CONST TIME_ZONE_INFORMATION *lpTimeZoneInformation,
                                               CONST SYSTEMTIME *lpLocalTime,
                                               LPSYSTEMTIME lpUniversalTime)
{
    return SystemTimeToTzSpecificLocalTime(lpTimeZoneInformation, lpLocalTime, lpUniversalTime);
}
