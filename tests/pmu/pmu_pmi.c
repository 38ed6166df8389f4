/* SPDX-License-Identifier: MIT */
/* Conformance: the interrupt of an overflow: as a vector and as an NMI, masked, delayed, nested,
 * and where it hits. The code between the two WRMSRs is a sled of one-byte instructions, so that
 * the RIP found is a count. */
#include "tests/harness/lab.h"

#define SAFE "safe: no NMI"
#define WAIT_PAUSES 5000u
#define LOOKS 200u /* between two PAUSEs, each of which leaves a virtual machine */
#define REARMED 500u
#define ACCESSES 1000u /* at most, to find that no interrupt comes */
#define LONGEST 990u   /* events to an overflow in the sled */

static unsigned the_ctr; /* of the running test, for actions in handlers */

static void arm_counter(unsigned ctr, uint64_t period)
{
    the_ctr = ctr;
    pmu_program(ctr, lab_select(ctr, PMU_KERNEL | PMU_INTERRUPT),
                -period & pmu_mask(pmu_here(), ctr));
}

/* Iterations after the sled: for events that are fewer than instructions, and for interrupts that
 * are late. */
static uint64_t work_until_pmi(unsigned ctr) { return lab_iterations(ctr, LONGEST) + lab_late(1); }

static void run_sled(unsigned ctr)
{
    struct pmu_gate gate = pmu_gate(ctr);
    lab_measure(&gate, lab_sled, work_until_pmi(ctr));
}

/* An interrupt in flight may come a little after the counter has stopped. */
static void wait_for_pmi(const unsigned *count, unsigned wanted)
{
    for (unsigned i = 0;
         i < WAIT_PAUSES * LOOKS && __atomic_load_n(count, __ATOMIC_RELAXED) < wanted; i++)
        if (i % LOOKS == 0)
            pause();
}

/* So many overflows; where hosts raise interrupts twice, each time or at times, all of theirs. */
static void wait_for_overflows(const unsigned *count, unsigned before, unsigned overflows)
{
    struct lab_range wanted = lab_pmis(overflows);
    wait_for_pmi(count, before + (unsigned)wanted.low);
    if (wanted.low != wanted.high)
        lab_wait_quietly();
    CHECK_BECAUSE(*count - before, wanted.low, wanted.high, wanted.why);
}

/* Silicon's rule: Intel masks the entry when it delivers, AMD does not. A host does it or not, but
 * always: KVM on Intel since Linux 6.6, and from there to 6.8 on AMD, too. */
static void check_lvt_in_handler(void)
{
    CHECK_EQ(!!(lab_caught.lvt & APIC_LVT_MASKED), measured_here()->masks);
}

/* The first instruction that may be interrupted is the one after the event. */
static void check_skid(unsigned ctr, uint64_t period)
{
    uint64_t before = lab_before(), into_sled = lab_caught.rip - (uint64_t)lab_sled;
    uint64_t due = period - before;
    if (lab_event(ctr) != PMU_INSTRUCTIONS ||
        period < before) /* where enabling counts twice two events are ahead of the sled */
        return;
    const struct pmu_spread *late = &pmu_here()->measured.skid;
    uint64_t at = due + (uint64_t)late->low; /* measured.traps says whether it should be so late */
    if (vpmu_present() && pmu_stable(late) && at < LAB_SLED) {
        CHECK_EQ(into_sled, at);
        return;
    }
    bool inside = into_sled < LAB_SLED;
    if (inside)
        CHECK_BECAUSE(into_sled + 1, due + 1, LAB_SLED,
                      "place in the sled, from 1; not before the event");
    test_note("skid: %ld instructions%s", (int64_t)(into_sled - due),
              inside ? "" : " or more: after the sled");
}

