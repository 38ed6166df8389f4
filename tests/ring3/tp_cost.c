/* SPDX-License-Identifier: MIT */
/* What reading costs, ring-3 half: counted by a counter of ring 3's instructions, element 0, while
 * nothing else happens; a try that an interrupt fell into is more, so the least of some counts. */
#include "tests/ring3/helpers.h"

#define TRIES 20
#define COUNTERS READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS
#define ALL (READ_THREAD_PROFILING_FLAG_DISPATCHING | COUNTERS)

/* Instructions and RDPMCs of a reading, instructions that ring 0 executed meanwhile. */
struct reading_cost {
    uint64_t instructions, rdpmcs, kernel;
};
uint64_t user_cost[9]; /* of ReadThreadProfilingData; of a raw reading; of one after LFENCE */

void user_cost_idle(uint64_t mask);
void user_cost_read(uint64_t mask_and_leaf);

/* Profiled, and asleep until it is terminated. */
void user_cost_idle(uint64_t mask)
{
    ring3_enable(1, mask);
    __atomic_store_n(&user_cost[0], 1, __ATOMIC_RELEASE);
    Sleep(INFINITE);
}

static int statistics_leaf;

/* What the virtual PMU counted of this CPU since start. */
static uint64_t rdpmcs(void)
{
    int r[4];
    __cpuidex(r, statistics_leaf, 0);
    return (uint32_t)r[0];
}

static uint64_t kernel_instructions(void)
{
    int r[4];
    __cpuidex(r, statistics_leaf, 2);
    return (uint64_t)(uint32_t)r[1] << 32 | (uint32_t)r[0];
}

enum what { NOTHING, DATA, RAW, EXACT };

static inline void read_once(enum what what, HANDLE profile, uint32_t selector)
{
    static PERFORMANCE_DATA data = { .Size = sizeof data, .Version = PERFORMANCE_DATA_VERSION };
    uint64_t value;
    if (what == DATA) {
        ReadThreadProfilingData(profile, ALL, &data);
    } else if (what == RAW) {
        value = __readpmc(selector);
        asm volatile("" : : "r"(value));
    } else if (what == EXACT) {
        value = read_exactly(selector);
        asm volatile("" : : "r"(value));
    }
}

static inline void least(uint64_t *of, uint64_t value) { *of = value < *of ? value : *of; }

/* Inlined, so that each kind is code of its own, and what is around the reading the same. */
static inline __attribute__((always_inline)) struct reading_cost cost_of(enum what what,
                                                                         HANDLE profile,
                                                                         uint32_t selector)
{
    struct reading_cost cost = { ~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0) };
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t before = read_exactly(selector);
        read_once(what, profile, selector);
        least(&cost.instructions, read_exactly(selector) - before);
        before = rdpmcs();
        read_once(what, profile, selector);
        least(&cost.rdpmcs, rdpmcs() - before);
        before = kernel_instructions();
        read_once(what, profile, selector);
        least(&cost.kernel, kernel_instructions() - before);
    }
    return cost;
}

static void report(uint64_t *where, struct reading_cost cost, struct reading_cost nothing)
{
    where[0] = cost.instructions - nothing.instructions;
    where[1] = cost.rdpmcs - nothing.rdpmcs;
    where[2] = cost.kernel;
}

/* The mask, and in bits 63:32 the leaf of CPUID that has the virtual PMU's statistics. */
void user_cost_read(uint64_t mask_and_leaf)
{
    HANDLE profile;
    uint64_t mask = (uint32_t)mask_and_leaf;
    statistics_leaf = (int)(mask_and_leaf >> 32);
    profile = ring3_enable(1, mask);
    uint32_t selector = ((const THREAD_PERFORMANCE_DATA *)profile)->HwCounters[0].Index;
    struct reading_cost nothing = cost_of(NOTHING, profile, selector);
    report(user_cost, cost_of(DATA, profile, selector), nothing);
    report(user_cost + 3, cost_of(RAW, profile, selector), nothing);
    report(user_cost + 6, cost_of(EXACT, profile, selector), nothing);
    uint64_t before = kernel_instructions();
    ZwYieldExecution();
    CHECK(kernel_instructions() - before > 10); /* so entries are seen */
    ring3_disable(profile);
}
