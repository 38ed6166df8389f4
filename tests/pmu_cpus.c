/* SPDX-License-Identifier: MIT */
/* Conformance: each CPU's PMU is its own: registers, counts, status and interrupts. */
#include "hal/hal.h"
#include "kernel/cpu.h"
#include "kernel/irql.h"
#include "kernel/smp.h"
#include "tests/lab.h"

#define TURNS 100u

struct seen {
    uint64_t select, value, status;
    uint32_t lvt;
};

static unsigned the_ctr;
static struct seen seen[MAX_CPUS];
static uint32_t overflows[MAX_CPUS]; /* atomic */

static void write_own(void *unused)
{
    (void)unused;
    unsigned cpu = cpu_number();
    pmu_program(the_ctr, pmu_select(PMU_INSTRUCTIONS, cpu & 1 ? PMU_KERNEL : PMU_USER), 1000 + cpu);
}

static void look(void *unused)
{
    (void)unused;
    unsigned cpu = cpu_number();
    seen[cpu].select = rdmsr(pmu_select_msr(the_ctr));
    seen[cpu].value = rdmsr(pmu_counter_msr(the_ctr));
    seen[cpu].status = pmu_caps.msr.global_status ? rdmsr(pmu_caps.msr.global_status) : 0;
}

static void clear(void *unused)
{
    (void)unused;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_clear(PMU_BIT(the_ctr));
    pmu_take_overflow();
    irql_lower(old);
}

static void count_overflow(ULONGLONG OverflowBits, HANDLE OwningHandle)
{
    (void)OwningHandle;
    if (OverflowBits == PMU_BIT(the_ctr))
        __atomic_fetch_add(&overflows[cpu_number()], 1, __ATOMIC_RELAXED);
}

/* Claims the counter everywhere; skips where that is no test. */
static bool begin(unsigned ctr, HANDLE *handle)
{
    if (test_skip_without_pmu() || test_skip_below_cpus(2))
        return false;
    if (!(pmu_caps.reported >> ctr & 1) || !(pmu_counters_for(PMU_INSTRUCTIONS) >> ctr & 1)) {
        test_skip("no such counter, or does not count instructions on it");
        return false;
    }
    the_ctr = ctr;
    return CHECK_STATUS(hal_counters_claim("isolation", SMP_ALL, PMU_BIT(ctr), count_overflow, handle),
                        STATUS_SUCCESS);
}

static void end(HANDLE handle)
{
    smp_call(SMP_ALL, clear, NULL);
    CHECK_STATUS(HalFreeHardwareCounters(handle), STATUS_SUCCESS);
}

static void own_registers(unsigned ctr)
{
    HANDLE handle;
    if (!begin(ctr, &handle))
        return;
    smp_call(SMP_ALL, write_own, NULL);
    smp_call(SMP_ALL, look, NULL);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        CHECK_EQ(seen[cpu].value, 1000 + cpu);
        CHECK_EQ(seen[cpu].select != seen[(cpu + 1) % 2].select, cpu % 2 != (cpu + 1) % 2);
    }
    end(handle);
}

/* It counts on one CPU; the others', programmed alike but not started, stand still. */
static void counts_alone(unsigned ctr)
{
    HANDLE handle;
    if (!begin(ctr, &handle))
        return;
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        smp_call(SMP_ALL, write_own, NULL);
        test_run_on(cpu);
        KIRQL old = irql_raise(IPI_LEVEL);
        uint64_t found = lab_count(ctr, pmu_select(PMU_INSTRUCTIONS, PMU_KERNEL), 0, lab_loop, TURNS);
        irql_lower(old);
        LAB_CHECK_COUNT(found, lab_expected(&lab_loop_work, LAB_INSTRUCTIONS, TURNS));
        smp_call(SMP_ALL, look, NULL);
        for (unsigned other = 0; other < cpu_count; other++)
            CHECK_EQ(seen[other].value, other == cpu ? found : 1000 + other);
    }
    test_run_anywhere();
    end(handle);
}

/* The overflow of one CPU interrupts that CPU only, and leaves the others' status alone. */
static void overflows_alone(unsigned ctr)
{
    HANDLE handle;
    if (!begin(ctr, &handle))
        return;
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        uint32_t before[MAX_CPUS] = { 0 };
        for (unsigned i = 0; i < cpu_count; i++)
            before[i] = __atomic_load_n(&overflows[i], __ATOMIC_RELAXED);
        test_run_on(cpu);
        KIRQL old = irql_raise(IPI_LEVEL);
        lab_count(ctr, pmu_select(PMU_INSTRUCTIONS, PMU_KERNEL | PMU_INTERRUPT), -UINT64_C(50) & pmu_mask(ctr),
                  lab_loop, 20 * TURNS);
        for (unsigned i = 0; i < 1000 && overflows[cpu] == before[cpu]; i++)
            pause();
        irql_lower(old);
        smp_call(SMP_ALL, look, NULL);
        for (unsigned i = 0; i < cpu_count; i++) {
            CHECK_EQ(overflows[i], before[i] + (i == cpu));
            CHECK_EQ(seen[i].status, 0);
        }
    }
    test_run_anywhere();
    end(handle);
}

#define OWN(name, ctr) TEST(pmu_own_registers, name, "every CPU has its own registers of it [VP-89 C-1.4]") { own_registers(ctr); }
#define ALONE(name, ctr) \
    TEST(pmu_counts_alone, name, "counts what its CPU executes, the others' stand still [VP-89 C-1.4]") { counts_alone(ctr); }
#define OVERFLOWS(name, ctr) \
    TEST(pmu_overflows_alone, name, "its overflow reaches its own CPU only [VP-89 C-1.4]") { overflows_alone(ctr); }

LAB_EACH_GP(OWN)
LAB_EACH_GP(ALONE)
LAB_EACH_GP(OVERFLOWS)
