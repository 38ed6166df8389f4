/* SPDX-License-Identifier: MIT */
/* Conformance: freeze on PMI (DEBUGCTL[12]), in the form of versions 2 and 3, which clears global
 * control, and in that of 4 and later, which sets CTR_FRZ; and counters across HLT. */
#include "tests/harness/lab.h"

#define DEBUGCTL 0x1d9u
#define FREEZE (1u << 12)
#define FROZEN (UINT64_C(1) << 59)
#define CHANGED (UINT64_C(1) << 63) /* some processors set it with PMIs */
#define PERIOD 200u
#define LAG 2000u /* events: a handler's way to its first look, and back */

/* NULL, or why not. */
static const char *does_not_freeze(unsigned ctr)
{
    if (!lab_is_intel() || pmu_here()->version < 2 || lab_event(ctr) == PMU_EVENT_COUNT)
        return "counters do not freeze on PMI";
    bool refused = wrmsr_fault(DEBUGCTL, FREEZE), taken = lab_rdmsr(DEBUGCTL) & FREEZE;
    wrmsr_fault(DEBUGCTL, 0);
    return taken     ? NULL
           : refused ? "counters do not freeze on PMI"
                     : "DEBUGCTL ignores the bit that freezes"; /* a hypervisor's may */
}

static bool freezes_at_once(void) { return !measured_here()->lag; }

static uint64_t in_handler; /* the counter when the handler looked first */
static unsigned the_ctr;

static void read_in_handler(void) { in_handler = rdpmc(pmu_rdpmc_index(the_ctr)); }

/* Runs into an overflow, with freezing or without; the value when all is over. */
static uint64_t overflow_frozen(unsigned ctr, bool freeze)
{
    the_ctr = ctr;
    lab_catch();
    lab_caught.action = read_in_handler;
    lab_wrmsr(DEBUGCTL, freeze ? FREEZE : 0);
    pmu_program(ctr, lab_select(ctr, PMU_KERNEL | PMU_INTERRUPT),
                -(uint64_t)PERIOD & pmu_mask(pmu_here(), ctr));
    struct pmu_gate gate = pmu_gate(ctr);
    lab_measure(&gate, lab_loop, 20 * PERIOD);
    for (unsigned i = 0; i < 1000 && !lab_caught.pmis; i++)
        pause();
    CHECK_EQ(lab_caught.pmis, 1);
    lab_wrmsr(DEBUGCTL, 0);
    lab_release();
    return pmu_read(ctr);
}

LAB_EACH(pmu_freeze, each_counter, "freeze on PMI stops it before the handler looks [VP-75 VP-76]")
{
    const char *why_not = does_not_freeze(ctr);
    SKIP_IF(why_not, why_not);
    uint64_t free_running = overflow_frozen(ctr, false);
    CHECK_BECAUSE(free_running, in_handler + 1, PERIOD * 10000, "not frozen it goes on");
    if (lab_event(ctr) == PMU_INSTRUCTIONS)
        CHECK_BECAUSE(free_running, 39 * PERIOD, PERIOD * 10000,
                      "the rest of the loop and the handler");
    CHECK_EQ(pmu_take_overflow(), PMU_BIT(ctr));
    pmu_clear(PMU_BIT(ctr));

    uint64_t frozen = overflow_frozen(ctr, true);
    /* The manual's rule: it stands still from before the handler looked. Silicon's: or soon after.
     */
    CHECK_BECAUSE(frozen, in_handler, in_handler + (freezes_at_once() ? 0 : LAG),
                  "Linux gave freezing up as not reliable");
    CHECK(frozen < PERIOD * 10); /* the skid: some events after the overflow */
    bool streamlined = pmu_here()->version >= 4;
    uint64_t status = lab_rdmsr(pmu_here()->msr.global_status) & ~CHANGED;
    CHECK_EQ(status, PMU_BIT(ctr) | (streamlined ? FROZEN : 0));
    if (freezes_at_once())
        CHECK_EQ(lab_caught.status & ~CHANGED, status);
    if (freezes_at_once() || streamlined)
        CHECK_EQ(lab_caught.control, streamlined ? PMU_BIT(ctr) : 0);
    lab_wrmsr(pmu_here()->msr.global_clear,
              lab_rdmsr(pmu_here()->msr.global_status) & pmu_here()->clears);
    CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_status), 0);
    CHECK_BECAUSE(lab_count(ctr, lab_select(ctr, PMU_KERNEL), 0, lab_loop, PERIOD), PERIOD / 16,
                  PERIOD * 10000, "it counts again");
}

/* What the streamlined handler does: clearing CTR_FRZ is all that lets counters go on. */
/* Legacy: every counter stops, not only the one that overflowed. */
LAB_EACH(pmu_freeze_all, each_counter, "its PMI freezes all the others [VP-75 VP-76]")
{
    const char *why_not = does_not_freeze(ctr);
    SKIP_IF(why_not, why_not);
    if (pmu_here()->measured.at_once < pmu_here()->measured.wanted)
        SKIP("the host has some of the counters");
    uint64_t others = pmu_here()->counters & ~PMU_BIT(ctr);
    lab_catch();
    lab_wrmsr(DEBUGCTL, FREEZE);
    for_each_bit(other, others) {
        pmu_program(other, lab_select(other, PMU_KERNEL), 0);
    }
    pmu_program(ctr, lab_select(ctr, PMU_KERNEL | PMU_INTERRUPT),
                -(uint64_t)PERIOD & pmu_mask(pmu_here(), ctr));
    struct pmu_gate gate = { pmu_here()->msr.global_control, pmu_here()->counters, 0 };
    lab_measure(&gate, lab_loop, 20 * PERIOD);
    CHECK_EQ(lab_caught.pmis, 1);
    for_each_bit(other, others) {
        if (lab_event(other) == PMU_INSTRUCTIONS && lab_event(ctr) == PMU_INSTRUCTIONS)
            CHECK_BECAUSE(pmu_read(other), PERIOD, 39 * PERIOD,
                          "stopped with the other, long before the loop's end");
    }
    lab_wrmsr(DEBUGCTL, 0);
    lab_release();
}

/* Halted time is not counted: over five ticks the counter sees the handlers, and the clock much
 * more. */
LAB_EACH(pmu_halt, each_counter, "does not count while the processor is halted [VP-64]")
{
    SKIP_WITHOUT_EVENT(ctr);
    SKIP_IF(cpu_current()->halt_stops_timer, "HLT may stop the timer that ends it");
    pmu_program(ctr, lab_select(ctr, PMU_KERNEL), 0);
    struct pmu_gate gate = pmu_gate(ctr);
    irql_lower(DISPATCH_LEVEL); /* ticks come, switches do not */
    uint64_t start = rdtsc();
    lab_measure(&gate, lab_halt, 5);
    uint64_t clock = rdtsc() - start, found = pmu_read(ctr);
    irql_raise(IPI_LEVEL);
    CHECK_BECAUSE(found, 5 * 3, clock / 16,
                  "five times STI, HLT and a handler, far less than the time between");
}
