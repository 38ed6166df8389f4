/* SPDX-License-Identifier: MIT */
/* The PMU accesses of a context switch, counted by the virtual PMU. */
#include "tests/harness/lab.h"

#define SWITCHES 200
#define STEPPED 10

extern char switch_stacks[], switch_profiling_end[]; /* switch.asm */

static void yield_thread_often(void *)
{
    for (unsigned i = 0; i < SWITCHES; i++)
        sched_switch(WrYieldExecution);
}

/* The PMU accesses while two kernel threads on this CPU switch to each other. */
static struct vpmu_accesses accesses_of_switches(void)
{
    unsigned cpu = cpu_number();
    struct vpmu_accesses before = vpmu_accesses();
    struct thread *other = thread_create("partner", yield_thread_often, NULL, cpu_set_one(cpu));
    if (CHECK(other != NULL)) {
        yield_thread_often(NULL);
        team_end(other);
    }
    struct vpmu_accesses after = vpmu_accesses();
    return (struct vpmu_accesses){ after.rdpmc - before.rdpmc, after.rdmsr - before.rdmsr,
                                   after.wrmsr - before.wrmsr,
                                   after.interrupts - before.interrupts };
}

TEST(tp_switch, unprofiled_is_free,
     "switches between threads without profiling execute no RDPMC and touch no PMU MSR, on every "
     "CPU, counters running")
{
    unsigned ctr;
    SKIP_WITHOUT_PMU();
    SKIP_WITHOUT_VPMU();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    for (unsigned cpu = 0; test_run_on_each(cpu); cpu++) {
        uint64_t control = vpmu_accesses().rdpmc;
        rdpmc(pmu_rdpmc_index(ctr));
        CHECK_EQ(vpmu_accesses().rdpmc, control + 1); /* so it does count them */
        struct vpmu_accesses found = accesses_of_switches();
        CHECK_EQ(found.rdpmc, 0);
        CHECK_EQ(found.rdmsr, 0);
        CHECK_EQ(found.wrmsr, 0);
        CHECK_EQ(found.interrupts, 0);
    }
    counting_stop();
}

static void switch_stepped(uint64_t) { sched_switch(WrYieldExecution); }

TEST(tp_switch, unprofiled_instructions,
     "a switch between unprofiled threads executes 1 to 4 instructions for profiling, by single "
     "steps between two labels")
{
    for (unsigned cpu = 0; test_run_on_each(cpu); cpu++) {
        struct thread *other = thread_create("partner", yield_thread_often, NULL, cpu_set_one(cpu));
        REQUIRE(other != NULL);
        lab_catch();
        lab_caught.watch[0] = (uint64_t)switch_stacks;
        lab_caught.watch[1] = (uint64_t)switch_profiling_end;
        for (unsigned i = 0; i < STEPPED; i++)
            lab_steps(switch_stepped, 0);
        lab_release();
        CHECK(lab_caught.steps >= STEPPED * 50); /* a switch is more than this */
        CHECK_RANGE(lab_caught.watched, STEPPED, STEPPED * 4);
        team_end(other);
        if (cpu == 0)
            test_note("a switch between unprofiled threads: %u instructions for profiling",
                      lab_caught.watched / STEPPED);
    }
}
