/* SPDX-License-Identifier: MIT */
/* Conformance: every counter counts every event that its processor has. Instructions, branches,
 * loads and stores have exact numbers; the others a range with its reason. */
#include "tests/harness/lab.h"

#define ITERATIONS 300u
#define ITERATIONS_DECODED 20u /* where the virtual PMU decodes each instruction; all with `long` */
#define RANDOM_BRANCHES 500u
#define LOADS 100u
#define WARM 3u /* runs before the one that counts: caches and predictors */

static enum pmu_event wanted; /* of the running test */

static uint64_t run_counted(unsigned ctr, const struct lab_work *work, uint64_t n)
{
    return lab_count(ctr, pmu_select(pmu_here(), wanted, PMU_KERNEL), 0, work->code, n);
}

static unsigned iterations(void)
{
    return wanted == PMU_INSTRUCTIONS || test_long() ? ITERATIONS : ITERATIONS_DECODED;
}

static void exact_count(unsigned ctr, enum lab_kind kind)
{
    static const struct lab_work *const works[] = { &lab_loop_work, &lab_memory_work,
                                                    &lab_branches_work, &lab_exits_work };
    bool near = pmu_row(pmu_here()->table, wanted)->near && !vpmu_present();
    if (near) {
        uint64_t found = run_counted(ctr, &lab_memory_work, iterations());
        uint64_t all = lab_expected(&lab_memory_work, kind, iterations());
        CHECK_BECAUSE(found, all, all * 4, "this family counts micro-operations, or speculation");
        return;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(works); i++) {
        uint64_t n = works[i] == &lab_exits_work ? 10 : iterations() + i;
        uint64_t found = run_counted(ctr, works[i], n);
        LAB_CHECK_COUNT(found, lab_expected(works[i], kind, n));
        LAB_CHECK_COUNT(run_counted(ctr, works[i], 1), lab_expected(works[i], kind, 1));
    }
}

/* A fixed counter and a general-purpose one count the same event at the same time. */
static void agrees(unsigned ctr, uint64_t iterations)
{
    uint64_t others = pmu_counters_for(pmu_here(), wanted) & PMU_ANY_GP;
    if (!lab_is_fixed(ctr) || !others || pmu_here()->measured.at_once < pmu_here()->measured.wanted)
        return;
    unsigned other = bit_lowest(others);
    pmu_program(ctr, pmu_select(pmu_here(), wanted, PMU_KERNEL), 0);
    pmu_program(other, pmu_select(pmu_here(), wanted, PMU_KERNEL), 0);
    struct pmu_gate gate = { pmu_here()->msr.global_control, PMU_BIT(ctr) | PMU_BIT(other), 0 };
    lab_measure(&gate, lab_loop, iterations);
    uint64_t found = pmu_read(ctr), by_other = pmu_read(other);
    CHECK_BECAUSE(found, by_other - by_other / 8, by_other + by_other / 8 + 8,
                  "one counter may start some cycles before the other");
}

static void outnumber_cycles(uint64_t slots, uint64_t iterations)
{
    uint64_t others = pmu_counters_for(pmu_here(), PMU_CYCLES);
    if (!others)
        return;
    uint64_t cycles = lab_count(bit_lowest(others), pmu_select(pmu_here(), PMU_CYCLES, PMU_KERNEL),
                                0, lab_loop, iterations);
    CHECK_BECAUSE(slots, cycles + 1, cycles * 64,
                  "a cycle has four slots and more, and two runs take about the same time");
}

