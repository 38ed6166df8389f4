/* SPDX-License-Identifier: MIT */
/* Conformance: last-branch records. A program whose branches have names (lbr_program.asm) runs with
 * the list on, and the whole list is compared with the assembler's table, newest first. */
#include "tests/harness/lbr_list.h"

#define ALL_CLASSES (((1u << PMU_HIDE_COUNT) - 1) & ~(1u << PMU_HIDE_KERNEL | 1u << PMU_HIDE_USER))
#define STEPS_BRANCHES 2u
#define FREEZE (1u << 11)
#define LIST_FROZEN (UINT64_C(1) << 58)
#define ARCH_DEPTH 0x14cfu
#define PAIR 0x1dbu
#define PERIOD 2000u
#define CYCLES_IN_TO 6u                   /* a format: Goldmont's */
#define NOT_CANONICAL (UINT64_C(1) << 56) /* with LA57 too */

LAB_TEST(lbr_stack, program,
         "every branch of a program is in the list, in order, from the branch to the next "
         "instruction executed, and nothing else [LB-04 LB-05]")
{
    SKIP_WITHOUT_BRANCHES();
    lbr_check_program(0);
}

LAB_TEST(lbr_stack, filters,
         "each class that is hidden, and each two (neighbours; all if `long`), is missing, the "
         "others not [LB-06 slow]")
{
    SKIP_WITHOUT_FILTER();
    for (unsigned a = PMU_HIDE_JCC; a < PMU_HIDE_COUNT; a++)
        for (unsigned b = a; b < PMU_HIDE_COUNT && (b <= a + 1 || test_long()); b++)
            lbr_check_program(1u << a | 1u << b);
    lbr_check_program(ALL_CLASSES);
    for (unsigned a = PMU_HIDE_JCC; a < PMU_HIDE_COUNT; a++)
        lbr_check_program(ALL_CLASSES & ~(1u << a));
}

LAB_TEST(lbr_stack, rings, "a ring that is hidden is missing, the other one not [LB-06]")
{
    SKIP_WITHOUT_FILTER();
    lbr_check_program(1u << PMU_HIDE_KERNEL);
    lbr_check_program(1u << PMU_HIDE_USER);
    lbr_check_program(1u << PMU_HIDE_KERNEL | 1u << PMU_HIDE_USER);
}

TEST(lbr_stack, ring3,
     "the program in ring 3, with exceptions and SYSCALL: in each filter of rings the list is as "
     "in ring 0 [LB-04 LB-06]")
{
    SKIP_WITHOUT_PMU();
    SKIP_WITHOUT_BRANCHES();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        test_run_on(cpu);
        lbr_run_ring3(user_branches, lbr_user_rows, 0);
        for (uint32_t ring = PMU_HIDE_KERNEL;
             ring <= PMU_HIDE_USER && branches_here()->form != PMU_BRANCHES_OLD; ring++)
            lbr_run_ring3(user_branches, lbr_user_rows, 1u << ring);
    }
    test_run_anywhere();
    if (lbr_ring_rule)
        test_note("a branch between rings is hidden by the ring in which it %s", lbr_ring_rule);
}

LAB_TEST(lbr_stack, off, "while it is off nothing changes [LB-04]")
{
    SKIP_WITHOUT_BRANCHES();
    lbr_check_program(0);
    struct pmu_gate gate = pmu_branches_gate(branches_here(), 0);
    gate.on = gate.off;
    lbr_run(lbr_program, gate);
    lbr_check_list(lbr_program_rows, 0);
}

LAB_TEST(lbr_stack, top, "TOS moves by the number of records, and names the newest [LB-05]")
{
    SKIP_WITHOUT_BRANCHES();
    const struct pmu_branches *b = branches_here();
    unsigned count = lbr_count_rows(lbr_program_rows);
    SKIP_IF(!b->top, "the newest entry is the first");
    for (unsigned i = 0; i < 3; i++) {
        uint64_t before = lab_rdmsr(b->top);
        CHECK(before < b->depth);
        lbr_check_program(0);
        CHECK_EQ(lab_rdmsr(b->top), (before + count) % b->depth);
        uint64_t to = lab_rdmsr(b->to + (uint32_t)lab_rdmsr(b->top));
        if (b->format == CYCLES_IN_TO)
            to = (uint64_t)((int64_t)(to << 16) >> 16);
        CHECK_EQ(to, lbr_program_rows[count - 1].to);
    }
}

