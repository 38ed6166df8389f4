/* SPDX-License-Identifier: MIT */
/* The quirks of the virtual PMU that are in its registers: each is there if its word is on, and not
 * if it is off. */
#include "tests/harness/lab.h"

enum {
    MISC_ENABLE = 0x1a0,
    PERF_METRICS = 0x329,
    PERF_CAPABILITIES = 0x345,
    GLOBAL_CTRL = 0x38f,
    FIXED_CTR_CTRL = 0x38d,
    PERFCTR = 0xc1,
    PERFEVTSEL = 0x186,
    PMC_PAST_ALL = 0xcc,
    STATUS_SET = 0xc0000303,
    INTEL_STATUS = 0x38e,
    AMD_STATUS = 0xc0000300,
    AMD_CONTROL = 0xc0000301,
    AMD_CLEAR = 0xc0000302
};
#define ANY_THREAD (1u << 21)
#define ABSENT "not a register of this vendor's PMU"

/* The vector that an access raises, as it should be: #GP unless it is legal. */
static unsigned fault_unless(bool legal) { return legal ? 0 : LAB_GP_FAULT; }

/* This CPU, of a hybrid processor. */
static bool is_small(void) { return vpmu_quirk("hybrid") && cpuid(0x1a, 0).eax >> 24 == 0x20; }

/* AnyThread (bit 21 of a select, bit 2 of each fixed counter's nibble) counts what both threads
 * of a core do. Versions 3 and 4 have it; from 5 on CPUID 0Ah.EDX[15] takes it away, and KVM's
 * guests never have it. */
VPMU_TEST(vpmu_quirks, anythread,
          "the AnyThread bits are legal where the quirk says so, else they fault")
{
    struct cpuid leaf = cpuid(0x0a, 0);
    unsigned version = leaf.eax & 0xff;
    SKIP_IF(!lab_is_intel(), ABSENT);
    bool legal = vpmu_quirk("anythread") || version == 3;
    if (version >= 3)
        CHECK_EQ(leaf.edx >> 15 & 1, !legal);
    CHECK_EQ(wrmsr_fault(PERFEVTSEL,
                         pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL) | ANY_THREAD),
             fault_unless(legal));
    if (pmu_here()->reported >> PMU_FIXED & 1)
        CHECK_EQ(wrmsr_fault(pmu_here()->msr.fixed_control, 7), fault_unless(legal));
}

/* Large cores since Ice Lake have PERF_METRICS (PERF_CAPABILITIES[15]), by RDPMC 2000_0000h too;
 * global control's bit 48 enables it. With the slots counted the metrics are a share of them, in
 * four bytes whose sum is 255. */
VPMU_TEST(vpmu_quirks, metrics, "PERF_METRICS is there where the quirk says so, by RDPMC too")
{
    bool legal = vpmu_quirk("metrics") && !is_small();
    uint64_t value = 0, by_msr = 0;
    SKIP_IF(!lab_is_intel(), ABSENT);
    CHECK_EQ(rdpmc_fault(RDPMC_METRICS, &value), fault_unless(legal));
    CHECK_EQ(rdmsr_fault(PERF_METRICS, &by_msr), fault_unless(legal || vpmu_quirk("ignoremsrs")));
    CHECK_EQ(!rdmsr_fault(PERF_CAPABILITIES, &value) && value >> 15 & 1, legal);
    if (pmu_here()->msr.global_control)
        CHECK_EQ(wrmsr_fault(GLOBAL_CTRL, 1ull << 48), fault_unless(legal));
    if (!legal || !(pmu_here()->reported & PMU_FIX(3)))
        return;
    lab_wrmsr(PERF_METRICS, 0);
    lab_wrmsr(pmu_here()->msr.fixed_control, 1ull << 12);
    lab_wrmsr(GLOBAL_CTRL, 1ull << 48 | PMU_FIX(3));
    lab_loop(100);
    lab_wrmsr(GLOBAL_CTRL, 0);
    CHECK_EQ(rdpmc_fault(RDPMC_METRICS, &value), 0);
    CHECK_EQ(lab_rdmsr(PERF_METRICS), value);
    CHECK_EQ((value & 0xff) + (value >> 8 & 0xff) + (value >> 16 & 0xff) + (value >> 24 & 0xff),
             0xff);
}

