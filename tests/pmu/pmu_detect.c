/* SPDX-License-Identifier: MIT */
/* Conformance: what CPUID promises agrees with itself and with the registers that there are; what
 * it does not promise faults. */
#include "tests/harness/lab.h"

#define LEAF_PMU 0x0au
#define LEAF_EXTENDED 0x23u
#define LEAF_V2 0x80000022u
#define PERF_CAPABILITIES 0x345u
#define FULL_WIDTH (1u << 13)
#define MISC_ENABLE 0x1a0u
#define DEBUGCTL 0x1d9u

static struct cpuid leaf(void) { return cpuid(LEAF_PMU, 0); }
static unsigned gp(void) { return pmu_here()->gp_reported; }
static bool is_reported(unsigned n) { return pmu_here()->reported >> n & 1; }
static bool has_bitmaps(void)
{
    return cpuid(0, 0).eax >= LEAF_EXTENDED && cpuid(7, 1).eax & 1u << 8 &&
           cpuid(LEAF_EXTENDED, 0).eax & 2;
}
/* Leaf 0Ah says what both kinds of cores have. */
static bool is_hybrid(void) { return !has_bitmaps() && cpuid(7, 0).edx & 1u << 15; }
static bool has_capabilities(void) { return cpuid(1, 0).ecx & 1u << 15; }

#define INTEL_ONLY()                                                                               \
    do {                                                                                           \
        if (!lab_is_intel())                                                                       \
            SKIP("Intel only");                                                                    \
    } while (0)
#define AMD_ONLY()                                                                                 \
    do {                                                                                           \
        if (lab_is_intel())                                                                        \
            SKIP("AMD only");                                                                      \
    } while (0)

LAB_TEST(pmu_cpuid, vendor,
         "a PMU has a vendor, and CPUID a leaf for it, which reads zero on AMD [VP-01 VP-11 S-1.0]")
{
    /* Zhaoxin's have Intel's leaf, Hygon's AMD's counters. */
    static const char *const vendors[] = { "AuthenticAMD", "HygonGenuine", "GenuineIntel",
                                           "CentaurHauls", "  Shanghai  " };
    unsigned at = 0;
    while (at < ARRAY_SIZE(vendors) && strcmp(cpu_features.vendor, vendors[at]) != 0)
        at++;
    bool intel = at >= 2; /* the first two are AMD's */
    CHECK(at < ARRAY_SIZE(vendors));
    CHECK_EQ(intel, lab_is_intel());
    CHECK_BECAUSE(cpuid(0, 0).eax, intel ? LEAF_PMU : 1, 0x7fffffff, "leaf 0Ah must be in range");
    CHECK(intel || !(leaf().eax | leaf().ebx | leaf().ecx | leaf().edx));
    const struct cpuid extended = cpuid(0x80000000, 0), first = cpuid(0, 0);
    CHECK_BECAUSE(extended.eax, 0x80000001, 0x8fffffff, "extended leaves");
    if (vpmu_present()) { /* as the vendor's processors; other emulators name the vendor too */
        CHECK_EQ(extended.ebx, intel ? 0 : first.ebx);
        CHECK_EQ(extended.ecx, intel ? 0 : first.ecx);
        CHECK_EQ(extended.edx, intel ? 0 : first.edx);
    }
}

LAB_TEST(pmu_cpuid, intel_leaf, "0Ah: version, counters, width and length are sane [VP-02 VP-03]")
{
    INTEL_ONLY();
    CHECK_BECAUSE(leaf().eax & 0xff, 1, 0xff, "version 0 is no PMU");
    CHECK_BECAUSE(leaf().eax >> 8 & 0xff, 1, 64, "no counter is no PMU; a host may give one");
    CHECK_BECAUSE(leaf().eax >> 16 & 0xff, 32, 64, "legacy writes have 32 bits");
    CHECK_BECAUSE(leaf().eax >> 24, 7, 32, "seven architectural events since Core");
    CHECK_EQ(pmu_here()->version, leaf().eax & 0xff);
}

LAB_TEST(
    pmu_cpuid, events,
    "0Ah.EBX: bits beyond the length say nothing, 23h.3 says it anew; cycles and instructions are "
    "there [VP-04]")
{
    INTEL_ONLY();
    unsigned length = leaf().eax >> 24;
    CHECK(!(leaf().ebx & 3));
    for (unsigned i = 0; i <= PMU_SLOTS; i++) {
        bool there = i < length && !(leaf().ebx >> i & 1);
        if (has_bitmaps() && cpuid(LEAF_EXTENDED, 0).eax & 8)
            there = cpuid(LEAF_EXTENDED, 3).eax >> i & 1;
        else if (i == PMU_SLOTS && pmu_here()->reported & PMU_FIX(3))
            there |= is_hybrid(); /* the leaf is of both kinds, the counter of this one */
        CHECK_EQ(pmu_here()->events >> i & 1, there);
        CHECK_EQ((pmu_counters_for(pmu_here(), (enum pmu_event)i) & PMU_ANY_GP) != 0, there);
    }
}

