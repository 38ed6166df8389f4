/* SPDX-License-Identifier: MIT */
/* Counts KPROFILE_SOURCEs on every CPU for those who only read. IRQL PASSIVE_LEVEL. */
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

/* A counter for the first source and all after it among those available; tries every choice, because some counters
 * count one event only. */
static bool choose(const uint64_t *able, ULONG n, uint64_t available, unsigned *ctrs)
{
    if (!n)
        return true;
    for (uint64_t rest = available & able[0]; rest; rest &= rest - 1) {
        ctrs[0] = (unsigned)__builtin_ctzll(rest);
        if (choose(able + 1, n - 1, available & ~PMU_BIT(ctrs[0]), ctrs + 1))
            return true;
    }
    return false;
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
    uint64_t able[MAX_HW_COUNTERS];
    struct programming p = { .n = count };
    *handle = NULL;
    if (!count || count > MAX_HW_COUNTERS)
        return STATUS_INVALID_PARAMETER;
    for (ULONG i = 0; i < count; i++) {
        able[i] = source_counters((KPROFILE_SOURCE)sources[i], &p.selects[i]);
        if (!able[i])
            return STATUS_NOT_SUPPORTED;
    }
    if (!choose(able, count, hal_counters_available(SMP_ALL), p.ctrs))
        return STATUS_INSUFFICIENT_RESOURCES;
    for (ULONG i = 0; i < count; i++) {
        p.selects[i] &= ~(uint64_t)(PMU_KERNEL | PMU_INTERRUPT);
        p.mask |= PMU_BIT(p.ctrs[i]);
        selectors[i] = pmu_rdpmc_index(p.ctrs[i]);
    }
    NTSTATUS status = hal_counters_claim(name, SMP_ALL, p.mask, NULL, handle);
    if (NT_SUCCESS(status))
        smp_call(SMP_ALL, program, &p);
    return status;
}
