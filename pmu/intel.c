/* SPDX-License-Identifier: MIT */
/* What an architectural PMU has, by CPUID 0Ah and, if CPUID 7 reports that leaf, 23h. Versions are
 * only compared for a minimum: an unknown newer version has at least what older ones have.
 *
 * Sources: Intel SDM vol. 3 "Architectural performance monitoring"; vol. 2 "CPUID", leaves 0Ah, 1Ah
 * and 23h. */
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "pmu/pmu.h"

#define LEAF_FEATURES 7
#define EDX_TSX_FORCE_ABORT (1u << 13)
#define EDX_HYBRID (1u << 15)
#define LEAF_PMU 0x0a
#define LEAF_HYBRID 0x1a
#define LEAF_PMU_EXTENDED 0x23
#define CPUID_1_ECX_PDCM (1u << 15)
#define CPUID_7_1_EAX_PMU_EXTENDED (1u << 8)
#define EDX_NO_ANY_THREAD (1u << 15)
#define MSR_TSX_FORCE_ABORT 0x10f
#define MSR_MISC_ENABLE 0x1a0
#define MISC_ENABLE_LIMIT (1ul << 22)
#define MSR_PERF_CAPABILITIES 0x345
#define PERF_CAPABILITIES_FULL_WIDTH (1u << 13)
#define MSR_FULL_WIDTH_PMC0 0x4c1
#define MSR_V6_PMC0 0x1900
#define OLD_MAX 18 /* 198h, PERF_STATUS, would be the select of counter 18 */
#define SELECT_FLAGS (PMU_EDGE | PMU_INVERT | PMU_THRESHOLD(0xff))

static const struct pmu_msrs old_msrs = {
    .select = 0x186,
    .counter = 0xc1,
    .write = 0xc1,
    .stride = 1,
    .fixed_counter = 0x309,
    .fixed_stride = 1,
    .fixed_control = 0x38d,
    .global_status = 0x38e,
    .global_control = 0x38f,
    .global_clear = 0x390,
};
/* From version 6 the registers of a counter are adjacent, for up to 32 counters, and writes have
 * the full width. */
static const struct pmu_msrs v6_msrs = {
    .select = 0x1901,
    .counter = MSR_V6_PMC0,
    .write = MSR_V6_PMC0,
    .stride = 4,
    .fixed_counter = 0x1980,
    .fixed_stride = 4,
    .fixed_control = 0x38d,
    .global_status = 0x38e,
    .global_control = 0x38f,
    .global_clear = 0x390,
};

static uint64_t first(unsigned count) { return count >= 64 ? ~0ul : PMU_BIT(count) - 1; }

static bool has_bitmaps(const struct intel_leaves *leaves) { return leaves->extended[0].eax & 2; }

static uint64_t general_counters(const struct intel_leaves *leaves)
{
    uint64_t general =
        has_bitmaps(leaves) ? leaves->extended[1].eax : first(leaves->pmu.eax >> 8 & 0xff);
    return general & first(leaves->v6_registers ? PMU_FIXED : OLD_MAX);
}

static uint64_t fixed_counters(const struct intel_leaves *leaves)
{
    unsigned version = leaves->pmu.eax & 0xff;
    uint64_t fixed = first(leaves->pmu.edx & 0x1f);
    if (version < 2)
        return 0;
    if (has_bitmaps(leaves))
        fixed = leaves->extended[1].ebx;
    else if (version >= 5)
        fixed |= leaves->pmu.ecx;
    return fixed & first(PMU_FIXED_MAX);
}

/* An event is absent if its bit of 0Ah.EBX is set, or lies beyond the length in EAX. */
static uint32_t architectural_events(const struct intel_leaves *leaves)
{
    uint64_t events = ~leaves->pmu.ebx & first(leaves->pmu.eax >> 24);
    if (leaves->extended[0].eax & 8)
        events = leaves->extended[3].eax;
    return (uint32_t)(events & first(PMU_SLOTS + 1));
}

bool intel_facts(struct pmu_kind *kind, const struct intel_leaves *leaves)
{
    unsigned version = leaves->pmu.eax & 0xff;
    if (!version)
        return false;

    kind->driver = "intel";
    kind->version = version;
    kind->reported = general_counters(leaves) | fixed_counters(leaves) << PMU_FIXED | leaves->found;
    kind->gp_reported = bit_count(kind->reported & PMU_ANY_GP);
    kind->gp_width = leaves->pmu.eax >> 16 & 0xff;
    kind->fixed_width = leaves->pmu.edx >> 5 & 0xff;
    if (!kind->fixed_width)
        kind->fixed_width = kind->gp_width;
    kind->events =
        architectural_events(leaves) | (uint32_t)(first(PMU_EVENT_COUNT) & ~first(PMU_REF_CYCLES));
    if (leaves->found & PMU_FIX(3))
        kind->events |= (uint32_t)PMU_BIT(PMU_SLOTS);
    kind->code_max = 0xff;
    kind->clears = ~0ul;
    kind->select_flags = SELECT_FLAGS;
    if (version >= 3 && !(leaves->pmu.edx & EDX_NO_ANY_THREAD))
        kind->select_flags |= PMU_ANY_THREAD;
    kind->msr = leaves->v6_registers ? v6_msrs : old_msrs;
    kind->gp_write_width = 32;
    if (leaves->v6_registers || leaves->full_width_writes)
        kind->gp_write_width = kind->gp_width;
    if (!leaves->v6_registers && leaves->full_width_writes)
        kind->msr.write = MSR_FULL_WIDTH_PMC0;
    if (version < 2)
        kind->msr.global_control = kind->msr.global_status = kind->msr.global_clear = 0;
    return true;
}

