/* SPDX-License-Identifier: MIT */
/* Counts KPROFILE_SOURCEs on every CPU for those who only read; which counter is to count which source.
 * IRQL PASSIVE_LEVEL. */
#include "hal/hal.h"
#include "hal/source.h"
#include "kernel/irql.h"
#include "kernel/smp.h"
#include "pmu/pmu.h"

struct programming {
    ULONG n;
    unsigned ctrs[MAX_HW_COUNTERS];
    uint64_t selects[MAX_HW_COUNTERS];
    uint64_t mask;
};

/* Which source has which counter, while places are found. */
struct matching {
    uint64_t able[MAX_HW_COUNTERS]; /* counters that can count source i */
    uint64_t available;
    uint8_t source_of[64]; /* plus 1; 0: the counter is free */
};

/* Finds source i a counter, if need be by moving others to another of theirs: some counters count one event only.
 * Those come first, so that the others stay for whoever can use no fixed one. */
static bool place(struct matching *m, ULONG i, uint64_t *tried)
{
    for (;;) {
        uint64_t rest = m->able[i] & m->available & ~*tried;
        if (!rest)
            return false;
        unsigned ctr = (unsigned)__builtin_ctzll(rest & ~PMU_ANY_GP ? rest & ~PMU_ANY_GP : rest);
        *tried |= PMU_BIT(ctr);
        if (!m->source_of[ctr] || place(m, m->source_of[ctr] - 1u, tried)) {
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
        if (!place(m, i, &tried))
            return false;
    }
    return true;
}

NTSTATUS source_assign(const ULONG *sources, ULONG count, uint64_t cpu_mask, unsigned *ctrs, uint64_t *selects,
                       uint64_t *mask)
{
    struct matching m;
    for (ULONG i = 0; i < count; i++) {
        m.able[i] = source_counting((KPROFILE_SOURCE)sources[i], &selects[i]);
        if (!m.able[i])
            return STATUS_NOT_SUPPORTED;
    }
    if (!place_all(&m, count, pmu_caps.counters))
        return STATUS_INSUFFICIENT_RESOURCES;
    if (!place_all(&m, count, hal_counters_available(cpu_mask)))
        return STATUS_DEVICE_BUSY;
    *mask = 0;
    for (unsigned ctr = 0; ctr < 64; ctr++)
        if (m.source_of[ctr]) {
            ctrs[m.source_of[ctr] - 1] = ctr;
            *mask |= PMU_BIT(ctr);
        }
    return STATUS_SUCCESS;
}

/* On each CPU. */
static void program(void *argument)
{
    const struct programming *p = argument;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    for (ULONG i = 0; i < p->n; i++)
        pmu_program(p->ctrs[i], p->selects[i], 0);
    pmu_start(p->mask);
    irql_lower(old);
}

NTSTATUS hal_count_sources(const char *name, const ULONG *sources, ULONG count, ULONG *selectors, PHANDLE handle)
{
    struct programming p = { .n = count };
    *handle = NULL;
    if (!count || count > MAX_HW_COUNTERS)
        return STATUS_INVALID_PARAMETER;
    NTSTATUS status = source_assign(sources, count, SMP_ALL, p.ctrs, p.selects, &p.mask);
    if (!NT_SUCCESS(status))
        return status == STATUS_NOT_SUPPORTED ? status : STATUS_INSUFFICIENT_RESOURCES;
    for (ULONG i = 0; i < count; i++) {
        p.selects[i] &= ~(uint64_t)(PMU_KERNEL | PMU_INTERRUPT);
        selectors[i] = pmu_rdpmc_index(p.ctrs[i]);
    }
    status = hal_counters_claim(name, SMP_ALL, p.mask, NULL, handle);
    if (NT_SUCCESS(status))
        smp_call(SMP_ALL, program, &p);
    return status;
}
