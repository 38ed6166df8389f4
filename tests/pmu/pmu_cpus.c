/* SPDX-License-Identifier: MIT */
/* Conformance: each CPU's PMU is its own: registers and counts. */
#include "tests/harness/lab.h"

#define ITERATIONS 100u

static unsigned the_ctr;
static struct cpu_set members; /* CPUs that count instructions on it */
static struct seen {
    uint64_t select, value;
} seen[MAX_CPUS];

static void write_own(void *)
{
    pmu_program(the_ctr, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_USER), 1000 + cpu_number());
}

static void look_at_counter(void *)
{
    unsigned cpu = cpu_number();
    seen[cpu].select = rdmsr(pmu_select_msr(pmu_here(), the_ctr));
    seen[cpu].value = rdmsr(pmu_counter_msr(pmu_here(), the_ctr));
}

/* Claims the counter where it is; skips where that is no test. */
static bool claim_counter(unsigned ctr, HANDLE *handle)
{
    if (test_skip_without_pmu() || test_skip_below_cpus(2))
        return false;
    members = cpu_set_none();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        if (pmu_counters_for(pmu_of(cpu), PMU_INSTRUCTIONS) >> ctr & 1)
            cpu_set_add(&members, cpu);
    unsigned first = cpu_set_next(&members, 0);
    if (cpu_set_next(&members, first + 1) >= MAX_CPUS) {
        test_skip(!cpu_set_empty(members)
                      ? "needs 2 CPUs with this counter"
                      : "no such counter, or does not count instructions on it");
        return false;
    }
    the_ctr = ctr;
    return CHECK_OK(hal_counters_claim("isolation", members, PMU_BIT(ctr), NULL, handle));
}

TEST_EACH(pmu_counts_alone, each_gp,
          "counts what its CPU executes, the others' stand still [VP-89]")
{
    HANDLE handle;
    if (!claim_counter(ctr, &handle))
        return;
    for_each_cpu(cpu, &members) {
        smp_call(members, write_own, NULL);
        test_run_on(cpu);
        KIRQL old = irql_raise(IPI_LEVEL);
        uint64_t found = lab_count(ctr, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL), 0,
                                   lab_loop, ITERATIONS);
        irql_lower(old);
        LAB_CHECK_COUNT(found, lab_expected(&lab_loop_work, LAB_INSTRUCTIONS, ITERATIONS));
        smp_call(members, look_at_counter, NULL);
        for_each_cpu(other, &members) {
            CHECK_EQ(seen[other].value, other == cpu ? found : 1000 + other);
            CHECK_EQ(!!(seen[other].select & PMU_KERNEL), other == cpu);
        }
    }
    test_run_anywhere();
    CHECK_OK(HalFreeHardwareCounters(handle));
}
