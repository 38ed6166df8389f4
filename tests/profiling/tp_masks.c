/* SPDX-License-Identifier: MIT */
/* Switches between threads that count different elements. */
#include "tests/harness/peek.h"

#define ELEMENTS 3u
#define TICKS 30u
#define TICKS_FEW 8u
#define LEAST 1000u /* instructions of a thread that ran for a tick at least */

/* All elements have the same counter: of a thread that does not run they are equal. */
static void elements_agree(const struct thread *thread, uint64_t mask)
{
    const struct thread_profiling *p = thread->profiling;
    if (!CHECK(p != NULL))
        return;
    uint64_t first = p->readings[bit_lowest(mask)].total;
    CHECK(first >= LEAST);
    for_each_bit(i, mask)
        CHECK_EQ(p->readings[i].total, first);
    CHECK_EQ(p->switches > 1, true);
}

#define THREADS 6

/* Threads with these masks, all on one CPU, so that each is switched to another one. */
static void switch_among(const uint64_t *masks, unsigned count)
{
    struct runner runners[THREADS];
    for (unsigned i = 0; i < count; i++) {
        runners[i] = start_on(user_spin_profiled, masks[i], cpu_set_one(0));
    }
    for (unsigned i = 0; i < count; i++)
        if (runners[i].thread)
            peek_wait(runners[i].process, &user_state, 1);
    sched_wait(NULL, clock_ns() + (test_long() ? TICKS : TICKS_FEW) * sched_tick_ns(),
               DelayExecution);
    KIRQL old = irql_raise(DISPATCH_LEVEL);
    for (unsigned i = 0; i < count; i++)
        if (runners[i].thread)
            elements_agree(runners[i].thread, masks[i]);
    irql_lower(old);
    for (unsigned i = 0; i < count; i++)
        if (runners[i].process)
            end_by_force(runners[i].process, runners[i].thread);
}

TEST(tp_masks, mixed,
     "threads that count one, two or three elements, with holes between, are switched to each "
     "other and all elements of each agree [slow]")
{
    static const uint64_t masks[THREADS] = { 1, 7, 5, 2, 6, 4 };
    static const uint64_t without_holes[] = { 1, 7, 3 }; /* in any order each follows another */
    unsigned ctr, same[ELEMENTS];
    SKIP_WITHOUT_PMU();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    same[0] = same[1] = same[2] = ctr;
    counting_configure(same, ELEMENTS);
    test_run_on(0);
    switch_among(masks, THREADS);
    switch_among(without_holes, ARRAY_SIZE(without_holes));
    test_run_anywhere();
    counting_stop();
}

TEST(tp_masks, widths,
     "each element is summed up with the width of its own counter, not with that of the first one")
{
    unsigned ctr, same[2];
    SKIP_WITHOUT_PMU();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_KERNEL, &ctr));
    same[0] = same[1] = ctr;
    counting_configure(same, 2);
    struct process *process = user_pretend();
    REQUIRE(process != NULL);
    uint64_t mask = counter_config[1].mask;
    for (unsigned narrower = 0; narrower < 2; narrower++) {
        counter_config[1].mask = mask >> narrower;
        CHECK_OK(user_profile(true, 3));
        const struct thread_profiling *p = thread_current()->profiling;
        CHECK_EQ(p->plain,
                 narrower || isolate_on || counter_config_uneven ? 0 : 2 * sizeof(struct reading));
        CHECK_OK(user_profile(false, 3));
    }
    counter_config[1].mask = mask;
    user_pretend_end(process);
    counting_stop();
}