static void in_range(unsigned ctr)
{
    bool steady = wanted == PMU_REF_CYCLES || wanted == PMU_BUS_CYCLES;
    uint64_t iterations = lab_instructions(wanted, ITERATIONS), small = UINT64_MAX,
             times = steady && !(vpmu_present() && vpmu_steps()) ? 100 : 20;
    for (unsigned i = 0; i <= WARM; i++) {
        uint64_t found = run_counted(ctr, &lab_loop_work, iterations);
        small = found < small ? found : small;
    }
    uint64_t start = rdtsc(), large = run_counted(ctr, &lab_loop_work, times * iterations),
             clock = rdtsc() - start;
    CHECK_BECAUSE(small, ITERATIONS / 4, iterations * 50,
                  "a quarter of what was measured at boot; fifty an iteration");
    CHECK_BECAUSE(large, times / 4 * small, times * 4 * small,
                  "so many times the work, at a clock that changes");
    if (steady)
        CHECK_BECAUSE(large, 1, 2 * clock, "no more than the TSC's ticks, which all count");
    agrees(ctr, 20 * iterations);
    if (wanted == PMU_SLOTS)
        outnumber_cycles(small, iterations);
}

static void cache(unsigned ctr)
{
    static uint8_t line[64];
    uint64_t least = UINT64_MAX;
    unsigned loads = vpmu_present() && !test_long() ? LOADS / 5 : LOADS; /* each is decoded */
    for (unsigned run = 0; run <= WARM; run++) {
        pmu_program(ctr, pmu_select(pmu_here(), wanted, PMU_KERNEL), 0);
        pmu_start(PMU_BIT(ctr));
        for (unsigned i = 0; i < loads; i++)
            asm volatile("clflush %0\nmfence\nmov %0,%%al\nmfence"
                         : "+m"(line)
                         :
                         : "rax", "memory");
        pmu_stop(PMU_BIT(ctr));
        least = pmu_read(ctr) < least ? pmu_read(ctr) : least;
    }
    CHECK_BECAUSE(least, loads / 2, loads * 5 / 2,
                  "loads of a line that CLFLUSH has thrown out; prefetches bring some, or count");
}

static void mispredicts(unsigned ctr)
{
    uint32_t random = 1;
    unsigned branches = test_long() ? RANDOM_BRANCHES : RANDOM_BRANCHES / 10;
    pmu_program(ctr, pmu_select(pmu_here(), wanted, PMU_KERNEL), 0);
    pmu_start(PMU_BIT(ctr));
    for (unsigned i = 0; i < branches; i++) {
        random = random * 1664525 + 1013904223;
        asm volatile("test %0,%0\njs 1f\nnop\n1:" : : "r"(random) : "cc");
    }
    pmu_stop(PMU_BIT(ctr));
    CHECK_BECAUSE(pmu_read(ctr), 1, 2 * branches,
                  "random branches cannot all be foreseen; the loop's can be missed");
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i <= WARM; i++) {
        uint64_t found = run_counted(ctr, &lab_loop_work, branches);
        least = found < least ? found : least;
    }
    CHECK(least <= branches / 10); /* a loop's can */
}

static void event_body(unsigned ctr)
{
    SKIP_WITHOUT_COUNT_OF(wanted, ctr);
    static const enum lab_kind kind_of[PMU_EVENT_COUNT] = {
        [PMU_BRANCHES] = LAB_BRANCHES, [PMU_LOADS] = LAB_LOADS, [PMU_STORES] = LAB_STORES
    };
    switch (wanted) {
    case PMU_INSTRUCTIONS:
    case PMU_BRANCHES:
    case PMU_LOADS:
    case PMU_STORES: exact_count(ctr, kind_of[wanted]); break;
    case PMU_LLC_REFERENCES:
    case PMU_LLC_MISSES: cache(ctr); break;
    case PMU_BRANCH_MISSES: mispredicts(ctr); break;
    default: in_range(ctr);
    }
}

static void count_event(unsigned ctr, enum pmu_event event)
{
    wanted = event;
    lab_run(event_body, ctr);
}

/* Counters that count the event on some CPU; without one the test says so on the first. */
static uint64_t count_instructions(enum pmu_event event)
{
    uint64_t counters = 0;
    for (unsigned i = 0; i < pmu_kind_count; i++)
        counters |= pmu_counters_for(&pmu_kinds[i], event);
    return counters ? counters : 1;
}

