/* SPDX-License-Identifier: MIT */
/* Conformance, an instruction of each class at a time: it counts once, and as a branch only where
 * it is one. A hypervisor has a way of its own for each that it executes itself, in which it may
 * forget to count, or what an overflow brings. */
#include "tests/harness/lab.h"

#define FAR_MOST 100u
#define WAIT_PAUSES 10000u

static uint8_t buffer[512] __attribute__((aligned(64)));

static uint64_t count_op(unsigned ctr, uint64_t select, uint64_t start, const struct lab_op *op)
{
    return lab_count(ctr, select, start & pmu_mask(pmu_here(), ctr), op->code, (uint64_t)buffer);
}

static uint64_t wanted_of(const struct lab_op *op, enum pmu_event event)
{
    return event == PMU_INSTRUCTIONS ? (uint64_t)(int8_t)(op->effects >> 56)
           : event == PMU_BRANCHES   ? lab_effect(op, LAB_EFFECT_BRANCHES)
                                     : lab_effect(op, LAB_EFFECT_CONDITIONAL);
}

static bool check_op(unsigned ctr, enum pmu_event event, const struct lab_op *op, uint64_t none)
{
    uint64_t found = count_op(ctr, pmu_select(pmu_here(), event, PMU_KERNEL), 0, op);
    uint64_t wanted = none + wanted_of(op, event);
    struct lab_range range = lab_range(wanted);
    if (event == PMU_CONDITIONAL_BRANCHES)
        return CHECK_EQ(found, wanted); /* nothing adds to them */
    if (lab_effect(op, LAB_EFFECT_FAR))
        return CHECK_BECAUSE(found, range.low, range.high + FAR_MOST,
                             "some processors count a far transfer more than once");
    return CHECK_BECAUSE(found, range.low, range.high, range.why);
}

/* Of each kind of counters the first that counts the event. */
static void check_ops(enum pmu_event event)
{
    uint64_t able = pmu_counters_for(pmu_here(), event), fixed = able & ~PMU_ANY_GP;
    SKIP_IF(!able, "the processor does not count the event there");
    for_each_bit(ctr, (able & -able) | (fixed & -fixed)) {
        uint64_t none = count_op(ctr, pmu_select(pmu_here(), event, PMU_KERNEL), 0, lab_ops);
        for (const struct lab_op *op = lab_ops; op < lab_ops_end; op++)
            if (lab_has_op(op) && !check_op(ctr, event, op, none))
                test_note("%s: %lu by a NOP", op->name, none);
    }
}

LAB_TEST(pmu_ops, instructions, "an instruction of each class counts once [VP-52]")
{
    check_ops(PMU_INSTRUCTIONS);
}

LAB_TEST(pmu_ops, branches, "of each class, branches alone count as branches [VP-53 slow]")
{
    check_ops(PMU_BRANCHES);
}

LAB_TEST(pmu_ops, conditional,
         "of each class, conditional branches alone count as such, no LOCKed instruction [slow]")
{
    check_ops(PMU_CONDITIONAL_BRANCHES);
}

/* The counter wraps at each instruction of the run in turn, so at the one that exits, too. */
static void check_overflows(unsigned ctr, const struct lab_op *op)
{
    uint64_t select = pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL | PMU_INTERRUPT);
    uint64_t all = UINT64_MAX, n; /* SMIs and NMIs add */
    for (unsigned i = 0; i < 4; i++)
        all = (n = count_op(ctr, select, 0, op)) < all ? n : all;
    struct lab_range one = lab_pmis(1);
    for (uint64_t after = 1; after < all; after++) {
        unsigned before = lab_caught.pmis;
        apic_write_pmi_lvt(VECTOR_PMI);
        count_op(ctr, select, -after, op);
        for (unsigned i = 0; i < WAIT_PAUSES && lab_caught.pmis == before; i++)
            pause();
        bool pmi = CHECK_BECAUSE(lab_caught.pmis - before, one.low, one.high, one.why);
        if (!(CHECK_EQ(pmu_take_overflow(), PMU_BIT(ctr)) & pmi))
            test_note("%s: at instruction %lu of %lu", op->name, after, all);
    }
}

LAB_TEST(pmu_ops, overflow,
         "a counter overflows at instructions that exit as at others: status and PMI [VP-65 slow]")
{
    uint64_t able = pmu_counters_for(pmu_here(), PMU_INSTRUCTIONS);
    SKIP_IF(!able, "the processor does not count the event there");
    SKIP_IF(measured_here()->throttled, "a counter that overflows often stops");
    lab_catch();
    for (const struct lab_op *op = lab_ops; op < lab_ops_end; op++)
        if (op->effects & LAB_EXITS && lab_has_op(op))
            check_overflows(bit_lowest(able), op);
    lab_release();
}

static uint64_t count_halt(unsigned ctr, void (*code)(uint64_t))
{
    cli();
    apic_send_self(VECTOR_PMI); /* it comes after the instruction behind STI: HLT ends at once */
    uint64_t found =
        lab_count(ctr, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL), 0, code, 0);
    sti();
    return found;
}

static void halts(uint64_t unused __attribute__((unused))) { asm volatile("sti\nhlt\ncli"); }
static void rests(uint64_t unused __attribute__((unused))) { asm volatile("sti\nnop\ncli"); }

LAB_TEST(pmu_ops, halt, "HLT counts once, as a NOP does [VP-52]")
{
    uint64_t able = pmu_counters_for(pmu_here(), PMU_INSTRUCTIONS);
    SKIP_IF(!able, "the processor does not count the event there");
    lab_catch();
    unsigned ctr = bit_lowest(able);
    LAB_CHECK_COUNT(count_halt(ctr, halts), count_halt(ctr, rests));
    CHECK_EQ(lab_caught.pmis, 2);
    lab_release();
}
