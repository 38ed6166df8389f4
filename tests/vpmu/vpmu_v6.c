/* SPDX-License-Identifier: MIT */
/* Version 6 of the architectural PMU, as the virtual PMU has it: counters with gaps between,
 * reported by leaf 23h; registers at 1900h; the second unit mask and EQ of a select. */
#include "tests/harness/lab.h"

enum {
    PERFCTR = 0xc1,
    PERFEVTSEL = 0x186,
    FIXED_CTR = 0x309,
    FIXED_CTR_CTRL = 0x38d,
    GLOBAL_CTRL = 0x38f,
    FULL_WIDTH = 0x4c1,
    V6_GP = 0x1900,
    V6_FIXED = 0x1980
};
#define ENABLED_INSTRUCTIONS 0x4200c0u
#define CONDITIONAL (0x4211c4u)
#define UMASK2(n) ((uint64_t)(n) << 40)
#define EQ (1ull << 36)
#define THRESHOLD(n) ((uint64_t)(n) << 24)
#define WINDOW 16u

#define SKIP_WITHOUT_V6()                                                                          \
    SKIP_IF(!lab_is_intel() || (cpuid(0x0a, 0).eax & 0xff) < 6, "not version 6")

static unsigned fault_unless(bool there) { return there ? 0 : LAB_GP_FAULT; }

/* As Lunar Lake's do. */
VPMU_TEST(vpmu_v6, leaves,
          "leaf 23h reports counters and events, leaf 0Ah those of both kinds of cores")
{
    SKIP_WITHOUT_V6();
    struct cpuid old = cpuid(0x0a, 0), first = cpuid(0x23, 0), counters = cpuid(0x23, 1),
                 events = cpuid(0x23, 3);
    CHECK_EQ(cpuid(7, 1).eax >> 8 & 1, 1);
    CHECK_EQ(first.eax & 0xb, 0xb);
    CHECK_EQ(first.ebx & 3, 3);
    CHECK_EQ(counters.eax & ((1u << (old.eax >> 8 & 0xff)) - 1), (1u << (old.eax >> 8 & 0xff)) - 1);
    CHECK_EQ(counters.ebx & old.ecx, old.ecx);
    CHECK_EQ(counters.ebx & ((1u << (old.edx & 0x1f)) - 1), (1u << (old.edx & 0x1f)) - 1);
    CHECK_EQ(events.eax & 0x7f, 0x7f);
    CHECK_EQ(old.ebx, 0x280); /* slots, and one of the top-down analysis */
    CHECK_EQ(cpuid(0x23, 2).eax | cpuid(0x23, 4).eax, 0);
}

/* Every register of a counter that the bitmaps lack faults, those of the others are there. */
VPMU_TEST(vpmu_v6, gaps, "registers, RDPMC and control bits are those of the bitmaps")
{
    SKIP_WITHOUT_V6();
    struct cpuid counters = cpuid(0x23, 1);
    const bool all = vpmu_quirk("ignoremsrs"); /* those that are absent read 0 */
    uint64_t value = 0;
    for (unsigned n = 0; n < WINDOW; n++) {
        bool gp = counters.eax >> n & 1, fixed = counters.ebx >> n & 1;
        CHECK_EQ(rdpmc_fault(n, &value), fault_unless(gp));
        CHECK_EQ(rdpmc_fault(RDPMC_FIXED + n, &value), fault_unless(fixed));
        CHECK_EQ(rdmsr_fault(V6_GP + 4 * n, &value), fault_unless(gp || all));
        CHECK_EQ(rdmsr_fault(V6_GP + 4 * n + 1, &value), fault_unless(gp || all));
        CHECK_EQ(rdmsr_fault(V6_GP + 4 * n + 2, &value), fault_unless(all));
        CHECK_EQ(rdmsr_fault(V6_FIXED + 4 * n, &value), fault_unless(fixed || all));
        CHECK_EQ(rdmsr_fault(V6_FIXED + 4 * n + 1, &value), fault_unless(all));
        CHECK_EQ(wrmsr_fault(GLOBAL_CTRL, 1ull << n), fault_unless(gp));
        CHECK_EQ(wrmsr_fault(GLOBAL_CTRL, 1ull << (32 + n)), fault_unless(fixed));
        CHECK_EQ(wrmsr_fault(FIXED_CTR_CTRL, n < 8 ? 3ull << 4 * n : 0),
                 fault_unless(fixed || n >= 8));
        lab_wrmsr(GLOBAL_CTRL, 0);
        lab_wrmsr(FIXED_CTR_CTRL, 0);
    }
}

