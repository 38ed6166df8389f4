/* SPDX-License-Identifier: MIT */
/* The owners of counters, by processor. All are in this one list, by name: callers of the API,
 * profile objects, trace sessions, thread profiling.
 *
 * Locking: counters_lock guards the owners. The interrupt (PROFILE_LEVEL) cannot take it. It reads
 * only owner_of of its own CPU. An allocation sets that under the lock; a free clears it on that
 * CPU, with the interrupt masked, before the slot can be used again. IRQL PASSIVE_LEVEL, except
 * hal_counters_overflowed.
 *
 * NT: Microsoft's page does not say whether counters of one processor can be taken while another
 * owner has the rest, what is answered without a PMU, and which index is wrong. HC-17 to HC-26 and
 * HC-44 of tests/contract.md are our choices. Where Windows may succeed on a machine without
 * counters we answer STATUS_NOT_SUPPORTED. */
#include "hal/owners.h"
#include "hal/buffers/event_buffer.h"
#include "hal/machine/smp.h"
#include "kernel/base/assert.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/irql.h"
#include "kernel/base/lock.h"
#include "kernel/base/print.h"
#include "kernel/base/refuse.h"
#include "pmu/pmu.h"

#define OWNERS_MAX HAL_OWNERS_MAX
#define COUNTERS 64 /* bits of a mask */
#define ALL (~0ul)
#define EXCLUSIVE ALL /* overlaps with everything */
#define BUFFER PMU_BIT(PMU_BUFFER)

struct owner {
    const char *name; /* NULL: this slot is free */
    HANDLE handle;
    bool freeing; /* the handle is no longer valid, the counters are not yet free */
    struct cpu_set cpus;
    uint64_t counters, others;                               /* on each of cpus; and all but them */
    PPHYSICAL_COUNTER_OVERFLOW_HANDLER handler, of_counters; /* the first: of the buffer, too */
    PHYSICAL_COUNTER_EVENT_BUFFER_CONFIGURATION buffer;      /* its handler NULL: it has none */
    ULONG tag;
    uint64_t rewritten; /* atomic; what hal_counters_check found */
};

struct request {
    struct cpu_set cpus;
    uint64_t counters;
    PPHYSICAL_COUNTER_OVERFLOW_HANDLER handler;
    PHYSICAL_COUNTER_EVENT_BUFFER_CONFIGURATION buffer;
    ULONG tag;
    bool has_tag;
    bool unsupported; /* it has a type that we know but do not support */
};

bool hal_counters_1809;
static struct lock counters_lock = LOCK("counters", DISPATCH_LEVEL);
static struct owner owners[OWNERS_MAX];   /* L: counters_lock */
static struct owner *owners_end = owners; /* L: counters_lock; from here on never used */
static uint64_t serial;                   /* L: counters_lock; makes each handle unique */
static struct owner *owner_table[MAX_CPUS * COUNTERS]; /* NULL: nobody's; see above */

static bool parse_affinity(struct request *request, const GROUP_AFFINITY *affinity, ULONG count)
{
    if (!affinity || !count) {
        request->cpus = cpu_all();
        return !affinity && !count;
    }
    for (ULONG i = 0; i < count; i++) {
        struct cpu_set added;
        if (!cpu_set_of_group(&affinity[i], &added))
            return false;
        request->cpus = cpu_set_or(request->cpus, added);
    }
    return true;
}

static bool add_counters(struct request *request, ULONG begin, ULONG end)
{
    begin = pmu_rdpmc_counter(begin);
    end = pmu_rdpmc_counter(end);
    if (begin > end || end >= COUNTERS)
        return false;
    uint64_t mask = ALL >> (COUNTERS - 1 - (end - begin)) << begin;
    if (mask & request->counters)
        return false;
    request->counters |= mask;
    /* Without a PMU any index is accepted here; the request is then refused because there is no
     * PMU. */
    return !pmu_some_counters(request->cpus) || !(mask & ~pmu_common_counters(request->cpus));
}

/* A threshold above what a buffer holds is a maximum, as Microsoft's page says of all. NT: the page
 * says neither what 0 does, nor what a custom size is for: here it is that of the driver's
 * MSR_PEBS_DATA_CFG. */
static bool add_buffer(struct request *request,
                       const PHYSICAL_COUNTER_EVENT_BUFFER_CONFIGURATION *buffer)
{
    if (request->buffer.OverflowHandler || !buffer->OverflowHandler || !buffer->EventThreshold)
        return false;
    request->buffer = *buffer;
    request->counters |= BUFFER;
    return true;
}