#define EVENT(group, event, meaning)                                                               \
    static uint64_t counting_##group(void) { return count_instructions(event); }                   \
    TEST_EACH(group, counting_##group, meaning) { count_event(ctr, event); }

EVENT(pmu_instructions, PMU_INSTRUCTIONS,
      "retired instructions of four kinds of code, exactly [VP-49 VP-52 VP-58 VP-62]")
EVENT(pmu_cycles, PMU_CYCLES, "core cycles, in range [VP-55 VP-58]")
EVENT(pmu_bus_cycles, PMU_BUS_CYCLES, "cycles at constant rate [VP-56]")
EVENT(pmu_reference_cycles, PMU_REF_CYCLES, "cycles at the TSC's rate [VP-58]")
EVENT(pmu_cache_references, PMU_LLC_REFERENCES, "last level cache references [VP-57]")
EVENT(pmu_cache_misses, PMU_LLC_MISSES, "last level cache misses after CLFLUSH [VP-57]")
EVENT(pmu_branches, PMU_BRANCHES, "retired branches of all kinds, exactly [VP-53]")
EVENT(pmu_mispredicts, PMU_BRANCH_MISSES, "mispredicted branches, in range [VP-54]")
EVENT(pmu_loads, PMU_LOADS, "retired loads, exactly [C-2e]")
EVENT(pmu_stores, PMU_STORES, "retired stores, exactly [C-2e]")
EVENT(pmu_slots, PMU_SLOTS, "issue slots [C-2e]")

/* Every counter at once, started and stopped by one WRMSR where there is global control: alike ones
 * agree. */
LAB_TEST(pmu_together, all, "every counter counts at the same time, each by itself [VP-59]")
{
    if (pmu_here()->measured.at_once < pmu_here()->measured.wanted)
        SKIP("the host has some of the counters");
    struct pmu_gate gate = { 0 };
    for_each_bit(ctr, pmu_here()->counters) {
        pmu_program(ctr, lab_select(ctr, PMU_KERNEL), 0);
    }
    if (pmu_here()->msr.global_control) {
        gate = (struct pmu_gate){ pmu_here()->msr.global_control, pmu_here()->counters, 0 };
        lab_measure(&gate, lab_loop, ITERATIONS);
    } else {
        pmu_start(pmu_here()->counters);
        lab_loop(ITERATIONS);
        pmu_stop(pmu_here()->counters);
    }
    for_each_bit(ctr, pmu_here()->counters) {
        enum pmu_event event = lab_event(ctr);
        if (event == PMU_INSTRUCTIONS && gate.msr)
            LAB_CHECK_COUNT(pmu_read(ctr),
                            lab_expected(&lab_loop_work, LAB_INSTRUCTIONS, ITERATIONS));
        else if (event != PMU_EVENT_COUNT)
            CHECK_BECAUSE(pmu_read(ctr), ITERATIONS / 16, ITERATIONS * 10000,
                          "cycles, or started one after another");
    }
}

/* Each counter with each other one: the second's start does not disturb the first. */
LAB_EACH(pmu_together, each_counter, "runs beside every other counter that stands still [VP-59]")
{
    for_each_bit(other, pmu_here()->counters & ~PMU_BIT(ctr)) {
        pmu_program(other, lab_select(other, PMU_KERNEL), 7);
        CHECK_EQ(pmu_selected((unsigned)other) & (PMU_KERNEL | PMU_USER | PMU_INTERRUPT),
                 PMU_KERNEL);
        uint64_t alone = lab_count(ctr, lab_select(ctr, PMU_KERNEL), 0, lab_loop, ITERATIONS);
        CHECK_EQ(pmu_read(other), 7);
        if (lab_event(ctr) == PMU_INSTRUCTIONS)
            LAB_CHECK_COUNT(alone, lab_expected(&lab_loop_work, LAB_INSTRUCTIONS, ITERATIONS));
        CHECK(alone != 0 || lab_event(ctr) == PMU_EVENT_COUNT);
        pmu_clear(PMU_BIT(other));
    }
}