LAB_TEST(pmu_cpuid, fixed,
         "0Ah: fixed counters by EDX and, from version 5, the bitmap in ECX [VP-05 VP-06]")
{
    INTEL_ONLY();
    uint64_t edx = (UINT64_C(1) << (leaf().edx & 0x1f)) - 1, ecx = leaf().ecx;
    if (pmu_here()->version < 2)
        CHECK_EQ(leaf().edx & 0x1fff, 0);
    if (pmu_here()->version < 5)
        CHECK_EQ(ecx, 0);
    else
        CHECK_EQ(ecx & edx, edx);
    uint64_t fixed = pmu_here()->reported >> PMU_FIXED, general = pmu_here()->reported & PMU_ANY_GP;
    if (pmu_here()->version >= 2 && (edx | ecx))
        CHECK_EQ(pmu_here()->fixed_width, leaf().edx >> 5 & 0xff);
    /* With bitmaps: before the first gap. */
    uint64_t below = (UINT64_C(1) << (leaf().eax >> 8 & 0xff)) - 1;
    if (has_bitmaps()) {
        CHECK_EQ(fixed, cpuid(LEAF_EXTENDED, 1).ebx);
        CHECK_EQ(general, cpuid(LEAF_EXTENDED, 1).eax);
    } else if (pmu_here()->version >= 2) {
        /* More only where the leaf may say too little; pmu_absent asks the registers. */
        uint64_t more = pmu_here()->version < 5 ? 7 : is_hybrid() ? 0xf : 0;
        CHECK_EQ(fixed & ~more, (edx | ecx) & ~more);
        CHECK_EQ(general & ~(is_hybrid() ? 0xfful : 0), below & ~(is_hybrid() ? 0xfful : 0));
    }
    CHECK_EQ(pmu_here()->reported & below, below);
}

LAB_TEST(pmu_cpuid, any_thread,
         "0Ah.EDX[15] is set when bit 21 of a select is refused, from version 3 on [VP-07 VP-22]")
{
    INTEL_ONLY();
    bool refused = wrmsr_fault(pmu_select_msr(pmu_here(), 0), 1u << 21) == LAB_GP_FAULT;
    lab_wrmsr(pmu_select_msr(pmu_here(), 0), 0);
    CHECK_EQ(lab_rdmsr(pmu_select_msr(pmu_here(), 0)), 0);
    if (pmu_here()->version >= 3) /* before there is no such bit, and EDX[15] says nothing */
        CHECK_EQ(leaf().edx >> 15 & 1, refused);
    else
        CHECK(refused);
}

LAB_TEST(pmu_cpuid, capabilities,
         "1.ECX[15] exactly when MSR 345h can be read; it is read-only [VP-08 VP-21]")
{
    uint64_t value = 0;
    INTEL_ONLY();
    unsigned fault = rdmsr_fault(PERF_CAPABILITIES, &value);
    CHECK_EQ(fault, has_capabilities() ? 0 : LAB_GP_FAULT);
    CHECK_EQ(wrmsr_fault(PERF_CAPABILITIES, value), LAB_GP_FAULT);
    for (unsigned bit = 0; bit < 18; bit++)
        CHECK_EQ(wrmsr_fault(PERF_CAPABILITIES, value ^ 1u << bit), LAB_GP_FAULT);
    CHECK_EQ(pmu_here()->gp_write_width, value & FULL_WIDTH ? pmu_here()->gp_width : 32);
}

LAB_TEST(pmu_cpuid, amd_extended,
         "8000_0001.ECX[23] exactly when C001_0200h can be read [VP-09 VP-12]")
{
    uint64_t value;
    AMD_ONLY();
    bool extended = cpuid(0x80000001, 0).ecx & 1u << 23;
    for (unsigned n = 0; n < 6; n++) {
        for (uint32_t msr = 0xc0010200 + 2 * n; msr <= 0xc0010201 + 2 * n; msr++)
            extended ? (void)lab_rdmsr(msr) : lab_absent(msr);
    }
    for (unsigned n = 0; n < 8; n++)
        CHECK_EQ(rdmsr_fault(0xc0010000 + n, &value), 0);
    CHECK_EQ(gp() >= 6, extended);
    if (!extended)
        CHECK_EQ(pmu_here()->reported, PMU_FIRST(4));
}

