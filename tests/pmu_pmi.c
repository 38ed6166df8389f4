/* SPDX-License-Identifier: MIT */
/* Conformance: the interrupt of an overflow: as a vector and as an NMI, masked, delayed, nested, and where it hits.
 * The code between the two WRMSRs is a sled of one-byte instructions, so that the RIP found is a count. */
#include "hal/apic.h"
#include "hal/hal.h"
#include "kernel/cpu.h"
#include "kernel/irql.h"
#include "kernel/sched.h"
#include "kernel/main.h"
#include "kernel/trap.h"
#include "tests/lab.h"
#include "tests/vpmu.h"

#define NO_EVENT "no event that must happen on this counter"
#define SAFE "safe: no NMI"
#define WAIT_PAUSES 100000u
#define SHORT_SKID 100u   /* turns after the sled: the virtual PMU has no skid */
#define LONG_SKID 20000u  /* rr allows Zen 10,000 instructions */
#define REARMED 500u

static unsigned the_ctr; /* of the running test, for actions in handlers */

static void arm(unsigned ctr, uint64_t period)
{
    the_ctr = ctr;
    pmu_program(ctr, lab_select(ctr, PMU_KERNEL | PMU_INTERRUPT), -period & pmu_mask(ctr));
}

static void run_sled(unsigned ctr)
{
    struct pmu_gate gate = pmu_gate(ctr);
    lab_measure(&gate, lab_sled, vpmu_present() ? SHORT_SKID : LONG_SKID);
}

/* An interrupt in flight may come a little after the counter has stopped. */
static void wait(const unsigned *count, unsigned wanted)
{
    for (unsigned i = 0; i < WAIT_PAUSES && __atomic_load_n(count, __ATOMIC_RELAXED) < wanted; i++)
        pause();
}

static void check_lvt_in_handler(void)
{
    CHECK_EQ(!!(lab_caught.lvt & APIC_LVT_MASKED), lab_is_intel());
}

/* The first instruction that may be interrupted is the one after the event. */
static void check_skid(unsigned ctr, uint64_t period)
{
    uint64_t due = period - LAB_BEFORE, into_sled = lab_caught.rip - (uint64_t)lab_sled;
    if (lab_event(ctr) != PMU_INSTRUCTIONS)
        return;
    if (vpmu_present()) {
        CHECK_EQ(into_sled, due);
        return;
    }
    bool inside = into_sled < LAB_SLED;
    if (inside)
        CHECK_BECAUSE(into_sled, due, LAB_SLED, "instructions into the sled; not before the event");
    test_note("skid: %ld instructions%s", (int64_t)(into_sled - due), inside ? "" : " or more: behind the sled");
}

static void as_vector(unsigned ctr)
{
    static const uint16_t periods[] = { 2, 3, 77, 500, 990 };
    if (lab_event(ctr) == PMU_EVENT_COUNT)
        SKIP(NO_EVENT);
    lab_catch();
    for (unsigned i = 0; i < sizeof periods / sizeof *periods; i++) {
        unsigned before = lab_caught.pmis;
        apic_write_pmi_lvt(VECTOR_PMI);
        arm(ctr, periods[i]);
        run_sled(ctr);
        wait(&lab_caught.pmis, before + 1);
        CHECK_EQ(lab_caught.pmis, before + 1);
        CHECK_EQ(pmu_take_overflow(), PMU_BIT(ctr));
        if (pmu_caps.msr.global_status)
            CHECK_EQ(lab_caught.status & PMU_BIT(ctr), PMU_BIT(ctr));
        check_lvt_in_handler();
        check_skid(ctr, periods[i]);
        pmu_clear(PMU_BIT(ctr));
    }
    CHECK_EQ(lab_caught.nmis, 0);
    lab_release();
}

