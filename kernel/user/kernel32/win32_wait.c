/* SPDX-License-Identifier: MIT */
/* Waiting. */
#include "kernel32.h"

static PLARGE_INTEGER interval(DWORD milliseconds, LARGE_INTEGER *room)
{
    room->QuadPart = -10000ll * milliseconds;
    return milliseconds == INFINITE ? NULL : room;
}

DWORD WINAPI WaitForSingleObjectEx(HANDLE hHandle, DWORD dwMilliseconds, BOOL bAlertable)
{
    LARGE_INTEGER timeout;
    NTSTATUS status =
        NtWaitForSingleObject(hHandle, (BOOLEAN)bAlertable, interval(dwMilliseconds, &timeout));
    return succeeded(status) ? (DWORD)status : WAIT_FAILED;
}

DWORD WINAPI WaitForSingleObject(HANDLE hHandle, DWORD dwMilliseconds)
{
    return WaitForSingleObjectEx(hHandle, dwMilliseconds, FALSE);
}

DWORD WINAPI SleepEx(DWORD dwMilliseconds, BOOL bAlertable)
{
    LARGE_INTEGER delay = { .QuadPart = INT64_MIN };
    interval(dwMilliseconds, &delay);
    if (dwMilliseconds == INFINITE)
        delay.QuadPart = INT64_MIN;
    NtDelayExecution((BOOLEAN)bAlertable, &delay);
    return 0;
}

VOID WINAPI Sleep(DWORD dwMilliseconds) { SleepEx(dwMilliseconds, FALSE); }

#define WAIT_ALL_OF 0 /* WAIT_TYPE */
#define WAIT_ANY_OF 1

NTSTATUS NTAPI NtWaitForMultipleObjects(ULONG Count, const HANDLE *Handles, ULONG WaitType,
                                        BOOLEAN Alertable, PLARGE_INTEGER Timeout);
NTSTATUS NTAPI RtlWaitOnAddress(volatile VOID *Address, PVOID CompareAddress, SIZE_T AddressSize,
                                PLARGE_INTEGER Timeout);
NTSTATUS NTAPI RtlSleepConditionVariableCS(PRTL_CONDITION_VARIABLE ConditionVariable,
                                           PRTL_CRITICAL_SECTION CriticalSection,
                                           PLARGE_INTEGER Timeout);
NTSTATUS NTAPI RtlSleepConditionVariableSRW(PRTL_CONDITION_VARIABLE ConditionVariable,
                                            PRTL_SRWLOCK SRWLock, PLARGE_INTEGER Timeout,
                                            ULONG Flags);
NTSTATUS NTAPI RtlRunOnceBeginInitialize(PRTL_RUN_ONCE RunOnce, ULONG Flags, PVOID *Context);
NTSTATUS NTAPI RtlRunOnceComplete(PRTL_RUN_ONCE RunOnce, ULONG Flags, PVOID Context);

DWORD WINAPI WaitForMultipleObjectsEx(DWORD nCount, const HANDLE *lpHandles, WINBOOL bWaitAll,
                                      DWORD dwMilliseconds, WINBOOL bAlertable)
{
    LARGE_INTEGER timeout;
    NTSTATUS status =
        NtWaitForMultipleObjects(nCount, lpHandles, bWaitAll ? WAIT_ALL_OF : WAIT_ANY_OF,
                                 (BOOLEAN)bAlertable, interval(dwMilliseconds, &timeout));
    return succeeded(status) ? (DWORD)status : WAIT_FAILED;
}

DWORD WINAPI WaitForMultipleObjects(DWORD nCount, const HANDLE *lpHandles, WINBOOL bWaitAll,
                                    DWORD dwMilliseconds)
{
    return WaitForMultipleObjectsEx(nCount, lpHandles, bWaitAll, dwMilliseconds, FALSE);
}

/* --- On addresses. Here a timeout is a failure: ERROR_TIMEOUT. --- */

static WINBOOL woken(NTSTATUS status)
{
    return status == STATUS_TIMEOUT ? fail(ERROR_TIMEOUT) : succeeded(status);
}

WINBOOL WINAPI WaitOnAddress(volatile VOID *Address, PVOID CompareAddress, SIZE_T AddressSize,
                             DWORD dwMilliseconds)
{
    LARGE_INTEGER timeout;
    return woken(
        RtlWaitOnAddress(Address, CompareAddress, AddressSize, interval(dwMilliseconds, &timeout)));
}

WINBOOL WINAPI SleepConditionVariableCS(PCONDITION_VARIABLE ConditionVariable,
                                        PCRITICAL_SECTION CriticalSection, DWORD dwMilliseconds)
{
    LARGE_INTEGER timeout;
    return woken(RtlSleepConditionVariableCS(ConditionVariable, CriticalSection,
                                             interval(dwMilliseconds, &timeout)));
}

WINBOOL WINAPI SleepConditionVariableSRW(PCONDITION_VARIABLE ConditionVariable, PSRWLOCK SRWLock,
                                         DWORD dwMilliseconds, ULONG Flags)
{
    LARGE_INTEGER timeout;
    return woken(RtlSleepConditionVariableSRW(ConditionVariable, SRWLock,
                                              interval(dwMilliseconds, &timeout), Flags));
}

/* --- Critical sections: those of ntdll, but for a BOOL. --- */

NTSTATUS NTAPI RtlInitializeCriticalSectionEx(PRTL_CRITICAL_SECTION CriticalSection,
                                              ULONG SpinCount, ULONG Flags);

WINBOOL WINAPI InitializeCriticalSectionEx(LPCRITICAL_SECTION lpCriticalSection, DWORD dwSpinCount,
                                           DWORD Flags)
{
    return succeeded(RtlInitializeCriticalSectionEx(lpCriticalSection, dwSpinCount, Flags));
}

WINBOOL WINAPI InitializeCriticalSectionAndSpinCount(LPCRITICAL_SECTION lpCriticalSection,
                                                     DWORD dwSpinCount)
{
    return InitializeCriticalSectionEx(lpCriticalSection, dwSpinCount, 0);
}

/* --- Once. --- */

WINBOOL WINAPI InitOnceBeginInitialize(LPINIT_ONCE lpInitOnce, DWORD dwFlags, PBOOL fPending,
                                       LPVOID *lpContext)
{
    NTSTATUS status = RtlRunOnceBeginInitialize(lpInitOnce, dwFlags, lpContext);
    *fPending = status == STATUS_PENDING;
    return succeeded(status);
}

WINBOOL WINAPI InitOnceComplete(LPINIT_ONCE lpInitOnce, DWORD dwFlags, LPVOID lpContext)
{
    return succeeded(RtlRunOnceComplete(lpInitOnce, dwFlags, lpContext));
}

WINBOOL WINAPI InitOnceExecuteOnce(PINIT_ONCE InitOnce, PINIT_ONCE_FN InitFn, PVOID Parameter,
                                   LPVOID *Context)
{
    PVOID context = NULL;
    NTSTATUS status = RtlRunOnceBeginInitialize(InitOnce, 0, Context);
    if (status != STATUS_PENDING)
        return succeeded(status);
    if (!InitFn(InitOnce, Parameter, &context)) {
        RtlRunOnceComplete(InitOnce, INIT_ONCE_INIT_FAILED, NULL);
        return FALSE;
    }
    status = RtlRunOnceComplete(InitOnce, 0, context);
    if (Context)
        *Context = context;
    return succeeded(status);
}
