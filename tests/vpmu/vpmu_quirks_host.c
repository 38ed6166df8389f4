/* SPDX-License-Identifier: MIT */
/* The quirks of the virtual PMU that stand for the host, firmware and the board: there if their
 * words are on, and not if they are off. */
#include "kernel/base/layout.h"
#include "tests/harness/lab.h"

enum { SMI_COUNT = 0x34, AMD_SMIS = 0x2b, DEBUGCTL = 0x1d9, INT_PENDING = 0xc0010055 };
#define DEBUGCTL_SMM (1u << 14)
#define ACCESS_COST 100000u /* clock of an access to the PMU by itself, at most */

static void pass_us(uint64_t us)
{
    for (uint64_t end = clock_ns() + 1000 * us; clock_ns() < end;)
        asm volatile("");
}

/* A host's own perf, or its NMI watchdog, has counters: KVM cannot give the guest all that CPUID
 * reports at once, and those beyond stand still. All counters run at a time; how many count. */
VPMU_TEST(vpmu_quirks, contend, "no more counters count than the quirk gives, else all")
{
    uint64_t k = vpmu_quirk("contend"), counted = 0, all = 0, counters = 0;
    for_each_bit(ctr, pmu_here()->counters) {
        if (lab_event(ctr) == PMU_EVENT_COUNT)
            continue;
        pmu_program(ctr, lab_select(ctr, PMU_KERNEL), 0);
        counters |= PMU_BIT(ctr);
        all++;
    }
    pmu_start(counters);
    lab_loop(10000);
    pmu_stop(counters);
    for (uint64_t rest = counters; rest; rest &= rest - 1)
        counted += pmu_read((unsigned)__builtin_ctzll(rest)) != 0;
    CHECK_EQ(counted, k && k < all ? k : all);
}

enum { INTEL_STATUS_SET = 0x391, AMD_STATUS_SET = 0xc0000303 };

static void check_left(bool here)
{
    uint64_t left = here ? vpmu_quirk("left") : 0;
    uint64_t wanted = (left | vpmu_quirk("owned")) & ~vpmu_quirk("dead");
    CHECK_EQ(pmu_here()->left_running & pmu_here()->reported, wanted & pmu_here()->reported);
}

/* Firmware may leave counters enabled: HP's ProLiant (38Dh is 330h), or an AMD guest of KVM that
 * was rebooted while counting. Linux' check_hw_exists reports it. */
VPMU_TEST(vpmu_quirks, left,
          "firmware leaves the counters of the quirk enabled, which is reported, else none [VP-37]")
{
    check_left(!vpmu_quirk("leftone") || pmu_here() == pmu_of(0));
}

/* Firmware may have left counters enabled on the CPU that it booted by alone: a hybrid's other kind
 * has none of them. */
VPMU_TEST(vpmu_quirks, leftone, "what firmware left on the first CPU alone is of its kind alone")
{
    SKIP_IF(!vpmu_quirk("leftone"), "the quirk leftone is off");
    check_left(pmu_here() == pmu_of(0));
}

/* Intel from version 4 on, and AMD's PerfMonV2, freeze by status: while bit 59 is set no counter
 * counts, while bit 58 is set no branch is listed, until both are cleared, whoever set them. */
VPMU_TEST(vpmu_quirks, frozen,
          "counters count, and no status of a freeze is set, where firmware left that [VP-75]")
{
    const uint32_t status = pmu_here()->msr.global_status;
    const unsigned ctr = vpmu_counter();
    SKIP_IF(!status, "no register of overflow status");
    wrmsr_fault(lab_is_intel() ? INTEL_STATUS_SET : AMD_STATUS_SET, 3ul << 58);
    pmu_reset();
    CHECK_EQ(lab_rdmsr(status) >> 58 & 3, 0);
    CHECK(lab_count(ctr, lab_select(ctr, PMU_KERNEL), 0, lab_loop, 100) > 0);
}

