/* SPDX-License-Identifier: MIT */
/* A system call and readings as their caller sees them: with counters of both rings.
 * For tests/cost/cost_operations.c. */
#include "tests/ring3/helpers.h"

#define RUNS 11 /* COST_RUNS */

/* Of each function and run: instructions, cycles. */
uint64_t user_call_cost[5][2][RUNS];

/* The selector of the counter of cycles; 0 in the upper half: there is none. */
void user_cost_call(uint64_t cycles);

static HANDLE profile;
static uint32_t selector;

static void empty_function(void) { asm volatile(""); }
static void call_kernel(void) { NtGetCurrentProcessorNumber(); }

static PERFORMANCE_DATA data = { .Size = sizeof data, .Version = PERFORMANCE_DATA_VERSION };

static void read_by_service(void)
{
    ZwReadThreadProfilingData(profile, READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS, &data);
}

static void read_data(void)
{
    RtlReadThreadProfilingData(profile, READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS, &data);
}

static void read_raw_counter(void)
{
    uint64_t value = __readpmc(selector);
    asm volatile("" : : "r"(value));
}

struct reading {
    uint64_t instructions, cycles;
};

static struct reading measure_call(void (*function)(void), uint64_t cycles)
{
    void (*volatile to)(void) = function;
    uint64_t cycles_before = cycles >> 32 ? read_exactly((uint32_t)cycles) : 0;
    uint64_t before = read_exactly(selector);
    to();
    uint64_t after = read_exactly(selector);
    uint64_t cycles_after = cycles >> 32 ? read_exactly((uint32_t)cycles) : 0;
    return (struct reading){ after - before, cycles_after - cycles_before };
}

void user_cost_call(uint64_t cycles)
{
    static void (*const functions[5])(void) = { empty_function, call_kernel, read_by_service,
                                                read_data, read_raw_counter };
    profile = ring3_enable(1, 1);
    selector = ((const THREAD_PERFORMANCE_DATA *)profile)->HwCounters[0].Index;
    for (unsigned i = 0; i < 5 * RUNS; i++) {
        struct reading r = measure_call(functions[i / RUNS], cycles);
        user_call_cost[i / RUNS][0][i % RUNS] = r.instructions;
        user_call_cost[i / RUNS][1][i % RUNS] = r.cycles;
    }
    ring3_disable(profile);
}