static void as_nmi(unsigned ctr)
{
    if (kernel_safe())
        SKIP(SAFE);
    if (lab_event(ctr) == PMU_EVENT_COUNT)
        SKIP(NO_EVENT);
    lab_catch();
    apic_write_pmi_lvt(APIC_LVT_NMI);
    CHECK_EQ(apic_read_pmi_lvt() & 0x107ff, APIC_LVT_NMI);
    arm(ctr, 300);
    uint64_t flags = read_flags();
    cli(); /* an NMI does not ask */
    run_sled(ctr);
    wait(&lab_caught.nmis, 1);
    write_flags(flags);
    CHECK_EQ(lab_caught.nmis, 1);
    CHECK_EQ(lab_caught.pmis, 0);
    check_lvt_in_handler();
    check_skid(ctr, 300);
    CHECK_EQ(pmu_take_overflow(), PMU_BIT(ctr));
    lab_release();
}

/* Masked: status, no interrupt, and none when the mask goes. */
static void masked(unsigned ctr)
{
    if (lab_event(ctr) == PMU_EVENT_COUNT)
        SKIP(NO_EVENT);
    lab_catch();
    apic_write_pmi_lvt(VECTOR_PMI | APIC_LVT_MASKED);
    arm(ctr, 300);
    run_sled(ctr);
    CHECK_EQ(lab_caught.pmis, 0);
    apic_write_pmi_lvt(VECTOR_PMI);
    for (unsigned i = 0; i < 1000; i++)
        pause();
    CHECK_EQ(lab_caught.pmis, 0);
    CHECK_EQ(pmu_take_overflow(), PMU_BIT(ctr));
    arm(ctr, 300); /* and it works otherwise */
    run_sled(ctr);
    wait(&lab_caught.pmis, 1);
    CHECK_EQ(lab_caught.pmis, 1);
    lab_release();
}

static void rearm(void)
{
    if (lab_caught.pmis >= 3)
        return;
    pmu_take_overflow();
    pmu_write(the_ctr, -(uint64_t)REARMED & pmu_mask(the_ctr));
}

/* Intel masks the entry when it delivers: the next overflow is not heard until the handler unmasks. AMD does not. */
static void second_before_unmask(unsigned ctr)
{
    if (lab_event(ctr) == PMU_EVENT_COUNT)
        SKIP(NO_EVENT);
    lab_catch();
    lab_caught.action = rearm;
    arm(ctr, 100);
    struct pmu_gate gate = pmu_gate(ctr);
    lab_measure(&gate, lab_loop, LONG_SKID / 8);
    wait(&lab_caught.pmis, lab_is_intel() ? 1 : 3);
    CHECK_EQ(lab_caught.pmis, lab_is_intel() ? 1 : 3);
    CHECK_EQ(!!(apic_read_pmi_lvt() & APIC_LVT_MASKED), lab_is_intel());
    lab_release();
}

static void rearm_and_unmask(void)
{
    apic_write_pmi_lvt(VECTOR_PMI);
    if (lab_caught.pmis >= 10)
        return;
    pmu_take_overflow();
    pmu_write(the_ctr, -(uint64_t)REARMED & pmu_mask(the_ctr));
}

/* What a sampling driver does: ten in a row. */
static void ten_in_a_row(unsigned ctr)
{
    if (lab_event(ctr) == PMU_EVENT_COUNT)
        SKIP(NO_EVENT);
    lab_catch();
    lab_caught.action = rearm_and_unmask;
    arm(ctr, 100);
    struct pmu_gate gate = pmu_gate(ctr);
    lab_measure(&gate, lab_loop, LONG_SKID / 4);
    wait(&lab_caught.pmis, 10);
    CHECK_EQ(lab_caught.pmis, 10);
    CHECK_EQ(pmu_take_overflow(), PMU_BIT(ctr));
    lab_release();
}

