/* SPDX-License-Identifier: MIT */
/* Creation of profile objects, with every check in the documented order, and the intervals. No
 * lock: an object without a handle is not visible to others.
 *
 * Sources: Geoff Chappell's studies of the undocumented services. */
#include "kernel/ke/copy.h"
#include "kernel/profiling/profile.h"
#include "hal/sources.h"
#include "kernel/base/cpu.h"
#include "kernel/ke/etw.h"
#include "kernel/ke/process.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"

#define LOG2_MIN 2
#define LOG2_MAX 31
/* NT: Windows lets every unrestricted caller sample kernel addresses of all processes; so do we.
 * True would require the privilege, as for user addresses. */
#define KERNEL_RANGES_NEED_PRIVILEGE false

static ULONG alignment_interval; /* atomic */

static bool from_user(void) { return thread_current()->process; }

static uint64_t buckets_of(uint64_t size, ULONG log2)
{
    return (size >> log2) + ((size & ((1ul << log2) - 1)) != 0);
}

/* As Windows, it takes the number of buckets as a ULONG (ReactOS' API tests); beyond that
 * check_and_create refuses later what Windows takes. */
static NTSTATUS check_region(uint64_t base, uint64_t size, ULONG log2, ULONG buffer_size)
{
    if (!buffer_size)
        return STATUS_INVALID_PARAMETER_7;
    if (log2 < LOG2_MIN || log2 > LOG2_MAX)
        return STATUS_INVALID_PARAMETER;
    if ((ULONG)buckets_of(size, log2) > buffer_size / sizeof(ULONG))
        return STATUS_BUFFER_TOO_SMALL;
    return base + size < base ? STATUS_BUFFER_OVERFLOW : STATUS_SUCCESS;
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
    return pml4 && groups && !user_range(affinity, groups * sizeof *affinity)
               ? STATUS_ACCESS_VIOLATION
               : STATUS_SUCCESS;
}

static NTSTATUS get_cpus(const GROUP_AFFINITY *affinity, USHORT groups, bool user,
                         struct cpu_set *among)
{
    GROUP_AFFINITY group;
    struct cpu_set added;
    NTSTATUS status = STATUS_SUCCESS;
    *among = groups ? cpu_set_none() : cpu_all();
    for (USHORT i = 0; i < groups && NT_SUCCESS(status); i++) {
        if (user)
            status = copy_in(&group, &affinity[i], sizeof group);
        else
            group = affinity[i];
        if (NT_SUCCESS(status) && !cpu_set_of_group(&group, &added))
            status = STATUS_INVALID_PARAMETER;
        if (NT_SUCCESS(status))
            *among = cpu_set_or(*among, added);
    }
    return status;
}

static NTSTATUS check_rights(const struct profile *p)
{
    const struct process *caller = thread_current()->process;
    if (!caller)
        return STATUS_SUCCESS;
    if (!p->process && !caller->profile_privilege &&
        (KERNEL_RANGES_NEED_PRIVILEGE || p->base < USER_END))
        return STATUS_PRIVILEGE_NOT_HELD;
    if (caller->restricted && p->base + p->size > USER_END)
        return STATUS_ACCESS_DENIED;
    return STATUS_SUCCESS;
}