/* The general-purpose counters whose enable bit is set 12 ms after it was cleared. */
VPMU_TEST(vpmu_quirks, owned, "firmware enables the counters of the quirk again, else none [slow]")
{
    uint64_t found = 0, gp = pmu_here()->reported & PMU_ANY_GP;
    for (uint64_t rest = gp; rest; rest &= rest - 1)
        lab_wrmsr(pmu_select_msr(pmu_here(), (unsigned)__builtin_ctzll(rest)), 0);
    pass_us(12000);
    for (uint64_t rest = gp; rest; rest &= rest - 1)
        if (lab_rdmsr(pmu_select_msr(pmu_here(), (unsigned)__builtin_ctzll(rest))) & PMU_ENABLE)
            found |= rest & -rest;
    CHECK_EQ(found, vpmu_quirk("owned") & gp & ~vpmu_quirk("dead"));
}

VPMU_TEST(vpmu_quirks, dead, "the counters of the quirk swallow writes, and no others")
{
    uint64_t found = 0;
    for_each_bit(ctr, pmu_here()->reported) {
        lab_wrmsr(pmu_write_msr(pmu_here(), ctr), 5);
        if (lab_rdmsr(pmu_counter_msr(pmu_here(), ctr)) != 5)
            found |= PMU_BIT(ctr);
    }
    CHECK_EQ(found, vpmu_quirk("dead") & pmu_here()->reported);
}

/* --- What counter 0 counts that this CPU has not executed. --- */

static int64_t too_many(uint32_t flags, void (*work)(uint64_t), uint64_t n)
{
    unsigned ctr = vpmu_counter();
    pmu_program(ctr, lab_select(ctr, flags), 0);
    pmu_start(PMU_BIT(ctr));
    uint64_t start = vpmu_retired();
    work(n);
    uint64_t real = vpmu_retired() - start;
    pmu_stop(PMU_BIT(ctr));
    return (int64_t)(pmu_read(ctr) - (flags & PMU_KERNEL ? real : 0));
}

/* Silvermont, Goldmont, Tremont and Sierra Forest count a far transfer, an IRET and a VM exit
 * more than once; kvm-unit-tests' lib/x86/pmu.c has the list. */
VPMU_TEST(vpmu_quirks, far, "a far transfer adds what the quirk says, else nothing")
{
    SKIP_IF(!pmu_counters_for(pmu_here(), PMU_BRANCHES), "no counter counts branches");
    CHECK_EQ(measured_here()->far, vpmu_quirk("far"));
}

/* The longest from SMI to SMI, in us. Each is a period after the last, and comes when the CPU
 * enters its guest again: after the host's work, and the iterations of all other CPUs (turn.c: of
 * 230,000 instructions; without an instruction clock of a tick). */
#define HOST_US 25u
#define SLICE_US 250u
static uint64_t smis_apart(void)
{
    uint64_t slice = vpmu_steps() ? sched_tick_ns() / 1000 : SLICE_US;
    return vpmu_quirk("smi") + HOST_US + vpmu_quirk("exitcost") / 1000 + (cpu_count - 1) * slice;
}

/* Whether there were so many SMIs since then as fit in. */
static void check_smi_rate(uint64_t smis, uint64_t start)
{
    uint64_t us = (clock_ns() - start) / 1000;
    CHECK_BECAUSE(smis, us / smis_apart() - 1, us / vpmu_quirk("smi") + 1,
                  "a period apart at least, and at most until the next entry");
}

/* What is around the loop is in the shortest of several short runs. */
static uint64_t smis_in(uint32_t flags, uint64_t iterations, uint64_t *start)
{
    int64_t around = INT64_MAX;
    for (unsigned i = 0; i < 10; i++) {
        int64_t once = too_many(flags, lab_loop, 10);
        around = once < around ? once : around;
    }
    *start = clock_ns();
    return (uint64_t)(too_many(flags, lab_loop, iterations) - around);
}

