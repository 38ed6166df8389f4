/* SPDX-License-Identifier: MIT */
/* Last-branch records: branches that exceptions come with, the last one before an exception, flags
 * and fields of an entry, code of 32 bits, what CPUID says of lists. */
#include "hal/branch_owner.h"
#include "tests/harness/lbr_list.h"

#define EXCEPTION 0x1ddu /* of AMD's pairs, and MSR_LER: the branch before the last event */
#define ARCH_DEPTH 0x14cfu
#define ABSENT 0x3fffu /* no MSR */
#define CYCLES UINT64_C(0xffff)
#define CYCLES_VALID (UINT64_C(1) << 60)
#define COUNTERS (UINT64_C(0xffff) << 32)
#define NOT_OF_STACKS                                                                              \
    (1u << PMU_HIDE_JCC | 1u << PMU_HIDE_IND_JMP | 1u << PMU_HIDE_REL_JMP | 1u << PMU_HIDE_FAR)

static bool is_legacy(const struct pmu_branches *b)
{
    return b->form == PMU_BRANCHES_OLD || b->form == PMU_BRANCHES_STACK;
}

static void run_cleared(void (*program)(uint64_t), uint32_t hidden)
{
    pmu_branches_clear(branches_here());
    lbr_run(program, pmu_branches_gate(branches_here(), hidden));
}

LAB_TEST(lbr_stack, trapped,
         "a branch whose target faults, or whose push meets a breakpoint, is an entry; then comes "
         "the fault, from the target, and of #DB none where DEBUGCTL starts the list [LB-17]")
{
    struct pmu_branch list[PMU_BRANCHES_MAX];
    SKIP_WITHOUT_BRANCHES();
    run_cleared(lbr_missing, 0);
    lbr_check_list(lbr_missing_rows, 0);
    run_cleared(lbr_pushed, 0);
    if (!lab_caught.steps) {
        test_note("breakpoints do not see what is pushed here"); /* Bochs */
        return;
    }
    bool ends = is_legacy(branches_here()) && lbr_debug_ends();
    run_cleared(lbr_watched, 0);
    CHECK_EQ(lab_caught.steps, 1);
    if (ends) {
        lbr_check_list(lbr_watched_rows, 0);
        return;
    }
    unsigned depth = pmu_branches_read(branches_here(), list), n = 0;
    while (n < depth && list[n].from != lbr_watched_rows[1].from)
        n++;
    CHECK(n < depth);
    CHECK_EQ(list[n].to, lbr_watched_rows[1].to);
}

static void check_last_exception(const struct lbr_row *wanted)
{
    CHECK_EQ(lab_rdmsr(EXCEPTION), wanted->from);
    CHECK_EQ(lab_rdmsr(EXCEPTION + 1), wanted->to);
}

/* KVM reads those that are not there as 0; the manual does not say of architectural lists. The
 * virtual PMU has none. */
static void check_no_last_exception(void)
{
    uint64_t from = 0, to = 0;
    bool there = !rdmsr_fault(EXCEPTION, &from) && !rdmsr_fault(EXCEPTION + 1, &to);
    if (vpmu_present())
        CHECK_EQ(there, vpmu_quirk("ignoremsrs"));
    if (!branches_here()->depth || vpmu_present())
        CHECK(!there || !(from | to));
    test_note("MSR_LER %s", there ? "is there" : "faults");
}

LAB_TEST(lbr_stack, last_exception,
         "where DEBUGCTL starts the list MSR_LER has the last branch before the last interrupt or "
         "exception, and keeps it; without a list of Intel's it faults, or is 0 for ever [LB-18]")
{
    const struct lbr_row *last = &lbr_program_rows[lbr_count_rows(lbr_program_rows) - 4];
    SKIP_IF(!lab_is_intel(), "AMD's pair has it");
    if (branches_here()->depth)
        lbr_check_program(0);
    if (!is_legacy(branches_here())) {
        check_no_last_exception();
        return;
    }
    check_last_exception(last);
    lbr_run(lbr_calls, pmu_branches_gate(branches_here(), 0)); /* no exception */
    check_last_exception(last);
    uint64_t value;
    rdmsr_fault(ABSENT, &value); /* an exception while the list is off */
    check_last_exception(last);
    run_cleared(lbr_missing, 0);
    check_last_exception(&lbr_missing_rows[1]);
}

