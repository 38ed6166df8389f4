/* SPDX-License-Identifier: MIT */
/* What a processor counts, on which of its counters, and how its select says so. No lock: constants
 * only. Any IRQL.
 *
 * Sources: Intel SDM vol. 3 "Layout of IA32_PERFEVTSELx MSRs"; AMD APM vol. 2 "Core performance
 * event-select registers". */
#include "kernel/base/assert.h"
#include "pmu/pmu.h"

const struct pmu_event_row *pmu_row(const struct pmu_table *table, enum pmu_event event)
{
    for (; table; table = table->base)
        for (const struct pmu_event_row *row = table->rows; row->event != PMU_EVENT_COUNT; row++)
            if (row->event == event)
                return row->name ? row : 0;
    return 0;
}

static uint64_t unconstrained_counters(const struct pmu_table *table, unsigned code)
{
    const struct pmu_constraint *line = table->constraints;
    while (line && (code & line->mask) != line->code)
        line++;
    return line ? line->counters : PMU_ANY_GP;
}

uint64_t pmu_row_counters(const struct pmu_table *table, const struct pmu_event_row *row)
{
    return row->counters     ? row->counters
           : table->counters ? table->counters
                             : unconstrained_counters(table, row->code);
}

uint64_t pmu_counters_for(const struct pmu_kind *pmu, enum pmu_event event)
{
    const struct pmu_event_row *row = pmu_row(pmu->table, event);
    return row && pmu->events >> event & 1 ? pmu_row_counters(pmu->table, row) & pmu->counters : 0;
}

uint64_t pmu_select(const struct pmu_kind *pmu, enum pmu_event event, uint32_t flags)
{
    const struct pmu_event_row *row = pmu_row(pmu->table, event);
    ASSERT(row && !(flags & ~(PMU_USER | PMU_KERNEL | PMU_INTERRUPT)));
    return pmu_raw_select(row->code, row->umask, row->flags | flags);
}

uint64_t pmu_raw_select(unsigned code, uint8_t umask, uint32_t flags)
{
    ASSERT(code <= 0xfff && !(flags & (0xffff | PMU_ENABLE)));
    return (uint64_t)(code >> 8) << 32 | flags | (uint32_t)umask << 8 | (code & 0xff);
}

#define RINGS (PMU_USER | PMU_KERNEL)

static bool is_row(const struct pmu_event_row *row, uint64_t select)
{
    uint64_t event = select & ~(uint64_t)(RINGS | PMU_INTERRUPT | PMU_ENABLE);
    return row && pmu_raw_select(row->code, row->umask, row->flags) == event;
}

bool pmu_same_meaning(const struct pmu_kind *a, uint64_t select_a, const struct pmu_kind *b,
                      uint64_t select_b)
{
    uint64_t differing = (select_a ^ select_b) & ~(uint64_t)(PMU_INTERRUPT | PMU_ENABLE);
    if (!differing && (a->table == b->table || !(select_a & RINGS)))
        return true;
    for (unsigned e = 0; !(differing & RINGS) && e < PMU_EVENT_COUNT; e++)
        if (is_row(pmu_row(a->table, (enum pmu_event)e), select_a) &&
            is_row(pmu_row(b->table, (enum pmu_event)e), select_b))
            return true;
    return false;
}

uint64_t pmu_raw_counters(const struct pmu_kind *pmu, unsigned code, uint32_t flags)
{
    if (!pmu->table || code > pmu->code_max ||
        (flags & ~(pmu->select_flags | RINGS | PMU_INTERRUPT)))
        return 0;
    uint64_t able = unconstrained_counters(pmu->table, code);
    for (unsigned e = 0; e < PMU_EVENT_COUNT; e++) {
        const struct pmu_event_row *row = pmu_row(pmu->table, (enum pmu_event)e);
        if (row && row->code == code)
            able &= pmu_row_counters(pmu->table, row);
    }
    return able & pmu->counters;
}
