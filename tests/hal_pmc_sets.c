/* SPDX-License-Identifier: MIT */
/* Counter sets: HalAllocatePmcCounterSet, HalCollectPmcCounters, HalFreePmcCounterSet.
 *
 * Source: spec/windows-api.md 3.8, 5.3; what is refused with what is ours. */
#include "hal/hal.h"
#include "hal/source.h"
#include "kernel/cpu.h"
#include "kernel/irql.h"
#include "kernel/smp.h"
#include "kernel/string.h"
#include "kernel/x86.h"
#include "tests/counter_list.h"
#include "tests/lab.h"
#include "tests/profile.h"
#include "tests/vpmu.h"

#define LOOPS 1000u
#define CANARY 0x5a5a5a5a5a5a5a5aull

/* The counters that count instructions for a set. */
static uint64_t able(KPROFILE_SOURCE source)
{
    uint64_t select;
    return source_counting(source, &select);
}

static PMC_HANDLE set_of(unsigned cpu, KPROFILE_SOURCE *sources, ULONG count)
{
    PMC_HANDLE set = NULL;
    CHECK_STATUS(HalAllocatePmcCounterSet(cpu, sources, count, &set), STATUS_SUCCESS);
    return set;
}

static PMC_HANDLE set_of_instructions(unsigned cpu)
{
    KPROFILE_SOURCE source = SOURCE;
    return set_of(cpu, &source, 1);
}

/* What the set of one source counts from one call to the next, with a loop between. */
static uint64_t across_loop(PMC_HANDLE set, uint64_t loops)
{
    ULONG64 before, after;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    HalCollectPmcCounters(set, &before);
    lab_loop(loops);
    HalCollectPmcCounters(set, &after);
    irql_lower(old);
    return after - before;
}

TEST(hal_pmc_sets, exact, "on each processor the values of a set differ by the instructions between, exactly [ET-54]")
{
    SKIP_WITHOUT_SOURCE();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        PMC_HANDLE set = set_of_instructions(cpu);
        REQUIRE(set != NULL);
        test_run_on(cpu);
        across_loop(set, LOOPS);
        uint64_t few = across_loop(set, LOOPS), more = across_loop(set, 3 * LOOPS);
        LAB_CHECK_COUNT(more - few, 2 * LOOPS * lab_loop_work.each[LAB_INSTRUCTIONS]);
        HalFreePmcCounterSet(set);
    }
    test_run_anywhere();
    CHECK_EQ(hal_counters_owned(), 0);
}

/* As many sources as the counters of the processor can count together. */
static ULONG fill(KPROFILE_SOURCE *sources, uint64_t *counters)
{
    ULONG count = 0;
    *counters = 0;
    for (KPROFILE_SOURCE s = hal_source_next(ProfileTime); s != ProfileTime; s = hal_source_next(s)) {
        uint64_t more = able(s) & ~*counters;
        *counters |= more;
        for (; more && count < MAX_HW_COUNTERS; more &= more - 1)
            sources[count++] = s;
    }
    return count;
}

static ETW_PMC_COUNTER_OWNER owner_of(unsigned nth)
{
    struct {
        ULONG ProcessorNumber, NumberOfCounters;
        ETW_PMC_COUNTER_OWNER CounterOwners[64];
    } status = { .ProcessorNumber = 0 };
    CHECK_STATUS(HalQuerySystemInformation(HalQueryProfileCounterOwnership, sizeof status, &status, NULL),
                 STATUS_SUCCESS);
    return status.CounterOwners[nth];
}

TEST(hal_pmc_sets, every_counter, "a set takes every counter that a source can use, fixed ones too, and each counts [ET-54 ET-56]")
{
    KPROFILE_SOURCE sources[MAX_HW_COUNTERS];
    ULONG64 values[MAX_HW_COUNTERS + 1], later[MAX_HW_COUNTERS];
    uint64_t counters;
    SKIP_WITHOUT_SOURCE();
    ULONG count = fill(sources, &counters);
    PMC_HANDLE set = set_of(0, sources, count);
    REQUIRE(set != NULL);
    test_run_on(0);
    values[count] = CANARY;
    HalCollectPmcCounters(set, values);
    lab_memory(LOOPS);
    HalCollectPmcCounters(set, later);
    test_run_anywhere();
    CHECK_EQ(values[count], CANARY);
    CHECK_EQ(hal_counters_available(1), pmu_caps.counters & ~counters);
    for (ULONG i = 0; i < count; i++)
        if (sources[i] == SOURCE)
            CHECK(later[i] - values[i] >= LOOPS);
    for (unsigned nth = 0; nth < hal_counter_count(); nth++) {
        ETW_PMC_COUNTER_OWNER owner = owner_of(nth);
        bool taken = counters >> nth_counter(nth) & 1;
        CHECK_EQ(owner.OwnerType, taken ? EtwPmcOwnerTaggedWithSource : EtwPmcOwnerFree);
        CHECK_EQ(owner.ProfileSource, hal_pmc_source(nth_counter(nth), 0));
        CHECK(!taken || owner.ProfileSource != 0);
    }
    HalFreePmcCounterSet(set);
    CHECK_EQ(hal_counters_available(1), pmu_caps.counters);
    CHECK_EQ(hal_counters_owned(), 0);
}

