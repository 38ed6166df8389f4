// SPDX-License-Identifier: MIT
// The program of counters.c, a driver: asks which counters it has, counts a loop of 10,000
// iterations by them through thread profiling, and reads the processor's own through the driver.
#include <windows.h>
#include <winioctl.h>
#include <stdio.h>
#include "counters.h"

namespace
{

const ULONG64 iterations = 10000;

// Two instructions an iteration, and one branch.
void work()
{
    ULONG64 left = iterations;
    asm volatile("1: sub $1, %0\n\tjnz 1b" : "+r"(left) : : "cc");
}

int failed(const char *what, DWORD error)
{
    printf("%s: error %lu\n", what, error);
    return 1;
}

DWORD read(HANDLE profile, PERFORMANCE_DATA &data)
{
    data = PERFORMANCE_DATA();
    data.Size = sizeof data;
    data.Version = PERFORMANCE_DATA_VERSION;
    return ReadThreadProfilingData(profile,
                                   READ_THREAD_PROFILING_FLAG_DISPATCHING |
                                       READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS,
                                   &data);
}

DWORD count(const COUNTERS_LIST &list)
{
    HANDLE profile;
    PERFORMANCE_DATA before, after;
    DWORD error = EnableThreadProfiling(GetCurrentThread(), THREAD_PROFILING_FLAG_DISPATCH,
                                        (1u << list.Count) - 1, &profile);
    if (error)
        return error;
    error = read(profile, before);
    work();
    if (!error)
        error = read(profile, after);
    for (ULONG i = 0; !error && i < list.Count; i++)
        printf("%s: %llu\n", list.Counters[i].Name,
               after.HwCounters[i].Value - before.HwCounters[i].Value);
    if (!error)
        printf("of which %u attempts to read, which a switch interrupted\n",
               (unsigned)after.RetryCount);
    DisableThreadProfiling(profile);
    return error;
}

} // namespace

int main()
{
    COUNTERS_LIST list;
    COUNTERS_VALUES values;
    DWORD got;
    HANDLE device =
        CreateFileW(L"\\\\.\\Counters", GENERIC_READ, 0, nullptr, OPEN_EXISTING, 0, nullptr);
    if (device == INVALID_HANDLE_VALUE)
        return failed("CreateFile", GetLastError());
    if (!DeviceIoControl(device, IOCTL_COUNTERS_LIST, nullptr, 0, &list, sizeof list, &got,
                         nullptr))
        return failed("IOCTL_COUNTERS_LIST", GetLastError());
    printf("%lu counters; a loop of %llu iterations:\n", list.Count, iterations);
    DWORD error = count(list);
    if (error)
        return failed("thread profiling", error);
    if (!DeviceIoControl(device, IOCTL_COUNTERS_READ, nullptr, 0, &values, sizeof values, &got,
                         nullptr))
        return failed("IOCTL_COUNTERS_READ", GetLastError());
    printf("processor %lu shows %llu %s in ring 3\n", values.Processor, values.Values[0],
           list.Counters[0].Name);
    return CloseHandle(device) ? 0 : 1;
}
