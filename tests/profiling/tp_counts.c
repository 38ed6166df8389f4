/* SPDX-License-Identifier: MIT */
/* Counts of profiled threads: the order of elements, to which thread counts belong, and that
 * none is lost. Exact numbers are in exact.c. */
#include "tests/harness/peek.h"

#define FILL 0xa5
#define WORK 100000 /* iterations of two or more instructions in user_measure */
#define READ_MAX                                                                                   \
    20000 /* instructions around it: the read, and the calls; an emulator's margin included */

/* Runs user_measure with this mask; what it read. */
static bool measure_mask(uint64_t mask, PERFORMANCE_DATA *data)
{
    struct process *process = user_process();
    struct thread *thread = user_start(process, user_measure, mask);
    bool ok =
        user_wait(thread) && CHECK(user_read(process, data, (uint64_t)&user_data, sizeof *data));
    user_finish(process, thread);
    return ok;
}

static bool untouched(const HARDWARE_COUNTER_DATA *element)
{
    HARDWARE_COUNTER_DATA fill;
    memset(&fill, FILL, sizeof fill);
    return memcmp(element, &fill, sizeof fill) == 0;
}

static void counted_element(const HARDWARE_COUNTER_DATA *element)
{
    CHECK_EQ(element->Type, PMCCounter);
    CHECK_EQ(element->Reserved, 0);
    CHECK_RANGE(element->Value, 2 * WORK,
                3 * WORK + READ_MAX); /* 2 or 3 instructions an iteration */
}

TEST(tp_counts, elements,
     "each mask fills its elements, reports their number, and leaves the others alone [TP-28 "
     "TP-52 TP-72 TP-74 TP-75 TP-76 slow]")
{
    unsigned ctr, same[3];
    PERFORMANCE_DATA data;
    static const uint64_t masks[] = { 1, 2, 4, 5, 7, 8, 0xd, 0x8000, 0xffff };
    SKIP_WITHOUT_PMU();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    same[0] = same[1] = same[2] = ctr;
    counting_configure(same, 3);
    for (unsigned m = 0; m < ARRAY_SIZE(masks); m++) {
        if (!measure_mask(masks[m], &data))
            continue;
        CHECK_EQ(data.HwCountersCount, (masks[m] & 1) + (masks[m] >> 1 & 1) + (masks[m] >> 2 & 1));
        for (unsigned i = 0; i < MAX_HW_COUNTERS; i++)
            if (!(masks[m] >> i & 1))
                CHECK(untouched(&data.HwCounters[i]));
            else if (i < 3)
                counted_element(&data.HwCounters[i]);
            else
                CHECK_EQ(data.HwCounters[i].Value, 0);
    }
    if (measure_mask(
            7, &data)) /* one counter is read three times, with the reader's loop in between */
        for (unsigned i = 0; i < 2; i++)
            CHECK_RANGE(data.HwCounters[i + 1].Value - data.HwCounters[i].Value,
                        thread_profiling_pce ? 1 : 0, thread_profiling_pce ? 200 : 0);
    counting_stop();
}

TEST(tp_counts, elements_in_order,
     "element i is the counter of element i of the configuration [TP-73]")
{
    static const enum pmu_event events[] = { PMU_INSTRUCTIONS, PMU_INSTRUCTIONS };
    unsigned ctrs[2];
    PERFORMANCE_DATA data;
    SKIP_WITHOUT_PMU();
    SKIP_IF(!counting_possible(events, 2), "needs two counters of instructions");
    REQUIRE(counting_start_many(events, 2, PMU_USER, ctrs));
    counting_pause(PMU_BIT(ctrs[1]));
    for (unsigned round = 0; round < 2; round++) {
        unsigned order[] = { ctrs[round], ctrs[1 - round] };
        if (counting_configure(order, 2) && measure_mask(3, &data)) {
            CHECK_EQ(data.HwCountersCount, 2);
            counted_element(&data.HwCounters[round]);
            CHECK_EQ(data.HwCounters[1 - round].Value, 0);
        }
    }
    counting_stop();
}

TEST(tp_block, counted,
     "blocks across pages, freed, read-only or written by others do no harm while counters count "
     "[TP-96 slow]")
{
    unsigned ctr, same[2];
    SKIP_WITHOUT_PMU();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    same[0] = same[1] = ctr;
    counting_configure(same, 2);
    CHECK_STATUS(user_run(user_block_straddles, 3), STATUS_SUCCESS);
    CHECK_STATUS(user_run(user_block_written, 3), STATUS_SUCCESS);
    CHECK_STATUS(user_run(user_block_freed, 3), STATUS_SUCCESS);
    counting_stop();
}

#define BURNS 5u
#define BURN_NS 2000000u

static uint64_t burned; /* ticks in the last burn, by that CPU's own clock */

static void burn(void *)
{
    uint64_t start = rdtsc(), end = clock_ns() + BURN_NS;
    while (clock_ns() < end)
        pause();
    burned = rdtsc() - start;
}

TEST(tp_counts, interrupts_not_in_cycles,
     "time of interrupt handlers is not in the thread's cycles, the rest is [TP-69]")
{
    SKIP_BELOW_CPUS(2);
    static const uint64_t enough = 2;
    uint64_t ticks = clock_tsc_hz / 20, taken = 0;
    unsigned there = cpu_count - 1;
    test_run_on(0);
    struct runner r = start_on(user_interrupted, ticks, cpu_set_one(there));
    if (r.thread && peek_wait(r.process, &user_state, 1))
        for (unsigned i = 0; i < BURNS; i++) {
            smp_call(cpu_set_one(there), burn, NULL);
            taken += burned;
        }
    if (r.thread) {
        CHECK(process_write(r.process, (uint64_t)&user_state, &enough, sizeof enough));
        sched_wait(&r.thread->object, SCHED_FOREVER, Executive);
        uint64_t elapsed = peek(r.process, &user_values[0]);
        uint64_t cycles = peek(r.process, &user_values[1]);
        CHECK(elapsed >= ticks && elapsed > taken);
        /* All of that time lies between the readings, and these between those of the clock. The
         * lower bound is for the timer's handlers, which slow emulators make long. */
        CHECK_RANGE(cycles, (elapsed - taken) / 4, elapsed - taken);
    }
    user_finish(r.process, r.thread);
}
