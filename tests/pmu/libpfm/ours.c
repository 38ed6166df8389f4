/* SPDX-License-Identifier: MIT */
/* A program for the host: prints the event tables of pmu/events and the sources of hal/, for
 * tests/pmu/libpfm.t.
 *
 * processor FAMILY MODEL SMALL_CORE TABLE
 * table TABLE COUNTERS     those of rows that name none
 * event TABLE EVENT CODE UMASK FLAGS COUNTERS NAME
 * source TABLE ID SOURCE CODE UMASK FLAGS COUNTERS NAME     what hal/source.c would program
 *
 * Fields are apart by tabs, numbers are hexadecimal. A source that is an event of the table has
 * that event's name. */
#include <stdio.h>
#include <stdlib.h>
#include "hal/source.h"
#include "kernel/base/assert.h"

void panic(const char *format, ...)
{
    fprintf(stderr, "panic: %s\n", format);
    exit(1);
}

#define NAME(event) [PMU_##event] = #event
/* clang-format off */
static const char *const events[PMU_EVENT_COUNT] = {
    NAME(CYCLES), NAME(INSTRUCTIONS), NAME(BUS_CYCLES), NAME(LLC_REFERENCES), NAME(LLC_MISSES),
    NAME(BRANCHES), NAME(BRANCH_MISSES), NAME(SLOTS), NAME(REF_CYCLES), NAME(LOADS), NAME(STORES),
    NAME(PIPELINE_DRY), NAME(PIPELINE_FROZEN), NAME(NONISSUES), NAME(ISSUE_2), NAME(ISSUE_3),
    NAME(ISSUE_4), NAME(L1D_ACCESSES), NAME(L1D_MISSES), NAME(L1I_READS), NAME(L1I_MISSES),
    NAME(FP_INSTRUCTIONS), NAME(INTEGER_INSTRUCTIONS), NAME(SPECIAL), NAME(BARRIER_CYCLES),
    NAME(LOCKED), NAME(MISALIGNED), NAME(CONDITIONAL_BRANCHES), NAME(INTERRUPTS),
    NAME(BRANCH_RECORDS),
};
/* clang-format on */

static void event_line(const struct pmu_table *table, const struct pmu_event_row *row)
{
    printf("event\t%s\t%s\t%x\t%x\t%x\t%lx\t%s\n", table->name, events[row->event], row->code,
           row->umask, row->flags, (unsigned long)pmu_row_counters(table, row), row->name);
}

static void source_line(const struct pmu_table *table, const struct source_row *row)
{
    struct pmu_kind kind = { .table = table,
                             .counters = ~UINT64_C(0),
                             .select_flags = ~0u,
                             .code_max = table->family && table->family != AMD_K8 ? 0xfff : 0xff };
    const struct pmu_event_row *event = NULL;
    if (!source_row_of(row, table))
        return;
    if (row->event != PMU_EVENT_COUNT && !(event = pmu_row(table, (enum pmu_event)row->event)))
        return;
    uint64_t counters =
        event ? pmu_row_counters(table, event) : pmu_raw_counters(&kind, row->code, row->flags);
    counters &= row->fixed ? row->fixed : PMU_ANY_GP;
    if (counters)
        printf("source\t%s\t%x\t%s\t%x\t%x\t%x\t%lx\t%s\n", table->name, row->id, row->name,
               event ? event->code : row->code, event ? event->umask : row->umask,
               event ? event->flags : row->flags, (unsigned long)counters,
               event ? event->name : "");
}

static void table_lines(const struct pmu_table *table)
{
    static const struct pmu_table *seen[64];
    unsigned n = 0;
    while (n < 63 && seen[n] && seen[n] != table)
        n++;
    if (seen[n])
        return;
    seen[n] = table;
    printf("table\t%s\t%lx\n", table->name,
           (unsigned long)(table->counters ? table->counters : PMU_ANY_GP));
    for (unsigned e = 0; e < PMU_EVENT_COUNT; e++)
        if (pmu_row(table, (enum pmu_event)e))
            event_line(table, pmu_row(table, (enum pmu_event)e));
    const struct source_set *set = source_sets + (table->family ? 1 : 0);
    for (const struct source_row *row = set->rows; row->name; row++)
        source_line(table, row);
}

static void processor_line(unsigned family, unsigned model, bool small,
                           const struct pmu_table *table)
{
    printf("processor\t%x\t%x\t%d\t%s\n", family, model, small, table->name);
    table_lines(table);
}

int main(void)
{
    for (unsigned model = 0; model < 256; model++) {
        processor_line(6, model, false, intel_table(6, model, INTEL_LARGE_CORE));
        processor_line(6, model, true, intel_table(6, model, INTEL_SMALL_CORE));
    }
    for (unsigned family = 0x0f; family <= 0x1a; family++)
        for (unsigned model = 0; model < 256; model++)
            processor_line(family, model, false, amd_table(family, model));
    return 0;
}