/* As many as the word says, in windows without a hole, and not one more. */
VPMU_TEST(vpmu_quirks, gp, "there are as many general-purpose counters as the quirk says")
{
    uint64_t wanted = vpmu_quirk("gp"), value = 0;
    SKIP_IF(!lab_is_intel(), ABSENT);
    SKIP_IF(!wanted, "the quirk gp is off");
    const bool leaf_23 = cpuid(0, 0).eax >= 0x23; /* before, leaf 0Ah says what both kinds have */
    wanted = is_small() ? leaf_23 ? 8 : 6 : wanted;
    CHECK_EQ(cpuid(0x0a, 0).eax >> 8 & 0xff, vpmu_quirk("hybrid") && !leaf_23 ? 6 : wanted);
    bool ignored = vpmu_quirk("ignoremsrs");
    for (unsigned n = 0; n <= PMC_PAST_ALL - PERFCTR; n++) {
        CHECK_EQ(rdmsr_fault(PERFCTR + n, &value), fault_unless(n < wanted || ignored));
        CHECK_EQ(rdmsr_fault(PERFEVTSEL + n, &value), fault_unless(n < wanted || ignored));
        CHECK_EQ(rdpmc_fault(n, &value), fault_unless(n < wanted));
        if (pmu_here()->msr.global_control)
            CHECK_EQ(wrmsr_fault(GLOBAL_CTRL, 1ull << n), fault_unless(n < wanted));
    }
    if (!(pmu_here()->reported >> (wanted - 1) & 1)) /* nothing asks beyond the leaf */
        return;
    uint64_t last = lab_count((unsigned)wanted - 1, pmu_select(pmu_here(), PMU_CYCLES, PMU_KERNEL),
                              0, lab_loop, 1000);
    CHECK_BECAUSE(last, 2000 / 16, 2 * 2000, "cycles of 2,000 instructions");
}

/* AMD's reserved bits are MBZ, and a write does not fault. Zen 3 keeps some: Milan 19 and 42.
 * KVM raised #GP for them before Linux 9b026073db2f, and drops them since. */
VPMU_TEST(vpmu_quirks, sticky,
          "reserved bits of a select are dropped, or fault on Intel, but for those that the quirk "
          "names")
{
    uint64_t kept = vpmu_quirk("sticky");
    uint32_t select = pmu_select_msr(pmu_here(), vpmu_counter());
    if (lab_is_intel()) {
        for (unsigned bit = 48; bit < 64; bit++) {
            CHECK_EQ(wrmsr_fault(select, 1ull << bit), fault_unless(kept >> bit & 1));
            CHECK_EQ(lab_rdmsr(select), kept & 1ull << bit);
            lab_wrmsr(select, 0);
        }
        return;
    }
    for (unsigned bit = 36; bit < 64; bit++) {
        lab_wrmsr(select, 1ull << bit);
        CHECK_EQ(lab_rdmsr(select), kept & 1ull << bit);
    }
    lab_wrmsr(select, 1u << 19 | 1u << 21);
    CHECK_EQ(lab_rdmsr(select), kept & (1u << 19 | 1u << 21));
}

/* AMD's PerfMonV2: KVM drops reserved bits that are written to C000_0300h to 0302h. Of silicon no
 * manual says: they may fault, and global control may keep them. */
VPMU_TEST(vpmu_quirks, v2bits,
          "reserved bits of AMD's global registers are dropped, or do what the quirk says")
{
    enum { KEEP = 1, FAULT = 2 };
    uint64_t word = vpmu_quirk("v2bits"), reserved = 1ull << 40;
    SKIP_IF(lab_is_intel() || !pmu_here()->msr.global_control, ABSENT);
    for (uint32_t msr = AMD_STATUS; msr <= AMD_CLEAR; msr++)
        CHECK_EQ(wrmsr_fault(msr, 1 | reserved), fault_unless(word != FAULT));
    CHECK_EQ(lab_rdmsr(AMD_CONTROL), word == FAULT ? 0 : 1 | (word == KEEP ? reserved : 0));
    CHECK_EQ(lab_rdmsr(AMD_STATUS), 0);
}

