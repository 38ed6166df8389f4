/* SPDX-License-Identifier: MIT */
/* What the process and the machine have used, and times. */
#include "nt.h"
#include <stddef.h>

#define MEGABYTES(n) ((n)*1024ull * 1024)
#define STARTED 132223104000000000ull /* 2020-01-01, the machine */

#define ProcessTimes ((PROCESSINFOCLASS)4)
#define ProcessCycleTime ((PROCESSINFOCLASS)38)
#define SystemMemoryUsage ((SYSTEM_INFORMATION_CLASS)182)

static ULONGLONG number(FILETIME t) { return (ULONGLONG)t.dwHighDateTime << 32 | t.dwLowDateTime; }

static ULONGLONG date(void)
{
    FILETIME t;
    GetSystemTimePreciseAsFileTime(&t);
    return number(t);
}

/* --- Cycles and times. --- */

static ULONG64 of_process(void)
{
    ULONG64 cycles = 0;
    IS(QueryProcessCycleTime(GetCurrentProcess(), &cycles), TRUE);
    return cycles;
}

static ULONG64 of_thread(HANDLE thread)
{
    ULONG64 cycles = 0;
    IS(QueryThreadCycleTime(thread, &cycles), TRUE);
    return cycles;
}

static volatile ULONG64 last_look;

static DWORD WINAPI work(LPVOID unused)
{
    for (volatile int i = 0; i < 100000; i++)
        ;
    QueryThreadCycleTime(GetCurrentThread(), (PULONG64)&last_look);
    return 0;
}

/* The process has used what its threads have, also those that have ended. */
static void check_cycles(void)
{
    HANDLE worker = CreateThread(NULL, 0, work, NULL, 0, NULL);
    IS(WaitForSingleObject(worker, INFINITE), WAIT_OBJECT_0);
    ULONG64 mine = of_thread(GetCurrentThread()), all = of_process();
    ULONG64 later = of_thread(GetCurrentThread());
    IS(all >= mine + last_look, TRUE);
    IS(all <= later + of_thread(worker), TRUE);
    CloseHandle(worker);
    IS(of_process() >= all, TRUE); /* nor does the last handle matter */
}

static void check_times(void)
{
    FILETIME created, ended, kernel, user;
    ULONGLONG used, now;
    IS(GetProcessTimes(GetCurrentProcess(), &created, &ended, &kernel, &user), TRUE);
    now = date();
    used = number(kernel) + number(user);
    IS(number(created) > STARTED && number(created) < now, TRUE);
    IS(number(ended), 0);
    IS(used > 0, TRUE);
    IS(used <= (now - number(created)) * GetActiveProcessorCount(ALL_PROCESSOR_GROUPS), TRUE);
    for (volatile int i = 0; i < 3000000; i++) /* more than 100 ns on any processor */
        ;
    IS(GetProcessTimes(GetCurrentProcess(), &created, &ended, &kernel, &user), TRUE);
    IS(number(kernel) + number(user) > used, TRUE);
}

static void check_clock(void)
{
    LARGE_INTEGER before, after;
    ULONGLONG time = 0;
    QueryPerformanceCounter(&before);
    IS(QueryUnbiasedInterruptTime(&time), TRUE);
    QueryPerformanceCounter(&after);
    IS(time >= (ULONGLONG)before.QuadPart && time <= (ULONGLONG)after.QuadPart, TRUE);
    FAILS(QueryUnbiasedInterruptTime(NULL), FALSE, ERROR_INVALID_PARAMETER);
}

/* --- Memory. --- */

static MEMORYSTATUSEX memory(void)
{
    MEMORYSTATUSEX m = { .dwLength = sizeof m };
    IS(GlobalMemoryStatusEx(&m), TRUE);
    return m;
}

