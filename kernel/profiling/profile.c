/* SPDX-License-Identifier: MIT */
/* Profile objects while they run: NtStartProfile, NtStopProfile, KeProfileInterruptWithSource.
 * They are created in profile_object.c.
 *
 * `guard`, held at PASSIVE_LEVEL and across IPIs, serialises start and stop. The interrupt takes
 * no lock: it walks the list of started objects, whose links change by single stores. A removed
 * object stays valid until every CPU has answered the IPI of hal_profile_stop. No CPU answers it
 * inside the interrupt.
 *
 * An object holds references to the pages of its buffer and writes them through the direct map, so
 * the owner may unmap them meanwhile.
 *
 * Sources: Geoff Chappell's studies of the undocumented services. */
#include "kernel/profiling/profile.h"
#include "hal/interrupt.h"
#include "hal/profile_interrupt.h"
#include "kernel/base/cpu.h"
#include "kernel/base/refuse.h"
#include "kernel/base/vectors.h"
#include "kernel/ke/etw.h"
#include "kernel/ke/mutex.h"
#include "kernel/ke/object.h"
#include "kernel/ke/process.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"

static struct mutex guard = MUTEX("profiles");
static struct profile *started; /* atomic; L: guard to write */
static unsigned started_count;  /* L: guard */

/* --- The interrupt. --- */

static void count_sample(const struct profile *p, uint64_t offset)
{
    const uint64_t in_page = PAGE_SIZE / sizeof(ULONG);
    uint64_t n = p->first + (offset >> p->log2);
    ULONG *bucket = p->pages[n / in_page] + n % in_page;
    /* NT: saturates; no source says what Windows does. A full bucket is 0 for two instructions. */
    if (!__atomic_add_fetch(bucket, 1, __ATOMIC_RELAXED))
        __atomic_store_n(bucket, UINT32_MAX, __ATOMIC_RELAXED);
}

VOID KeProfileInterruptWithSource(PKTRAP_FRAME TrapFrame, KPROFILE_SOURCE Source)
{
    unsigned cpu = cpu_number();
    for (const struct profile *p = __atomic_load_n(&started, __ATOMIC_ACQUIRE); p;
         p = __atomic_load_n(&p->next, __ATOMIC_ACQUIRE)) {
        uint64_t offset = TrapFrame->rip - p->base;
        if (p->source != Source || !cpu_set_has(&p->cpus, cpu))
            continue;
        if (offset < p->size && (!p->process || p->process == thread_current()->process))
            count_sample(p, offset);
    }
    if (etw_wants(ETW_SAMPLES))
        etw_profile(TrapFrame, Source);
}

void profile_record(uint64_t address, KPROFILE_SOURCE source)
{
    struct trap_frame frame = *hal_pmi_frame();
    frame.rip = address;
    KeProfileInterruptWithSource(&frame, source);
}

/* --- Starting and stopping. All under guard. --- */

static void unlock_buffer(struct profile *p)
{
    for (uint64_t i = 0; p->user_buffer && i < p->page_count && p->pages[i]; i++)
        phys_free(p->pages[i], 1);
    phys_free(p->pages, (unsigned)(p->page_count * sizeof *p->pages / PAGE_SIZE + 1));
}

static NTSTATUS lock_buffer(struct profile *p)
{
    uint64_t first = (uint64_t)p->buffer & ~(uint64_t)(PAGE_SIZE - 1);
    p->first = ((uint64_t)p->buffer - first) / sizeof *p->buffer;
    p->page_count = ((uint64_t)p->buffer + p->buffer_size - first + PAGE_SIZE - 1) / PAGE_SIZE;
    p->pages = phys_alloc((unsigned)(p->page_count * sizeof *p->pages / PAGE_SIZE + 1));
    if (!p->pages)
        return STATUS_INSUFFICIENT_RESOURCES;
    for (uint64_t i = 0; i < p->page_count; i++) {
        uint64_t address = first + i * PAGE_SIZE;
        uint64_t held =
            p->user_buffer ? vm_hold_writable(thread_current()->process->pml4, address) : 0;
        if (p->user_buffer && !held) {
            unlock_buffer(p);
            return STATUS_ACCESS_VIOLATION;
        }
        p->pages[i] = p->user_buffer ? phys_to_virt(held) : (void *)address;
    }
    return STATUS_SUCCESS;
}

