/* SPDX-License-Identifier: MIT */
/* The cost of thread profiling, in instructions and in accesses to the PMU, which the virtual
 * PMU counts. Two profiled threads sleep; the test, at IPI_LEVEL, calls for them repeatedly
 * what a switch calls. */
#include "tests/harness/peek.h"

extern void user_cost_read(uint64_t mask_and_leaf);
typedef void switch_function(struct thread_profiling *out, struct thread_profiling *in,
                             unsigned cpu, KWAIT_REASON reason);
static void no_switch(struct thread_profiling *, struct thread_profiling *, unsigned, KWAIT_REASON)
{
}

/* What a switch calls, and the same call of nothing. */
struct switching {
    struct thread_profiling *out, *in;
    unsigned cpu;
    switch_function *function, *nothing;
};

static void make_switch(void *argument)
{
    const struct switching *s = argument;
    s->function(s->out, s->in, s->cpu, WrYieldExecution);
}

static void make_no_switch(void *argument)
{
    const struct switching *s = argument;
    s->nothing(s->out, s->in, s->cpu, WrYieldExecution);
}

/* At IPI_LEVEL. All that thread_profiling_switch executes but its RET: counters, cycles, switches,
 * reasons, leave for RDPMC. */
static void switch_once(struct cost *cost, struct thread *from, struct thread *to)
{
    struct switching s = { from->profiling, to->profiling, to->cpu, thread_profiling_switch,
                           no_switch };
    cost_run(cost, make_switch, make_no_switch, &s);
}

enum { ARRIVES, LEAVES, BOTH, KINDS };
static const char *const kind_names[] = { "arrives", "leaves", "arrives, another leaves" };

/* The limit is 20 + 16 N. The cycles, switches, reasons and CR4.PCE of one thread alone take
 * more than 20: the excess comes out of three counters' share, and a second thread's is added. */
static uint64_t most(unsigned kind, unsigned n)
{
    return kind == BOTH ? 20 + 16 * n + 28 : 20 + 16 * (n < 3 ? 3 : n);
}

/* What RDPMC counts beyond 1 where it exits. */
static uint64_t exit_adds(void)
{
    int64_t exit = pmu_here()->measured.exit.high;
    return vpmu_present() && exit > 1 ? (uint64_t)exit - 1 : 0;
}

static void check_accumulate(unsigned kind, unsigned n, const struct cost *cost,
                             const struct cost *one_less)
{
    if (vpmu_present()) {
        CHECK_EQ(cost->accesses.rdpmc, n);
        CHECK_EQ(cost->accesses.rdmsr, 0);
        CHECK_EQ(cost->accesses.wrmsr, 0);
    }
    /* RDPMC alone takes four, adding up four, the loop one. */
    CHECK_RANGE(cost_least(cost), 9 * n, most(kind, n) + n * exit_adds());
    if (n > 1)
        CHECK_RANGE(cost_least(cost) - cost_least(one_less), 9, 16 + exit_adds());
    cost_print(cost, n == 1 || n == 4, "a thread with %u counters %s", n, kind_names[kind]);
}

/* Between a profiled thread and an unprofiled one, both ways, and between two profiled ones. */
static bool switches(unsigned n, struct cost cost[KINDS])
{
    struct runner a = start_sleeper((1ul << n) - 1), b = start_sleeper((1ul << n) - 1);
    struct thread *me = thread_current();
    bool ok = a.thread && b.thread && a.thread->profiling && b.thread->profiling;
    for (unsigned i = 0; ok && i < (test_long() ? COST_RUNS : 4); i++) {
        KIRQL old = irql_raise(IPI_LEVEL);
        switch_once(&cost[ARRIVES], me, a.thread);
        switch_once(&cost[BOTH], a.thread, b.thread);
        switch_once(&cost[LEAVES], b.thread, me);
        irql_lower(old);
    }
    end_by_force(a.process, a.thread);
    end_by_force(b.process, b.thread);
    return ok;
}

TEST(tp_cost, accumulate,
     "a switch with N counters: N RDPMC, no WRMSR; one thread's, three counters or more: at most "
     "20 + 16 N instructions in all [slow]")
{
    static const enum pmu_event events[] = { PMU_INSTRUCTIONS, PMU_INSTRUCTIONS, PMU_INSTRUCTIONS,
                                             PMU_CYCLES,       PMU_INSTRUCTIONS, PMU_INSTRUCTIONS };
    static struct cost cost[2][KINDS];
    unsigned ctrs[6];
    SKIP_WITHOUT_PMU();
    SKIP_IF(isolate_on, "the policy is isolate");
    test_run_on(0);
    for (unsigned n = 1; n <= 6 && counting_possible(events, n); n++) {
        REQUIRE(counting_start_many(events, n, PMU_KERNEL, ctrs));
        cost_begin(ctrs[0]);
        memset(cost[n % 2], 0, sizeof cost[0]);
        if (switches(n, cost[n % 2]))
            for (unsigned kind = 0; kind < KINDS; kind++)
                check_accumulate(kind, n, &cost[n % 2][kind], &cost[1 - n % 2][kind]);
        cost_end();
        counting_stop();
    }
}

TEST(tp_cost, read,
     "ReadThreadProfilingData of N counters: N RDPMC, no kernel entry, of four at most 115 "
     "instructions; a raw reading: 1 and 5 [slow]")
{
    static const enum pmu_event events[] = { PMU_INSTRUCTIONS, PMU_INSTRUCTIONS, PMU_INSTRUCTIONS,
                                             PMU_CYCLES };
    unsigned ctrs[4];
    uint64_t found[9];
    SKIP_WITHOUT_RDPMC();
    SKIP_WITHOUT_VPMU();
    for (unsigned n = 1; n <= 4 && counting_possible(events, n); n++) {
        struct process *process = user_process();
        REQUIRE(process != NULL && counting_start_many(events, n, PMU_USER, ctrs));
        struct thread *thread =
            user_start(process, user_cost_read, ((1ul << n) - 1) | (uint64_t)vpmu_leaf(1) << 32);
        user_wait(thread);
        if (CHECK(user_read(process, found, (uint64_t)user_cost, sizeof found))) {
            /* RDPMC and its element take 12 at the least. */
            CHECK_RANGE(found[0], 12 * n, 115 + n * exit_adds());
            CHECK_EQ(found[1], n);
            CHECK_EQ(found[2], 0);
            CHECK_RANGE(found[3], 1, 5);
            CHECK_EQ(found[4], 1);
            CHECK_EQ(found[5], 0);
            CHECK_EQ(found[6], found[3] + 1);
            cost_tell(found[0], (struct vpmu_accesses){ .rdpmc = (uint32_t)found[1] },
                      "reading %u counters", n);
            if (n == 1) {
                cost_tell(found[3], (struct vpmu_accesses){ .rdpmc = (uint32_t)found[4] },
                          "one raw read");
                cost_tell(found[6], (struct vpmu_accesses){ .rdpmc = (uint32_t)found[7] },
                          "one raw read after LFENCE");
            }
        }
        user_finish(process, thread);
        counting_stop();
    }
}
