/* SPDX-License-Identifier: MIT */
/* Counting per thread, policy `accumulate`: the counters run for ever, and a switch samples them. One RDPMC per
 * counter ends the old thread's stretch and begins the new one's; nothing is written to the PMU.
 *
 * The configuration is the machine's. A thread's own totals live in its struct thread_profiling and are never
 * read back from the block, which is ring-3 memory: its pages are held and written through a window.
 * config_lock (DISPATCH_LEVEL) guards the configuration; a thread's profiling is changed by the thread itself and,
 * at IPI_LEVEL on the CPU where it runs, by config_refresh. */
#include "kernel/thread_profiling.h"
#include "hal/hal.h"
#include "kernel/irql.h"
#include "kernel/lock.h"
#include "kernel/phys.h"
#include "kernel/process.h"
#include "kernel/smp.h"
#include "kernel/string.h"
#include "kernel/thread.h"
#include "kernel/vm.h"
#include "kernel/x86.h"

#define SLOTS (512 / VM_WINDOW_PAGES)
#define FIXED_SELECTOR (1u << 30) /* of RDPMC: Intel's fixed counters */
#define ALL_ELEMENTS ((1ul << MAX_HW_COUNTERS) - 1)

/* Ring 3 must align its block to 4 only. */
typedef THREAD_PERFORMANCE_DATA block_at_4 __attribute__((aligned(4)));

struct thread_profiling {
    block_at_4 *block;              /* the ring-3 block, through the window of `slot` */
    uint64_t user_address;          /* what ring 3 calls it: the handle */
    unsigned slot;
    uint64_t mask;                  /* as asked for */
    uint64_t active;                /* of these, configured: the elements that are sampled */
    uint32_t generation;            /* of the configuration that `active` belongs to */
    uint32_t switches;
    uint64_t updates;
    uint64_t cycle_start, cycle_total;
    uint64_t start[MAX_HW_COUNTERS], total[MAX_HW_COUNTERS];
};

struct element {
    uint32_t selector;
    uint64_t width; /* mask of the counter's bits */
};

static struct lock config_lock = LOCK("counter configuration", DISPATCH_LEVEL);
static struct element config[MAX_HW_COUNTERS]; /* L: config_lock; changed only while config_users is 0 */
static ULONG config_count;                     /* L: config_lock */
static uint32_t config_generation;             /* atomic; written under config_lock */
static unsigned config_users;                  /* L: config_lock; threads with a mask that is not 0 */
static uint64_t slots_used[SLOTS / 64];        /* L: config_lock */

/* --- The switch. --- */

static void read_counters(uint64_t elements, uint64_t *values)
{
    for (; elements; elements &= elements - 1) {
        unsigned i = (unsigned)__builtin_ctzl(elements);
        values[i] = rdpmc(config[i].selector);
    }
}

static void leave(struct thread_profiling *p, uint64_t tsc, const uint64_t *values, KWAIT_REASON reason)
{
    block_at_4 *block = p->block;
    p->cycle_total += tsc - p->cycle_start;
    block->CycleTime.Total = p->cycle_total;
    for (uint64_t left = p->active; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzl(left);
        p->total[i] += (values[i] - p->start[i]) & config[i].width;
        block->HwCounters[i].Total = p->total[i];
    }
    block->ContextSwitches = ++p->switches;
    block->WaitReasonBitMap |= 1ul << reason; /* the reader, who exchanges it, is the thread itself */
    block->UpdateCount = ++p->updates;
}

static void arrive(struct thread_profiling *p, uint64_t tsc, const uint64_t *values)
{
    block_at_4 *block = p->block;
    p->cycle_start = tsc;
    block->CycleTime.Start = tsc;
    for (uint64_t left = p->active; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzl(left);
        p->start[i] = values[i];
        block->HwCounters[i].Start = values[i];
    }
    block->ProcessorNumber.Number = (UCHAR)cpu_number();
    block->UpdateCount = ++p->updates;
}

/* Ring 3 may read counters only while a thread runs that enabled them. */
static void allow_rdpmc(bool allow)
{
    uint64_t cr4 = read_cr4();
    uint64_t wanted = allow ? cr4 | CR4_PCE : cr4 & ~(uint64_t)CR4_PCE;
    if (wanted != cr4)
        write_cr4(wanted);
}

