/* SPDX-License-Identifier: MIT */
/* Slim reader/writer locks, condition variables, one-time initialization. */
#include "ntdll.h"
#include "ntdll_wait.h"

/* --- Slim locks. Bit 0: exclusive; bit 1: somebody may wait; above: number of sharers. --- */

#define ALONE 1ll
#define WAITED 2ll
#define SHARER 4ll

static LONG64 volatile *word_of(void *object) { return (LONG64 volatile *)object; }

static bool change_word(LONG64 volatile *word, LONG64 from, LONG64 to)
{
    return InterlockedCompareExchange64(word, to, from) == from;
}

BOOLEAN NTAPI RtlTryAcquireSRWLockExclusive(PRTL_SRWLOCK SRWLock)
{
    LONG64 volatile *word = word_of(SRWLock);
    LONG64 value = *word;
    return !(value & ~WAITED) && change_word(word, value, value | ALONE);
}

BOOLEAN NTAPI RtlTryAcquireSRWLockShared(PRTL_SRWLOCK SRWLock)
{
    LONG64 volatile *word = word_of(SRWLock);
    for (;;) {
        LONG64 value = *word;
        if (value & ALONE)
            return FALSE;
        if (change_word(word, value, value + SHARER))
            return TRUE;
        YieldProcessor();
    }
}

static void wait_for_word(LONG64 volatile *word, LONG64 blocking)
{
    LONG64 value = *word, waited = value | WAITED;
    if ((value & blocking) && (value == waited || change_word(word, value, waited)))
        RtlWaitOnAddress(word, &waited, sizeof waited, NULL);
}

VOID NTAPI RtlAcquireSRWLockExclusive(PRTL_SRWLOCK SRWLock)
{
    while (!RtlTryAcquireSRWLockExclusive(SRWLock) && !shutting_down)
        wait_for_word(word_of(SRWLock), ~WAITED);
}

VOID NTAPI RtlAcquireSRWLockShared(PRTL_SRWLOCK SRWLock)
{
    while (!RtlTryAcquireSRWLockShared(SRWLock) && !shutting_down)
        wait_for_word(word_of(SRWLock), ALONE);
}

VOID NTAPI RtlReleaseSRWLockExclusive(PRTL_SRWLOCK SRWLock)
{
    if (InterlockedExchange64(word_of(SRWLock), 0) & WAITED)
        RtlWakeAddressAll(SRWLock);
}

VOID NTAPI RtlReleaseSRWLockShared(PRTL_SRWLOCK SRWLock)
{
    LONG64 volatile *word = word_of(SRWLock);
    LONG64 value, left;
    do {
        value = *word;
        left = value - SHARER;
        left = left < SHARER ? 0 : left;
    } while (!change_word(word, value, left));
    if (!left && (value & WAITED))
        RtlWakeAddressAll(SRWLock);
}

/* --- Condition variables: a count of wakes. --- */

VOID NTAPI RtlWakeConditionVariable(PRTL_CONDITION_VARIABLE ConditionVariable)
{
    InterlockedIncrement64(word_of(ConditionVariable));
    RtlWakeAddressSingle(ConditionVariable);
}

VOID NTAPI RtlWakeAllConditionVariable(PRTL_CONDITION_VARIABLE ConditionVariable)
{
    InterlockedIncrement64(word_of(ConditionVariable));
    RtlWakeAddressAll(ConditionVariable);
}

NTSTATUS NTAPI RtlSleepConditionVariableCS(PRTL_CONDITION_VARIABLE ConditionVariable,
                                           PRTL_CRITICAL_SECTION CriticalSection,
                                           PLARGE_INTEGER Timeout)
{
    LONG64 before = *word_of(ConditionVariable);
    RtlLeaveCriticalSection(CriticalSection);
    NTSTATUS status = RtlWaitOnAddress(ConditionVariable, &before, sizeof before, Timeout);
    RtlEnterCriticalSection(CriticalSection);
    return status;
}

