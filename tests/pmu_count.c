/* SPDX-License-Identifier: MIT */
/* Conformance: every counter counts every event that its processor has. Instructions, branches, loads and stores have
 * exact numbers; the others a range with its reason. */
#include "tests/lab.h"
#include "tests/vpmu.h"

#define TURNS 300u
#define RANDOM_BRANCHES 500u
#define WARM 3u /* runs before the one that counts: caches and predictors */

static enum pmu_event wanted; /* of the running test */

static uint64_t run(unsigned ctr, const struct lab_work *work, uint64_t n)
{
    return lab_count(ctr, pmu_select(wanted, PMU_KERNEL), 0, work->code, n);
}

static void exact(unsigned ctr, enum lab_kind kind)
{
    static const struct lab_work *const works[] = { &lab_loop_work, &lab_memory_work, &lab_branches_work,
                                                    &lab_exits_work };
    bool near = pmu_row(pmu_caps.table, wanted)->near && !vpmu_present();
    if (near) {
        uint64_t found = run(ctr, &lab_memory_work, TURNS), all = lab_expected(&lab_memory_work, kind, TURNS);
        CHECK_BECAUSE(found, all, all * 4, "this family counts micro-operations, or speculation");
        return;
    }
    for (unsigned i = 0; i < sizeof works / sizeof *works; i++) {
        uint64_t n = works[i] == &lab_exits_work ? 10 : TURNS + i;
        uint64_t found = run(ctr, works[i], n);
        LAB_CHECK_COUNT(found, lab_expected(works[i], kind, n));
        LAB_CHECK_COUNT(run(ctr, works[i], 1), lab_expected(works[i], kind, 1));
    }
}

static void in_range(unsigned ctr)
{
    for (unsigned i = 0; i < WARM; i++)
        run(ctr, &lab_loop_work, TURNS);
    uint64_t small = run(ctr, &lab_loop_work, TURNS), large = run(ctr, &lab_loop_work, 20 * TURNS);
    CHECK_BECAUSE(small, TURNS / 16, TURNS * 10000, "a taken branch a cycle; a clock 16 times slower than the core's");
    CHECK_BECAUSE(large, small, small * 400, "twenty times the work");
}

static void cache(unsigned ctr)
{
    static uint8_t line[64];
    pmu_program(ctr, pmu_select(wanted, PMU_KERNEL), 0);
    pmu_start(PMU_BIT(ctr));
    for (unsigned i = 0; i < 100; i++)
        asm volatile("clflush %0\nmfence\nmov %0,%%al\nmfence" : "+m"(line) : : "rax", "memory");
    pmu_stop(PMU_BIT(ctr));
    CHECK_BECAUSE(pmu_read(ctr), 1, 100000, "100 loads of a line that CLFLUSH has thrown out");
}

static void mispredicts(unsigned ctr)
{
    uint32_t random = 1;
    pmu_program(ctr, pmu_select(wanted, PMU_KERNEL), 0);
    pmu_start(PMU_BIT(ctr));
    for (unsigned i = 0; i < RANDOM_BRANCHES; i++) {
        random = random * 1664525 + 1013904223;
        asm volatile("test %0,%0\njs 1f\nnop\n1:" : : "r"(random) : "cc");
    }
    pmu_stop(PMU_BIT(ctr));
    CHECK_BECAUSE(pmu_read(ctr), 1, 2 * RANDOM_BRANCHES, "random branches cannot all be foreseen; the loop's can be missed");
}

static void event_body(unsigned ctr)
{
    static const enum lab_kind kind_of[PMU_EVENT_COUNT] = {
        [PMU_BRANCHES] = LAB_BRANCHES, [PMU_LOADS] = LAB_LOADS, [PMU_STORES] = LAB_STORES
    };
    switch (wanted) {
    case PMU_INSTRUCTIONS:
    case PMU_BRANCHES:
    case PMU_LOADS:
    case PMU_STORES:
        exact(ctr, kind_of[wanted]);
        break;
    case PMU_LLC_REFERENCES:
    case PMU_LLC_MISSES:
        cache(ctr);
        break;
    case PMU_BRANCH_MISSES:
        mispredicts(ctr);
        break;
    default:
        in_range(ctr);
    }
}

static void count_event(unsigned ctr, enum pmu_event event)
{
    bool is_there = pmu_caps.reported >> ctr & 1;
    wanted = event;
    if (is_there && pmu_caps.counters && !(pmu_counters_for(event) >> ctr & 1))
        SKIP("the processor does not count the event there");
    lab_run(event_body, ctr);
}

#define EVENT(group, counter, number, event, what)                                             \
    TEST(group, counter, what) { count_event(number, event); }
#define INSTRUCTIONS(name, ctr)                                                                \
    EVENT(pmu_instructions, name, ctr, PMU_INSTRUCTIONS,                                       \
          "retired instructions of four kinds of code, exactly [VP-49 VP-52 VP-58 VP-62 C-2a.5 C-2a.6 C-2e]")
