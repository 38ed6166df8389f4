/* SPDX-License-Identifier: MIT */
/* Counters at context switches, against thread profiling. */
#include "kernel/cpu.h"
#include "kernel/isolate.h"
#include "kernel/sched.h"
#include "tests/etw.h"
#include "tests/peek.h"
#include "tests/ring3/ring3.h"
#include "tests/user.h"

static void counts_agree(uint64_t yields, uint64_t switches)
{
    struct process *process = process_create();
    REQUIRE(process != NULL);
    struct thread *thread = user_start(process, (void (*)(void))user_trace_counts, yields);
    if (thread)
        sched_wait((struct object *)thread, SCHED_FOREVER, Executive);
    uint64_t compared = peek(process, &user_values[0]);
    CHECK_RANGE(compared, switches, 100 * switches); /* each yield is one, and ticks add some */
    test_note("%lu switches of 8 threads on %u CPUs compared", compared, cpu_count);
    user_finish(process, thread);
}

TEST(etw_counts, equal_profiling,
     "what 8 threads count by context switch records is, exactly, what thread profiling says [ET-31]")
{
    SKIP_WITHOUT_PMU();
    if (isolate_on)
        SKIP("the policy is isolate");
    if (cpu_count == 1)
        counts_agree(700, 5000);
    else
        counts_agree(200, 500);
}
