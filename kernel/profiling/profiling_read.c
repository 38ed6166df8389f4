/* SPDX-License-Identifier: MIT */
/* Reads a thread's counts in ring 0, as ntdll does in ring 3. There are no retries, because at
 * IPI_LEVEL no switch can intervene. From ring 3 it costs a system call and needs no RDPMC. */
#include "kernel/base/bits.h"
#include "kernel/base/irql.h"
#include "kernel/base/print.h"
#include "kernel/base/x86.h"
#include "kernel/ke/copy.h"
#include "kernel/counting/switch_counters.h"
#include "kernel/profiling/profiling_enable.h"
#include "kernel/ke/thread.h"
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

/* False: the counters were reset. */
static bool read_counters(struct thread_profiling *p, PPERFORMANCE_DATA data)
{
    uint64_t back = 0;
    for_each_bit(i, p->mask & ALL_ELEMENTS)
        data->HwCounters[i] = (HARDWARE_COUNTER_DATA){ PMCCounter, 0, 0 };
    data->HwCountersCount = 0;
    for_each_bit(i, p->active) {
        data->HwCountersCount++;
        const struct reading *r = &p->readings[i];
        uint64_t mask = counter_config_mask(i),
                 since = (rdpmc_exact(r->selector) - r->start) & mask;
        data->HwCounters[i].Value = r->total + since;
        back |= since & ~(mask >> 1);
    }
    return back ? thread_profiling_check(p) : !p->lost;
}

/* Once for each loss. */
static NTSTATUS say_lost(void)
{
    if (__atomic_exchange_n(&counter_config_lost, COUNTERS_LOST_SAID, __ATOMIC_ACQ_REL) ==
        COUNTERS_LOST)
        print("# thread profiling: somebody has reset the counters (was this guest restored, or "
              "moved?): counts are lost until they are configured anew\n");
    return STATUS_DATA_ERROR;
}

/* Makes the checks of ReadThreadProfilingData and reads. IRQL <= IPI_LEVEL. */
static NTSTATUS read(ULONG flags, PPERFORMANCE_DATA data)
{
    NTSTATUS status = check_arguments(flags, data);
    if (!NT_SUCCESS(status))
        return status;
    bool kept = true;
    KIRQL old = irql_raise(IPI_LEVEL);
    struct thread_profiling *p = thread_current()->profiling;
    if (p) {
        data->CycleTime = p->cycle_total + rdtsc() - p->cycle_start;
        data->RetryCount = 0;
        data->Reserved = 0;
        if (flags & READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS)
            kept = read_counters(p, data);
        if (flags & READ_THREAD_PROFILING_FLAG_DISPATCHING) {
            data->ContextSwitchCount = p->switches;
            data->WaitReasonBitMap = p->block->WaitReasonBitMap;
            p->block->WaitReasonBitMap = 0;
        }
    }
    irql_lower(old);
    if (!kept)
        return say_lost();
    return p ? STATUS_SUCCESS : STATUS_PROFILING_NOT_STARTED;
}

/* The calling thread's own data. STATUS_ACCESS_VIOLATION; the checks of ReadThreadProfilingData;
 * STATUS_PROFILING_NOT_STARTED: not enabled; STATUS_INVALID_PARAMETER: not the handle from
 * enabling; STATUS_DATA_ERROR: the counters were reset since, as by a host that restored this
 * guest. NT: Windows gives a number. */
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