/* From Nehalem to Broadwell, before version 4, 391h and 392h are global registers of the
 * uncore's PMU; later they are the core's GLOBAL_STATUS_SET and GLOBAL_INUSE. What is written
 * stays, and is nobody's status. */
VPMU_TEST(vpmu_quirks, uncore, "391h and 392h are the uncore's where the quirk says so")
{
    uint64_t value = 0;
    SKIP_IF(!lab_is_intel() || pmu_here()->version >= 4, ABSENT);
    bool there = vpmu_quirk("uncore");
    for (uint32_t msr = 0x391; msr <= 0x392; msr++) {
        CHECK_EQ(wrmsr_fault(msr, msr), fault_unless(there || vpmu_quirk("ignoremsrs")));
        CHECK_EQ(rdmsr_fault(msr, &value), fault_unless(there || vpmu_quirk("ignoremsrs")));
        CHECK_EQ(value, there ? msr : 0);
    }
    if (pmu_here()->version >= 2)
        CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_status), 0);
}

/* ECX[31] was the fast mode of RDPMC on old processors; today's raise #GP. KVM up to Linux 6.8
 * gives the low half for it, and on AMD drops bits 31:30 before it looks for a counter. */
VPMU_TEST(vpmu_quirks, fastrdpmc,
          "RDPMC with bit 31 reads the low half, and AMD's ignores bit 30, where the quirk says so")
{
    enum { WRITTEN = 0x7654321 };
    bool there = vpmu_quirk("fastrdpmc");
    uint64_t low = 0, whole = 0, value = 0;
    unsigned n = (unsigned)__builtin_ctzll(pmu_here()->counters & PMU_ANY_GP);
    uint64_t wide = pmu_max_period(pmu_here(), n) & ~0xffull;
    lab_wrmsr(pmu_write_msr(pmu_here(), n), wide | WRITTEN);
    whole = rdpmc(n);
    CHECK_EQ(rdpmc_fault(RDPMC_FAST | n, &low), fault_unless(there));
    if (there)
        CHECK_EQ(low, whole & 0xffffffff);
    CHECK_EQ(rdpmc_fault(RDPMC_FAST | 0x3ffffffe, &value), LAB_GP_FAULT);
    if (lab_is_intel())
        return;
    CHECK_EQ(rdpmc_fault(RDPMC_FIXED | n, &value), fault_unless(there));
    if (there)
        CHECK_EQ(value, whole);
    CHECK_EQ(rdpmc_fault(RDPMC_FIXED | pmu_here()->gp_reported, &value), LAB_GP_FAULT);
}

/* PerfMonV2 has C000_0303h, which sets status bits, on silicon. KVM, which has PerfMonV2 for
 * guests since Linux 6.5, has this register since 6.18 alone; before, it faults. */
VPMU_TEST(vpmu_quirks, noset, "the register that sets status is gone where the quirk says so")
{
    bool there = !vpmu_quirk("noset") || vpmu_quirk("ignoremsrs");
    SKIP_IF(lab_is_intel() || !pmu_here()->msr.global_control, ABSENT);
    CHECK_EQ(wrmsr_fault(STATUS_SET, 1), fault_unless(there));
    CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_status), !vpmu_quirk("noset"));
}

/* AMD's global registers by Intel's numbers, under Intel's rules. */
/* KVM keeps one set of global registers for both vendors: to a guest with PerfMonV2 those that
 * are C000_0300h to 0302h answer at Intel's 38Eh to 390h, too. */
VPMU_TEST(vpmu_quirks, v2alias,
          "AMD's global registers have Intel's numbers too where the quirk says so")
{
    uint64_t value = 0;
    bool there = vpmu_quirk("v2alias");
    SKIP_IF(lab_is_intel() || !pmu_here()->msr.global_control, ABSENT);
    for (unsigned n = 0; n < 3; n++)
        CHECK_EQ(rdmsr_fault(INTEL_STATUS + n, &value),
                 fault_unless(there || vpmu_quirk("ignoremsrs")));
    lab_wrmsr(AMD_CONTROL, 1);
    if (!there)
        return;
    CHECK_EQ(lab_rdmsr(INTEL_STATUS + 1), 1);
    lab_wrmsr(INTEL_STATUS + 1, 2);
    CHECK_EQ(lab_rdmsr(AMD_CONTROL), 2);
    CHECK_EQ(wrmsr_fault(INTEL_STATUS + 1, 1ull << 40), LAB_GP_FAULT);
    CHECK_EQ(wrmsr_fault(INTEL_STATUS, 0), LAB_GP_FAULT);
    wrmsr_fault(STATUS_SET, 1);
    lab_wrmsr(INTEL_STATUS + 2, 1);
    CHECK_EQ(lab_rdmsr(AMD_STATUS), 0);
}

