/* SPDX-License-Identifier: MIT */
/* Counter sets: counters of one processor that run for ever and are read at events, by trace sessions.
 *
 * Locking: sets_lock guards which sets are in use. The counters of a set belong to its processor; collecting takes no
 * lock and may be interrupted by collecting (see HalCollectPmcCounters). An overflow interrupts, only so that no wrap
 * is missed however rare the events are.
 *
 * Source: HAL_PRIVATE_DISPATCH as Geoff Chappell describes it. NT: Windows has these three in that table, not by name,
 * and what a set that cannot be had is refused with is nowhere said. */
#include "hal/hal.h"
#include "hal/source.h"
#include "kernel/assert.h"
#include "kernel/cpu.h"
#include "kernel/irql.h"
#include "kernel/lock.h"
#include "kernel/smp.h"
#include "kernel/x86.h"
#include "pmu/pmu.h"

struct programming {
    const struct _HAL_PMC_COUNTERS *set;
    uint64_t selects[MAX_HW_COUNTERS], mask;
};

static struct lock sets_lock = LOCK("counter sets", DISPATCH_LEVEL);
static struct _HAL_PMC_COUNTERS sets[HAL_OWNERS_MAX]; /* each has an owner's slot: there is one for every set */

VOID HalCollectPmcCounters(PMC_HANDLE PmcCounterSet, ULONG64 *Values)
{
    ASSERT(cpu_number() == PmcCounterSet->processor);
    struct hal_pmc_counter *c = PmcCounterSet->counters;
    for (const struct hal_pmc_counter *end = c + PmcCounterSet->count; c < end; c++)
        *Values++ = hal_pmc_read(c);
}

/* The overflow handler of every set. */
static void wrapped(ULONGLONG OverflowBits, HANDLE OwningHandle)
{
    ULONG64 unused[MAX_HW_COUNTERS];
    (void)OverflowBits;
    for (PMC_HANDLE set = sets; set < sets + HAL_OWNERS_MAX; set++)
        if (__atomic_load_n(&set->owner, __ATOMIC_ACQUIRE) == OwningHandle)
            HalCollectPmcCounters(set, unused);
}

static void program(void *argument)
{
    const struct programming *p = argument;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    for (ULONG i = 0; i < p->set->count; i++)
        pmu_program(p->set->counters[i].ctr, p->selects[i], 0);
    pmu_start(p->mask);
    irql_lower(old);
}

/* The counters are claimed: describes and starts them. */
static PMC_HANDLE make_set(HANDLE owner, ULONG processor, const ULONG *sources, ULONG count, const unsigned *ctrs,
                           struct programming *p)
{
    PMC_HANDLE set = sets;
    uint8_t irql = lock_acquire(&sets_lock);
    while (set->used)
        set++;
    set->used = true;
    set->processor = processor;
    set->count = count;
    for (ULONG i = 0; i < count; i++)
        set->counters[i] = (struct hal_pmc_counter){ .mask = pmu_mask(ctrs[i]), .ctr = ctrs[i], .source = sources[i],
                                                 .selector = pmu_rdpmc_index(ctrs[i]) };
    __atomic_store_n(&set->owner, owner, __ATOMIC_RELEASE);
    lock_release(&sets_lock, irql);
    p->set = set;
    smp_call(PMU_BIT(processor), program, p);
    return set;
}

NTSTATUS HalAllocatePmcCounterSet(ULONG Processor, KPROFILE_SOURCE *Sources, ULONG Count, PMC_HANDLE *Handle)
{
    struct programming p;
    unsigned ctrs[MAX_HW_COUNTERS];
    ULONG sources[MAX_HW_COUNTERS];
    HANDLE owner;

    ASSERT(irql_current() == PASSIVE_LEVEL);
    if (!Handle)
        return STATUS_INVALID_PARAMETER;
    *Handle = NULL;
    if (Processor >= cpu_count || !Count || Count > MAX_HW_COUNTERS)
        return STATUS_INVALID_PARAMETER;
    for (ULONG i = 0; i < Count; i++)
        sources[i] = (ULONG)Sources[i] & ~PROFILE_SOURCE_RING3;
    NTSTATUS status = source_assign(sources, Count, PMU_BIT(Processor), ctrs, p.selects, &p.mask);
    if (NT_SUCCESS(status))
        status = hal_counters_claim("counter set", PMU_BIT(Processor), p.mask, wrapped, &owner);
    if (!NT_SUCCESS(status))
        return status;
    for (ULONG i = 0; i < Count; i++)
        if ((ULONG)Sources[i] & PROFILE_SOURCE_RING3)
            p.selects[i] &= ~(uint64_t)PMU_KERNEL;
    *Handle = make_set(owner, Processor, sources, Count, ctrs, &p);
    return STATUS_SUCCESS;
}

VOID HalFreePmcCounterSet(PMC_HANDLE PmcCounterSet)
{
    ASSERT(irql_current() == PASSIVE_LEVEL && PmcCounterSet->used);
    NTSTATUS status = HalFreeHardwareCounters(PmcCounterSet->owner);
    ASSERT(NT_SUCCESS(status));
    uint8_t irql = lock_acquire(&sets_lock);
    __atomic_store_n(&PmcCounterSet->owner, NULL, __ATOMIC_RELAXED);
    PmcCounterSet->used = false;
    lock_release(&sets_lock, irql);
}

KPROFILE_SOURCE hal_pmc_source(unsigned ctr, unsigned cpu)
{
    ULONG source = ProfileTime;
    uint8_t irql = lock_acquire(&sets_lock);
    for (const struct _HAL_PMC_COUNTERS *set = sets; set < sets + HAL_OWNERS_MAX; set++)
        for (ULONG i = 0; set->used && set->processor == cpu && i < set->count; i++)
            if (set->counters[i].ctr == ctr)
                source = set->counters[i].source;
    lock_release(&sets_lock, irql);
    return (KPROFILE_SOURCE)source;
}

bool pmc_in_use(KPROFILE_SOURCE source)
{
    bool found = false;
    uint8_t irql = lock_acquire(&sets_lock);
    for (const struct _HAL_PMC_COUNTERS *set = sets; set < sets + HAL_OWNERS_MAX; set++)
        for (ULONG i = 0; set->used && i < set->count; i++)
            found = found || set->counters[i].source == (ULONG)source;
    lock_release(&sets_lock, irql);
    return found;
}