/* Where DEBUGCTL starts the list. What #DB does to others the manuals leave open; one that a
 * hypervisor injects ends none. */
LAB_TEST(lbr_stack, debug_exception, "#DB is no entry, and ends a recording by DEBUGCTL [LB-07]")
{
    struct pmu_branch list[PMU_BRANCHES_MAX];
    SKIP_WITHOUT_BRANCHES();
    const struct pmu_branches *b = branches_here();
    bool ends = b->control == DEBUGCTL && lbr_debug_ends();
    CHECK(ends || b->control != DEBUGCTL || !vpmu_present() || vpmu_quirk("dbkeeps"));
    pmu_branches_clear(b);
    lbr_run(lbr_trap, pmu_branches_gate(b, 0));
    CHECK(lab_caught.steps);
    if (ends) {
        lbr_check_list(lbr_trap_rows, 0);
        return;
    }
    pmu_branches_read(b, list);
    test_note("after #DB the newest branch is %lx -> %lx", list[0].from, list[0].to);
    CHECK(list[0].from);
}

/* lbr_trap ends with a step after each of NOP, JMP, PUSHFQ, AND, POPFQ. */
LAB_TEST(lbr_stack, branch_steps,
         "with DEBUGCTL[1] a step goes on until a branch is taken, where the bit is kept, and #DB "
         "clears it; elsewhere it is of an instruction [LB-24]")
{
    uint64_t value = 0;
    bool kept = !wrmsr_fault(DEBUGCTL, STEPS_BRANCHES) && !rdmsr_fault(DEBUGCTL, &value) && value;
    CHECK(kept || !vpmu_present());
    lbr_run(lbr_trap, (struct pmu_gate){ DEBUGCTL, kept ? STEPS_BRANCHES : 0, 0 });
    CHECK_EQ(lab_caught.steps, kept ? 4 : 5);
}

/* A register keeps some values, and others fault and change nothing. */
static void check_register(uint32_t msr, uint64_t legal, uint64_t illegal)
{
    lab_wrmsr(msr, legal);
    CHECK_EQ(lab_rdmsr(msr), legal);
    CHECK_EQ(wrmsr_fault(msr, illegal), LAB_GP_FAULT);
    CHECK_EQ(lab_rdmsr(msr), legal);
    lab_wrmsr(msr, 0);
}

LAB_TEST(lbr_stack, registers,
         "entries keep canonical addresses and fault for others; the filter keeps its bits alone, "
         "and the bit that starts is kept [LB-02 LB-03 slow]")
{
    SKIP_WITHOUT_BRANCHES();
    const struct pmu_branches *b = branches_here();
    uint64_t filter = (1u << PMU_HIDE_COUNT) - 1 + (b->call_stack ? PMU_CALL_STACK : 0);
    for (unsigned i = 0; i < b->depth && b->form != PMU_BRANCHES_AMD; i++) {
        check_register(b->from + i, KERNEL_VMA + i, NOT_CANONICAL);
        if (b->format != CYCLES_IN_TO)
            check_register(b->to + i, USER_END - i, NOT_CANONICAL);
        if (b->info)
            check_register(b->info + i, 1ul << 63 | i, 1ul << 16);
    }
    for (unsigned bit = 0; bit < 64 && b->filter; bit++)
        if (!(filter >> bit & 1))
            check_register(b->filter, filter, UINT64_C(1) << bit);
    check_register(b->control, b->enable, UINT64_C(1) << 32);
}

/* Whether the entry has a field there. */
static bool is_there(uint32_t msr)
{
    const struct pmu_branches *b = branches_here();
    const uint32_t first[] = { b->from, b->to, b->info };
    for (unsigned i = 0; i < ARRAY_SIZE(first); i++)
        if (first[i] && msr >= first[i] && (msr - first[i]) % b->stride == 0 &&
            (msr - first[i]) / b->stride < b->depth)
            return true;
    return msr == b->top || msr == b->filter || msr == b->control ||
           (msr == ARCH_DEPTH && b->form == PMU_BRANCHES_ARCH);
}

/* Zen 3's servers record branches by registers of the same numbers, which are live: no write. */
static bool has_brs(void)
{
    return cpuid(0x80000000, 0).eax >= 0x80000008 && cpuid(0x80000008, 0).ebx >> 31;
}

