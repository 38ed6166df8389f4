/* SPDX-License-Identifier: MIT */
/* Counter sets: HalAllocatePmcCounterSet, HalCollectPmcCounters, HalFreePmcCounterSet.
 *
 * Source: ET-54 to ET-57 of tests/contract.md. No page documents these routines; the statuses are
 * our choice. */
#include "kernel/base/sanitize/kasan.h"
#include "tests/harness/lab.h"

#define LOOPS 1000u
#define PERIOD (KASAN_ON ? 20001u : 701u) /* a handler is shorter */
#define CANARY 0x5a5a5a5a5a5a5a5aull

/* A test of each kind of CPU; the body has `cpu`. */
#define SET_TEST(name, meaning)                                                                    \
    static void name(unsigned cpu);                                                                \
    TEST(hal_pmc_sets, name, meaning)                                                              \
    {                                                                                              \
        SKIP_WITHOUT_SOURCE();                                                                     \
        EACH_KIND(cpu)                                                                             \
            name(cpu);                                                                             \
    }                                                                                              \
    static void name(unsigned cpu)

/* The counters of a processor that count the source for a set. */
static uint64_t able(unsigned cpu, KPROFILE_SOURCE source)
{
    uint64_t select;
    return source_counting(pmu_of(cpu), source, &select);
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

/* What the set of one source counts from one call to the next, with a loop between. Never a copy
 * for each number of loops: what is around the loop is the same for all. */
static __attribute__((noinline)) uint64_t across_loop(PMC_HANDLE set, uint64_t loops)
{
    ULONG64 before, after;
    KIRQL old = irql_raise(HIGH_LEVEL);
    HalCollectPmcCounters(set, &before);
    lab_loop(loops);
    HalCollectPmcCounters(set, &after);
    irql_lower(old);
    return after - before;
}

/* No other processor's counter is said to count for it. */
static void check_told(unsigned cpu, const struct _HAL_PMC_COUNTERS *set)
{
    for (unsigned other = 0; other < cpu_count; other++)
        CHECK_EQ(hal_pmc_source(set->counters[0].ctr, other),
                 other == cpu ? (uint64_t)SOURCE : (uint64_t)ProfileTime);
}

TEST(hal_pmc_sets, exact,
     "on each processor the values of a set differ by exactly the instructions between two reads, "
     "at HIGH_LEVEL, too [ET-54 ET-57]")
{
    SKIP_WITHOUT_SOURCE();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        PMC_HANDLE set = set_of_instructions(cpu);
        REQUIRE(set != NULL);
        check_told(cpu, set);
        test_run_on(cpu);
        across_loop(set, LOOPS);
        uint64_t few = across_loop(set, LOOPS), more = across_loop(set, 3 * LOOPS);
        LAB_CHECK_COUNT(more - few, 2 * LOOPS * lab_loop_work.each[LAB_INSTRUCTIONS]);
        HalFreePmcCounterSet(set);
    }
}

/* As many sources as the counters of the processor can count together. */
static ULONG fill_sources(unsigned cpu, KPROFILE_SOURCE *sources, uint64_t *counters)
{
    ULONG count = 0;
    *counters = 0;
    for (unsigned id = 1; id < SOURCE_IDS; id++) {
        KPROFILE_SOURCE s = (KPROFILE_SOURCE)id;
        uint64_t more = able(cpu, s) & ~*counters;
        *counters |= more;
        for (; more && count < MAX_HW_COUNTERS; more &= more - 1)
            sources[count++] = s;
    }
    return count;
}

static ETW_PMC_COUNTER_OWNER owner_of(unsigned cpu, unsigned nth)
{
    struct {
        ULONG ProcessorNumber, NumberOfCounters;
        ETW_PMC_COUNTER_OWNER CounterOwners[64];
    } status = { .ProcessorNumber = cpu };
    CHECK_OK(
        HalQuerySystemInformation(HalQueryProfileCounterOwnership, sizeof status, &status, NULL));
    return status.CounterOwners[nth];
}

