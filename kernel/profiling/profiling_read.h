/* SPDX-License-Identifier: MIT */
/* A profiled thread reads its counts by a service. */
#pragma once
#include "kernel/nt/ntddk.h"

/* Our own service: reads the calling thread's data as RtlReadThreadProfilingData
 * does in ring 3. STATUS_PROFILING_NOT_STARTED: it is not profiled. */
NTSTATUS NtReadThreadProfilingData(HANDLE PerformanceDataHandle, ULONG Flags,
                                   PPERFORMANCE_DATA PerformanceData);
