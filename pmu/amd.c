/* SPDX-License-Identifier: MIT */
/* Which counters an AMD processor has: those of PerfMonV2, or six extended ones, or the four of the
 * K7, which no CPUID bit reports. Source: AMD APM vol. 2 "Performance monitoring counters". */
#include "kernel/base/cpu.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "pmu/pmu.h"

#define EXTENDED_LEAVES 0x80000000
#define LEAF_FEATURES 0x80000001
#define ECX_EXTENDED_COUNTERS (1u << 23)
#define LEAF_PERFMON_V2 0x80000022
#define EAX_PERFMON_V2 (1u << 0)
#define STATUS_FROZEN (3ul << 58) /* of the LBR stack and of the counters */
#define FAMILY_K8 0x0f
#define FAMILY_11H 0x11
#define LEAF_FEATURES_2 0x80000021
#define EAX_LFENCE_SERIALIZES (1u << 2)
#define MSR_DE_CFG 0xc0011029
#define DE_CFG_LFENCE_SERIALIZES (1u << 1)
#define WIDTH 48 /* on every family; CPUID does not say */

static const struct pmu_msrs k7_msrs = {
    .select = 0xc0010000,
    .counter = 0xc0010004,
    .write = 0xc0010004,
    .stride = 1,
};
static const struct pmu_msrs extended_msrs = {
    .select = 0xc0010200,
    .counter = 0xc0010201,
    .write = 0xc0010201,
    .stride = 2,
};

bool amd_facts(struct pmu_kind *kind, bool extended, const struct cpuid *v2)
{
    kind->driver = "amd";
    kind->version = 1;
    kind->msr = extended ? extended_msrs : k7_msrs;
    kind->gp_reported = extended ? 6 : 4;
    if (extended && (v2->eax & EAX_PERFMON_V2)) {
        kind->version = 2;
        kind->gp_reported = v2->ebx & 0xf;
        kind->msr.global_status = 0xc0000300;
        kind->msr.global_control = 0xc0000301;
        kind->msr.global_clear = 0xc0000302;
    }
    kind->reported = PMU_BIT(kind->gp_reported) - 1;
    kind->clears = kind->reported | STATUS_FROZEN; /* processors set reserved bits as well */
    kind->gp_width = kind->gp_write_width = WIDTH;
    kind->code_max = kind->family == FAMILY_K8 ? 0xff : 0xfff; /* the K8 has no bits 35:32 */
    kind->select_flags = PMU_EDGE | PMU_INVERT | PMU_THRESHOLD(0xff);
    kind->events = (uint32_t)PMU_BIT(PMU_EVENT_COUNT) - 1; /* the table knows which are missing */
    return true;
}

/* Makes LFENCE wait for the instructions before it, as Intel's does; false: it cannot be. Families
 * 0Fh and 11h lack the MSR: theirs waits. Hypervisors may refuse the write, or drop it. Source:
 * AMD's "Software techniques for managing speculation", G-2. */
static bool serialize_lfence(const struct pmu_kind *kind, uint32_t max_leaf)
{
    uint64_t value = 0;
    if (max_leaf >= LEAF_FEATURES_2 && cpuid(LEAF_FEATURES_2, 0).eax & EAX_LFENCE_SERIALIZES)
        return true;
    if (rdmsr_fault(MSR_DE_CFG, &value))
        return kind->family == FAMILY_K8 || kind->family == FAMILY_11H;
    if (!(value & DE_CFG_LFENCE_SERIALIZES)) {
        wrmsr_fault(MSR_DE_CFG, value | DE_CFG_LFENCE_SERIALIZES);
        rdmsr_fault(MSR_DE_CFG, &value);
    }
    return value & DE_CFG_LFENCE_SERIALIZES;
}

bool amd_probe(struct pmu_kind *kind)
{
    if (strcmp(cpu_features.vendor, "AuthenticAMD") != 0 &&
        strcmp(cpu_features.vendor, "HygonGenuine") != 0)
        return false;

    uint32_t max_leaf = cpuid(EXTENDED_LEAVES, 0).eax;
    bool extended =
        max_leaf >= LEAF_FEATURES && (cpuid(LEAF_FEATURES, 0).ecx & ECX_EXTENDED_COUNTERS);
    struct cpuid v2 = { 0 };
    if (max_leaf >= LEAF_PERFMON_V2)
        v2 = cpuid(LEAF_PERFMON_V2, 0);
    kind->unfenced = !serialize_lfence(kind, max_leaf);
    kind->table = amd_table(kind->family, kind->model);
    kind->known = amd_is_known(kind->family, kind->model);
    return amd_facts(kind, extended, &v2);
}
