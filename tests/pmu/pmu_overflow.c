/* SPDX-License-Identifier: MIT */
/* Conformance: counters that wrap: value, status bit, and that nothing interrupts unless it was
 * asked for. */
#include "tests/harness/lab.h"

#define ITERATIONS 100u
#define LATE_READS 1000u

static uint64_t expected_value(void)
{
    return lab_expected(&lab_loop_work, LAB_INSTRUCTIONS, ITERATIONS);
}

static uint64_t overflow_status(void)
{
    return pmu_here()->msr.global_status ? lab_rdmsr(pmu_here()->msr.global_status) : 0;
}

static uint64_t preset(unsigned ctr, uint64_t events)
{
    return -events & pmu_mask(pmu_here(), ctr);
}

/* Silicon's rule: a counter that stops at exactly 0 may not have reported it yet; kvm-unit-tests,
 * too, look at 1. The manual's: it has. */
static bool tells_zero(void) { return !measured_here()->late_at_zero; }

/* Presets that end just below 0, at 0 and just above. */
LAB_EACH(pmu_wraps, each_counting_instructions,
         "wraps at its width, to the event [VP-38 VP-65 VP-73]")
{
    static const int32_t ends[] = { -2, -1, 0, 1, 2, 50 };
    SKIP_WITHOUT_COUNT_OF(PMU_INSTRUCTIONS, ctr);
    for (unsigned i = 0; i < ARRAY_SIZE(ends); i++) {
        uint64_t start =
            ((uint64_t)(int64_t)ends[i] - expected_value()) & pmu_mask(pmu_here(), ctr);
        uint64_t found = lab_count(ctr, lab_select(ctr, PMU_KERNEL), start, lab_loop, ITERATIONS);
        if (pmu_here()->exact) {
            CHECK_EQ(found, (uint64_t)(int64_t)ends[i] & pmu_mask(pmu_here(), ctr));
            if (ends[i] == 0 && !tells_zero())
                pmu_take_overflow();
            else if (pmu_here()->msr.global_status)
                CHECK_EQ(overflow_status(), ends[i] >= 0 ? PMU_BIT(ctr) : 0);
            if (ends[i] || tells_zero())
                CHECK_EQ(pmu_take_overflow(), ends[i] >= 0 ? PMU_BIT(ctr) : 0);
        } else {
            CHECK_BECAUSE((found - start) & pmu_mask(pmu_here(), ctr), expected_value(),
                          expected_value() * 9 / 8 + 8, "overcounts at exits");
        }
        pmu_clear(PMU_BIT(ctr));
    }
}

/* A carry out of a bit below the top is no overflow: some hypervisors take bit 31's for one. */
LAB_EACH(pmu_carries, each_counting_instructions,
         "carries from bit to bit without status and interrupt [VP-38 VP-65]")
{
    SKIP_WITHOUT_COUNT_OF(PMU_INSTRUCTIONS, ctr);
    lab_catch();
    for (unsigned bit = 8; 1ul << bit <= pmu_max_period(pmu_here(), ctr); bit++) {
        uint64_t start = (1ul << bit) - 5;
        LAB_CHECK_COUNT(lab_count(ctr, lab_select(ctr, PMU_KERNEL | PMU_INTERRUPT), start, lab_loop,
                                  ITERATIONS) -
                            start,
                        expected_value());
        CHECK_EQ(pmu_take_overflow(), 0);
    }
    lab_loop(lab_late(1));
    CHECK_EQ(lab_caught.pmis, 0);
    lab_release();
}

/* With INT clear the status bit is set, and no interrupt comes, as neither vector. */
LAB_EACH(pmu_quiet, each_counter, "INT clear: status bit, no interrupt [VP-65 VP-67 VP-72]")
{
    SKIP_WITHOUT_EVENT(ctr);
    lab_catch();
    uint64_t found =
        lab_count(ctr, lab_select(ctr, PMU_KERNEL), preset(ctr, 10), lab_loop, ITERATIONS);
    for (unsigned i = 0; i < 100; i++)
        pause();
    CHECK_BECAUSE(found, 1, ITERATIONS * 10000, "wrapped, and went on");
    CHECK_EQ(lab_caught.pmis, 0);
    CHECK_EQ(lab_caught.nmis, 0);
    CHECK(!(apic_read_pmi_lvt() & APIC_LVT_MASKED));
    if (pmu_here()->msr.global_status)
        CHECK_EQ(overflow_status(), PMU_BIT(ctr));
    pmu_program(ctr, lab_select(ctr, PMU_KERNEL), 0); /* the kernel's promise: clears it */
    if (pmu_here()->msr.global_status)
        CHECK_EQ(overflow_status(), 0);
    lab_release();
}

static void tell_late(uint64_t bit)
{
    for (unsigned reads = 2; reads < LATE_READS; reads++)
        if (overflow_status() & bit) {
            test_note("the status comes late: read %u has it", reads);
            return;
        }
}

/* The status bit stays through stop, clear and reads until it is written, and only its own write
 * clears it. */