static void check_memory(void)
{
    MEMORYSTATUSEX before = memory(), less;
    void *p = VirtualAlloc(NULL, MEGABYTES(4), MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
    IS(p != NULL, TRUE);
    less = memory();
    IS(before.ullAvailPhys - less.ullAvailPhys >= MEGABYTES(4), TRUE);
    IS(VirtualFree(p, 0, MEM_RELEASE), TRUE);
    IS(memory().ullAvailPhys >= less.ullAvailPhys + MEGABYTES(4), TRUE);
    IS(before.ullTotalPhys, less.ullTotalPhys);
    IS(before.ullTotalPhys > MEGABYTES(16) && before.ullAvailPhys < before.ullTotalPhys, TRUE);
    IS(before.ullAvailPageFile <= before.ullTotalPageFile, TRUE);
    IS(before.dwMemoryLoad <= 100, TRUE);
    IS(before.ullTotalVirtual, 0x7fffffff0000);
    less.dwLength--;
    FAILS(GlobalMemoryStatusEx(&less), FALSE, ERROR_INVALID_PARAMETER);
}

/* --- Statuses. --- */

static void check_refusals(void)
{
    HANDLE own = GetCurrentProcess(), event = CreateEventA(NULL, FALSE, FALSE, NULL),
           weak = limited(own, SYNCHRONIZE);
    PROCESS_BASIC_INFORMATION basic;
    FILETIME t;
    ULONG64 info[7], large[8], cycles;
    ULONG size = 0;
    IS(NtQueryInformationProcess(own, (PROCESSINFOCLASS)99, info, 16, NULL),
       STATUS_INVALID_INFO_CLASS);
    IS(NtQueryInformationProcess(NULL, ProcessTimes, info, 31, NULL), STATUS_INFO_LENGTH_MISMATCH);
    IS(NtQueryInformationProcess(NULL, ProcessTimes, info, 32, NULL), STATUS_INVALID_HANDLE);
    IS(NtQueryInformationProcess(event, ProcessTimes, info, 32, NULL), STATUS_OBJECT_TYPE_MISMATCH);
    IS(NtQueryInformationProcess(weak, ProcessCycleTime, info, 16, NULL), STATUS_ACCESS_DENIED);
    IS(NtQueryInformationProcess(own, ProcessTimes, KERNEL_ADDRESS, 32, NULL),
       STATUS_ACCESS_VIOLATION);
    IS(NtQueryInformationProcess(own, ProcessTimes, info, 32, KERNEL_ADDRESS),
       STATUS_ACCESS_VIOLATION);
    IS(NtQueryInformationProcess(own, ProcessBasicInformation, &basic, sizeof basic, &size),
       STATUS_SUCCESS);
    IS(size, sizeof basic);
    IS(basic.UniqueProcessId, GetCurrentProcessId());
    IS((ULONG_PTR)basic.PebBaseAddress == *(ULONG_PTR *)((BYTE *)NtCurrentTeb() + 0x60), TRUE);
    FAILS(QueryProcessCycleTime(weak, &cycles), FALSE, ERROR_ACCESS_DENIED);
    FAILS(GetProcessTimes(weak, &t, &t, &t, &t), FALSE, ERROR_ACCESS_DENIED);
    IS(NtQuerySystemInformation(SystemMemoryUsage, info, 55, NULL), STATUS_INFO_LENGTH_MISMATCH);
    IS(NtQuerySystemInformation(SystemMemoryUsage, KERNEL_ADDRESS, 56, NULL),
       STATUS_ACCESS_VIOLATION);
    IS(NtQuerySystemInformation(SystemMemoryUsage, info, 56, &size), STATUS_SUCCESS);
    IS(size, 56);
    IS(info[1] + info[3], info[0]); /* what is available and what is committed */
    IS(NtQuerySystemInformation(SystemMemoryUsage, large, 57, &size), STATUS_INFO_LENGTH_MISMATCH);
    IS(NtQueryInformationThread(GetCurrentThread(), 0, large, 48, NULL), STATUS_SUCCESS);
    IS(large[1], (ULONG_PTR)NtCurrentTeb());
    CloseHandle(weak);
    CloseHandle(event);
}

int main(void)
{
    check_cycles();
    check_times();
    check_clock();
    check_memory();
    check_refusals();
    return check_result();
}
