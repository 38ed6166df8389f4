/* SPDX-License-Identifier: MIT */
/* How a thread turns its profiling on and off: class ThreadCounterProfiling of NtSetInformationThread and
 * NtQueryInformationThread. What is then done at each switch: thread_profiling.c. slots_lock: DISPATCH_LEVEL. */
#include "kernel/counter_config.h"
#include "kernel/irql.h"
#include "kernel/isolate.h"
#include "kernel/lock.h"
#include "kernel/phys.h"
#include "kernel/process.h"
#include "kernel/thread.h"
#include "kernel/thread_profiling.h"
#include "kernel/vm.h"

#define SLOTS (512 / VM_WINDOW_PAGES)
#define FIXED_SELECTOR (1u << 30) /* of RDPMC: Intel's fixed counters */
#define ALL_ELEMENTS ((1ul << MAX_HW_COUNTERS) - 1)

static struct lock slots_lock = LOCK("profiling windows", DISPATCH_LEVEL);
static uint64_t slots_used[SLOTS / 64]; /* L: slots_lock */

static bool take_slot(struct thread_profiling *p)
{
    bool found = false;
    uint8_t irql = lock_acquire(&slots_lock);
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
    uint8_t irql = lock_acquire(&slots_lock);
    slots_used[p->slot / 64] &= ~(1ul << p->slot % 64);
    lock_release(&slots_lock, irql);
}

/* Holds the pages of the block, which must be the process's to write, and opens the window onto them. */
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

/* For the reader in ring 3 (rtl.c): bits 7:0 how many bits counters lack to 64; bits 15:8 the same of fixed ones, if
 * they differ. */
static ULONG unused_bits(void)
{
    ULONG lack[2] = { 0, 0 };
    for (ULONG i = 0; i < counter_config_count; i++)
        lack[(counter_config[i].selector & FIXED_SELECTOR) != 0] = (ULONG)__builtin_clzl(counter_config[i].width);
    if (!lack[0] || lack[0] == lack[1])
        return lack[1];
    return lack[0] | lack[1] << 8;
}

static void write_block(const struct thread_profiling *p, ULONG configured)
{
    block_at_4 *block = p->block;
    block->ProcessorNumber = (PROCESSOR_NUMBER){ 0 };
    block->ContextSwitches = 0;
    block->WaitReasonBitMap = 0;
    block->HwCountersCount = configured;
    block->CycleTime = (COUNTER_READING){ .Index = unused_bits() };
    for (unsigned i = 0; i < MAX_HW_COUNTERS; i++)
        block->HwCounters[i] = (COUNTER_READING){ PMCCounter, 0, 0, 0 };
    for (uint64_t left = p->active; left; left &= left - 1) {
        unsigned e = (unsigned)__builtin_ctzl(left);
        block->HwCounters[e].Index = p->readings[e].selector;
    }
}

static void add_readings(struct thread_profiling *p)
{
    bool plain = true;
    unsigned n = 0;
    for (uint64_t left = p->active; left; left &= left - 1, n++) {
        unsigned i = (unsigned)__builtin_ctzl(left);
        p->readings[i].selector = counter_config[i].selector;
        plain = plain && i == n && counter_config[i].width == counter_config[0].width;
    }
    p->plain = plain && !isolate_on ? n * sizeof(struct reading) : 0;
    p->width = counter_config[0].width;
}

/* All that enabling needs, or nothing. */
static NTSTATUS prepare(struct thread_profiling *p, const uint64_t *pml4)
{
    if (!take_slot(p))
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
    NTSTATUS status = isolate_on && p->mask ? isolate_join(p) : STATUS_SUCCESS;
    if (!NT_SUCCESS(status)) {
        counter_config_leave();
        vm_window_unmap(p->slot);
        free_slot(p);
    }
    return status;
}

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
    NTSTATUS status = prepare(p, me->process->pml4);
    if (!NT_SUCCESS(status)) {
        phys_free(p, 1);
        return status;
    }
    KIRQL old = irql_raise(IPI_LEVEL); /* no switch, no refresh in between */
    thread_profiling_begin(p, me->cpu);
    me->profiling = p;
    irql_lower(old);
    return STATUS_SUCCESS;
}

static NTSTATUS disable(struct thread *me, const THREAD_PROFILING_INFORMATION *info)
{
    if (!me->profiling)
        return STATUS_WMI_ALREADY_DISABLED;
    if (me->profiling->user_address != (uint64_t)info->PerformanceData)
        return STATUS_INVALID_PARAMETER;
    thread_profiling_end(me);
    return STATUS_SUCCESS;
}

void thread_profiling_end(struct thread *thread)
{
    struct thread_profiling *p = thread->profiling;
    if (!p)
        return;
    KIRQL old = irql_raise(IPI_LEVEL);
    thread->profiling = NULL;
    if (p->mask)
        thread_profiling_sample(p, NULL);
    irql_lower(old);
    if (isolate_on && p->mask)
        isolate_leave();
    if (p->mask)
        counter_config_leave();
    vm_window_unmap(p->slot);
    free_slot(p);
    phys_free(p, 1);
}

/* Checks in the order of the (undocumented) contract. Besides the handle's errors: STATUS_INFO_LENGTH_MISMATCH,
 * STATUS_ACCESS_VIOLATION (information or block not the caller's memory), STATUS_DATATYPE_MISALIGNMENT (block not
 * 4-aligned), STATUS_NOT_SUPPORTED (another thread), STATUS_INVALID_PARAMETER (flags; our choice: mask bits above
 * 15; disable: another block), STATUS_WMI_ALREADY_ENABLED, STATUS_WMI_ALREADY_DISABLED, STATUS_NO_MEMORY; under
 * `isolate` STATUS_INSUFFICIENT_RESOURCES: another owner has a counter that is not configured. */
NTSTATUS thread_profiling_set(HANDLE ThreadHandle, PVOID ThreadInformation, ULONG ThreadInformationLength)
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
    if (!vm_user_writable(me->process->pml4, (uint64_t)info.PerformanceData, sizeof *info.PerformanceData))
        return STATUS_ACCESS_VIOLATION;
    status = handle_lookup(ThreadHandle, OBJECT_THREAD, THREAD_SET_INFORMATION, &object);
    if (!NT_SUCCESS(status))
        return status;
    bool own = object == &me->object;
    object_release(object);
    if (!own)
        return STATUS_NOT_SUPPORTED;
    return info.Enable ? enable(me, &info) : disable(me, &info);
}

/* One byte: whether the thread is profiled. STATUS_INFO_LENGTH_MISMATCH; the handle's errors
 * (THREAD_QUERY_INFORMATION); STATUS_ACCESS_VIOLATION. */
NTSTATUS thread_profiling_query(HANDLE ThreadHandle, PVOID ThreadInformation, ULONG ThreadInformationLength,
                                PULONG ReturnLength)
{
    struct object *object;
    BOOLEAN enabled;
    ULONG size = sizeof enabled;

    if (ThreadInformationLength != size)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = handle_lookup(ThreadHandle, OBJECT_THREAD, THREAD_QUERY_INFORMATION, &object);
    if (!NT_SUCCESS(status))
        return status;
    enabled = __atomic_load_n(&((struct thread *)object)->profiling, __ATOMIC_RELAXED) != NULL;
    object_release(object);
    status = copy_out(ThreadInformation, &enabled, size);
    return NT_SUCCESS(status) && ReturnLength ? copy_out(ReturnLength, &size, sizeof size) : status;
}
