/* SPDX-License-Identifier: MIT */
/* A thread that looks for others' counts, and threads that make some. */
#include "kernel/base/rdpmc.h"
#include "tests/ring3/helpers.h"

void user_seek(uint64_t counters);
void user_noise(uint64_t mask);

/* The RDPMC selector of a bit of the global status register. */
static uint32_t selector_of(unsigned ctr) { return ctr < 32 ? ctr : RDPMC_FIXED + ctr - 32; }

/* Executes the same instructions in each iteration, so its own counter grows by the same number in
 * each; any other counter stands at 0. Checks only what is wrong: a check is not the same
 * instructions. */
void user_seek(uint64_t counters)
{
    HANDLE profile;
    unsigned iterations = test_long() ? 5000 : 1000; /* of each of four threads */
    uint64_t last, last_grown = 0, changes = 0, foreign = 0;
    profile = ring3_enable(1, 1);
    uint32_t own = ((const THREAD_PERFORMANCE_DATA *)profile)->HwCounters[0].Index;
    last = __readpmc(own);
    CHECK(last < 10000); /* instructions since the enable */
    for (unsigned i = 0; i < iterations; i++) {
        ZwYieldExecution();
        for (unsigned ctr = 0; ctr < 64; ctr++)
            if (counters >> ctr & 1 && selector_of(ctr) != own)
                foreign |= __readpmc(selector_of(ctr));
        uint64_t now = __readpmc(own), grown = now - last;
        last = now;
        changes += grown != last_grown;
        last_grown = grown;
    }
    CHECK_EQ(foreign, 0);
    CHECK_EQ(changes,
             2); /* from 0, and after the first iteration, which has the way into the loop in it */
    PERFORMANCE_DATA data;
    ring3_read(profile, 3, &data);
    CHECK(data.ContextSwitchCount >= iterations);
    ring3_disable(profile);
}

/* Counts on all the elements of `mask`, a different number each time; 0: not profiled. Until it is
 * terminated. */
void user_noise(uint64_t mask)
{
    uint64_t state = 88172645463325252;
    if (mask)
        ring3_enable(1, mask);
    for (;;) {
        ring3_work(ring3_random(&state) % 100);
        ZwYieldExecution();
    }
}
