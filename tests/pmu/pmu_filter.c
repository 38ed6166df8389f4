/* SPDX-License-Identifier: MIT */
/* Conformance: what a select lets through: privilege, threshold, inversion, edges; and writes to a
 * running counter. */
#include "tests/harness/lab.h"

#define ITERATIONS 200u
#define ENDS 4u /* cycles */
#define EDGE (1u << 18)
#define INVERT (1u << 23)
#define THRESHOLD(n) ((uint64_t)(n) << 24)

static uint64_t expected_count(void)
{
    return lab_expected(&lab_loop_work, LAB_INSTRUCTIONS, ITERATIONS);
}

/* Here in ring 0; pmu_rings has the other ring. */
LAB_EACH(pmu_filter, each_counter,
         "in ring 0 counts with OS, not with USR alone, not with neither [VP-51]")
{
    SKIP_WITHOUT_EVENT(ctr);
    uint64_t kernel = lab_count(ctr, lab_select(ctr, PMU_KERNEL), 0, lab_loop, ITERATIONS);
    uint64_t both = lab_count(ctr, lab_select(ctr, PMU_KERNEL | PMU_USER), 0, lab_loop, ITERATIONS);
    CHECK_EQ(lab_count(ctr, lab_select(ctr, PMU_USER), 0, lab_loop, ITERATIONS), 0);
    CHECK_EQ(lab_count(ctr, lab_select(ctr, 0), 0, lab_loop, ITERATIONS), 0);
    if (lab_event(ctr) == PMU_INSTRUCTIONS) {
        LAB_CHECK_COUNT(kernel, expected_count());
        LAB_CHECK_COUNT(both, expected_count());
    } else {
        CHECK_BECAUSE(kernel, ITERATIONS / 16, ITERATIONS * 10000, "cycles");
        CHECK_BECAUSE(both, ITERATIONS / 16, ITERATIONS * 10000, "cycles");
    }
}

static uint64_t with(unsigned ctr, uint64_t bits)
{
    return lab_count(ctr, lab_select(ctr, PMU_KERNEL) | bits, 0, lab_loop, ITERATIONS);
}

/* The enabling WRMSR, where a hypervisor counts what it emulates and looks at no threshold: KVM's
 * rule since Linux 5.17. */
static uint64_t emulated_counts(void)
{
    const struct pmu_measured *m = &pmu_here()->measured;
    return m->exit_at_255.low > 0 ? (uint64_t)m->enabling.low : 0;
}

/* A threshold of n counts the cycles with n or more: fewer the higher n is, none that no processor
 * reaches. */
LAB_EACH(pmu_cmask, each_gp, "a higher threshold counts less, 255 nothing [VP-60]")
{
    uint64_t plain = with(ctr, 0), one = with(ctr, THRESHOLD(1)), two = with(ctr, THRESHOLD(2));
    LAB_CHECK_COUNT(plain, expected_count());
    CHECK_BECAUSE(one, expected_count() / 16, expected_count(),
                  "cycles in which something retires, 16 at most in each");
    CHECK(two < plain);
    CHECK(two <= one + one / 8);
    CHECK_EQ(with(ctr, THRESHOLD(255)), emulated_counts());
    CHECK_EQ(with(ctr, THRESHOLD(255) | EDGE), emulated_counts());
}

/* Inverted, a threshold counts the other cycles: with one that is never reached, all of them. */
LAB_EACH(pmu_inverted, each_gp, "the inverse of a threshold never reached is every cycle [S-2.3]")
{
    uint64_t cycles = lab_count(ctr, pmu_select(pmu_here(), PMU_CYCLES, PMU_KERNEL), 0, lab_loop,
                                10 * ITERATIONS);
    uint64_t others = lab_count(ctr, lab_select(ctr, PMU_KERNEL) | THRESHOLD(255) | INVERT, 0,
                                lab_loop, 10 * ITERATIONS);
    CHECK_BECAUSE(cycles, ITERATIONS, ITERATIONS * 100000, "a taken branch a cycle");
    if (!vpmu_present())
        CHECK_BECAUSE(others, cycles / 4, cycles * 4,
                      "every cycle, and two runs of one loop take about the same time");
    else
        CHECK_BECAUSE(others, cycles - ENDS, cycles + ENDS,
                      "the same time each run but at its ends: the WRMSRs, a cycle that has begun");
}

