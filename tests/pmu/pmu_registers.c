/* SPDX-License-Identifier: MIT */
/* Conformance: what the registers of a counter take, refuse and give back. */
#include "tests/harness/lab.h"

#define NO_EVENT 0xf000000c0u
#define ODD_ONES 0x5555555555555555u

/* What the select register keeps: on Intel all but ANY and 63:32; AMD has 35:32 as bits of the
 * event, but not on the K8. */
static uint64_t select_legal(void)
{
    return lab_is_intel() ? 0xffdfffff : pmu_here()->code_max > 0xff ? 0xfffd7ffff : 0xffd7ffff;
}

static void fixed_reads_back(unsigned ctr)
{
    unsigned shift = 4 * (ctr - PMU_FIXED);
    static const uint8_t legal[] = { 0, 1, 2, 3, 8, 9, 10, 11 };
    for (unsigned i = 0; i < sizeof legal; i++) {
        lab_wrmsr(pmu_here()->msr.fixed_control, (uint64_t)legal[i] << shift);
        CHECK_EQ(lab_rdmsr(pmu_here()->msr.fixed_control), (uint64_t)legal[i] << shift);
    }
}

/* Every bit by itself, all, none. EN stays clear, so that nothing runs. */
LAB_EACH(pmu_select, each_counter, "every legal bit of the control reads back [VP-29 VP-13]")
{
    uint32_t msr = pmu_select_msr(pmu_here(), ctr);
    if (lab_is_fixed(ctr)) {
        fixed_reads_back(ctr);
        return;
    }
    uint64_t legal = select_legal() & ~(uint64_t)(PMU_ENABLE | 1u << 19);
    for (uint64_t rest = legal; rest; rest &= rest - 1) {
        lab_wrmsr(msr, rest & -rest);
        CHECK_EQ(lab_rdmsr(msr), rest & -rest);
    }
    lab_wrmsr(msr, legal);
    CHECK_EQ(lab_rdmsr(msr), legal);
    lab_wrmsr(msr, 0);
    CHECK_EQ(lab_rdmsr(msr), 0);
    if (pmu_here()->code_max > 0xff) /* an event that is none, whose low eight bits are one */
        CHECK_EQ(lab_count(ctr, NO_EVENT | PMU_KERNEL, 0, lab_loop, 100), 0);
}

static void refuses(uint32_t msr, uint64_t value, uint64_t old)
{
    if (!CHECK_EQ(wrmsr_fault(msr, value), LAB_GP_FAULT))
        test_note("MSR %x took %lx", msr, value);
    CHECK_EQ(lab_rdmsr(msr), old);
}

static void keeps(uint32_t msr, uint64_t value, uint64_t old)
{
    lab_wrmsr(msr, value);
    CHECK_EQ(lab_rdmsr(msr), value);
    lab_wrmsr(msr, old);
}

static void drops(uint32_t msr, uint64_t value, uint64_t old)
{
    lab_wrmsr(msr, value);
    if (!CHECK_EQ(lab_rdmsr(msr), old))
        test_note("MSR %x kept %lx", msr, value);
}

/* The bit reads as it was written, or 0; no other changes. */
static void keeps_or_drops(uint32_t msr, uint64_t value, uint64_t old)
{
    lab_wrmsr(msr, value);
    uint64_t found = lab_rdmsr(msr);
    if (!CHECK(found == value || found == old))
        test_note("MSR %x: wrote %lx over %lx, found %lx", msr, value, old, found);
    lab_wrmsr(msr, old);
    CHECK_EQ(lab_rdmsr(msr), old);
}

/* Silicon's rule on Intel: a bit of TSX, which microcode has switched off, may be there still. */
static void refuses_or_keeps(uint32_t msr, uint64_t value, uint64_t old)
{
    if (wrmsr_fault(msr, value) == LAB_GP_FAULT) {
        CHECK_EQ(lab_rdmsr(msr), old);
        return;
    }
    if (!CHECK_EQ(lab_rdmsr(msr), value))
        test_note("MSR %x took %lx", msr, value);
    lab_wrmsr(msr, old);
    CHECK_EQ(lab_rdmsr(msr), old);
}

/* A reserved bit: Intel faults and keeps the old value. AMD's manual: ignored, MBZ. KVM's rule and
 * ours: dropped. Silicon's: some are kept, such as 19 and 42 of Zen 3 (Linux 9b026073db2f). */
