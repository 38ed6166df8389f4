/* SPDX-License-Identifier: MIT */
/* The point of it all: the instructions of a ring-3 region, as ReadThreadProfilingData gives them,
 * equal the number that the region executes, whatever interrupts, other threads and other CPUs do
 * meanwhile. Only ring 3 is counted, so the kernel's own instructions are not in it. */
#include "tests/harness/exactness.h"
#include "tests/harness/peek.h"
#include "tests/ring3/exact.h"

#define SPINNERS 2

/* Company for the measured thread: computes in ring 3. */
static bool company_start(struct runner company[SPINNERS])
{
    bool complete = true;
    for (unsigned i = 0; i < SPINNERS; i++) {
        company[i] = start_on(user_exact_spin, 0, SMP_ALL);
        complete &= CHECK(company[i].thread != NULL);
    }
    return complete;
}

static void company_end(struct runner company[SPINNERS])
{
    for (unsigned i = 0; i < SPINNERS; i++)
        end_by_force(company[i].process, company[i].thread);
}

struct migrator {
    struct thread *target;
    uint32_t stop;
    unsigned moves;
};

/* Moves the target from CPU to CPU, every tick. */
static void migrate(void *argument)
{
    struct migrator *m = argument;
    while (!__atomic_load_n(&m->stop, __ATOMIC_ACQUIRE)) {
        sched_set_affinity(m->target, cpu_set_one(m->moves++ % cpu_count));
        sched_wait(NULL, clock_ns() + sched_tick_ns(), DelayExecution);
    }
}

/* Runs a ring-3 function in a thread that is moved about all the time. */
static unsigned run_migrated(void (*function)(uint64_t), uint64_t argument)
{
    struct process *process = user_process();
    struct migrator m = { .target = user_start(process, function, argument | exactness()) };
    struct thread *mover = m.target ? thread_create("migrator", migrate, &m, SMP_ALL) : NULL;
    user_wait(m.target);
    __atomic_store_n(&m.stop, 1, __ATOMIC_RELEASE);
    team_end(mover);
    exactness_finish(process, m.target);
    return m.moves;
}

TEST(exact, known_regions,
     "regions of 1 to 1,000,000 ring-3 instructions are counted exactly, among other threads, each "
     "a hundred times as often if `long` [TP-79 TP-80]")
{
    unsigned ctr;
    struct runner company[SPINNERS];
    SKIP_WITHOUT_PMU();
    SKIP_IF_STEPPED();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    if (company_start(company))
        exactness_run(user_exact_known, test_long() ? 100 : 1);
    company_end(company);
    counting_stop();
}

TEST(exact, strings,
     "a string instruction of ring 3 counts 1 in each form and for any count, interrupted and in "
     "code that changes itself, alone and beside branches [TP-79 VP-52 slow]")
{
    static const enum pmu_event events[] = { PMU_INSTRUCTIONS, PMU_BRANCHES };
    unsigned ctrs[2];
    SKIP_WITHOUT_PMU();
    SKIP_IF_STEPPED();
    for (unsigned n = 1; n <= 2 && counting_possible(events, n); n++) {
        REQUIRE(counting_start_many(events, n, PMU_USER, ctrs));
        exactness_run(user_exact_strings, test_long() ? 1 : 13);
        counting_stop();
    }
}

TEST(exact, migrated_regions,
     "regions are counted exactly while the thread is moved between CPUs in the middle [TP-79 "
     "TP-81]")
{
    unsigned ctr;
    struct runner company[SPINNERS];
    SKIP_WITHOUT_PMU();
    SKIP_IF_STEPPED();
    SKIP_BELOW_CPUS(2);
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    if (company_start(company)) {
        CHECK(run_migrated(user_exact_known, 1) > 0);
        /* A move is a switch, but not every switch a move. */
        CHECK(run_migrated(user_exact_switched, 20) >= 5);
    }
    company_end(company);
    counting_stop();
}

/* Silicon's rule: RDPMC retires once. A hypervisor's: where it intercepts RDPMC that counts as its
 * exits do. Nobody can take off what a trap adds between the two, so ring 3 takes the least of
 * many. */
static uint64_t expected_raw(unsigned cpu)
{
    const struct pmu_spread *exit = &pmu_of(cpu)->measured.exit;
    return 3 + (pmu_stable(exit) ? (uint64_t)exit->low : 1);
}

static void read_raw(struct process *process, unsigned cpu, unsigned ctr)
{
    struct thread *thread =
        user_thread("raw", process, (uint64_t)user_exact_raw,
                    pmu_rdpmc_index(ctr) | expected_raw(cpu) << 32, cpu_set_one(cpu));
    if (!user_wait(thread))
        return;
    CHECK_STATUS(thread->exit_status, STATUS_SUCCESS);
    object_release(&thread->object);
}

TEST(exact, raw_rdpmc,
     "two RDPMCs of ring 3 with two MOVs and an LFENCE between differ by 4, on every CPU [TP-97]")
{
    unsigned ctr;
    SKIP_WITHOUT_RDPMC();
    struct runner r = start_on(user_exact_load, 0, SMP_ALL);
    REQUIRE(r.thread && peek_wait(r.process, &user_exact_ready[0], 1));
    if (CHECK(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr))) {
        for (unsigned cpu = 0; cpu < cpu_count; cpu++)
            read_raw(r.process, cpu, ctr);
        counting_stop();
    }
    end_by_force(r.process, r.thread);
}
