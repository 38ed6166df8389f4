/* SPDX-License-Identifier: MIT */
/* A CPU's event buffer: its DS area and the records behind it, in pages of the kernel.
 *
 * Who owns the buffer programs the counters, IA32_PEBS_ENABLE and MSR_PEBS_DATA_CFG, and writes the
 * counters' reset values into the area at IA32_DS_AREA. Half of a buffer stays free for what the
 * CPU writes until the interrupt of the threshold is taken.
 *
 * No lock: a CPU's element changes on that CPU at PROFILE_LEVEL, or while it has no owner.
 *
 * Sources: ntddk.h and its pages; SDM volume 3, "Processor Event-Based Sampling" and "DS Save
 * Area". */
#include "hal/buffers/event_buffer.h"
#include "hal/machine/smp.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/irql.h"
#include "kernel/base/refuse.h"
#include "kernel/mm/phys.h"
#include "pmu/pebs/pebs.h"

#define BUFFER_PAGES 16u
#define BUFFER_BYTES (BUFFER_PAGES * PAGE_SIZE)
#define ALL_PAGES (1 + BUFFER_PAGES) /* the area's first */

static struct ds_area *areas[MAX_CPUS]; /* NULL: this CPU has no buffer */
static bool writes[MAX_CPUS];           /* records; const once CPUs run */

/* --- What a CPU can write. --- */

void event_buffer_init_cpu(void) { writes[cpu_number()] = pebs_is_here(); }

uint64_t event_buffer_counters(const struct pmu_kind *pmu)
{
    const struct pebs_facts *facts = pebs_facts_of(pmu);
    return facts ? facts->counters & pmu->counters : 0;
}

static bool writes_size(const struct pebs_facts *facts, ULONG size)
{
    if (!size)
        return true;
    for (uint64_t groups = 0; groups <= facts->groups; groups++)
        for (unsigned n = 1; n <= 32; n++) {
            ULONG least = pebs_record_size(groups | PEBS_LBR_ENTRIES(n)),
                  values = groups & PEBS_COUNTERS ? 8 * bit_count(facts->counters) : 0;
            if (size >= least && size - least <= values && size % 8 == 0)
                return true;
        }
    return false;
}

struct question {
    ULONG entry_size;
    bool no_records, no_size; /* atomic: of some CPU */
};

static void ask_here(void *argument)
{
    struct question *q = argument;
    if (!writes[cpu_number()])
        __atomic_store_n(&q->no_records, true, __ATOMIC_RELAXED);
    else if (!writes_size(pebs_facts(), q->entry_size))
        __atomic_store_n(&q->no_size, true, __ATOMIC_RELAXED);
}

NTSTATUS event_buffer_check(struct cpu_set among, ULONG entry_size)
{
    struct question q = { .entry_size = entry_size };
    smp_call(among, ask_here, &q);
    return q.no_records ? STATUS_NOT_SUPPORTED
           : q.no_size  ? STATUS_INVALID_PARAMETER
                        : STATUS_SUCCESS;
}

/* --- Buffers. --- */

struct wanted {
    ULONG entry_size, threshold;
    bool refused; /* atomic: some CPU does not take the area */
};

static void attach_here(void *argument)
{
    struct wanted *w = argument;
    ULONG size = w->entry_size ? w->entry_size : pebs_facts()->smallest;
    ULONG most = BUFFER_BYTES / 2 / size;
    struct ds_area *area = areas[cpu_number()];
    if (!pebs_attach(area, (uint8_t *)area + PAGE_SIZE, BUFFER_BYTES, size,
                     w->threshold < most ? w->threshold : most))
        __atomic_store_n(&w->refused, true, __ATOMIC_RELAXED);
}

bool event_buffer_open(struct cpu_set among, ULONG entry_size, ULONG threshold)
{
    struct wanted wanted = { entry_size, threshold, false };
    for_each_cpu(cpu, &among) {
        areas[cpu] = phys_alloc(ALL_PAGES);
        if (!areas[cpu])
            return false;
    }
    smp_call(among, attach_here, &wanted);
    return !wanted.refused;
}

void event_buffer_close(struct cpu_set among)
{
    for_each_cpu(cpu, &among) {
        if (areas[cpu])
            phys_free(areas[cpu], ALL_PAGES);
        areas[cpu] = NULL;
    }
}

/* An adaptive record says it; 0: somebody has written over it. */
static uint64_t size_of(const struct pebs_facts *facts, uint64_t record)
{
    return facts->groups ? *(const uint64_t *)record >> 48 : facts->smallest;
}

void event_buffer_drain(PPHYSICAL_COUNTER_EVENT_BUFFER_OVERFLOW_HANDLER handler, HANDLE owner)
{
    struct ds_area *area = areas[cpu_index()];
    if (!area)
        return;
    const struct pebs_facts *facts = pebs_facts();
    uint64_t at = area->base, end = area->index, size;
    while (at < end && (size = size_of(facts, at)) != 0 && size <= end - at) {
        uint64_t first = at, count = 0;
        for (uint64_t last = end - size; at <= last && size_of(facts, at) == size; at += size)
            count++;
        handler((PVOID)first, size, count, owner);
    }
    area->index = area->base;
}

struct event_buffer_sample event_buffer_sample(const void *record)
{
    struct pebs_record r;
    pebs_read(record, &r);
    return (struct event_buffer_sample){ bit_lowest(r.applicable | PMU_BIT(PMU_BUFFER)),
                                         r.address };
}

/* The event after the overflow is the period's last one. */
static uint64_t reset_of(unsigned ctr, uint64_t period)
{
    return (1 - period) & pmu_mask(pmu_here(), ctr);
}

void event_buffer_set_period(unsigned ctr, uint64_t period)
{
    pebs_set_reload(areas[cpu_index()], ctr, reset_of(ctr, period));
}

void event_buffer_arm(unsigned ctr, uint64_t period)
{
    if (period) {
        event_buffer_set_period(ctr, period);
        pmu_write(ctr, reset_of(ctr, period));
    }
    pebs_enable(period ? PMU_BIT(ctr) : 0, 0);
}

void event_buffer_forget(uint64_t counters)
{
    if (writes[cpu_number()])
        pebs_forget(counters);
}

void event_buffer_detach(PPHYSICAL_COUNTER_EVENT_BUFFER_OVERFLOW_HANDLER handler, HANDLE owner)
{
    if (!writes[cpu_number()])
        return;
    pmu_pause(); /* others' counters, which may write records */
    event_buffer_drain(handler, owner);
    pebs_detach();
    pmu_resume();
}
