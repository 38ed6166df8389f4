/* SPDX-License-Identifier: MIT */
/* Conformance: global control and status, and the enable bits that a counter needs. */
#include "tests/harness/lab.h"

#define STATUS_SET (lab_is_intel() ? 0x391u : 0xc0000303u)
#define INUSE 0x392u
#define FROZEN (UINT64_C(1) << 59)
#define ITERATIONS 100u
#define STRETCHES 50u

#define SKIP_WITHOUT_GLOBAL() SKIP_IF(!pmu_here()->msr.global_control, "no global control")
#define SKIP_WITHOUT_SET() SKIP_IF(!can_set(), "no register that sets status")

static bool sets_a_bit(void)
{
    bool set = !wrmsr_fault(STATUS_SET, 1) && lab_rdmsr(pmu_here()->msr.global_status) & 1;
    lab_wrmsr(pmu_here()->msr.global_clear, 1);
    return set;
}

/* KVM on AMD has the register since Linux 6.18; where absent MSRs read 0, what it does tells. */
static bool can_set(void)
{
    uint64_t value;
    if (!pmu_here()->msr.global_control || (lab_is_intel() && pmu_here()->version < 4))
        return false;
    return lab_is_intel() ||
           (!rdmsr_fault(STATUS_SET, &value) && (!rules_absent_ignored() || sets_a_bit()));
}

static uint64_t all(void) { return pmu_here()->reported; }

/* The counter's own bit is kept. */
LAB_EACH(pmu_global_control, each_counter,
         "the counter's bit reads back, alone and among all [VP-25 VP-29]")
{
    SKIP_WITHOUT_GLOBAL();
    lab_wrmsr(pmu_here()->msr.global_control, PMU_BIT(ctr));
    CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_control), PMU_BIT(ctr));
    lab_wrmsr(pmu_here()->msr.global_control, all() & ~PMU_BIT(ctr));
    CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_control), all() & ~PMU_BIT(ctr));
    lab_wrmsr(pmu_here()->msr.global_control, 0);
}

/* Reserved bits of AMD's global registers: dropped by KVM's rule and ours. Of silicon no manual
 * says: they may fault, and global control may keep them, if one of them was seen to. */
static bool amd_may(void)
{
    return !lab_is_intel() && !rules_kvm() && measured_here()->global_used;
}

/* Bits of counters that are absent: Intel refuses them, AMD drops them. Bit 48 may be PERF_METRICS.
 */
LAB_TEST(pmu_global, control_absent,
         "bits of absent counters: refused by Intel, dropped by AMD [VP-25 VP-26]")
{
    SKIP_WITHOUT_GLOBAL();
    uint32_t msr = pmu_here()->msr.global_control;
    lab_wrmsr(msr, all());
    for (unsigned bit = 0; bit < 64; bit++) {
        if ((all() | UINT64_C(1) << 48) >> bit & 1)
            continue;
        unsigned fault = wrmsr_fault(msr, all() | PMU_BIT(bit));
        uint64_t found = lab_rdmsr(msr);
        if (amd_may()) {
            CHECK(fault == 0 || fault == LAB_GP_FAULT);
            CHECK(found == all() || (found == (all() | PMU_BIT(bit)) && !fault));
            lab_wrmsr(msr, all());
            continue;
        }
        if (!CHECK_EQ(fault, lab_is_intel() ? LAB_GP_FAULT : 0))
            test_note("bit %u", bit);
        CHECK_EQ(found, all());
    }
}

/* Writing the status register: #GP on Intel, ignored on AMD. */
LAB_TEST(pmu_global, status_read_only,
         "a write to the status faults on Intel, is ignored on AMD [VP-17 VP-18]")
{
    SKIP_WITHOUT_GLOBAL();
    for (unsigned bit = 0; bit < 64; bit++) {
        unsigned fault = wrmsr_fault(pmu_here()->msr.global_status, PMU_BIT(bit));
        CHECK(fault == (lab_is_intel() ? LAB_GP_FAULT : 0) || (amd_may() && fault == LAB_GP_FAULT));
        CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_status), 0);
    }
}

/* The register that clears: counters' bits and what else is legal there; the rest faults on Intel.
 * Reads 0. */