/* Of AMD's processors those of Intel's lists, and the other way round, are unknown numbers. */
LAB_TEST(
    lbr_stack, absent,
    "what CPUID and 345h do not report faults, and so does what is past the depth [LB-01 VP-85]")
{
    static const struct {
        bool amd;
        uint32_t first, last;
    } lists[] = { { false, 0x40, 0x43 },
                  { false, 0x60, 0x63 },
                  { false, 0x1c8, 0x1c9 },
                  { false, 0x680, 0x69f },
                  { false, 0x6c0, 0x6df },
                  { false, 0xdc0, 0xddf },
                  { false, 0x14ce, 0x14cf },
                  { false, 0x1200, 0x121f },
                  { false, 0x1500, 0x151f },
                  { false, 0x1600, 0x161f },
                  { true, 0xc000010e, 0xc000010f },
                  { true, 0xc0010300, 0xc001031f } };
    unsigned depth = branches_here()->depth; /* 4, 8, 16 or 32 */
    CHECK_EQ(depth & (depth - 1), 0);
    for (unsigned i = 0; i < ARRAY_SIZE(lists); i++)
        for (uint32_t msr = lists[i].first; msr <= lists[i].last; msr++)
            if (lists[i].amd != lab_is_intel() && !is_there(msr) && !(lists[i].amd && has_brs()))
                lab_absent(msr);
}

static void check_stack(void (*program)(uint64_t), const struct lbr_row rows[])
{
    uint32_t hidden = PMU_CALL_STACK | 1u << PMU_HIDE_JCC | 1u << PMU_HIDE_IND_JMP |
                      1u << PMU_HIDE_REL_JMP | 1u << PMU_HIDE_FAR;
    pmu_branches_clear(branches_here());
    lbr_run(program, pmu_branches_gate(branches_here(), hidden));
    lbr_check_list(rows, hidden);
}

LAB_TEST(lbr_stack, call_stack,
         "as a call stack it has the calls that have not returned, the newest if they are too "
         "many; returns beyond its start empty it [LB-08]")
{
    SKIP_WITHOUT_BRANCHES();
    SKIP_IF(!branches_here()->call_stack, "no call stack");
    check_stack(lbr_calls, lbr_calls_rows);
    check_stack(lbr_returns, lbr_returns_rows);
    check_stack(lbr_deep, lbr_deep_rows);
}

/* Runs a loop with the list on into a PMI, whose handler stops the list; the newest entry. */
static struct pmu_branch run_into_pmi(bool freeze)
{
    const struct pmu_branches *b = branches_here();
    struct pmu_branch list[PMU_BRANCHES_MAX];
    struct pmu_gate gate = pmu_branches_gate(b, 0);
    uint64_t bit = freeze ? FREEZE : 0;
    if (b->control == DEBUGCTL)
        gate.on |= bit;
    else
        lab_wrmsr(DEBUGCTL, bit);
    pmu_branches_clear(b);
    lbr_control = b->control;
    lab_catch();
    lab_set_gate(VECTOR_PMI, lbr_on_pmi);
    pmu_program(0, lab_select(0, PMU_KERNEL | PMU_INTERRUPT),
                -(uint64_t)PERIOD & pmu_mask(pmu_here(), 0));
    pmu_start(PMU_BIT(0));
    lab_measure(&gate, lab_loop, 20 * PERIOD);
    pmu_stop(PMU_BIT(0));
    apic_eoi();
    lab_release();
    lab_wrmsr(DEBUGCTL, 0);
    pmu_branches_read(b, list);
    return list[0];
}

