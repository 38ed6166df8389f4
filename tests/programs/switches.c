/* SPDX-License-Identifier: MIT */
/* A thread of each CPU sleeps for a millisecond again and again, so many seconds: a CPU switches to
 * it and back to its idle thread a thousand times in each. */
#include <stdio.h>
#include <stdlib.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#define CPUS_MAX 64

static ULONG64 end;

static DWORD WINAPI sleep_often(PVOID cpu)
{
    SetThreadAffinityMask(GetCurrentThread(), 1ull << (ULONG64)cpu);
    while (GetTickCount64() < end)
        Sleep(1);
    return 0;
}

int main(int argc, char **argv)
{
    SYSTEM_INFO info;
    HANDLE threads[CPUS_MAX];
    GetSystemInfo(&info);
    end = GetTickCount64() + 1000 * (argc > 1 ? strtoul(argv[1], NULL, 10) : 1);
    for (ULONG64 cpu = 0; cpu < info.dwNumberOfProcessors; cpu++)
        threads[cpu] = CreateThread(NULL, 0, sleep_often, (PVOID)cpu, 0, NULL);
    WaitForMultipleObjects(info.dwNumberOfProcessors, threads, TRUE, INFINITE);
    return 0;
}