LAB_TEST(pmu_global, clear_legal,
         "the clearing register accepts its legal bits and reads 0 [VP-27 VP-28]")
{
    SKIP_WITHOUT_GLOBAL();
    uint64_t legal = all() | (lab_is_intel() ? UINT64_C(3) << 62 : 0),
             maybe = UINT64_C(0x1f) << 58 | UINT64_C(3) << 54 | UINT64_C(1) << 48;
    for (unsigned bit = 0; bit < 64; bit++) {
        unsigned fault = wrmsr_fault(pmu_here()->msr.global_clear, PMU_BIT(bit));
        if (amd_may() && !(legal >> bit & 1))
            CHECK(fault == 0 || fault == LAB_GP_FAULT);
        else if (!lab_is_intel() || legal >> bit & 1)
            CHECK_EQ(fault, 0);
        else if (!(maybe >> bit & 1) && !CHECK_EQ(fault, LAB_GP_FAULT))
            test_note("bit %u", bit);
        CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_clear), 0);
    }
}

/* Nothing counts unless both the counter's own control and its global bit are set. */
LAB_EACH(pmu_gates, each_counter,
         "stands still unless its own and its global enable are set [VP-49 VP-50]")
{
    uint64_t select = lab_select(ctr, PMU_KERNEL);
    uint32_t control = pmu_here()->msr.global_control;
    SKIP_WITHOUT_EVENT(ctr);
    pmu_program(ctr, select, 0);
    lab_loop(ITERATIONS);
    CHECK_EQ(pmu_read(ctr), 0); /* nothing started it */
    if (control) {
        lab_wrmsr(control, all() & ~PMU_BIT(ctr));
        lab_loop(ITERATIONS);
        lab_wrmsr(control, 0);
        CHECK_EQ(pmu_read(ctr), 0); /* every other global bit */
        pmu_program(ctr, 0, 0);
        lab_wrmsr(control, PMU_BIT(ctr));
        lab_loop(ITERATIONS);
        lab_wrmsr(control, 0);
        CHECK_EQ(pmu_read(ctr), 0); /* the global bit alone */
        if (!lab_is_fixed(ctr)) {
            lab_wrmsr(pmu_select_msr(pmu_here(), ctr), select); /* no EN */
            lab_wrmsr(control, PMU_BIT(ctr));
            lab_loop(ITERATIONS);
            lab_wrmsr(control, 0);
            CHECK_EQ(pmu_read(ctr), 0);
        }
    }
    CHECK_BECAUSE(lab_count(ctr, select, 0, lab_loop, ITERATIONS), ITERATIONS / 16,
                  ITERATIONS * 10000, "both are set");
    uint64_t stopped = pmu_read(ctr);
    lab_loop(ITERATIONS);
    CHECK_EQ(pmu_read(ctr), stopped);
}

/* Stopping and going on keeps the value, and adds up, whenever a hypervisor comes between: at the
 * ends of stretches, or in each iteration. */
LAB_EACH(pmu_adds_up, each_gp,
         "fifty short stretches count as much as a long one; exits at PAUSE lose nothing [VP-90]")
{
    const uint64_t stretch = lab_expected(&lab_loop_work, LAB_INSTRUCTIONS, ITERATIONS);
    SKIP_WITHOUT_COUNT_OF(PMU_INSTRUCTIONS, ctr);
    uint64_t select = lab_select(ctr, PMU_KERNEL),
             whole = lab_count(ctr, select, 0, lab_loop, STRETCHES * ITERATIONS);
    LAB_CHECK_COUNT(whole, lab_expected(&lab_loop_work, LAB_INSTRUCTIONS, STRETCHES * ITERATIONS));
    pmu_program(ctr, select, 0);
    struct pmu_gate gate = pmu_gate(ctr);
    for (unsigned i = 1; i <= STRETCHES; i++) {
        lab_measure(&gate, lab_loop, ITERATIONS);
        LAB_CHECK_COUNT(pmu_read(ctr), i * stretch);
    }
    uint64_t around = STRETCHES * stretch -
                      lab_expected(&lab_loop_work, LAB_INSTRUCTIONS, STRETCHES * ITERATIONS);
    LAB_CHECK_COUNT(pmu_read(ctr), whole + around);
    LAB_CHECK_COUNT(lab_count(ctr, select, 0, lab_pauses, ITERATIONS),
                    lab_expected(&lab_pauses_work, LAB_INSTRUCTIONS, ITERATIONS));
}