#define CYCLES(name, ctr)                                                                      \
    EVENT(pmu_cycles, name, ctr, PMU_CYCLES, "core cycles, in range [VP-55 VP-58 C-2a.5 C-2a.6 C-2e]")
#define BUS(name, ctr)                                                                         \
    EVENT(pmu_reference_cycles, name, ctr, PMU_BUS_CYCLES, "cycles at constant rate [VP-56 C-2a.5 C-2e]")
#define REFERENCES(name, ctr)                                                                  \
    EVENT(pmu_cache_references, name, ctr, PMU_LLC_REFERENCES, "last level cache references [VP-57 C-2a.5 C-2e]")
#define MISSES(name, ctr)                                                                      \
    EVENT(pmu_cache_misses, name, ctr, PMU_LLC_MISSES, "last level cache misses after CLFLUSH [VP-57 C-2a.5 C-2e]")
#define BRANCHES(name, ctr)                                                                    \
    EVENT(pmu_branches, name, ctr, PMU_BRANCHES, "retired branches of all kinds, exactly [VP-53 C-2a.5 C-2e]")
#define MISPREDICTS(name, ctr)                                                                 \
    EVENT(pmu_mispredicts, name, ctr, PMU_BRANCH_MISSES, "mispredicted branches, in range [VP-54 C-2a.5]")
#define LOADS(name, ctr) EVENT(pmu_loads, name, ctr, PMU_LOADS, "retired loads, exactly [C-2e]")
#define STORES(name, ctr) EVENT(pmu_stores, name, ctr, PMU_STORES, "retired stores, exactly [C-2e]")

LAB_EACH_GP(INSTRUCTIONS)
LAB_EACH_GP(CYCLES)
LAB_EACH_GP(BUS)
LAB_EACH_GP(REFERENCES)
LAB_EACH_GP(MISSES)
LAB_EACH_GP(BRANCHES)
LAB_EACH_GP(MISPREDICTS)
LAB_EACH_GP(LOADS)
LAB_EACH_GP(STORES)
INSTRUCTIONS(fixed0, 32)
CYCLES(fixed1, 33)
EVENT(pmu_reference_cycles, fixed2, 34, PMU_REF_CYCLES, "cycles at the TSC's rate [VP-58 C-2a.6 C-2e]")
EVENT(pmu_slots, fixed3, 35, PMU_SLOTS, "issue slots [C-2e]")

/* Every counter at once, started and stopped by one WRMSR where there is global control: alike ones agree. */
static void all_at_once(unsigned unused)
{
    (void)unused;
    struct pmu_gate gate = { 0 };
    for (uint64_t rest = pmu_caps.counters; rest; rest &= rest - 1) {
        unsigned ctr = (unsigned)__builtin_ctzll(rest);
        pmu_program(ctr, lab_select(ctr, PMU_KERNEL), 0);
    }
    if (pmu_caps.msr.global_control) {
        gate = (struct pmu_gate){ pmu_caps.msr.global_control, pmu_caps.counters, 0 };
        lab_measure(&gate, lab_loop, TURNS);
    } else {
        pmu_start(pmu_caps.counters);
        lab_loop(TURNS);
        pmu_stop(pmu_caps.counters);
    }
    for (uint64_t rest = pmu_caps.counters; rest; rest &= rest - 1) {
        unsigned ctr = (unsigned)__builtin_ctzll(rest);
        enum pmu_event event = lab_event(ctr);
        if (event == PMU_INSTRUCTIONS && gate.msr)
            LAB_CHECK_COUNT(pmu_read(ctr), lab_expected(&lab_loop_work, LAB_INSTRUCTIONS, TURNS));
        else if (event != PMU_EVENT_COUNT)
            CHECK_BECAUSE(pmu_read(ctr), TURNS / 16, TURNS * 10000, "cycles, or started one after another");
    }
}

TEST(pmu_together, all, "every counter counts at the same time, each by itself [VP-59 C-2a.8]")
{
    lab_run(all_at_once, LAB_ANY);
}

/* Each counter with each other one: the second's start does not disturb the first. */
static void pairs(unsigned ctr)
{
    for (uint64_t rest = pmu_caps.counters & ~PMU_BIT(ctr); rest; rest &= rest - 1) {
        unsigned other = (unsigned)__builtin_ctzll(rest);
        pmu_program(other, lab_select(other, PMU_KERNEL), 7);
        uint64_t alone = lab_count(ctr, lab_select(ctr, PMU_KERNEL), 0, lab_loop, TURNS);
        CHECK_EQ(pmu_read(other), 7);
        if (lab_event(ctr) == PMU_INSTRUCTIONS)
            LAB_CHECK_COUNT(alone, lab_expected(&lab_loop_work, LAB_INSTRUCTIONS, TURNS));
        CHECK(alone != 0 || lab_event(ctr) == PMU_EVENT_COUNT);
        pmu_clear(PMU_BIT(other));
    }
}

#define PAIRS(name, ctr) LAB_TEST(pmu_together, name, ctr, pairs, "runs beside every other counter that stands still [VP-59]")
LAB_EACH(PAIRS)
