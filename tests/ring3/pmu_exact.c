/* SPDX-License-Identifier: MIT */
/* What tests/pmu/pmu_exact.c has ring 3 do. A difference of two readings less that of an empty
 * stretch is what the stretch executed. */
#include "tests/ring3/helpers.h"
#include "tests/ring3/work.h"

#define TRIES 20

void user_exact_steps(uint64_t selector);
void user_exact_long(uint64_t what);
void user_exact_loop(uint64_t unused);
extern uint64_t user_exact_counted;
uint64_t user_exact_counted;

static uint64_t stretch(uint32_t selector, void (*volatile work)(void))
{
    uint64_t start = read_exactly(selector);
    work();
    return read_exactly(selector) - start;
}

/* The least of several: what nothing came between. */
static uint64_t least(uint32_t selector, void (*work)(void))
{
    uint64_t best = ~0ull;
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t found = stretch(selector, work);
        best = found < best ? found : best;
    }
    return best;
}

static bool begin_profiling(HANDLE *profile)
{
    return CHECK_EQ(EnableThreadProfiling(GetCurrentThread(), 0, 1, profile), ERROR_SUCCESS);
}

void user_exact_steps(uint64_t selector)
{
    HANDLE profile;
    if (!begin_profiling(&profile))
        return;
    user_exact_counted = least((uint32_t)selector, work_1000) - least((uint32_t)selector, work_0);
    asm volatile(
        "pushfq\norq $0x100,(%%rsp)\npopfq\ncall work_1000\npushfq\nandq $~0x100,(%%rsp)\npopfq"
        :
        :
        : "rcx", "memory", "cc");
    ring3_disable(profile);
}

/* The selector, and in the upper half how many million instructions. */
void user_exact_long(uint64_t what)
{
    HANDLE profile;
    if (!begin_profiling(&profile))
        return;
    uint64_t empty = least((uint32_t)what, work_0);
    user_exact_counted = 0;
    for (uint64_t n = 0; n < what >> 32; n++)
        user_exact_counted += stretch((uint32_t)what, work_1000000) - empty;
    ring3_disable(profile);
}

void user_exact_loop(uint64_t unused)
{
    (void)unused;
    for (unsigned i = 0; i < 1000; i++)
        work_1000();
}

static __attribute__((noinline)) uint64_t touch(uint32_t selector, const volatile char *pages)
{
    uint64_t start = read_exactly(selector);
    for (unsigned i = 0; i < USER_PAGES; i++)
        (void)pages[i * 4096];
    return read_exactly(selector) - start;
}

void user_exact_touch(uint64_t selector)
{
    const volatile char *pages = (const volatile char *)USER_PAGES_AT;
    HANDLE profile;
    if (!begin_profiling(&profile))
        return;
    user_values[0] = touch((uint32_t)selector, pages);
    user_values[1] = ~0ull;
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t found = touch((uint32_t)selector, pages);
        user_values[1] = found < user_values[1] ? found : user_values[1];
    }
    user_values[2] = touch((uint32_t)selector, pages + USER_PAGES * 4096);
    ring3_disable(profile);
}
