/* SPDX-License-Identifier: MIT */
/* What reading costs, ring-3 half: counted by a counter of ring 3's instructions, element 0, while nothing else
 * happens; a try that an interrupt fell into is more, so the least of some counts. */
#include "tests/ring3/helpers.h"

#define TRIES 20
#define COUNTERS READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS
#define ALL (READ_THREAD_PROFILING_FLAG_DISPATCHING | COUNTERS)

uint64_t user_cost[4]; /* instructions, RDPMCs, CPUID leaf of the accesses between */

void user_cost_idle(uint64_t mask);
void user_cost_read(uint64_t mask);
void user_cost_raw(uint64_t selector);

/* Profiled, and asleep until it is terminated. */
void user_cost_idle(uint64_t mask)
{
    HANDLE profile;
    CHECK_EQ(EnableThreadProfiling(GetCurrentThread(), 1, mask, &profile), ERROR_SUCCESS);
    __atomic_store_n(&user_cost[0], 1, __ATOMIC_RELEASE);
    Sleep(INFINITE);
}

/* RDPMCs of this CPU since start, as the virtual PMU counts them. */
static uint32_t rdpmcs(void)
{
    uint32_t eax = 0x40000001, ebx, ecx = 0, edx;
    asm volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    return eax;
}

static uint64_t instructions_of(HANDLE profile, uint32_t selector, bool call)
{
    PERFORMANCE_DATA data;
    uint64_t best = ~UINT64_C(0);
    ring3_data(&data);
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t before = ring3_pmc(selector);
        if (call)
            RtlReadThreadProfilingData(profile, ALL, &data);
        uint64_t count = ring3_pmc(selector) - before;
        best = count < best ? count : best;
    }
    return best;
}

void user_cost_read(uint64_t mask)
{
    HANDLE profile;
    PERFORMANCE_DATA data;
    ring3_data(&data);
    CHECK_EQ(EnableThreadProfiling(GetCurrentThread(), 1, mask, &profile), ERROR_SUCCESS);
    uint32_t selector = ((const THREAD_PERFORMANCE_DATA *)profile)->HwCounters[0].Index, least = ~0u;
    user_cost[0] = instructions_of(profile, selector, true) - instructions_of(profile, selector, false);
    for (unsigned i = 0; i < TRIES; i++) {
        uint32_t before = rdpmcs();
        RtlReadThreadProfilingData(profile, ALL, &data);
        uint32_t count = rdpmcs() - before;
        least = count < least ? count : least;
    }
    user_cost[1] = least;
    CHECK_EQ(DisableThreadProfiling(profile), ERROR_SUCCESS);
}
