/* SPDX-License-Identifier: MIT */
/* Thread profiling: Win32 codes for ntdll's statuses; no last error. */
#include "kernel32.h"

DWORD WINAPI EnableThreadProfiling(HANDLE ThreadHandle, DWORD Flags, DWORD64 HardwareCounters,
                                   HANDLE *PerformanceDataHandle)
{
    return RtlNtStatusToDosError(
        RtlEnableThreadProfiling(ThreadHandle, Flags, HardwareCounters, PerformanceDataHandle));
}

DWORD WINAPI DisableThreadProfiling(HANDLE PerformanceDataHandle)
{
    return RtlNtStatusToDosError(RtlDisableThreadProfiling(PerformanceDataHandle));
}

DWORD WINAPI QueryThreadProfiling(HANDLE ThreadHandle, PBOOLEAN Enabled)
{
    return RtlNtStatusToDosError(RtlQueryThreadProfiling(ThreadHandle, Enabled));
}

DWORD WINAPI ReadThreadProfilingData(HANDLE PerformanceDataHandle, DWORD Flags,
                                     PPERFORMANCE_DATA PerformanceData)
{
    NTSTATUS status = RtlReadThreadProfilingData(PerformanceDataHandle, Flags, PerformanceData);
    return status ? RtlNtStatusToDosError(status) : ERROR_SUCCESS;
}
