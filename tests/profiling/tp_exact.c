/* SPDX-License-Identifier: MIT */
/* Exactness in sum: the counts of threads add up to those of the CPUs, during interrupts and
 * switches. */
#include "tests/harness/exactness.h"
#include "tests/harness/peek.h"

#define THREADS 6
#define ROUNDS 40 /* of 100,000 instructions */

#define KINDS 3
static const uint32_t flags[KINDS] = { PMU_USER, PMU_USER | PMU_KERNEL, PMU_KERNEL };

struct totals {
    uint32_t selectors[KINDS];
    uint64_t values[MAX_CPUS][KINDS];
};

/* Runs on each CPU at IPI_LEVEL. The instructions between the readings are the same each time. */
static void read_totals(void *argument)
{
    struct totals *t = argument;
    uint64_t first = rdpmc_exact(t->selectors[0]), second = rdpmc_exact(t->selectors[1]),
             third = rdpmc_exact(t->selectors[2]);
    uint64_t *values = t->values[cpu_number()];
    values[0] = first;
    values[1] = second;
    values[2] = third;
}

static uint64_t sum_of(const struct totals *t, unsigned kind)
{
    uint64_t sum = 0;
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        sum += t->values[cpu][kind];
    return sum;
}

static void program_party(void *argument)
{
    const unsigned *ctrs = argument;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    for (unsigned kind = 0; kind < KINDS; kind++)
        pmu_program(ctrs[kind], pmu_select(pmu_here(), PMU_INSTRUCTIONS, flags[kind]), 0);
    irql_lower(old);
}

struct party {
    struct process *process;
    struct thread *threads[THREADS];
};

/* The sum of the threads' counts if all are asleep, else 0. What traps added is included again:
 * it is in the CPUs' counters, and the kernel subtracted it from the threads'. */
static uint64_t counted_by_party(const struct party *p)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        const struct thread *thread = p->threads[i];
        if (!thread || !thread->profiling || thread->state != THREAD_WAITING)
            return 0;
        sum += thread->profiling->readings[0].total + thread->profiling->taken_off[0];
    }
    return sum;
}

/* Waits until all threads are profiled (0) or done (1), and sleep while the CPUs' counters are
 * read. Until they are done it moves them between CPUs. */
static uint64_t totals_asleep(const struct party *p, unsigned what, struct totals *totals)
{
    for (unsigned tries = 0; tries < 3000; tries++) {
        uint64_t ready = 0, sum = counted_by_party(p);
        user_read(p->process, &ready, (uint64_t)&user_exact_ready[what], sizeof ready);
        sched_wait(NULL, clock_ns() + sched_tick_ns(), DelayExecution);
        smp_call(SMP_ALL, read_totals, totals);
        if (ready == THREADS && sum && counted_by_party(p) == sum)
            return sum;
        if (what == 1 && ready < THREADS)
            sched_set_affinity(p->threads[tries % THREADS],
                               cpu_set_one((tries / THREADS + tries) % cpu_count));
    }
    CHECK(!"all threads asleep");
    return 0;
}

static void check_sum(const struct party *p, unsigned kinds, const unsigned *ctrs)
{
    struct totals totals[2];
    uint64_t sums[2], grown[KINDS];
    for (unsigned what = 0; what < 2; what++) {
        for (unsigned kind = 0; kind < KINDS; kind++)
            totals[what].selectors[kind] = pmu_rdpmc_index(ctrs[kind < kinds ? kind : 0]);
        sums[what] = totals_asleep(p, what, &totals[what]);
    }
    for (unsigned kind = 0; kind < KINDS; kind++)
        grown[kind] = sum_of(&totals[1], kind) - sum_of(&totals[0], kind);
    CHECK(sums[1] - sums[0] > THREADS * ROUNDS * 100000ul);
    CHECK_EQ(sums[1] - sums[0], grown[0]);
    if (kinds == KINDS) {
        CHECK(grown[2] > 0);
        CHECK_EQ(sums[1] - sums[0], grown[1] - grown[2]);
        test_note("%u threads counted %lu, %u CPUs %lu, of which the kernel %lu", THREADS,
                  sums[1] - sums[0], cpu_count, grown[1], grown[2]);
    }
}

TEST(tp_exact, sum,
     "what threads count, moved about, adds up to the CPUs' totals less the kernel's share [TP-80 "
     "TP-81 TP-82]")
{
    static const enum pmu_event events[KINDS] = { PMU_INSTRUCTIONS, PMU_INSTRUCTIONS,
                                                  PMU_INSTRUCTIONS };
    unsigned ctrs[KINDS];
    struct party p = { 0 };
    SKIP_WITHOUT_PMU();
    SKIP_IF(isolate_on, "the policy is isolate");
    /* With one: what ring 3 executes. */
    unsigned kinds = counting_possible(events, KINDS) ? KINDS : 1;
    REQUIRE(counting_start_many(events, kinds, PMU_USER, ctrs));
    if (kinds == KINDS) {
        uint64_t counters = PMU_BIT(ctrs[0]) | PMU_BIT(ctrs[1]) | PMU_BIT(ctrs[2]);
        counting_pause(counters);
        smp_call(SMP_ALL, program_party, ctrs);
        counting_resume(counters);
    }
    p.process = user_process();
    bool complete = p.process != NULL;
    for (unsigned i = 0; p.process && i < THREADS; i++)
        complete &= (p.threads[i] = user_start(p.process, user_exact_rounds, ROUNDS)) != NULL;
    if (CHECK(complete))
        check_sum(&p, kinds, ctrs);
    for (unsigned i = 0; i < THREADS; i++) {
        if (!p.threads[i])
            continue;
        thread_terminate(p.threads[i], STATUS_SUCCESS);
        sched_wait(&p.threads[i]->object, SCHED_FOREVER, Executive);
        object_release(&p.threads[i]->object);
    }
    if (p.process)
        object_release(&p.process->object);
    counting_stop();
}

#define TO_WRAP (UINT64_C(1) << 20)

/* Advances the counter to less than a million before its wrap. On one CPU, at IPI_LEVEL. */
static void jump(void *counter)
{
    unsigned ctr = *(const unsigned *)counter;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_write(ctr, -TO_WRAP & pmu_mask(pmu_here(), ctr));
    irql_lower(old);
}

TEST(tp_exact, wide,
     "counts beyond 2^32 in one time slice, and across the counter's wrap, are reported in full "
     "[TP-83 TP-84]")
{
    unsigned ctr;
    SKIP_WITHOUT_PMU();
    SKIP_BELOW_CPUS(2); /* the thread runs while another CPU advances its counter */
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    uint64_t most = pmu_mask(pmu_here(), ctr) - TO_WRAP,
             started = UINT64_C(1) << 31; /* what it may have counted before */
    test_run_on(0);
    struct runner r = start_on(user_exact_jump, (most - started) | exactness(), cpu_set_one(1));
    if (r.thread && peek_wait(r.process, &user_exact_ready[0], 1)) {
        smp_call(cpu_set_one(1), jump, &ctr);
        sched_wait(&r.thread->object, SCHED_FOREVER, Executive);
    }
    if (r.process)
        exactness_print(r.process);
    end_by_force(r.process, r.thread);
    test_run_anywhere();
    counting_stop();
}