/* IA32_MISC_ENABLE[7] says that there is a PMU, bits 11 and 12 that BTS and PEBS are
 * missing. Silicon and KVM do not let them be changed; QEMU's reset leaves a KVM guest with
 * bit 0 alone. */
VPMU_TEST(vpmu_quirks, misc, "MISC_ENABLE reads what the quirk says")
{
    uint64_t wanted = vpmu_quirk("misc"), unavailable = 1u << 11 | 1u << 12;
    SKIP_IF(!lab_is_intel(), ABSENT);
    uint64_t pebs = cpuid(1, 0).edx & 1u << 21 ? 1u << 12 : 0;
    wanted = wanted ? wanted : 1u | 1u << 7 | (unavailable & ~pebs);
    CHECK_EQ(lab_rdmsr(MISC_ENABLE), wanted);
    CHECK_EQ(wrmsr_fault(MISC_ENABLE, wanted ^ unavailable), LAB_GP_FAULT);
    CHECK_EQ(wrmsr_fault(MISC_ENABLE, wanted), 0);
    CHECK_EQ(lab_rdmsr(MISC_ENABLE), wanted);
}

/* A register of the other vendor's PMU, and a reserved bit of one that is there. */
VPMU_TEST(vpmu_quirks, ignoremsrs,
          "absent MSRs read 0 and ignore writes where the quirk says so, else they fault")
{
    bool ignored = vpmu_quirk("ignoremsrs");
    uint32_t absent = lab_is_intel() ? 0xc0010004 : PERFCTR;
    uint64_t value = 1;
    CHECK_EQ(rdmsr_fault(absent, &value), fault_unless(ignored));
    CHECK_EQ(wrmsr_fault(absent, 5), fault_unless(ignored));
    if (ignored) {
        value = 1;
        CHECK_EQ(rdmsr_fault(absent, &value), 0);
        CHECK_EQ(value, 0);
    }
    if (lab_is_intel())
        CHECK_EQ(wrmsr_fault(PERFEVTSEL, 1ull << 63), LAB_GP_FAULT);
}

/* RDPMC does not wait for what stands before it (SDM volume 2, APM volume 3, "RDPMC"). An LFENCE
 * does, on AMD only if CPUID 8000_0021h.EAX[2] or MSR C001_1029h[1] says so. Not in the
 * laboratory, which takes all CPUs for alike. */
VPMU_TEST(vpmu_quirks, nofence,
          "the bit that makes AMD's LFENCE wait can be set unless the quirk says that it cannot")
{
    enum { DE_CFG = 0xc0011029 };
    uint64_t before = 0, now = 0;
    SKIP_IF(lab_is_intel(), ABSENT);
    CHECK_EQ(rdmsr_fault(DE_CFG, &before), 0);
    CHECK_EQ(wrmsr_fault(DE_CFG, before | 2), 0);
    CHECK_EQ(rdmsr_fault(DE_CFG, &now), 0);
    CHECK_EQ(now >> 1 & 1, !vpmu_quirk("nofence"));
    CHECK_EQ(wrmsr_fault(DE_CFG, before), 0);
}

/* Intel's hybrids, from Alder Lake on: CPUID 7.EDX[15] says that it is one, 1Ah.EAX[31:24] which
 * kind this CPU is (40h Core, 20h Atom), and each kind has counters of its own. */