/* An emptied configuration ends sampling for good: another one cannot come while the thread is enabled. */
static void drop_stale(struct thread_profiling *p)
{
    if (p->generation == __atomic_load_n(&config_generation, __ATOMIC_ACQUIRE))
        return;
    p->generation = config_generation;
    p->active = 0;
    p->block->HwCountersCount = 0;
    p->block->UpdateCount = ++p->updates;
}

void thread_profiling_switch(struct thread *from, struct thread *to, KWAIT_REASON reason)
{
    struct thread_profiling *out = from->profiling, *in = to->profiling;
    uint64_t values[MAX_HW_COUNTERS], tsc = rdtsc();
    if (in)
        drop_stale(in);
    read_counters((out ? out->active : 0) | (in ? in->active : 0), values);
    if (out)
        leave(out, tsc, values, reason);
    if (in)
        arrive(in, tsc, values);
    allow_rdpmc(in && in->mask);
}

void thread_profiling_exclude(struct thread *thread, uint64_t ticks)
{
    struct thread_profiling *p = thread->profiling;
    p->cycle_start += ticks;
    p->block->CycleTime.Start = p->cycle_start;
    p->block->UpdateCount = ++p->updates;
}

/* --- Configuration. --- */

/* At IPI_LEVEL on each CPU, after the configuration was emptied. */
static void config_refresh(void *unused)
{
    (void)unused;
    struct thread_profiling *p = thread_current()->profiling;
    if (p)
        drop_stale(p);
}

static NTSTATUS check_array(PHARDWARE_COUNTER array, ULONG count, struct element *elements)
{
    if (count > MAX_HW_COUNTERS || (count && !array))
        return STATUS_INVALID_PARAMETER;
    if (count && !hal_counter_count())
        return STATUS_NOT_IMPLEMENTED;
    for (ULONG i = 0; i < count; i++) {
        if (array[i].Type != PMCCounter || array[i].Reserved ||
            !hal_counter_selector(array[i].Index, &elements[i].width))
            return STATUS_INVALID_PARAMETER;
        elements[i].selector = (uint32_t)array[i].Index;
    }
    return STATUS_SUCCESS;
}

/* Replaces the list of counters that every thread's profiling samples, on all processors. Index is the RDPMC selector.
 * STATUS_INVALID_PARAMETER: Count > MAX_HW_COUNTERS (the array is not read); our choice: NULL array, Type, Reserved,
 * or an Index that names no counter. STATUS_NOT_IMPLEMENTED: no counters here. STATUS_WMI_ALREADY_ENABLED: a thread
 * has hardware counters enabled; our choice: whatever the array names. Count 0 always succeeds and ends their
 * sampling. IRQL <= APC_LEVEL. Documented where not said otherwise.
 * NT: Windows 10 was seen to refuse to replace a non-empty list even while nobody profiles, and checks no element. */
NTSTATUS KeSetHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray, ULONG Count)
{
    struct element elements[MAX_HW_COUNTERS];
    NTSTATUS status = check_array(CounterArray, Count, elements);
    if (!NT_SUCCESS(status))
        return status;
    uint8_t irql = lock_acquire(&config_lock);
    bool in_use = config_users > 0;
    if (in_use && Count) {
        status = STATUS_WMI_ALREADY_ENABLED;
    } else {
        if (Count)
            memcpy(config, elements, Count * sizeof elements[0]);
        config_count = Count;
        __atomic_fetch_add(&config_generation, 1, __ATOMIC_RELEASE);
    }
    lock_release(&config_lock, irql);
    if (in_use && !Count)
        smp_call(SMP_ALL, config_refresh, NULL);
    return status;
}

/* Writes the configured counters and, in every case, their number. STATUS_BUFFER_TOO_SMALL: MaximumCount is less;
 * the array is untouched. STATUS_INVALID_PARAMETER (our choice): Count NULL, or CounterArray NULL with something to
 * write. IRQL <= APC_LEVEL. Documented. */
NTSTATUS KeQueryHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray, ULONG MaximumCount, PULONG Count)
{
    NTSTATUS status = STATUS_SUCCESS;
    if (!Count)
        return STATUS_INVALID_PARAMETER;
    uint8_t irql = lock_acquire(&config_lock);
    *Count = config_count;
    if (MaximumCount < config_count)
        status = STATUS_BUFFER_TOO_SMALL;
    else if (config_count && !CounterArray)
        status = STATUS_INVALID_PARAMETER;
    else
        for (ULONG i = 0; i < config_count; i++)
            CounterArray[i] = (HARDWARE_COUNTER){ PMCCounter, 0, config[i].selector };
    lock_release(&config_lock, irql);
    return status;
}

