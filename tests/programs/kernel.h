/* SPDX-License-Identifier: MIT */
/* The kernel's routines for counters, by their names, as a program on Windows must call them. */
#pragma once
#include <windows.h>
#include <winternl.h>

/* ntddk.h's, which a program cannot include together with windows.h. */
typedef struct {
    HARDWARE_COUNTER_TYPE Type;
    ULONG Reserved;
    ULONG64 Index;
} HARDWARE_COUNTER;
typedef NTSTATUS NTAPI SET(HARDWARE_COUNTER *CounterArray, ULONG Count);
typedef NTSTATUS NTAPI QUERY(HARDWARE_COUNTER *CounterArray, ULONG MaximumCount, ULONG *Count);

static inline FARPROC kernel(const char *name)
{
    return GetProcAddress(LoadLibraryA("ntoskrnl.exe"), name);
}

static inline NTSTATUS set_counters(HARDWARE_COUNTER *array, ULONG count)
{
    return ((SET *)kernel("KeSetHardwareCounterConfiguration"))(array, count);
}

static inline NTSTATUS query_counters(HARDWARE_COUNTER *array, ULONG most, ULONG *count)
{
    return ((QUERY *)kernel("KeQueryHardwareCounterConfiguration"))(array, most, count);
}
