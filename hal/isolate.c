/* SPDX-License-Identifier: MIT */
/* Starting, stopping and writing counters for kernel/isolate.c. On this CPU, IPI_LEVEL; the counters' interrupt,
 * which pauses all of them, is kept out. */
#include "hal/hal.h"
#include "kernel/irql.h"
#include "pmu/pmu.h"

uint64_t hal_counters(void) { return pmu_caps.counters; }
uint64_t hal_counters_running(void) { return pmu_running(); }
bool hal_counters_stop_at_once(void) { return pmu_caps.msr.global_control != 0; }

uint64_t hal_counter_bit(uint64_t selector)
{
    for (uint64_t rest = pmu_caps.counters; rest; rest &= rest - 1)
        if (pmu_rdpmc_index((unsigned)__builtin_ctzll(rest)) == selector)
            return rest & -rest;
    return 0;
}

void hal_counters_run(uint64_t counters, uint64_t run)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    uint64_t running = pmu_running(), stop = running & counters & ~run, start = run & ~running;
    if (stop)
        pmu_stop(stop);
    if (start)
        pmu_start(start);
    irql_lower(old);
}

uint64_t hal_counter_write(uint64_t counter, uint64_t value)
{
    unsigned ctr = (unsigned)__builtin_ctzll(counter);
    value &= pmu_max_period(ctr);
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_write(ctr, value);
    irql_lower(old);
    return value;
}