unsigned thread_profiling_users(void) { return __atomic_load_n(&config_users, __ATOMIC_RELAXED); }

/* --- Enabling and disabling, by the thread itself. --- */

/* Under config_lock: a window slot, and the place among those who use the configuration. */
static bool reserve(struct thread_profiling *p)
{
    for (unsigned i = 0; i < SLOTS; i++)
        if (!(slots_used[i / 64] >> i % 64 & 1)) {
            slots_used[i / 64] |= 1ul << i % 64;
            p->slot = i;
            p->active = p->mask & ((1ul << config_count) - 1);
            p->generation = config_generation;
            config_users += p->mask != 0;
            return true;
        }
    return false;
}

static void unreserve(const struct thread_profiling *p)
{
    uint8_t irql = lock_acquire(&config_lock);
    slots_used[p->slot / 64] &= ~(1ul << p->slot % 64);
    config_users -= p->mask != 0;
    lock_release(&config_lock, irql);
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

/* For the reader in ring 3 (rtl.c): bits 7:0 how many bits general-purpose counters lack to 64, 15:8 fixed ones. */
static ULONG unused_bits(void)
{
    ULONG bits = 0;
    for (ULONG i = 0; i < config_count; i++) {
        unsigned shift = config[i].selector & FIXED_SELECTOR ? 8 : 0;
        bits = (bits & ~(0xffu << shift)) | (ULONG)__builtin_clzl(config[i].width) << shift;
    }
    return bits;
}

static void write_block(const struct thread_profiling *p)
{
    block_at_4 *block = p->block;
    block->ProcessorNumber = (PROCESSOR_NUMBER){ 0 };
    block->ContextSwitches = 0;
    block->WaitReasonBitMap = 0;
    block->HwCountersCount = config_count;
    block->CycleTime = (COUNTER_READING){ .Index = unused_bits() };
    for (unsigned i = 0; i < MAX_HW_COUNTERS; i++) {
        bool active = p->active >> i & 1;
        block->HwCounters[i] = (COUNTER_READING){ PMCCounter, active ? config[i].selector : 0, 0, 0 };
    }
}

static NTSTATUS enable(struct thread *me, const THREAD_PROFILING_INFORMATION *info)
{
    if ((info->Flags & ~THREAD_PROFILING_FLAG_DISPATCH) || (info->HardwareCounters & ~ALL_ELEMENTS))
        return STATUS_INVALID_PARAMETER;
    if (me->profiling)
        return STATUS_WMI_ALREADY_ENABLED;
    struct thread_profiling *p = phys_alloc(1);
    if (!p)
        return STATUS_NO_MEMORY;
    p->mask = info->HardwareCounters;
    p->user_address = (uint64_t)info->PerformanceData;
    uint8_t irql = lock_acquire(&config_lock);
    bool reserved = reserve(p);
    lock_release(&config_lock, irql);
    bool pinned = reserved && pin_block(p, me->process->pml4);
    if (!pinned) {
        if (reserved)
            unreserve(p);
        phys_free(p, 1);
        return reserved ? STATUS_ACCESS_VIOLATION : STATUS_NO_MEMORY;
    }
    uint64_t values[MAX_HW_COUNTERS];
    KIRQL old = irql_raise(IPI_LEVEL); /* no switch, no refresh in between */
    write_block(p);
    drop_stale(p);
    read_counters(p->active, values);
    arrive(p, rdtsc(), values);
    me->profiling = p;
    allow_rdpmc(p->mask);
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
    allow_rdpmc(false);
    irql_lower(old);
    vm_window_unmap(p->slot);
    unreserve(p);
    phys_free(p, 1);
}

/* Checks in the order of the (undocumented) contract. Besides the handle's errors: STATUS_INFO_LENGTH_MISMATCH,
 * STATUS_ACCESS_VIOLATION (information or block not the caller's memory), STATUS_DATATYPE_MISALIGNMENT (block not
 * 4-aligned), STATUS_NOT_SUPPORTED (another thread), STATUS_INVALID_PARAMETER (flags; our choice: mask bits above
 * 15; disable: another block), STATUS_WMI_ALREADY_ENABLED, STATUS_WMI_ALREADY_DISABLED, STATUS_NO_MEMORY. */
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
