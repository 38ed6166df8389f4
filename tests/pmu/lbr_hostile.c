/* SPDX-License-Identifier: MIT */
/* Last-branch records while something else happens: an NMI at each instruction, other CPUs that
 * record too, a list that is read while it is on, branches that nobody may see. */
#include "hal/branch_owner.h"
#include "tests/harness/lbr_list.h"

#define STEPS_MOST 400u /* instructions from the start of a counter to the end of the program */
#define LATENESS_MOST 64u
#define ROUNDS 20u
#define AMD_VALID (UINT64_C(1) << 63) /* of TO */
#define ALL_BUT_CALLS (((1u << PMU_HIDE_COUNT) - 1) & ~(3u | 1u << PMU_HIDE_REL_CALL))

/* Iterations of lab_loop that outlast the latest PMI. */
static uint64_t lateness(void) { return (uint64_t)pmu_here()->measured.skid.high / 2 + 1; }

/* The program, with an NMI n instructions after its counter has started, whose handler stops the
 * list. */
static void run_into_nmi(unsigned ctr, unsigned n)
{
    const struct pmu_branches *b = branches_here();
    struct pmu_gate gate = pmu_branches_gate(b, 0);
    pmu_branches_clear(b);
    lbr_control = b->control;
    lab_catch();
    lbr_catch_exceptions();
    lab_set_gate(VECTOR_PMI, lbr_on_interrupt);
    lab_set_gate(EXC_NMI, lbr_on_pmi);
    apic_write_pmi_lvt(APIC_LVT_NMI);
    cli();
    apic_send_self(VECTOR_PMI);
    pmu_program(ctr, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL | PMU_INTERRUPT),
                -(uint64_t)n & pmu_mask(pmu_here(), ctr));
    pmu_start(PMU_BIT(ctr));
    lab_loop(lateness() + 1);
    lab_measure(&gate, lbr_program, 0);
    lab_loop(lateness() + 1);
    pmu_stop(PMU_BIT(ctr));
    apic_eoi();
    lab_release();
    sti();
    pmu_take_overflow();
}

/* The number of the last row that the entry is, from 1; 0: none. */
static unsigned find_row(const struct lbr_row rows[], const struct pmu_branch *entry)
{
    unsigned k = lbr_count_rows(rows);
    while (k && (rows[k - 1].from != entry->from || rows[k - 1].to != entry->to))
        k--;
    return k;
}

/* The first entry that is not as the first k rows, newest first, and nothing else; depth: none. */
static unsigned find_stranger(const struct pmu_branch entries[], unsigned depth,
                              const struct lbr_row *rows, unsigned k)
{
    unsigned n = 0;
    for (; n < depth; n++) {
        const struct lbr_row none = { 0 }, *wanted = n < k ? &rows[k - 1 - n] : &none;
        if (entries[n].from != wanted->from || entries[n].to != wanted->to)
            break;
    }
    return n;
}

static bool is_prefix(const struct pmu_branch entries[], unsigned depth, const struct lbr_row *rows,
                      unsigned k)
{
    unsigned n = find_stranger(entries, depth, rows, k);
    if (n < depth)
        test_note("entry %u is %lx -> %lx", n, entries[n].from, entries[n].to);
    return n == depth;
}

/* How many of the program's branches come before the NMI: they are the list, and the NMI's delivery
 * is the newest, from an instruction between the last of them and the next. All: it came later. */
static unsigned check_cut(void)
{
    const struct lbr_row *rows = lbr_program_rows;
    struct pmu_branch list[PMU_BRANCHES_MAX];
    unsigned depth = pmu_branches_read(branches_here(), list), count = lbr_count_rows(rows);
    if (list[0].to != (uint64_t)lbr_on_pmi) {
        CHECK(is_prefix(list, depth, rows, count));
        return count;
    }
    unsigned k = find_row(rows, &list[1]);
    CHECK(is_prefix(list + 1, depth - 1, rows, k));
    CHECK(list[0].from >= (k ? rows[k - 1].to : rows[0].from));
    CHECK(list[0].from <= (k < count ? rows[k].from : rows[count - 1].to + 64)); /* or after it */
    return k;
}

