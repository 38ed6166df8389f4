/* SPDX-License-Identifier: MIT */
/* Counters that two threads allocate and free: the second call comes at each instruction of the
 * first. */
#include "tests/harness/kernel.h"

static HANDLE handle, made[2]; /* of what is freed; what the calls have made */
static unsigned owned, ctr;

static NTSTATUS take(unsigned which) { return take_one(cpu_all(), ctr, &made[which]); }
static NTSTATUS take_first(void) { return take(0); }
static NTSTATUS take_second(void) { return take(1); }
static NTSTATUS free_it(void) { return HalFreeHardwareCounters(handle); }

static bool begin_taken(void)
{
    made[0] = made[1] = NULL;
    return CHECK_OK(take_one(cpu_all(), ctr, &handle));
}

static bool begin_free(void)
{
    made[0] = made[1] = NULL;
    return true;
}

static void end_counters(void)
{
    for (unsigned i = 0; i < 2; i++)
        if (made[i])
            free_and_check(made[i]);
    CHECK_EQ(hal_counters_owned(), owned);
}

static const struct collision of_counters[] = {
    COLLISION(HalFreeHardwareCounters, begin_taken, free_it, free_it, end_counters,
              ONE_WINS(STATUS_INVALID_PARAMETER)),
    COLLISION(HalFreeHardwareCounters, begin_taken, free_it, take_second, end_counters,
              LOSES(0, STATUS_INSUFFICIENT_RESOURCES)),
    COLLISION(HalAllocateHardwareCounters, begin_free, take_first, take_second, end_counters,
              ONE_WINS(STATUS_INSUFFICIENT_RESOURCES)),
};

TEST(hal_colliders, counters,
     "a counter that two threads allocate or free at once is one's, or is free, and freed once")
{
    SKIP_WITHOUT_PMU();
    ctr = bit_lowest(pmu_common_counters(cpu_all()));
    owned = hal_counters_owned();
    test_run_on(0);
    STEP_COLLIDE(of_counters);
}