LAB_EACH(pmu_pmi, each_counter,
         "overflow as a vector, after 2 to 990 events; skid [VP-67 VP-68 VP-69 VP-70 VP-71]")
{
    static const uint16_t periods[] = { 2, 3, 77, 500, 990 };
    SKIP_WITHOUT_EVENT(ctr);
    lab_catch();
    for (unsigned i = 0; i < ARRAY_SIZE(periods); i++) {
        unsigned before = lab_caught.pmis;
        apic_write_pmi_lvt(VECTOR_PMI);
        arm_counter(ctr, periods[i]);
        run_sled(ctr);
        wait_for_overflows(&lab_caught.pmis, before, 1);
        CHECK_EQ(pmu_take_overflow(), PMU_BIT(ctr));
        if (pmu_here()->msr.global_status)
            CHECK_EQ(lab_caught.status & PMU_BIT(ctr), PMU_BIT(ctr));
        check_lvt_in_handler();
        check_skid(ctr, periods[i]);
        pmu_clear(PMU_BIT(ctr));
    }
    CHECK_EQ(lab_caught.nmis, 0);
    lab_release();
}

LAB_EACH(pmu_nmi, each_counter, "overflow as NMI, with interrupts off [VP-68 VP-79]")
{
    SKIP_IF(boot_safe(), SAFE);
    SKIP_WITHOUT_EVENT(ctr);
    lab_catch();
    apic_write_pmi_lvt(APIC_LVT_NMI);
    CHECK_EQ(apic_read_pmi_lvt() & 0x107ff, APIC_LVT_NMI);
    arm_counter(ctr, 300);
    uint64_t flags = read_flags();
    cli(); /* an NMI does not ask */
    run_sled(ctr);
    wait_for_overflows(&lab_caught.nmis, 0, 1);
    write_flags(flags);
    CHECK_EQ(lab_caught.pmis, 0);
    check_lvt_in_handler();
    check_skid(ctr, 300);
    CHECK_EQ(pmu_take_overflow(), PMU_BIT(ctr));
    lab_release();
}

/* Masked: status, no interrupt, and none when the mask goes. */
LAB_EACH(pmu_masked, each_counter, "masked: status only, and nothing is kept for later [VP-68]")
{
    SKIP_WITHOUT_EVENT(ctr);
    lab_catch();
    apic_write_pmi_lvt(VECTOR_PMI | APIC_LVT_MASKED);
    arm_counter(ctr, 300);
    run_sled(ctr);
    CHECK_EQ(lab_caught.pmis, 0);
    apic_write_pmi_lvt(VECTOR_PMI);
    lab_wait_quietly();
    CHECK_EQ(lab_caught.pmis, 0);
    CHECK_EQ(pmu_take_overflow(), PMU_BIT(ctr));
    arm_counter(ctr, 300); /* and it works otherwise */
    run_sled(ctr);
    wait_for_overflows(&lab_caught.pmis, 0, 1);
    lab_release();
}

static unsigned overflows; /* that the counter was armed for */

/* A second interrupt for one overflow finds none. */
static void rearm_until(unsigned last)
{
    if (overflows >= last || !pmu_take_overflow())
        return;
    overflows++;
    pmu_write(the_ctr, -(uint64_t)REARMED & pmu_mask(pmu_here(), the_ctr));
}

static void rearm_counter(void) { rearm_until(3); }

static void rearm_and_unmask(void)
{
    apic_write_pmi_lvt(VECTOR_PMI);
    rearm_until(10);
}

/* `times` overflows, the first after a hundred events; the handler does `action`. */
static void overflow_times(unsigned ctr, void (*action)(void), unsigned times)
{
    lab_catch();
    lab_caught.action = action;
    overflows = 1;
    arm_counter(ctr, 100);
    struct pmu_gate gate = pmu_gate(ctr);
    lab_measure(&gate, lab_loop, lab_iterations(ctr, 100 + times * REARMED) + lab_late(times));
}

/* Where the entry is masked at delivery the next overflow is not heard until the handler unmasks.
 */
LAB_EACH(pmu_auto_mask, each_counter,
         "Intel masks at delivery, AMD does not; ten that the handler re-arms and unmasks all come "
         "[VP-69 VP-70 VP-71]")
{
    SKIP_WITHOUT_EVENT(ctr);
    overflow_times(ctr, rearm_counter, 3);
    bool masks = measured_here()->masks;
    wait_for_overflows(&lab_caught.pmis, 0, masks ? 1 : 3);
    CHECK_EQ(!!(apic_read_pmi_lvt() & APIC_LVT_MASKED), masks);
    lab_release();
    overflow_times(ctr, rearm_and_unmask, 10);
    wait_for_overflows(&lab_caught.pmis, 0, 10);
    CHECK_EQ(pmu_take_overflow(), PMU_BIT(ctr));
    lab_release();
}