TEST(vpmu_quirks, hybrid,
     "CPUs with odd numbers are small cores where the quirk says so, with fewer counters")
{
    uint64_t value = 0;
    SKIP_WITHOUT_VPMU();
    CHECK_EQ(cpuid(7, 0).edx >> 15 & 1, vpmu_quirk("hybrid"));
    if (!vpmu_quirk("hybrid"))
        return;
    for (unsigned cpu = 0; test_run_on_each(cpu); cpu++) {
        struct cpuid leaf = cpuid(0x0a, 0);
        CHECK_EQ(cpuid(0x1a, 0).eax >> 24, cpu % 2 ? 0x20 : 0x40);
        CHECK_EQ(is_small(), cpu % 2);
        if (!is_small())
            continue;
        unsigned version = leaf.eax & 0xff, fixed = version >= 2 ? 3 : 0;
        unsigned gp = cpuid(0, 0).eax >= 0x23 ? 8 : 6;
        CHECK_EQ(leaf.eax >> 8 & 0xff, gp);
        CHECK_EQ(leaf.edx & 0x1f, fixed);
        CHECK_EQ(rdmsr_fault(PERFCTR + 5, &value), 0);
        CHECK_EQ(rdmsr_fault(PERFEVTSEL + gp, &value), fault_unless(vpmu_quirk("ignoremsrs")));
        CHECK_EQ(rdpmc_fault(gp, &value), LAB_GP_FAULT);
        CHECK_EQ(rdpmc_fault(0x40000003, &value), LAB_GP_FAULT);
        if (fixed && !rdmsr_fault(GLOBAL_CTRL, &value))
            CHECK_EQ(wrmsr_fault(GLOBAL_CTRL, value | 1u << gp), LAB_GP_FAULT);
        if (fixed && !rdmsr_fault(FIXED_CTR_CTRL, &value))
            CHECK_EQ(wrmsr_fault(FIXED_CTR_CTRL, value | 1u << 12), LAB_GP_FAULT);
    }
}
/* KVM says its name at 4000_0000h; its leaf 4000_0010h, which QEMU fills, has the rates of the TSC
 * and of the local APIC's timer in kHz. */
TEST(vpmu_quirks, kvm,
     "with the quirk the leaves of KVM come before those of the virtual PMU, and report the TSC's "
     "rate")
{
    SKIP_WITHOUT_VPMU();
    struct cpuid front = cpuid(0x40000000, 0), clocks = cpuid(0x40000010, 0);
    char signature[13] = { 0 };
    memcpy(signature, &front.ebx, 12);
    CHECK_EQ(strcmp(signature, "KVMKVMKVM") == 0, vpmu_quirk("kvm"));
    if (vpmu_quirk("kvm"))
        CHECK_BECAUSE(clocks.eax, clock_tsc_hz / 1000 - clock_tsc_hz / 100000,
                      clock_tsc_hz / 1000 + clock_tsc_hz / 100000,
                      "the kernel's own opinion, to 1 %");
}
/* QEMU's -cpu host,-hypervisor, for drivers of graphics cards that are passed through. */
TEST(vpmu_quirks, nohyper,
     "CPUID names no hypervisor where the quirk says so, and what asks for one is measured")
{
    SKIP_WITHOUT_VPMU();
    CHECK_EQ(cpu_features.hypervisor, !vpmu_quirk("nohyper"));
}
/* Hypervisors with Microsoft's interface, its maker's and others': 4000_0003h.EDX[2] clear means
 * that there are no counters, and Windows' HAL then has its timer alone. */
TEST(vpmu_quirks, hyperv,
     "a hypervisor that reports no counters is not believed if the counters count [KP-31]")
{
    SKIP_WITHOUT_VPMU();
    bool on = vpmu_quirk("hyperv");
    struct cpuid front = cpuid(0x40000000, 0);
    char signature[13] = { 0 };
    memcpy(signature, &front.ebx, 12);
    CHECK_EQ(strcmp(signature, "Microsoft Hv") == 0, on);
    if (!on)
        return;
    CHECK(front.eax >= 0x40000003 &&
          memcmp(&(uint32_t){ cpuid(0x40000001, 0).eax }, "Hv#1", 4) == 0);
    CHECK_EQ(cpuid(0x40000003, 0).edx & 4, 0); /* PerformanceMonitorsAvailable */
    CHECK(test_has_pmu());
    CHECK(hal_source_supported(ProfileTotalIssues) &&
          hal_source_supported(ProfileBranchInstructions));
}
