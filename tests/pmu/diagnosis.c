/* SPDX-License-Identifier: MIT */
/* The self-test is tested: a PMU in software, broken in one way after the other, and the verdict
 * that must come. Runs on every machine, with a PMU and without. */
#include "tests/harness/kernel.h"
#include "tests/pmu/fake_pmu.h"

#define BUDGET_NS 10000000u
#define ACCESSES 4000u /* at most, in a self-test */
#define THOUSANDS 100u /* of instructions, in a self-test */
#define TRIES 10u      /* a host may take the processor away in the middle of one */

/* A verdict, however bad things are, comes after no more accesses than fit into the budget. */
static struct pmu_finding diagnose(const struct pmu_kind *kind, enum defect defect, uint64_t broken)
{
    fake_make(kind, defect, broken);
    struct pmu_finding found = pmu_diagnose(kind, &fake_access);
    CHECK(fake_accesses() <= ACCESSES);
    return found;
}

/* The defect on each set of counters of those that can have it: the verdict, exactly those left
 * out, and whether counts of the others are called exact. */
static void provoke(enum defect defect, enum pmu_verdict wanted, bool left_out, bool exact,
                    uint64_t able)
{
    for (uint64_t broken = able; broken; broken = (broken - 1) & able) {
        struct pmu_finding found = diagnose(&fake_facts, defect, broken);
        CHECK_EQ(found.verdict, wanted);
        CHECK_EQ(found.bad, left_out ? broken : 0);
        CHECK_EQ(found.exact, exact);
        CHECK_EQ(found.offset, defect == ONE_MORE ? 1 : defect == ONE_LESS ? -1 : 0);
    }
    CHECK(strcmp(pmu_verdict_text(wanted), "?") != 0);
}

/* No counter works at all. */
static void provoke_absent(enum defect defect, enum pmu_verdict wanted)
{
    struct pmu_kind none = { 0 };
    struct pmu_finding found = diagnose(&fake_facts, defect, fake_facts.reported);
    CHECK_EQ(found.verdict, wanted);
    CHECK_EQ(found.bad, fake_facts.reported);
    found = diagnose(&none, defect, 0);
    CHECK_EQ(found.verdict, wanted);
    CHECK_EQ(found.bad, 0);
}

#define VERDICT(name, defect, verdict, able, meaning)                                              \
    TEST(diagnosis, name, meaning) { provoke(defect, verdict, true, true, able); }
#define USED(name, defect, verdict, exact, able, meaning)                                          \
    TEST(diagnosis, name, meaning) { provoke(defect, verdict, false, exact, able); }

USED(good, GOOD, PMU_OK, true, FAKE_ALL,
     "a PMU without a defect passes, and its counts are exact [S-6.3]")
/* Measured on QEMU's TCG (7.2), and on KVM (Linux 6.18) without a PMU: RDMSR of a counter's select
 * reads 0 on both, and proves nothing; RDPMC tells. */
TEST(diagnosis, absent_ud, "RDPMC raises #UD: absent, as on QEMU's TCG [S-1.6]")
{
    provoke_absent(RDPMC_UD, PMU_ABSENT_UD);
}
TEST(diagnosis, absent_gp, "RDPMC raises #GP: absent, as on KVM without a PMU [S-1.6 C-1a]")
{
    provoke_absent(RDPMC_GP, PMU_ABSENT_GP);
}
VERDICT(swallowed, SWALLOWED, PMU_WRITES_SWALLOWED, FAKE_ALL, "writes are swallowed [VP-36 S-1.6]")
VERDICT(select_swallowed, SELECT_STUCK, PMU_WRITES_SWALLOWED, FAKE_ALL,
        "the event select does not keep what is written [VP-29]")
VERDICT(msr_faults, MSR_FAULT, PMU_MSR_FAULTS, FAKE_ALL,
        "RDMSR of a promised counter faults [VP-13 C-3.3]")
