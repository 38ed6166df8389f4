/* SPDX-License-Identifier: MIT */
/* What threads and the process have used, and what the machine has. */
#define _WINMM_ /* timeGetTime is ours */
#include "kernel32.h"

#define THREAD_TIMES 1
#define THREAD_CYCLE_TIME 23
#define BEGIN 132223104000000000ll /* time.c: the machine's start */

/* THREAD_CYCLE_TIME_INFORMATION and KERNEL_USER_TIMES; winternl.h has neither. */
struct cycles {
    ULONG64 all, current;
};
struct times {
    LARGE_INTEGER created, ended, kernel, user; /* 100 ns */
};

WINBOOL WINAPI QueryThreadCycleTime(HANDLE ThreadHandle, PULONG64 CycleTime)
{
    struct cycles cycles;
    if (!succeeded(NtQueryInformationThread(ThreadHandle, THREAD_CYCLE_TIME, &cycles, sizeof cycles,
                                            NULL)))
        return FALSE;
    *CycleTime = cycles.all;
    return TRUE;
}

static FILETIME file_time(LONGLONG time) { return (FILETIME){ (DWORD)time, (DWORD)(time >> 32) }; }

/* NT: what it uses is user time, the kernel's part included. */
WINBOOL WINAPI GetThreadTimes(HANDLE hThread, LPFILETIME lpCreationTime, LPFILETIME lpExitTime,
                              LPFILETIME lpKernelTime, LPFILETIME lpUserTime)
{
    struct times times;
    if (!succeeded(NtQueryInformationThread(hThread, THREAD_TIMES, &times, sizeof times, NULL)))
        return FALSE;
    *lpCreationTime = file_time(BEGIN + times.created.QuadPart);
    *lpExitTime = file_time(times.ended.QuadPart ? BEGIN + times.ended.QuadPart : 0);
    *lpKernelTime = file_time(times.kernel.QuadPart);
    *lpUserTime = file_time(times.user.QuadPart);
    return TRUE;
}

DWORD WINAPI GetProcessId(HANDLE Process)
{
    (void)Process;
    return GetCurrentProcessId();
}

/* It runs, as it asks. */
WINBOOL WINAPI GetExitCodeProcess(HANDLE hProcess, LPDWORD lpExitCode)
{
    (void)hProcess;
    *lpExitCode = STILL_ACTIVE;
    return TRUE;
}

/* Hints, which have no effect. */

DWORD WINAPI SetThreadIdealProcessor(HANDLE hThread, DWORD dwIdealProcessor)
{
    (void)hThread;
    if (dwIdealProcessor == MAXIMUM_PROCESSORS || dwIdealProcessor < teb()->peb->processors)
        return 0;
    fail(ERROR_INVALID_PARAMETER);
    return (DWORD)-1;
}

WINBOOL WINAPI SetThreadPriorityBoost(HANDLE hThread, WINBOOL bDisablePriorityBoost)
{
    (void)hThread, (void)bDisablePriorityBoost;
    return TRUE;
}

WINBOOL WINAPI SetProcessPriorityBoost(HANDLE hProcess, WINBOOL bDisablePriorityBoost)
{
    return SetThreadPriorityBoost(hProcess, bDisablePriorityBoost);
}

HRESULT WINAPI SetThreadDescription(HANDLE hThread, PCWSTR lpThreadDescription)
{
    (void)hThread, (void)lpThreadDescription;
    return S_OK;
}

/* --- winmm.dll's, whose name leads here. --- */

DWORD WINAPI timeGetTime(void) { return GetTickCount(); }

/* A tick is a millisecond in any case: 0. TIMERR_NOCANDO (97): uPeriod is 0. */
UINT WINAPI timeBeginPeriod(UINT uPeriod) { return uPeriod ? 0 : 97; }
UINT WINAPI timeEndPeriod(UINT uPeriod) { return uPeriod ? 0 : 97; }
