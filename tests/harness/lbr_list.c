/* SPDX-License-Identifier: MIT */
/* For the tests of last-branch records: runs a program with the list on, and compares. */
#include "tests/harness/lbr_list.h"

enum { VECTOR_BP = 3, VECTOR_UD = 6, VECTOR_PF = 14, ROWS_MAX = 32 };
enum { VECTOR_INT80 = 0x80, VECTOR_STOP, VECTOR_START };

void lbr_catch_exceptions(void)
{
    lab_set_user_gate(VECTOR_BP, lbr_on_int3);
    lab_set_user_gate(VECTOR_INT80, lbr_on_int80);
    lab_set_gate(VECTOR_UD, lbr_on_undefined);
    lab_set_gate(VECTOR_PF, lbr_on_page_fault);
}

/* Runs it with the list on; the interrupt that it waits for is sent before. */
void lbr_run(void (*program)(uint64_t), struct pmu_gate gate)
{
    lab_catch();
    lbr_catch_exceptions();
    lab_set_gate(VECTOR_PMI, lbr_on_interrupt);
    cli();
    if (program == lbr_program)
        apic_send_self(VECTOR_PMI);
    lab_measure(&gate, program, 0);
    if (program == lbr_program)
        apic_eoi();
    lab_release();
    sti();
}

static void note_row(const char *what, const struct lbr_row *row)
{
    test_note("  %s %lx %s -> %lx %s", what, row->from, row->from_name, row->to, row->to_name);
}

static const struct lbr_row nothing = { 0, 0, "nothing", "nothing", 0 };

/* What the processor calls an address: the label whose it is. */
static struct lbr_row name_branch(const struct lbr_row rows[], const struct pmu_branch *found)
{
    struct lbr_row named = { found->from, found->to, "?", "?", 0 };
    for (; rows->from; rows++) {
        named.from_name = rows->from == found->from ? rows->from_name : named.from_name;
        named.to_name = rows->to == found->to ? rows->to_name : named.to_name;
    }
    return named;
}

/* Whether the filter hides it: by the ring in which it ends, or begins. */
static bool hides(uint32_t hidden, const struct lbr_row *row, bool by_source)
{
    bool kernel = (by_source ? row->from : row->to) >> 63;
    return hidden >> row->class & 1 || hidden >> (kernel ? PMU_HIDE_KERNEL : PMU_HIDE_USER) & 1;
}

/* The number of the first entry that is not as the rows say that the filter lets through, the
 * newest `depth` of them; *wanted: what it should be. depth: there is none. */
static unsigned find_difference(const struct pmu_branch list[], unsigned depth,
                                const struct lbr_row rows[], uint32_t hidden, bool by_source,
                                const struct lbr_row **wanted)
{
    const struct lbr_row *visible[ROWS_MAX];
    unsigned count = 0, n = 0;
    for (const struct lbr_row *row = rows; row->from; row++)
        if (!hides(hidden, row, by_source))
            visible[count++] = row;
    for (; n < depth; n++) {
        /* Ring 3's rows are not all: others were before. */
        if (n >= count && (rows == lbr_user_rows || rows == lbr_narrow_rows))
            return depth;
        *wanted = n < count ? visible[count - 1 - n] : &nothing;
        if (list[n].from != (*wanted)->from || list[n].to != (*wanted)->to)
            return n;
    }
    return n;
}

/* What is older than the last entry of the list, or was popped from it, is in no register: as many
 * begin somewhere as the list and what it left out have. */
static void check_empty(const struct pmu_branch list[], unsigned depth)
{
    const struct pmu_branches *b = branches_here();
    unsigned filled = 0, kept = b->depth - depth;
    for (unsigned i = 0; i < b->depth; i++) {
        filled += lab_rdmsr(b->from + i * b->stride) != 0;
        kept += i < depth && list[i].from;
    }
    CHECK_EQ(filled, kept);
}

const char *lbr_ring_rule;

/* Which of its rings hides a branch between two the manuals do not say: either is right. */
void lbr_check_list(const struct lbr_row rows[], uint32_t hidden)
{
    struct pmu_branch list[PMU_BRANCHES_MAX];
    const struct lbr_row *wanted = &nothing;
    unsigned depth = pmu_branches_read(branches_here(), list);
    check_empty(list, depth);
    bool source = find_difference(list, depth, rows, hidden, true, &wanted) == depth;
    unsigned n = find_difference(list, depth, rows, hidden, false, &wanted);
    if (source != (n == depth))
        lbr_ring_rule = source ? "begins" : "ends";
    if (source || n == depth)
        return;
    struct lbr_row named = name_branch(rows, &list[n]);
    test_note("filter %x, entry %u:", hidden, n);
    note_row("found ", &named);
    note_row("wanted", wanted);
    CHECK_EQ(list[n].from, wanted->from);
    CHECK_EQ(list[n].to, wanted->to);
}

bool lbr_debug_ends(void)
{
    const struct pmu_branches *b = branches_here();
    struct pmu_gate gate = pmu_branches_gate(b, 0);
    lab_catch();
    wrmsr(gate.msr, gate.on);
    lab_steps(lab_loop, 1);
    bool ends = !(lab_rdmsr(gate.msr) & b->enable);
    wrmsr(gate.msr, gate.off);
    lab_release();
    return ends;
}

void lbr_check_program(uint32_t hidden)
{
    pmu_branches_clear(branches_here());
    lbr_run(lbr_program, pmu_branches_gate(branches_here(), hidden));
    lbr_check_list(lbr_program_rows, hidden);
}

void lbr_run_gated(void (*program)(void), struct pmu_gate gate)
{
    struct process *process = user_process();
    KIRQL old = irql_raise(DISPATCH_LEVEL);
    lbr_gate = gate;
    lab_catch();
    lbr_kernels_page_fault = lab_gate(VECTOR_PF);
    lbr_kernels_syscall = rdmsr(MSR_LSTAR);
    lbr_catch_exceptions();
    lab_set_user_gate(VECTOR_START, lbr_on_start);
    lab_set_user_gate(VECTOR_STOP, lbr_on_stop);
    wrmsr(MSR_LSTAR, (uint64_t)lbr_on_syscall);
    irql_lower(old);
    struct thread *thread =
        user_thread("branches", process, (uint64_t)program, 0, cpu_set_one(cpu_number()));
    user_wait(thread);
    wrmsr(lbr_gate.msr, lbr_gate.off); /* had the program not come to its end */
    wrmsr(MSR_LSTAR, lbr_kernels_syscall);
    lab_release();
    user_finish(process, thread);
}

void lbr_run_ring3(void (*program)(void), const struct lbr_row rows[], uint32_t hidden)
{
    pmu_branches_clear(branches_here());
    lbr_run_gated(program, pmu_branches_gate(branches_here(), hidden));
    lbr_check_list(rows, hidden);
}

unsigned lbr_count_rows(const struct lbr_row rows[])
{
    unsigned count = 0;
    while (rows[count].from)
        count++;
    return count;
}