VERDICT(rdpmc_disabled, PCE_LIKE, PMU_RDPMC_DISABLED, FAKE_ALL,
        "RDPMC faults on a counter that RDMSR reads [VP-88]")
VERDICT(rdpmc_differs, RDPMC_OTHER, PMU_RDPMC_DIFFERS, FAKE_ALL, "RDPMC and RDMSR differ [VP-41]")
VERDICT(narrow, NARROW, PMU_WIDTH_LIES, FAKE_ALL, "the counter is narrower than promised [VP-31]")
VERDICT(does_not_wrap, WIDE, PMU_WIDTH_LIES, FAKE_ALL,
        "the counter goes on where it should wrap [VP-38]")
VERDICT(firmware, FIRMWARE, PMU_FIRMWARE_OWNS, FAKE_ALL, "firmware keeps a counter enabled [VP-37]")
VERDICT(dead, DEAD, PMU_COUNTERS_DEAD, FAKE_ALL,
        "the counter takes writes and counts nothing [C-1a]")
VERDICT(too_slow, SLOW, PMU_WRONG_RATE, FAKE_ALL,
        "the counter counts a sixteenth of what happens [C-3.4]")
VERDICT(too_fast, FAST, PMU_WRONG_RATE, FAKE_INSTRUCTIONS,
        "the counter counts everything twice [C-3.4]")
VERDICT(overflow_lost, NO_STATUS, PMU_OVERFLOW_LOST, FAKE_ALL,
        "the counter wraps without a status bit [VP-65]")
VERDICT(overflow_late, LATE_STATUS, PMU_OVERFLOW_LATE, FAKE_ALL,
        "the status bit comes after the counter has wrapped [VP-65]")
USED(exits_twice, EXITS_TWICE, PMU_EXITS_MISCOUNTED, false, FAKE_INSTRUCTIONS,
     "exits that add a count: the defect is named, the counter is used [VP-62]")
USED(exits_lost, EXITS_LOST, PMU_EXITS_MISCOUNTED, false, FAKE_INSTRUCTIONS,
     "instructions that exit and are not counted: the defect is named, the counter is used "
     "[VP-62]")
USED(jitter, JITTER, PMU_OK, false, FAKE_INSTRUCTIONS,
     "counts that differ by one or two between runs are no failure, but not exact [C-3.20]")
USED(dead_at_first, DEAD_AT_FIRST, PMU_OK, true, FAKE_ALL,
     "a counter that does not count when it is started for the first time, but later does, is "
     "used (AAK100) [C-1a]")
TEST(diagnosis, offset,
     "a constant offset of one instruction in every count is reported, and is no failure [C-3.20]")
{
    provoke(ONE_MORE, PMU_OK, false, true, FAKE_INSTRUCTIONS);
    provoke(ONE_LESS, PMU_OK, false, true, FAKE_INSTRUCTIONS);
}
TEST(diagnosis, no_counters, "CPUID reports a PMU without counters [S-1.1]")
{
    struct pmu_kind kind = fake_facts;
    kind.reported = kind.counters = 0;
    CHECK_EQ(diagnose(&kind, GOOD, 0).verdict, PMU_NO_COUNTERS);
}

TEST(diagnosis, not_reported, "RDPMC works, but no known CPUID leaf reports a PMU [S-1.6]")
{
    struct pmu_kind none = { 0 };
    CHECK_EQ(diagnose(&none, GOOD, 0).verdict, PMU_NOT_REPORTED);
}

TEST(diagnosis, any_fault,
     "a fault at any access leads to a verdict, and at most one counter is not used [VP-13 C-3.3]")
{
    unsigned access, named = 0, ignored = 1 + 2 * bit_count(FAKE_ALL);
    for (access = 0;; access++) {
        fake_make(&fake_facts, GOOD, 0);
        fake_fault_at(access);
        struct pmu_finding found = pmu_diagnose(&fake_facts, &fake_access);
        if (fake_accesses() <= access)
            break;
        named += found.verdict != PMU_OK;
        CHECK((found.verdict == PMU_OK) == !found.bad);
        CHECK(!(found.bad & (found.bad - 1)));
    }
    CHECK_RANGE(named, 50, 1000);      /* a counter takes a dozen accesses at the least */
    CHECK_EQ(access - named, ignored); /* the first RDPMC, the two last writes of each counter */
}

