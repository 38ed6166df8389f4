/* SPDX-License-Identifier: MIT */
/* Sampling that is spread over processors and intervals: another counter where the first one's is
 * taken, another interval for what runs already. */
#include "hal/machine/apic.h"
#include "hal/owners.h"
#include "hal/source.h"
#include "kernel/ke/sched.h"
#include "kernel/services/services.h"
#include "tests/harness/profile.h"

#define PERIOD 20000u
#define ITERATIONS 10000u
#define ROUNDS 1000u
#define WANTED 3u
#define SHORTEST 1221u /* of ProfileTime, 100 ns each */

static bool sampled_all(const ULONG *counts)
{
    for (unsigned i = 0; i < ROUNDS && __atomic_load_n(counts, __ATOMIC_RELAXED) < WANTED; i++)
        profile_loop(ITERATIONS);
    return __atomic_load_n(counts, __ATOMIC_RELAXED) >= WANTED;
}

TEST(profile_spread, counter_taken,
     "if the others' counter is taken on one processor, that processor samples by another counter "
     "[PO-44]")
{
    HANDLE taken;
    ULONG counts = 0;
    uint64_t select;
    SKIP_WITHOUT_SOURCE();
    SKIP_BELOW_CPUS(2);
    ULONG before = hal_source_interval(SOURCE);
    uint64_t able =
        source_counters(pmu_of(0), SOURCE, &select) & hal_counters_available(cpu_set_one(0));
    uint64_t first = able & -able;
    if (!(source_counters(pmu_of(1), SOURCE, &select) & hal_counters_available(cpu_set_one(1)) &
          ~first))
        SKIP("no second counter for it");
    REQUIRE_OK(hal_counters_claim("profile_spread", cpu_set_one(1), first, NULL, &taken));
    hal_source_set_interval(SOURCE, PERIOD);
    HANDLE profile = profile_of_loop(&counts, SOURCE, 3);
    profile_start(profile);
    for (unsigned cpu = 0; cpu < 2; cpu++) {
        test_run_on(cpu);
        __atomic_store_n(&counts, 0, __ATOMIC_RELAXED);
        CHECK(sampled_all(&counts));
    }
    test_run_anywhere();
    profile_stop(profile);
    CHECK_STATUS(NtClose(profile), STATUS_SUCCESS);
    hal_source_set_interval(SOURCE, before);
    CHECK_STATUS(HalFreeHardwareCounters(taken), STATUS_SUCCESS);
}

/* Until some samples more have come, the timer here never has more left than its interval. A host
 * may be late with each of them. */
static bool never_more_left(uint64_t interval_ns, const ULONG *counts)
{
    uint64_t most = apic_timer_hz / 1000 * interval_ns / 1000000;
    ULONG before = __atomic_load_n(counts, __ATOMIC_RELAXED);
    while (__atomic_load_n(counts, __ATOMIC_RELAXED) < before + WANTED) {
        if (UINT32_MAX - apic_timer_elapsed() > most)
            return false;
        profile_loop(ITERATIONS / 100);
    }
    return true;
}

TEST(profile_spread, new_interval,
     "a new interval of ProfileTime shorter than the timer's is valid at once for what samples "
     "already, on the first processor and the last of its group [PO-71]")
{
    ULONG counts = 0, before = hal_source_interval(ProfileTime);
    SKIP_IF(sched_tick_ns() < 4 * SHORTEST * 100, "the timer's interval is as short");
    hal_source_set_interval(ProfileTime, (ULONG)(sched_tick_ns() / 100));
    HANDLE profile = profile_of_loop(&counts, ProfileTime, ~0ul);
    profile_start(profile);
    hal_source_set_interval(ProfileTime, SHORTEST);
    CHECK(never_more_left(SHORTEST * 100, &counts));
    test_run_on(cpus_of_group() - 1);
    CHECK(never_more_left(SHORTEST * 100, &counts));
    test_run_anywhere();
    profile_stop(profile);
    CHECK_STATUS(NtClose(profile), STATUS_SUCCESS);
    hal_source_set_interval(ProfileTime, before);
}
