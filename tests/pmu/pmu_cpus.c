/* SPDX-License-Identifier: MIT */
/* Conformance: each CPU's PMU is its own: registers, counts, status and interrupts. */
#include "tests/harness/lab.h"

#define ITERATIONS 100u

struct seen {
    uint64_t select, value, status;
};

static unsigned the_ctr;
static struct cpu_set members; /* CPUs that count instructions on it */
static struct seen seen[MAX_CPUS];
static uint32_t overflows[MAX_CPUS];  /* atomic */
static uint32_t interrupts[MAX_CPUS]; /* atomic; with an overflow or without */

static bool is_member(unsigned cpu) { return cpu_set_has(&members, cpu); }

static void write_own(void *)
{
    pmu_program(the_ctr, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_USER), 1000 + cpu_number());
}

static void look_at_counter(void *)
{
    unsigned cpu = cpu_number();
    seen[cpu].select = rdmsr(pmu_select_msr(pmu_here(), the_ctr));
    seen[cpu].value = rdmsr(pmu_counter_msr(pmu_here(), the_ctr));
    seen[cpu].status = pmu_here()->msr.global_status ? rdmsr(pmu_here()->msr.global_status) : 0;
}

static void clear_counter(void *)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_clear(PMU_BIT(the_ctr));
    pmu_take_overflow();
    irql_lower(old);
}

static void count_overflow(ULONGLONG OverflowBits, HANDLE)
{
    if (OverflowBits == PMU_BIT(the_ctr))
        __atomic_fetch_add(&overflows[cpu_number()], 1, __ATOMIC_RELAXED);
}

static void count_interrupt(PKTRAP_FRAME)
{
    __atomic_fetch_add(&interrupts[cpu_number()], 1, __ATOMIC_RELAXED);
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
    return CHECK_OK(hal_counters_claim("isolation", members, PMU_BIT(ctr), count_overflow, handle));
}

static void release_claim(HANDLE handle)
{
    smp_call(members, clear_counter, NULL);
    CHECK_STATUS(HalFreeHardwareCounters(handle), STATUS_SUCCESS);
}

/* It counts on one CPU; the others', programmed alike but not started, stand still. */
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
    release_claim(handle);
}

/* The overflow of one CPU interrupts that CPU only, and leaves the others' status alone. */
TEST_EACH(pmu_overflows_alone, each_gp, "its overflow reaches its own CPU only [VP-89]")
{
    HANDLE handle;
    if (!claim_counter(ctr, &handle))
        return;
    CHECK_STATUS(hal_pmi_set_driver(count_interrupt),
                 hal_pmi_is_nmi() ? STATUS_NOT_SUPPORTED : STATUS_SUCCESS);
    for_each_cpu(cpu, &members) {
        uint32_t before[MAX_CPUS] = { 0 };
        for (unsigned i = 0; i < cpu_count; i++) {
            before[i] = __atomic_load_n(&overflows[i], __ATOMIC_RELAXED);
            __atomic_store_n(&interrupts[i], 0, __ATOMIC_RELAXED);
        }
        test_run_on(cpu);
        KIRQL old = irql_raise(IPI_LEVEL);
        lab_count(ctr, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL | PMU_INTERRUPT),
                  -UINT64_C(50) & pmu_mask(pmu_here(), ctr), lab_loop, 20 * ITERATIONS);
        for (unsigned i = 0; i < 1000 && overflows[cpu] == before[cpu]; i++)
            pause();
        irql_lower(old);
        smp_call(members, look_at_counter, NULL);
        for (unsigned i = 0; i < cpu_count; i++) {
            CHECK_EQ(overflows[i], before[i] + (i == cpu));
            CHECK_EQ(interrupts[i] != 0, i == cpu && !hal_pmi_is_nmi());
            if (is_member(i))
                CHECK_EQ(seen[i].status, 0);
        }
    }
    test_run_anywhere();
    if (!hal_pmi_is_nmi())
        CHECK_STATUS(hal_pmi_set_driver(NULL), STATUS_SUCCESS);
    release_claim(handle);
}
