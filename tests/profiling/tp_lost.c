/* SPDX-License-Identifier: MIT */
/* Counters that were reset behind everybody's back, as when a guest is restored without them: a
 * reading says so, and gives no number that is wrong. */
#include "kernel/counting/switch_counters.h"
#include "tests/harness/counting.h"
#include "tests/harness/peek.h"
#include "tests/harness/printed.h"

#define NAPS 5u

static void lose_while(uint64_t naps, unsigned cpu)
{
    struct runner r = start_ready(user_lose, naps, cpu_set_one(cpu));
    for (unsigned i = 0; i < NAPS; i++)
        nap();
    smp_call(cpu_set_one(cpu), counting_lose, NULL);
    user_wait(r.thread);
    user_finish(r.process, r.thread);
}

/* Then they are configured anew, and count. */
static void lose_and_go_on(uint64_t naps, unsigned cpu)
{
    unsigned ctr;
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    lose_while(naps, cpu);
    counting_stop();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    CHECK_OK(user_run(user_measure, 1));
    counting_stop();
}

TEST(tp_lost, running,
     "a thread that runs while its counters are reset reads a status, until they are configured "
     "anew, and never a number that is wrong")
{
    SKIP_WITHOUT_RDPMC();
    if (isolate_on)
        SKIP("the policy is isolate"); /* which writes them at a switch: found a tick later */
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        lose_and_go_on(0, cpu);
}

TEST(tp_lost, waiting, "and one that waits meanwhile")
{
    SKIP_WITHOUT_RDPMC();
    if (isolate_on)
        SKIP("the policy is isolate"); /* which writes them at a switch: found a tick later */
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        lose_and_go_on(1, cpu);
}
