/* SPDX-License-Identifier: MIT */
/* The quirks of the virtual PMU between an overflow and its interrupt: there if their words are on,
 * and not if they are off. */
#include "tests/harness/lab.h"

#define TRIES 20u
#define OVERFLOWS 100u
#define PERIOD 50u
#define HANDLER 200u /* instructions of it before it looks, at most */
#define WAIT_PAUSES 1000u
#define DISTURBED "another quirk disturbs the counter"
#define NO_STATUS "no register of overflow status"
#define NO_FREEZE "counters do not freeze on PMI"
enum { DEBUGCTL = 0x1d9 };
#define DEBUGCTL_FREEZE (1u << 12)

static uint64_t select_on(unsigned ctr, uint32_t flags)
{
    return lab_select(ctr, PMU_KERNEL | flags);
}

/* 1 never, 2 always */
static bool masks(void)
{
    return vpmu_quirk("lvtmask") ? vpmu_quirk("lvtmask") == 2 : lab_is_intel();
}

/* A masked entry lets the second one through no more than any. */
static unsigned pmis_of_one(void) { return vpmu_quirk("twice") && !masks() ? 2 : 1; }

/* --- The skid: counter 0 goes on from 0, and the handler reads how far it came. --- */

static uint64_t in_handler;

static void read_late(void) { in_handler = in_handler ? in_handler : pmu_read(0); }

static void overflow_once(void (*work)(uint64_t), uint64_t iterations)
{
    unsigned before = lab_caught.pmis;
    apic_write_pmi_lvt(VECTOR_PMI);
    in_handler = 0;
    lab_count(0, select_on(0, PMU_INTERRUPT), -(uint64_t)PERIOD & pmu_mask(pmu_here(), 0), work,
              iterations);
    for (unsigned i = 0; i < WAIT_PAUSES && lab_caught.pmis == before; i++)
        pause();
}

/* Of what it executes the host emulates something. */
static void read_often(uint64_t n)
{
    for (; n; n--)
        pmu_read(0);
}

/* A PMI is late: tens of instructions on Intel (rr allows 100, 125 since Alder Lake), thousands
 * on Zen, where rr has no bound. Below KVM an exit comes on top. */
VPMU_TEST(vpmu_quirks, skid,
          "a PMI comes as many instructions after its overflow as the quirk says, else at once")
{
    uint64_t n = vpmu_quirk("skid"), spread = vpmu_quirk_second("skid"), first = 0;
    uint64_t least = n > spread ? n - spread : 0;
    bool differ = false;
    SKIP_IF(vpmu_quirk("throttle") || vpmu_quirk("smi"), DISTURBED);
    lab_catch();
    lab_caught.action = read_late;
    for (unsigned i = 0; i < TRIES; i++) {
        overflow_once(lab_loop, n + spread + PERIOD);
        CHECK_EQ(lab_caught.pmis, (i + 1) * pmis_of_one());
        CHECK_BECAUSE(in_handler, least + 1, n + spread + HANDLER,
                      "the skid, and the handler until it looks");
        differ |= i > 0 && in_handler != first;
        first = i > 0 ? first : in_handler;
    }
    CHECK_EQ(differ, spread != 0);
    if (!spread && !vpmu_quirk("noemul")) {
        overflow_once(read_often, n + PERIOD);
        CHECK_EQ(in_handler, first); /* emulated instructions are as others */
    }
    lab_release();
}

/* KVM could send a second PMI for one overflow, until Linux 73554b29bd70 of September 2023
 * ("Synthesize at most one PMI per VM-exit"). */
VPMU_TEST(vpmu_quirks, twice, "an overflow gives two PMIs where the quirk says so, else one")
{
    lab_catch();
    overflow_once(lab_loop, 1000);
    CHECK_EQ(lab_caught.pmis, pmis_of_one());
    lab_release();
}

static void check_bit_63(const char *quirk)
{
    lab_catch();
    overflow_once(lab_loop, 1000);
    CHECK_EQ(lab_caught.pmis, pmis_of_one());
    CHECK_EQ(lab_caught.status >> 63, vpmu_quirk(quirk));
    pmu_take_overflow();
    CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_status) >> 63, 0);
    overflow_once(lab_loop, 1000);
    pmu_reset();
    CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_status), 0);
    lab_release();
}

