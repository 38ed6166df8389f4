/* SPDX-License-Identifier: MIT */
/* RDPMC and the MSR instructions in ring 3, the half that executes them. */
#include "tests/ring3/helpers.h"

#define NOTHING 0xdeadull

void user_rdpmc_allowed(uint64_t selector);
void user_rdpmc_plain(uint64_t selector);
void user_rdmsr(uint64_t msr);
void user_wrmsr(uint64_t msr);
extern uint64_t user_rdpmc_value;
uint64_t user_rdpmc_value = NOTHING;

void user_rdpmc_plain(uint64_t selector) { user_rdpmc_value = __readpmc((uint32_t)selector); }

void user_rdpmc_allowed(uint64_t selector)
{
    HANDLE profile;
    if (CHECK_EQ(EnableThreadProfiling(GetCurrentThread(), 0, 1, &profile), ERROR_SUCCESS))
        user_rdpmc_plain(selector);
}

void user_rdmsr(uint64_t msr)
{
    uint32_t low, high;
    asm volatile("rdmsr" : "=a"(low), "=d"(high) : "c"((uint32_t)msr));
    user_rdpmc_value = low;
}

void user_wrmsr(uint64_t msr) { asm volatile("wrmsr" : : "c"((uint32_t)msr), "a"(0), "d"(0)); }