static void check_smis(uint32_t flags, bool counted, uint64_t iterations)
{
    uint64_t start, length = vpmu_quirk_second("smi"), extra = smis_in(flags, iterations, &start);
    if (!counted || !length) {
        CHECK_EQ(extra, 0);
        return;
    }
    CHECK_EQ(extra % length, 0);
    check_smi_rate(extra / length, start);
}

/* An SMI's handler is counted unless Intel's DEBUGCTL[14] (FREEZE_WHILE_SMM) is set, as ring 3
 * too where it runs code there. MSR 34h counts SMIs since Nehalem, event 2Bh on AMD. */
VPMU_TEST(vpmu_quirks, smi, "instructions of SMIs are counted as the quirk says, else none")
{
    /* Five times the longest at an instruction a ns; one that is stepped takes over 1,000. */
    uint64_t us = vpmu_quirk("smi"),
             iterations = (us ? smis_apart() : 20) * (vpmu_steps() ? 5 : 2500), before = 0,
             after = 0, start = clock_ns();
    bool ring3 = vpmu_quirk("smi3");
    unsigned fault = rdmsr_fault(SMI_COUNT, &before);
    if (vpmu_quirk("vmrun") || vpmu_quirk("noemul") || us > 5000)
        SKIP("other quirks change the count, or the SMIs are far apart");
    check_smis(PMU_KERNEL, us && !ring3, iterations);
    check_smis(PMU_USER, us && ring3, iterations);
    if (!lab_is_intel()) {
        before = lab_count(vpmu_counter(), AMD_SMIS | PMU_KERNEL, 0, lab_loop, iterations);
        CHECK(us ? before != 0 : before == 0);
    }
    if (!us || !lab_is_intel())
        return;
    CHECK_EQ(fault, 0);
    after = lab_rdmsr(SMI_COUNT);
    check_smi_rate(after - before, start);
    if (pmu_here()->version < 2 || wrmsr_fault(DEBUGCTL, DEBUGCTL_SMM) ||
        lab_rdmsr(DEBUGCTL) != DEBUGCTL_SMM)
        return;
    start = clock_ns();
    check_smis(PMU_KERNEL, false, iterations);
    check_smi_rate(lab_rdmsr(SMI_COUNT) - after, start); /* they come all the same */
    lab_wrmsr(DEBUGCTL, 0);
}

VPMU_TEST(vpmu_quirks, exitcost, "an access to the PMU takes as long as the quirk says")
{
    uint64_t cost = vpmu_quirk("exitcost"), value, start = rdtsc();
    for (unsigned i = 0; i < 10; i++)
        rdpmc_fault(pmu_rdpmc_index(0), &value);
    uint64_t took = rdtsc() - start;
    CHECK_BECAUSE(took, 10 * cost + 10, 10 * (cost + ACCESS_COST), "ten accesses");
}

/* --- The PIT: channel 2, one shot of 1 ms. --- */

#define PIT_MS_COUNT 1193u

static uint64_t pit_window(bool *rose)
{
    out8(0x61, (in8(0x61) & 0xfc) | 1);
    out8(0x43, 0xb0);
    out8(0x42, PIT_MS_COUNT & 0xff);
    out8(0x42, PIT_MS_COUNT >> 8);
    uint64_t start = clock_ns(), now = start;
    for (*rose = false; !*rose && now < start + 10000000; now = clock_ns())
        *rose = in8(0x61) & 0x20;
    return clock_ns() - start;
}

/* Chipsets since Skylake can gate the clock of the 8254 (ITSSPRC), and some boards ship so: its
 * registers can be written, and no interrupt comes. Linux could not boot there before
 * c8c4076723da, of 2019. */
VPMU_TEST(vpmu_quirks, pit, "the PIT is dead where the quirk says so, else it counts")
{
    bool rose;
    pit_window(&rose);
    CHECK_EQ(rose, !vpmu_quirk("pit"));
}