SET_TEST(every_counter,
         "a set can use every counter that can count the source, fixed ones too, and each counts "
         "[ET-54 ET-56]")
{
    KPROFILE_SOURCE sources[MAX_HW_COUNTERS];
    ULONG64 values[MAX_HW_COUNTERS + 1], later[MAX_HW_COUNTERS + 1];
    uint64_t counters;
    unsigned nth = 0;
    ULONG count = fill_sources(cpu, sources, &counters);
    PMC_HANDLE set = set_of(cpu, sources, count);
    REQUIRE(set != NULL);
    test_run_on(cpu);
    for (ULONG i = 0; i <= count; i++)
        values[i] = later[i] = CANARY;
    HalCollectPmcCounters(set, values);
    lab_memory(LOOPS);
    HalCollectPmcCounters(set, later);
    test_run_anywhere();
    for (ULONG i = 0; i <= count; i++) {
        CHECK_EQ(values[i] == CANARY, i == count);
        CHECK_EQ(later[i] == CANARY, i == count);
    }
    CHECK_EQ(hal_counters_available(cpu_set_one(cpu)), pmu_of(cpu)->counters & ~counters);
    for (ULONG i = 0; i < count; i++)
        if (sources[i] == SOURCE)
            CHECK(later[i] - values[i] >= LOOPS);
    for (uint64_t rest = pmu_of(cpu)->counters; rest; rest &= rest - 1, nth++) {
        ETW_PMC_COUNTER_OWNER owner = owner_of(cpu, nth);
        bool taken = rest & -rest & counters;
        CHECK_EQ(owner.OwnerType, taken ? EtwPmcOwnerTaggedWithSource : EtwPmcOwnerFree);
        CHECK_EQ(owner.ProfileSource, hal_counter_source(bit_lowest(rest), cpu));
        CHECK(!taken || owner.ProfileSource != 0);
    }
    HalFreePmcCounterSet(set);
    CHECK_EQ(hal_counters_available(cpu_set_one(cpu)), pmu_of(cpu)->counters);
}

/* The one counter of the one set. */
static unsigned counter_of(unsigned cpu)
{
    for_each_bit(ctr, pmu_of(cpu)->counters)
        if (hal_counter_source((unsigned)ctr, cpu) == SOURCE)
            return (unsigned)ctr;
    CHECK(false);
    return 0;
}

#define BEFORE_WRAP 1000u

/* Puts it shortly before its wrap and collects. */
static uint64_t jump(PMC_HANDLE set, unsigned ctr)
{
    ULONG64 value;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_write(ctr, -(uint64_t)BEFORE_WRAP & pmu_mask(pmu_here(), ctr));
    HalCollectPmcCounters(set, &value);
    irql_lower(old);
    return value;
}

SET_TEST(wraps, "values are 64 bits wide and count across the counter's wrap [ET-29]")
{
    ULONG64 value;
    PMC_HANDLE set = set_of_instructions(cpu);
    REQUIRE(set != NULL);
    test_run_on(cpu);
    unsigned ctr = counter_of(cpu);
    uint64_t far = jump(set, ctr);
    /* The value has advanced by the instructions of the call at most. */
    CHECK_BECAUSE(far, pmu_mask(pmu_here(), ctr) - BEFORE_WRAP + 1, pmu_mask(pmu_here(), ctr),
                  "written to, and a call away");
    uint64_t few = across_loop(set, LOOPS);
    HalCollectPmcCounters(set, &value);
    CHECK(value > pmu_mask(pmu_here(), ctr));
    uint64_t more = across_loop(set, 3 * LOOPS);
    if (!hal_pmi_is_nmi()) /* which interrupts the loop that wraps */
        LAB_CHECK_COUNT(more - few, 2 * LOOPS * lab_loop_work.each[LAB_INSTRUCTIONS]);
    HalFreePmcCounterSet(set);
    test_run_anywhere();
}

SET_TEST(wraps_unread, "a wrap between two reads is counted, because it interrupts [ET-29]")
{
    PMC_HANDLE set = set_of_instructions(cpu);
    REQUIRE(set != NULL);
    test_run_on(cpu);
    unsigned ctr = counter_of(cpu);
    jump(set, ctr);
    lab_loop(LOOPS + lab_late(1));   /* past the wrap, at an IRQL at which the interrupt comes */
    uint64_t value = jump(set, ctr); /* the same place a second time */
    HalFreePmcCounterSet(set);
    test_run_anywhere();
    CHECK(value > 2 * (pmu_mask(pmu_here(), ctr) - BEFORE_WRAP));
}

/* A set that is read continuously, and also by an interrupt in the middle of a read. */
static struct {
    PMC_HANDLE set;
    ULONG64 last;
    unsigned calls, backwards;
} inside;

static void collect_inside(ULONGLONG OverflowBits, HANDLE)
{
    ULONG64 value;
    HalCollectPmcCounters(inside.set, &value);
    inside.backwards += value < inside.last;
    inside.last = value;
    inside.calls++;
    unsigned ctr = bit_lowest(OverflowBits);
    /* Not a multiple of the loop's length, so that the interrupt hits a different instruction
     * each time. */
    pmu_write(ctr, -(uint64_t)(PERIOD + inside.calls % 37) & pmu_mask(pmu_here(), ctr));
}