/* The checks that depend on the machine. They also fill the object's fields. */
static NTSTATUS complete(struct profile *p, HANDLE process)
{
    struct object *object = NULL;
    NTSTATUS status = STATUS_SUCCESS;
    if (process) {
        status = handle_lookup(process, &process_type, PROCESS_QUERY_INFORMATION, &object);
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

/* `wanted` holds the caller's arguments; it becomes the object. */
static NTSTATUS create(const struct profile *wanted, HANDLE process, PHANDLE handle)
{
    _Static_assert(sizeof(struct profile) <= PAGE_SIZE, "one page");
    struct profile *p = phys_alloc(1);
    if (!p)
        return STATUS_INSUFFICIENT_RESOURCES;
    *p = *wanted;
    object_init(&p->object, &profile_type, EventNotificationObject, 1);
    p->user_buffer = from_user();
    NTSTATUS status = complete(p, process);
    if (NT_SUCCESS(status))
        status = give_handle(p, handle);
    object_release(&p->object);
    return status;
}

static NTSTATUS check_and_create(PHANDLE handle, HANDLE process, struct profile *wanted,
                                 USHORT groups, const GROUP_AFFINITY *affinity, bool user_affinity)
{
    ULONG buffer_size = (ULONG)wanted->buffer_size;
    NTSTATUS status = check_region(wanted->base, wanted->size, wanted->log2, buffer_size);
    if (!NT_SUCCESS(status))
        return status;
    if (!hal_source_known(wanted->source))
        return STATUS_NOT_SUPPORTED;
    status =
        check_pointers(handle, wanted->buffer, buffer_size, affinity, user_affinity ? groups : 0);
    /* NT: Windows creates the object, and its interrupt would write beyond the buffer. */
    if (NT_SUCCESS(status) && buckets_of(wanted->size, wanted->log2) > UINT32_MAX)
        status = STATUS_BUFFER_TOO_SMALL;
    if (NT_SUCCESS(status))
        status = get_cpus(affinity, groups, user_affinity, &wanted->cpus);
    if (NT_SUCCESS(status) && !hal_source_supported_on(wanted->source, wanted->cpus))
        status = STATUS_NOT_SUPPORTED; /* not all of these processors have it */
    return NT_SUCCESS(status) ? create(wanted, process, handle) : status;
}

static struct profile describe(PVOID base, SIZE_T size, ULONG log2, PULONG buffer,
                               ULONG buffer_size, KPROFILE_SOURCE source)
{
    return (struct profile){ .base = (uint64_t)base,
                             .size = size,
                             .log2 = log2,
                             .buffer = buffer,
                             .buffer_size = buffer_size,
                             .source = source };
}

NTSTATUS NtCreateProfileEx(PHANDLE ProfileHandle, HANDLE Process, PVOID ProfileBase,
                           SIZE_T ProfileSize, ULONG BucketSize, PULONG Buffer, ULONG BufferSize,
                           KPROFILE_SOURCE ProfileSource, USHORT GroupCount,
                           PGROUP_AFFINITY GroupAffinity)
{
    struct profile wanted =
        describe(ProfileBase, ProfileSize, BucketSize, Buffer, BufferSize, ProfileSource);
    return check_and_create(ProfileHandle, Process, &wanted, GroupCount, GroupAffinity,
                            from_user());
}

NTSTATUS NtCreateProfile(PHANDLE ProfileHandle, HANDLE Process, PVOID ProfileBase,
                         SIZE_T ProfileSize, ULONG BucketSize, PULONG Buffer, ULONG BufferSize,
                         KPROFILE_SOURCE ProfileSource, KAFFINITY Affinity)
{
    struct profile wanted =
        describe(ProfileBase, ProfileSize, BucketSize, Buffer, BufferSize, ProfileSource);
    USHORT number = cpu_set_primary(thread_current()->affinity).Group;
    KAFFINITY mask = Affinity == ~0ul ? cpu_all().bits[number] : Affinity;
    GROUP_AFFINITY group = { .Mask = mask, .Group = number };
    return check_and_create(ProfileHandle, Process, &wanted, 1, &group, false);
}

/* --- Intervals. --- */

NTSTATUS NtQueryIntervalProfile(KPROFILE_SOURCE ProfileSource, PULONG Interval)
{
    ULONG interval = 0;
    if (from_user() && (uint64_t)Interval % sizeof *Interval)
        return STATUS_DATATYPE_MISALIGNMENT;
    if (from_user() &&
        !vm_user_writable(thread_current()->process->pml4, (uint64_t)Interval, sizeof *Interval))
        return STATUS_ACCESS_VIOLATION;
    if (ProfileSource == ProfileAlignmentFixup)
        interval = __atomic_load_n(&alignment_interval, __ATOMIC_RELAXED);
    else if (hal_source_known(ProfileSource))
        interval = hal_source_interval(ProfileSource);
    if (from_user())
        copy_out(Interval, &interval, sizeof interval); /* a fault is no failure, as in Windows */
    else
        *Interval = interval;
    return STATUS_SUCCESS;
}

NTSTATUS NtSetIntervalProfile(ULONG Interval, KPROFILE_SOURCE Source)
{
    if (from_user() && !thread_current()->process->profile_privilege)
        return STATUS_PRIVILEGE_NOT_HELD;
    if (Source == ProfileAlignmentFixup) {
        __atomic_store_n(&alignment_interval, Interval, __ATOMIC_RELAXED);
    } else if (hal_source_known(Source)) {
        ULONG before = hal_source_interval(Source), now = hal_source_set_interval(Source, Interval);
        if (etw_wants(ETW_SET_INTERVAL))
            etw_set_interval(Source, now, before);
    }
    return STATUS_SUCCESS;
}
