/* SPDX-License-Identifier: MIT */
/* Debug registers of threads: what the CPU's lists of branches have to do with it. */
#include "pmu/branches.h"
#include "tests/harness/kernel.h"
#include "tests/harness/peek.h"
#include "tests/harness/vpmu.h"
#include "tests/ring3/debug.h"

#define LAST_BRANCH 0x100u
#define TRACE_BRANCH 0x200u
#define BTF 2u

static void check_walk(uint64_t dr7, uint64_t recorded, bool by_branch)
{
    uint64_t values[4] = { 0 };
    struct process *process = user_process();
    REQUIRE(process != NULL);
    struct thread *thread =
        user_thread("debugged", process, (uint64_t)user_debug_walk, dr7, cpu_set_one(cpu_number()));
    user_wait(thread);
    CHECK(user_read(process, values, (uint64_t)user_values, sizeof values));
    CHECK_EQ(values[0], recorded | (by_branch ? BTF : 0));
    CHECK_EQ(values[1], recorded);
    CHECK_EQ(values[2], recorded);
    if (!by_branch)
        CHECK_EQ(values[3], 0);
    CHECK_EQ(peek(process, &user_reads), !by_branch);
    CHECK_EQ(thread->at_switch, 0); /* with Dr7 the work at switches has ended */
    user_finish(process, thread);
}

TEST(debug_registers, last_branch,
     "with LE a step has the branch that led there, where the CPU has records of any form; without "
     "it and elsewhere none [DR-05 slow]")
{
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        test_run_on(cpu);
        const struct pmu_branches *b = pmu_branches_of(pmu_here());
        check_walk(0, 0, false);
        check_walk(LAST_BRANCH, b->depth || b->pair, false);
    }
    test_run_anywhere();
}

TEST(debug_registers, branch_steps,
     "with GE steps go from branch to branch, where DEBUGCTL keeps the bit for that; elsewhere "
     "from instruction to instruction [DR-06 slow]")
{
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        test_run_on(cpu);
        const struct pmu_branches *b = pmu_branches_of(pmu_here());
        check_walk(TRACE_BRANCH, 0, b->steps_branches);
        check_walk(TRACE_BRANCH | LAST_BRANCH, b->depth || b->pair, b->steps_branches);
        CHECK(b->steps_branches || !vpmu_present());
    }
    test_run_anywhere();
}

TEST(debug_registers, watched,
     "after a step the CPU goes on to record, where it has a list; an exception that is no #DB "
     "shows nothing of it [DR-05 slow]")
{
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        uint64_t values[4] = { 0 };
        const struct pmu_branches *b = pmu_branches_of(pmu_of(cpu));
        bool list = b->depth && b->form != PMU_BRANCHES_OLD; /* which is full of the kernel's */
        struct runner r = start_on(user_debug_watch, LAST_BRANCH, cpu_set_one(cpu));
        user_wait(r.thread);
        CHECK(user_read(r.process, values, (uint64_t)user_values, sizeof values));
        CHECK_EQ(values[0], list);
        CHECK_EQ(values[1], list);
        CHECK_EQ(values[2] | values[3], 0);
        user_finish(r.process, r.thread);
    }
}

/* Where a thread's context has the branch before the last exception. 1: at the thread's own fault;
 * 0: nowhere; else how far from that fault. */
static uint64_t exception_at(unsigned cpu, uint64_t dr7)
{
    uint64_t values[4] = { 0 };
    struct runner r = start_on(user_debug_exception, dr7, cpu_set_one(cpu));
    user_wait(r.thread);
    CHECK(user_read(r.process, values, (uint64_t)user_values, sizeof values));
    CHECK(values[0] != 1 || values[1] == 1);
    CHECK_EQ(!values[0], !values[1]);
    user_finish(r.process, r.thread);
    return values[0];
}

/* Where the kernel's branches are not hidden, an interrupt takes the place, of either ring. */
TEST(debug_registers, last_exception,
     "with LE a thread's context has the branch before its last exception, where DEBUGCTL starts a "
     "list that hides the kernel's; without LE, and with a list of another kind, none [DR-05 slow]")
{
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        const struct pmu_branches *b = pmu_branches_of(pmu_of(cpu));
        CHECK_EQ(exception_at(cpu, 0), 0);
        uint64_t at = exception_at(cpu, LAST_BRANCH);
        if (b->form != PMU_BRANCHES_OLD && !b->pair)
            CHECK_EQ(at, b->form == PMU_BRANCHES_STACK);
    }
}
