/* SPDX-License-Identifier: MIT */
/* Tests of thread profiling that need ring 0: configurations that change while threads are
 * profiled, threads that end, permission for RDPMC, several processes. Counts are in
 * tp_counts.c.
 *
 * Sources: Microsoft's pages; what they leave open is as in the TP lines of tests/contract.md. */
#include "tests/harness/peek.h"

static NTSTATUS set_one(uint64_t ctr)
{
    HARDWARE_COUNTER c = { PMCCounter, 0, pmu_rdpmc_index((unsigned)ctr) };
    return KeSetHardwareCounterConfiguration(&c, 1);
}

static void configured_counter(unsigned ctr)
{
    HARDWARE_COUNTER array[MAX_HW_COUNTERS];
    ULONG count = 0;
    CHECK_OK(KeQueryHardwareCounterConfiguration(array, MAX_HW_COUNTERS, &count));
    CHECK_EQ(count, 1);
    CHECK_EQ(array[0].Index, pmu_rdpmc_index(ctr));
}

TEST(tp_threads, configuration_in_use,
     "while a thread counts, the configuration cannot be replaced; a Count of 0 ends its counting "
     "[TP-19 TP-20 TP-21 TP-22 TP-75 TP-78 slow]")
{
    unsigned ctr;
    SKIP_WITHOUT_PMU();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    struct runner r = start_ready(user_run_until_emptied, 3, SMP_ALL);
    if (r.thread) {
        CHECK_EQ(counter_config_users(), 1);
        for_each_bit(c, common_counters())
            CHECK_STATUS(set_one(c), STATUS_WMI_ALREADY_ENABLED);
        configured_counter(ctr);
        uint64_t reads = peek(r.process, &user_reads);
        peek_wait(r.process, &user_reads, reads + 10);
        CHECK_STATUS(KeSetHardwareCounterConfiguration(NULL, 0), STATUS_SUCCESS);
        CHECK_STATUS(set_one(ctr), STATUS_WMI_ALREADY_ENABLED); /* it still has counters enabled */
        sched_wait(&r.thread->object, SCHED_FOREVER, Executive);
        CHECK_STATUS(set_one(ctr), STATUS_SUCCESS);
        configured_counter(ctr);
        user_finish(r.process, r.thread);
    }
    counting_stop();
}

TEST(tp_threads, configuration_not_in_use,
     "a thread that is profiled with mask 0 does not prevent a change of the configuration [TP-23]")
{
    SKIP_WITHOUT_PMU();
    uint64_t ctr = (uint64_t)__builtin_ctzll(common_counters());
    struct runner r = start_ready(user_sleep_profiled, 0, SMP_ALL);
    CHECK_EQ(counter_config_users(), 0);
    for (unsigned i = 0; i < 10; i++) {
        CHECK_STATUS(set_one(ctr), STATUS_SUCCESS);
        nap();
        CHECK_STATUS(KeSetHardwareCounterConfiguration(NULL, 0), STATUS_SUCCESS);
        nap();
    }
    end_by_force(r.process, r.thread);
}

static void ended(NTSTATUS found, NTSTATUS wanted)
{
    CHECK_STATUS(found, wanted);
    CHECK_EQ(counter_config_users(), 0);
    if (!test_has_pmu())
        return;
    CHECK_STATUS(set_one((uint64_t)__builtin_ctzll(common_counters())), STATUS_SUCCESS);
    CHECK_STATUS(KeSetHardwareCounterConfiguration(NULL, 0), STATUS_SUCCESS);
}

TEST(tp_threads, ends_enabled,
     "a thread that returns, faults or is terminated while it is profiled is no longer profiled "
     "[TP-53]")
{
    CHECK_EQ(counter_config_users(), 0);
    ended(user_run(user_end_profiled, 0xffff), STATUS_SUCCESS);
    ended(user_run(user_fault_profiled, 1), STATUS_ACCESS_VIOLATION);
    for (unsigned i = 0; i < 2; i++) {
        struct runner r = start_ready(i ? user_sleep_profiled : user_spin_profiled, 1, SMP_ALL);
        CHECK_EQ(counter_config_users(), 1);
        if (test_has_pmu())
            CHECK_STATUS(set_one((uint64_t)__builtin_ctzll(common_counters())),
                         STATUS_WMI_ALREADY_ENABLED);
        if (r.thread)
            thread_terminate(r.thread, STATUS_TIMEOUT);
        ended(user_end(r.process, r.thread), STATUS_TIMEOUT);
    }
}

/* --- Permission for RDPMC (CR4.PCE). It depends on the thread and not on counters, so these
 * tests run without a PMU too. --- */

static void not_allowed(struct cpu_set affinity)
{
    struct runner r = start_on(user_rdpmc_each, 0, affinity);
    if (user_wait(r.thread))
        CHECK_EQ(peek(r.process, &user_values[0]), USER_RDPMC_REFUSED);
    user_finish(r.process, r.thread);
}

#define SPUN 4u /* CPUs; each takes one of the host's */

/* Threads that spin and sleep while they are profiled, and others that have no leave. */
static void not_allowed_beside_others(void)
{
    struct runner spinning[SPUN], sleeping[SPUN];
    unsigned n = cpu_count < SPUN ? cpu_count : SPUN;
    for (unsigned cpu = 0; cpu < n; cpu++) {
        spinning[cpu] = start_ready(user_spin_profiled, 1, cpu_set_one(cpu));
        sleeping[cpu] = start_ready(user_sleep_profiled, 1, cpu_set_one(cpu));
    }
    CHECK_EQ(counter_config_users(), 2 * n);
    for (unsigned cpu = 0; cpu < n; cpu++)
        not_allowed(cpu_set_one(cpu));
    for (unsigned cpu = 0; cpu < n; cpu++) {
        end_by_force(spinning[cpu].process, spinning[cpu].thread);
        not_allowed(cpu_set_one(cpu));
        end_by_force(sleeping[cpu].process, sleeping[cpu].thread);
    }
}

TEST(tp_threads, rdpmc_beside_profiled,
     "RDPMC is refused to threads that did not enable counters, enabled none, or disabled them, "
     "while others are profiled, running, asleep or ended, on this CPU and on others; also while "
     "they count, where the switch takes its short path [TP-98]")
{
    not_allowed_beside_others();
    if (!test_has_pmu())
        return;
    CHECK_STATUS(set_one(bit_lowest(pmu_common_counters(SMP_ALL))), STATUS_SUCCESS);
    not_allowed_beside_others();
    CHECK_STATUS(KeSetHardwareCounterConfiguration(NULL, 0), STATUS_SUCCESS);
}

TEST(tp_threads, rdpmc_allowed,
     "a thread with hardware counters may execute RDPMC, on each CPU of its group, also between "
     "reads, and no count decreases; with rdpmc=off none may [TP-31 TP-81 TP-85 TP-97]")
{
    unsigned ctr;
    SKIP_WITHOUT_PMU();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    struct runner r = start_on(user_each_cpu, pmu_rdpmc_index(ctr), SMP_ALL);
    if (!thread_profiling_pce) {
        CHECK_STATUS(user_end(r.process, r.thread), STATUS_PRIVILEGED_INSTRUCTION);
    } else if (user_wait(r.thread)) {
        CHECK_EQ(peek(r.process, &user_values[0]), USER_ROUNDS * cpus_of_group());
        user_finish(r.process, r.thread);
    }
    counting_stop();
}