NTSTATUS NTAPI RtlSleepConditionVariableSRW(PRTL_CONDITION_VARIABLE ConditionVariable,
                                            PRTL_SRWLOCK SRWLock, PLARGE_INTEGER Timeout,
                                            ULONG Flags)
{
    LONG64 before = *word_of(ConditionVariable);
    bool shared = Flags & RTL_CONDITION_VARIABLE_LOCKMODE_SHARED;
    (shared ? RtlReleaseSRWLockShared : RtlReleaseSRWLockExclusive)(SRWLock);
    NTSTATUS status = RtlWaitOnAddress(ConditionVariable, &before, sizeof before, Timeout);
    (shared ? RtlAcquireSRWLockShared : RtlAcquireSRWLockExclusive)(SRWLock);
    return status;
}

/* --- Once. The low two bits are the state, the others the context. --- */

#define STATE 3ll
#define NOT_BEGUN 0ll
#define BEGUN 1ll
#define DONE 2ll
#define BEGUN_BY_MANY 3ll

/* STATUS_SUCCESS: it is done. STATUS_PENDING: the caller must do it. STATUS_UNSUCCESSFUL:
 * with CHECK_ONLY, not done. STATUS_INVALID_PARAMETER: flags that exclude each other. */
NTSTATUS NTAPI RtlRunOnceBeginInitialize(PRTL_RUN_ONCE RunOnce, ULONG Flags, PVOID *Context)
{
    LONG64 volatile *word = word_of(RunOnce);
    LONG64 begun = Flags & RTL_RUN_ONCE_ASYNC ? BEGUN_BY_MANY : BEGUN;
    if (Flags & ~(ULONG)(RTL_RUN_ONCE_ASYNC | RTL_RUN_ONCE_CHECK_ONLY) ||
        Flags == (RTL_RUN_ONCE_ASYNC | RTL_RUN_ONCE_CHECK_ONLY))
        return STATUS_INVALID_PARAMETER;
    for (;;) {
        LONG64 value = *word;
        if ((value & STATE) == DONE) {
            if (Context)
                *Context = (PVOID)(value & ~STATE);
            return STATUS_SUCCESS;
        }
        if (Flags & RTL_RUN_ONCE_CHECK_ONLY)
            return STATUS_UNSUCCESSFUL;
        if (value == NOT_BEGUN && change_word(word, value, begun))
            return STATUS_PENDING;
        if (value != NOT_BEGUN && begun == BEGUN_BY_MANY)
            return value == BEGUN_BY_MANY ? STATUS_PENDING : STATUS_INVALID_PARAMETER;
        if (value == BEGUN)
            RtlWaitOnAddress(word, &value, sizeof value, NULL);
    }
}

/* STATUS_INVALID_PARAMETER: the context's low bits are not 0, or bad flags; STATUS_UNSUCCESSFUL:
 * nobody began it, or somebody else completed it first. */
NTSTATUS NTAPI RtlRunOnceComplete(PRTL_RUN_ONCE RunOnce, ULONG Flags, PVOID Context)
{
    LONG64 volatile *word = word_of(RunOnce);
    bool failed = Flags & RTL_RUN_ONCE_INIT_FAILED, many = Flags & RTL_RUN_ONCE_ASYNC;
    if ((LONG64)Context & STATE || (failed && (many || Context)))
        return STATUS_INVALID_PARAMETER;
    if (!change_word(word, many ? BEGUN_BY_MANY : BEGUN,
                     failed ? NOT_BEGUN : (LONG64)Context | DONE))
        return STATUS_UNSUCCESSFUL;
    RtlWakeAddressAll(RunOnce);
    return STATUS_SUCCESS;
}

VOID NTAPI RtlInitializeSRWLock(PRTL_SRWLOCK SRWLock) { SRWLock->Ptr = NULL; }

VOID NTAPI RtlInitializeConditionVariable(PRTL_CONDITION_VARIABLE ConditionVariable)
{
    ConditionVariable->Ptr = NULL;
}
