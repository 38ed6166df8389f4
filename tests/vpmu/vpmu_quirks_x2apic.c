/* SPDX-License-Identifier: MIT */
/* The quirk x2apic: what IA32_APIC_BASE and MSRs 800h to 8FFh do in each state of the local APIC.
 * Without it there is none. Source: Intel SDM vol. 3 "Extended XAPIC (x2APIC)". */
#include "tests/harness/lab.h"

enum { ID = 0x802, VERSION = 0x803, TPR = 0x808, EOI = 0x80b, LDR = 0x80d, SPURIOUS = 0x80f };
enum { ERRORS = 0x828, ICR = 0x830, LAST = 0x8ff };
enum { LVT_TIMER = 0x832, LVT_THERMAL, LVT_PMI, LVT_LINT0, LVT_LINT1, LVT_ERROR };
enum { INITIAL = 0x838, CURRENT = 0x839, DIVIDE = 0x83e, SELF_IPI = 0x83f };
enum { OFF, INVALID, MEMORY, MSRS, STATES }; /* IA32_APIC_BASE[11:10] */
#define MASKED (1u << 16)
#define ANYBODY 0xffffffffull
#define NOBODY 0x12345678ull /* an id that no CPU has */
#define LOGICAL (1u << 11)
#define LOWEST (1u << 8)

#define SKIP_WITHOUT_X2APIC()                                                                      \
    SKIP_IF(!is_on(), vpmu_quirk("x2apic") ? "the kernel leaves it off" : "PMU= has no x2apic")

static bool is_on(void) { return lab_rdmsr(MSR_APIC_BASE) >> 10 & 1; }

/* The bits that may be written; some of them are read only in a register of the LVT. */
static const struct {
    uint32_t msr;
    uint64_t legal, ignored;
} written[] = {
    { TPR, 0xff, 0 },
    { EOI, 0, 0 },
    { SPURIOUS, 0x1ff, 0 },
    { ERRORS, 0, 0 },
    { ICR, 0xffffffff000cdfff, 0x1000 },
    { LVT_TIMER, 0x310ff, 0x1000 },
    { LVT_THERMAL, 0x117ff, 0x1000 },
    { LVT_PMI, 0x117ff, 0x1000 },
    { LVT_LINT0, 0x1f7ff, 0x5000 },
    { LVT_LINT1, 0x1f7ff, 0x5000 },
    { LVT_ERROR, 0x110ff, 0x1000 },
    { INITIAL, 0xffffffff, 0 },
    { DIVIDE, 0xb, 0 },
    { SELF_IPI, 0xff, 0 },
};

static bool can_write(uint32_t msr, unsigned *row)
{
    for (*row = 0; *row < ARRAY_SIZE(written); ++*row)
        if (written[*row].msr == msr)
            return true;
    return false;
}

static bool can_read(uint32_t msr)
{
    unsigned row;
    return (can_write(msr, &row) && msr != EOI && msr != SELF_IPI) || msr == ID || msr == VERSION ||
           msr == 0x80a || msr == LDR || msr == CURRENT || (msr >= 0x810 && msr <= 0x827);
}

static unsigned fault_where_not(bool allowed) { return allowed ? 0 : LAB_GP_FAULT; }

static void check_accesses(bool there)
{
    uint64_t value;
    unsigned row;
    for (uint32_t msr = MSR_X2APIC; msr <= LAST; msr++) {
        bool ok = CHECK_EQ(rdmsr_fault(msr, &value), fault_where_not(there && can_read(msr)));
        if (!there || !can_write(msr, &row))
            ok &= CHECK_EQ(wrmsr_fault(msr, 0), LAB_GP_FAULT);
        if (!ok)
            test_note("MSR %x", msr);
    }
}

/* The registers that software sets: as they were, at the end of a test. The timer goes on from its
 * initial count. */
static const uint32_t kept[] = { TPR,       SPURIOUS,  LVT_TIMER, LVT_THERMAL, LVT_PMI,
                                 LVT_LINT0, LVT_LINT1, LVT_ERROR, DIVIDE,      INITIAL };
static uint64_t values[ARRAY_SIZE(kept)];

static void keep_registers(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(kept); i++)
        values[i] = lab_rdmsr(kept[i]);
}

static void put_registers_back(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(kept); i++)
        lab_wrmsr(kept[i], values[i]);
}