LAB_TEST(pmu_cpuid, amd_v2,
         "8000_0022 announces PerfMonV2 with its counters, or is not there [VP-10]")
{
    AMD_ONLY();
    uint32_t max = cpuid(0x80000000, 0).eax;
    bool v2 = max >= LEAF_V2 && cpuid(LEAF_V2, 0).eax & 1;
    CHECK_EQ(v2, pmu_here()->version >= 2);
    CHECK_EQ(gp(), v2 ? cpuid(LEAF_V2, 0).ebx & 0xf : cpuid(0x80000001, 0).ecx & 1u << 23 ? 6 : 4);
    CHECK_BECAUSE(gp(), 4, 15, "four since the K7");
}

/* Eight of Intel's, or AMD's extended ones, which an older processor has none of. KVM swallows the
 * selects and counters 0 and 1 of the P6, which a PMU always has. */
LAB_TEST(pmu_absent, counters, "selects and counters that CPUID does not report fault [VP-14]")
{
    bool none = !lab_is_intel() && gp() < 6;
    CHECK(pmu_here()->reported != 0);
    for (unsigned n = 0; n < 8; n++)
        if (none || !is_reported(n)) {
            lab_absent(lab_is_intel() ? 0x186 + n : 0xc0010200 + 2 * n);
            lab_absent(lab_is_intel() ? 0xc1 + n : 0xc0010201 + 2 * n);
        }
    for (unsigned n = 0; n < 7 && lab_is_intel(); n++)
        if (!(pmu_here()->reported & PMU_FIX(n)))
            lab_absent(0x309 + n);
}

LAB_TEST(pmu_absent, full_width,
         "4C1h faults for an absent counter, and for all without 345h[13] [VP-20]")
{
    uint64_t value = 0;
    INTEL_ONLY();
    CHECK(pmu_here()->reported != 0);
    bool full =
        has_capabilities() && !rdmsr_fault(PERF_CAPABILITIES, &value) && (value & FULL_WIDTH);
    for (unsigned n = 0; n < 8; n++)
        if (!full || !is_reported(n))
            lab_absent(0x4c1 + n);
}

/* KVM on AMD has C000_0303h since Linux 6.18. From Nehalem to Broadwell, before version 4, 391h and
 * 392h are the uncore's, which silicon shows and KVM does not. */
LAB_TEST(pmu_absent, global_registers,
         "38Dh to 390h fault on version 1, 391h and 392h below 4, C000_0300h below PerfMonV2 "
         "[VP-15 VP-16 VP-19]")
{
    uint64_t value;
    if (!lab_is_intel()) {
        for (uint32_t msr = 0xc0000300; msr < 0xc0000304; msr++)
            if (pmu_here()->version < 2)
                lab_absent(msr);
            else if (msr != 0xc0000303 || !rdmsr_fault(msr, &value))
                CHECK_EQ(rdmsr_fault(msr, &value), 0);
            else
                lab_absent(msr);
        return;
    }
    bool uncore = !rules_kvm() && measured_here()->uncore;
    for (uint32_t msr = 0x38d; msr < 0x393; msr++) {
        unsigned since = msr < 0x391 ? 2 : 4;
        if (pmu_here()->version < since && since == 4 && uncore)
            CHECK(rdmsr_fault(msr, &value) == 0 || rdmsr_fault(msr, &value) == LAB_GP_FAULT);
        else if (pmu_here()->version < since)
            lab_absent(msr);
        else if (msr != 0x391)
            CHECK_EQ(rdmsr_fault(msr, &value), 0);
    }
}

/* KVM's rule: to a guest with PerfMonV2 Intel's three global registers are other names of its own.
 */
static bool is_alias(uint32_t msr)
{
    uint64_t value = 0, mine = pmu_here()->reported & ~UINT64_C(1);
    if (pmu_here()->version < 2 || msr < 0x38e || msr > 0x390 || rdmsr_fault(msr, &value) ||
        rules_absent_ignored())
        return false;
    lab_wrmsr(pmu_here()->msr.global_control, mine);
    CHECK_EQ(lab_rdmsr(msr), msr == 0x38f ? mine : 0);
    lab_wrmsr(pmu_here()->msr.global_control, 0);
    return true;
}

LAB_TEST(pmu_absent, other_vendor,
         "the other vendor's counters fault, except for those that KVM ignores [VP-14 S-1.6]")
{
    static const uint32_t amd_msrs[] = { 0xc0010200, 0xc0010201, 0xc001020a,
                                         0xc0000300, 0xc0000301, 0xc0000302 };
    static const uint32_t intel_msrs[] = { 0x309, 0x30a, 0x345, 0x38d, 0x38e,
                                           0x38f, 0x390, 0x391, 0x392, 0x4c1 };
    if (lab_is_intel())
        for (unsigned i = 0; i < ARRAY_SIZE(amd_msrs); i++)
            lab_absent(amd_msrs[i]);
    else
        for (unsigned i = 0; i < ARRAY_SIZE(intel_msrs); i++)
            if (!is_alias(intel_msrs[i]))
                lab_absent(intel_msrs[i]);
}

