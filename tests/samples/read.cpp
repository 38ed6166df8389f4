/* SPDX-License-Identifier: MIT */
/* The program that made this kernel necessary: a user configures four counters by name, profiles
 * its thread, sleeps and reads. On Windows every call succeeds and every value is zero. */
#include <stdio.h>
#include <windows.h>

/* ntddk.h's, which a program on Windows cannot include together with windows.h. */
typedef struct {
    HARDWARE_COUNTER_TYPE Type;
    ULONG Reserved;
    ULONG64 Index;
} HARDWARE_COUNTER;
typedef NTSTATUS NTAPI SET_CONFIGURATION(HARDWARE_COUNTER *CounterArray, ULONG Count);

int main(void)
{
    const char *const names[] = { "instructions", "branches", "cache misses",
                                  "branch mispredictions" };
    HARDWARE_COUNTER counters[] = {
        { PMCCounter, 0, 2 }, { PMCCounter, 0, 6 }, { PMCCounter, 0, 10 }, { PMCCounter, 0, 11 }
    };
    SET_CONFIGURATION *set;
    HANDLE profile;

    set = (SET_CONFIGURATION *)GetProcAddress(LoadLibrary("NtosKrnl.exe"),
                                              "KeSetHardwareCounterConfiguration");
    if (!set) {
        fprintf(stderr, "no KeSetHardwareCounterConfiguration: error %lu\n", GetLastError());
        return 1;
    }
    NTSTATUS status = set(counters, 4);
    if (status) {
        fprintf(stderr, "KeSetHardwareCounterConfiguration: status 0x%08lx\n", status);
        return 1;
    }
    DWORD error =
        EnableThreadProfiling(GetCurrentThread(), THREAD_PROFILING_FLAG_DISPATCH, 0xf, &profile);
    if (error) {
        fprintf(stderr, "EnableThreadProfiling: error %lu\n", error);
        return 1;
    }
    for (int i = 0; i < 10; i++) {
        PERFORMANCE_DATA data = { .Size = sizeof data, .Version = PERFORMANCE_DATA_VERSION };
        Sleep(1000);
        error = ReadThreadProfilingData(profile,
                                        READ_THREAD_PROFILING_FLAG_DISPATCHING |
                                            READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS,
                                        &data);
        if (error) {
            fprintf(stderr, "ReadThreadProfilingData: error %lu\n", error);
            return 1;
        }
        printf("%d: %u counters, %lu switches, reasons 0x%llx, %llu cycles, %lu retries", i + 1,
               data.HwCountersCount, data.ContextSwitchCount, data.WaitReasonBitMap, data.CycleTime,
               data.RetryCount);
        for (int c = 0; c < 4; c++)
            printf(", %llu %s", data.HwCounters[c].Value, names[c]);
        printf("\n");
    }
    return (int)DisableThreadProfiling(profile);
}
