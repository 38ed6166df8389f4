/* SPDX-License-Identifier: MIT */
/* What a context switch does for profiling if neither thread is profiled. */
#include "tests/harness/lab.h"

#define SWITCHES 200
#define STEPPED 10

extern char switch_stacks[], switch_profiling_end[]; /* switch.asm */

static void yield_thread_often(void *)
{
    for (unsigned i = 0; i < SWITCHES; i++)
        sched_switch(WrYieldExecution);
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