/* KVM sets bits 7, 11 and 12 for a guest, QEMU's reset leaves bit 0 alone. */
static bool qemu_reset_misc_enable(void) { return lab_rdmsr(MISC_ENABLE) == 1; }

LAB_TEST(pmu_absent, pebs, "without PEBS its registers fault and MISC_ENABLE says so [PE-01 VP-84]")
{
    INTEL_ONLY();
    uint64_t capabilities = has_capabilities() ? lab_rdmsr(PERF_CAPABILITIES) : 0;
    SKIP_IF(capabilities >> 8 & 0xf || cpuid(1, 0).edx & 1u << 21, "the processor has PEBS");
    lab_absent(0x3f1);
    lab_absent(0x3f2);
    lab_absent(0x600);
    if (!qemu_reset_misc_enable())
        CHECK_EQ(lab_rdmsr(MISC_ENABLE) >> 11 & 3, 3);
}

LAB_TEST(pmu_absent, uncore,
         "counters of a northbridge or L3 that CPUID does not report fault [S-1.4]")
{
    AMD_ONLY();
    uint32_t ecx = cpuid(0x80000001, 0).ecx;
    CHECK(pmu_here()->counters != 0);
    if (!(ecx & 1u << 24))
        lab_absent(0xc0010240);
    if (!(ecx & 1u << 28))
        lab_absent(0xc0010230);
    if (!(ecx & 1u << 27))
        lab_absent(0xc0010280);
}

LAB_TEST(pmu_cpuid, misc_enable, "MISC_ENABLE[7] is set, and a write cannot clear it [VP-86]")
{
    INTEL_ONLY();
    uint64_t value = lab_rdmsr(MISC_ENABLE);
    CHECK(value & 1u << 7 || qemu_reset_misc_enable());
    wrmsr_fault(MISC_ENABLE, value & ~(UINT64_C(1) << 7));
    CHECK_EQ(lab_rdmsr(MISC_ENABLE), value);
}

/* Whether freezing on a PMI may be there: bits 11 and 12. */
static bool may_freeze(void)
{
    if (lab_is_intel())
        return pmu_here()->version >= 2;
    return cpuid(0x80000000, 0).eax >= LEAF_V2 && cpuid(LEAF_V2, 0).eax & 1u << 2;
}

/* Where nothing interrupts and there is no SMM none of these bits stops a counter. */
static void check_that_it_counts(void)
{
    uint64_t able = pmu_counters_for(pmu_here(), PMU_INSTRUCTIONS);
    if (able)
        LAB_CHECK_COUNT(lab_count((unsigned)__builtin_ctzll(able),
                                  pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL), 0, lab_loop,
                                  100),
                        lab_expected(&lab_loop_work, LAB_INSTRUCTIONS, 100));
}

LAB_TEST(pmu_cpuid, debugctl,
         "DEBUGCTL reads 0 and takes 0; a bit that it takes reads back, or is ignored, and leaves "
         "the counters alone; it takes those that freeze only where that is there [VP-76 VP-77]")
{
    CHECK_EQ(lab_rdmsr(DEBUGCTL), 0);
    lab_wrmsr(DEBUGCTL, 0);
    for (unsigned bit = 11; bit <= 14; bit++) {
        uint64_t one = UINT64_C(1) << bit;
        unsigned fault = wrmsr_fault(DEBUGCTL, one);
        CHECK(fault == 0 || fault == LAB_GP_FAULT);
        uint64_t kept = lab_rdmsr(DEBUGCTL);
        CHECK(kept == 0 || (kept == one && !fault)); /* AMD's may be ignored */
        if (bit <= 12 && !may_freeze())
            CHECK_EQ(kept, 0);
        check_that_it_counts();
        lab_wrmsr(DEBUGCTL, 0);
    }
}

LAB_TEST(pmu_cpuid, after_reset,
         "after pmu_reset every register of the PMU reads 0, whatever it held; what clears all is "
         "taken [VP-37 VP-40 VP-87]")
{
    for_each_bit(ctr, pmu_here()->reported)
        wrmsr_fault(pmu_write_msr(pmu_here(), ctr), 0x1234567);
    pmu_reset();
    for_each_bit(ctr, pmu_here()->reported) {
        CHECK_EQ(lab_rdmsr(pmu_select_msr(pmu_here(), ctr)), 0);
        CHECK_EQ(lab_rdmsr(pmu_counter_msr(pmu_here(), ctr)), 0);
    }
    if (pmu_here()->msr.global_control) {
        CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_control), 0);
        CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_status), 0);
        lab_wrmsr(pmu_here()->msr.global_control, 0);
        lab_wrmsr(pmu_here()->msr.global_clear, pmu_here()->reported);
    }
}