/* Of the calls one is that of hal_branches_pause. */
LAB_TEST(lbr_stack, kinds,
         "where CPUs differ in their depth, each gives all of its own list to a session [LB-22]")
{
    struct hal_branch list[HAL_BRANCHES_MAX];
    const uint32_t all_but_calls = ((1u << PMU_HIDE_COUNT) - 1) & ~(3u | 1u << PMU_HIDE_REL_CALL);
    SKIP_WITHOUT_FILTER();
    hal_branches_begin(all_but_calls);
    lbr_deep(0);
    hal_branches_pause();
    unsigned count = hal_branches_take(list);
    hal_branches_end();
    CHECK_EQ(count, branches_here()->depth);
    for (unsigned n = 1; n < count; n++)
        CHECK_EQ(list[n].from, lbr_deep_rows[0].from);
}

/* Which entries of lbr_program are mispredicted, as bits, newest first. */
static uint32_t mispredicted(void)
{
    struct pmu_branch list[PMU_BRANCHES_MAX];
    uint32_t bits = 0;
    run_cleared(lbr_program, 0);
    for (unsigned n = pmu_branches_read(branches_here(), list); n--;)
        bits |= (uint32_t)list[n].mispredicted << n;
    return bits;
}

/* The virtual PMU predicts that a conditional branch goes where it went last, which is wrong for
 * the LOOP: the second row. */
LAB_TEST(lbr_stack, mispredicted,
         "entries that were mispredicted say so: in the virtual PMU those of its rule; on "
         "processors their number is reported [LB-19]")
{
    unsigned count = lbr_count_rows(lbr_program_rows) - 1; /* but for the call of the program */
    SKIP_WITHOUT_FILTER();
    mispredicted();
    uint32_t bits = mispredicted();
    if (vpmu_present())
        CHECK_EQ(bits, count - 2 < branches_here()->depth ? 1u << (count - 2) : 0);
    else
        test_note("%u of %u entries mispredicted", bit_count(bits), count);
}

static unsigned accesses(void)
{
    struct vpmu_accesses now = vpmu_accesses();
    return now.rdmsr + now.wrmsr;
}

LAB_TEST(lbr_stack, accesses,
         "a list is emptied in one access to its registers for each entry; one that is empty is "
         "read in 3, and one of 32 in at most 100 [LB-19]")
{
    struct pmu_branch list[PMU_BRANCHES_MAX];
    SKIP_WITHOUT_VPMU();
    SKIP_WITHOUT_BRANCHES();
    const struct pmu_branches *b = branches_here();
    unsigned before = accesses();
    pmu_branches_clear(b);
    unsigned emptied = accesses();
    CHECK_EQ(pmu_branches_read(b, list), b->depth);
    unsigned empty = accesses();
    for (unsigned i = 0; i < b->depth; i++)
        lab_wrmsr(b->from + i * b->stride, KERNEL_VMA + i);
    unsigned filled = accesses();
    pmu_branches_read(b, list);
    unsigned full = accesses() - filled;
    CHECK_EQ(emptied - before, b->form == PMU_BRANCHES_ARCH ? 2 : b->depth);
    CHECK_EQ(empty - emptied, 2 + (b->top != 0));
    CHECK_RANGE(full, 2 * b->depth, 3 * b->depth + 2);
    CHECK(full <= 100);
}

TEST(lbr_stack, narrow,
     "addresses of code of 32 bits have 0 in their upper halves, and far jumps to it and back are "
     "entries [LB-20]")
{
    SKIP_WITHOUT_PMU();
    SKIP_WITHOUT_BRANCHES();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        test_run_on(cpu);
        lbr_run_ring3(user_narrow, lbr_narrow_rows, 0);
    }
}

