/* SPDX-License-Identifier: MIT */
/* Critical sections. LockCount is the state; a thread that finds one taken waits until it changes.
 * An ending process enters sections that terminated threads still hold. */
#include "ntdll.h"
#include "ntdll_wait.h"

#define FREE -1
#define TAKEN 0
#define CONTENDED 1 /* taken, and somebody may wait */

static HANDLE me(void) { return (HANDLE)teb()->thread_id; }

NTSTATUS NTAPI RtlInitializeCriticalSectionEx(PRTL_CRITICAL_SECTION CriticalSection,
                                              ULONG SpinCount, ULONG Flags)
{
    static RTL_CRITICAL_SECTION_DEBUG debug; /* NT: each has its own */
    *CriticalSection =
        (RTL_CRITICAL_SECTION){ .DebugInfo = &debug, .LockCount = FREE, .SpinCount = SpinCount };
    return STATUS_SUCCESS;
}

NTSTATUS NTAPI RtlInitializeCriticalSectionAndSpinCount(PRTL_CRITICAL_SECTION CriticalSection,
                                                        ULONG SpinCount)
{
    return RtlInitializeCriticalSectionEx(CriticalSection, SpinCount, 0);
}

NTSTATUS NTAPI RtlInitializeCriticalSection(PRTL_CRITICAL_SECTION CriticalSection)
{
    return RtlInitializeCriticalSectionEx(CriticalSection, 0, 0);
}

ULONG NTAPI RtlSetCriticalSectionSpinCount(PRTL_CRITICAL_SECTION CriticalSection, ULONG SpinCount)
{
    ULONG old = (ULONG)CriticalSection->SpinCount;
    CriticalSection->SpinCount = SpinCount;
    return old;
}

NTSTATUS NTAPI RtlDeleteCriticalSection(PRTL_CRITICAL_SECTION CriticalSection)
{
    return RtlInitializeCriticalSection(CriticalSection);
}

static bool enter_again(PRTL_CRITICAL_SECTION section)
{
    if (section->OwningThread != me())
        return false;
    section->RecursionCount++;
    return true;
}

static void own_section(PRTL_CRITICAL_SECTION section)
{
    section->OwningThread = me();
    section->RecursionCount = 1;
}

ULONG NTAPI RtlTryEnterCriticalSection(PRTL_CRITICAL_SECTION CriticalSection)
{
    if (enter_again(CriticalSection))
        return TRUE;
    if (InterlockedCompareExchange(&CriticalSection->LockCount, TAKEN, FREE) != FREE &&
        !shutting_down)
        return FALSE;
    own_section(CriticalSection);
    return TRUE;
}

/* Tries SpinCount times, if a thread on another processor may leave it meanwhile. */
static bool spin_for_section(PRTL_CRITICAL_SECTION section)
{
    ULONG_PTR turns = teb()->peb->processors > 1 ? section->SpinCount & 0xffffff : 0;
    for (; turns; turns--) {
        if (section->LockCount == FREE && RtlTryEnterCriticalSection(section))
            return true;
        YieldProcessor();
    }
    return false;
}

NTSTATUS NTAPI RtlEnterCriticalSection(PRTL_CRITICAL_SECTION CriticalSection)
{
    LONG waited = CONTENDED;
    if (RtlTryEnterCriticalSection(CriticalSection) || spin_for_section(CriticalSection))
        return STATUS_SUCCESS;
    while (InterlockedExchange(&CriticalSection->LockCount, CONTENDED) != FREE && !shutting_down)
        RtlWaitOnAddress(&CriticalSection->LockCount, &waited, sizeof waited, NULL);
    own_section(CriticalSection);
    return STATUS_SUCCESS;
}

NTSTATUS NTAPI RtlLeaveCriticalSection(PRTL_CRITICAL_SECTION CriticalSection)
{
    if (--CriticalSection->RecursionCount)
        return STATUS_SUCCESS;
    CriticalSection->OwningThread = NULL;
    if (InterlockedExchange(&CriticalSection->LockCount, FREE) == CONTENDED)
        RtlWakeAddressSingle(&CriticalSection->LockCount);
    return STATUS_SUCCESS;
}
