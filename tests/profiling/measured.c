/* SPDX-License-Identifier: MIT */
/* What was measured at boot is what the virtual PMU was set to do; on other machines, that it can
 * be. */
#include "pmu/virt/quirk.h"
#include "tests/harness/lab.h"

#define LITTLE 100000 /* instructions: what other quirks add to the lag */

static void check_spread(const struct pmu_spread *s, int64_t wanted)
{
    CHECK_RANGE(s->tries, 4, 1000); /* fewer show no spread */
    CHECK_EQ(s->low, wanted);
    CHECK_EQ(s->high, wanted);
}

TEST(measured, traps,
     "what traps add to ring 3's counts of instructions and branches is measured correctly on "
     "each kind of CPU")
{
    SKIP_WITHOUT_PMU();
    SKIP_WITHOUT_VPMU();
    int64_t each = (int64_t)vpmu_quirk("irq3"), exit = (int64_t)vpmu_quirk("vmrun"),
            around = (int64_t)vpmu_quirk_second("skid");
    /* With wrap0 a counter at 0 has not overflowed until the next instruction. */
    int64_t skid = (int64_t)(vpmu_quirk("skid") + vpmu_quirk("wrap0"));
    bool stops = vpmu_quirk("throttle") && vpmu_quirk("throttle") <= 3 && !vpmu_quirk("exitcost") &&
                 !vpmu_quirk("step"); /* overflows come fast enough */
    EACH_KIND(cpu) {
        const struct pmu_measured *m = &pmu_of(cpu)->measured;
        for (unsigned e = 0; e < PMU_RETIRED; e++) {
            check_spread(&m->quiet[e], 0);
            check_spread(&m->trap[PMU_TRAP_INTERRUPT][e],
                         each + exit); /* an interrupt is an exit by itself */
            check_spread(&m->trap[PMU_TRAP_EXCEPTION][e], each);
        }
        if (!boot_safe())
            check_spread(&m->trap[PMU_TRAP_NMI][0], each);
        CHECK_EQ(m->traps_add, each || exit);
        if (m->skid.tries) {
            CHECK(m->skid.low >= skid - around);
            CHECK(m->skid.high <= skid + around);
        }
        /* An entry that masks itself raises one; with one too few here pmu_pmi gets too many. */
        CHECK(!m->pmis.tries || pmu_stable(&m->pmis));
        CHECK(m->pmis.high <= (vpmu_quirk("twice") ? 2 : 1));
        if (stops && m->trap[PMU_TRAP_INTERRUPT][0].tries)
            CHECK(m->lost > 0);
    }
}

TEST(measured, exits,
     "what an intercepted instruction counts, and what the enabling WRMSR counts, is measured "
     "correctly")
{
    SKIP_WITHOUT_PMU();
    SKIP_WITHOUT_VPMU();
    int64_t once = 1 - (int64_t)vpmu_quirk("noemul"), vmrun = (int64_t)vpmu_quirk("vmrun"),
            enabling = once + (int64_t)vpmu_quirk("wrmsr");
    EACH_KIND(cpu) {
        const struct pmu_measured *m = &pmu_of(cpu)->measured;
        check_spread(&m->enabling, (enabling > 0 ? enabling : 0) + vmrun);
        check_spread(&m->exit, once + vmrun);
        check_spread(&m->exit_at_255, once && vpmu_quirk("emulraw"));
    }
}

TEST(measured, at_once,
     "the number of counters that count at the same time is measured, also where the host lends "
     "fewer")
{
    SKIP_WITHOUT_PMU();
    SKIP_WITHOUT_VPMU();
    uint64_t lent = vpmu_quirk("contend");
    EACH_KIND(cpu) {
        const struct pmu_measured *m = &pmu_of(cpu)->measured;
        CHECK_BECAUSE(m->wanted, 1, 64, "each counter with an event that must happen");
        CHECK_EQ(m->at_once, lent && lent < m->wanted ? lent : m->wanted);
    }
}

TEST(measured, cycles, "cycles per instruction and per bus cycle are measured correctly")
{
    SKIP_WITHOUT_PMU();
    SKIP_WITHOUT_VPMU();
    uint64_t ipc = vpmu_quirk("ipc") ? vpmu_quirk("ipc") : 1,
             ref = vpmu_quirk("ref") ? vpmu_quirk("ref") : 1;
    EACH_KIND(cpu) {
        const struct pmu_measured *m = &pmu_of(cpu)->measured;
        if (!pmu_counters_for(pmu_of(cpu), PMU_CYCLES))
            continue;
        CHECK_BECAUSE(m->cycles.low, 999 / ipc, 1001 / ipc + 2,
                      "the enabling instruction and a cycle at the end");
        CHECK_BECAUSE(m->cycles.high, 999 / ipc, 1001 / ipc + 2,
                      "the enabling instruction and a cycle at the end");
        if (pmu_counters_for(pmu_of(cpu), PMU_BUS_CYCLES))
            CHECK_BECAUSE(m->bus_cycle.low, ref * 990, ref * 1010,
                          "a tick at the end may not be over");
    }
}

/* What several quirks change together is left to a machine with one of them. */
static void check_for_tests(unsigned)
{
    const struct test_measured *m = measured_here();
    uint64_t lag = vpmu_quirk("freeze-lag"), p = vpmu_quirk("throttle"),
             slow = vpmu_quirk("exitcost"), masks = vpmu_quirk("lvtmask");
    bool disturbed = p || vpmu_quirk("smi") || vpmu_quirk("nmi") || vpmu_quirk("contend");
    SKIP_IF(!m->known, "no counter of instructions");
    if (!disturbed && pmu_here()->exact)
        CHECK_EQ(m->late_at_zero, vpmu_quirk("wrap0"));
    if (!disturbed && vpmu_quirk("lostpmi") != 1)
        CHECK_EQ(m->masks, masks ? masks == 2 : lab_is_intel());
    if (!p || p > 50)
        CHECK(!m->throttled || p);
    else if (!slow && !vpmu_steps())
        CHECK(m->throttled);
    if (!lag)
        CHECK(m->lag < LITTLE);
    if (!lag && !disturbed && pmu_here()->exact && !vpmu_quirk("skid"))
        CHECK_EQ(m->lag, 0);
    if (!disturbed && vpmu_quirk("lostpmi") < 2)
        CHECK_EQ(m->lost != 0, vpmu_quirk("lostpmi"));
    if (!disturbed && pmu_counters_for(pmu_here(), PMU_BRANCHES) && !vpmu_quirk("far"))
        CHECK_EQ(m->exit_branches, vpmu_quirk("vmrun") || vpmu_quirk("bug") == BUG_CPUID);
    CHECK_EQ(m->select_kept & ~vpmu_quirk("sticky"), 0);
    CHECK_EQ(m->global_used,
             !lab_is_intel() && pmu_here()->version >= 2 && vpmu_quirk("v2bits") != 0);
    if (!vpmu_quirk("ignoremsrs"))
        CHECK_EQ(m->uncore, lab_is_intel() && pmu_here()->version < 4 && vpmu_quirk("uncore"));
    CHECK(!m->misc || m->misc == vpmu_quirk("misc"));
}

TEST(measured, for_tests,
     "what steers the tests is measured as the virtual PMU was set to do "
     "[VP-23 VP-26 VP-69 VP-70]")
{
    SKIP_WITHOUT_PMU();
    SKIP_WITHOUT_VPMU();
    lab_run(check_for_tests, LAB_ANY);
}
