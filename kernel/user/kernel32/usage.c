/* SPDX-License-Identifier: MIT */
/* What threads and the process have used, and what the machine has. */
#include "kernel32.h"

#define THREAD_TIMES 1
#define THREAD_CYCLE_TIME 23

#define PROCESS_TIMES 4
#define PROCESS_CYCLE_TIME 38
#define MEMORY_USAGE 182

/* THREAD_CYCLE_TIME_INFORMATION, KERNEL_USER_TIMES and SYSTEM_MEMORY_USAGE_INFORMATION; winternl.h
 * has none of them. */
struct cycles {
    ULONG64 all, current;
};
struct times {
    LARGE_INTEGER created, ended, kernel, user; /* 100 ns */
};
struct memory {
    ULONG64 physical, available, resident, committed, shared, limit, peak; /* bytes */
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

WINBOOL WINAPI QueryProcessCycleTime(HANDLE ProcessHandle, PULONG64 CycleTime)
{
    struct cycles cycles;
    if (!succeeded(NtQueryInformationProcess(ProcessHandle, (PROCESSINFOCLASS)PROCESS_CYCLE_TIME,
                                             &cycles, sizeof cycles, NULL)))
        return FALSE;
    *CycleTime = cycles.all;
    return TRUE;
}

static FILETIME file_time(LONGLONG time) { return (FILETIME){ (DWORD)time, (DWORD)(time >> 32) }; }

static WINBOOL give_times(const struct times *times, LPFILETIME created, LPFILETIME ended,
                          LPFILETIME kernel, LPFILETIME user)
{
    *created = file_time(times->created.QuadPart);
    *ended = file_time(times->ended.QuadPart);
    *kernel = file_time(times->kernel.QuadPart);
    *user = file_time(times->user.QuadPart);
    return TRUE;
}

/* NT: what it uses is user time, the kernel's part included. */
WINBOOL WINAPI GetThreadTimes(HANDLE hThread, LPFILETIME lpCreationTime, LPFILETIME lpExitTime,
                              LPFILETIME lpKernelTime, LPFILETIME lpUserTime)
{
    struct times times;
    return succeeded(NtQueryInformationThread(hThread, THREAD_TIMES, &times, sizeof times, NULL)) &&
           give_times(&times, lpCreationTime, lpExitTime, lpKernelTime, lpUserTime);
}

WINBOOL WINAPI GetProcessTimes(HANDLE hProcess, LPFILETIME lpCreationTime, LPFILETIME lpExitTime,
                               LPFILETIME lpKernelTime, LPFILETIME lpUserTime)
{
    struct times times;
    return succeeded(NtQueryInformationProcess(hProcess, (PROCESSINFOCLASS)PROCESS_TIMES, &times,
                                               sizeof times, NULL)) &&
           give_times(&times, lpCreationTime, lpExitTime, lpKernelTime, lpUserTime);
}

/* NT: there is no page file: what can be committed is what is there. */
WINBOOL WINAPI GlobalMemoryStatusEx(LPMEMORYSTATUSEX lpBuffer)
{
    const ULONG64 space = 0x7fffffff0000; /* from 64 KB up */
    struct memory m;
    if (lpBuffer->dwLength != sizeof *lpBuffer)
        return fail(ERROR_INVALID_PARAMETER);
    if (!succeeded(
            NtQuerySystemInformation((SYSTEM_INFORMATION_CLASS)MEMORY_USAGE, &m, sizeof m, NULL)))
        return FALSE;
    *lpBuffer = (MEMORYSTATUSEX){ .dwLength = sizeof *lpBuffer,
                                  .dwMemoryLoad = (DWORD)(m.committed * 100 / m.physical),
                                  .ullTotalPhys = m.physical,
                                  .ullAvailPhys = m.available,
                                  .ullTotalPageFile = m.limit,
                                  .ullAvailPageFile = m.limit - m.committed,
                                  .ullTotalVirtual = space,
                                  .ullAvailVirtual = space };
    return TRUE;
}

DWORD WINAPI GetProcessId(HANDLE Process) { return GetCurrentProcessId(); }

/* It runs, as it asks. */
WINBOOL WINAPI GetExitCodeProcess(HANDLE hProcess, LPDWORD lpExitCode)
{
    *lpExitCode = STILL_ACTIVE;
    return TRUE;
}

/* Hints, which have no effect. */

DWORD WINAPI SetThreadIdealProcessor(HANDLE hThread, DWORD dwIdealProcessor)
{
    if (dwIdealProcessor == MAXIMUM_PROCESSORS || dwIdealProcessor < teb()->peb->processors)
        return 0;
    fail(ERROR_INVALID_PARAMETER);
    return (DWORD)-1;
}

/* Before: none. NT: a handler of an overflow has the rest of its stack's last pages. */
WINBOOL WINAPI SetThreadStackGuarantee(PULONG StackSizeInBytes)
{
    *StackSizeInBytes = 0;
    return TRUE;
}

WINBOOL WINAPI SetThreadPriorityBoost(HANDLE hThread, WINBOOL bDisablePriorityBoost)
{
    return TRUE;
}

/* --- winmm.dll's, whose name leads here. --- */

DWORD WINAPI timeGetTime(void) { return GetTickCount(); }

/* A tick is a millisecond in any case: 0. TIMERR_NOCANDO (97): uPeriod is 0. */
UINT WINAPI timeBeginPeriod(UINT uPeriod) { return uPeriod ? 0 : 97; }
UINT WINAPI timeEndPeriod(UINT uPeriod) { return uPeriod ? 0 : 97; }
