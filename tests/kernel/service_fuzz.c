/* SPDX-License-Identifier: MIT */
/* The services of counters and traces, called at random from ring 3, with a model of what each must
 * answer (tests/ring3/fuzz.h): four processes at once, while kernel and processes are sampled and
 * traced. Meanwhile, one after the other, innocent threads count the instructions of known regions,
 * exactly. The word fuzz=N chooses another course: make fuzz. */
#include "tests/harness/etw.h"
#include "tests/harness/exactness.h"
#include "tests/harness/kernel.h"

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

static void company_end(struct company *c)
{
    NtClose(c->by_time);
    if (c->by_instructions)
        NtClose(c->by_instructions);
    session_stop(&c->session);
    session_close(&c->session);
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
     "services of counters and traces called at random by four processes answer what a model of "
     "their handles and objects says, among samples and traces; innocent threads count exactly "
     "[slow]")
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
        threads[i] =
            user_start(processes[i], user_fuzz,
                       (first + i) | calls << USER_FUZZ_CALLS | (uint64_t)pmu << USER_FUZZ_PMU);
    }
    count_meanwhile(threads, pmu);
    for (unsigned i = 0; i < CALLERS; i++)
        user_finish(processes[i], threads[i]);
    company_end(&company);
    if (pmu)
        counting_stop();
}