/* Edges: how often the condition begins to hold; once at least where it holds at all. */
LAB_EACH(pmu_edge, each_gp, "edges are fewer than cycles, and there is one [S-2.3]")
{
    uint64_t cycles = with(ctr, THRESHOLD(1)), begins = with(ctr, THRESHOLD(1) | EDGE);
    CHECK_BECAUSE(begins, 1, cycles, "at least the first, at most every cycle");
    if (!(pmu_counters_for(pmu_here(), PMU_BRANCHES) >> ctr & 1))
        return;
    uint64_t select = pmu_select(pmu_here(), PMU_BRANCHES, PMU_KERNEL) | THRESHOLD(1) | EDGE;
    unsigned iterations =
        test_long() ? ITERATIONS : ITERATIONS / 10; /* each of their instructions is decoded */
    uint64_t runs = lab_count(ctr, select, 0, lab_branches, iterations);
    /* CALL, RET, JMP follow each other, and JNZ before them: with JZ two runs of branches an
     * iteration, and the first. */
    uint64_t by_instructions = 2 * iterations + 1;
    bool by_one = vpmu_present() && pmu_here()->measured.cycles.low > 900; /* of 1,000 */
    CHECK_BECAUSE(runs, by_one ? by_instructions : 1, by_instructions,
                  "at most as many as if a cycle were one instruction");
}

/* A write while the counter runs acts at once and leaves it running; on Intel by either address. */
LAB_EACH(pmu_write_running, each_counting_instructions,
         "a write to the running counter takes effect at once [VP-39 VP-74]")
{
    SKIP_WITHOUT_COUNT_OF(PMU_INSTRUCTIONS, ctr);
    static const uint32_t values[] = { 0, 1, 1000, 0x7fffff00 };
    uint64_t select = lab_select(ctr, PMU_KERNEL);
    for (unsigned i = 0; i < ARRAY_SIZE(values); i++) {
        lab_write_msr = pmu_write_msr(pmu_here(), ctr);
        LAB_CHECK_COUNT(lab_count(ctr, select, 0, lab_write_inside, values[i]),
                        values[i] + LAB_INSIDE_AFTER + 1 + LAB_AFTER);
        if (lab_is_intel() && !lab_is_fixed(ctr)) {
            lab_write_msr = pmu_counter_msr(pmu_here(), ctr);
            LAB_CHECK_COUNT(lab_count(ctr, select, 0, lab_write_inside, values[i]),
                            values[i] + LAB_INSIDE_AFTER + 1 + LAB_AFTER);
        }
    }
    /* To all ones: the next event overflows. */
    lab_write_msr = pmu_write_msr(pmu_here(), ctr);
    LAB_CHECK_COUNT(lab_count(ctr, select, 0, lab_write_inside, pmu_mask(pmu_here(), ctr)),
                    LAB_INSIDE_AFTER + LAB_AFTER);
    if (pmu_here()->msr.global_status)
        CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_status), PMU_BIT(ctr));
}

/* The event select changed while it runs. */
LAB_EACH(pmu_select_running, each_gp,
         "a select of 0 stops it, the old select starts it again [C-2a.11]")
{
    SKIP_WITHOUT_COUNT_OF(PMU_INSTRUCTIONS, ctr);
    uint64_t select = lab_select(ctr, PMU_KERNEL);
    pmu_program(ctr, select, 0);
    pmu_start(PMU_BIT(ctr));
    lab_loop(ITERATIONS);
    lab_wrmsr(pmu_select_msr(pmu_here(), ctr), 0);
    uint64_t first = pmu_read(ctr);
    lab_loop(ITERATIONS);
    CHECK_EQ(pmu_read(ctr), first);
    lab_wrmsr(pmu_select_msr(pmu_here(), ctr), select | PMU_ENABLE);
    lab_loop(ITERATIONS);
    pmu_stop(PMU_BIT(ctr));
    CHECK_BECAUSE(first, 2 * ITERATIONS, 20 * ITERATIONS, "the loop and what is around it");
    CHECK_BECAUSE(pmu_read(ctr), first + 2 * ITERATIONS, first + 20 * ITERATIONS,
                  "the loop a second time");
}

/* An event that no processor has: accepted, and counts nothing. */
LAB_EACH(pmu_unknown_event, each_gp, "an unknown event counts 0 [VP-61]")
{
    CHECK_BECAUSE(with(ctr, 0), expected_count(), expected_count() * 9 / 8, "it works otherwise");
    uint64_t unknown = 0xff | 0xeeu << 8 | PMU_KERNEL;
    uint32_t msr = pmu_select_msr(pmu_here(), ctr);
    REQUIRE(wrmsr_fault(msr, unknown) == 0);
    CHECK_EQ(lab_rdmsr(msr), unknown);
    pmu_program(ctr, unknown, 0);
    struct pmu_gate gate = pmu_gate(ctr);
    lab_measure(&gate, lab_loop, ITERATIONS);
    CHECK_EQ(pmu_read(ctr), 0);
}
