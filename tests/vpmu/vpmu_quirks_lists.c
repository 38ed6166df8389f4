/* SPDX-License-Identifier: MIT */
/* The quirks of the virtual PMU that change lists of branches: there if their words are on, and not
 * if they are off. */
#include "tests/harness/lbr_list.h"
#include "tests/harness/pebs_list.h"

#define FORMAT_TSX 4u
#define SIGN (UINT64_C(1) << 60)
#define BIT_61 (UINT64_C(1) << 61)
#define AMD_VALID (UINT64_C(1) << 63)
#define AMD_SPECULATIVE (UINT64_C(1) << 62)

static unsigned form(void) { return branches_here()->form; }

/* Haswell and Broadwell have TSX bits in FROM[62:61]. With TSX off WRMSR takes them for the sign
 * and faults for what RDMSR gave; what the processor writes has 0 there. Linux:
 * lbr_from_signext_quirk_needed. */
VPMU_TEST(vpmu_quirks, lbrsign,
          "FROM[62:61] without TSX must be the sign's where software writes them, else they may be "
          "anything")
{
    const struct pmu_branches *b = branches_here();
    if (b->form != PMU_BRANCHES_STACK || b->format != FORMAT_TSX)
        SKIP("the list has no bits of TSX");
    uint64_t address = KERNEL_VMA;
    CHECK_EQ(wrmsr_fault(b->from, address & ~BIT_61), vpmu_quirk("lbrsign") ? LAB_GP_FAULT : 0);
    CHECK_EQ(wrmsr_fault(b->from, address), 0);
    CHECK(address & SIGN);
    lbr_check_program(0);
}

static void wait_in_hlt(void)
{
    uint64_t end = clock_ns() + 3 * (uint64_t)sched_tick_ns();
    KIRQL old = irql_current();
    irql_lower(PASSIVE_LEVEL);
    while (clock_ns() < end)
        asm volatile("sti\n\thlt");
    irql_raise(old);
}

/* Deep C-states lose the list, which a switch of threads must not take for its own: Linux asks
 * for an empty newest entry (lbr_is_reset_in_cstate), and leaf 1Ch.EAX[30] says so of
 * architectural lists. */
VPMU_TEST(vpmu_quirks, lbrlost, "HLT empties the list where the quirk says so, else it stays")
{
    struct pmu_branch list[PMU_BRANCHES_MAX];
    SKIP_WITHOUT_BRANCHES();
    SKIP_IF(cpu_current()->halt_stops_timer, "HLT may stop the timer that ends it");
    lbr_check_program(0);
    wait_in_hlt();
    pmu_branches_read(branches_here(), list);
    CHECK_EQ(!list[0].from, vpmu_quirk("lbrlost"));
    if (form() == PMU_BRANCHES_ARCH)
        CHECK_EQ(cpuid(0x1c, 0).eax >> 30 & 1, vpmu_quirk("lbrlost"));
}

/* A hybrid's kinds may have lists of two lengths. Leaf 1Ch, whose EAX[7:0] has bit n for a depth of
 * 8 (n + 1) entries, speaks of the CPU that asks. */
VPMU_TEST(vpmu_quirks, smalllist,
          "small cores have half of the large ones' list where the quirk says so, else as much")
{
    unsigned depth = branches_here()->depth, large = pmu_branches_of(pmu_of(0))->depth;
    SKIP_WITHOUT_BRANCHES();
    bool small = vpmu_quirk("hybrid") && cpu_number() % 2;
    CHECK_EQ(depth, small && vpmu_quirk("smalllist") ? large / 2 : large);
    if (form() == PMU_BRANCHES_ARCH)
        CHECK_EQ(cpuid(0x1c, 0).eax & 0xff, depth == 16 ? 3 : 0xb);
}

/* As counters, so a list may be on when firmware ends: by DEBUGCTL[0], by ARCH_LBR_CTL[0] (14CEh),
 * on AMD by C000_010Fh[6]. */
VPMU_TEST(vpmu_quirks, lbrleft,
          "a list that firmware left on is reported and off, and none is else")
{
    const struct pmu_branches *b = branches_here();
    bool there = b->depth || !lab_is_intel();
    CHECK_EQ(b->left_on, there && vpmu_quirk("lbrleft"));
    if (there)
        CHECK_EQ(lab_rdmsr(DEBUGCTL) & 1, 0);
    if (b->depth)
        CHECK_EQ(lab_rdmsr(b->control) & b->enable, 0);
}

