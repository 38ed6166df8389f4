/* SPDX-License-Identifier: MIT */
/* One counter of instructions for inline.c and threads.c: to configure it, and to read it. */
#pragma once
#include <stdio.h>
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

/* Configures it, for this thread too: its selector of RDPMC, and the profile. FALSE, and a line, if
 * there is none. */
static BOOL enable(ULONG *selector, HANDLE *profile)
{
    HARDWARE_COUNTER counter = { PMCCounter, 0, 2 }; /* ProfileTotalIssues: instructions */
    HMODULE kernel = LoadLibraryA("ntoskrnl.exe");
    SET *set = (SET *)(void *)GetProcAddress(kernel, "KeSetHardwareCounterConfiguration");
    QUERY *query = (QUERY *)(void *)GetProcAddress(kernel, "KeQueryHardwareCounterConfiguration");
    ULONG count;
    NTSTATUS status = set && query ? set(&counter, 1) : -1;
    if (status == 0)
        status = query(&counter, 1, &count);
    *selector = (ULONG)counter.Index;
    if (status == 0 && EnableThreadProfiling(GetCurrentThread(), 0, 1, profile) == 0)
        return TRUE;
    fprintf(stderr, "no counter: status 0x%08lx\n", status);
    return FALSE;
}

static inline ULONG64 read_counter(ULONG selector)
{
    ULONG64 low, high;
    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(selector) : "memory");
    return high << 32 | low;
}
