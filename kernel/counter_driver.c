/* SPDX-License-Identifier: MIT */
/* The counter driver for ring 3. On Windows a driver must choose, program and start counters before thread profiling
 * counts anything, and none ships with it. Here a program's KeSetHardwareCounterConfiguration does that: each Index
 * is a KPROFILE_SOURCE. The counters count ring 3 only, on every CPU, for ever; that makes counts exact and tells
 * a program nothing about the kernel. One process at a time; what it configured dies with it, but the counters are kept
 * from others until no thread counts with them.
 *
 * driver_lock (DISPATCH_LEVEL) guards the state. A change of counters needs PASSIVE_LEVEL; `busy` keeps others out
 * meanwhile.
 * NT: on Windows the routine is for ring 0 only and Index is a counter. A program that loads ntoskrnl.exe and calls
 * it there is told STATUS_SUCCESS and reads zeros. */
#include "hal/hal.h"
#include "kernel/counter_config.h"
#include "kernel/irql.h"
#include "kernel/lock.h"
#include "kernel/process.h"
#include "kernel/thread.h"
#include "kernel/vm.h"

static struct lock driver_lock = LOCK("counter driver", DISPATCH_LEVEL);
static bool busy;                     /* L: driver_lock */
static const struct process *process; /* L: driver_lock; who has counters, or NULL */
static bool orphaned;                 /* L: driver_lock; it is gone, and threads of others still count with them */
static HANDLE counters;               /* its counters; of the one who set `busy` */

/* False if another process has the driver. */
static bool enter(const struct process *me)
{
    uint8_t irql = lock_acquire(&driver_lock);
    bool mine = !busy && !orphaned && (!process || process == me);
    if (mine)
        busy = true;
    lock_release(&driver_lock, irql);
    return mine;
}

static void leave(const struct process *owner)
{
    uint8_t irql = lock_acquire(&driver_lock);
    process = owner;
    busy = false;
    lock_release(&driver_lock, irql);
}

static void give_back(void)
{
    if (counters)
        HalFreeHardwareCounters(counters);
    counters = NULL;
}

/* Takes counters for the sources and makes them the configuration. */
static NTSTATUS take(const struct process *me, const HARDWARE_COUNTER *sources, ULONG count)
{
    HARDWARE_COUNTER array[MAX_HW_COUNTERS] = { { PMCCounter, 0, 0 } };
    ULONG source[MAX_HW_COUNTERS], selector[MAX_HW_COUNTERS];
    for (ULONG i = 0; i < count; i++)
        source[i] = (ULONG)sources[i].Index;
    NTSTATUS status = hal_count_sources("ring-3 counter driver", source, count, selector, &counters);
    if (!NT_SUCCESS(status))
        return status;
    for (ULONG i = 0; i < count; i++)
        array[i].Index = selector[i];
    status = counter_config_set(me, array, count);
    if (!NT_SUCCESS(status))
        give_back();
    return status;
}

static NTSTATUS check(const HARDWARE_COUNTER *sources, ULONG count)
{
    for (ULONG i = 0; i < count; i++)
        if (sources[i].Type != PMCCounter || sources[i].Reserved || sources[i].Index >> 32)
            return STATUS_INVALID_PARAMETER;
    return count && !hal_counter_count() ? STATUS_NOT_IMPLEMENTED : STATUS_SUCCESS;
}

/* STATUS_INVALID_PARAMETER: Count > MAX_HW_COUNTERS, Type, Reserved, Index above 32 bits. STATUS_ACCESS_VIOLATION: the
 * array is not the caller's. STATUS_NOT_IMPLEMENTED: no counters here. STATUS_WMI_ALREADY_ENABLED: a thread has
 * hardware counters enabled, or another process or a driver configured. STATUS_NOT_SUPPORTED: this processor lacks
 * a source. STATUS_INSUFFICIENT_RESOURCES: not enough counters for all of them. After a failure of the last two
 * kinds nothing is configured. Count 0 gives the counters back. */
NTSTATUS counter_driver_set(PHARDWARE_COUNTER CounterArray, ULONG Count)
{
    HARDWARE_COUNTER sources[MAX_HW_COUNTERS];
    const struct process *me = thread_current()->process;
    if (Count > MAX_HW_COUNTERS)
        return STATUS_INVALID_PARAMETER;
    NTSTATUS status = copy_in(sources, CounterArray, Count * sizeof sources[0]);
    if (NT_SUCCESS(status))
        status = check(sources, Count);
    if (!NT_SUCCESS(status))
        return status;
    if (!enter(me))
        return STATUS_WMI_ALREADY_ENABLED;
    status = counter_config_set(me, NULL, 0);
    if (!NT_SUCCESS(status)) {
        leave(counters ? me : NULL);
        return status;
    }
    give_back();
    if (Count)
        status = take(me, sources, Count);
    leave(counters ? me : NULL);
    return status;
}

/* As for a driver: Index is the RDPMC selector. STATUS_ACCESS_VIOLATION. */
NTSTATUS counter_driver_query(PHARDWARE_COUNTER CounterArray, ULONG MaximumCount, PULONG Count)
{
    HARDWARE_COUNTER array[MAX_HW_COUNTERS];
    ULONG count = 0, room = MaximumCount < MAX_HW_COUNTERS ? MaximumCount : MAX_HW_COUNTERS;
    NTSTATUS status = KeQueryHardwareCounterConfiguration(array, room, &count);
    NTSTATUS copied = copy_out(Count, &count, sizeof count);
    if (NT_SUCCESS(copied) && NT_SUCCESS(status))
        copied = copy_out(CounterArray, array, count * sizeof array[0]);
    return NT_SUCCESS(copied) ? status : copied;
}

void counter_driver_unused(void)
{
    uint8_t irql = lock_acquire(&driver_lock);
    bool last = orphaned && !counter_config_users();
    if (last)
        orphaned = false;
    busy |= last;
    lock_release(&driver_lock, irql);
    if (!last)
        return;
    give_back();
    leave(NULL);
}

void counter_driver_end(const struct process *ending)
{
    if (__atomic_load_n(&process, __ATOMIC_RELAXED) != ending || !enter(ending))
        return;
    counter_config_end(ending); /* unless a driver has replaced it */
    uint8_t irql = lock_acquire(&driver_lock);
    process = NULL;
    orphaned = true;
    busy = false;
    lock_release(&driver_lock, irql);
    counter_driver_unused();
}
