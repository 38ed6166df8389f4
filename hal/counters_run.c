/* SPDX-License-Identifier: MIT */
/* How thread profiling uses counters that drivers own: it reads them, and under the policy
 * `isolate` starts, stops and writes them. All but hal_counters_agree: this CPU, IPI_LEVEL; changes
 * at PROFILE_LEVEL, because the interrupt pauses all counters. */
#include "hal/owners.h"
#include "hal/machine/smp.h"
#include "kernel/base/bits.h"
#include "kernel/base/irql.h"
#include "pmu/pmu.h"

uint64_t hal_counters(void) { return pmu_here()->counters; }
uint64_t hal_counters_running(void) { return pmu_running(); }
bool hal_counters_stop_at_once(void) { return pmu_here()->msr.global_control != 0; }

uint64_t hal_counter_bit(uint64_t selector)
{
    unsigned ctr = pmu_rdpmc_counter(selector);
    bool exists = ctr < 64 && pmu_rdpmc_index(ctr) == selector;
    return exists ? pmu_here()->counters & PMU_BIT(ctr) : 0;
}

bool hal_counters_kept(uint64_t counters) { return !counters || pmu_kept(bit_lowest(counters)); }

uint64_t hal_counter_mask(uint64_t selector)
{
    return pmu_mask(pmu_here(), pmu_rdpmc_counter(selector));
}

/* The selects of some counters of a CPU. */
struct selected {
    uint64_t counters, selects[64];
};

static void read_selects(void *argument)
{
    struct selected *s = argument;
    for_each_bit(ctr, s->counters)
        s->selects[ctr] = pmu_selected((unsigned)ctr);
}

static bool selects_agree(unsigned ctr, const struct pmu_kind *a, uint64_t select_a,
                          const struct pmu_kind *b, uint64_t select_b)
{
    if (ctr < PMU_FIXED)
        return pmu_same_meaning(a, select_a, b, select_b);
    /* Fixed counters count the same events on all kinds. */
    return !((select_a ^ select_b) & (PMU_USER | PMU_KERNEL));
}

bool hal_counters_agree(struct cpu_set among, uint64_t counters, unsigned *ctr)
{
    struct selected first = { .counters = counters }, other = first;
    uint32_t kinds = pmu_kinds_of(among);
    unsigned cpu = cpu_set_next(&among, 0);
    if (!(kinds & (kinds - 1)))
        return true;
    const struct pmu_kind *pmu = pmu_of(cpu);
    smp_call(cpu_set_one(cpu), read_selects, &first);
    while ((cpu = cpu_set_next(&among, cpu + 1)) < cpu_count) {
        smp_call(cpu_set_one(cpu), read_selects, &other);
        for_each_bit(i, counters) {
            *ctr = (unsigned)i;
            if (!selects_agree(*ctr, pmu, first.selects[*ctr], pmu_of(cpu), other.selects[*ctr]))
                return false;
        }
    }
    return true;
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
    unsigned ctr = bit_lowest(counter);
    value &= pmu_max_period(pmu_here(), ctr);
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_write(ctr, value);
    irql_lower(old);
    return value;
}
