/* SPDX-License-Identifier: MIT */
/* Conformance: what a select lets through: privilege, threshold, inversion, edges; and writes to a running counter. */
#include "tests/lab.h"
#include "tests/vpmu.h"

#define TURNS 200u
#define EDGE (1u << 18)
#define INVERT (1u << 23)
#define THRESHOLD(n) ((uint64_t)(n) << 24)

static uint64_t expected(void) { return lab_expected(&lab_loop_work, LAB_INSTRUCTIONS, TURNS); }

/* Here in ring 0; pmu_rings has the other ring. */
static void ring0(unsigned ctr)
{
    if (lab_event(ctr) == PMU_EVENT_COUNT)
        SKIP("no event that must happen on this counter");
    uint64_t kernel = lab_count(ctr, lab_select(ctr, PMU_KERNEL), 0, lab_loop, TURNS);
    uint64_t both = lab_count(ctr, lab_select(ctr, PMU_KERNEL | PMU_USER), 0, lab_loop, TURNS);
    CHECK_EQ(lab_count(ctr, lab_select(ctr, PMU_USER), 0, lab_loop, TURNS), 0);
    CHECK_EQ(lab_count(ctr, lab_select(ctr, 0), 0, lab_loop, TURNS), 0);
    if (lab_event(ctr) == PMU_INSTRUCTIONS) {
        LAB_CHECK_COUNT(kernel, expected());
        LAB_CHECK_COUNT(both, expected());
    } else {
        CHECK_BECAUSE(kernel, TURNS / 16, TURNS * 10000, "cycles");
        CHECK_BECAUSE(both, TURNS / 16, TURNS * 10000, "cycles");
    }
}

static uint64_t with(unsigned ctr, uint64_t bits)
{
    return lab_count(ctr, lab_select(ctr, PMU_KERNEL) | bits, 0, lab_loop, TURNS);
}

/* A threshold of n counts the cycles with n or more: fewer the higher n is, none that no processor reaches. */
static void threshold(unsigned ctr)
{
    uint64_t plain = with(ctr, 0), one = with(ctr, THRESHOLD(1)), two = with(ctr, THRESHOLD(2));
    LAB_CHECK_COUNT(plain, expected());
    CHECK_BECAUSE(one, expected() / 16, expected(), "cycles in which something retires, 16 at most in each");
    CHECK(two < plain);
    CHECK(two <= one + one / 8);
    CHECK_EQ(with(ctr, THRESHOLD(255)), 0);
    CHECK_EQ(with(ctr, THRESHOLD(255) | EDGE), 0);
}

/* Inverted, a threshold counts the other cycles: with one that is never reached, all of them. */
static void inverted(unsigned ctr)
{
    uint64_t cycles = lab_count(ctr, pmu_select(PMU_CYCLES, PMU_KERNEL), 0, lab_loop, 10 * TURNS);
    uint64_t others = lab_count(ctr, lab_select(ctr, PMU_KERNEL) | THRESHOLD(255) | INVERT, 0, lab_loop, 10 * TURNS);
    CHECK_BECAUSE(cycles, TURNS, TURNS * 100000, "a taken branch a cycle");
    CHECK_BECAUSE(others, cycles / 4, cycles * 4, "every cycle, and two runs of one loop take about the same time");
}

/* Edges: how often the condition begins to hold; once at least where it holds at all. */
static void edges(unsigned ctr)
{
    uint64_t cycles = with(ctr, THRESHOLD(1)), begins = with(ctr, THRESHOLD(1) | EDGE);
    CHECK_BECAUSE(begins, 1, cycles, "at least the first, at most every cycle");
    if (!(pmu_counters_for(PMU_BRANCHES) >> ctr & 1))
        return;
    uint64_t select = pmu_select(PMU_BRANCHES, PMU_KERNEL) | THRESHOLD(1) | EDGE;
    uint64_t runs = lab_count(ctr, select, 0, lab_branches, TURNS);
    /* CALL, RET, JMP follow each other, and JNZ before them: with JZ two runs of branches a turn, and the first. */
    uint64_t by_instructions = 2 * TURNS + 1;
    CHECK_BECAUSE(runs, vpmu_present() ? by_instructions : 1, by_instructions, "at most as many as if a cycle were one instruction");
}

