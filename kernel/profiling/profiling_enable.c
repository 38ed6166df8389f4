/* SPDX-License-Identifier: MIT */
/* How a thread enables and disables its profiling: class ThreadCounterProfiling of
 * NtSetInformationThread and NtQueryInformationThread. thread_profiling.c does the work of each
 * switch. slots_lock: DISPATCH_LEVEL. */
#include "hal/owners.h"
#include "kernel/base/bits.h"
#include "kernel/ke/copy.h"
#include "kernel/profiling/profiling_enable.h"
#include "kernel/base/irql.h"
#include "kernel/base/lock.h"
#include "kernel/base/print.h"
#include "kernel/base/refuse.h"
#include "kernel/counting/switch_counters.h"
#include "kernel/ke/mutex.h"
#include "kernel/ke/process.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"
#include "kernel/counting/thread_profiling.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"
#include "kernel/profiling/counter_config.h"

#define SLOTS (512 / VM_WINDOW_PAGES)

/* Held while a thread's profiling begins or ends, or a profiled thread's affinity changes. */
static struct mutex enabling = MUTEX("thread profiling");
static struct lock slots_lock = LOCK("profiling windows", DISPATCH_LEVEL);
static uint64_t slots_used[SLOTS / 64]; /* L: slots_lock */

static bool take_slot(struct thread_profiling *p)
{
    bool found = false;
    KIRQL irql = lock_acquire(&slots_lock);
    for (unsigned i = 0; i < SLOTS && !found; i++)
        if (!(slots_used[i / 64] >> i % 64 & 1)) {
            slots_used[i / 64] |= 1ul << i % 64;
            p->slot = i;
            found = true;
        }
    lock_release(&slots_lock, irql);
    return found;
}

static void free_slot(const struct thread_profiling *p)
{
    KIRQL irql = lock_acquire(&slots_lock);
    slots_used[p->slot / 64] &= ~(1ul << p->slot % 64);
    lock_release(&slots_lock, irql);
}

unsigned thread_profiling_slots(void)
{
    unsigned n = 0;
    KIRQL irql = lock_acquire(&slots_lock);
    for (unsigned i = 0; i < SLOTS / 64; i++)
        n += bit_count(slots_used[i]);
    lock_release(&slots_lock, irql);
    return n;
}

/* References the pages of the block, which must be writable by the process, and maps them into
 * the window. */
static bool pin_block(struct thread_profiling *p, const uint64_t *pml4)
{
    uint64_t last = p->user_address + sizeof(THREAD_PERFORMANCE_DATA) - 1;
    bool two = p->user_address / PAGE_SIZE != last / PAGE_SIZE;
    uint64_t first_page = vm_hold_writable(pml4, p->user_address);
    uint64_t second_page = two && first_page ? vm_hold_writable(pml4, last) : 0;
    if (!first_page || (two && !second_page)) {
        if (first_page)
            phys_free(phys_to_virt(first_page), 1);
        return false;
    }
    uint8_t *window = vm_window_map(p->slot, first_page, second_page);
    p->block = (block_at_4 *)(window + p->user_address % PAGE_SIZE);
    return true;
}

/* How ring 3 reads them. */
static ULONG describe_elements(const struct thread_profiling *p)
{
    ULONG bits = thread_profiling_unused_bits();
    bool usual = bits <= 0xff && p->active == p->mask && !(p->mask & (p->mask + 1)) &&
                 !counter_config_uneven;
    return usual ? bits | bit_count(p->mask) << THREAD_PROFILING_USUAL_SHIFT : bits;
}

static void write_block(const struct thread_profiling *p, ULONG configured)
{
    block_at_4 *block = p->block;
    block->ProcessorNumber = (PROCESSOR_NUMBER){ 0 };
    block->ContextSwitches = 0;
    block->WaitReasonBitMap = 0;
    block->HwCountersCount = configured;
    block->CycleTime = (COUNTER_READING){ .Index = describe_elements(p) };
    for (unsigned i = 0; i < MAX_HW_COUNTERS; i++)
        block->HwCounters[i] = (COUNTER_READING){ PMCCounter, 0, 0, 0 };
    for_each_bit(e, p->active) {
        block->HwCounters[e].Index = p->readings[e].selector;
    }
}

