/* SPDX-License-Identifier: MIT */
/* Services called at random from ring 3, with a model of what each must answer
 * (tests/ring3/fuzz.h), and all exports of the libraries, of which the kernel alone must know
 * nothing afterwards (tests/ring3/fuzz_exports.c): four processes at once, while kernel and
 * processes are sampled and traced. Meanwhile, one after the other, innocent threads count the
 * instructions of known regions, exactly. The word fuzz=N chooses another course: make fuzz. */
#include "hal/source.h"
#include "kernel/ke/switch_counters.h"
#include "kernel/services.h"
#include "tests/harness/clean.h"
#include "tests/harness/counting.h"
#include "tests/harness/etw.h"
#include "tests/harness/exactness.h"
#include "tests/harness/kernel.h"
#include "tests/harness/profile.h"
#include "tests/harness/threads.h"
#include "tests/ring3/ring3.h"
#include "tests/harness/user.h"
#include "tests/harness/vpmu.h"

#define CALLERS 4
#define CALLS 2600u
#define CALLS_FEW 30u            /* where nothing says `long` or fuzz= */
#define REGION_1000 (2ull << 32) /* of user_exact_runs */
#define RUNS 50u
#define SELDOM 100000u /* instructions from sample to sample */

static ULONG kernel_buckets[256];
static uint64_t intervals[SOURCE_IDS];

struct company {
    struct session session;
    HANDLE by_time, by_instructions;
};

static HANDLE sampled_source(KPROFILE_SOURCE source)
{
    HANDLE h = profile_made(0xffffffff80000000, 0x1000000, 16, kernel_buckets,
                            sizeof kernel_buckets, source, ~0ul);
    if (h)
        profile_start(h);
    return h;
}

static bool company_begin(struct company *c)
{
    memcpy(intervals, source_intervals, sizeof intervals);
    if (!test_long() && !test_seed())
        hal_source_set_interval(SOURCE, SELDOM);
    if (!session_start(&c->session, 16, 16))
        return false;
    CHECK_STATUS(session_mask(&c->session, PERF_CONTEXT_SWITCH, PERF_SYSCALL), STATUS_SUCCESS);
    c->by_time = sampled_source(ProfileTime);
    c->by_instructions =
        test_has_pmu() && hal_source_supported(SOURCE) ? sampled_source(SOURCE) : NULL;
    return c->by_time != NULL;
}

/* foreign: processes may have stopped its session, and started others, which outlive them. */
static void company_end(const struct company *c, bool foreign)
{
    struct session s = c->session;
    NtClose(c->by_time);
    if (c->by_instructions)
        NtClose(c->by_instructions);
    if (!foreign)
        session_stop(&s);
    session_close(&s);
    if (foreign)
        clean_sessions();
    memcpy(source_intervals, intervals, sizeof intervals);
    NtSetIntervalProfile(0, ProfileAlignmentFixup);
}

static bool ended(struct thread *const *threads)
{
    for (unsigned i = 0; i < CALLERS; i++)
        if (threads[i] && !object_signaled(&threads[i]->object))
            return false;
    return true;
}

/* Innocent threads until the callers have ended. */
static void count_meanwhile(struct thread *const *threads, bool pmu)
{
    unsigned innocents = 0;
    while (!ended(threads)) {
        if (pmu)
            exactness_run(user_exact_runs, REGION_1000 | RUNS);
        else
            sched_wait(NULL, 0, DelayExecution);
        innocents++;
    }
    CHECK(innocents > 0);
}

TEST(service_fuzz, model,
     "services called at random by four processes answer what a model of their handles, objects "
     "and memory says, among "
     "samples and traces; innocent threads count exactly [slow]")
{
    struct process *processes[CALLERS];
    struct thread *threads[CALLERS] = { NULL };
    struct company company;
    unsigned ctr;
    uint64_t first = test_seed() * CALLERS, calls = test_long() || first ? CALLS : CALLS_FEW;
    bool pmu = test_has_pmu();
    SKIP_IF_STEPPED();
    if (pmu && isolate_on) /* a thread that counts then needs all counters, which samples have */
        SKIP("the policy is isolate");
    if (pmu)
        REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    REQUIRE(company_begin(&company));
    for (unsigned i = 0; i < CALLERS; i++) {
        processes[i] = user_process();
        if (CHECK(processes[i] != NULL))
            threads[i] =
                user_start(processes[i], user_fuzz,
                           (first + i) | calls << USER_FUZZ_CALLS | (uint64_t)pmu << USER_FUZZ_PMU);
        CHECK(threads[i] != NULL);
    }
    count_meanwhile(threads, pmu);
    for (unsigned i = 0; i < CALLERS; i++)
        if (processes[i])
            user_finish(processes[i], threads[i]);
    company_end(&company, false);
    if (pmu)
        counting_stop();
}

