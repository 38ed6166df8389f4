/* SPDX-License-Identifier: MIT */
/* The policy counters=isolate: the value of a profiled thread's RDPMC, and the cost of a switch. */
#include "tests/harness/peek.h"

extern void user_seek(uint64_t counters), user_noise(uint64_t mask);

#define SKIP_UNLESS_ISOLATE() SKIP_IF(!isolate_on, "the policy is accumulate")

#define MOVES 20u

/* A thread looks for others' counts, once, or while all are moved from CPU to CPU every four ticks.
 * Returns how often they were. */
static unsigned seek_once(struct runner all[4], bool moved)
{
    struct runner *seeker = &all[3];
    unsigned moves = 0;
    *seeker = start_on(user_seek, common_counters(), moved ? cpu_all() : cpu_set_one(0));
    while (moved && seeker->thread && seeker->thread->state != THREAD_DEAD) {
        moves++;
        for (unsigned i = 0; i < 4; i++)
            if (all[i].thread)
                sched_set_affinity(all[i].thread, cpu_set_one(moves % cpu_count));
        sched_wait(NULL, clock_ns() + 4 * sched_tick_ns(), DelayExecution);
    }
    user_finish(seeker->process, seeker->thread);
    return moves;
}

/* Its counters have no counts of other threads, which run on the same CPU, or move with it: as
 * often as there are enough moves, for of a long period few fit in. */
static void seek_moves(bool moved)
{
    static const enum pmu_event events[] = { PMU_INSTRUCTIONS, PMU_INSTRUCTIONS };
    unsigned ctrs[2], moves = 0;
    SKIP_WITHOUT_PMU();
    SKIP_UNLESS_ISOLATE();
    REQUIRE(counting_start_many(events, 2, PMU_USER, ctrs));
    struct cpu_set where = moved ? cpu_all() : cpu_set_one(0);
    struct runner all[4] = { start_on(user_noise, 3, where), start_on(user_noise, 2, where),
                             start_on(user_noise, 0, where) };
    for (unsigned times = 0; times < MOVES && (times == 0 || (moved && moves < MOVES)); times++)
        moves += seek_once(all, moved);
    CHECK_EQ(moves >= MOVES, moved);
    for (unsigned i = 0; i < 3; i++)
        end_by_force(all[i].process, all[i].thread);
    counting_stop();
}

TEST(tp_isolate, nothing_foreign,
     "through 4,000 switches among other threads that count, 20,000 if `long`, RDPMC returns the "
     "thread's own counts and 0 for every other counter")
{
    seek_moves(false);
}

TEST(tp_isolate, nothing_foreign_moved,
     "RDPMC returns the thread's own counts also while all threads are moved from CPU to CPU")
{
    SKIP_BELOW_CPUS(2);
    seek_moves(true);
}

TEST(tp_isolate, refused_beside_others,
     "enabling fails while another owner has a counter that is not configured, and nobody can "
     "allocate one while a thread is profiled")
{
    unsigned ctr;
    HANDLE foreign = NULL;
    SKIP_WITHOUT_PMU();
    SKIP_UNLESS_ISOLATE();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    uint64_t rest = hal_counters_available(cpu_all());
    uint64_t one = rest & -rest;
    struct thread_profiling p = { .mask = 1 };
    CHECK_STATUS(hal_counters_claim("test", cpu_all(), one, NULL, &foreign), STATUS_SUCCESS);
    CHECK_STATUS(isolate_join(&p), STATUS_INSUFFICIENT_RESOURCES);
    CHECK_STATUS(HalFreeHardwareCounters(foreign), STATUS_SUCCESS);
    CHECK_STATUS(isolate_join(&p), STATUS_SUCCESS);
    test_run_on(0);
    hal_counters_run(PMU_BIT(ctr), 0); /* as a switch does */
    CHECK_EQ(hal_counters_available(cpu_all()), 0);
    CHECK_STATUS(hal_counters_claim("test", cpu_all(), one, NULL, &foreign),
                 STATUS_INSUFFICIENT_RESOURCES);
    isolate_leave();
    CHECK_EQ(hal_counters_available(cpu_all()), rest);
    CHECK(hal_counters_running() & PMU_BIT(ctr)); /* as their driver had them */
    test_run_anywhere();
    counting_stop();
}