/* A write while the counter runs acts at once and leaves it running; on Intel by either address. */
static void write_running(unsigned ctr)
{
    if (!(pmu_counters_for(PMU_INSTRUCTIONS) >> ctr & 1))
        SKIP("the processor does not count the event there");
    static const uint32_t values[] = { 0, 1, 1000, 0x7fffff00 };
    uint64_t select = lab_select(ctr, PMU_KERNEL);
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
        lab_write_msr = pmu_write_msr(ctr);
        LAB_CHECK_COUNT(lab_count(ctr, select, 0, lab_write_inside, values[i]),
                        values[i] + LAB_INSIDE_AFTER + 1 + LAB_AFTER);
        if (lab_is_intel() && !lab_is_fixed(ctr)) {
            lab_write_msr = pmu_counter_msr(ctr);
            LAB_CHECK_COUNT(lab_count(ctr, select, 0, lab_write_inside, values[i]),
                            values[i] + LAB_INSIDE_AFTER + 1 + LAB_AFTER);
        }
    }
    /* To all ones: the next event overflows. */
    lab_write_msr = pmu_write_msr(ctr);
    LAB_CHECK_COUNT(lab_count(ctr, select, 0, lab_write_inside, pmu_mask(ctr)), LAB_INSIDE_AFTER + LAB_AFTER);
    if (pmu_caps.msr.global_status)
        CHECK_EQ(lab_rdmsr(pmu_caps.msr.global_status), PMU_BIT(ctr));
}

/* The event select changed while it runs. */
static void select_running(unsigned ctr)
{
    if (!(pmu_counters_for(PMU_INSTRUCTIONS) >> ctr & 1) || lab_is_fixed(ctr))
        SKIP("the processor does not count the event there");
    uint64_t select = lab_select(ctr, PMU_KERNEL);
    pmu_program(ctr, select, 0);
    pmu_start(PMU_BIT(ctr));
    lab_loop(TURNS);
    lab_wrmsr(pmu_select_msr(ctr), 0);
    uint64_t first = pmu_read(ctr);
    lab_loop(TURNS);
    CHECK_EQ(pmu_read(ctr), first);
    lab_wrmsr(pmu_select_msr(ctr), select | PMU_ENABLE);
    lab_loop(TURNS);
    pmu_stop(PMU_BIT(ctr));
    CHECK_BECAUSE(first, 2 * TURNS, 20 * TURNS, "the loop and what is around it");
    CHECK_BECAUSE(pmu_read(ctr), first + 2 * TURNS, first + 20 * TURNS, "the loop a second time");
}

/* An event that no processor has: accepted, and counts nothing. */
static void unknown_event(unsigned ctr)
{
    CHECK_BECAUSE(with(ctr, 0), expected(), expected() * 9 / 8, "it works otherwise");
    pmu_program(ctr, 0xff | 0xeeu << 8 | PMU_KERNEL, 0);
    struct pmu_gate gate = pmu_gate(ctr);
    lab_measure(&gate, lab_loop, TURNS);
    CHECK_EQ(pmu_read(ctr), 0);
}

#define RING0(name, ctr) \
    LAB_TEST(pmu_filter, name, ctr, ring0, "in ring 0 counts with OS, not with USR alone, not with neither [VP-51]")
#define CMASK(name, ctr) LAB_TEST(pmu_cmask, name, ctr, threshold, "a higher threshold counts less, 255 nothing [VP-60 C-2a.10]")
#define INV(name, ctr) LAB_TEST(pmu_inverted, name, ctr, inverted, "the inverse of a threshold never reached is every cycle [S-2.3]")
#define EDGES(name, ctr) LAB_TEST(pmu_edge, name, ctr, edges, "edges are fewer than cycles, and there is one [S-2.3]")
#define RUNNING(name, ctr) \
    LAB_TEST(pmu_write_running, name, ctr, write_running, "a write to the running counter acts at once [VP-39 VP-74 C-2a.11]")
#define RESELECT(name, ctr) \
    LAB_TEST(pmu_select_running, name, ctr, select_running, "a select of 0 stops it, the old one lets it go on [C-2a.11]")
#define UNKNOWN(name, ctr) LAB_TEST(pmu_unknown_event, name, ctr, unknown_event, "an event that is none counts 0 [VP-61]")

LAB_EACH(RING0)
LAB_EACH_GP(CMASK)
LAB_EACH_GP(INV)
LAB_EACH_GP(EDGES)
LAB_EACH(RUNNING)
LAB_EACH_GP(RESELECT)
LAB_EACH_GP(UNKNOWN)
