/* SPDX-License-Identifier: MIT */
/* Counting per thread: what a switch does, and how a thread turns it on and off. Two policies (`counters=`):
 *   accumulate  the counters run for ever, and a switch samples them: one RDPMC per counter ends the old thread's
 *               stretch and begins the new one's; nothing is written to the PMU. NT's way as far as it is known.
 *   isolate     the counters hold the running thread's own counts and nobody else's (isolate.c).
 *
 * A thread's own totals live in its struct thread_profiling and are never read back from the block, which is ring-3
 * memory: its pages are held and written through a window. A thread's profiling is changed by the thread itself and,
 * at IPI_LEVEL on the CPU where it runs, by thread_profiling_refresh. slots_lock: DISPATCH_LEVEL. */
#include "kernel/thread_profiling.h"
#include "kernel/counter_config.h"
#include "kernel/irql.h"
#include "kernel/isolate.h"
#include "kernel/lock.h"
#include "kernel/phys.h"
#include "kernel/process.h"
#include "kernel/string.h"
#include "kernel/thread.h"
#include "kernel/vm.h"
#include "kernel/x86.h"

#define SLOTS (512 / VM_WINDOW_PAGES)
#define FIXED_SELECTOR (1u << 30) /* of RDPMC: Intel's fixed counters */
#define ALL_ELEMENTS ((1ul << MAX_HW_COUNTERS) - 1)

static struct lock slots_lock = LOCK("profiling windows", DISPATCH_LEVEL);
static uint64_t slots_used[SLOTS / 64]; /* L: slots_lock */

/* --- The switch. Its instructions are counted by tests/tp_cost.c. --- */

/* Of an element and its place in the block, both at `offset`: one register serves all arrays. */
static inline void end(struct reading *readings, block_at_4 *block, size_t offset, uint64_t value, uint64_t width)
{
    struct reading *r = (struct reading *)((char *)readings + offset);
    reading_at_4 *shown = (reading_at_4 *)((char *)block->HwCounters + offset);
    r->total += (value - r->start) & width;
    shown->Total = r->total;
}

static inline void begin(struct reading *readings, block_at_4 *block, size_t offset, uint64_t value)
{
    ((struct reading *)((char *)readings + offset))->start = value;
    ((reading_at_4 *)((char *)block->HwCounters + offset))->Start = value;
}

static inline uint64_t now(const struct reading *readings, size_t offset)
{
    return rdpmc(((const struct reading *)((const char *)readings + offset))->selector);
}

/* Any elements, each counter read once. */
static void sample_any(struct thread_profiling *out, struct thread_profiling *in)
{
    uint64_t ends = out ? out->active : 0, begins = in ? in->active : 0;
    for (uint64_t left = ends | begins; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzl(left);
        uint64_t value = rdpmc(counter_config[i].selector);
        if (ends >> i & 1)
            end(out->readings, out->block, i * sizeof(struct reading), value, counter_config[i].width);
        if (begins >> i & 1)
            begin(in->readings, in->block, i * sizeof(struct reading), value);
    }
}

static inline void sample_end(struct thread_profiling *p)
{
    block_at_4 *block = p->block;
    for (size_t o = 0, last = p->plain, width = p->width; o != last; o += sizeof(struct reading))
        end(p->readings, block, o, now(p->readings, o), width);
}

static inline void sample_begin(struct thread_profiling *p)
{
    block_at_4 *block = p->block;
    for (size_t o = 0, last = p->plain; o != last; o += sizeof(struct reading))
        begin(p->readings, block, o, now(p->readings, o));
}

static inline void sample_both(struct thread_profiling *out, struct thread_profiling *in)
{
    block_at_4 *block_out = out->block, *block_in = in->block;
    for (size_t o = 0, last = out->plain, width = out->width; o != last; o += sizeof(struct reading)) {
        uint64_t value = now(out->readings, o);
        end(out->readings, block_out, o, value, width);
        begin(in->readings, block_in, o, value);
    }
}

/* The usual cases are plain: the first n elements, of one width, of one thread or the same of both. */
static inline void sample(struct thread_profiling *out, struct thread_profiling *in)
{
    if (out && in && out->plain == in->plain && in->plain)
        sample_both(out, in);
    else if (!in && out && out->plain)
        sample_end(out);
    else if (!out && in && in->plain)
        sample_begin(in);
    else
        sample_any(out, in);
}

static inline void leave(struct thread_profiling *p, uint64_t tsc, KWAIT_REASON reason)
{
    block_at_4 *block = p->block;
    p->cycle_total += tsc - p->cycle_start;
    block->CycleTime.Total = p->cycle_total;
    block->ContextSwitches = ++p->switches;
    block->WaitReasonBitMap |= 1ul << reason; /* the reader, who exchanges it, is the thread itself */
    block->UpdateCount = ++p->updates;
}

static inline void arrive(struct thread_profiling *p, uint64_t tsc)
{
    block_at_4 *block = p->block;
    p->cycle_start = tsc;
    block->CycleTime.Start = tsc;
    block->ProcessorNumber.Number = (UCHAR)cpu_number();
    block->UpdateCount = ++p->updates;
}

/* Ring 3 may read counters only while a thread runs that enabled them. */
static inline void allow_rdpmc(bool allow)
{
    uint64_t cr4 = read_cr4();
    uint64_t wanted = allow ? cr4 | CR4_PCE : cr4 & ~(uint64_t)CR4_PCE;
    if (wanted != cr4)
        write_cr4(wanted);
}

/* An emptied configuration ends sampling for good: another one cannot come while the thread is enabled. */
static inline void drop_stale(struct thread_profiling *p)
{
    uint32_t now = __atomic_load_n(&counter_config_generation, __ATOMIC_ACQUIRE);
    if (__builtin_expect(p->generation == now, 1))
        return;
    p->generation = now;
    p->active = 0;
    p->plain = 0;
    p->block->HwCountersCount = 0;
    p->block->UpdateCount = ++p->updates;
}

bool thread_profiling_policy(const char *name)
{
    isolate_on = strcmp(name, "isolate") == 0;
    return isolate_on || strcmp(name, "accumulate") == 0;
}

void thread_profiling_switch(struct thread *from, struct thread *to, KWAIT_REASON reason)
{
    struct thread_profiling *out = from->profiling, *in = to->profiling;
    uint64_t tsc = rdtsc();
    if (in)
        drop_stale(in);
    if (__builtin_expect(isolate_on, 0))
        isolate_switch(out, in);
    else
        sample(out, in);
    if (out)
        leave(out, tsc, reason);
    if (in)
        arrive(in, tsc);
    allow_rdpmc(in && in->mask);
}

void thread_profiling_exclude(struct thread *thread, uint64_t ticks)
{
    struct thread_profiling *p = thread->profiling;
    p->cycle_start += ticks;
    p->block->CycleTime.Start = p->cycle_start;
    p->block->UpdateCount = ++p->updates;
}

void thread_profiling_refresh(void *unused)
{
    struct thread_profiling *p = thread_current()->profiling;
    (void)unused;
    if (!p)
        return;
    if (isolate_on)
        isolate_switch(p, NULL);
    drop_stale(p);
}

/* --- Enabling and disabling, by the thread itself. --- */

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
    p->plain = plain ? n * sizeof(struct reading) : 0;
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
    drop_stale(p);
    if (isolate_on)
        isolate_switch(NULL, p);
    else
        sample(NULL, p);
    arrive(p, rdtsc());
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
    if (isolate_on)
        isolate_switch(p, NULL);
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
