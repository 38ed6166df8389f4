/* SPDX-License-Identifier: MIT */
/* What an AMD processor has: PerfMonV2, or six extended counters, or the four of the K7, which no
 * CPUID bit announces. Source: AMD APM vol. 2 "Performance monitoring counters". */
#include "kernel/cpu.h"
#include "kernel/string.h"
#include "kernel/x86.h"
#include "pmu/pmu.h"

#define LEAF_FEATURES 0x80000001
#define ECX_EXTENDED_COUNTERS (1u << 23)
#define LEAF_PERFMON_V2 0x80000022
#define EAX_PERFMON_V2 (1u << 0)
#define WIDTH 48 /* on every family; CPUID does not say */

static const struct pmu_msrs k7_msrs = {
    .select = 0xc0010000, .counter = 0xc0010004, .write = 0xc0010004, .stride = 1,
};
static const struct pmu_msrs extended_msrs = {
    .select = 0xc0010200, .counter = 0xc0010201, .write = 0xc0010201, .stride = 2,
};

bool amd_facts(struct pmu_caps *caps, bool extended, const struct cpuid *v2)
{
    caps->driver = "amd";
    caps->version = 1;
    caps->msr = extended ? extended_msrs : k7_msrs;
    caps->gp_reported = extended ? 6 : 4;
    if (extended && (v2->eax & EAX_PERFMON_V2)) {
        caps->version = 2;
        caps->gp_reported = v2->ebx & 0xf;
        caps->msr.global_status = 0xc0000300;
        caps->msr.global_control = 0xc0000301;
        caps->msr.global_clear = 0xc0000302;
    }
    caps->reported = PMU_BIT(caps->gp_reported) - 1;
    caps->gp_width = caps->gp_write_width = WIDTH;
    caps->events = (uint32_t)PMU_BIT(PMU_EVENT_COUNT) - 1; /* the table knows which are missing */
    return true;
}

bool amd_probe(struct pmu_caps *caps)
{
    if (strcmp(cpu_features.vendor, "AuthenticAMD") != 0 &&
        strcmp(cpu_features.vendor, "HygonGenuine") != 0)
        return false;

    bool extended = cpu_features.max_extended_leaf >= LEAF_FEATURES &&
                    (cpuid(LEAF_FEATURES, 0).ecx & ECX_EXTENDED_COUNTERS);
    struct cpuid v2 = { 0 };
    if (cpu_features.max_extended_leaf >= LEAF_PERFMON_V2)
        v2 = cpuid(LEAF_PERFMON_V2, 0);
    caps->table = amd_table(caps->family, caps->model);
    return amd_facts(caps, extended, &v2);
}