static void add_readings(struct thread_profiling *p)
{
    bool plain = true;
    unsigned n = 0;
    for_each_bit(i, p->active) {
        p->readings[i].selector = counter_config[i].selector;
        p->counters |= hal_counter_bit(counter_config[i].selector);
        p->readings[i].counter = bit_lowest(hal_counter_bit(counter_config[i].selector));
        plain = plain && i == n++ && counter_config[i].mask == counter_config[0].mask;
    }
    p->plain = plain && !isolate_on && !counter_config_uneven ? n * sizeof(struct reading) : 0;
    p->value_mask = counter_config[0].mask;
}

/* Whether all CPUs count alike: the thread's counts of several CPUs are added up. */
static bool may_run_on(const struct thread_profiling *p, struct cpu_set among)
{
    unsigned ctr;
    if (!p->counters || hal_counters_agree(among, p->counters, &ctr))
        return true;
    print("# thread profiling: refused: counter %u does not count the same on all its CPUs\n", ctr);
    return false;
}

NTSTATUS thread_profiling_set_affinity(struct thread *thread, struct cpu_set among)
{
    NTSTATUS status = STATUS_DEVICE_CONFIGURATION_ERROR;
    mutex_acquire(&enabling);
    if (!thread->profiling || may_run_on(thread->profiling, among))
        status = sched_set_affinity(thread, among);
    mutex_release(&enabling);
    return status;
}

static void forget(struct thread_profiling *p)
{
    if (p->mask && counter_config_leave())
        counter_driver_unused();
    vm_window_unmap(p->slot);
    free_slot(p);
}

/* Acquires all that enabling needs, or nothing. */
static NTSTATUS prepare_counting(struct thread_profiling *p, const uint64_t *pml4,
                                 struct cpu_set affinity)
{
    if (claim_fails() || !take_slot(p))
        return STATUS_NO_MEMORY;
    if (!pin_block(p, pml4)) {
        free_slot(p);
        return STATUS_ACCESS_VIOLATION;
    }
    p->generation = __atomic_load_n(&counter_config_generation, __ATOMIC_ACQUIRE);
    ULONG configured = p->mask ? counter_config_join(&p->generation) : 0;
    p->active = p->mask & ((1ul << configured) - 1);
    add_readings(p);
    write_block(p, configured);
    NTSTATUS status = may_run_on(p, affinity) ? STATUS_SUCCESS : STATUS_DEVICE_CONFIGURATION_ERROR;
    if (NT_SUCCESS(status) && isolate_on && p->mask)
        status = isolate_join(p);
    if (!NT_SUCCESS(status))
        forget(p);
    return status;
}

/* L: enabling */
static NTSTATUS enable(struct thread *me, const THREAD_PROFILING_INFORMATION *info)
{
    if ((info->Flags & ~THREAD_PROFILING_FLAG_DISPATCH) || (info->HardwareCounters & ~ALL_ELEMENTS))
        return STATUS_INVALID_PARAMETER;
    if (me->profiling)
        return STATUS_WMI_ALREADY_ENABLED;
    _Static_assert(sizeof(struct thread_profiling) <= PAGE_SIZE, "one page");
    struct thread_profiling *p = phys_alloc(1);
    if (!p)
        return STATUS_NO_MEMORY;
    p->mask = info->HardwareCounters;
    p->user_address = (uint64_t)info->PerformanceData;
    NTSTATUS status = prepare_counting(p, me->process->pml4, me->affinity);
    if (!NT_SUCCESS(status)) {
        phys_free(p, 1);
        return status;
    }
    KIRQL old = irql_raise(IPI_LEVEL); /* no switch, no refresh in between */
    thread_profiling_begin(p, me->cpu);
    __atomic_store_n(&me->profiling, p, __ATOMIC_RELEASE);
    irql_lower(old);
    return STATUS_SUCCESS;
}