VPMU_TEST(vpmu_quirks, pitjitter,
          "with the quirk the CPU is sometimes away when the PIT's output rises [slow]")
{
    unsigned late = 0;
    bool rose;
    SKIP_IF(vpmu_quirk("pit"), "the PIT does not answer");
    for (unsigned i = 0; i < (vpmu_quirk("pitjitter") || test_long() ? 20 : 4); i++)
        late += pit_window(&rose) > 1100000;
    if (vpmu_quirk("pitjitter"))
        CHECK_BECAUSE(late, 2, 18, "half of them, at random");
    else
        CHECK_EQ(late, 0);
}

/* --- C1E. Another CPU wakes this one out of HLT, 3 ms after the request. --- */

static uint32_t go;
static uint32_t sleeper;

static uint32_t timer_current(void) { return *(volatile uint32_t *)(DIRECT_MAP + 0xfee00390); }

static void waker(void *)
{
    while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
        pause();
    pass_us(3000);
    apic_send(sleeper, VECTOR_PMI);
}

/* What the timer counted down while this CPU halted, and the time that passed; both in nanoseconds
 * by the rate that the timer has while it runs. The period is a second: no interrupt of it comes
 * between. */
static void halted(void)
{
    uint64_t time = clock_ns();
    uint32_t from = timer_current();
    pass_us(500);
    uint64_t rate = (from - timer_current()) * 1000ull / (clock_ns() - time);
    lab_catch();
    time = clock_ns();
    from = timer_current();
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    for (cli(); !__atomic_load_n(&lab_caught.pmis, __ATOMIC_ACQUIRE); cli())
        asm volatile("sti\n\thlt" : : : "memory");
    sti();
    uint64_t passed = (clock_ns() - time) * rate / 1000, counted = from - timer_current();
    lab_release();
    CHECK_BECAUSE(passed, 1000000 * rate / 1000, 100000000 * rate / 1000,
                  "the other CPU waits for 3 ms");
    if (vpmu_quirk("c1e"))
        CHECK(counted < passed / 4);
    else
        CHECK_BECAUSE(counted, passed - passed / 4, passed + passed / 4, "the time that passed");
}

static void halted_alone(unsigned)
{
    if (cpu_number())
        return;
    apic_timer_change(1000000000);
    halted();
    apic_timer_change(apic_timer_period());
}

static void c1e(unsigned)
{
    uint64_t value = 0;
    if (vpmu_quirk("c1e")) /* else the processor below may lack it, too */
        CHECK_EQ(cpuid(6, 0).eax >> 2 & 1, 0);
    if (vpmu_quirk("c1e") && !lab_is_intel())
        CHECK_EQ(!rdmsr_fault(INT_PENDING, &value) && value >> 28 & 1, 1);
}

/* What freezes on a PMI (bits 11, 12) or in SMM (14), and lets the uncore's PMI come (13): a
 * hypervisor may take a write of them and do nothing. */
VPMU_TEST(vpmu_quirks, debugctl, "DEBUGCTL ignores bits 14:11 where the quirk says so")
{
    bool ignored = vpmu_quirk("debugctl");
    for (unsigned bit = 11; bit < 15; bit++) {
        unsigned fault = wrmsr_fault(DEBUGCTL, 1u << bit);
        uint64_t kept = lab_rdmsr(DEBUGCTL);
        if (ignored || bit == 13)
            CHECK_EQ(kept, 0);
        if (ignored)
            CHECK_EQ(fault, 0);
        else
            CHECK_EQ(!fault, kept == 1u << bit);
        wrmsr_fault(DEBUGCTL, 0);
    }
}

#define TSC_ERROR 20000 /* ticks that CPUs may be off which compare their TSCs by memory */

static struct {
    bool inside, sent, nested;
} nmi;

/* Each second one is sent in the one before, and has to wait for its IRET. */
static void send_another(void)
{
    nmi.nested |= nmi.inside;
    nmi.inside = true;
    nmi.sent = !nmi.sent;
    if (nmi.sent)
        apic_send_nmi(apic_id());
    lab_loop(20);
    nmi.inside = false;
}

