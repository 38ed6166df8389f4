/* SPDX-License-Identifier: MIT */
/* What an architectural PMU has, by CPUID 0Ah. By feature only: a version that we never heard of
 * has at least what version 5 has.
 *
 * Source: Intel SDM vol. 3 "Architectural performance monitoring". */
#include "kernel/cpu.h"
#include "kernel/x86.h"
#include "pmu/pmu.h"

#define LEAF_PMU 0x0a
#define LEAF_HYBRID 0x1a
#define CPUID_1_ECX_PDCM (1u << 15)
#define MSR_PERF_CAPABILITIES 0x345
#define PERF_CAPABILITIES_FULL_WIDTH (1u << 13)
#define MSR_PMC0 0xc1
#define MSR_FULL_WIDTH_PMC0 0x4c1
#define MSR_PERFEVTSEL0 0x186
#define GP_MAX 18 /* 198h, PERF_STATUS, would be the select of counter 18 */

static const struct pmu_msrs msrs = {
    .select = MSR_PERFEVTSEL0, .counter = MSR_PMC0, .write = MSR_PMC0, .stride = 1,
    .fixed_counter = 0x309, .fixed_control = 0x38d,
    .global_status = 0x38e, .global_control = 0x38f, .global_clear = 0x390,
};

/* Hybrid processors: CPUID 1Ah.EAX[31:24] is 20h on the small cores. */
static bool on_small_core(void)
{
    return cpu_features.max_leaf >= LEAF_HYBRID && cpuid(LEAF_HYBRID, 0).eax >> 24 == 0x20;
}

static uint64_t first(unsigned count) { return count >= 64 ? ~UINT64_C(0) : PMU_BIT(count) - 1; }

static uint64_t fixed_counters(unsigned version, const struct cpuid *leaf, bool hypervisor)
{
    uint64_t fixed = first(leaf->edx & 0x1f);
    if (version < 2)
        return 0;
    if (version >= 5)
        fixed |= leaf->ecx;
    /* Some version 2 parts report none and have three. A hypervisor that reports none means it. */
    else if (!fixed && !hypervisor)
        fixed = first(3);
    return fixed & first(PMU_FIXED_MAX);
}

static bool has_full_width_writes(void)
{
    uint64_t capabilities = 0;
    return (cpuid(1, 0).ecx & CPUID_1_ECX_PDCM) &&
           !rdmsr_fault(MSR_PERF_CAPABILITIES, &capabilities) &&
           (capabilities & PERF_CAPABILITIES_FULL_WIDTH);
}

bool intel_facts(struct pmu_caps *caps, const struct cpuid *leaf, bool hypervisor, bool full_width_writes)
{
    unsigned version = leaf->eax & 0xff;
    if (!version)
        return false;

    caps->driver = "intel";
    caps->version = version;
    caps->gp_reported = leaf->eax >> 8 & 0xff;
    caps->reported = first(caps->gp_reported < GP_MAX ? caps->gp_reported : GP_MAX) |
                     fixed_counters(version, leaf, hypervisor) << PMU_FIXED;
    caps->gp_width = leaf->eax >> 16 & 0xff;
    caps->fixed_width = leaf->edx >> 5 & 0xff;
    if (!caps->fixed_width)
        caps->fixed_width = caps->gp_width;
    /* A bit of EBX set, or beyond the length in EAX: the event is missing. */
    caps->events = (uint32_t)(~leaf->ebx & first(leaf->eax >> 24) & first(PMU_SLOTS + 1)) |
                   (uint32_t)(first(PMU_EVENT_COUNT) & ~first(PMU_REF_CYCLES));
    caps->msr = msrs;
    caps->gp_write_width = 32;
    if (full_width_writes) {
        caps->msr.write = MSR_FULL_WIDTH_PMC0;
        caps->gp_write_width = caps->gp_width;
    }
    if (version < 2)
        caps->msr.global_control = caps->msr.global_status = caps->msr.global_clear = 0;
    return true;
}

bool intel_probe(struct pmu_caps *caps)
{
    if (cpu_features.max_leaf < LEAF_PMU)
        return false;
    struct cpuid leaf = cpuid(LEAF_PMU, 0);
    caps->table = intel_table(caps->family, caps->model, on_small_core());
    return intel_facts(caps, &leaf, cpu_features.hypervisor, has_full_width_writes());
}
