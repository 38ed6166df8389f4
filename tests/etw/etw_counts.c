/* SPDX-License-Identifier: MIT */
/* Counters in records of context switches, compared with thread profiling. */
#include "tests/harness/etw.h"
#include "tests/harness/peek.h"

static void counts_agree(uint64_t yields, uint64_t least)
{
    struct process *process = user_process();
    REQUIRE(process != NULL);
    struct thread *thread = user_start(process, user_trace_counts, yields);
    user_wait(thread);
    uint64_t compared = peek(process, &user_values[0]);
    CHECK_RANGE(compared, least, 100 * yields); /* each yield is one, and ticks add some */
    test_note("%lu switches of 8 threads on %u CPUs compared", compared, cpu_count);
    user_finish(process, thread);
}

TEST(etw_counts, equal_profiling,
     "the counts of 8 threads by context switch records are exactly those of thread profiling "
     "[ET-31 slow]")
{
    SKIP_WITHOUT_PMU();
    SKIP_IF(isolate_on, "the policy is isolate");
    if (cpu_count == 1)
        counts_agree(test_long() ? 700 : 50, test_long() ? 5000 : 300);
    else /* how long two of them share a processor is chance: each goes on until 4, or 13 */
        counts_agree(test_long() ? 200 : 60, test_long() ? 100 : 30);
}
