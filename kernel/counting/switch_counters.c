/* SPDX-License-Identifier: MIT */
/* What a switch needs to know of the counters: the elements configured, and under `isolate` the
 * counters themselves, which hold the running thread's own counts. Written by counter_config.c and
 * counters_run.c. IPI_LEVEL. */
#include "hal/owners.h"
#include "kernel/counting/switch_counters.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/rdpmc.h"
#include "kernel/base/x86.h"
#include "kernel/counting/thread_profiling.h"

struct counter_element counter_config[MAX_HW_COUNTERS];
ULONG counter_config_count;
bool counter_config_uneven;
uint32_t counter_config_generation;
enum counters_lost counter_config_lost;
uint64_t thread_profiling_pce = CR4_PCE;

bool isolate_on; /* written once, at boot */
uint64_t isolate_configured;
uint64_t isolate_ran[MAX_CPUS];
/* By CPU, which alone uses its element: whose counts the counters hold. */
static const struct thread_profiling *loaded[MAX_CPUS];

uint64_t counter_config_mask(unsigned element)
{
    return counter_config_uneven ? hal_counter_mask(counter_config[element].selector)
                                 : counter_config[element].mask;
}

ULONG thread_profiling_unused_bits(void)
{
    ULONG lack[2] = { 0, 0 }, off = thread_profiling_pce ? 0 : THREAD_PROFILING_NO_RDPMC;
    for (ULONG i = 0; i < counter_config_count; i++)
        lack[(counter_config[i].selector & RDPMC_FIXED) != 0] =
            (ULONG)__builtin_clzl(counter_config_mask(i));
    if (!lack[0] || lack[0] == lack[1])
        return lack[1] | off;
    return lack[0] | lack[1] << 8 | off;
}

static void save(struct thread_profiling *p)
{
    for_each_bit(i, p->active) {
        struct reading *r = &p->readings[i];
        uint64_t value = rdpmc(r->selector);
        r->total += (value - r->start) & counter_config_mask(i);
        r->start = value;
        p->block->HwCounters[i].Total = r->total;
        p->block->HwCounters[i].Start = value;
    }
}

static void load(struct thread_profiling *p)
{
    for_each_bit(ctr, isolate_configured & ~p->counters)
        hal_counter_write(1ul << ctr, 0);
    for_each_bit(i, p->active) {
        struct reading *r = &p->readings[i];
        r->start = hal_counter_write(hal_counter_bit(r->selector), r->total);
        p->block->HwCounters[i].Start = r->start;
    }
}

void isolate_switch(struct thread_profiling *out, struct thread_profiling *in)
{
    unsigned cpu = cpu_number();
    bool stops = hal_counters_stop_at_once();
    if (out && out->mask) {
        if (stops)
            hal_counters_run(isolate_configured, 0);
        save(out);
    }
    if (!in || !in->mask)
        return;
    bool still_there = stops && loaded[cpu] == in && in->loaded_on == cpu &&
                       !(hal_counters_running() & isolate_configured);
    if (!still_there) {
        hal_counters_run(isolate_configured, stops ? 0 : in->counters & isolate_ran[cpu]);
        load(in);
        loaded[cpu] = in;
        in->loaded_on = cpu;
    }
    hal_counters_run(isolate_configured, in->counters & isolate_ran[cpu]);
}