/* A vector waits for IF and for the task priority, and comes once. */
LAB_EACH(pmu_delayed, each_counter, "waits for IF and for the priority, comes once [VP-68 VP-71]")
{
    SKIP_WITHOUT_EVENT(ctr);
    lab_catch();
    uint64_t flags = read_flags();
    cli();
    arm_counter(ctr, 300);
    run_sled(ctr);
    CHECK_EQ(lab_caught.pmis, 0);
    write_flags(flags);
    wait_for_pmi(&lab_caught.pmis, 1);
    CHECK_EQ(lab_caught.pmis, 1);
    CHECK_EQ(pmu_take_overflow(), PMU_BIT(ctr));

    apic_write_pmi_lvt(VECTOR_PMI);
    KIRQL old = irql_raise(PROFILE_LEVEL);
    arm_counter(ctr, 300);
    run_sled(ctr);
    CHECK_EQ(lab_caught.pmis, 1);
    irql_lower(old);
    wait_for_pmi(&lab_caught.pmis, 2);
    CHECK_EQ(lab_caught.pmis, 2);
    lab_release();
}

static unsigned depth, deepest;

/* In the first handler, let the second in: five hundred instructions later it must come, before
 * this one ends. */
static void overflow_inside(void)
{
    depth++;
    deepest = depth > deepest ? depth : deepest;
    if (lab_caught.pmis == 1 && depth == 1) { /* not in an NMI that comes meanwhile */
        pmu_take_overflow();
        apic_write_pmi_lvt(VECTOR_PMI);
        apic_eoi(); /* the handler's own finds nothing in service */
        pmu_write(the_ctr, -(uint64_t)REARMED & pmu_mask(pmu_here(), the_ctr));
        sti();
        /* An iteration has two instructions or more. */
        uint64_t iterations = lab_iterations(the_ctr, REARMED) + lab_late(1);
        for (uint64_t i = 0; i < iterations && lab_caught.pmis < lab_pmis(2).low;
             i++) /* each PAUSE hands the machine to another CPU */
            pause();
        cli();
    }
    depth--;
}

LAB_EACH(pmu_nested, each_counter, "an overflow in the handler nests if that lets it [VP-71]")
{
    SKIP_WITHOUT_EVENT(ctr);
    lab_catch();
    depth = deepest = 0;
    lab_caught.action = overflow_inside;
    arm_counter(ctr, 100);
    run_sled(ctr);
    wait_for_overflows(&lab_caught.pmis, 0, 2);
    CHECK_EQ(lab_caught.nmis, 0);
    CHECK_EQ(deepest, 2);
    lab_release();
}

/* An overflow inside an NMI handler, as NMI: held until IRET, then delivered. */
static unsigned nmis_inside;

static void overflow_in_nmi(void)
{
    if (lab_caught.nmis > 1)
        return;
    pmu_take_overflow();
    apic_write_pmi_lvt(APIC_LVT_NMI);
    pmu_write(the_ctr, -(uint64_t)REARMED & pmu_mask(pmu_here(), the_ctr));
    lab_loop(lab_iterations(the_ctr, REARMED) + lab_late(1));
    nmis_inside = lab_caught.nmis;
}

LAB_EACH(pmu_nmi_held, each_counter, "an NMI in an NMI is held until IRET [VP-78]")
{
    SKIP_IF(boot_safe(), SAFE);
    SKIP_WITHOUT_EVENT(ctr);
    lab_catch();
    apic_write_pmi_lvt(APIC_LVT_NMI);
    lab_caught.action = overflow_in_nmi;
    arm_counter(ctr, 100);
    run_sled(ctr);
    wait_for_pmi(&lab_caught.nmis, 2);
    CHECK_EQ(nmis_inside, 1);
    CHECK_EQ(lab_caught.nmis, 2);
    lab_release();
}

/* Both run over the sled. One WRMSR starts both where there is global control; else one has a head
 * start. */