static void switch_counts(const struct thread *from, const struct thread *to)
{
    thread_profiling_switch(from->profiling, to->profiling, to->cpu, WrYieldExecution);
}

/* The accesses of one switch, without the two RDPMCs before it. IPI_LEVEL. */
static struct vpmu_accesses accesses_of(struct thread *from, struct thread *to)
{
    struct vpmu_accesses before = vpmu_accesses();
    switch_counts(from, to);
    return vpmu_accesses_since(before);
}

static void check_costs(unsigned n)
{
    struct runner a = start_sleeper((1ul << n) - 1), b = start_sleeper((1ul << n) - 1);
    struct thread *me = thread_current();
    if (a.thread && b.thread && a.thread->profiling && b.thread->profiling) {
        KIRQL old = irql_raise(IPI_LEVEL);
        switch_counts(me, a.thread);
        struct vpmu_accesses both = accesses_of(a.thread, b.thread),
                             leaves = accesses_of(b.thread, me);
        struct vpmu_accesses back = accesses_of(me, b.thread), again = accesses_of(b.thread, me);
        irql_lower(old);
        CHECK_EQ(both.rdpmc, n);
        CHECK_RANGE(both.wrmsr, n, n + 2);
        CHECK_EQ(leaves.rdpmc, n);
        CHECK(leaves.wrmsr <= 1);
        if (hal_counters_stop_at_once())
            CHECK_EQ(back.wrmsr, 1); /* what starts them; no counter */
        else
            CHECK_EQ(back.wrmsr, n);
        CHECK_EQ(back.rdpmc, 0);
        CHECK_EQ(again.rdpmc, n);
        CHECK_EQ(both.rdmsr + leaves.rdmsr + back.rdmsr + again.rdmsr, 0);
    }
    end_by_force(a.process, a.thread);
    end_by_force(b.process, b.thread);
}

TEST(tp_isolate, switch_cost,
     "a switch with N counters: N RDPMC, at most N + 2 WRMSR; no counter is written when the same "
     "thread comes back")
{
    static const enum pmu_event events[] = { PMU_INSTRUCTIONS, PMU_INSTRUCTIONS, PMU_INSTRUCTIONS,
                                             PMU_INSTRUCTIONS };
    unsigned ctrs[4];
    SKIP_WITHOUT_PMU();
    SKIP_WITHOUT_VPMU();
    SKIP_UNLESS_ISOLATE();
    test_run_on(0);
    for (unsigned n = 1; n <= 4 && counting_possible(events, n); n++) {
        REQUIRE(counting_start_many(events, n, PMU_USER, ctrs));
        check_costs(n);
        counting_stop();
    }
}

/* --- Two threads are the first that are profiled. --- */

static struct thread_profiling joined[2];

static NTSTATUS join_first(void) { return isolate_join(&joined[0]); }
static NTSTATUS join_second(void) { return isolate_join(&joined[1]); }

static bool begin_joined(void) { return CHECK_OK(join_first()); }

static NTSTATUS leave(void)
{
    isolate_leave();
    return STATUS_SUCCESS;
}

static void end_joined(void)
{
    leave();
    if (step_came())
        leave();
}

/* The last one had left. */
static void end_left(void)
{
    if (step_came())
        leave();
}

static const struct collision of_isolate[] = {
    COLLISION(isolate_join, NULL, join_first, join_second, end_joined, BOTH_WIN),
    COLLISION(isolate_leave, begin_joined, leave, join_second, end_left, BOTH_WIN),
};

TEST(tp_isolate, joined,
     "a thread that takes all counters for the policy isolate, or gives them back, may be switched "
     "at any instruction to one that takes them: each has them until the last one gives them back")
{
    unsigned ctr;
    SKIP_WITHOUT_PMU();
    SKIP_UNLESS_ISOLATE();
    test_run_on(0);
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    STEP_COLLIDE(of_isolate);
    counting_stop();
}
