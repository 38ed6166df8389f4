/* SPDX-License-Identifier: MIT */
/* The counter driver for ring 3. On Windows a driver must choose, program and start counters
 * before thread profiling counts anything, and Windows has no such driver. Here a program's
 * KeSetHardwareCounterConfiguration does that: each Index is a KPROFILE_SOURCE. The counters
 * count ring 3 only, on every CPU, all the time. So counts are exact and show a program nothing
 * about the kernel. One process at a time can configure. Its configuration ends with it; its
 * counters are freed when no thread uses them any more.
 *
 * `guard` is held while the counters change. NT: on Windows the routine is for ring 0 only
 * and Index is a counter. A program that loads ntoskrnl.exe and calls the routine there gets
 * STATUS_SUCCESS and reads zeros. */
#include "hal/owners.h"
#include "hal/sources.h"
#include "kernel/ke/copy.h"
#include "kernel/ke/mutex.h"
#include "kernel/ke/process.h"
#include "kernel/ke/thread.h"
#include "kernel/profiling/counter_config.h"

static struct mutex guard = MUTEX("the counter driver");
static const struct process *process; /* atomic; L: guard to write; the configurer or NULL */
static bool orphaned;                 /* L: guard; the process has ended, its counters are in use */
static HANDLE counters;               /* L: guard; its counters */

static void set_owner(const struct process *owner)
{
    __atomic_store_n(&process, owner, __ATOMIC_RELAXED);
}

static void give_back(void)
{
    if (counters)
        HalFreeHardwareCounters(counters);
    counters = NULL;
}

/* L: guard. Called when no thread uses the counters. */
static void give_back_orphaned(void)
{
    if (!orphaned || counter_config_users())
        return;
    orphaned = false;
    give_back();
}

/* Claims counters for the sources and configures them. */
static NTSTATUS take_sources(const struct process *me, const HARDWARE_COUNTER *sources, ULONG count)
{
    HARDWARE_COUNTER array[MAX_HW_COUNTERS] = { { PMCCounter, 0, 0 } };
    ULONG source[MAX_HW_COUNTERS], selector[MAX_HW_COUNTERS];
    for (ULONG i = 0; i < count; i++)
        source[i] = (ULONG)sources[i].Index;
    NTSTATUS status =
        hal_count_sources("ring-3 counter driver", source, count, selector, &counters);
    if (!NT_SUCCESS(status))
        return status;
    for (ULONG i = 0; i < count; i++)
        array[i].Index = selector[i];
    status = counter_config_set(me, array, count);
    if (!NT_SUCCESS(status))
        give_back();
    return status;
}

static NTSTATUS check_sources(const HARDWARE_COUNTER *sources, ULONG count)
{
    for (ULONG i = 0; i < count; i++)
        if (sources[i].Type != PMCCounter || sources[i].Reserved || sources[i].Index >> 32)
            return STATUS_INVALID_PARAMETER;
    return count && !hal_counter_count() ? STATUS_NOT_IMPLEMENTED : STATUS_SUCCESS;
}

/* L: guard */
static NTSTATUS set_sources(const struct process *me, const HARDWARE_COUNTER *sources, ULONG count)
{
    if (orphaned || (process && process != me))
        return STATUS_WMI_ALREADY_ENABLED;
    NTSTATUS status = counter_config_set(me, NULL, 0);
    if (!NT_SUCCESS(status))
        return status;
    give_back();
    if (count)
        status = take_sources(me, sources, count);
    set_owner(counters ? me : NULL);
    return status;
}

/* STATUS_INVALID_PARAMETER: Count > MAX_HW_COUNTERS, Type, Reserved, Index above 32 bits.
 * STATUS_ACCESS_VIOLATION: the array is not the caller's. STATUS_NOT_IMPLEMENTED: no counters here.
 * STATUS_WMI_ALREADY_ENABLED: a thread has hardware counters enabled, or another process or a
 * driver configured. STATUS_NOT_SUPPORTED: this processor lacks a source.
 * STATUS_INSUFFICIENT_RESOURCES: not enough counters for all of them. After a failure of the last
 * two kinds nothing is configured. Count 0 gives the counters back. */
NTSTATUS counter_driver_set(PHARDWARE_COUNTER CounterArray, ULONG Count)
{
    HARDWARE_COUNTER sources[MAX_HW_COUNTERS];
    const struct process *me = thread_current()->process;
    if (Count > MAX_HW_COUNTERS)
        return STATUS_INVALID_PARAMETER;
    NTSTATUS status = copy_in(sources, CounterArray, Count * sizeof sources[0]);
    if (NT_SUCCESS(status))
        status = check_sources(sources, Count);
    if (!NT_SUCCESS(status))
        return status;
    mutex_acquire(&guard);
    status = set_sources(me, sources, Count);
    mutex_release(&guard);
    return status;
}

/* As for a driver: Index is the RDPMC selector. STATUS_ACCESS_VIOLATION. */
NTSTATUS counter_driver_query(PHARDWARE_COUNTER CounterArray, ULONG MaximumCount, PULONG Count)
{
    HARDWARE_COUNTER array[MAX_HW_COUNTERS];
    ULONG count = 0, capacity = MaximumCount < MAX_HW_COUNTERS ? MaximumCount : MAX_HW_COUNTERS;
    NTSTATUS status = KeQueryHardwareCounterConfiguration(array, capacity, &count);
    NTSTATUS copied = copy_out(Count, &count, sizeof count);
    if (NT_SUCCESS(copied) && NT_SUCCESS(status))
        copied = copy_out(CounterArray, array, count * sizeof array[0]);
    return NT_SUCCESS(copied) ? status : copied;
}

void counter_driver_unused(void)
{
    mutex_acquire(&guard);
    give_back_orphaned();
    mutex_release(&guard);
}

void counter_driver_end(const struct process *ending)
{
    if (__atomic_load_n(&process, __ATOMIC_RELAXED) != ending)
        return;
    mutex_acquire(&guard);
    counter_config_end(ending); /* unless a driver has replaced it */
    set_owner(NULL);
    orphaned = true;
    give_back_orphaned();
    mutex_release(&guard);
}