/* The one counter of the one set. */
static unsigned counter_of(void)
{
    for (unsigned nth = 0; nth < hal_counter_count(); nth++)
        if (hal_pmc_source(nth_counter(nth), 0) == SOURCE)
            return nth_counter(nth);
    CHECK(false);
    return 0;
}

#define BEFORE_WRAP 1000u

/* Puts it shortly before its wrap and collects. */
static uint64_t jump(PMC_HANDLE set, unsigned ctr)
{
    ULONG64 value;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_write(ctr, -(uint64_t)BEFORE_WRAP & pmu_mask(ctr));
    HalCollectPmcCounters(set, &value);
    irql_lower(old);
    return value;
}

TEST(hal_pmc_sets, wraps, "values are 64 bits wide and count across the counter's wrap [ET-29]")
{
    ULONG64 value;
    SKIP_WITHOUT_SOURCE();
    PMC_HANDLE set = set_of_instructions(0);
    REQUIRE(set != NULL);
    test_run_on(0);
    unsigned ctr = counter_of();
    uint64_t far = jump(set, ctr);
    /* The instructions of the call at most are past the value written. */
    CHECK_BECAUSE(far, pmu_mask(ctr) - BEFORE_WRAP + 1, pmu_mask(ctr), "written to, and a call away");
    uint64_t few = across_loop(set, LOOPS);
    HalCollectPmcCounters(set, &value);
    CHECK(value > pmu_mask(ctr));
    uint64_t more = across_loop(set, 3 * LOOPS);
    if (!hal_pmi_is_nmi()) /* which interrupts the loop that wraps */
        LAB_CHECK_COUNT(more - few, 2 * LOOPS * lab_loop_work.each[LAB_INSTRUCTIONS]);
    HalFreePmcCounterSet(set);
    test_run_anywhere();
}

TEST(hal_pmc_sets, wraps_unread, "a wrap that nobody reads is noticed by its interrupt and not lost [ET-29]")
{
    SKIP_WITHOUT_SOURCE();
    PMC_HANDLE set = set_of_instructions(0);
    REQUIRE(set != NULL);
    test_run_on(0);
    unsigned ctr = counter_of();
    jump(set, ctr);
    lab_loop(LOOPS); /* past the wrap, at an IRQL at which the interrupt comes */
    uint64_t value = jump(set, ctr); /* the same place a second time */
    HalFreePmcCounterSet(set);
    test_run_anywhere();
    CHECK(value > 2 * (pmu_mask(ctr) - BEFORE_WRAP));
}

TEST(hal_pmc_sets, any_irql, "a set can be collected at every IRQL up to HIGH_LEVEL, each time later [ET-57]")
{
    ULONG64 last = 0, value;
    SKIP_WITHOUT_SOURCE();
    PMC_HANDLE set = set_of_instructions(0);
    REQUIRE(set != NULL);
    test_run_on(0);
    for (KIRQL level = PASSIVE_LEVEL; level <= PROFILE_LEVEL; level++) {
        KIRQL old = irql_raise(level);
        HalCollectPmcCounters(set, &value);
        irql_lower(old);
        CHECK(value > last);
        last = value;
    }
    HalFreePmcCounterSet(set);
    test_run_anywhere();
}

/* A set that is collected all the time, also by an interrupt in the midst of that. */
static struct {
    PMC_HANDLE set;
    ULONG64 last;
    unsigned calls, backwards;
} inside;

static void collect_inside(ULONGLONG OverflowBits, HANDLE OwningHandle)
{
    ULONG64 value;
    (void)OwningHandle;
    HalCollectPmcCounters(inside.set, &value);
    inside.backwards += value < inside.last;
    inside.last = value;
    inside.calls++;
    unsigned ctr = (unsigned)__builtin_ctzll(OverflowBits);
    /* No multiple of the loop's length: the interrupt meets another instruction each time. */
    pmu_write(ctr, -(uint64_t)(701 + inside.calls % 37) & pmu_mask(ctr));
}

