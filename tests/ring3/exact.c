/* SPDX-License-Identifier: MIT */
/* Exact counts, ring-3 half. A region's count is the difference of two readings less that of an empty region.
 * A reading that a switch fell into was repeated inside (RetryCount), which costs instructions: such a measurement
 * is made again, and how often is reported. */
#include "tests/ring3/work.h"
#include "tests/test.h"
#include "windows.h"

#define READ_ALL (READ_THREAD_PROFILING_FLAG_DISPATCHING | READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS)
#define TRIES 100

struct region {
    uint64_t count;
    uint32_t switches;
};

static bool read(HANDLE profile, PERFORMANCE_DATA *data)
{
    data->Size = sizeof *data;
    data->Version = PERFORMANCE_DATA_VERSION;
    return ReadThreadProfilingData(profile, READ_ALL, data) == ERROR_SUCCESS;
}

static bool measure(HANDLE profile, void (*volatile work)(void), struct region *region)
{
    PERFORMANCE_DATA before, after;
    for (unsigned tries = 0; tries < TRIES; tries++) {
        if (!CHECK(read(profile, &before)))
            return false;
        work();
        if (!CHECK(read(profile, &after)))
            return false;
        if (after.RetryCount == 0) {
            region->count = after.HwCounters[0].Value - before.HwCounters[0].Value;
            region->switches = after.ContextSwitchCount - before.ContextSwitchCount;
            return true;
        }
    }
    return CHECK(!"a reading without a switch inside");
}

struct known {
    void (*work)(void);
    uint64_t instructions;
    unsigned runs;
};

static const struct known all_known[] = {
    { work_1, 1, 100 }, { work_10, 10, 100 }, { work_1000, 1000, 100 }, { work_100000, 100000, 10 },
    { work_1000000, 1000000, 1 },
};

static unsigned run_known(HANDLE profile, const struct known *known, uint64_t empty)
{
    struct region region;
    unsigned switches = 0;
    for (unsigned run = 0; run < known->runs; run++) {
        if (!measure(profile, known->work, &region))
            return switches;
        if (!CHECK_EQ(region.count - empty, known->instructions))
            return switches;
        switches += region.switches;
    }
    return switches;
}

static bool begin(HANDLE *profile, uint64_t *empty)
{
    struct region region;
    if (!CHECK_EQ(EnableThreadProfiling(GetCurrentThread(), THREAD_PROFILING_FLAG_DISPATCH, 1, profile),
                  ERROR_SUCCESS) ||
        !measure(*profile, work_0, &region))
        return false;
    *empty = region.count;
    return CHECK(*empty > 0);
}

void user_exact_known(uint64_t unused);
void user_exact_known(uint64_t unused)
{
    HANDLE profile;
    uint64_t empty;
    (void)unused;
    if (!begin(&profile, &empty))
        return;
    for (unsigned i = 0; i < sizeof all_known / sizeof all_known[0]; i++)
        run_known(profile, &all_known[i], empty);
    CHECK_EQ(DisableThreadProfiling(profile), ERROR_SUCCESS);
}

/* One of all_known, that many times: its number in bits 63:32, runs below. */
void user_exact_runs(uint64_t what);
void user_exact_runs(uint64_t what)
{
    struct known known = all_known[what >> 32];
    HANDLE profile;
    uint64_t empty;
    if (!begin(&profile, &empty))
        return;
    known.runs = (unsigned)what;
    run_known(profile, &known, empty);
    CHECK_EQ(DisableThreadProfiling(profile), ERROR_SUCCESS);
}

uint64_t user_exact_ready[2]; /* atomic; threads that are profiled; that have done their work */

/* Somebody adds `jump` to the counter while it runs: seen in full, in one stretch. The next stretch
 * wraps, and is exact. */
void user_exact_jump(uint64_t jump);
void user_exact_jump(uint64_t jump)
{
    static const struct known long_one = { work_1000000, 1000000, 3 };
    HANDLE profile;
    uint64_t empty, grown;
    PERFORMANCE_DATA before, now;
    if (!begin(&profile, &empty) || !CHECK(read(profile, &before)))
        return;
    __atomic_store_n(&user_exact_ready[0], 1, __ATOMIC_RELEASE);
    do {
        if (!CHECK(read(profile, &now)))
            return;
        grown = now.HwCounters[0].Value - before.HwCounters[0].Value;
    } while (grown < jump / 2);
    CHECK_RANGE(grown, jump, jump + UINT32_MAX / 2); /* and what this loop executed */
    CHECK_EQ(now.ContextSwitchCount, before.ContextSwitchCount);
    Sleep(1); /* a stretch is less than the counter's width */
    run_known(profile, &long_one, empty);
    CHECK_EQ(DisableThreadProfiling(profile), ERROR_SUCCESS);
}

/* Profiled, sleeps, works with sleeps between, then sleeps until it is terminated: while it sleeps its counts stand. */
void user_exact_rounds(uint64_t rounds);
void user_exact_rounds(uint64_t rounds)
{
    HANDLE profile;
    uint64_t empty;
    if (!begin(&profile, &empty))
        return;
    __atomic_fetch_add(&user_exact_ready[0], 1, __ATOMIC_RELEASE);
    Sleep(100);
    for (uint64_t i = 0; i < rounds; i++) {
        work_100000();
        if (i % 4 == 0)
            Sleep(1);
    }
    __atomic_fetch_add(&user_exact_ready[1], 1, __ATOMIC_RELEASE);
    Sleep(INFINITE);
}

/* Goes on until `wanted` switches fell into measured regions: then exactness survived them. */
void user_exact_switched(uint64_t wanted);
void user_exact_switched(uint64_t wanted)
{
    static const struct known long_one = { work_100000, 100000, 10 };
    HANDLE profile;
    uint64_t empty, switches = 0;
    if (!begin(&profile, &empty))
        return;
    for (unsigned i = 0; i < 1000 && switches < wanted; i++)
        switches += run_known(profile, &long_one, empty);
    CHECK(switches >= wanted);
    CHECK_EQ(DisableThreadProfiling(profile), ERROR_SUCCESS);
}

/* Two RDPMCs with two moves between: three instructions from reading to reading, on this CPU. */
void user_exact_raw(uint64_t selector);
void user_exact_raw(uint64_t selector)
{
    HANDLE profile;
    uint64_t empty, best = ~0ul;
    if (!begin(&profile, &empty))
        return;
    for (unsigned i = 0; i < 100; i++) {
        uint64_t found = work_pmc_pair((uint32_t)selector);
        best = found < best ? found : best; /* a migration in between may add anything */
    }
    CHECK_EQ(best, 3);
    CHECK_EQ(DisableThreadProfiling(profile), ERROR_SUCCESS);
}

/* Company for the measured thread: computes in ring 3 until its creator terminates it. */
void user_exact_spin(uint64_t unused);
void user_exact_spin(uint64_t unused)
{
    (void)unused;
    for (;;)
        work_1000();
}
