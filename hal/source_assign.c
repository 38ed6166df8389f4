/* SPDX-License-Identifier: MIT */
/* Counts KPROFILE_SOURCEs on every CPU without samples, and assigns counters to sources. IRQL
 * PASSIVE_LEVEL. */
#include "hal/machine/smp.h"
#include "hal/owners.h"
#include "hal/sources.h"
#include "hal/source.h"
#include "kernel/base/bits.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/irql.h"
#include "pmu/pmu.h"

/* The assignment of counters to sources while it is being made. */
struct matching {
    uint64_t able[MAX_HW_COUNTERS]; /* counters that can count source i */
    uint64_t available;
    uint8_t source_of[64]; /* source + 1; 0: the counter is free */
};

/* Finds a counter for source i, if necessary by moving other sources to other counters (bipartite
 * matching). Fixed counters are tried first: each counts only one event, and other events need the
 * rest. */
static bool place_source(struct matching *m, ULONG i, uint64_t *tried)
{
    for (;;) {
        uint64_t rest = m->able[i] & m->available & ~*tried;
        if (!rest)
            return false;
        unsigned ctr = bit_lowest(rest & ~PMU_ANY_GP ? rest & ~PMU_ANY_GP : rest);
        *tried |= PMU_BIT(ctr);
        if (!m->source_of[ctr] || place_source(m, m->source_of[ctr] - 1u, tried)) {
            m->source_of[ctr] = (uint8_t)(i + 1);
            return true;
        }
    }
}

static bool place_all(struct matching *m, ULONG count, uint64_t available)
{
    m->available = available;
    for (unsigned ctr = 0; ctr < 64; ctr++)
        m->source_of[ctr] = 0;
    for (ULONG i = 0; i < count; i++) {
        uint64_t tried = 0;
        if (!place_source(m, i, &tried))
            return false;
    }
    return true;
}

/* Counters that can count the source on every CPU of the mask; stores its select for each kind. */
static uint64_t able_on(KPROFILE_SOURCE source, struct cpu_set among,
                        uint64_t selects[PMU_KINDS_MAX])
{
    uint64_t able = hal_source_supported_on(source, among) ? ~0ul : 0;
    for_each_bit(kind, able ? pmu_kinds_of(among) : 0)
        able &= source_counting(&pmu_kinds[kind], source, &selects[kind]);
    return able;
}

NTSTATUS source_assign(const ULONG *sources, ULONG count, struct cpu_set among,
                       struct source_assignment *a)
{
    struct matching m;
    a->count = count;
    for (ULONG i = 0; i < count; i++) {
        if (sources[i] == ProfileTime ||
            !hal_source_supported_on((KPROFILE_SOURCE)sources[i], among))
            return STATUS_NOT_SUPPORTED;
        m.able[i] = able_on((KPROFILE_SOURCE)sources[i], among, a->selects[i]);
        a->without[i] = 0;
    }
    if (!place_all(&m, count, pmu_common_counters(among)))
        return STATUS_INSUFFICIENT_RESOURCES;
    if (!place_all(&m, count, hal_counters_available(among)))
        return STATUS_DEVICE_BUSY;
    a->mask = 0;
    for (unsigned ctr = 0; ctr < 64; ctr++)
        if (m.source_of[ctr]) {
            a->ctrs[m.source_of[ctr] - 1] = ctr;
            a->mask |= PMU_BIT(ctr);
        }
    return STATUS_SUCCESS;
}

void source_start_assigned(void *assignment)
{
    const struct source_assignment *a = assignment;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    unsigned kind = pmu_kind_number(pmu_here());
    for (ULONG i = 0; i < a->count; i++)
        pmu_program(a->ctrs[i], a->selects[i][kind] & ~(uint64_t)a->without[i],
                    boot_wraps() ? -(uint64_t)BOOT_WRAPS_COUNTS & pmu_mask(pmu_here(), a->ctrs[i])
                                 : 0);
    pmu_start(a->mask);
    irql_lower(old);
}

NTSTATUS hal_count_sources(const char *name, const ULONG *sources, ULONG count, ULONG *selectors,
                           PHANDLE handle)
{
    struct source_assignment a;
    *handle = NULL;
    if (!count || count > MAX_HW_COUNTERS)
        return STATUS_INVALID_PARAMETER;
    NTSTATUS status = source_assign(sources, count, SMP_ALL, &a);
    if (!NT_SUCCESS(status))
        return status == STATUS_NOT_SUPPORTED ? status : STATUS_INSUFFICIENT_RESOURCES;
    for (ULONG i = 0; i < count; i++) {
        a.without[i] = PMU_KERNEL | PMU_INTERRUPT;
        selectors[i] = pmu_rdpmc_index(a.ctrs[i]);
    }
    status = hal_counters_claim(name, SMP_ALL, a.mask, NULL, handle);
    if (NT_SUCCESS(status))
        smp_call(SMP_ALL, source_start_assigned, &a);
    return status;
}