LAB_EACH(pmu_reserved, each_counter,
         "Intel refuses reserved bits, AMD drops them [VP-22 VP-23 VP-24 VP-63]")
{
    uint32_t msr = pmu_select_msr(pmu_here(), ctr);
    uint64_t old = lab_is_fixed(ctr) ? UINT64_C(3) << 4 * (ctr - PMU_FIXED)
                                     : pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_USER);
    /* AnyThread: versions 3 and 4; from 5 on CPUID 0Ah.EDX[15] says that there is none. */
    bool any_thread = pmu_here()->select_flags & PMU_ANY_THREAD;
    lab_wrmsr(msr, old);
    bool strict = rules_kvm() || !measured_here()->select_kept;
    if (lab_is_fixed(ctr)) {
        (any_thread ? keeps : refuses)(msr, old | UINT64_C(4) << 4 * (ctr - PMU_FIXED), old);
        for (unsigned bit = 48; bit < 64; bit++)
            if (bit % 4 || !(pmu_here()->reported >> (PMU_FIXED + (bit - 32) / 4) & 1))
                refuses(msr, old | UINT64_C(1) << bit, old);
        for (unsigned bit = 0; bit < 32; bit++)
            if (!(pmu_here()->reported >> (PMU_FIXED + bit / 4) & 1))
                (strict ? refuses : refuses_or_keeps)(msr, old | UINT64_C(1) << bit, old);
        return;
    }
    void (*reserved)(uint32_t, uint64_t, uint64_t) = lab_is_intel() ? refuses : drops;
    if (!strict)
        reserved = lab_is_intel() ? refuses_or_keeps : keeps_or_drops;
    (any_thread ? keeps : reserved)(msr, old | PMU_ANY_THREAD, old);
    for (unsigned bit = 32; bit < 64; bit++)
        if (!rules_may_have_a_use(bit))
            reserved(msr, old | UINT64_C(1) << bit, old);
    if (!lab_is_intel())
        reserved(msr, old | 1u << 19, old);
}

/* Where Intel's general-purpose counters were before version 6; the first eight still are. */
#define OLD_COUNTER 0xc1u
static bool has_old_register(unsigned ctr)
{
    uint64_t value;
    return lab_is_intel() && !lab_is_fixed(ctr) && !rdmsr_fault(OLD_COUNTER + ctr, &value);
}

/* No write is an overflow, whatever was there before. */
static void reads_everywhere(unsigned ctr, uint64_t wanted)
{
    if (pmu_here()->msr.global_status)
        CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_status) & PMU_BIT(ctr), 0);
    if (has_old_register(ctr))
        CHECK_EQ(lab_rdmsr(OLD_COUNTER + ctr), wanted);
    CHECK_EQ(lab_rdmsr(pmu_counter_msr(pmu_here(), ctr)), wanted);
    CHECK_EQ(lab_rdmsr(pmu_write_msr(pmu_here(), ctr)), wanted);
    CHECK_EQ(rdpmc(pmu_rdpmc_index(ctr)), wanted);
}

/* Every bit of a stopped counter by itself, both ways of reading. */
LAB_EACH(pmu_bits, each_counter,
         "every bit is kept, RDMSR and RDPMC agree [VP-33 VP-34 VP-36 VP-41 VP-42 C-1.4]")
{
    uint64_t writable =
        ctr < PMU_FIXED ? pmu_max_period(pmu_here(), ctr) : pmu_mask(pmu_here(), ctr);
    for (uint64_t rest = writable; rest; rest &= rest - 1) {
        lab_wrmsr(pmu_write_msr(pmu_here(), ctr), rest & -rest);
        reads_everywhere(ctr, rest & -rest);
    }
    static const uint64_t patterns[] = { 0, 1, 0xffff, 0x12345678, ODD_ONES, ~ODD_ONES };
    for (unsigned i = 0; i < ARRAY_SIZE(patterns); i++) {
        lab_wrmsr(pmu_write_msr(pmu_here(), ctr), patterns[i] & writable);
        reads_everywhere(ctr, patterns[i] & writable);
    }
    lab_wrmsr(pmu_write_msr(pmu_here(), ctr), pmu_mask(pmu_here(), ctr));
    reads_everywhere(ctr, pmu_mask(pmu_here(), ctr));
    lab_wrmsr(pmu_write_msr(pmu_here(), ctr), lab_rdmsr(pmu_counter_msr(pmu_here(), ctr)) ^ 0xffff);
    reads_everywhere(ctr, pmu_mask(pmu_here(), ctr) ^ 0xffff);
}

