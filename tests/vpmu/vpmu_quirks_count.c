/* SPDX-License-Identifier: MIT */
/* The quirks of the virtual PMU that change counts: exactly by so much if the word is on, and not
 * at all if it is off. What several quirks add is added up here too. */
#include "pmu/virt/quirk.h"
#include "tests/harness/lab.h"
#include "tests/harness/questions.h"
#include "tests/ring3/vpmu_quirks.h"

#define ITERATIONS 1000u
#define THRESHOLD(n) ((uint64_t)(n) << 24)

/* What n iterations of the work add to a counter. */
static uint64_t added_by(uint64_t select, void (*work)(uint64_t), uint64_t n)
{
    unsigned ctr = vpmu_counter();
    return lab_count(ctr, select, 0, work, 2 * n) - lab_count(ctr, select, 0, work, n);
}

VPMU_TEST(vpmu_quirks, ipc, "a cycle has as many instructions as the quirk says, else one")
{
    uint64_t ipc = vpmu_quirk("ipc"), want = 2 * ITERATIONS / (ipc ? ipc : 1);
    CHECK_BECAUSE(added_by(pmu_select(pmu_here(), PMU_CYCLES, PMU_KERNEL), lab_loop, ITERATIONS),
                  want - 1, want + 2, "a cycle more or less at either end");
}

VPMU_TEST(vpmu_quirks, ref, "a tick of event 3C/01 has as many cycles as the quirk says, else one")
{
    uint64_t ipc = vpmu_quirk("ipc"), ref = vpmu_quirk("ref");
    if (!(pmu_counters_for(pmu_here(), PMU_BUS_CYCLES) >> vpmu_counter() & 1))
        SKIP("not a register of this vendor's PMU");
    uint64_t want = 2 * 10 * ITERATIONS / ((ipc ? ipc : 1) * (ref ? ref : 1));
    CHECK_BECAUSE(added_by(pmu_select(pmu_here(), PMU_BUS_CYCLES, PMU_KERNEL), lab_loop,
                           10 * ITERATIONS),
                  want - 1, want + 2, "a tick more or less at either end");
}

VPMU_TEST(vpmu_quirks, refrate,
          "fixed counter 2 counts a tick each ref= cycles where the quirk says so, else each cycle")
{
    const uint64_t fixed2 = PMU_FIX(2), ipc = vpmu_quirk("ipc"), ref = vpmu_quirk("ref");
    if (!lab_is_intel() || !(pmu_here()->reported & fixed2))
        SKIP("not a register of this vendor's PMU");
    uint64_t select = pmu_select(pmu_here(), PMU_REF_CYCLES, PMU_KERNEL);
    uint64_t cycles = 2 * 10 * ITERATIONS / (ipc ? ipc : 1);
    uint64_t want = vpmu_quirk("refrate") && ref ? cycles / ref : cycles;
    unsigned ctr = bit_lowest(fixed2);
    CHECK_BECAUSE(lab_count(ctr, select, 0, lab_loop, 20 * ITERATIONS) -
                      lab_count(ctr, select, 0, lab_loop, 10 * ITERATIONS),
                  want - 1, want + 2, "a tick more or less at either end");
}

/* RDPMC is not serializing on either vendor: with nothing in between it may read before the
 * instructions in front of it have retired, as out-of-order cores do. LFENCE, or an exit that
 * serializes, ends it. */
VPMU_TEST(vpmu_quirks, early,
          "RDPMC lacks at most as many instructions as the quirk says, some of 100 lack some, and "
          "without the quirk none [slow]")
{
    unsigned ctr = vpmu_counter();
    uint32_t index = pmu_rdpmc_index(ctr);
    uint64_t early = vpmu_quirk("early"), most = 0, least = UINT64_MAX;
    pmu_program(ctr, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL), 0);
    pmu_start(PMU_BIT(ctr));
    uint64_t exact = QUESTIONS_LOOK(index, QUESTIONS_WAITS);
    for (unsigned i = 0; i < QUESTIONS_TRIES; i++) {
        uint64_t added = QUESTIONS_LOOK(index, QUESTIONS_NOP);
        most = added > most ? added : most;
        least = added < least ? added : least;
        CHECK_EQ(QUESTIONS_LOOK(index, QUESTIONS_WAITS), exact);
    }
    pmu_stop(PMU_BIT(ctr));
    CHECK(least >= exact);
    CHECK(most <= exact + early);
    CHECK_EQ(most > exact, early != 0);
}

/* An instruction that the hypervisor executes is no instruction to the host's counter. KVM adds
 * it to the guest's since Linux 5.17; before, it is missing. CPUID exits: each iteration has
 * five instructions, one of them a branch. */
VPMU_TEST(vpmu_quirks, noemul,
          "an instruction that exits counts nothing where the quirk says so, else once")
{
    uint64_t select = pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL), iterations = 10;
    uint64_t reentry = vpmu_quirk("vmrun"), dropped = vpmu_quirk("noemul");
    CHECK_EQ(added_by(select, lab_exits, iterations), iterations * (5 + reentry - dropped));
    CHECK_EQ(added_by(select, lab_loop, iterations), 2 * iterations);
}