/* One counter with three addresses; written in full at 1900h, with no bit beyond its width. */
VPMU_TEST(vpmu_v6, aliases, "the registers at 1900h are the same as the old ones")
{
    SKIP_WITHOUT_V6();
    struct cpuid counters = cpuid(0x23, 1);
    uint64_t value = 0x123456789abc;
    for (unsigned n = 0; n < WINDOW; n++) {
        if (counters.eax >> n & 1) {
            lab_wrmsr(V6_GP + 4 * n, value + n);
            CHECK_EQ(lab_rdmsr(PERFCTR + n), value + n);
            CHECK_EQ(lab_rdmsr(FULL_WIDTH + n), value + n);
            CHECK_EQ(wrmsr_fault(V6_GP + 4 * n, 1ull << 48), LAB_GP_FAULT);
            lab_wrmsr(V6_GP + 4 * n + 1, 0x300c0 + n);
            CHECK_EQ(lab_rdmsr(PERFEVTSEL + n), 0x300c0 + n);
            lab_wrmsr(PERFEVTSEL + n, 0);
            CHECK_EQ(lab_rdmsr(V6_GP + 4 * n + 1), 0);
        }
        if (counters.ebx >> n & 1) {
            lab_wrmsr(V6_FIXED + 4 * n, value + n);
            CHECK_EQ(lab_rdmsr(FIXED_CTR + n), value + n);
        }
    }
}

/* What counter n, driven by nothing but its registers at 1900h, counts of 100 iterations. */
static uint64_t count_at_1900h(unsigned n, uint64_t select, const struct lab_work *work)
{
    struct pmu_gate gate = { GLOBAL_CTRL, 1ull << n, 0 };
    lab_wrmsr(V6_GP + 4 * n, 0);
    lab_wrmsr(V6_GP + 4 * n + 1, select);
    lab_measure(&gate, work->code, 100);
    lab_wrmsr(V6_GP + 4 * n + 1, 0);
    return lab_rdmsr(V6_GP + 4 * n);
}

/* Another second unit mask is another event: only with 01 this one counts conditional branches, and
 * on the small cores of a hybrid processor no mask does. */
VPMU_TEST(vpmu_v6, umask2, "the second unit mask is a part of the event")
{
    SKIP_WITHOUT_V6();
    bool small = cpuid(7, 0).edx >> 15 & 1 && cpuid(0x1a, 0).eax >> 24 == 0x20;
    CHECK_EQ(count_at_1900h(0, CONDITIONAL | UMASK2(1), &lab_loop_work), small ? 0 : 100);
    CHECK_EQ(count_at_1900h(0, CONDITIONAL, &lab_loop_work), 0);
    CHECK_EQ(count_at_1900h(0, CONDITIONAL | UMASK2(2), &lab_loop_work), 0);
    for (unsigned bit = 40; bit < 48; bit++) {
        lab_wrmsr(PERFEVTSEL, 1ull << bit);
        CHECK_EQ(lab_rdmsr(V6_GP + 1), 1ull << bit);
    }
    static const uint8_t reserved[] = { 19, 21, 32, 33, 35, 37, 38, 39, 48, 63 };
    for (unsigned i = 0; i < sizeof reserved; i++)
        CHECK_EQ(wrmsr_fault(PERFEVTSEL, 1ull << reserved[i]), LAB_GP_FAULT);
}

/* Slots are eight in every cycle: a threshold of seven is reached, but not met exactly. */
VPMU_TEST(vpmu_v6, equal, "EQ wants as many occurrences as the threshold, not more")
{
    SKIP_WITHOUT_V6();
    uint64_t slots = 0x4201a4, cycles = count_at_1900h(0, 0x42003c, &lab_loop_work);
    SKIP_IF(!(cpuid(0x23, 3).eax >> 7 & 1), "this kind of CPU counts no slots");
    CHECK_EQ(count_at_1900h(0, slots, &lab_loop_work), 8 * cycles);
    CHECK_EQ(count_at_1900h(0, slots | THRESHOLD(7), &lab_loop_work), cycles);
    CHECK_EQ(count_at_1900h(0, slots | THRESHOLD(7) | EQ, &lab_loop_work), 0);
    CHECK_EQ(count_at_1900h(0, slots | THRESHOLD(8) | EQ, &lab_loop_work), cycles);
}