static void run_both(unsigned ctr, unsigned other)
{
    if (pmu_here()->msr.global_control) {
        struct pmu_gate gate = { pmu_here()->msr.global_control, PMU_BIT(ctr) | PMU_BIT(other), 0 };
        lab_measure(&gate, lab_sled, work_until_pmi(ctr) + work_until_pmi(other));
        return;
    }
    pmu_start(PMU_BIT(other));
    run_sled(ctr);
    pmu_stop(PMU_BIT(other));
}

/* The head start in events: how much later `ctr` interrupts than `other` does, each alone and with
 * the same period. Where interrupts are late, which differs each time, nobody can tell. */
static uint64_t head_start(unsigned ctr, unsigned other)
{
    uint64_t at[2] = { 0 };
    if (pmu_here()->measured.skid.high)
        return 0;
    for (unsigned i = 0; i < 2 && !pmu_here()->msr.global_control; i++) {
        lab_catch();
        pmu_program(other, lab_select(other, PMU_KERNEL | (i ? 0 : PMU_INTERRUPT)),
                    -UINT64_C(500) & pmu_mask(pmu_here(), other));
        pmu_program(ctr, lab_select(ctr, PMU_KERNEL | (i ? PMU_INTERRUPT : 0)),
                    -UINT64_C(500) & pmu_mask(pmu_here(), ctr));
        run_both(ctr, other);
        wait_for_pmi(&lab_caught.pmis, 1);
        at[i] = lab_caught.rip;
        lab_release();
        pmu_clear(PMU_BIT(ctr) | PMU_BIT(other));
    }
    return at[1] - at[0];
}

/* Two counters overflow at the same instruction: one interrupt or two, but both are reported, and
 * none is lost. */
LAB_EACH(pmu_two_pmis, each_counter, "overflows in one instruction with each other counter [VP-67]")
{
    SKIP_WITHOUT_EVENT(ctr);
    /* Each pair once, or of few counters, and if `long`, from both sides. */
    bool few = pmu_here()->gp_reported < 4;
    for_each_bit(other, pmu_here()->counters & ~PMU_BIT(ctr)) {
        bool once = (ctr + other) % 2 ? ctr < other : ctr > other;
        if (lab_event(other) == PMU_EVENT_COUNT || !(once || few || test_long()))
            continue;
        uint64_t ahead = head_start(ctr, other);
        lab_catch();
        arm_counter(other, 200 + ahead);
        arm_counter(ctr, 200);
        run_both(ctr, other);
        wait_for_pmi(&lab_caught.pmis, 1);
        CHECK_BECAUSE(lab_caught.pmis, 1, lab_pmis(2).high,
                      "two close together may be taken at once");
        if (lab_event(other) == lab_event(ctr) &&
            !pmu_here()->measured.skid.high) /* else it may be the other's */
            check_skid(ctr, 200);
        CHECK_EQ(pmu_take_overflow(), PMU_BIT(ctr) | PMU_BIT(other));
        lab_release();
        pmu_clear(PMU_BIT(ctr) | PMU_BIT(other));
    }
}

/* Where CPUs wait without HLT, the others run in each PAUSE on a virtual PMU. */
static uint64_t pauses_ns(unsigned pauses)
{
    uint64_t start = clock_ns();
    for (unsigned i = 0; i < pauses; i++)
        pause();
    return clock_ns() - start;
}

/* What boots do to find a PMU whose interrupts do not come: with the entry masked, that is so. */
TEST(pmu_pmi_lost, told,
     "a PMU whose interrupt does not come is found out within 10 ms, on every CPU [VP-68 C-1a "
     "slow]")
{
    SKIP_WITHOUT_PMU();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        test_run_on(cpu);
        uint32_t lvt = apic_read_pmi_lvt();
        apic_write_pmi_lvt(lvt | APIC_LVT_MASKED);
        /* The time that all of the self-test has, and for what it waits: 2,000 PAUSEs. The virtual
         * PMU executes pages slowly that may have string instructions: chance of each build. */
        uint64_t most = 10000000 + rules_access_ns(ACCESSES) + pauses_ns(3000);
        most += vpmu_present() ? 10000000 : 0;
        uint64_t start = clock_ns();
        CHECK(!hal_pmi_prove());
        CHECK_RANGE(clock_ns() - start, 1, most);
        apic_write_pmi_lvt(lvt);
        CHECK(hal_pmi_prove());
    }
}