/* L: enabling */
static void end(struct thread *thread)
{
    struct thread_profiling *p = thread->profiling;
    KIRQL old = irql_raise(IPI_LEVEL);
    __atomic_store_n(&thread->profiling, NULL, __ATOMIC_RELEASE);
    if (p->mask)
        thread_profiling_sample(p, NULL);
    irql_lower(old);
    if (isolate_on && p->mask)
        isolate_leave();
    forget(p);
    phys_free(p, 1);
}

/* L: enabling */
static NTSTATUS disable(struct thread *me, const THREAD_PROFILING_INFORMATION *info)
{
    if (!me->profiling)
        return STATUS_WMI_ALREADY_DISABLED;
    if (me->profiling->user_address != (uint64_t)info->PerformanceData)
        return STATUS_INVALID_PARAMETER;
    end(me);
    return STATUS_SUCCESS;
}

void thread_profiling_end(struct thread *thread)
{
    if (!thread->profiling)
        return;
    mutex_acquire(&enabling);
    end(thread);
    mutex_release(&enabling);
}

/* Checks in the order of the (undocumented) contract. Besides the handle's errors:
 * STATUS_INFO_LENGTH_MISMATCH, STATUS_ACCESS_VIOLATION (information or block not the caller's
 * memory), STATUS_DATATYPE_MISALIGNMENT (block not 4-aligned), STATUS_NOT_SUPPORTED (another
 * thread), STATUS_INVALID_PARAMETER (flags; our choice: mask bits above 15; disable: another
 * block), STATUS_WMI_ALREADY_ENABLED, STATUS_WMI_ALREADY_DISABLED, STATUS_NO_MEMORY;
 * STATUS_DEVICE_CONFIGURATION_ERROR: a counter does not count the same on all processors that the
 * thread may run on; under `isolate` STATUS_INSUFFICIENT_RESOURCES: a counter that is not
 * configured has another owner. */
NTSTATUS thread_profiling_set(HANDLE ThreadHandle, PVOID ThreadInformation,
                              ULONG ThreadInformationLength)
{
    THREAD_PROFILING_INFORMATION info;
    struct thread *me = thread_current();
    struct object *object;

    if (ThreadInformationLength != sizeof info)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = copy_in(&info, ThreadInformation, sizeof info);
    if (!NT_SUCCESS(status))
        return status;
    if ((uint64_t)info.PerformanceData % 4)
        return STATUS_DATATYPE_MISALIGNMENT;
    if (!vm_user_writable(me->process->pml4, (uint64_t)info.PerformanceData,
                          sizeof *info.PerformanceData))
        return STATUS_ACCESS_VIOLATION;
    status = handle_lookup(ThreadHandle, &thread_type, THREAD_SET_INFORMATION, &object);
    if (!NT_SUCCESS(status))
        return status;
    bool own = object == &me->object;
    object_release(object);
    if (!own)
        return STATUS_NOT_SUPPORTED;
    mutex_acquire(&enabling);
    status = info.Enable ? enable(me, &info) : disable(me, &info);
    mutex_release(&enabling);
    return status;
}

/* One byte: whether the thread is profiled. STATUS_INFO_LENGTH_MISMATCH; the handle's errors
 * (THREAD_QUERY_INFORMATION); STATUS_ACCESS_VIOLATION. */
NTSTATUS thread_profiling_query(HANDLE ThreadHandle, PVOID ThreadInformation,
                                ULONG ThreadInformationLength, PULONG ReturnLength)
{
    struct object *object;
    BOOLEAN enabled;
    ULONG size = sizeof enabled;

    if (ThreadInformationLength != size)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = handle_lookup(ThreadHandle, &thread_type, THREAD_QUERY_INFORMATION, &object);
    if (!NT_SUCCESS(status))
        return status;
    enabled = __atomic_load_n(&((struct thread *)object)->profiling, __ATOMIC_RELAXED) != NULL;
    object_release(object);
    status = copy_out(ThreadInformation, &enabled, size);
    return NT_SUCCESS(status) && ReturnLength ? copy_out(ReturnLength, &size, sizeof size) : status;
}
