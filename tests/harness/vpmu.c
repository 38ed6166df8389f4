/* SPDX-License-Identifier: MIT */
/* What the virtual PMU says of itself, read by ring 0. */
#include "tests/harness/kernel.h"
#include "tests/harness/vpmu.h"

#define HYPERVISORS 0x40000000u
#define STRIDE 0x100u

static bool is_ours(uint32_t leaf)
{
    struct cpuid r = cpuid(leaf, 0);
    return r.ebx == 0x6d70746e && r.ecx == 0x70762d75 && r.edx == 0x756d; /* ntpmu-vpmu */
}

static uint32_t base = HYPERVISORS; /* the same on every CPU; vpmu_present finds it */

uint32_t vpmu_leaf(unsigned n) { return base + n; }

bool vpmu_present(void)
{
    base = is_ours(HYPERVISORS) ? HYPERVISORS : HYPERVISORS + STRIDE;
    return is_ours(base);
}

void vpmu_model(char name[17])
{
    struct cpuid r = cpuid(vpmu_leaf(2), 0);
    memcpy(name, &r, 16);
    name[16] = 0;
}

void vpmu_machine(char name[17])
{
    struct cpuid r = cpuid(vpmu_leaf(5), 0);
    memcpy(name, &r, 16);
    name[16] = 0;
}

unsigned vpmu_counter(void)
{
    uint64_t left = pmu_here()->counters & PMU_ANY_GP & ~pmu_here()->left_running;
    return left ? bit_lowest(left) : 0;
}

bool vpmu_steps(void) { return cpuid(vpmu_leaf(1), 3).eax; }

struct vpmu_accesses vpmu_accesses(void)
{
    struct cpuid r = vpmu_present() ? cpuid(vpmu_leaf(1), 0) : (struct cpuid){ 0 };
    return (struct vpmu_accesses){ r.eax, r.ebx, r.ecx, r.edx };
}

struct vpmu_accesses vpmu_accesses_since(struct vpmu_accesses a)
{
    struct vpmu_accesses b = vpmu_accesses();
    return (struct vpmu_accesses){ b.rdpmc - a.rdpmc, b.rdmsr - a.rdmsr, b.wrmsr - a.wrmsr,
                                   b.interrupts - a.interrupts };
}

uint64_t vpmu_retired(void)
{
    struct cpuid r = cpuid(vpmu_leaf(1), 2);
    return (uint64_t)r.ebx << 32 | r.eax;
}

uint64_t vpmu_worked(void)
{
    struct cpuid iterations = cpuid(vpmu_leaf(1), 3), retired = cpuid(vpmu_leaf(1), 2);
    return ((uint64_t)iterations.edx << 32 | iterations.ecx) +
           ((uint64_t)retired.edx << 32 | retired.ecx) +
           ((uint64_t)retired.ebx << 32 | retired.eax);
}

/* The names are read once: each CPUID leaves the guest. */
#define QUIRKS_MAX 96u
static char names[QUIRKS_MAX][13]; /* "": off */
static unsigned names_known;

static void know_names(void)
{
    for (; names_known < QUIRKS_MAX; names_known++) {
        struct cpuid r = cpuid(vpmu_leaf(3), names_known);
        if (!r.ebx)
            return;
        if (r.eax)
            memcpy(names[names_known], &r.ebx, 12);
    }
}

/* The leaf with its values; all 0 if it is off. */
static struct cpuid quirk(const char *wanted)
{
    if (!names_known)
        know_names();
    for (unsigned n = 0; n < names_known; n++)
        if (!strcmp(names[n], wanted))
            return cpuid(vpmu_leaf(4), n);
    return (struct cpuid){ 0, 0, 0, 0 };
}

uint64_t vpmu_quirk(const char *name)
{
    struct cpuid r = quirk(name);
    return (uint64_t)r.ebx << 32 | r.eax;
}

uint64_t vpmu_quirk_second(const char *name)
{
    struct cpuid r = quirk(name);
    return (uint64_t)r.edx << 32 | r.ecx;
}