/* Status bits set by software: each by itself, kept until cleared, and only that one. */
LAB_EACH(pmu_status_set, each_counter, "STATUS_SET and RESET act on one bit [VP-28 VP-66 VP-75]")
{
    SKIP_WITHOUT_SET();
    uint32_t status = pmu_here()->msr.global_status, clear = pmu_here()->msr.global_clear;
    lab_wrmsr(STATUS_SET, PMU_BIT(ctr));
    CHECK_EQ(lab_rdmsr(status), PMU_BIT(ctr));
    lab_wrmsr(STATUS_SET, 0);
    lab_wrmsr(clear, 0);
    CHECK_EQ(lab_rdmsr(status), PMU_BIT(ctr));
    lab_wrmsr(STATUS_SET, all());
    CHECK_EQ(lab_rdmsr(status), all());
    lab_wrmsr(clear, PMU_BIT(ctr));
    CHECK_EQ(lab_rdmsr(status), all() & ~PMU_BIT(ctr));
    lab_wrmsr(clear, all());
    CHECK_EQ(lab_rdmsr(status), 0);
    CHECK_EQ(lab_rdmsr(pmu_counter_msr(pmu_here(), ctr)), 0);
}

LAB_TEST(pmu_global, set_absent, "STATUS_SET has no bit of an absent counter [VP-28 VP-75]")
{
    SKIP_WITHOUT_SET();
    for (unsigned bit = 0; bit < 48; bit++) {
        if (all() >> bit & 1)
            continue;
        unsigned fault = wrmsr_fault(STATUS_SET, PMU_BIT(bit));
        CHECK(fault == (lab_is_intel() ? LAB_GP_FAULT : 0) || (amd_may() && fault == LAB_GP_FAULT));
        CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_status), 0);
    }
    if (!lab_is_intel())
        CHECK_EQ(lab_rdmsr(STATUS_SET), 0);
}

/* CTR_FRZ, set by software: nothing counts until it is cleared. */
LAB_EACH(pmu_frozen, each_counter, "CTR_FRZ stops it, clearing lets it run [VP-75]")
{
    SKIP_IF(!lab_is_intel() || pmu_here()->version < 4, "no register that sets status");
    SKIP_WITHOUT_EVENT(ctr);
    lab_wrmsr(STATUS_SET, FROZEN);
    CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_status), FROZEN);
    struct pmu_gate gate = pmu_gate(ctr);
    pmu_write(ctr, 5);
    uint64_t select = lab_select(ctr, PMU_KERNEL);
    if (lab_is_fixed(ctr))
        lab_wrmsr(pmu_here()->msr.fixed_control, UINT64_C(1) << 4 * (ctr - PMU_FIXED));
    else
        lab_wrmsr(pmu_select_msr(pmu_here(), ctr), select | PMU_ENABLE);
    lab_measure(&gate, lab_loop, ITERATIONS);
    CHECK_EQ(pmu_read(ctr), 5);
    lab_wrmsr(pmu_here()->msr.global_clear, FROZEN);
    CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_status), 0);
    lab_measure(&gate, lab_loop, ITERATIONS);
    CHECK_BECAUSE(pmu_read(ctr), 5 + ITERATIONS / 16, ITERATIONS * 10000, "it runs again");
}

/* INUSE: bit n when EVENTSELn has an event, 32 + n when fixed counter n is enabled, 63 when one may
 * interrupt. */
LAB_EACH(pmu_inuse, each_counter, "GLOBAL_INUSE shows the counter and its interrupt [VP-16]")
{
    SKIP_IF(!lab_is_intel() || pmu_here()->version < 4, "no register of counters in use");
    CHECK_EQ(lab_rdmsr(INUSE), 0);
    pmu_program(ctr, lab_select(ctr, PMU_USER), 0);
    CHECK_EQ(lab_rdmsr(INUSE), PMU_BIT(ctr));
    pmu_program(ctr, lab_select(ctr, PMU_USER | PMU_INTERRUPT), 0);
    CHECK_EQ(lab_rdmsr(INUSE), PMU_BIT(ctr) | PMU_BIT(63));
    CHECK_EQ(wrmsr_fault(INUSE, 0), LAB_GP_FAULT);
    pmu_program(ctr, 0, 0);
    CHECK_EQ(lab_rdmsr(INUSE), 0);
}
