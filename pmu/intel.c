/* SPDX-License-Identifier: MIT */
/* What an architectural PMU has, by CPUID 0Ah. By feature only: a version that we never heard of
 * has at least what version 5 has.
 *
 * Source: Intel SDM vol. 3 "Architectural performance monitoring". */
#include "kernel/cpu.h"
#include "kernel/x86.h"
#include "pmu/events/intel.h"

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

/* Models of family 6. Hybrid ones have two kinds of cores: CPUID 1Ah.EAX[31:24] is 20h on the small ones. */
static const struct {
    const struct pmu_event_row *table, *small;
    uint8_t models[6]; /* ends with 0, or is full */
} tables[] = {
    { intel_core2_events, 0, { 0x0f, 0x16, 0x17, 0x1d, 0 } },
    { intel_nehalem_events, 0, { 0x1a, 0x1e, 0x1f, 0x2e, 0 } },
    { intel_nehalem_events, 0, { 0x25, 0x2c, 0x2f, 0 } }, /* Westmere */
    { intel_sandy_bridge_events, 0, { 0x2a, 0x2d, 0 } },
    { intel_haswell_events, 0, { 0x3a, 0x3e, 0 } }, /* Ivy Bridge */
    { intel_haswell_events, 0, { 0x3c, 0x3f, 0x45, 0x46, 0 } },
    { intel_broadwell_events, 0, { 0x3d, 0x47, 0x4f, 0x56, 0 } },
    { intel_skylake_events, 0, { 0x4e, 0x5e, 0x8e, 0x9e, 0xa5, 0xa6 } },
    { intel_skylake_server_events, 0, { 0x55, 0 } },
    { intel_ice_lake_events, 0, { 0x7d, 0x7e, 0x8c, 0x8d, 0xa7, 0 } },
    { intel_ice_lake_events, 0, { 0x6a, 0x6c, 0 } }, /* the server */
    { intel_sapphire_rapids_events, 0, { 0x8f, 0xcf, 0 } },
    { intel_granite_rapids_events, 0, { 0xad, 0xae, 0 } },
    { intel_golden_cove_events, intel_gracemont_events, { 0x97, 0x9a, 0xb7, 0xba, 0xbf, 0 } },
    { intel_gracemont_events, 0, { 0xbe, 0 } },
    { intel_goldmont_events, 0, { 0x5c, 0x5f, 0 } },
    { intel_silvermont_events, 0, { 0x37, 0x4a, 0x4c, 0x4d, 0x5a, 0x5d } },
};

const struct pmu_event_row *intel_table(unsigned family, unsigned model, bool small_core)
{
    for (unsigned i = 0; family == 6 && i < sizeof tables / sizeof *tables; i++)
        for (unsigned m = 0; m < sizeof tables->models && tables[i].models[m]; m++)
            if (tables[i].models[m] == model)
                return small_core && tables[i].small ? tables[i].small : tables[i].table;
    return intel_architectural_events;
}

static bool on_small_core(void)
{
    return cpu_features.max_leaf >= LEAF_HYBRID && cpuid(LEAF_HYBRID, 0).eax >> 24 == 0x20;
}

static uint64_t first(unsigned count) { return count >= 64 ? ~UINT64_C(0) : PMU_BIT(count) - 1; }

static uint64_t fixed_counters(unsigned version, const struct cpuid *leaf)
{
    uint64_t fixed = first(leaf->edx & 0x1f);
    if (version < 2)
        return 0;
    if (version >= 5)
        fixed |= leaf->ecx;
    /* Some version 2 parts report none and have three. A hypervisor that reports none means it. */
    else if (!fixed && !cpu_features.hypervisor)
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

bool intel_probe(struct pmu_caps *caps)
{
    if (cpu_features.max_leaf < LEAF_PMU)
        return false;
    struct cpuid leaf = cpuid(LEAF_PMU, 0);
    unsigned version = leaf.eax & 0xff;
    if (!version)
        return false;

    caps->driver = "intel";
    caps->version = version;
    caps->gp_reported = leaf.eax >> 8 & 0xff;
    caps->reported = first(caps->gp_reported < GP_MAX ? caps->gp_reported : GP_MAX) |
                     fixed_counters(version, &leaf) << PMU_FIXED;
    caps->gp_width = leaf.eax >> 16 & 0xff;
    caps->fixed_width = leaf.edx >> 5 & 0xff;
    if (!caps->fixed_width)
        caps->fixed_width = caps->gp_width;
    caps->table = intel_table(caps->family, caps->model, on_small_core());
    /* A bit of EBX set, or beyond the length in EAX: the event is missing. */
    caps->events = (uint32_t)(~leaf.ebx & first(leaf.eax >> 24) & first(PMU_SLOTS + 1)) |
                   (uint32_t)(first(PMU_EVENT_COUNT) & ~first(PMU_REF_CYCLES));
    caps->msr = msrs;
    caps->gp_write_width = 32;
    if (has_full_width_writes()) {
        caps->msr.write = MSR_FULL_WIDTH_PMC0;
        caps->gp_write_width = caps->gp_width;
    }
    if (version < 2)
        caps->msr.global_control = caps->msr.global_status = caps->msr.global_clear = 0;
    return true;
}