/* #DB clears DEBUGCTL[0], and with it ends a list that this starts. Whether it also ends one with
 * a register of its own, Intel's architectural or AMD's, manuals leave open. */
VPMU_TEST(vpmu_quirks, dbends,
          "#DB ends a list that DEBUGCTL does not start where the quirk says so, else it goes on")
{
    SKIP_WITHOUT_BRANCHES();
    SKIP_IF(branches_here()->control == DEBUGCTL, "DEBUGCTL starts the list");
    CHECK_EQ(lbr_debug_ends(), vpmu_quirk("dbends"));
}

/* KVM intercepts #DB and injects it at the entry, which unlike the processor's own delivery leaves
 * DEBUGCTL as it is (SDM volume 3, "VM-entry event injection"). */
VPMU_TEST(vpmu_quirks, dbkeeps,
          "#DB leaves a list on that DEBUGCTL starts where the quirk says so, else it ends")
{
    SKIP_WITHOUT_BRANCHES();
    SKIP_IF(branches_here()->control != DEBUGCTL, "DEBUGCTL does not start the list");
    CHECK_EQ(lbr_debug_ends(), !vpmu_quirk("dbkeeps"));
}

/* Which of the quirk's values the records of a short program show; 0: none. */
static unsigned seen_of_records(void)
{
    enum { HOST = 1, STILL, SHADOW, QUIET, LEFT = 6 };
    struct pebs_record r;
    if (pmu_here()->left_running >> 62 & 1)
        return LEFT;
    pebs_steps(PMU_BIT(0));
    pebs_prepare(0, 8, 9);
    pebs_arm(0, 4, 1);
    pebs_record(PMU_BIT(0), NULL);
    for (unsigned n = 0; n < pebs_count() && pebs_get(n, &r); n++)
        if (pebs_step_of(r.address) == PEBS_STEPS_MAX)
            return HOST;
    if (!pebs_count() || !pebs_get(0, &r))
        return STILL;
    if (pebs_step_of(r.address) != pebs_expected(4))
        return SHADOW;
    pebs_prepare(0, 8, 1);
    pebs_arm(0, 4, 1);
    pebs_record(PMU_BIT(0), NULL);
    return pebs_take_full() ? 0 : QUIET;
}

/* Of several processors see pebs_buffer.processors. */
VPMU_TEST(vpmu_quirks, pebs,
          "records are of a host, or late, or at one place, or say nothing when they are too many, "
          "or were on, where the quirk says so")
{
    enum { SHARED = 5 };
    SKIP_WITHOUT_PEBS();
    uint64_t quirk = vpmu_quirk("pebs");
    CHECK_EQ(seen_of_records(), quirk == SHARED ? 0 : quirk);
}

/* EPYC Milan: CPUID 8000_0008h.EBX[31], and no list. Linux turns them on, else they are the
 * firmware's; bits 4:3 of C000_010Fh must stay set (arch/x86/events/amd/brs.c). */
VPMU_TEST(vpmu_quirks, brs,
          "registers of sampled branches keep what firmware left, where the quirk says that there "
          "are some")
{
    SKIP_IF(lab_is_intel() || branches_here()->depth, "no such list of branches");
    for (uint32_t n = 0; n < 33; n++) {
        uint64_t value = 0, wanted = n ? n : 3u << 3;
        uint32_t msr = n ? 0xc0010300 + n - 1 : 0xc000010f;
        rdmsr_fault(msr, &value);
        CHECK_EQ(value, vpmu_quirk("brs") ? wanted : 0);
        if (vpmu_quirk("brs")) /* Linux writes back what it read */
            CHECK_EQ(wrmsr_fault(msr, value), 0);
    }
}

/* A branch that is taken where the model's predictor has always seen it not taken. */
static __attribute__((noinline)) void mispredict(uint64_t taken)
{
    asm volatile("1: mov %0, %%rax\n\tadd $-1, %%rax\n\tjnc 2f\n\tjmp 3f\n2: nop\n3:"
                 :
                 : "r"(taken)
                 : "rax", "cc");
}

