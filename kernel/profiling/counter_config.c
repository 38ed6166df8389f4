/* SPDX-License-Identifier: MIT */
/* KeSetHardwareCounterConfiguration and its query. config_lock (DISPATCH_LEVEL) guards all. */
#include "kernel/profiling/counter_config.h"
#include "hal/sources.h"
#include "hal/owners.h"
#include "hal/machine/smp.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/lock.h"
#include "kernel/base/string.h"
#include "kernel/ke/thread.h"
#include "kernel/counting/thread_profiling.h"

static struct lock config_lock = LOCK("counter configuration", DISPATCH_LEVEL);
static unsigned users;                      /* L: config_lock */
static const struct process *owner_process; /* L: config_lock; its setter, NULL: a driver */

static NTSTATUS check_array(PHARDWARE_COUNTER array, ULONG count, struct counter_element *elements,
                            bool *uneven)
{
    *uneven = false;
    if (count > MAX_HW_COUNTERS || (count && !array))
        return STATUS_INVALID_PARAMETER;
    if (count && !hal_counter_count())
        return STATUS_NOT_IMPLEMENTED;
    for (ULONG i = 0; i < count; i++) {
        bool uneven_one;
        if (array[i].Type != PMCCounter || array[i].Reserved ||
            !hal_counter_selector(array[i].Index, &elements[i].mask, &uneven_one))
            return STATUS_INVALID_PARAMETER;
        *uneven |= uneven_one;
        elements[i].selector = (uint32_t)array[i].Index;
    }
    return STATUS_SUCCESS;
}

/* Whether a profile object or a trace session has the counter, on any processor. */
static bool is_sampled(ULONG64 index)
{
    unsigned ctr = bit_lowest(hal_counter_bit(index));
    for_all_cpus(cpu)
        if (hal_counter_source(ctr, cpu) != ProfileTime)
            return true;
    return false;
}

/* L: config_lock */
static bool may_set(const struct process *owner, ULONG count)
{
    if (!owner)
        return !users || !count;
    return !users && (!counter_config_count || owner_process == owner);
}

/* On each CPU, after the configuration was emptied. */
static void refresh_current(void *)
{
    if (thread_current()->profiling)
        thread_profiling_refresh(thread_current()->profiling);
}

NTSTATUS counter_config_set(const struct process *owner, PHARDWARE_COUNTER array, ULONG count)
{
    struct counter_element elements[MAX_HW_COUNTERS];
    bool uneven;
    NTSTATUS status = check_array(array, count, elements, &uneven);
    if (!NT_SUCCESS(status))
        return status;
    for (ULONG i = 0; i < count; i++)
        if (is_sampled(array[i].Index))
            return STATUS_WMI_ALREADY_ENABLED;
    KIRQL irql = lock_acquire(&config_lock);
    bool in_use = users > 0;
    if (may_set(owner, count)) {
        if (count)
            memcpy(counter_config, elements, count * sizeof elements[0]);
        counter_config_count = count;
        counter_config_uneven = uneven;
        owner_process = owner;
        __atomic_store_n(&counter_config_lost, COUNTERS_KEPT, __ATOMIC_RELEASE);
        __atomic_fetch_add(&counter_config_generation, 1, __ATOMIC_RELEASE);
    } else {
        status = STATUS_WMI_ALREADY_ENABLED;
    }
    lock_release(&config_lock, irql);
    if (in_use && !count && NT_SUCCESS(status))
        smp_call(SMP_ALL, refresh_current, NULL);
    return status;
}

void counter_config_end(const struct process *owner)
{
    KIRQL irql = lock_acquire(&config_lock);
    bool ours = owner_process == owner && counter_config_count, in_use = users > 0;
    if (ours) {
        counter_config_count = 0;
        owner_process = NULL;
        __atomic_fetch_add(&counter_config_generation, 1, __ATOMIC_RELEASE);
    }
    lock_release(&config_lock, irql);
    if (ours && in_use)
        smp_call(SMP_ALL, refresh_current, NULL);
}

/* Replaces the list of counters that every thread's profiling samples, on all processors. Index is
 * the RDPMC selector. STATUS_INVALID_PARAMETER: Count > MAX_HW_COUNTERS (the array is not read);
 * our choice: NULL array, Type, Reserved, or an Index that some processor has no counter for.
 * STATUS_NOT_IMPLEMENTED: no counters here. STATUS_WMI_ALREADY_ENABLED: a profile object or a trace
 * session has one of the counters, on any processor (a driver may have allocated it); a thread has
 * hardware counters enabled; our choice: for any array. Count 0 always succeeds and ends their
 * sampling. IRQL <= APC_LEVEL. Documented, except where marked.
 * NT: Windows 10 was seen to refuse the change of a non-empty list even while nobody profiles, and
 * to check no element. */
NTSTATUS KeSetHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray, ULONG Count)
{
    return counter_config_set(NULL, CounterArray, Count);
}

/* Writes the configured counters, and always their number. STATUS_BUFFER_TOO_SMALL:
 * MaximumCount is less; the array is untouched. STATUS_INVALID_PARAMETER (our choice): Count NULL,
 * or CounterArray NULL with something to write. IRQL <= APC_LEVEL. Documented. */
NTSTATUS KeQueryHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray, ULONG MaximumCount,
                                             PULONG Count)
{
    NTSTATUS status = STATUS_SUCCESS;
    if (!Count)
        return STATUS_INVALID_PARAMETER;
    KIRQL irql = lock_acquire(&config_lock);
    *Count = counter_config_count;
    if (MaximumCount < counter_config_count)
        status = STATUS_BUFFER_TOO_SMALL;
    else if (counter_config_count && !CounterArray)
        status = STATUS_INVALID_PARAMETER;
    else
        for (ULONG i = 0; i < counter_config_count; i++)
            CounterArray[i] = (HARDWARE_COUNTER){ PMCCounter, 0, counter_config[i].selector };
    lock_release(&config_lock, irql);
    return status;
}

ULONG counter_config_join(uint32_t *generation)
{
    KIRQL irql = lock_acquire(&config_lock);
    __atomic_fetch_add(&users, 1, __ATOMIC_RELAXED);
    *generation = counter_config_generation;
    ULONG count = counter_config_count;
    lock_release(&config_lock, irql);
    return count;
}

bool counter_config_leave(void)
{
    KIRQL irql = lock_acquire(&config_lock);
    bool last = __atomic_sub_fetch(&users, 1, __ATOMIC_RELAXED) == 0;
    lock_release(&config_lock, irql);
    return last;
}

unsigned counter_config_users(void) { return __atomic_load_n(&users, __ATOMIC_RELAXED); }