LAB_TEST(lbr_stack, freeze,
         "with DEBUGCTL[11] a PMI ends the recording before its own delivery: legacy turns the "
         "list off, later ones set LBR_FRZ, whose clearing lets it go on; without, the delivery is "
         "the newest entry [LB-09 slow]")
{
    SKIP_WITHOUT_BRANCHES();
    bool refused = wrmsr_fault(DEBUGCTL, FREEZE) || !(lab_rdmsr(DEBUGCTL) & FREEZE);
    wrmsr_fault(DEBUGCTL, 0);
    SKIP_IF(refused, "lists do not freeze on PMI");
    bool streamlined = !lab_is_intel() || pmu_here()->version >= 4;
    const struct pmu_branches *b = branches_here();
    lbr_controlled = 0;
    CHECK_EQ(run_into_pmi(false).to, (uint64_t)lbr_on_pmi);
    CHECK_EQ(lbr_controlled & b->enable, b->enable);
    pmu_take_overflow();
    CHECK_EQ(run_into_pmi(true).to, (uint64_t)lab_loop);
    CHECK_EQ(lbr_controlled & b->enable, streamlined ? b->enable : 0);
    if (streamlined) {
        CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_status) & LIST_FROZEN, LIST_FROZEN);
        lbr_run(lbr_program, pmu_branches_gate(b, 0));
        struct pmu_branch list[PMU_BRANCHES_MAX];
        pmu_branches_read(b, list);
        CHECK_EQ(list[0].to, (uint64_t)lab_loop);
        lab_wrmsr(pmu_here()->msr.global_clear, LIST_FROZEN);
        CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_status) & LIST_FROZEN, 0);
    }
    pmu_take_overflow();
    lbr_check_program(0);
}

#define SKIP_WITHOUT_FORM(wanted)                                                                  \
    SKIP_IF(branches_here()->form != (wanted), "no such list of branches")

LAB_TEST(arch_lbr_list, control,
         "IA32_LBR_CTL keeps its bits and faults for others; DEBUGCTL[0] is ignored [LB-10]")
{
    SKIP_WITHOUT_FORM(PMU_BRANCHES_ARCH);
    for (unsigned bit = 0; bit < 64; bit++)
        if (!(UINT64_C(0x7f000f) >> bit & 1))
            check_register(branches_here()->control, 0x7f000e, UINT64_C(1) << bit);
    lab_wrmsr(DEBUGCTL, 1);
    CHECK_EQ(lab_rdmsr(DEBUGCTL), 0);
}

LAB_TEST(arch_lbr_list, depth,
         "IA32_LBR_DEPTH takes the depths of leaf 1Ch and faults for others; a write empties the "
         "list, whose depth it is [LB-10]")
{
    SKIP_WITHOUT_FORM(PMU_BRANCHES_ARCH);
    struct pmu_branches shallow = *branches_here();
    uint64_t reset = lab_rdmsr(ARCH_DEPTH);
    uint32_t depths = cpuid(0x1c, 0).eax & 0xff;
    CHECK_EQ(reset, shallow.depth);
    CHECK(depths >> (reset / 8 - 1) & 1);
    for (uint64_t depth = 0; depth <= 72; depth++) {
        bool listed = depth && depth % 8 == 0 && depth <= 64 && depths >> (depth / 8 - 1) & 1;
        lbr_check_program(0);
        CHECK_EQ(wrmsr_fault(ARCH_DEPTH, depth), listed ? 0 : LAB_GP_FAULT);
        if (!listed)
            continue;
        CHECK_EQ(lab_rdmsr(ARCH_DEPTH), depth);
        CHECK_EQ(lab_rdmsr(shallow.from), 0);
        CHECK_EQ(lab_rdmsr(shallow.to + (uint32_t)depth - 1), 0);
        CHECK_EQ(wrmsr_fault(ARCH_DEPTH, reset), 0);
    }
}

LAB_TEST(arch_lbr_list, types, "LBR_INFO has each branch's type where leaf 1Ch says so [LB-10]")
{
    static const uint8_t types[PMU_HIDE_COUNT] = { 0, 0, 0, 4, 3, 5, 1, 2, 8 };
    SKIP_WITHOUT_FORM(PMU_BRANCHES_ARCH);
    SKIP_IF(!(cpuid(0x1c, 0).ecx & 1u << 2), "the list has no types");
    unsigned count = lbr_count_rows(lbr_program_rows);
    lbr_check_program(0);
    for (unsigned n = 0; n < count && n < branches_here()->depth; n++) {
        unsigned wanted = types[lbr_program_rows[count - 1 - n].class];
        uint64_t type = lab_rdmsr(branches_here()->info + n) >> 56 & 0xf;
        CHECK_EQ(type < 8 ? type : 8, wanted);
    }
}

LAB_TEST(amd_lbr_list, valid, "each entry of AMD's list is valid, and the others are empty [LB-11]")
{
    SKIP_WITHOUT_FORM(PMU_BRANCHES_AMD);
    const struct pmu_branches *b = branches_here();
    CHECK_EQ(b->depth, cpuid(0x80000022, 0).ebx >> 4 & 0x3f);
    pmu_branches_clear(b);
    lbr_run(lbr_trap, pmu_branches_gate(b, ALL_CLASSES & ~(1u << PMU_HIDE_IND_CALL)));
    for (unsigned n = 0; n < b->depth; n++)
        CHECK_EQ(lab_rdmsr(b->from + n * b->stride) != 0, n == 0);
    CHECK_EQ(lab_rdmsr(b->to) >> 63, 1);
}