static bool add_descriptor(struct request *request, const PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR *d)
{
    if (d->Flags)
        return false;
    switch (d->Type) {
    case ResourceTypeSingle: return add_counters(request, d->u.CounterIndex, d->u.CounterIndex);
    case ResourceTypeRange: return add_counters(request, d->u.Range.Begin, d->u.Range.End);
    case ResourceTypeOverflow:
        if (request->handler || !d->u.OverflowHandler)
            return false;
        request->handler = d->u.OverflowHandler;
        return true;
    case ResourceTypeEventBuffer: return add_buffer(request, &d->u.EventBufferConfiguration);
    case ResourceTypeExtendedCounterConfiguration: request->unsupported = true; return true;
    case ResourceTypeIdenitificationTag:
        if (request->has_tag)
            return false;
        request->has_tag = true;
        request->tag = d->u.IdentificationTag;
        return true;
    default: return false;
    }
}

static bool parse_list(struct request *request, const PHYSICAL_COUNTER_RESOURCE_LIST *list)
{
    if (!list) {
        request->counters = EXCLUSIVE;
        return true;
    }
    for (ULONG i = 0; i < list->Count; i++)
        if (!add_descriptor(request, &list->Descriptors[i]))
            return false;
    /* A list without a counter or a buffer is refused here, unless it has unsupported types: then
     * the caller refuses it for these types. A handler needs a counter. */
    return request->counters & ~BUFFER ||
           (!request->handler && (request->counters || request->unsupported));
}

/* L: counters_lock */
static bool is_free(const struct request *request)
{
    for_each_until(owners_end, o, owners)
        if (o->name && cpu_set_meet(o->cpus, request->cpus) && (o->counters & request->counters))
            return false;
    return true;
}

static inline struct owner **owner_of(uint64_t cpu, uint64_t ctr)
{
    return &owner_table[cpu * COUNTERS + ctr];
}

/* NULL: nobody owns the lowest of these counters here. */
static inline const struct owner *owner_here(uint64_t counters)
{
    return *owner_of(cpu_index(), bit_lowest(counters));
}

static void ignore_overflow(ULONGLONG, HANDLE) {}

/* The handler of an owner with an event buffer. */
static void take_records(ULONGLONG bits, HANDLE handle)
{
    const struct owner *owner = owner_here(bits);
    if (bits & BUFFER)
        event_buffer_drain(owner->buffer.OverflowHandler, handle);
    if (bits & ~BUFFER)
        owner->of_counters(bits & ~BUFFER, handle);
}

/* The bits of this owner's table on a CPU. */
static uint64_t bits_on(const struct owner *owner, unsigned cpu)
{
    return owner->counters & (pmu_of(cpu)->counters | BUFFER);
}

/* L: counters_lock. NULL: no slot is free. */
static struct owner *add_owner(const char *name, const struct request *request)
{
    for_each_in(o, owners) {
        if (o->name)
            continue;
        owners_end = o < owners_end ? owners_end : o + 1;
        *o = (struct owner){ .name = name,
                             .cpus = request->cpus,
                             .counters = request->counters,
                             .others = ~request->counters,
                             .of_counters = request->handler ? request->handler : ignore_overflow,
                             .buffer = request->buffer,
                             .tag = request->tag };
        o->handler = o->buffer.OverflowHandler ? take_records : o->of_counters;
        o->handle = (HANDLE)((++serial * OWNERS_MAX | (uint64_t)(o - owners)) << 2);
        for_each_cpu(cpu, &o->cpus)
            for_each_bit(ctr, bits_on(o, cpu))
                __atomic_store_n(owner_of(cpu, ctr), o, __ATOMIC_RELEASE);
        return o;
    }
    return NULL;
}

static NTSTATUS take_counters(const char *name, const struct request *request, PHANDLE handle)
{
    const struct owner *owner = NULL;
    KIRQL irql = lock_acquire(&counters_lock);
    if (is_free(request) && !claim_fails())
        owner = add_owner(name, request);
    *handle = owner ? owner->handle : NULL;
    lock_release(&counters_lock, irql);
    const PHYSICAL_COUNTER_EVENT_BUFFER_CONFIGURATION *buffer = &request->buffer;
    if (!owner || !buffer->OverflowHandler ||
        event_buffer_open(request->cpus, buffer->CustomEventBufferEntrySize,
                          buffer->EventThreshold))
        return owner ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
    HalFreeHardwareCounters(*handle);
    *handle = NULL;
    return STATUS_INSUFFICIENT_RESOURCES;
}

static NTSTATUS check_buffer(const struct request *request)
{
    return request->buffer.OverflowHandler
               ? event_buffer_check(request->cpus, request->buffer.CustomEventBufferEntrySize)
               : STATUS_SUCCESS;
}