TEST(diagnosis, oddities,
     "any version, holes among the counters: one that is dead is left out alone [C-1a]")
{
    static const unsigned versions[] = { 1, 2, 3, 4, 5, 6, 7, 255 };
    for (unsigned i = 0; i < ARRAY_SIZE(versions); i++) {
        struct pmu_kind kind = fake_facts;
        kind.version = versions[i];
        CHECK_EQ(diagnose(&kind, GOOD, 0).verdict, PMU_OK);
        kind.reported = PMU_GP(1) | PMU_GP(3) | PMU_FIX(2); /* holes */
        struct pmu_finding found = diagnose(&kind, DEAD, PMU_GP(3));
        CHECK_EQ(found.verdict, PMU_COUNTERS_DEAD);
        CHECK_EQ(found.bad, PMU_GP(3));
    }
}

/* Nanoseconds that the self-test took. */
static uint64_t diagnose_here(void)
{
    KIRQL old = irql_raise(HIGH_LEVEL);
    uint64_t start = clock_ns();
    struct pmu_finding found = pmu_diagnose(pmu_here(), &pmu_hardware);
    uint64_t end = clock_ns();
    irql_lower(old);
    CHECK_EQ(found.verdict, pmu_here()->verdict);
    CHECK_EQ(found.bad, pmu_here()->reported & ~pmu_here()->counters);
    CHECK_EQ(found.exact, pmu_here()->exact);
    return end - start;
}

TEST(diagnosis, in_time,
     "the self-test of each CPU takes less than 10 ms and gives the result of the CPU's start "
     "[C-1a]")
{
    HANDLE handle = NULL;
    if (test_has_pmu())
        REQUIRE_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &handle), STATUS_SUCCESS);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        uint64_t took, budget, tries = 0;
        test_run_on(cpu);
        do {
            budget =
                BUDGET_NS + rules_access_ns(ACCESSES) + THOUSANDS * measured_here()->thousand_ns;
            took = diagnose_here();
        } while (took >= budget && ++tries < TRIES);
        CHECK_BECAUSE(took, 1, budget,
                      "with what a hypervisor takes for each access and instruction");
    }
    test_run_anywhere();
    if (handle)
        CHECK_STATUS(HalFreeHardwareCounters(handle), STATUS_SUCCESS);
}

TEST(diagnosis, inexact,
     "ring 3 is exact if it was measured, and every trap adds the same, as few as a trap can be")
{
    static const struct {
        struct pmu_spread quiet, trap;
        char begins; /* what is said, 0: nothing */
    } cases[] = {
        { { 0, 0, 0 }, { 0, 0, 0 }, 'w' },     { { 0, 1, 9 }, { 0, 0, 9 }, 'r' },
        { { 0, 0, 9 }, { 0, 0, 0 }, 0 },       { { 0, 0, 9 }, { 1, 1, 9 }, 0 },
        { { 0, 0, 9 }, { 1, 2, 9 }, 't' },     { { 0, 0, 9 }, { 128, 128, 9 }, 0 },
        { { 0, 0, 9 }, { 129, 129, 9 }, 'r' }, { { 0, 0, 9 }, { -1, -1, 9 }, 'r' },
    };
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++)
        for (unsigned t = 0; t < PMU_TRAPS; t++) {
            struct pmu_kind kind = fake_facts;
            kind.measured.quiet[PMU_RETIRED_INSTRUCTIONS] = cases[i].quiet;
            kind.measured.trap[t][PMU_RETIRED_INSTRUCTIONS] = cases[i].trap;
            const char *said = pmu_ring3_inexact(&kind);
            CHECK_EQ(said ? said[0] : 0, cases[i].begins);
        }
}