/* A vector waits for IF and for the task priority, and comes once. */
static void delayed(unsigned ctr)
{
    if (lab_event(ctr) == PMU_EVENT_COUNT)
        SKIP(NO_EVENT);
    lab_catch();
    uint64_t flags = read_flags();
    cli();
    arm(ctr, 300);
    run_sled(ctr);
    CHECK_EQ(lab_caught.pmis, 0);
    write_flags(flags);
    wait(&lab_caught.pmis, 1);
    CHECK_EQ(lab_caught.pmis, 1);
    CHECK_EQ(pmu_take_overflow(), PMU_BIT(ctr));

    apic_write_pmi_lvt(VECTOR_PMI);
    KIRQL old = irql_raise(PROFILE_LEVEL);
    arm(ctr, 300);
    run_sled(ctr);
    CHECK_EQ(lab_caught.pmis, 1);
    irql_lower(old);
    wait(&lab_caught.pmis, 2);
    CHECK_EQ(lab_caught.pmis, 2);
    lab_release();
}

static unsigned depth, deepest;

/* In the first handler, let the second in: five hundred instructions later it must come, before this one ends. */
static void overflow_inside(void)
{
    depth++;
    deepest = depth > deepest ? depth : deepest;
    if (lab_caught.pmis == 1) {
        pmu_take_overflow();
        apic_write_pmi_lvt(VECTOR_PMI);
        apic_eoi(); /* the handler's own finds nothing in service */
        pmu_write(the_ctr, -(uint64_t)REARMED & pmu_mask(the_ctr));
        sti();
        for (unsigned i = 0; i < REARMED; i++) /* each PAUSE hands the machine to another CPU */
            pause();
        cli();
    }
    depth--;
}

static void nested(unsigned ctr)
{
    if (lab_event(ctr) == PMU_EVENT_COUNT)
        SKIP(NO_EVENT);
    lab_catch();
    depth = deepest = 0;
    lab_caught.action = overflow_inside;
    arm(ctr, 100);
    run_sled(ctr);
    CHECK_EQ(lab_caught.pmis, 2);
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
    pmu_write(the_ctr, -UINT64_C(500) & pmu_mask(the_ctr));
    for (unsigned i = 0; i < 2000; i++)
        asm volatile("");
    nmis_inside = lab_caught.nmis;
}

static void nmi_in_nmi(unsigned ctr)
{
    if (kernel_safe())
        SKIP(SAFE);
    if (lab_event(ctr) == PMU_EVENT_COUNT)
        SKIP(NO_EVENT);
    lab_catch();
    apic_write_pmi_lvt(APIC_LVT_NMI);
    lab_caught.action = overflow_in_nmi;
    arm(ctr, 100);
    run_sled(ctr);
    wait(&lab_caught.nmis, 2);
    CHECK_EQ(nmis_inside, 1);
    CHECK_EQ(lab_caught.nmis, 2);
    lab_release();
}

/* Both run over the sled. One WRMSR starts both where there is global control; else one has a head start. */
static void run_both(unsigned ctr, unsigned other)
{
    if (pmu_caps.msr.global_control) {
        struct pmu_gate gate = { pmu_caps.msr.global_control, PMU_BIT(ctr) | PMU_BIT(other), 0 };
        lab_measure(&gate, lab_sled, vpmu_present() ? SHORT_SKID : LONG_SKID);
        return;
    }
    pmu_start(PMU_BIT(other));
    run_sled(ctr);
    pmu_stop(PMU_BIT(other));
}

/* The head start in events: how much later `ctr` interrupts than `other` does, each alone and with the same period. */
static uint64_t head_start(unsigned ctr, unsigned other)
{
    uint64_t at[2] = { 0 };
    for (unsigned i = 0; i < 2 && !pmu_caps.msr.global_control; i++) {
        lab_catch();
        pmu_program(other, lab_select(other, PMU_KERNEL | (i ? 0 : PMU_INTERRUPT)), -UINT64_C(500) & pmu_mask(other));
        pmu_program(ctr, lab_select(ctr, PMU_KERNEL | (i ? PMU_INTERRUPT : 0)), -UINT64_C(500) & pmu_mask(ctr));
        run_both(ctr, other);
        wait(&lab_caught.pmis, 1);
        at[i] = lab_caught.rip;
        lab_release();
        pmu_clear(PMU_BIT(ctr) | PMU_BIT(other));
    }
    return at[1] - at[0];
}