SET_TEST(nested, "a read that interrupts a read: the values of neither decrease [ET-29 ET-57 slow]")
{
    HANDLE sampler;
    ULONG64 last = 0, value, backwards = 0;
    unsigned calls = test_long() ? 100 : 2;
    PMC_HANDLE set = set_of_instructions(cpu);
    REQUIRE(set != NULL);
    uint64_t rest = hal_counters_available(cpu_set_one(cpu)) & able(cpu, SOURCE) & PMU_ANY_GP;
    REQUIRE(rest != 0);
    unsigned ctr = bit_lowest(rest);
    inside.set = set;
    inside.last = inside.calls = inside.backwards = 0;
    REQUIRE_OK(
        hal_counters_claim("test", cpu_set_one(cpu), PMU_BIT(ctr), collect_inside, &sampler));
    test_run_on(cpu);
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_program(ctr, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL | PMU_INTERRUPT),
                -(uint64_t)PERIOD & pmu_mask(pmu_here(), ctr));
    pmu_start(PMU_BIT(ctr));
    irql_lower(old);
    for (unsigned i = 0; i < calls * LOOPS / 5; i++) {
        HalCollectPmcCounters(set, &value);
        backwards += value <= last;
        last = value;
    }
    free_and_check(sampler);
    HalFreePmcCounterSet(set);
    test_run_anywhere();
    CHECK_EQ(backwards, 0);
    CHECK_EQ(inside.backwards, 0);
    CHECK(inside.calls >= calls);
}

static void read_selects(void *sum)
{
    for_each_bit(ctr, pmu_here()->counters)
        *(uint64_t *)sum |= rdmsr(pmu_select_msr(pmu_here(), ctr));
    *(uint64_t *)sum |= pmu_running();
}

TEST(hal_pmc_sets, given_back,
     "as many sources as there can be, more than counters, are refused as such; a set that is "
     "freed leaves no counter running or programmed [ET-56]")
{
    SKIP_WITHOUT_SOURCE();
    for_all_cpus(cpu) {
        uint64_t programmed = 0, left = 0;
        PMC_HANDLE refused = NULL;
        KPROFILE_SOURCE many[MAX_HW_COUNTERS + 1];
        for_each_in(source, many)
            *source = SOURCE;
        CHECK_STATUS(HalAllocatePmcCounterSet(cpu, many, MAX_HW_COUNTERS + 1, &refused),
                     STATUS_INVALID_PARAMETER);
        CHECK_STATUS(HalAllocatePmcCounterSet(cpu, many, MAX_HW_COUNTERS, &refused),
                     STATUS_INSUFFICIENT_RESOURCES);
        CHECK_STATUS(HalAllocatePmcCounterSet(cpu, many, 1, NULL), STATUS_INVALID_PARAMETER);
        CHECK(!refused);
        PMC_HANDLE set = set_of_instructions(cpu);
        REQUIRE(set != NULL);
        smp_call(cpu_set_one(cpu), read_selects, &programmed);
        HalFreePmcCounterSet(set);
        smp_call(cpu_set_one(cpu), read_selects, &left);
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
    return vpmu_accesses_since(before);
}

static void cost(unsigned cpu)
{
    KPROFILE_SOURCE sources[MAX_HW_COUNTERS];
    ULONG64 values[MAX_HW_COUNTERS];
    uint64_t counters, instructions;
    ULONG most = fill_sources(cpu, sources, &counters);
    test_run_on(cpu);
    for (ULONG n = 1; n <= most; n++) {
        PMC_HANDLE set = set_of(cpu, sources, n);
        REQUIRE(set != NULL);
        KIRQL old = irql_raise(PROFILE_LEVEL);
        struct vpmu_accesses accesses = accesses_of(set, values, &instructions);
        irql_lower(old);
        cost_tell(instructions, accesses, "a set of %u counters read", n);
        CHECK_EQ(accesses.rdpmc, n);
        CHECK_EQ(accesses.rdmsr, 0);
        CHECK_EQ(accesses.wrmsr, 0);
        /* Below: RDPMC, its selector, a value stored. */
        CHECK_RANGE(instructions, 3 * n, 20 + 14 * n);
        HalFreePmcCounterSet(set);
    }
    test_run_anywhere();
}

TEST(hal_pmc_sets, cost,
     "reading n counters takes n RDPMC, no WRMSR, and at most 20 instructions and 14 for each "
     "[slow]")
{
    SKIP_WITHOUT_SOURCE();
    SKIP_WITHOUT_VPMU();
    EACH_KIND(cpu)
        cost(cpu);
}
