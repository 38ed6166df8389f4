/* SPDX-License-Identifier: MIT */
/* Exceptions: ntdll's, by the names that programs import. */
#include "kernel32.h"

LPTOP_LEVEL_EXCEPTION_FILTER NTAPI
RtlSetUnhandledExceptionFilter(LPTOP_LEVEL_EXCEPTION_FILTER Filter);
VOID NTAPI RtlRaiseException(PEXCEPTION_RECORD ExceptionRecord);

LPTOP_LEVEL_EXCEPTION_FILTER WINAPI
SetUnhandledExceptionFilter(LPTOP_LEVEL_EXCEPTION_FILTER lpTopLevelExceptionFilter)
{
    return RtlSetUnhandledExceptionFilter(lpTopLevelExceptionFilter);
}

/* NT: the process ends by the exception itself; there is no dialog to show. */
LONG WINAPI UnhandledExceptionFilter(struct _EXCEPTION_POINTERS *ExceptionInfo)
{
    return EXCEPTION_CONTINUE_SEARCH;
}

VOID WINAPI RaiseException(DWORD dwExceptionCode, DWORD dwExceptionFlags, DWORD nNumberOfArguments,
                           const ULONG_PTR *lpArguments)
{
    EXCEPTION_RECORD record = { .ExceptionCode = dwExceptionCode,
                                .ExceptionFlags = dwExceptionFlags & EXCEPTION_NONCONTINUABLE,
                                .ExceptionAddress = (PVOID)RaiseException };
    if (lpArguments)
        record.NumberParameters = nNumberOfArguments < EXCEPTION_MAXIMUM_PARAMETERS
                                      ? nNumberOfArguments
                                      : EXCEPTION_MAXIMUM_PARAMETERS;
    for (DWORD i = 0; i < record.NumberParameters; i++)
        record.ExceptionInformation[i] = lpArguments[i];
    RtlRaiseException(&record);
}

VOID WINAPI DebugBreak(void) { __asm__ volatile("int3"); }

/* No effect: there are no error dialogs. */
UINT WINAPI SetErrorMode(UINT uMode)
{
    static LONG mode;
    return (UINT)InterlockedExchange(&mode, (LONG)uMode);
}