/* SDM: CondChgd, bit 63 of GLOBAL_STATUS, is no overflow. Some processors set it with PMIs, and
 * a handler that takes it for one claims NMIs that are not its own; Linux ignores and clears it
 * in intel_pmu_handle_irq. */
VPMU_TEST(vpmu_quirks, condchg,
          "a PMI sets bit 63 of the overflow status where the quirk says so, else not")
{
    SKIP_IF(!lab_is_intel(), "not a register of this vendor's PMU");
    SKIP_IF(!pmu_here()->msr.global_status, NO_STATUS);
    check_bit_63("condchg");
}

/* Some microcode sets reserved bits of C000_0300h; Linux masks them, warns once, and asks for
 * newer microcode (amd_pmu_v2_handle_irq). */
VPMU_TEST(vpmu_quirks, v2status,
          "a PMI sets reserved bit 63 of AMD's status where the quirk says so, else not")
{
    SKIP_IF(lab_is_intel(), "not a register of this vendor's PMU");
    SKIP_IF(!pmu_here()->msr.global_status, NO_STATUS);
    check_bit_63("v2status");
}

/* The local APIC of Intel masks the entry when it delivers a PMI, AMD's does not. KVM masked for
 * nobody before Linux 6.6 (a16eb25b09c0), for both vendors until 6.8, and since 6.9 as silicon
 * does (49ff3b4aec51). */
VPMU_TEST(vpmu_quirks, lvtmask,
          "a PMI masks its LVT entry as the quirk says, else as the vendor does")
{
    lab_catch();
    overflow_once(lab_loop, 1000);
    CHECK_EQ(lab_caught.pmis, pmis_of_one());
    CHECK_EQ(lab_caught.lvt >> 16 & 1, masks());
    lab_release();
}

/* Of how many overflows of counter 0 PMIs came, with others running beside. */
static unsigned count_pmis(uint64_t beside, unsigned overflows)
{
    unsigned found = 0;
    lab_catch();
    for (unsigned i = 0; i < overflows; i++) {
        unsigned before = lab_caught.pmis;
        apic_write_pmi_lvt(VECTOR_PMI);
        pmu_program(0, select_on(0, PMU_INTERRUPT), -(uint64_t)PERIOD & pmu_mask(pmu_here(), 0));
        pmu_start(PMU_BIT(0) | beside);
        lab_loop(10 * PERIOD);
        pmu_stop(PMU_BIT(0) | beside);
        CHECK_EQ(pmu_take_overflow() & PMU_BIT(0), PMU_BIT(0));
        lab_loop(1 + vpmu_quirk("skid") + vpmu_quirk_second("skid"));
        found += lab_caught.pmis != before;
    }
    lab_release();
    return found;
}

/* AMD's erratum 1023 (Zen 1, revision guide 55449, no fix): a PMI may be lost while two or more
 * counters are enabled. */
VPMU_TEST(vpmu_quirks, lostpmi,
          "PMIs are lost as often as the quirk says while two counters run, else none")
{
    uint64_t p = vpmu_quirk("lostpmi");
    unsigned overflows = p || test_long() ? OVERFLOWS : OVERFLOWS / 10;
    SKIP_IF(vpmu_quirk("throttle"), DISTURBED);
    CHECK_EQ(count_pmis(0, overflows), overflows);
    SKIP_IF(!(pmu_here()->counters >> 1 & 1), "this needs two counters");
    pmu_program(1, select_on(1, 0), 0);
    unsigned found = count_pmis(PMU_BIT(1), overflows);
    if (!p)
        CHECK_EQ(found, overflows);
    else if (p == 1)
        CHECK_EQ(found, 0);
    else
        CHECK_BECAUSE(OVERFLOWS - found, OVERFLOWS / p / 4 + 1, 3 * OVERFLOWS / p + 5,
                      "one of so many, at random");
}

