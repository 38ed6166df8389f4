/* SPDX-License-Identifier: MIT */
/* The structures of thread profiling that Windows does not document: what ring 3 gives the kernel,
 * and the block that both share. Include nt.h or windows.h first. Source: the community's phnt
 * headers. */
#pragma once

#define THREAD_PERFORMANCE_DATA_VERSION 1
#define THREAD_PROFILING_FLAG_HARDWARE_COUNTERS 0x00000002
/* HardwareCounters, as a mask of all elements. */
#define ALL_ELEMENTS ((1ull << MAX_HW_COUNTERS) - 1)

/* NT: ours, in CycleTime.Index: ring 3 has no RDPMC, the reader calls NtReadThreadProfilingData. */
#define THREAD_PROFILING_NO_RDPMC 0x10000
/* Bits 31:24: n where the elements are the first n, all configured and as wide; else 0. */
#define THREAD_PROFILING_USUAL_SHIFT 24

typedef struct _COUNTER_READING {
    HARDWARE_COUNTER_TYPE Type;
    ULONG Index;
    ULONG64 Start;
    ULONG64 Total;
} COUNTER_READING, *PCOUNTER_READING;
ABI_SIZE(COUNTER_READING, 0x18);

/* The block that ring 3 allocates and the kernel writes at context switches. */
typedef struct _THREAD_PERFORMANCE_DATA {
    USHORT Size;
    USHORT Version;
    PROCESSOR_NUMBER ProcessorNumber;
    ULONG ContextSwitches;
    ULONG HwCountersCount;
    ULONG64 UpdateCount;
    ULONG64 WaitReasonBitMap;
    ULONG64 HardwareCounters;
    COUNTER_READING CycleTime;
    COUNTER_READING HwCounters[MAX_HW_COUNTERS];
} THREAD_PERFORMANCE_DATA, *PTHREAD_PERFORMANCE_DATA;
ABI_SIZE(THREAD_PERFORMANCE_DATA, 0x1C0);
ABI_FIELD(THREAD_PERFORMANCE_DATA, UpdateCount, 0x10);
ABI_FIELD(THREAD_PERFORMANCE_DATA, CycleTime, 0x28);
ABI_FIELD(THREAD_PERFORMANCE_DATA, HwCounters, 0x40);

typedef struct _THREAD_PROFILING_INFORMATION {
    ULONG64 HardwareCounters;
    ULONG Flags;
    ULONG Enable;
    PTHREAD_PERFORMANCE_DATA PerformanceData;
} THREAD_PROFILING_INFORMATION, *PTHREAD_PROFILING_INFORMATION;
ABI_SIZE(THREAD_PROFILING_INFORMATION, 0x18);