LAB_EACH(pmu_sticky, each_counter,
         "its status bit, and no other, stays until it is cleared [VP-66 VP-80 VP-81]")
{
    SKIP_IF(!pmu_here()->msr.global_status, "no global status");
    SKIP_WITHOUT_EVENT(ctr);
    lab_count(ctr, lab_select(ctr, PMU_KERNEL), preset(ctr, 10), lab_loop, ITERATIONS);
    if (!CHECK_EQ(overflow_status(), PMU_BIT(ctr)))
        tell_late(PMU_BIT(ctr));
    CHECK_EQ(overflow_status(), PMU_BIT(ctr));
    lab_wrmsr(pmu_write_msr(pmu_here(), ctr), 0);
    CHECK_EQ(overflow_status(), PMU_BIT(ctr));
    lab_wrmsr(pmu_here()->msr.global_clear, pmu_here()->reported & ~PMU_BIT(ctr));
    CHECK_EQ(overflow_status(), PMU_BIT(ctr));
    lab_wrmsr(pmu_here()->msr.global_clear, 0);
    CHECK_EQ(overflow_status(), PMU_BIT(ctr));
    lab_wrmsr(pmu_here()->msr.global_control, PMU_BIT(ctr));
    lab_wrmsr(pmu_here()->msr.global_control, 0);
    CHECK_EQ(overflow_status(), PMU_BIT(ctr));
    lab_wrmsr(pmu_here()->msr.global_clear, PMU_BIT(ctr));
    CHECK_EQ(overflow_status(), 0);
    CHECK_EQ(overflow_status(), 0);
}

/* A second overflow sets the bit again; the counter counted on in between. */
LAB_EACH(pmu_again, each_counter,
         "overflows again and again, each is reported, and once [VP-65 VP-82]")
{
    SKIP_WITHOUT_EVENT(ctr);
    for (unsigned i = 1; i <= 5; i++) {
        uint64_t turns = ITERATIONS + lab_iterations(ctr, 10 * i);
        CHECK_EQ(pmu_take_overflow(), 0);
        lab_count(ctr, lab_select(ctr, PMU_KERNEL), preset(ctr, 10 * i), lab_loop, turns);
        CHECK_EQ(pmu_take_overflow(), PMU_BIT(ctr));
        CHECK_EQ(pmu_take_overflow(), 0); /* once taken it is forgotten */
        lab_count(ctr, lab_select(ctr, PMU_KERNEL), preset(ctr, 10 * i), lab_loop, turns);
        pmu_clear(PMU_BIT(ctr)); /* and one that nobody took, with the counter */
    }
}

/* Armed, it reads negative until it overflows: what a driver without a status register looks at. */
LAB_EACH(pmu_armed, each_counter, "armed it reads negative, after its overflow not [VP-82]")
{
    SKIP_WITHOUT_EVENT(ctr);
    uint64_t top = pmu_mask(pmu_here(), ctr) / 2 + 1, longest = pmu_max_period(pmu_here(), ctr);
    CHECK(lab_count(ctr, lab_select(ctr, PMU_KERNEL), preset(ctr, longest), lab_loop, ITERATIONS) &
          top);
    CHECK_EQ(pmu_take_overflow(), 0);
    CHECK(lab_count(ctr, lab_select(ctr, PMU_KERNEL), preset(ctr, 1u << 30), lab_loop, ITERATIONS) &
          top);
    CHECK_EQ(pmu_take_overflow(), 0);
    CHECK(!(lab_count(ctr, lab_select(ctr, PMU_KERNEL), preset(ctr, 20), lab_loop, ITERATIONS) &
            top));
    CHECK_EQ(pmu_take_overflow(), PMU_BIT(ctr));
}

LAB_EACH(pmu_armed_again, each_counter,
         "after its overflow it is armed for what is left of the period, if anything is")
{
    uint64_t mask = pmu_mask(pmu_here(), ctr);
    pmu_write(ctr, 999);
    CHECK(pmu_rearm(ctr, 1000));
    CHECK_EQ(pmu_read(ctr), mask);
    pmu_write(ctr, 1000);
    CHECK(!pmu_rearm(ctr, 1000));
    CHECK_EQ(pmu_read(ctr), 1000);
    CHECK_EQ(pmu_rearm_late(ctr, 1000), 1);
    CHECK_EQ(pmu_read(ctr), -1000ul & mask);
    pmu_clear(PMU_BIT(ctr));
}

LAB_EACH(pmu_armed_late, each_counter,
         "armed periods late it keeps what is left; before it wraps, its next event overflows")
{
    uint64_t mask = pmu_mask(pmu_here(), ctr);
    pmu_write(ctr, 2500);
    CHECK_EQ(pmu_rearm_late(ctr, 1000), 2);
    CHECK_EQ(pmu_read(ctr), -500ul & mask);
    pmu_write(ctr, -5ul & mask);
    CHECK_EQ(pmu_rearm_late(ctr, 1000), 0);
    CHECK_EQ(pmu_read(ctr), mask);
    pmu_clear(PMU_BIT(ctr));
}