NTSTATUS HalAllocateHardwareCounters(PGROUP_AFFINITY GroupAffinty, ULONG GroupCount,
                                     PPHYSICAL_COUNTER_RESOURCE_LIST ResourceList,
                                     PHANDLE CounterSetHandle)
{
    struct request request = { .counters = 0 };

    ASSERT(irql_current() == PASSIVE_LEVEL);
    if (!CounterSetHandle)
        return STATUS_INVALID_PARAMETER;
    *CounterSetHandle = NULL;
    if (hal_counters_1809 && (GroupAffinty || GroupCount || ResourceList))
        return STATUS_INVALID_PARAMETER;
    if (!parse_affinity(&request, GroupAffinty, GroupCount) || !parse_list(&request, ResourceList))
        return STATUS_INVALID_PARAMETER;
    NTSTATUS status = check_buffer(&request);
    if (!NT_SUCCESS(status))
        return status;
    if (request.unsupported || !pmu_some_counters(request.cpus))
        return STATUS_NOT_SUPPORTED;
    return take_counters("HalAllocateHardwareCounters", &request, CounterSetHandle);
}

NTSTATUS hal_counters_claim(const char *name, struct cpu_set among, uint64_t counters,
                            PPHYSICAL_COUNTER_OVERFLOW_HANDLER handler, PHANDLE handle)
{
    const struct request request = { .cpus = cpu_set_and(among, cpu_all()),
                                     .counters = counters,
                                     .handler = handler };

    ASSERT(irql_current() == PASSIVE_LEVEL);
    *handle = NULL;
    if (!pmu_some_counters(cpu_all()))
        return STATUS_NOT_SUPPORTED;
    if (cpu_set_empty(request.cpus) || !counters || (counters & ~pmu_common_counters(request.cpus)))
        return STATUS_INVALID_PARAMETER;
    return take_counters(name, &request, handle);
}

NTSTATUS hal_counters_claim_records(const char *name, struct cpu_set among, unsigned ctr,
                                    PPHYSICAL_COUNTER_EVENT_BUFFER_OVERFLOW_HANDLER records,
                                    PHANDLE handle)
{
    const struct request request = { .cpus = cpu_set_and(among, cpu_all()),
                                     .counters = PMU_BIT(ctr) | BUFFER,
                                     .buffer = { records, 0, 1 } };
    NTSTATUS status = check_buffer(&request);
    *handle = NULL;
    return NT_SUCCESS(status) ? take_counters(name, &request, handle) : status;
}

NTSTATUS hal_counters_claim_others(const char *name, uint64_t counters, PHANDLE handle)
{
    const struct request request = { .cpus = cpu_all(), .counters = ~counters };

    ASSERT(irql_current() == PASSIVE_LEVEL);
    *handle = NULL;
    return pmu_some_counters(cpu_all()) & ~counters ? take_counters(name, &request, handle)
                                                    : STATUS_SUCCESS;
}

void hal_counters_check(uint64_t counters)
{
    for_each_bit(ctr, pmu_rewritten() & counters) {
        struct owner *owner = *owner_of(cpu_number(), ctr);
        if (owner)
            __atomic_fetch_or(&owner->rewritten, PMU_BIT(ctr), __ATOMIC_RELAXED);
    }
}

static void lend_here(void *argument)
{
    const struct owner *owner = argument;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_lend(owner->counters & pmu_here()->counters);
    irql_lower(old);
}

/* L: counters_lock: the caller does not free them meanwhile. */
NTSTATUS hal_counters_lend(HANDLE CounterSetHandle)
{
    struct owner *owner = &owners[hal_owner_slot(CounterSetHandle)];
    if (!CounterSetHandle || !owner->name || owner->handle != CounterSetHandle)
        return STATUS_INVALID_PARAMETER;
    smp_call(owner->cpus, lend_here, owner);
    return STATUS_SUCCESS;
}

/* Runs on each CPU of the owner. Afterwards the interrupt finds no owner; one that is already
 * pending in the APIC finds no overflow either. */
static void release_here(void *argument)
{
    const struct owner *owner = argument;
    uint64_t counters = owner->counters & pmu_here()->counters;

    KIRQL old = irql_raise(PROFILE_LEVEL);
    hal_counters_check(counters);
    pmu_clear(counters);
    if (owner->counters & BUFFER)
        event_buffer_detach(owner->buffer.OverflowHandler, owner->handle);
    else
        event_buffer_forget(counters);
    for_each_bit(ctr, bits_on(owner, cpu_number()))
        *owner_of(cpu_number(), ctr) = NULL;
    irql_lower(old);
}