/* AMD counts VMRUN as a branch in the guest's context: a guest's branches depend on how often
 * its host takes it away. kvm-unit-tests therefore allows AMD a range. */
VPMU_TEST(vpmu_quirks, vmrun, "with the quirk each entry into the guest counts as a branch")
{
    uint64_t iterations = 10;
    CHECK_EQ(added_by(pmu_select(pmu_here(), PMU_BRANCHES, PMU_KERNEL), lab_exits, iterations),
             iterations * (1 + vpmu_quirk("vmrun") + (vpmu_quirk("bug") == BUG_CPUID)));
}

/* When KVM counts what it emulates (Linux 5.17 on) it compares event and unit mask alone, not
 * CMASK, INV and EDGE. No cycle has 255 instructions. */
VPMU_TEST(vpmu_quirks, emulraw,
          "an instruction that exits ignores a threshold where the quirk says so")
{
    uint64_t select = pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL) | THRESHOLD(255);
    uint64_t each = vpmu_quirk("emulraw") && !vpmu_quirk("noemul");
    CHECK_EQ(added_by(select, lab_exits, 10), 10 * each);
    CHECK_EQ(added_by(select, lab_loop, 10), 0);
}

/* The enabling WRMSR counts once; it exits. What the kernel measured of it is not asked. */
VPMU_TEST(vpmu_quirks, wrmsr,
          "the WRMSR that enables a counter counts as often as the quirk says, else once")
{
    uint64_t select = pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL),
             want = lab_expected(&lab_loop_work, LAB_INSTRUCTIONS, 1);
    int64_t wrmsr = 1 - (int64_t)vpmu_quirk("noemul") + (int64_t)vpmu_quirk("wrmsr");
    want = want - lab_before() + 1 + (wrmsr > 0 ? (uint64_t)wrmsr : 0) + vpmu_quirk("vmrun");
    CHECK_EQ(lab_count(vpmu_counter(), select, 0, lab_loop, 1), want);
}

/* --- Ring 3, and the traps that interrupt it. --- */

/* The thread's counts of the same code without and with TF set; the traps are ours while it runs.
 */
static void count_traps(unsigned ctr, unsigned cpu, uint64_t counts[2], unsigned *traps)
{
    struct process *process = user_process();
    struct thread *thread = lab_run_user(process, user_quirk_traps, pmu_rdpmc_index(ctr), cpu);
    *traps = lab_caught.steps;
    if (thread)
        for (unsigned i = 0; i < 2; i++)
            CHECK(user_read(process, &counts[i], (uint64_t)&user_quirk_counts[i], sizeof *counts));
    user_finish(process, thread);
}

static void check_traps(enum pmu_event event, uint64_t each)
{
    unsigned ctr, traps = 0;
    REQUIRE(counting_start(event, PMU_USER, &ctr));
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        uint64_t counts[2] = { 0 };
        count_traps(ctr, cpu, counts, &traps);
        CHECK_BECAUSE(traps, USER_QUIRK_TRIES * 10, USER_QUIRK_TRIES * 20,
                      "ten instructions and the call");
        CHECK_EQ(counts[1] - counts[0], traps / USER_QUIRK_TRIES * each);
    }
    test_run_anywhere();
    counting_stop();
}

/* On nearly all x86 processors each interrupt and page fault that comes in ring 3 is one more
 * instruction to a counter of ring 3 (Weaver, Terpstra, Moore, "Non-determinism and overcount on
 * modern hardware performance counter implementations", ISPASS 2013). */
TEST(vpmu_quirks, irq3,
     "an exception in ring 3 adds what the quirk says to its instructions and branches, and else "
     "nothing [slow]")
{
    SKIP_WITHOUT_RDPMC();
    SKIP_WITHOUT_VPMU();
    check_traps(PMU_INSTRUCTIONS, vpmu_quirk("irq3"));
    if (!vpmu_quirk("irq3") && !test_long())
        return; /* each branch is decoded */
    check_traps(PMU_BRANCHES, vpmu_quirk("irq3"));
    if (common_counters_for(SMP_ALL, PMU_CONDITIONAL_BRANCHES))
        check_traps(PMU_CONDITIONAL_BRANCHES, 0);
}

/* Errata AAK100, AAP53 and BD53 of Nehalem and Westmere: a counter may count core cycles, or
 * nothing, instead of its new event. Linux writes three idle events first
 * (intel_pmu_nhm_workaround). */
VPMU_TEST(vpmu_quirks, stale,
          "a select whose event changes counts cycles where the quirk says so, else its own event")
{
    unsigned ctr = vpmu_counter();
    SKIP_IF(!lab_is_intel(), "not a quirk of this vendor's processors");
    pmu_program(ctr, lab_select(ctr, PMU_KERNEL), 0);
    lab_wrmsr(pmu_select_msr(pmu_here(), ctr), 0xeeff | PMU_KERNEL | PMU_ENABLE);
    struct pmu_gate gate = pmu_gate(ctr);
    if (pmu_here()->msr.global_control)
        lab_measure(&gate, lab_loop, ITERATIONS);
    CHECK_EQ(pmu_read(ctr) != 0, pmu_here()->msr.global_control && vpmu_quirk("stale"));
}
