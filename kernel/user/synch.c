/* SPDX-License-Identifier: MIT */
/* Critical sections without a kernel object: a thread yields until the section is free. */
#include "windows.h"
#include "kernel/user/intrin.h"

static HANDLE me(void) { return (HANDLE)(ULONG_PTR)GetCurrentThreadId(); }

void InitializeCriticalSection(LPCRITICAL_SECTION CriticalSection)
{
    *CriticalSection = (CRITICAL_SECTION){ .LockCount = -1 };
}

void DeleteCriticalSection(LPCRITICAL_SECTION CriticalSection)
{
    InitializeCriticalSection(CriticalSection);
}

BOOL TryEnterCriticalSection(LPCRITICAL_SECTION CriticalSection)
{
    HANDLE owner = NULL, mine = me();
    if (CriticalSection->OwningThread == mine) {
        CriticalSection->RecursionCount++;
        return TRUE;
    }
    if (!__atomic_compare_exchange_n(&CriticalSection->OwningThread, &owner, mine, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return FALSE;
    CriticalSection->RecursionCount = 1;
    return TRUE;
}

void EnterCriticalSection(LPCRITICAL_SECTION CriticalSection)
{
    while (!TryEnterCriticalSection(CriticalSection)) {
        SwitchToThread();
        _mm_pause();
    }
}

void LeaveCriticalSection(LPCRITICAL_SECTION CriticalSection)
{
    if (--CriticalSection->RecursionCount == 0)
        __atomic_store_n(&CriticalSection->OwningThread, NULL, __ATOMIC_RELEASE);
}
