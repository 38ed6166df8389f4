/* SPDX-License-Identifier: MIT */
/* The counter driver for ring 3, with several processes: one at a time configures, and its
 * configuration ends with it. */
#include "tests/harness/peek.h"

/* A process that has configured a counter. */
static struct runner start_holder(void) { return start_ready(user_driver_hold, 0, SMP_ALL); }

static struct runner start_profiled(void (*function)(uint64_t))
{
    return start_ready(function, 1, SMP_ALL);
}

static void nothing_configured(void)
{
    HARDWARE_COUNTER array[MAX_HW_COUNTERS];
    ULONG count = ~0u;
    CHECK_OK(KeQueryHardwareCounterConfiguration(array, MAX_HW_COUNTERS, &count));
    CHECK_EQ(count, 0);
}

TEST(tp_driver, second_process,
     "a second process cannot change the configuration of a first, but its threads count by it, "
     "beside a third one's, until the first ends [TP-32]")
{
    SKIP_WITHOUT_PMU();
    uint64_t before = hal_counters_available(SMP_ALL);
    for (unsigned i = 0; i < 2; i++) {
        struct runner holder = start_holder();
        REQUIRE(holder.thread != NULL);
        CHECK(hal_counters_available(SMP_ALL) != before);
        struct runner other = start_profiled(user_sleep_profiled); /* a third one */
        CHECK_OK(user_run(user_driver_second, peek(holder.process, &user_handle)));
        end_by_force(other.process, other.thread);
        end_by_force(holder.process, holder.thread);
        nothing_configured();
        CHECK_EQ(hal_counters_available(SMP_ALL), before);
        CHECK_STATUS(user_run(user_driver_set, STATUS_SUCCESS), STATUS_SUCCESS);
        CHECK_EQ(hal_counters_available(SMP_ALL), before);
    }
}

TEST(tp_driver, given_back,
     "a process that gave its counters back lets another configure, although it goes on")
{
    SKIP_WITHOUT_PMU();
    uint64_t before = hal_counters_available(SMP_ALL);
    struct runner former = start_ready(user_driver_hold, 1, SMP_ALL);
    REQUIRE(former.thread != NULL);
    CHECK_EQ(hal_counters_available(SMP_ALL), before);
    CHECK_OK(user_run(user_driver_set, STATUS_SUCCESS));
    end_by_force(former.process, former.thread);
}

/* Each CPU: there is nobody to whom a wrap is reported. */
static void check_selects(void *available)
{
    for_each_bit(ctr, pmu_here()->counters & ~*(const uint64_t *)available)
        if (!CHECK_EQ(pmu_selected(ctr) & (PMU_KERNEL | PMU_INTERRUPT), 0))
            return;
}

TEST(tp_driver, quiet,
     "counters of a process's configuration count ring 3 only and do not interrupt when they wrap")
{
    SKIP_WITHOUT_PMU();
    struct runner holder = start_holder();
    REQUIRE(holder.thread != NULL);
    uint64_t available = hal_counters_available(SMP_ALL);
    CHECK((pmu_common_counters(SMP_ALL) & ~available) != 0);
    smp_call(SMP_ALL, check_selects, &available);
    end_by_force(holder.process, holder.thread);
}

TEST(tp_driver, refused,
     "each reason against a configuration leaves none, also a source with any bit above 32")
{
    SKIP_WITHOUT_PMU(); /* nothing can be configured */
    CHECK_STATUS(user_run(user_driver_refused, 0), STATUS_SUCCESS);
    nothing_configured();
}

TEST(tp_driver, dies_while_others_count,
     "a configuration ends with its process, but its counters are free only when no thread uses "
     "them [TP-22 TP-78 slow]")
{
    SKIP_WITHOUT_PMU();
    uint64_t before = hal_counters_available(SMP_ALL);
    struct runner holder = start_holder();
    REQUIRE(holder.thread != NULL);
    struct runner reader = start_profiled(user_run_until_emptied),
                  sleeper = start_profiled(user_sleep_profiled);
    end_by_force(holder.process, holder.thread);
    user_finish(reader.process, reader.thread);
    nothing_configured();
    CHECK(hal_counters_available(SMP_ALL) != before);
    CHECK_OK(user_run(user_driver_set, (uint64_t)STATUS_WMI_ALREADY_ENABLED));
    end_by_force(sleeper.process, sleeper.thread);
    CHECK_EQ(hal_counters_available(SMP_ALL), before);
    CHECK_STATUS(user_run(user_driver_set, STATUS_SUCCESS), STATUS_SUCCESS);
}

TEST(tp_driver, beside_a_driver,
     "a driver's configuration is neither replaced by a process nor emptied by a process's end")
{
    unsigned ctr;
    ULONG count = 0;
    HARDWARE_COUNTER array[MAX_HW_COUNTERS];
    SKIP_WITHOUT_PMU();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    CHECK_OK(user_run(user_driver_set, (uint64_t)STATUS_WMI_ALREADY_ENABLED));
    counting_stop();
    struct runner holder = start_holder();
    REQUIRE(holder.thread != NULL);
    if (counting_start(PMU_INSTRUCTIONS, PMU_USER,
                       &ctr)) { /* a driver may replace what a process configured */
        end_by_force(holder.process, holder.thread);
        CHECK_OK(KeQueryHardwareCounterConfiguration(array, MAX_HW_COUNTERS, &count));
        CHECK_EQ(count, 1);
        CHECK_EQ(array[0].Index, pmu_rdpmc_index(ctr));
        counting_stop();
    }
}
