/* SPDX-License-Identifier: MIT */
/* Profile objects: NtCreateProfile .. KeProfileInterruptWithSource.
 *
 * `guard`, taken at PASSIVE_LEVEL and kept across IPIs, serialises start and stop; the waiters yield. The interrupt
 * takes no lock: it walks the list of started objects, which change only by single stores. An object that was taken
 * off stays whole until every CPU has answered an IPI, which none does inside an interrupt.
 *
 * Buffers: their pages are held and written through the direct map, so that the owner may unmap them meanwhile.
 *
 * Sources: Geoff Chappell's studies of the undocumented services. */
#include "kernel/profile.h"
#include "hal/hal.h"
#include "kernel/cpu.h"
#include "kernel/irql.h"
#include "kernel/object.h"
#include "kernel/phys.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/string.h"
#include "kernel/thread.h"
#include "kernel/trap.h"
#include "kernel/vm.h"

#define LOG2_MIN 2
#define LOG2_MAX 31
/* NT: Windows lets anybody sample kernel addresses, of all processes, unless restricted; so do we. True: as for user
 * addresses, the privilege is needed. */
#define KERNEL_RANGES_NEED_PRIVILEGE false

struct profile {
    struct object object;
    struct profile *next;    /* of those started; atomic */
    struct process *process; /* with a reference; NULL: every one */
    uint64_t base, size;     /* the region */
    uint64_t cpus;
    KPROFILE_SOURCE source;
    unsigned log2;
    ULONG *buffer;           /* the creator's address of it */
    uint64_t buffer_size;
    bool user_buffer;
    bool started;            /* L: guard */
    uint8_t **pages;         /* while started: where the kernel writes the buffer's pages */
    uint64_t page_count;
};

static uint32_t guard; /* atomic */
static struct profile *started; /* atomic; L: guard to write */
static unsigned started_count;  /* L: guard */
static ULONG alignment_interval; /* atomic */

static bool from_user(void) { return thread_current()->process; }

static void enter(void)
{
    while (__atomic_exchange_n(&guard, 1, __ATOMIC_ACQUIRE))
        sched_switch(WrMutex);
}

static void leave(void) { __atomic_store_n(&guard, 0, __ATOMIC_RELEASE); }

/* --- The interrupt. --- */

