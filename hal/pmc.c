/* SPDX-License-Identifier: MIT */
/* Counter sets: counters of one processor that run all the time and are read by trace sessions
 * at events.
 *
 * Locking: sets_lock guards which sets are in use. The counters of a set belong to its processor.
 * Collecting takes no lock, and another collection may interrupt it (see hal_pmc_read). Overflows
 * interrupt only so that no wrap is missed where trace events are rare.
 *
 * Source: HAL_PRIVATE_DISPATCH as Geoff Chappell describes it. NT: Windows has these three
 * functions in that table, without exporting them. The statuses of refusals are our choice: no
 * source gives them. */
#include "hal/machine/smp.h"
#include "hal/measure_traps.h"
#include "hal/owners.h"
#include "hal/pmc.h"
#include "hal/source.h"
#include "kernel/base/assert.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/irql.h"
#include "kernel/base/lock.h"
#include "kernel/base/x86.h"
#include "pmu/pmu.h"

static struct lock sets_lock = LOCK("counter sets", DISPATCH_LEVEL);
static struct _HAL_PMC_COUNTERS sets[HAL_OWNERS_MAX]; /* each set needs an owner's slot */
/* Atomic; L: sets_lock to write; sets from here on were never used. */
static struct _HAL_PMC_COUNTERS *sets_end = sets;

VOID HalCollectPmcCounters(PMC_HANDLE PmcCounterSet, ULONG64 *Values)
{
    ASSERT(cpu_number() == PmcCounterSet->processor);
    ULONG n = PmcCounterSet->count;
    for (; n > HAL_PMC_QUICK; n--)
        Values[n - 1] = hal_pmc_read(&PmcCounterSet->counters[n - 1]);
    hal_pmc_collect(PmcCounterSet->counters, n, Values);
}

/* The overflow handler of every set. */
static void wrapped(ULONGLONG, HANDLE OwningHandle)
{
    ULONG64 unused[MAX_HW_COUNTERS];
    const struct _HAL_PMC_COUNTERS *end = __atomic_load_n(&sets_end, __ATOMIC_RELAXED);
    for (PMC_HANDLE set = sets; set < end; set++)
        if (__atomic_load_n(&set->owner, __ATOMIC_ACQUIRE) == OwningHandle)
            HalCollectPmcCounters(set, unused);
}

void hal_pmc_trapped(enum hal_trap trap)
{
    const struct _HAL_PMC_COUNTERS *end = __atomic_load_n(&sets_end, __ATOMIC_RELAXED);
    for (PMC_HANDLE set = sets; set < end; set++)
        if (__atomic_load_n(&set->owner, __ATOMIC_ACQUIRE) && set->processor == cpu_number())
            for (struct hal_pmc_counter *c = set->counters; c < set->counters + set->count; c++)
                c->taken_off += (uint64_t)hal_trap_adds(c->ctr, trap);
}

/* The counters are claimed: records what they count and starts them. */
static PMC_HANDLE make_set(HANDLE owner, ULONG processor, const ULONG *sources,
                           struct source_assignment *a)
{
    PMC_HANDLE set = sets;
    const struct pmu_kind *pmu = pmu_of(processor);
    KIRQL irql = lock_acquire(&sets_lock);
    while (set->used)
        set++;
    set->used = true;
    __atomic_store_n(&sets_end, set < sets_end ? sets_end : set + 1, __ATOMIC_RELAXED);
    set->processor = processor;
    set->count = a->count;
    for (ULONG i = 0; i < a->count; i++)
        set->counters[i] = (struct hal_pmc_counter){ .mask = pmu_mask(pmu, a->ctrs[i]),
                                                     .ctr = a->ctrs[i],
                                                     .source = sources[i],
                                                     .selector = pmu_rdpmc_index(a->ctrs[i]) };
    __atomic_store_n(&set->owner, owner, __ATOMIC_RELEASE);
    lock_release(&sets_lock, irql);
    smp_call(cpu_set_one(processor), source_start_assigned, a);
    return set;
}

NTSTATUS HalAllocatePmcCounterSet(ULONG Processor, KPROFILE_SOURCE *Sources, ULONG Count,
                                  PMC_HANDLE *Handle)
{
    struct source_assignment a;
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
    NTSTATUS status = source_assign(sources, Count, cpu_set_one(Processor), &a);
    if (NT_SUCCESS(status))
        status = hal_counters_claim("counter set", cpu_set_one(Processor), a.mask, wrapped, &owner);
    if (!NT_SUCCESS(status))
        return status;
    for (ULONG i = 0; i < Count; i++)
        a.without[i] = (ULONG)Sources[i] & PROFILE_SOURCE_RING3 ? PMU_KERNEL : 0;
    *Handle = make_set(owner, Processor, sources, &a);
    return STATUS_SUCCESS;
}

/* After its counters were freed. */
static void clear_set(PMC_HANDLE set)
{
    KIRQL irql = lock_acquire(&sets_lock);
    __atomic_store_n(&set->owner, NULL, __ATOMIC_RELAXED);
    set->used = false;
    lock_release(&sets_lock, irql);
}

VOID HalFreePmcCounterSet(PMC_HANDLE PmcCounterSet)
{
    ASSERT(irql_current() == PASSIVE_LEVEL && PmcCounterSet->used);
    NTSTATUS status = HalFreeHardwareCounters(PmcCounterSet->owner);
    ASSERT(NT_SUCCESS(status));
    clear_set(PmcCounterSet);
}

/* L: sets_lock: nobody else is there when tests ask. */
unsigned hal_pmc_sets(void)
{
    unsigned n = 0;
    for_each_in(set, sets)
        n += set->used;
    return n;
}

void hal_pmc_release_all(void)
{
    for_each_in(set, sets)
        if (set->used) {
            HalFreeHardwareCounters(set->owner); /* fails if they were freed before */
            clear_set(set);
        }
}

KPROFILE_SOURCE hal_pmc_source(unsigned ctr, unsigned cpu)
{
    ULONG source = ProfileTime;
    KIRQL irql = lock_acquire(&sets_lock);
    for (const struct _HAL_PMC_COUNTERS *set = sets; set < sets_end; set++)
        for (ULONG i = 0; set->used && set->processor == cpu && i < set->count; i++)
            if (set->counters[i].ctr == ctr)
                source = set->counters[i].source;
    lock_release(&sets_lock, irql);
    return (KPROFILE_SOURCE)source;
}

bool pmc_in_use(KPROFILE_SOURCE source)
{
    bool found = false;
    KIRQL irql = lock_acquire(&sets_lock);
    for_each_in(set, sets)
        for (ULONG i = 0; set->used && i < set->count; i++)
            found = found || set->counters[i].source == (ULONG)source;
    lock_release(&sets_lock, irql);
    return found;
}
