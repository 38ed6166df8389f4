/* SPDX-License-Identifier: MIT */
/* Counters that were reset behind everybody's back, as when a guest is restored without them: a
 * reading says so, and gives no number that is wrong. */
#include "tests/harness/peek.h"
#include "tests/harness/printed.h"

#define NAPS 5u

#define SAID                                                                                       \
    "# thread profiling: somebody has reset the counters (was this guest restored, or moved?): "   \
    "counts are lost until they are configured anew\n"

/* It is said once, however many readings and threads there are. */
static void lose_while(uint64_t naps, unsigned cpu)
{
    struct runner r = start_ready(user_lose, naps, cpu_set_one(cpu));
    for (unsigned i = 0; i < NAPS; i++)
        nap();
    struct printed before = printed_now();
    smp_call(cpu_set_one(cpu), counting_lose, NULL);
    user_wait(r.thread);
    check_printed(before, SAID);
    user_finish(r.process, r.thread);
}

/* Then they are configured anew, and count, until the configuration is emptied. */
static void lose_and_go_on(uint64_t naps, unsigned cpu)
{
    unsigned ctr;
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    lose_while(naps, cpu);
    counting_stop();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    CHECK_OK(user_run(user_measure, 1));
    struct runner r = start_ready(user_run_until_emptied, 1, cpu_set_one(cpu));
    counting_stop();
    user_finish(r.process, r.thread);
}

TEST(tp_lost, threads,
     "a thread that runs while its counters are reset, or waits, reads a status, until they are "
     "configured anew, and never a number that is wrong")
{
    SKIP_WITHOUT_RDPMC();
    if (isolate_on)
        SKIP("the policy is isolate"); /* which writes them at a switch: found a tick later */
    for_all_cpus(cpu) {
        lose_and_go_on(0, cpu);
        lose_and_go_on(1, cpu);
    }
}

static NTSTATUS read_as_service(void)
{
    PERFORMANCE_DATA data = { .Size = sizeof data, .Version = PERFORMANCE_DATA_VERSION };
    return NtReadThreadProfilingData((HANDLE)thread_current()->profiling->user_address,
                                     READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS, &data);
}

/* No tick comes between, but by chance. */
TEST(tp_lost, service, "the service sees at once that a counter went back, before any tick")
{
    unsigned ctr;
    SKIP_WITHOUT_PMU();
    SKIP_IF(isolate_on, "the policy is isolate");
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_KERNEL, &ctr));
    struct process *process = user_pretend();
    if (process && CHECK_OK(user_profile(true, 1))) {
        CHECK_OK(read_as_service());
        counting_lose(NULL);
        CHECK_STATUS(read_as_service(), STATUS_DATA_ERROR);
        CHECK_OK(user_profile(false, 1));
    }
    user_pretend_end(process);
    counting_stop();
}