/* Leaves the guest at IRETQ, and then an NMI can come, before it is done. */
static void return_often(uint64_t n)
{
    while (n--)
        lab_op_iret(0);
}

VPMU_TEST(
    vpmu_quirks, nmi,
    "NMIs that are nobody's come where the quirk says so, else none; one before an IRET holds "
    "others until its own [VP-78]")
{
    uint64_t period = vpmu_quirk("nmi") ? vpmu_quirk("nmi") : 100;
    uint64_t end = clock_ns() + (period < 1000 ? 10 : 3) * 1000 * period;
    const unsigned ctr = bit_lowest(pmu_counters_for(pmu_here(), PMU_BRANCHES) | 1);
    nmi.nested = false;
    lab_catch();
    lab_caught.action = send_another;
    do
        lab_count(ctr, pmu_select(pmu_here(), PMU_BRANCHES, PMU_KERNEL), 0, return_often, 1000);
    while (clock_ns() < end && lab_caught.nmis < (period < 1000 ? 20 : 1));
    CHECK_EQ(lab_caught.nmis != 0, vpmu_quirk("nmi") != 0);
    CHECK_EQ(nmi.nested, false);
    lab_release();
}

/* CPUs may begin with TSCs that differ. IA32_TSC_ADJUST has what was added to a CPU's TSC since
 * its reset: here, what the kernel took off when the CPU started. */
TEST(vpmu_quirks, tsc,
     "the kernel has set back each CPU's TSC by as much as the quirk says that it was ahead")
{
    SKIP_WITHOUT_VPMU();
    SKIP_BELOW_CPUS(2);
    const int64_t each = (int64_t)vpmu_quirk("tsc");
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        uint64_t adjust = 0;
        test_run_on(cpu);
        if (vpmu_quirk("tscfixed")) /* the kernel's clock takes it off instead */
            adjust = cpus[cpu]->tsc_behind;
        else
            CHECK_EQ(rdmsr_fault(MSR_TSC_ADJUST, &adjust), 0);
        int64_t error = (int64_t)adjust + each * (int64_t)cpu;
        CHECK(error >= -TSC_ERROR && error <= TSC_ERROR);
    }
    test_run_anywhere();
}

#define FAR_AHEAD (1ul << 40)

/* Below a hypervisor the TSC may not be settable, and TSC_ADJUST is absent or does nothing: the
 * kernel's clock takes off what a CPU is ahead. */
VPMU_TEST(vpmu_quirks, tscfixed, "writes of the TSC do nothing, or fault, where the quirk says so")
{
    const uint64_t word = vpmu_quirk("tscfixed"), before = rdtsc();
    const unsigned fault = word == 1 || vpmu_quirk("ignoremsrs") ? 0 : LAB_GP_FAULT;
    uint64_t adjust;
    SKIP_IF(!word, "the quirk tscfixed is off");
    CHECK_EQ(wrmsr_fault(MSR_TSC, before + FAR_AHEAD), fault);
    CHECK_EQ(rdmsr_fault(MSR_TSC_ADJUST, &adjust), fault);
    CHECK(rdtsc() - before < FAR_AHEAD / 2);
}

/* The local APIC's timer may stop in HLT: on Intel in deep C-states, unless CPUID 6.EAX[2]
 * (ARAT) is set; on AMD in C1E, once all cores halt, where MSR C001_0055h[28] is set. */
TEST(vpmu_quirks, c1e,
     "the APIC timer stands still in HLT where the quirk says so, and CPUID reports it")
{
    SKIP_WITHOUT_VPMU();
    lab_run(c1e, LAB_ANY);
    SKIP_BELOW_CPUS(2);
    test_run_on(0);
    sleeper = apic_id();
    go = 0;
    struct thread *thread = thread_create("waker", waker, NULL, cpu_set_one(1));
    if (CHECK(thread != NULL)) {
        lab_run(halted_alone, LAB_ANY);
        __atomic_store_n(&go, 1, __ATOMIC_RELEASE); /* had it been skipped */
        team_end(thread);
    }
    test_run_anywhere();
}