TEST(hal_pmc_sets, nested, "collecting that interrupts collecting: neither ever goes backwards [ET-29 ET-57]")
{
    HANDLE sampler;
    ULONG64 last = 0, value, backwards = 0;
    SKIP_WITHOUT_SOURCE();
    PMC_HANDLE set = set_of_instructions(0);
    REQUIRE(set != NULL);
    uint64_t rest = hal_counters_available(1) & able(SOURCE) & PMU_ANY_GP;
    REQUIRE(rest != 0);
    unsigned ctr = (unsigned)__builtin_ctzll(rest);
    inside.set = set;
    inside.last = inside.calls = inside.backwards = 0;
    REQUIRE_STATUS(hal_counters_claim("test", 1, PMU_BIT(ctr), collect_inside, &sampler), STATUS_SUCCESS);
    test_run_on(0);
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_program(ctr, pmu_select(PMU_INSTRUCTIONS, PMU_KERNEL | PMU_INTERRUPT), -(uint64_t)701 & pmu_mask(ctr));
    pmu_start(PMU_BIT(ctr));
    irql_lower(old);
    for (unsigned i = 0; i < 20 * LOOPS; i++) {
        HalCollectPmcCounters(set, &value);
        backwards += value <= last;
        last = value;
    }
    free_and_check(sampler);
    HalFreePmcCounterSet(set);
    test_run_anywhere();
    CHECK_EQ(backwards, 0);
    CHECK_EQ(inside.backwards, 0);
    CHECK(inside.calls >= 100);
}

TEST(hal_pmc_sets, two_sets, "two sets on one processor have counters of their own and agree")
{
    ULONG64 first[2], second[2];
    SKIP_WITHOUT_SOURCE();
    PMC_HANDLE a = set_of_instructions(0), b = set_of_instructions(0);
    REQUIRE(a && b);
    test_run_on(0);
    for (unsigned i = 0; i < 2; i++) {
        KIRQL old = irql_raise(PROFILE_LEVEL);
        HalCollectPmcCounters(a, &first[i]);
        HalCollectPmcCounters(b, &second[i]);
        lab_loop(LOOPS);
        irql_lower(old);
    }
    test_run_anywhere();
    CHECK(first[1] - first[0] >= LOOPS);
    LAB_CHECK_COUNT(second[1] - second[0], first[1] - first[0]);
    HalFreePmcCounterSet(a);
    HalFreePmcCounterSet(b);
}

static void read_selects(void *sum)
{
    for (uint64_t rest = pmu_caps.counters; rest; rest &= rest - 1)
        *(uint64_t *)sum |= rdmsr(pmu_select_msr((unsigned)__builtin_ctzll(rest)));
    *(uint64_t *)sum |= pmu_running();
}

TEST(hal_pmc_sets, given_back, "a set that is freed leaves nothing that runs or is selected [ET-56]")
{
    SKIP_WITHOUT_SOURCE();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        uint64_t programmed = 0, left = 0;
        PMC_HANDLE set = set_of_instructions(cpu);
        REQUIRE(set != NULL);
        smp_call(PMU_BIT(cpu), read_selects, &programmed);
        HalFreePmcCounterSet(set);
        smp_call(PMU_BIT(cpu), read_selects, &left);
        CHECK(programmed != 0);
        CHECK_EQ(left, 0);
    }
}

/* At PROFILE_LEVEL. */
static struct vpmu_accesses accesses_of(PMC_HANDLE set, ULONG64 *values, uint64_t *instructions)
{
    uint64_t start = vpmu_retired();
    uint64_t around = vpmu_retired() - start;
    start = vpmu_retired();
    HalCollectPmcCounters(set, values);
    *instructions = vpmu_retired() - start - around;
    struct vpmu_accesses before = vpmu_accesses();
    HalCollectPmcCounters(set, values);
    struct vpmu_accesses after = vpmu_accesses();
    return (struct vpmu_accesses){ after.rdpmc - before.rdpmc, after.rdmsr - before.rdmsr, after.wrmsr - before.wrmsr,
                                   after.interrupts - before.interrupts };
}

TEST(hal_pmc_sets, cost, "collecting n counters: n RDPMC, no WRMSR, at most 20 instructions and 14 for each")
{
    KPROFILE_SOURCE sources[MAX_HW_COUNTERS];
    ULONG64 values[MAX_HW_COUNTERS];
    uint64_t counters, instructions;
    SKIP_WITHOUT_SOURCE();
    SKIP_WITHOUT_VPMU();
    ULONG most = fill(sources, &counters);
    test_run_on(0);
    for (ULONG n = 1; n <= most; n++) {
        PMC_HANDLE set = set_of(0, sources, n);
        REQUIRE(set != NULL);
        KIRQL old = irql_raise(PROFILE_LEVEL);
        struct vpmu_accesses accesses = accesses_of(set, values, &instructions);
        irql_lower(old);
        test_note("%u counters: %lu instructions", n, instructions);
        CHECK_EQ(accesses.rdpmc, n);
        CHECK_EQ(accesses.rdmsr, 0);
        CHECK_EQ(accesses.wrmsr, 0);
        /* Below: RDPMC, its selector, a value stored. */
        CHECK_RANGE(instructions, 3 * n, 20 + 14 * n);
        HalFreePmcCounterSet(set);
    }
    test_run_anywhere();
}