static void add_started(unsigned n)
{
    __atomic_store_n(&started_count, started_count + n, __ATOMIC_RELAXED);
}

static NTSTATUS insert(struct profile *p)
{
    /* NT: Windows succeeds without a counter, and counts nothing. */
    NTSTATUS status = hal_profile_reserve(p->source, p->cpus);
    if (!NT_SUCCESS(status))
        return status;
    p->started = true;
    __atomic_store_n(&p->next, started, __ATOMIC_RELAXED);
    add_started(1);
    __atomic_store_n(&started, p, __ATOMIC_RELEASE);
    hal_profile_start(p->source, p->cpus);
    return STATUS_SUCCESS;
}

/* L: guard */
static NTSTATUS start(struct profile *p)
{
    if (p->started)
        return STATUS_PROFILING_NOT_STOPPED;
    if (started_count == PROFILES_STARTED_MAX || claim_fails())
        return STATUS_PROFILING_AT_LIMIT;
    NTSTATUS status = lock_buffer(p);
    if (!NT_SUCCESS(status))
        return status;
    status = insert(p);
    if (!NT_SUCCESS(status))
        unlock_buffer(p);
    return status;
}

static void remove(struct profile *p)
{
    struct profile **link = &started;
    if (p->source != ProfileTime)
        hal_profile_collect(p->cpus);
    while (*link != p)
        link = &(*link)->next;
    __atomic_store_n(link, p->next, __ATOMIC_RELEASE);
    hal_profile_stop(p->source, p->cpus); /* it also waits for CPUs that still see the object */
    add_started(-1u);
    p->started = false;
}

/* L: guard */
static NTSTATUS stop(struct profile *p)
{
    if (!p->started)
        return STATUS_PROFILING_NOT_STARTED;
    remove(p);
    unlock_buffer(p);
    return STATUS_SUCCESS;
}

static NTSTATUS control(HANDLE handle, NTSTATUS (*action)(struct profile *))
{
    struct object *object;
    NTSTATUS status = handle_lookup(handle, &profile_type, PROFILE_CONTROL, &object);
    if (!NT_SUCCESS(status))
        return status;
    mutex_acquire(&guard);
    status = action((struct profile *)object);
    mutex_release(&guard);
    object_release(object);
    return status;
}

NTSTATUS NtStartProfile(HANDLE ProfileHandle) { return control(ProfileHandle, start); }
NTSTATUS NtStopProfile(HANDLE ProfileHandle) { return control(ProfileHandle, stop); }

static void destroy_profile(struct object *object)
{
    struct profile *p = CONTAINING_RECORD(object, struct profile, object);
    mutex_acquire(&guard);
    stop(p);
    mutex_release(&guard);
    if (p->process)
        object_release(&p->process->object);
    phys_free(p, 1);
}

const struct object_type profile_type = {
    .name = "Profile",
    .destroy = destroy_profile,
    .all = PROFILE_ALL_ACCESS,
    .read = STANDARD_RIGHTS_READ | PROFILE_CONTROL,
    .write = STANDARD_RIGHTS_READ | PROFILE_CONTROL,
    .execute = STANDARD_RIGHTS_READ | PROFILE_CONTROL,
};

unsigned profiles_started(void) { return __atomic_load_n(&started_count, __ATOMIC_RELAXED); }

void profiles_stop_all(void)
{
    mutex_acquire(&guard);
    while (started) {
        struct profile *p = started;
        remove(p);
        unlock_buffer(p);
    }
    mutex_release(&guard);
}