LAB_TEST(lbr_stack, interrupted,
         "an NMI at any instruction of a program (a seventh of them; all if `long`) is in the "
         "list, after the branches before it; nothing is lost or twice [LB-13 slow]")
{
    SKIP_WITHOUT_BRANCHES();
    SKIP_IF(boot_safe(), "safe: no NMI");
    uint64_t able = pmu_counters_for(pmu_here(), PMU_INSTRUCTIONS), cut = 0;
    unsigned count = lbr_count_rows(lbr_program_rows), late = 0, stride = test_long() ? 1 : 7;
    SKIP_IF(!able || lateness() > LATENESS_MOST, "no counter whose interrupts come at once");
    for (unsigned n = 1; n < STEPS_MOST && late < 4; n += stride) {
        run_into_nmi(bit_lowest(able), n);
        unsigned k = check_cut();
        cut |= 1ul << k;
        late += k == count && cut & ~(1ul << count);
    }
    /* What comes late, or is not at each instruction, may miss some. */
    bool all = stride == 1 && !pmu_here()->measured.skid.high;
    CHECK_BECAUSE(bit_count(cut), all ? count : count / (2 * stride), count + 1,
                  "interrupts of overflows may be late");
}

/* --- Several CPUs. --- */

static uint32_t arrived;   /* atomic */
static bool own[MAX_CPUS]; /* the list is the CPU's own; written by that CPU */

static void wait_for_all(unsigned turn)
{
    __atomic_fetch_add(&arrived, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < turn * cpu_count)
        pause();
}

static bool is_odd(void) { return cpu_number() & 1; }

/* Between two meetings of all CPUs each runs its program; then each looks. */
static void record_own(void *)
{
    const struct pmu_branches *b = branches_here();
    struct pmu_gate gate = pmu_branches_gate(b, ALL_BUT_CALLS);
    for (unsigned round = 0; round < ROUNDS; round++) {
        pmu_branches_clear(b);
        wait_for_all(2 * round + 1);
        lab_measure(&gate, is_odd() ? lbr_deep : lbr_calls, 0);
        wait_for_all(2 * round + 2);
    }
    const struct lbr_row *rows = is_odd() ? lbr_deep_rows : lbr_only_calls_rows;
    struct pmu_branch list[PMU_BRANCHES_MAX];
    unsigned depth = pmu_branches_read(b, list);
    own[cpu_number()] = find_stranger(list, depth, rows, lbr_count_rows(rows)) == depth;
}

TEST(lbr_stack, cpus, "what one CPU records is never in the list of another [LB-14]")
{
    SKIP_WITHOUT_PMU();
    SKIP_BELOW_CPUS(2);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        if (pmu_branches_of(pmu_of(cpu))->form <= PMU_BRANCHES_OLD)
            SKIP(pmu_branches_of(pmu_of(cpu))->depth ? "the list hides nothing"
                                                     : "no last-branch records");
    arrived = 0;
    smp_call(SMP_ALL, record_own, NULL);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        CHECK(own[cpu]);
}

LAB_TEST(lbr_stack, moving, "a list that is on is not read, whatever it holds [LB-15]")
{
    struct pmu_branch list[PMU_BRANCHES_MAX];
    SKIP_WITHOUT_BRANCHES();
    const struct pmu_branches *b = branches_here();
    struct pmu_gate gate = pmu_branches_gate(b, 0);
    lbr_check_program(0);
    wrmsr(gate.msr, gate.on);
    unsigned depth = pmu_branches_read(b, list);
    wrmsr(gate.msr, gate.off);
    CHECK_EQ(depth, 0);
    CHECK(pmu_branches_read(b, list));
    CHECK(list[0].from); /* the kernel's own, of that attempt */
}

/* Entry n, the newest is 0. */
static void put_entry(unsigned n, uint64_t from, uint64_t to)
{
    const struct pmu_branches *b = branches_here();
    uint32_t top = b->top ? (uint32_t)rdmsr(b->top) : 0;
    uint32_t i = (b->top ? (top - n) % b->depth : n) * b->stride;
    wrmsr(b->from + i, from);
    wrmsr(b->to + i, to | (b->form == PMU_BRANCHES_AMD ? AMD_VALID : 0));
}

LAB_TEST(lbr_stack, to_zero,
         "a branch to address 0 is an entry, for sessions too; one from the kernel is not "
         "therefore mispredicted [LB-23]")
{
    struct pmu_branch list[PMU_BRANCHES_MAX];
    struct hal_branch taken[HAL_BRANCHES_MAX];
    SKIP_WITHOUT_BRANCHES();
    pmu_branches_clear(branches_here());
    put_entry(0, 0x1000, 0);
    pmu_branches_read(branches_here(), list);
    CHECK_EQ(list[0].from, 0x1000);
    CHECK_EQ(list[0].to, 0);
    CHECK_EQ(hal_branches_take(taken), 1);
    CHECK_EQ(taken[0].from, 0x1000);
    CHECK_EQ(taken[0].to, 0);
    if (branches_here()->form != PMU_BRANCHES_OLD)
        return;
    put_entry(0, KERNEL_VMA, 0x1000);
    pmu_branches_read(branches_here(), list);
    CHECK_EQ(list[0].from, KERNEL_VMA);
    CHECK(!list[0].mispredicted);
}