/* Marks the owner as being freed, so that nobody else frees it. NULL: the value is not a handle. */
static struct owner *begin_free(HANDLE handle)
{
    struct owner *owner = &owners[hal_owner_slot(handle)];
    KIRQL irql = lock_acquire(&counters_lock);
    if (!handle || !owner->name || owner->handle != handle || owner->freeing)
        owner = NULL;
    else
        owner->freeing = true;
    lock_release(&counters_lock, irql);
    return owner;
}

static void finish_free(struct owner *owner)
{
    smp_call(owner->cpus, release_here, owner);
    if (owner->buffer.OverflowHandler)
        event_buffer_close(owner->cpus);
    if (owner->rewritten)
        print("# counters: %s: somebody else has changed its counters %lx\n", owner->name,
              owner->rewritten);
    KIRQL irql = lock_acquire(&counters_lock);
    owner->name = NULL;
    lock_release(&counters_lock, irql);
}

NTSTATUS HalFreeHardwareCounters(HANDLE CounterSetHandle)
{
    ASSERT(irql_current() == PASSIVE_LEVEL);
    struct owner *owner = begin_free(CounterSetHandle);
    if (!owner)
        return STATUS_INVALID_PARAMETER;
    finish_free(owner);
    return STATUS_SUCCESS;
}

/* L: counters_lock: nobody takes any meanwhile. */
void hal_counters_release_all(void)
{
    for_each_until(owners_end, o, owners)
        if (o->name) /* even if a free was begun and not finished */
            finish_free(o);
}

static __attribute__((noinline)) void call_owners(uint64_t counters)
{
    while (counters) {
        const struct owner *owner = owner_here(counters);
        uint64_t lowest = counters & -counters, mine = owner ? counters & owner->counters : 0;
        counters &= ~(mine | lowest); /* it ends even if the table is wrong */
        if (mine)
            owner->handler(mine, owner->handle);
    }
}

/* Every sample calls this, and nearly always one owner's counters have overflowed. */
void hal_counters_overflowed(uint64_t counters)
{
    const struct owner *owner = owner_here(counters);
    if (!owner || owner->others & counters)
        call_owners(counters);
    else
        owner->handler(counters, owner->handle);
}

uint64_t hal_counters_available(struct cpu_set among)
{
    uint64_t available = pmu_common_counters(among);
    KIRQL irql = lock_acquire(&counters_lock);
    for_each_until(owners_end, o, owners)
        if (o->name && cpu_set_meet(o->cpus, among))
            available &= ~o->counters;
    lock_release(&counters_lock, irql);
    return available;
}

static struct owner owner_at(unsigned ctr, unsigned cpu)
{
    struct owner found = { .name = NULL };
    KIRQL irql = lock_acquire(&counters_lock);
    for_each_until(owners_end, o, owners)
        if (o->name && cpu < MAX_CPUS && ctr < COUNTERS && cpu_set_has(&o->cpus, cpu) &&
            (o->counters >> ctr & 1))
            found = *o;
    lock_release(&counters_lock, irql);
    return found;
}

const char *hal_counter_owner_name(unsigned ctr, unsigned cpu) { return owner_at(ctr, cpu).name; }
ULONG hal_counter_owner_tag(unsigned ctr, unsigned cpu) { return owner_at(ctr, cpu).tag; }

static void rewritten_here(void *found)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    *(uint64_t *)found = pmu_rewritten();
    irql_lower(old);
}

uint64_t hal_counters_rewritten(unsigned cpu)
{
    uint64_t found = 0;
    smp_call(cpu_set_one(cpu), rewritten_here, &found);
    return found;
}

unsigned hal_counters_owned(void)
{
    unsigned n = 0;
    KIRQL irql = lock_acquire(&counters_lock);
    for_each_until(owners_end, o, owners)
        n += o->name != NULL;
    lock_release(&counters_lock, irql);
    return n;
}

uint64_t hal_counters_owned_here(void)
{
    uint64_t owned = 0;
    for (unsigned ctr = 0; ctr < COUNTERS; ctr++)
        owned |= *owner_of(cpu_number(), ctr) ? PMU_BIT(ctr) : 0;
    return owned;
}

unsigned hal_counter_count(void) { return bit_count(pmu_common_counters(cpu_all())); }

bool hal_counter_selector(uint64_t selector, uint64_t *mask, bool *uneven)
{
    uint64_t counter = hal_counter_bit(selector) & pmu_common_counters(cpu_all());
    if (!counter)
        return false;
    unsigned ctr = bit_lowest(counter);
    *mask = pmu_common_mask(cpu_all(), ctr);
    *uneven = false;
    for_all_cpus(cpu)
        *uneven |= pmu_mask(pmu_of(cpu), ctr) != *mask;
    return true;
}