static bool has_full_width_writes(void)
{
    uint64_t capabilities = 0;
    return (cpuid(1, 0).ecx & CPUID_1_ECX_PDCM) &&
           !rdmsr_fault(MSR_PERF_CAPABILITIES, &capabilities) &&
           (capabilities & PERF_CAPABILITIES_FULL_WIDTH);
}

/* Counters without a word in leaf 0Ah: three fixed ones of versions 2 to 4, of which some Atoms and
 * Core 2 report fewer; those that a hybrid's large core has more than its small ones, for the leaf
 * is of both. RDPMC is asked too: a hypervisor may answer for MSRs that are not there. */
static uint64_t find_unreported(const struct intel_leaves *leaves, bool hybrid)
{
    unsigned version = leaves->pmu.eax & 0xff;
    uint64_t value, found = 0,
                    maybe = version < 2                      ? 0
                            : version < 5                    ? first(3) << PMU_FIXED
                            : hybrid && !has_bitmaps(leaves) ? first(8) | first(4) << PMU_FIXED
                                                             : 0;
    for_each_bit(ctr, maybe) {
        uint32_t msr = ctr < PMU_FIXED ? old_msrs.select + (uint32_t)ctr
                                       : old_msrs.fixed_counter + (uint32_t)ctr - PMU_FIXED;
        if (!rdmsr_fault(msr, &value) && !rdpmc_fault(pmu_rdpmc_index((unsigned)ctr), &value))
            found |= PMU_BIT(ctr);
    }
    return found;
}

static void read_extended(struct intel_leaves *leaves, uint32_t max_leaf)
{
    uint64_t value;
    if (max_leaf >= LEAF_PMU_EXTENDED && (cpuid(LEAF_FEATURES, 1).eax & CPUID_7_1_EAX_PMU_EXTENDED))
        for (unsigned i = 0; i < INTEL_EXTENDED; i++)
            if (!i || leaves->extended[0].eax >> i & 1)
                leaves->extended[i] = cpuid(LEAF_PMU_EXTENDED, i);
    leaves->v6_registers = (leaves->pmu.eax & 0xff) >= 6 && !rdmsr_fault(MSR_V6_PMC0, &value);
}

/* Hybrid processors: CPUID 1Ah.EAX[31:24] is 20h on small cores. Arrow Lake H has two kinds of
 * these: EAX[23:0] is 3 on Skymont, 2 on the Crestmont of the low-power island. */
static enum intel_core this_core(uint32_t max_leaf, unsigned model)
{
    uint32_t type = max_leaf >= LEAF_HYBRID ? cpuid(LEAF_HYBRID, 0).eax : 0;
    if (type >> 24 != 0x20)
        return INTEL_LARGE_CORE;
    return model == INTEL_MODEL_ARROW_LAKE_H && (type & 0xffffff) == 2 ? INTEL_TINY_CORE
                                                                       : INTEL_SMALL_CORE;
}

/* The BIOS option "limit CPUID maximum" hides the leaf. */
static uint32_t highest_leaf(bool intel)
{
    uint64_t value = 0;
    uint32_t highest = cpuid(0, 0).eax;
    if (!intel || highest >= LEAF_PMU || rdmsr_fault(MSR_MISC_ENABLE, &value) ||
        !(value & MISC_ENABLE_LIMIT))
        return highest;
    wrmsr_fault(MSR_MISC_ENABLE, value & ~MISC_ENABLE_LIMIT);
    return cpuid(0, 0).eax;
}

/* Skylake to Coffee Lake by microcode of 2019: else a transaction takes counter 3. Source: Intel,
 * "Performance monitoring impact of Intel TSX memory ordering issue". */
static void abort_transactions(void)
{
    uint64_t value = 0;
    if (cpuid(LEAF_FEATURES, 0).edx & EDX_TSX_FORCE_ABORT &&
        !rdmsr_fault(MSR_TSX_FORCE_ABORT, &value))
        wrmsr_fault(MSR_TSX_FORCE_ABORT, value | 1);
}

bool intel_probe(struct pmu_kind *kind)
{
    bool intel = strcmp(cpu_features.vendor, "GenuineIntel") == 0; /* others have the leaf too */
    uint32_t max_leaf = highest_leaf(intel);
    if (max_leaf < LEAF_PMU)
        return false;
    struct intel_leaves leaves = { .pmu = cpuid(LEAF_PMU, 0),
                                   .full_width_writes = has_full_width_writes() };
    read_extended(&leaves, max_leaf);
    leaves.found = find_unreported(&leaves, cpuid(LEAF_FEATURES, 0).edx & EDX_HYBRID);
    if (intel)
        abort_transactions();
    kind->table = intel ? intel_table(kind->family, kind->model, this_core(max_leaf, kind->model))
                        : &intel_architectural;
    kind->known = kind->table != &intel_architectural;
    return intel_facts(kind, &leaves);
}