LAB_TEST(amd_lbr_list, pair,
         "DEBUGCTL[0] has AMD's processors keep the last branch, and the one before the last event "
         "[LB-12]")
{
    SKIP_IF(lab_is_intel(), "AMD only");
    struct pmu_gate gate = { DEBUGCTL, 1, 0 };
    const struct lbr_row *last = &lbr_program_rows[lbr_count_rows(lbr_program_rows) - 1];
    lbr_run(lbr_program, gate);
    CHECK_EQ(lab_rdmsr(PAIR), last->from);
    CHECK_EQ(lab_rdmsr(PAIR + 1), last->to);
    CHECK_EQ(lab_rdmsr(PAIR + 2), last[-3].from);
    CHECK_EQ(lab_rdmsr(PAIR + 3), last[-3].to);
}

/* What the list has, if it is not full. */
static unsigned count_entries(void)
{
    struct pmu_branch list[PMU_BRANCHES_MAX];
    unsigned depth = pmu_branches_read(branches_here(), list), count = 0;
    while (count < depth && list[count].from)
        count++;
    return count;
}

/* The event during lbr_program, from an empty list; none before the list is on. */
static uint64_t count_records(unsigned ctr, uint32_t flags, uint32_t hidden)
{
    uint64_t select = pmu_select(pmu_here(), PMU_BRANCH_RECORDS, PMU_USER | PMU_KERNEL);
    pmu_branches_clear(branches_here());
    pmu_program(ctr, select | flags, 0);
    pmu_start(PMU_BIT(ctr));
    lab_loop(10);
    CHECK_EQ(pmu_read(ctr), 0);
    lbr_run(lbr_program, pmu_branches_gate(branches_here(), hidden));
    pmu_stop(PMU_BIT(ctr));
    return pmu_read(ctr);
}

LAB_TEST(lbr_stack, counted,
         "the event of a record counts each entry that the list gains, whatever it hides, and none "
         "while it is off [LB-16 slow]")
{
    uint64_t able = pmu_counters_for(pmu_here(), PMU_BRANCH_RECORDS);
    SKIP_WITHOUT_FILTER();
    SKIP_IF(!able, "no event of a record");
    unsigned ctr = bit_lowest(able), rows = lbr_count_rows(lbr_program_rows);
    CHECK_BECAUSE(
        count_records(ctr, PMU_THRESHOLD(1), 0), rows / 8, rows,
        "a cycle may have several, up to the eight instructions of the widest processors");
    CHECK(count_records(ctr, PMU_THRESHOLD(2), 0) <= rows / 2); /* cycles with two at least */
    for (unsigned hidden = 0; hidden < PMU_HIDE_COUNT; hidden++) {
        uint64_t counted = count_records(ctr, 0, hidden ? 1u << hidden : 0);
        if (!hidden)
            CHECK_EQ(counted, rows);
        else if (count_entries() < branches_here()->depth)
            CHECK_EQ(counted, count_entries());
    }
}

TEST(lbr_stack, counted_far,
     "... and each SYSCALL, exception and interrupt of a program in ring 3, where the list is not "
     "full [LB-16]")
{
    static const enum pmu_event event = PMU_BRANCH_RECORDS;
    unsigned ctr;
    SKIP_WITHOUT_PMU();
    SKIP_WITHOUT_FILTER();
    SKIP_IF(!counting_possible(&event, 1), "no event of a record");
    REQUIRE(counting_start(event, PMU_USER | PMU_KERNEL, &ctr));
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        test_run_on(cpu);
        uint64_t before = pmu_read(ctr);
        lbr_run_ring3(user_branches, lbr_user_rows, ALL_CLASSES & ~(1u << PMU_HIDE_FAR));
        uint64_t counted = (pmu_read(ctr) - before) & pmu_mask(pmu_here(), ctr);
        CHECK(count_entries() && count_entries() < branches_here()->depth);
        CHECK_EQ(counted, count_entries());
    }
    test_run_anywhere();
    counting_stop();
}
