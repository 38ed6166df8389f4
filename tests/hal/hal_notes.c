/* SPDX-License-Identifier: MIT */
/* What NMIs of counters note for the interrupt that delivers it later. */
#include "hal/interrupt.h"
#include "tests/harness/lab.h"

#define KEPT 64u
#define OVERFLOWS (KEPT + 2)
#define PERIOD 100u
#define ITERATIONS 5000u /* more than any machine is late */

/* An overflow on this CPU, at PROFILE_LEVEL; the NMI comes by itself or from here. */
static void overflow_at(unsigned ctr, uint64_t rip)
{
    pmu_program(ctr, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL | PMU_INTERRUPT),
                -(uint64_t)PERIOD & pmu_mask(pmu_here(), ctr));
    pmu_start(PMU_BIT(ctr));
    lab_loop(ITERATIONS);
    pmu_stop(PMU_BIT(ctr));
    hal_pmi_nmi(rip, 0);
}

TEST(hal_notes, full,
     "while samples by NMIs cannot be delivered the first 64 are kept, in their order, and no "
     "other [slow]")
{
    unsigned ctr, kept = 0, wrong = 0;
    uint64_t rip, cs, counters;
    SKIP_WITHOUT_PMU();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_KERNEL, &ctr));
    test_run_on(0);
    bool by_nmi = pmi_by_nmi;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_stop(PMU_BIT(ctr));
    pmi_by_nmi = true;
    for (unsigned i = 0; i < OVERFLOWS; i++)
        overflow_at(ctr, i);
    for (; kept <= OVERFLOWS && hal_pmi_noted(&rip, &cs, &counters); kept++)
        wrong += counters != PMU_BIT(ctr) || (!by_nmi && rip != kept);
    pmi_by_nmi = by_nmi;
    irql_lower(old);
    CHECK_EQ(kept, KEPT);
    CHECK_EQ(wrong, 0);
    test_run_anywhere();
    counting_stop();
}

TEST(hal_notes, chosen, "interrupts of counters are NMIs by pmi=nmi, which safe ignores")
{
    SKIP_WITHOUT_PMU();
    bool nmi = boot_flag("pmi=nmi") && !boot_safe();
    CHECK_EQ(hal_pmi_is_nmi(), nmi);
    CHECK_EQ(apic_read_pmi_lvt() & 0x7ff, nmi ? APIC_LVT_NMI : APIC_PMI_VECTOR);
}