static void count(const struct profile *p, uint64_t offset)
{
    uint64_t byte = ((uint64_t)p->buffer & (PAGE_SIZE - 1)) + (offset >> p->log2) * sizeof(ULONG);
    ULONG *bucket = (ULONG *)(void *)(p->pages[byte / PAGE_SIZE] + byte % PAGE_SIZE);
    ULONG old = __atomic_load_n(bucket, __ATOMIC_RELAXED);
    /* NT: saturates; nothing is said of Windows. */
    while (old != UINT32_MAX &&
           !__atomic_compare_exchange_n(bucket, &old, old + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

VOID KeProfileInterruptWithSource(PKTRAP_FRAME TrapFrame, KPROFILE_SOURCE Source)
{
    const struct cpu *cpu = cpu_current();
    for (const struct profile *p = __atomic_load_n(&started, __ATOMIC_ACQUIRE); p;
         p = __atomic_load_n(&p->next, __ATOMIC_ACQUIRE)) {
        uint64_t offset = TrapFrame->rip - p->base;
        if (p->source == Source && offset < p->size && (p->cpus >> cpu->number & 1) &&
            (!p->process || p->process == cpu->thread->process))
            count(p, offset);
    }
}

/* --- Creating. --- */

static NTSTATUS check_region(uint64_t base, uint64_t size, ULONG log2, ULONG buffer_size)
{
    if (!buffer_size)
        return STATUS_INVALID_PARAMETER_7;
    if (log2 < LOG2_MIN || log2 > LOG2_MAX)
        return STATUS_INVALID_PARAMETER;
    uint64_t buckets = (size >> log2) + ((size & ((1ul << log2) - 1)) != 0);
    if (buckets > buffer_size / sizeof(ULONG))
        return STATUS_BUFFER_TOO_SMALL;
    return size && base + size <= base ? STATUS_BUFFER_OVERFLOW : STATUS_SUCCESS;
}

static NTSTATUS check_pointers(const HANDLE *handle, const ULONG *buffer, ULONG buffer_size,
                               const GROUP_AFFINITY *affinity, USHORT groups)
{
    const uint64_t *pml4 = from_user() ? thread_current()->process->pml4 : NULL;
    if (pml4 && !vm_user_writable(pml4, (uint64_t)handle, sizeof *handle))
        return STATUS_ACCESS_VIOLATION;
    if ((uint64_t)buffer % sizeof *buffer)
        return STATUS_DATATYPE_MISALIGNMENT;
    if (pml4 && !vm_user_writable(pml4, (uint64_t)buffer, buffer_size))
        return STATUS_ACCESS_VIOLATION;
    if (pml4 && groups && (uint64_t)affinity % 4)
        return STATUS_DATATYPE_MISALIGNMENT;
    return pml4 && groups && !user_range(affinity, groups * sizeof *affinity) ? STATUS_ACCESS_VIOLATION
                                                                                 : STATUS_SUCCESS;
}

static uint64_t active_cpus(void) { return ~0ul >> (64 - cpu_count); }

static NTSTATUS add_group(const GROUP_AFFINITY *group, uint64_t *cpu_mask)
{
    if (group->Group || !group->Mask || (group->Mask & ~active_cpus()) || group->Reserved[0] || group->Reserved[1] ||
        group->Reserved[2])
        return STATUS_INVALID_PARAMETER;
    *cpu_mask |= group->Mask;
    return STATUS_SUCCESS;
}

static NTSTATUS get_cpus(const GROUP_AFFINITY *affinity, USHORT groups, bool user, uint64_t *cpu_mask)
{
    GROUP_AFFINITY group;
    NTSTATUS status = STATUS_SUCCESS;
    *cpu_mask = groups ? 0 : active_cpus();
    for (USHORT i = 0; i < groups && NT_SUCCESS(status); i++) {
        if (user)
            status = copy_in(&group, &affinity[i], sizeof group);
        else
            group = affinity[i];
        if (NT_SUCCESS(status))
            status = add_group(&group, cpu_mask);
    }
    return status;
}

static NTSTATUS check_rights(const struct profile *p)
{
    const struct process *caller = thread_current()->process;
    if (!caller)
        return STATUS_SUCCESS;
    if (!p->process && !caller->profile_privilege && (KERNEL_RANGES_NEED_PRIVILEGE || p->base < USER_END))
        return STATUS_PRIVILEGE_NOT_HELD;
    if (caller->restricted && p->base + p->size > USER_END)
        return STATUS_ACCESS_DENIED;
    return STATUS_SUCCESS;
}

/* The checks that need the machine, and the object's fields by the way. */
static NTSTATUS complete(struct profile *p, HANDLE process)
{
    struct object *object = NULL;
    NTSTATUS status = STATUS_SUCCESS;
    if (process) {
        status = handle_lookup(process, OBJECT_PROCESS, PROCESS_QUERY_INFORMATION, &object);
        p->process = NT_SUCCESS(status) ? (struct process *)object : NULL;
    }
    return NT_SUCCESS(status) ? check_rights(p) : status;
}

static NTSTATUS give_handle(struct profile *p, PHANDLE handle)
{
    HANDLE made;
    NTSTATUS status = handle_create(&p->object, PROFILE_ALL_ACCESS, &made);
    if (!NT_SUCCESS(status))
        return status;
    if (!from_user())
        *handle = made;
    else if (!NT_SUCCESS(status = copy_out(handle, &made, sizeof made)))
        handle_close(made);
    return status;
}

/* `wanted` has what the caller gave; it becomes the object. */
static NTSTATUS create(const struct profile *wanted, HANDLE process, PHANDLE handle)
{
    _Static_assert(sizeof(struct profile) <= PAGE_SIZE, "one page");
    struct profile *p = phys_alloc(1);
    if (!p)
        return STATUS_INSUFFICIENT_RESOURCES;
    *p = *wanted;
    p->object = (struct object){ .type = OBJECT_PROFILE, .refs = 1 };
    p->user_buffer = from_user();
    NTSTATUS status = complete(p, process);
    if (NT_SUCCESS(status))
        status = give_handle(p, handle);
    object_release(&p->object);
    return status;
}

static NTSTATUS check_and_create(PHANDLE handle, HANDLE process, struct profile *wanted, USHORT groups,
                                 const GROUP_AFFINITY *affinity, bool user_affinity)
{
    ULONG buffer_size = (ULONG)wanted->buffer_size;
    NTSTATUS status = check_region(wanted->base, wanted->size, wanted->log2, buffer_size);
    if (!NT_SUCCESS(status))
        return status;
    if (!hal_source_supported(wanted->source))
        return STATUS_NOT_SUPPORTED;
    status = check_pointers(handle, wanted->buffer, buffer_size, affinity, user_affinity ? groups : 0);
    if (NT_SUCCESS(status))
        status = get_cpus(affinity, groups, user_affinity, &wanted->cpus);
    return NT_SUCCESS(status) ? create(wanted, process, handle) : status;
}

NTSTATUS NtCreateProfileEx(PHANDLE ProfileHandle, HANDLE Process, PVOID ProfileBase, SIZE_T ProfileSize,
                           ULONG BucketSize, PULONG Buffer, ULONG BufferSize, KPROFILE_SOURCE ProfileSource,
                           USHORT GroupCount, PGROUP_AFFINITY GroupAffinity)
{
    struct profile wanted = { .base = (uint64_t)ProfileBase, .size = ProfileSize, .log2 = BucketSize,
                              .buffer = Buffer, .buffer_size = BufferSize, .source = ProfileSource };
    return check_and_create(ProfileHandle, Process, &wanted, GroupCount, GroupAffinity, from_user());
}

NTSTATUS NtCreateProfile(PHANDLE ProfileHandle, HANDLE Process, PVOID ProfileBase, SIZE_T ProfileSize,
                         ULONG BucketSize, PULONG Buffer, ULONG BufferSize, KPROFILE_SOURCE ProfileSource,
                         KAFFINITY Affinity)
{
    struct profile wanted = { .base = (uint64_t)ProfileBase, .size = ProfileSize, .log2 = BucketSize,
                              .buffer = Buffer, .buffer_size = BufferSize, .source = ProfileSource };
    GROUP_AFFINITY group = { .Mask = Affinity };
    return check_and_create(ProfileHandle, Process, &wanted, Affinity != ~0ul, &group, false);
}

/* --- Starting and stopping. All under guard. --- */

static void unlock_buffer(struct profile *p)
{
    for (uint64_t i = 0; p->user_buffer && i < p->page_count && p->pages[i]; i++)
        phys_free(p->pages[i], 1);
    phys_free(p->pages, (unsigned)(p->page_count * sizeof *p->pages / PAGE_SIZE + 1));
    p->pages = NULL;
}

static NTSTATUS lock_buffer(struct profile *p)
{
    uint64_t first = (uint64_t)p->buffer & ~(uint64_t)(PAGE_SIZE - 1);
    p->page_count = ((uint64_t)p->buffer + p->buffer_size - first + PAGE_SIZE - 1) / PAGE_SIZE;
    p->pages = phys_alloc((unsigned)(p->page_count * sizeof *p->pages / PAGE_SIZE + 1));
    if (!p->pages)
        return STATUS_INSUFFICIENT_RESOURCES;
    for (uint64_t i = 0; i < p->page_count; i++) {
        uint64_t address = first + i * PAGE_SIZE;
        uint64_t held = p->user_buffer ? vm_hold_writable(thread_current()->process->pml4, address) : 0;
        if (p->user_buffer && !held) {
            unlock_buffer(p);
            return STATUS_ACCESS_VIOLATION;
        }
        p->pages[i] = p->user_buffer ? phys_to_virt(held) : (void *)address;
    }
    return STATUS_SUCCESS;
}

static NTSTATUS start(struct profile *p)
{
    if (p->started)
        return STATUS_PROFILING_NOT_STOPPED;
    if (started_count == PROFILES_STARTED_MAX)
        return STATUS_PROFILING_AT_LIMIT;
    NTSTATUS status = lock_buffer(p);
    if (!NT_SUCCESS(status))
        return status;
    /* NT: Windows succeeds without a counter, and counts nothing. */
    status = hal_profile_reserve(p->source, p->cpus);
    if (!NT_SUCCESS(status)) {
        unlock_buffer(p);
        return status;
    }
    p->started = true;
    p->next = started;
    started_count++;
    __atomic_store_n(&started, p, __ATOMIC_RELEASE);
    hal_profile_start(p->source, p->cpus);
    return STATUS_SUCCESS;
}

static void nothing(void *unused) { (void)unused; }

static NTSTATUS stop(struct profile *p)
{
    if (!p->started)
        return STATUS_PROFILING_NOT_STARTED;
    struct profile **link = &started;
    while (*link != p)
        link = &(*link)->next;
    hal_profile_stop(p->source, p->cpus);
    __atomic_store_n(link, p->next, __ATOMIC_RELEASE);
    smp_call(SMP_ALL, nothing, NULL);
    started_count--;
    p->started = false;
    unlock_buffer(p);
    return STATUS_SUCCESS;
}

static NTSTATUS control(HANDLE handle, NTSTATUS (*action)(struct profile *))
{
    struct object *object;
    NTSTATUS status = handle_lookup(handle, OBJECT_PROFILE, PROFILE_CONTROL, &object);
    if (!NT_SUCCESS(status))
        return status;
    enter();
    status = action((struct profile *)object);
    leave();
    object_release(object);
    return status;
}

NTSTATUS NtStartProfile(HANDLE ProfileHandle) { return control(ProfileHandle, start); }
NTSTATUS NtStopProfile(HANDLE ProfileHandle) { return control(ProfileHandle, stop); }

void profile_destroy(struct object *object)
{
    struct profile *p = (struct profile *)object;
    enter();
    stop(p);
    leave();
    if (p->process)
        object_release(&p->process->object);
    phys_free(p, 1);
}

unsigned profiles_started(void) { return __atomic_load_n(&started_count, __ATOMIC_RELAXED); }

/* --- Intervals. --- */

NTSTATUS NtQueryIntervalProfile(KPROFILE_SOURCE ProfileSource, PULONG Interval)
{
    ULONG interval = 0;
    if (from_user() && (uint64_t)Interval % sizeof *Interval)
        return STATUS_DATATYPE_MISALIGNMENT;
    if (from_user() && !vm_user_writable(thread_current()->process->pml4, (uint64_t)Interval, sizeof *Interval))
        return STATUS_ACCESS_VIOLATION;
    if (ProfileSource == ProfileAlignmentFixup)
        interval = __atomic_load_n(&alignment_interval, __ATOMIC_RELAXED);
    else if (hal_source_supported(ProfileSource))
        interval = hal_source_interval(ProfileSource);
    if (from_user())
        copy_out(Interval, &interval, sizeof interval); /* as in Windows, a fault here is no failure */
    else
        *Interval = interval;
    return STATUS_SUCCESS;
}

NTSTATUS NtSetIntervalProfile(ULONG Interval, KPROFILE_SOURCE Source)
{
    if (from_user() && !thread_current()->process->profile_privilege)
        return STATUS_PRIVILEGE_NOT_HELD;
    if (Source == ProfileAlignmentFixup)
        __atomic_store_n(&alignment_interval, Interval, __ATOMIC_RELAXED);
    else
        hal_source_set_interval(Source, Interval);
    return STATUS_SUCCESS;
}
