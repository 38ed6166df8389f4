/* SPDX-License-Identifier: MIT */
/* Threads and their handles. */
#include "kernel32.h"

HANDLE WINAPI CreateThread(LPSECURITY_ATTRIBUTES lpThreadAttributes, SIZE_T dwStackSize,
                           LPTHREAD_START_ROUTINE lpStartAddress, LPVOID lpParameter,
                           DWORD dwCreationFlags, LPDWORD lpThreadId)
{
    HANDLE thread;
    struct thread_information info;
    bool reserve = dwCreationFlags & STACK_SIZE_PARAM_IS_A_RESERVATION;
    if (!succeeded(NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, CURRENT_PROCESS,
                                    (PVOID)lpStartAddress, lpParameter,
                                    dwCreationFlags & CREATE_SUSPENDED ? 1 : 0, 0,
                                    reserve ? 0 : dwStackSize, reserve ? dwStackSize : 0, NULL)))
        return NULL;
    if (lpThreadId && NT_SUCCESS(NtQueryInformationThread(thread, 0, &info, sizeof info, NULL)))
        *lpThreadId = (DWORD)(ULONG_PTR)info.id.UniqueThread;
    return thread;
}

VOID WINAPI ExitThread(DWORD dwExitCode) { RtlExitUserThread((NTSTATUS)dwExitCode); }

BOOL WINAPI TerminateThread(HANDLE hThread, DWORD dwExitCode)
{
    return succeeded(NtTerminateThread(hThread, (NTSTATUS)dwExitCode));
}

HANDLE WINAPI GetCurrentThread(void) { return CURRENT_THREAD; }
DWORD WINAPI GetCurrentThreadId(void) { return (DWORD)teb()->thread_id; }
DWORD WINAPI GetCurrentProcessorNumber(void) { return NtGetCurrentProcessorNumber(); }
VOID WINAPI GetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber)
{
    NtGetCurrentProcessorNumberEx(ProcNumber);
}
BOOL WINAPI SwitchToThread(void) { return succeeded(NtYieldExecution()); }
BOOL WINAPI CloseHandle(HANDLE hObject)
{
    return is_output(hObject) || hObject == STANDARD_INPUT || succeeded(NtClose(hObject));
}

static BOOL query_thread(HANDLE thread, struct thread_information *info)
{
    return succeeded(NtQueryInformationThread(thread, 0, info, sizeof *info, NULL));
}

DWORD WINAPI GetThreadId(HANDLE Thread)
{
    struct thread_information info;
    return query_thread(Thread, &info) ? (DWORD)(ULONG_PTR)info.id.UniqueThread : 0;
}

BOOL WINAPI GetExitCodeThread(HANDLE hThread, LPDWORD lpExitCode)
{
    struct thread_information info;
    if (!query_thread(hThread, &info))
        return FALSE;
    *lpExitCode = (DWORD)info.exit_status;
    return TRUE;
}

DWORD_PTR WINAPI SetThreadAffinityMask(HANDLE hThread, DWORD_PTR dwThreadAffinityMask)
{
    struct thread_information info;
    if (!query_thread(hThread, &info) ||
        !succeeded(
            NtSetInformationThread(hThread, 4, &dwThreadAffinityMask, sizeof dwThreadAffinityMask)))
        return 0;
    return info.affinity;
}

#define GROUP_INFORMATION 30 /* ThreadGroupInformation */

BOOL WINAPI GetThreadGroupAffinity(HANDLE hThread, PGROUP_AFFINITY GroupAffinity)
{
    return succeeded(NtQueryInformationThread(hThread, GROUP_INFORMATION, GroupAffinity,
                                              sizeof *GroupAffinity, NULL));
}

BOOL WINAPI SetThreadGroupAffinity(HANDLE hThread, const GROUP_AFFINITY *GroupAffinity,
                                   PGROUP_AFFINITY PreviousGroupAffinity)
{
    GROUP_AFFINITY was, to = *GroupAffinity;
    if (!GetThreadGroupAffinity(hThread, &was) ||
        !succeeded(NtSetInformationThread(hThread, GROUP_INFORMATION, &to, sizeof to)))
        return FALSE;
    if (PreviousGroupAffinity)
        *PreviousGroupAffinity = was;
    return TRUE;
}

BOOL WINAPI DuplicateHandle(HANDLE hSourceProcessHandle, HANDLE hSourceHandle,
                            HANDLE hTargetProcessHandle, LPHANDLE lpTargetHandle,
                            DWORD dwDesiredAccess, BOOL bInheritHandle, DWORD dwOptions)
{
    HANDLE handle;
    return succeeded(NtDuplicateObject(hSourceProcessHandle, hSourceHandle, hTargetProcessHandle,
                                       lpTargetHandle ? lpTargetHandle : &handle, dwDesiredAccess,
                                       0, dwOptions));
}

WINBOOL WINAPI SetThreadPriority(HANDLE hThread, int nPriority)
{
    LONG above = nPriority;
    return succeeded(NtSetInformationThread(hThread, 3, &above, sizeof above));
}

int WINAPI GetThreadPriority(HANDLE hThread)
{
    struct thread_information info;
    if (!query_thread(hThread, &info))
        return THREAD_PRIORITY_ERROR_RETURN;
    LONG above = info.base_priority;
    return above > 2 ? THREAD_PRIORITY_TIME_CRITICAL : above < -2 ? THREAD_PRIORITY_IDLE : above;
}

/* NT: one priority class, normal. */
DWORD WINAPI GetPriorityClass(HANDLE hProcess) { return NORMAL_PRIORITY_CLASS; }

WINBOOL WINAPI SetPriorityClass(HANDLE hProcess, DWORD dwPriorityClass)
{
    return dwPriorityClass == NORMAL_PRIORITY_CLASS || fail(ERROR_NOT_SUPPORTED);
}

NTSTATUS NTAPI NtResumeThread(HANDLE ThreadHandle, PULONG PreviousSuspendCount);
NTSTATUS NTAPI NtSuspendThread(HANDLE ThreadHandle, PULONG PreviousSuspendCount);
NTSTATUS NTAPI NtGetContextThread(HANDLE ThreadHandle, PCONTEXT ThreadContext);

DWORD WINAPI ResumeThread(HANDLE hThread)
{
    ULONG count;
    return succeeded(NtResumeThread(hThread, &count)) ? count : (DWORD)-1;
}

DWORD WINAPI SuspendThread(HANDLE hThread)
{
    ULONG count;
    return succeeded(NtSuspendThread(hThread, &count)) ? count : (DWORD)-1;
}

WINBOOL WINAPI GetThreadContext(HANDLE hThread, LPCONTEXT lpContext)
{
    return succeeded(NtGetContextThread(hThread, lpContext));
}

/* NT: not supported; mingw-w64's threads import it. */
WINBOOL WINAPI SetThreadContext(HANDLE hThread, const CONTEXT *lpContext)
{
    return fail(ERROR_NOT_SUPPORTED);
}

/* NT: no handle is inherited or protected. */
WINBOOL WINAPI GetHandleInformation(HANDLE hObject, LPDWORD lpdwFlags)
{
    HANDLE copy;
    if (!succeeded(NtDuplicateObject(CURRENT_PROCESS, hObject, CURRENT_PROCESS, &copy, 0, 0,
                                     DUPLICATE_SAME_ACCESS)))
        return FALSE;
    NtClose(copy);
    *lpdwFlags = 0;
    return TRUE;
}
