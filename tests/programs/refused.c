/* SPDX-License-Identifier: MIT */
/* The refusals of the counter driver for ring 3; prints nothing but what is wrong, and how many
 * checks it made. */
#include <ntstatus.h>
#define WIN32_NO_STATUS
#include <stdio.h>
#include "kernel.h"

#define KERNEL_ADDRESS ((HARDWARE_COUNTER *)0xffff800000000000)

typedef NTSTATUS NTAPI READ(HANDLE PerformanceDataHandle, ULONG Flags, PERFORMANCE_DATA *Data);

static int checks, failures;

static void is(NTSTATUS found, NTSTATUS wanted, const char *what)
{
    checks++;
    if (found == wanted)
        return;
    failures++;
    printf("%s: 0x%08lx, want 0x%08lx\n", what, found, wanted);
}

static NTSTATUS set(ULONG64 source)
{
    HARDWARE_COUNTER counter = { PMCCounter, 0, source };
    return set_counters(&counter, 1);
}

int main(void)
{
    READ *read = (READ *)GetProcAddress(GetModuleHandleA("ntdll.dll"), "NtReadThreadProfilingData");
    HARDWARE_COUNTER many[MAX_HW_COUNTERS + 1] = { { PMCCounter, 0, 2 } }, got[2];
    ULONG count = 99;
    HANDLE profile;
    for (int i = 0; i < MAX_HW_COUNTERS + 1; i++)
        many[i] = (HARDWARE_COUNTER){ PMCCounter, 0, 2 };
    is(set_counters(many, MAX_HW_COUNTERS + 1), STATUS_INVALID_PARAMETER, "17");
    is(set_counters(many, MAX_HW_COUNTERS), STATUS_INSUFFICIENT_RESOURCES, "16 of one event");
    is(set_counters(NULL, 1), STATUS_ACCESS_VIOLATION, "NULL");
    is(set_counters(KERNEL_ADDRESS, 1), STATUS_ACCESS_VIOLATION, "kernel");
    is(set(1ull << 32 | 2), STATUS_INVALID_PARAMETER, "Index of 33 bits");
    is(set(1), STATUS_NOT_SUPPORTED, "ProfileAlignmentFixup, which no counter counts");
    many[0].Type = MaxHardwareCounterType;
    is(set_counters(many, 1), STATUS_INVALID_PARAMETER, "Type");
    many[0] = (HARDWARE_COUNTER){ PMCCounter, 1, 2 };
    is(set_counters(many, 1), STATUS_INVALID_PARAMETER, "Reserved");
    is(query_counters(got, 2, &count), STATUS_SUCCESS, "query");
    is((NTSTATUS)count, 0, "nothing is configured");
    is(set(2), STATUS_SUCCESS, "instructions");
    is(set(6), STATUS_SUCCESS, "replaced by branches");
    is(set(2), STATUS_SUCCESS, "and back");
    is(query_counters(got, 0, &count), STATUS_BUFFER_TOO_SMALL, "query without capacity");
    is((NTSTATUS)count, 1, "one is configured");
    is((NTSTATUS)EnableThreadProfiling(GetCurrentThread(), 0, 1, &profile), ERROR_SUCCESS,
       "enable");
    is(set(2), STATUS_WMI_ALREADY_ENABLED, "while profiled");
    is(set_counters(NULL, 0), STATUS_WMI_ALREADY_ENABLED, "emptied while profiled");
    PERFORMANCE_DATA by_kernel = { .Size = sizeof by_kernel, .Version = PERFORMANCE_DATA_VERSION },
                     by_ring3 = by_kernel;
    is(ReadThreadProfilingData(profile, 2, &by_ring3), ERROR_SUCCESS, "read");
    is(read(profile, 2, &by_kernel), STATUS_SUCCESS, "read by the kernel");
    is(by_kernel.HwCountersCount, 1, "its elements");
    ULONG64 apart = by_kernel.HwCounters[0].Value - by_ring3.HwCounters[0].Value;
    is(apart > 0 && apart < 200, TRUE,
       "both read the same counter"); /* the instructions between the readings */
    is(read(&count, 2, &by_kernel), STATUS_INVALID_PARAMETER, "another handle");
    is(read(profile, 4, &by_kernel), STATUS_INVALID_PARAMETER_2, "flags");
    by_kernel.Version = 2;
    is(read(profile, 2, &by_kernel), STATUS_INVALID_PARAMETER_3, "version");
    by_kernel.Size = 1;
    is(read(profile, 2, &by_kernel), STATUS_INVALID_BUFFER_SIZE, "size");
    by_kernel.Size = sizeof by_kernel + 1;
    is(read(profile, 2, &by_kernel), STATUS_INVALID_BUFFER_SIZE, "a size too large");
    is(read(profile, 2, NULL), STATUS_ACCESS_VIOLATION, "no data");
    is((NTSTATUS)DisableThreadProfiling(profile), ERROR_SUCCESS, "disable");
    by_kernel = (PERFORMANCE_DATA){ .Size = sizeof by_kernel, .Version = PERFORMANCE_DATA_VERSION };
    is(read(profile, 2, &by_kernel), STATUS_PROFILING_NOT_STARTED, "read after disable");
    is(set_counters(NULL, 0), STATUS_SUCCESS, "emptied");
    printf("%d checks\n", checks);
    return failures;
}