/* What a write of bits beyond the width does: each register has its own way (VP-31, VP-32, VP-35).
 * Those of a fixed counter KVM ignores and silicon refuses; both leave no such bit. */
LAB_EACH(pmu_width, each_counter, "sign extension, and bits beyond the width [VP-31 VP-34 VP-35]")
{
    uint64_t value = 0xffffff0123456789, mask = pmu_mask(pmu_here(), ctr);
    uint32_t msr = pmu_counter_msr(pmu_here(), ctr);
    if (!lab_is_intel()) {
        lab_wrmsr(msr, value);
        reads_everywhere(ctr, value & mask);
    } else if (!lab_is_fixed(ctr)) {
        SKIP_IF(!has_old_register(ctr), "no register that takes 32 bits");
        msr = OLD_COUNTER + ctr;
        lab_wrmsr(msr, value); /* legacy: bits 31:0, sign-extended */
        reads_everywhere(ctr, 0x23456789);
        for (unsigned i = 0; i < 32; i++) {
            lab_wrmsr(msr, UINT64_C(0xdeadbeef00000000) | 1u << i);
            reads_everywhere(ctr, (uint64_t)(int32_t)(1u << i) & mask);
        }
        lab_wrmsr(msr, 0x89abcdef);
        reads_everywhere(ctr, (uint64_t)(int32_t)0x89abcdef & mask);
    } else {
        uint64_t fits = value & mask;
        lab_wrmsr(msr, fits);
        CHECK(wrmsr_fault(msr, value) == 0 || lab_rdmsr(msr) == fits);
        reads_everywhere(ctr, fits);
    }
}

/* Where there are none the first counter says so. */
static uint64_t each_full_width(void)
{
    return lab_is_intel() && pmu_kinds->gp_write_width > 32 ? each_gp() : 1;
}

static uint64_t each_k7(void) { return lab_is_intel() ? 1 : each_gp() & PMU_FIRST(4); }

/* 4C1h+n, or 1900h+4n: what does not fit faults, bit for bit, and changes nothing; both addresses
 * show one counter. */
LAB_EACH(pmu_full_width, each_full_width,
         "4C1h accepts the whole width and refuses more [VP-20 VP-32 VP-33]")
{
    SKIP_IF(!lab_is_intel() || pmu_here()->gp_write_width == 32, "no full-width writes");
    uint32_t msr = pmu_write_msr(pmu_here(), ctr);
    uint64_t value = UINT64_C(0xff0123456789) & pmu_mask(pmu_here(), ctr);
    lab_wrmsr(msr, value);
    for (unsigned bit = pmu_here()->gp_width; bit < 64; bit++)
        refuses(msr, value | UINT64_C(1) << bit, value);
    reads_everywhere(ctr, value);
    if (has_old_register(ctr))
        lab_wrmsr(OLD_COUNTER + ctr, 0x7654321);
    else
        lab_wrmsr(msr, 0x7654321);
    reads_everywhere(ctr, 0x7654321);
}

/* C001_0000h+n and C001_0004h+n are the same registers as the extended ones of counters 0 to 3. */
LAB_EACH(pmu_k7_alias, each_k7, "K7 and extended registers are the same [VP-30]")
{
    uint32_t select = 0xc0010000 + ctr, counter = 0xc0010004 + ctr;
    SKIP_IF(lab_is_intel(), "AMD only");
    for (unsigned i = 0; i < 4; i++) {
        uint64_t event = pmu_select(pmu_here(), PMU_INSTRUCTIONS, i << 16),
                 value = 0xff0123456789 + i;
        lab_wrmsr(select, event);
        CHECK_EQ(lab_rdmsr(pmu_select_msr(pmu_here(), ctr)), event);
        lab_wrmsr(counter, value);
        reads_everywhere(ctr, value);
        lab_wrmsr(pmu_select_msr(pmu_here(), ctr), i);
        CHECK_EQ(lab_rdmsr(select), i);
        lab_wrmsr(pmu_counter_msr(pmu_here(), ctr), i);
        CHECK_EQ(lab_rdmsr(counter), i);
    }
}