/* LbrExtV2 of Zen 4: bits 63 and 62 of TO are valid and speculative. Valid and speculative
 * is a branch whose speculation was right; speculative alone is one of a wrong path, never
 * retired. */
VPMU_TEST(vpmu_quirks, wrongpath,
          "after a mispredicted branch AMD's list has an entry of a wrong path where the quirk "
          "says so, which is no branch, and else none")
{
    const struct pmu_branches *b = branches_here();
    struct pmu_branch list[PMU_BRANCHES_MAX];
    SKIP_IF(b->form != PMU_BRANCHES_AMD, "no such list of branches");
    unsigned wrong = 0, speculative = 0, mispredicted = 0;
    uint32_t all_but_jcc = ((1u << PMU_HIDE_COUNT) - 1) & ~(3u | 1u << PMU_HIDE_JCC);
    struct pmu_gate gate = pmu_branches_gate(b, all_but_jcc);
    pmu_branches_clear(b);
    for (unsigned i = 0; i < 12; i++)
        lab_measure(&gate, mispredict, i % 4 != 0);
    for (unsigned i = 0; i < b->depth; i++) {
        uint64_t state = lab_rdmsr(b->to + i * b->stride);
        wrong += state & AMD_SPECULATIVE && !(state & AMD_VALID);
        speculative += state & AMD_SPECULATIVE && state & AMD_VALID;
    }
    unsigned kept = pmu_branches_read(b, list);
    for (unsigned i = 0; i < kept; i++)
        mispredicted += list[i].mispredicted;
    CHECK(mispredicted);
    CHECK_EQ(kept, b->depth - wrong);
    CHECK_EQ(wrong, vpmu_quirk("wrongpath") ? mispredicted : 0);
    CHECK_EQ(speculative, wrong);
}

/* Of 0: a comparison, or what is none, and a branch that is taken; where both are. */
#define FUSE(code)                                                                                 \
    "1: " code "\n2: je 3f\nnop\n3:\n.pushsection .rodata\n.quad 1b, 2b\n.popsection\n"
enum { COMPARISONS = 11, PAIRS = 14 };
extern const uint64_t lbr_fused_pairs[PAIRS][2];
static __attribute__((noinline)) void compare(uint64_t n)
{
    asm volatile(".pushsection .rodata\n.balign 8\nlbr_fused_pairs:\n.popsection\n" /* */
                 FUSE("test %0, %0") FUSE("testb $1, %b0") FUSE("testl $1, %k0") FUSE("cmp %0, %0")
                     FUSE("cmpl $0, %k0") FUSE("cmpb $0, %b0") FUSE("test $1, %%al")
                         FUSE("test $1, %%eax") FUSE("test %b0, %b0") FUSE("cmp %b0, %b0")
                             FUSE("cmp $0, %%al") FUSE("neg %0") FUSE("add $0, %0") FUSE("negb %b0")
                 : "+c"(n)
                 : "a"(0)
                 : "cc");
}

/* AMD's list has a comparison and its branch that were fused as one, at the comparison. Linux
 * decodes from there on to find the branch (branch_type_fused, since 6.1). */
VPMU_TEST(vpmu_quirks, fused,
          "a branch after a comparison, CMP or TEST, is in AMD's list at the comparison where the "
          "quirk says so, else at its own address")
{
    const struct pmu_branches *b = branches_here();
    struct pmu_branch list[PMU_BRANCHES_MAX];
    SKIP_IF(b->form != PMU_BRANCHES_AMD, "no such list of branches");
    struct pmu_gate gate =
        pmu_branches_gate(b, ((1u << PMU_HIDE_COUNT) - 1) & ~(3u | 1u << PMU_HIDE_JCC));
    for (unsigned i = 0; i < 2; i++) { /* the second time no branch is mispredicted */
        pmu_branches_clear(b);
        lab_measure(&gate, compare, 0);
    }
    pmu_branches_read(b, list);
    for (unsigned k = 0; k < PAIRS; k++)
        CHECK_EQ(list[PAIRS - 1 - k].from,
                 lbr_fused_pairs[k][!vpmu_quirk("fused") || k >= COMPARISONS]);
    CHECK_EQ(list[PAIRS].from, 0);
}