/* In a call stack a call to the next instruction may be an entry. */
LAB_TEST(lbr_stack, next_call,
         "in a call stack the calls before and after one to the next instruction are entries; "
         "whether that one is, is reported [LB-08]")
{
    struct pmu_branch list[PMU_BRANCHES_MAX];
    const struct lbr_row *rows = lbr_next_rows;
    SKIP_WITHOUT_BRANCHES();
    SKIP_IF(!branches_here()->call_stack, "no call stack");
    run_cleared(lbr_next, PMU_CALL_STACK | NOT_OF_STACKS);
    pmu_branches_read(branches_here(), list);
    bool there = list[1].from == rows[1].from;
    CHECK_EQ(list[0].to, rows[2].to);
    CHECK_EQ(list[1 + there].to, rows[0].to);
    CHECK_EQ(list[2 + there].from, 0);
    test_note("a call to the next instruction is %s of a call stack", there ? "an entry" : "none");
}

/* The manual has a call stack hide jumps without saying what their bits then mean. */
LAB_TEST(arch_lbr_list, call_stack,
         "a call stack whose bits let all classes through has the calls, and keeps or leaves out "
         "the jumps [LB-08]")
{
    struct pmu_branch list[PMU_BRANCHES_MAX];
    if (branches_here()->form != PMU_BRANCHES_ARCH || !branches_here()->call_stack)
        SKIP("no such list of branches");
    run_cleared(lbr_calls, PMU_CALL_STACK);
    pmu_branches_read(branches_here(), list);
    bool jumps = list[0].to != lbr_calls_rows[3].to;
    for (unsigned n = 0; n < 4; n++)
        CHECK_EQ(list[n + jumps].to, lbr_calls_rows[3 - n].to);
    CHECK_EQ(list[4 + jumps].from, 0);
    test_note("a call stack %s jumps that its bits let through", jumps ? "keeps" : "hides");
}

/* The largest of leaf 1Ch's depths is what the list begins with; others are its first entries. */
static void check_shallow(const struct pmu_branches *b, uint64_t depth)
{
    uint64_t value = 0;
    lab_wrmsr(ARCH_DEPTH, depth);
    run_cleared(lbr_program, 0);
    for (unsigned n = 0; n < b->depth; n++) {
        bool faults = rdmsr_fault(b->to + n, &value);
        CHECK_EQ(!faults && value, n < depth && n < lbr_count_rows(lbr_program_rows));
    }
}

LAB_TEST(arch_lbr_list, leaf,
         "leaf 1Ch is 0 without the list, which has no other form beside it; entries past the "
         "depth fault or are 0, and so is what the leaf says is not recorded [LB-21]")
{
    const struct pmu_branches *b = branches_here();
    bool there = lab_is_intel() && cpuid(0, 0).eax >= 7 && cpuid(7, 0).edx >> 19 & 1;
    struct cpuid leaf = { 0 };
    if (lab_is_intel() && cpuid(0, 0).eax >= 0x1c)
        leaf = cpuid(0x1c, 0);
    if (!there)
        CHECK_EQ(leaf.eax | leaf.ebx | leaf.ecx, 0);
    CHECK_EQ(b->form == PMU_BRANCHES_ARCH, there && b->depth);
    if (b->form != PMU_BRANCHES_ARCH)
        return;
    test_note("leaf 1Ch has %scycles, and counters %x of branches; XSAVES keeps lists in %u bytes",
              leaf.ecx & 2 ? "" : "no ", leaf.ecx >> 16 & 15, cpuid(0xd, 15).eax);
    uint64_t missing = (leaf.ecx & 2 ? 0 : CYCLES | CYCLES_VALID) |
                       (leaf.ecx >> 16 & 15 ? 0 : COUNTERS) |
                       (leaf.ecx & 1 ? 0 : UINT64_C(1) << 63);
    run_cleared(lbr_program, 0);
    for (unsigned n = 0; n < b->depth; n++)
        CHECK_EQ(lab_rdmsr(b->info + n) & missing, 0);
    for (unsigned k = 0; k < 4; k++)
        if (leaf.eax >> k & 1)
            check_shallow(b, 8 * (k + 1));
    lab_wrmsr(ARCH_DEPTH, b->depth);
}
