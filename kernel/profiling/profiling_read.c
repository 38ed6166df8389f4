/* SPDX-License-Identifier: MIT */
/* Reads a thread's counts in ring 0, as ntdll does in ring 3. There are no retries, because at
 * IPI_LEVEL no switch can intervene. From ring 3 it costs a system call and needs no RDPMC. */
#include "kernel/base/bits.h"
#include "kernel/base/irql.h"
#include "kernel/base/x86.h"
#include "kernel/counting/switch_counters.h"
#include "kernel/profiling/profiling_enable.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/vm.h"
#include "kernel/counting/thread_profiling.h"

#define FLAGS                                                                                      \
    (READ_THREAD_PROFILING_FLAG_DISPATCHING | READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS)

static NTSTATUS check_arguments(ULONG flags, const PERFORMANCE_DATA *data)
{
    if (data->Size != sizeof *data)
        return STATUS_INVALID_BUFFER_SIZE;
    if (data->Version != PERFORMANCE_DATA_VERSION)
        return STATUS_INVALID_PARAMETER_3;
    return flags & ~(ULONG)FLAGS ? STATUS_INVALID_PARAMETER_2 : STATUS_SUCCESS;
}

static void read_counters(const struct thread_profiling *p, PPERFORMANCE_DATA data)
{
    for_each_bit(i, p->mask & ALL_ELEMENTS)
        data->HwCounters[i] = (HARDWARE_COUNTER_DATA){ PMCCounter, 0, 0 };
    data->HwCountersCount = 0;
    for_each_bit(i, p->active) {
        data->HwCountersCount++;
        const struct reading *r = &p->readings[i];
        data->HwCounters[i].Value =
            r->total + ((rdpmc_exact(r->selector) - r->start) & counter_config_mask(i));
    }
}

/* Makes the checks of ReadThreadProfilingData and reads. IRQL <= IPI_LEVEL. */
static NTSTATUS read(ULONG flags, PPERFORMANCE_DATA data)
{
    NTSTATUS status = check_arguments(flags, data);
    if (!NT_SUCCESS(status))
        return status;
    KIRQL old = irql_raise(IPI_LEVEL);
    const struct thread_profiling *p = thread_current()->profiling;
    if (p) {
        data->CycleTime = p->cycle_total + rdtsc() - p->cycle_start;
        data->RetryCount = 0;
        data->Reserved = 0;
        if (flags & READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS)
            read_counters(p, data);
        if (flags & READ_THREAD_PROFILING_FLAG_DISPATCHING) {
            data->ContextSwitchCount = p->switches;
            data->WaitReasonBitMap = p->block->WaitReasonBitMap;
            p->block->WaitReasonBitMap = 0;
        }
    }
    irql_lower(old);
    return p ? STATUS_SUCCESS : STATUS_PROFILING_NOT_STARTED;
}

/* The calling thread's own data. STATUS_ACCESS_VIOLATION; the checks of ReadThreadProfilingData;
 * STATUS_PROFILING_NOT_STARTED: not enabled; STATUS_INVALID_PARAMETER: not the handle from
 * enabling. */
NTSTATUS NtReadThreadProfilingData(HANDLE PerformanceDataHandle, ULONG Flags,
                                   PPERFORMANCE_DATA PerformanceData)
{
    PERFORMANCE_DATA data;
    const struct thread_profiling *p = thread_current()->profiling;
    NTSTATUS status = copy_in(&data, PerformanceData, sizeof data);
    if (NT_SUCCESS(status))
        status = check_arguments(Flags, &data);
    if (!NT_SUCCESS(status))
        return status;
    if (p && p->user_address != (uint64_t)PerformanceDataHandle)
        return STATUS_INVALID_PARAMETER;
    status = read(Flags, &data);
    return NT_SUCCESS(status) ? copy_out(PerformanceData, &data, sizeof data) : status;
}