/* Ends at 0, and then at 1. */
VPMU_TEST(vpmu_quirks, wrap0,
          "with the quirk a counter that wraps to exactly 0 reports its overflow at the next event")
{
    SKIP_IF(!pmu_here()->msr.global_status, NO_STATUS);
    uint64_t all = lab_count(0, select_on(0, 0), 0, lab_loop, 100), mask = pmu_mask(pmu_here(), 0);
    for (unsigned end = 0; end < 2; end++) {
        CHECK_EQ(lab_count(0, select_on(0, 0), (end - all) & mask, lab_loop, 100), end);
        CHECK_EQ(pmu_take_overflow(), end || !vpmu_quirk("wrap0") ? PMU_BIT(0) : 0);
    }
}

/* Counted after the PMI until the counter froze. */
/* DEBUGCTL[12] freezes counters when the PMI is raised, not at the overflow. Linux used it on
 * Skylake and later, off by default since 4.19, and removed it. */
VPMU_TEST(vpmu_quirks, freeze_lag,
          "counters freeze as many instructions after a PMI as the quirk says, else at once")
{
    uint64_t lag = vpmu_quirk("freeze-lag");
    if (wrmsr_fault(DEBUGCTL, DEBUGCTL_FREEZE) || lab_rdmsr(DEBUGCTL) != DEBUGCTL_FREEZE)
        SKIP(NO_FREEZE);
    lab_catch();
    uint64_t found = lab_count(0, select_on(0, PMU_INTERRUPT),
                               -(uint64_t)PERIOD & pmu_mask(pmu_here(), 0), lab_loop, 1000 + lag);
    lab_wrmsr(DEBUGCTL, 0);
    CHECK_EQ(lab_caught.pmis, pmis_of_one());
    if (vpmu_quirk("skid") || vpmu_quirk("noemul") || vpmu_quirk("vmrun"))
        CHECK_BECAUSE(found + 1, lag / 2 + 1, lag + 1000000, "other quirks change the count too");
    else
        CHECK_EQ(found, lag + vpmu_quirk("wrap0"));
    lab_release();
}

/* Overflows one after the other, by writes to a counter that runs; how many were not seen. */
static unsigned pmi_missed(unsigned overflows)
{
    unsigned found = 0;
    pmu_program(0, select_on(0, 0), 0);
    pmu_start(PMU_BIT(0));
    for (unsigned i = 0; i < overflows; i++) {
        pmu_write(0, -(uint64_t)PERIOD & pmu_mask(pmu_here(), 0));
        lab_loop(PERIOD);
        found += pmu_read(0) > pmu_mask(pmu_here(), 0) / 2;
    }
    pmu_stop(PMU_BIT(0));
    return found;
}

/* Below KVM a counter is a perf event of the host: one that overflows more often than
 * perf_event_max_sample_rate allows is stopped until the next tick. */
VPMU_TEST(vpmu_quirks, throttle,
          "a counter that overflows more often than the quirk says stops until the tick")
{
    uint64_t p = vpmu_quirk("throttle"), start = clock_ns();
    SKIP_IF(p > 50, "an exit takes too long for so many overflows in a millisecond");
    unsigned gone = pmi_missed(p ? 2 * (unsigned)p + 10 : 20);
    CHECK_EQ(gone != 0, p != 0);
    while (clock_ns() < start + 3000000)
        ;
    CHECK_EQ(pmi_missed(1), 0);
}

/* --- The virtual PMU's own NMIs: its alarm, and its calls from CPU to CPU. --- */

#define SHARE_NS 30000000u

static void share_lost(void *until)
{
    while (clock_ns() < *(const uint64_t *)until)
        for (unsigned i = 0; i < WAIT_PAUSES; i++)
            asm volatile("");
}

/* Both are NMIs of the host, which its guest must not see. An alarm that was set before it had gone
 * over to the CPU that takes the token came to a guest as an NMI that nobody had sent. */
TEST(vpmu_quirks, no_nmi,
     "while all CPUs run, and let each other run, no NMI comes that nobody sent")
{
    struct thread *threads[MAX_CPUS] = { NULL };
    uint64_t until = clock_ns() + (test_long() ? SHARE_NS : SHARE_NS / 4),
             before = trap_counts[EXC_NMI];
    SKIP_WITHOUT_VPMU();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        threads[cpu] = thread_create("share", share_lost, &until, cpu_set_one(cpu));
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        team_end(threads[cpu]);
    CHECK_EQ(trap_counts[EXC_NMI], before);
}
