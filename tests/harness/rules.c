/* SPDX-License-Identifier: MIT */
/* Sources: Linux Documentation/virt/kvm/x86/cpuid.rst and, for what ignore_msrs does,
 * kernel-parameters.txt. */
#include "tests/harness/kernel.h"
#include "tests/harness/rules.h"

#define FIRST 0x40000000u
#define STEP 0x100u
#define LAST 0x40001000u
#define NOBODYS_MSR 0x4fffff42u

bool rules_kvm(void)
{
    static const char kvm[12] = "KVMKVMKVM";
    for (uint32_t leaf = FIRST; leaf < LAST; leaf += STEP) {
        struct cpuid r = cpuid(leaf, 0);
        uint32_t signature[3] = { r.ebx, r.ecx, r.edx };
        if (memcmp(signature, kvm, sizeof kvm) == 0)
            return true;
    }
    return false;
}

bool rules_may_have_a_use(unsigned bit)
{
    bool intel = pmu_here()->driver && !strcmp(pmu_here()->driver, "intel");
    bool rtm = cpuid(7, 0).ebx & (1u << 4 | 1u << 11), pebs = cpuid(1, 0).edx & 1u << 21;
    return !intel     ? bit < 42
           : bit < 34 ? rtm
           : bit < 36 ? pebs
                      : pmu_here()->version >= 6 && bit < 48;
}

bool rules_absent_ignored(void)
{
    static bool printed;
    uint64_t value = 0;
    bool ignored = rdmsr_fault(NOBODYS_MSR, &value) == 0 && wrmsr_fault(NOBODYS_MSR, 0) == 0;
    if (ignored && !printed)
        test_note("MSRs that do not exist read %lx and take writes: kvm.ignore_msrs=Y, or what "
                  "does the same",
                  value);
    printed |= ignored;
    return ignored;
}

uint64_t rules_access_ns(unsigned accesses)
{
    enum { TRIES = 16 };
    uint64_t value;
    if (!pmu_here()->reported)
        return 0;
    uint32_t msr = pmu_select_msr(pmu_here(), bit_lowest(pmu_here()->reported));
    uint64_t start = clock_ns();
    for (unsigned i = 0; i < TRIES; i++)
        rdmsr_fault(msr, &value);
    return (clock_ns() - start) * accesses / TRIES;
}