/* One bit after the other; what is not masked would interrupt. */
static void check_bits(uint32_t msr, uint64_t legal, uint64_t ignored)
{
    bool plain = can_read(msr) && msr != ICR; /* a write of the others does something */
    uint64_t base = msr >= LVT_TIMER && msr <= LVT_ERROR ? MASKED : 0;
    for (unsigned i = 0; i < 64; i++) {
        uint64_t value = 1ull << i | base;
        bool ok = true;
        if (msr == LVT_TIMER && i == 18 && vpmu_quirk("deadline"))
            continue;
        if (!(legal >> i & 1))
            ok = CHECK_EQ(wrmsr_fault(msr, value), LAB_GP_FAULT);
        else if (plain)
            ok = CHECK_EQ(wrmsr_fault(msr, value), 0) && CHECK_EQ(lab_rdmsr(msr), value & ~ignored);
        if (!ok)
            test_note("MSR %x, bit %u", msr, i);
    }
}

static uint64_t count_write(uint32_t msr, uint64_t value)
{
    unsigned ctr = vpmu_counter();
    lab_write_msr = msr;
    return lab_count(ctr, lab_select(ctr, PMU_KERNEL), 0, lab_write_inside, value);
}

/* CPUID 1.ECX[21]. Register n0h in memory is MSR 800h + n, but for ICR, which is one of 64 bits;
 * the logical id is no choice: cluster id / 16 in the upper half, a bit for id % 16. */
VPMU_TEST(vpmu_quirks, x2apic,
          "each of MSRs 800h to 8FFh is there, or faults, as do reserved bits, as the manual says; "
          "without the quirk there is no x2APIC [VP-91]")
{
    CHECK_EQ(cpuid(1, 0).ecx >> 21 & 1, vpmu_quirk("x2apic") != 0);
    /* Without need and without a hypervisor apic.c leaves it off. */
    CHECK_EQ(is_on(), vpmu_quirk("x2apic") > vpmu_quirk("nohyper"));
    SKIP_WITHOUT_X2APIC();
    uint64_t flags = read_flags(), id = lab_rdmsr(ID);
    cli();
    keep_registers();
    CHECK_EQ(id, cpuid(0xb, 0).edx);
    CHECK_EQ(lab_rdmsr(LDR), id >> 4 << 16 | 1u << (id & 15));
    CHECK_EQ(lab_rdmsr(VERSION) >> 16, 5); /* six LVT entries */
    check_accesses(true);
    for (unsigned i = 0; i < ARRAY_SIZE(written); i++)
        check_bits(written[i].msr, written[i].legal, written[i].ignored);
    lab_wrmsr(ERRORS, 0);
    if (lab_event(vpmu_counter()) != PMU_EVENT_COUNT)
        CHECK_EQ(count_write(LVT_THERMAL, MASKED), count_write(MSR_PAT, lab_rdmsr(MSR_PAT)));
    put_registers_back();
    if (flags & RFLAGS_IF)
        sti();
}

/* --- States. --- */

static unsigned write_state(uint64_t base, unsigned state)
{
    return wrmsr_fault(MSR_APIC_BASE,
                       (base & ~(uint64_t)(APIC_BASE_ENABLE | APIC_BASE_X2APIC)) | state << 10);
}

/* In `state`: writes that lead to states in `forbidden`, bits, and reserved bits. */
static void check_state(uint64_t base, unsigned state, unsigned forbidden)
{
    uint64_t here = (base & ~0xc00ull) | state << 10;
    unsigned address = cpuid(0x80000008, 0).eax & 0xff;
    CHECK_EQ(lab_rdmsr(MSR_APIC_BASE), here);
    CHECK_EQ(cpuid(1, 0).edx >> 9 & 1, state != OFF);
    for (unsigned to = 0; to < STATES; to++)
        if (forbidden >> to & 1)
            CHECK_EQ(write_state(base, to), LAB_GP_FAULT);
    for (unsigned i = 0; i < 64; i++)
        if (i < 8 || i == 9 || i >= address)
            CHECK_EQ(wrmsr_fault(MSR_APIC_BASE, here | 1ull << i), LAB_GP_FAULT);
    if (state == MSRS)
        lab_wrmsr(ICR, NOBODY << 32 | APIC_PMI_VECTOR);
    *apic_mmio(0x80) = 0x20;
    CHECK_EQ(write_state(base, state), 0); /* which changes nothing */
    CHECK_EQ(*apic_mmio(0x80), 0x20);
    if (state == MSRS)
        CHECK_EQ(lab_rdmsr(ICR), NOBODY << 32 | APIC_PMI_VECTOR);
    CHECK_EQ(lab_rdmsr(MSR_APIC_BASE), here);
    if (state != MSRS)
        check_accesses(false);
}

/* IA32_APIC_BASE[11:10]: 0 off, 2 in memory, 3 by MSRs, 1 never. From MSRs the way to memory leads
 * through off, and from off to MSRs through memory; all else raises #GP. */