/* --- Exports. --- */

#define ROUNDS 12u
#define ROUNDS_FEW 1u
#define EXPORT_CALLS 400u
#define EXPORT_CALLS_FEW 40u
#define ROUND_NS 20000000u /* what still runs then is ended */
#define BEGIN_NS 500000000u
#define LOOK_NS 1000000u
#define WATCHER_PRIORITY 31

/* Every thread of the process, also those that it made, is asked to end until there is none. */
static void end_process(struct process *process)
{
    for (;;) {
        KIRQL irql = lock_acquire(&process->lock);
        struct thread *thread = process->first;
        if (thread)
            object_hold(&thread->object);
        lock_release(&process->lock, irql);
        if (!thread)
            return;
        thread_terminate(thread, STATUS_TIMEOUT);
        sched_wait(&thread->object, clock_ns() + ROUND_NS, Executive);
        object_release(&thread->object);
    }
}

static bool many(void) { return test_long() || test_seed(); }

struct round {
    struct process *processes[CALLERS];
    struct thread *threads[CALLERS];
    uint64_t wanted; /* calls of each process */
    unsigned called; /* exports, of all processes */
};

/* Whether each has loaded its libraries, or has ended. */
static bool began(const struct round *r)
{
    uint64_t state = 0;
    for (unsigned i = 0; i < CALLERS; i++)
        if (r->threads[i] && !object_signaled(&r->threads[i]->object) &&
            user_read(r->processes[i], &state, (uint64_t)&user_state, sizeof state) && !state)
            return false;
    return true;
}

/* Ends what does not end by itself, whatever priority that has given itself. */
static void watch(void *context)
{
    struct round *r = context;
    for (uint64_t begin = clock_ns(); !began(r) && clock_ns() - begin < BEGIN_NS;)
        sched_wait(NULL, clock_ns() + LOOK_NS, DelayExecution);
    for (uint64_t begin = clock_ns(); !ended(r->threads) && clock_ns() - begin < ROUND_NS;)
        sched_wait(NULL, clock_ns() + LOOK_NS, DelayExecution);
    for (unsigned i = 0; i < CALLERS; i++)
        if (r->processes[i])
            end_process(r->processes[i]);
}

static void round_begin(struct round *r, uint64_t seed)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        r->threads[i] = NULL;
        r->processes[i] = user_process();
        if (CHECK(r->processes[i] != NULL))
            r->threads[i] =
                user_start(r->processes[i], user_fuzz_exports, (seed + i) | r->wanted << 32);
        CHECK(r->threads[i] != NULL);
    }
}

static void round_end(struct round *r)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        uint64_t n = 0;
        if (!r->processes[i])
            continue;
        CHECK(user_read(r->processes[i], &n, (uint64_t)&user_reads, sizeof n));
        r->called += n <= r->wanted ? (unsigned)n : 0; /* its memory is not to be relied upon */
        if (r->threads[i])
            object_release(&r->threads[i]->object);
        object_release(&r->processes[i]->object);
    }
}

/* Innocent threads count while four processes call exports. */
static void export_round(struct round *r, uint64_t seed, bool pmu)
{
    round_begin(r, seed);
    struct thread *watcher = team_start(watch, r, cpu_all(), WATCHER_PRIORITY);
    while (CHECK(watcher != NULL) && !object_signaled(&watcher->object))
        pmu ? exactness_run(user_exact_runs, REGION_1000 | RUNS)
            : (void)sched_wait(NULL, 0, DelayExecution);
    if (watcher)
        team_end(watcher);
    round_end(r);
}

TEST(service_fuzz, exports,
     "whatever four processes call of all that the libraries export, with any arguments, among "
     "samples and traces: innocent threads count exactly, and nothing of them stays [slow]")
{
    struct company company;
    unsigned ctr, rounds = many() ? ROUNDS : ROUNDS_FEW;
    bool pmu = test_has_pmu();
    SKIP_IF_STEPPED();
    if (pmu && isolate_on)
        SKIP("the policy is isolate");
    if (pmu)
        REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    REQUIRE(company_begin(&company));
    struct round round = { .wanted = many() ? EXPORT_CALLS : EXPORT_CALLS_FEW };
    for (unsigned n = 0; n < rounds; n++)
        export_round(&round, (test_seed() * ROUNDS + n) * CALLERS, pmu);
    CHECK_BECAUSE(round.called, rounds * CALLERS, rounds * CALLERS * round.wanted,
                  "calls were made");
    test_note("%u calls", round.called);
    company_end(&company, true);
    if (pmu)
        counting_stop();
}