/* Two counters overflow at the same instruction: one interrupt or two, but both are told, and none is lost. */
static void two_at_once(unsigned ctr)
{
    if (lab_event(ctr) == PMU_EVENT_COUNT)
        SKIP(NO_EVENT);
    for (uint64_t rest = pmu_caps.counters & ~PMU_BIT(ctr); rest; rest &= rest - 1) {
        unsigned other = (unsigned)__builtin_ctzll(rest);
        if (lab_event(other) == PMU_EVENT_COUNT)
            continue;
        uint64_t ahead = head_start(ctr, other);
        lab_catch();
        arm(other, 200 + ahead);
        arm(ctr, 200);
        run_both(ctr, other);
        wait(&lab_caught.pmis, 1);
        CHECK_BECAUSE(lab_caught.pmis, 1, 2, "two close together may be taken at once");
        if (lab_event(other) == lab_event(ctr))
            check_skid(ctr, 200);
        CHECK_EQ(pmu_take_overflow(), PMU_BIT(ctr) | PMU_BIT(other));
        lab_release();
        pmu_clear(PMU_BIT(ctr) | PMU_BIT(other));
    }
}

#define VECTOR(name, ctr) \
    LAB_TEST(pmu_pmi, name, ctr, as_vector, "overflow as a vector, after 2 to 990 events; skid [VP-67 VP-68 VP-69 VP-70 VP-71 C-1.2 C-2a.9 C-2g]")
#define NMI(name, ctr) LAB_TEST(pmu_nmi, name, ctr, as_nmi, "overflow as NMI, with interrupts off [VP-68 VP-79 C-1.2]")
#define MASKED(name, ctr) LAB_TEST(pmu_masked, name, ctr, masked, "masked: status only, and nothing is kept for later [VP-68]")
#define SECOND(name, ctr) \
    LAB_TEST(pmu_auto_mask, name, ctr, second_before_unmask, "Intel masks at delivery, AMD does not [VP-69 VP-70 C-2a.9]")
#define TEN(name, ctr) LAB_TEST(pmu_ten_pmis, name, ctr, ten_in_a_row, "ten overflows re-armed by the handler [VP-71 C-2g]")
#define DELAYED(name, ctr) LAB_TEST(pmu_delayed, name, ctr, delayed, "waits for IF and for the priority, comes once [VP-68]")
#define NESTED(name, ctr) LAB_TEST(pmu_nested, name, ctr, nested, "an overflow in the handler nests if that lets it [VP-71]")
#define NMI_NMI(name, ctr) LAB_TEST(pmu_nmi_held, name, ctr, nmi_in_nmi, "an NMI in an NMI is held until IRET [VP-78]")
#define BOTH(name, ctr) LAB_TEST(pmu_two_pmis, name, ctr, two_at_once, "overflow in the same instruction as each other [VP-67]")

LAB_EACH(VECTOR)
LAB_EACH(NMI)
LAB_EACH(MASKED)
LAB_EACH(SECOND)
LAB_EACH(TEN)
LAB_EACH(DELAYED)
LAB_EACH(NESTED)
LAB_EACH(NMI_NMI)
LAB_EACH(BOTH)

/* What boots do to find a PMU whose interrupts do not come: with the entry masked, that is so. */
TEST(pmu_pmi_lost, told, "a PMU whose interrupt does not come is found out within 10 ms, on every CPU [VP-68 C-1a]")
{
    SKIP_WITHOUT_PMU();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        test_run_on(cpu);
        apic_write_pmi_lvt(VECTOR_PMI | APIC_LVT_MASKED);
        uint64_t start = sched_time_ns();
        CHECK(!hal_pmi_prove());
        CHECK_RANGE(sched_time_ns() - start, 1, 10000000); /* the time that all of the self-test has */
        apic_write_pmi_lvt(VECTOR_PMI);
        CHECK(hal_pmi_prove());
    }
    test_run_anywhere();
}