VPMU_TEST(vpmu_quirks, x2apic_states,
          "the local APIC changes between off, by memory and by MSRs as the manual allows, and "
          "registers are those of a reset after it was off [VP-92]")
{
    SKIP_WITHOUT_X2APIC();
    uint64_t flags = read_flags(), base = lab_rdmsr(MSR_APIC_BASE);
    cli();
    keep_registers();
    check_state(base, MSRS, 1u << INVALID | 1u << MEMORY);
    for (uint32_t msr = LVT_TIMER; msr <= LVT_ERROR; msr++)
        lab_wrmsr(msr, MASKED | APIC_PMI_VECTOR);
    CHECK_EQ(write_state(base, OFF), 0);
    check_state(base, OFF, 1u << INVALID | 1u << MSRS);
    CHECK_EQ(write_state(base, MEMORY), 0);
    check_state(base, MEMORY, 1u << INVALID);
    CHECK_EQ(write_state(base, OFF), 0);
    CHECK_EQ(write_state(base, MEMORY), 0);
    *apic_mmio(0x310) = 0x55000000;
    *apic_mmio(0xe0) = 0x0fffffff; /* clusters */
    CHECK_EQ(write_state(base, MSRS), 0);
    CHECK_EQ(lab_rdmsr(ICR) >> 32, 0);
    CHECK_EQ(*apic_mmio(0xe0), UINT32_MAX); /* what devices reach: the first eight, by a bit each */
    CHECK_EQ(*apic_mmio(0xd0), lab_rdmsr(ID) < 8 ? 1u << (24 + lab_rdmsr(ID)) : 0);
    for (unsigned i = 0; i < ARRAY_SIZE(kept); i++)
        CHECK_EQ(lab_rdmsr(kept[i]), kept[i] == SPURIOUS                            ? 0xff
                                     : kept[i] >= LVT_TIMER && kept[i] <= LVT_ERROR ? MASKED
                                                                                    : 0);
    lab_wrmsr(SPURIOUS, 0x1ff); /* else LVT entries stay masked */
    put_registers_back();
    if (flags & RFLAGS_IF)
        sti();
}

/* --- Interrupts to this CPU. --- */

static void sends(uint64_t to, uint32_t command, unsigned pmis, unsigned nmis)
{
    uint64_t value = to << 32 | command | APIC_PMI_VECTOR;
    lab_caught.pmis = lab_caught.nmis = 0;
    lab_wrmsr(ICR, value | 1u << 12);
    lab_loop(1000);
    bool ok = CHECK_EQ(lab_caught.pmis, pmis) && CHECK_EQ(lab_caught.nmis, nmis) &&
              CHECK_EQ(lab_rdmsr(ICR), value);
    if (!ok)
        test_note("ICR %lx", value);
}

/* By MSRs all CPUs are FFFF_FFFFh, no longer FFh; ICR has no delivery status to wait for; SELF IPI
 * (83Fh) is there in this mode alone. */
VPMU_TEST(vpmu_quirks, x2apic_sends,
          "interrupts come to ids of 32 bits, to clusters, and by SELF IPI; one EOI ends each "
          "[VP-93]")
{
    SKIP_WITHOUT_X2APIC();
    uint64_t id = lab_rdmsr(ID), ldr = lab_rdmsr(LDR), cluster = ldr & 0xffff0000;
    lab_catch();
    sends(id, 0, 1, 0);
    sends(id, 0x4000, 1, 0);
    sends(id, 4u << 8, 0, 1);
    sends(0, 1u << 18, 1, 0);
    sends(ldr, LOGICAL, 1, 0);
    sends(ldr, LOGICAL | 4u << 8, 0, 1);
    sends(ldr, LOGICAL | LOWEST, 1, 0);
    if (id == 1)
        sends(3, LOGICAL | LOWEST, 0, 0); /* to CPU 0, as one of both */
    sends(id + 0x100, 0, 0, 0);
    sends(0xff, 0, 0, 0); /* in memory: to any */
    sends(id | 0x80000000, 0, 0, 0);
    sends(cluster | 1u << 15, LOGICAL, (id & 15) == 15, 0);
    sends(cluster + 0x10000 + (ldr & 0xffff), LOGICAL, 0, 0);
    sends(cluster, LOGICAL, 0, 0);
    if (cpu_count == 1) {
        sends(ANYBODY, 0, 1, 0);
        sends(ANYBODY, LOGICAL, 1, 0);
        sends(0, 3u << 18, 0, 0); /* to all others */
    }
    lab_caught.pmis = 0;
    lab_wrmsr(SELF_IPI, APIC_PMI_VECTOR);
    lab_loop(1000);
    CHECK_EQ(lab_caught.pmis, 1);
    CHECK(!apic_is_in_service(APIC_PMI_VECTOR) && !apic_is_pending(APIC_PMI_VECTOR));
    lab_release();
}
