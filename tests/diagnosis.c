/* SPDX-License-Identifier: MIT */
/* The self-test is tested: a PMU in software, broken in one way after the other, and the verdict that must come. Runs on
 * every machine, with a PMU and without. */
#include "hal/hal.h"
#include "kernel/irql.h"
#include "kernel/sched.h"
#include "kernel/string.h"
#include "tests/test.h"
#include "pmu/pmu.h"

#define COUNTERS 4u
#define SELECT 0x186u
#define COUNTER 0xc1u
#define CONTROL 0x38fu
#define STATUS 0x38eu
#define CLEAR 0x390u
#define WIDTH 48
#define MASK (PMU_BIT(WIDTH) - 1)
#define BUDGET_NS 10000000u

enum defect {
    GOOD, RDPMC_UD, RDPMC_GP, SWALLOWED, MSR_FAULT, PCE_LIKE, RDPMC_OTHER, NARROW, WIDE, FIRMWARE, SELECT_STUCK, DEAD,
    SLOW, FAST, NO_STATUS, EXITS_TWICE, EXITS_LOST, JITTER
};

static struct {
    enum defect defect;
    uint64_t broken; /* counters that have it */
    uint64_t select[COUNTERS], value[COUNTERS], control, status;
    unsigned runs;
} fake;

static bool has(enum defect defect, unsigned ctr) { return fake.defect == defect && fake.broken >> ctr & 1; }

static unsigned fake_rdmsr(uint32_t msr, uint64_t *value)
{
    if (msr >= SELECT && msr < SELECT + COUNTERS)
        *value = fake.select[msr - SELECT] | (has(FIRMWARE, msr - SELECT) ? PMU_ENABLE : 0);
    else if (msr >= COUNTER && msr < COUNTER + COUNTERS)
        *value = has(SWALLOWED, msr - COUNTER) || fake.defect == RDPMC_UD || fake.defect == RDPMC_GP
                     ? 0
                     : fake.value[msr - COUNTER];
    else
        *value = msr == CONTROL ? fake.control : msr == STATUS ? fake.status : 0;
    return msr >= COUNTER && msr < COUNTER + COUNTERS && has(MSR_FAULT, msr - COUNTER) ? 13 : 0;
}

static unsigned fake_wrmsr(uint32_t msr, uint64_t value)
{
    if (msr >= SELECT && msr < SELECT + COUNTERS) {
        fake.select[msr - SELECT] = has(SELECT_STUCK, msr - SELECT) ? 0 : value;
    } else if (msr >= COUNTER && msr < COUNTER + COUNTERS) {
        unsigned ctr = msr - COUNTER;
        fake.value[ctr] = value & (has(NARROW, ctr) ? MASK >> 8 : MASK);
    } else if (msr == CLEAR) {
        fake.status &= ~value;
    }
    return 0;
}

static unsigned fake_rdpmc(uint32_t selector, uint64_t *value)
{
    if (fake.defect == RDPMC_UD)
        return 6;
    if (fake.defect == RDPMC_GP || selector >= COUNTERS || has(PCE_LIKE, selector))
        return 13;
    *value = fake.value[selector] + has(RDPMC_OTHER, selector);
    return 0;
}

/* As a counter does: two instructions a turn and five around. */
static uint64_t fake_count(unsigned ctr, enum pmu_event event, uint64_t start, uint64_t loops)
{
    uint64_t n = 2 * loops + 5;
    (void)event;
    n = has(DEAD, ctr) ? 0 : has(SLOW, ctr) ? n / 8 : has(FAST, ctr) ? n * 2 : n;
    if (has(JITTER, ctr))
        n += fake.runs++ % 3;
    uint64_t sum = start + n;
    if (sum > MASK && !has(NO_STATUS, ctr))
        fake.status |= PMU_BIT(ctr);
    return has(WIDE, ctr) ? sum : sum & MASK;
}

static uint64_t fake_count_exits(unsigned ctr, uint64_t loops)
{
    return loops * (has(EXITS_TWICE, ctr) ? 6 : has(EXITS_LOST, ctr) ? 4 : 5) + 5;
}

static uint64_t fake_take_overflow(void)
{
    uint64_t status = fake.status;
    fake.status = 0;
    return status;
}

static void fake_clear(unsigned ctr) { fake.select[ctr] = fake.value[ctr] = 0; }

static const struct pmu_access fake_access = { fake_rdmsr, fake_wrmsr, fake_rdpmc, fake_count, fake_count_exits,
                                               fake_take_overflow, fake_clear };

static const struct pmu_caps facts = {
    .driver = "intel", .version = 4, .reported = PMU_BIT(COUNTERS) - 1, .counters = PMU_BIT(COUNTERS) - 1,
    .gp_reported = COUNTERS, .gp_width = WIDTH, .fixed_width = WIDTH, .gp_write_width = WIDTH, .events = 0x7f,
    .table = &intel_architectural,
    .msr = { .select = SELECT, .counter = COUNTER, .write = COUNTER, .stride = 1, .global_control = CONTROL,
             .global_status = STATUS, .global_clear = CLEAR },
};

static enum pmu_verdict diagnose(const struct pmu_caps *caps, enum defect defect, uint64_t broken, uint64_t *bad)
{
    memset(&fake, 0, sizeof fake);
    fake.defect = defect;
    fake.broken = broken;
    KIRQL old = irql_raise(HIGH_LEVEL);
    enum pmu_verdict verdict = pmu_diagnose(caps, &fake_access, bad);
    irql_lower(old);
    return verdict;
}

/* The defect on each set of counters: the verdict, and exactly those left out. */
static void provoke(enum defect defect, enum pmu_verdict wanted, bool left_out)
{
    struct pmu_caps before = pmu_caps;
    for (uint64_t broken = 1; broken < PMU_BIT(COUNTERS); broken++) {
        uint64_t bad = ~UINT64_C(0);
        CHECK_EQ(diagnose(&facts, defect, broken, &bad), wanted);
        CHECK_EQ(bad, left_out ? broken : 0);
    }
    CHECK(memcmp(&before, &pmu_caps, sizeof before) == 0);
    CHECK(strcmp(pmu_verdict_text(wanted), "?") != 0);
}

/* No counter works at all. */
static void provoke_absent(enum defect defect, enum pmu_verdict wanted)
{
    struct pmu_caps none = { 0 };
    uint64_t bad;
    CHECK_EQ(diagnose(&facts, defect, facts.reported, &bad), wanted);
    CHECK_EQ(bad, facts.reported);
    CHECK_EQ(diagnose(&none, defect, 0, &bad), wanted);
    CHECK_EQ(bad, 0);
}

#define VERDICT(name, defect, verdict, meaning) \
    TEST(diagnosis, name, meaning) { provoke(defect, verdict, true); }

TEST(diagnosis, good, "a PMU without a defect is found good, and its counts exact [S-6.3]")
{
    provoke(GOOD, PMU_OK, false);
}
TEST(diagnosis, absent_ud, "RDPMC raises #UD: absent, as on QEMU's TCG [S-1.6]") { provoke_absent(RDPMC_UD, PMU_ABSENT_UD); }
TEST(diagnosis, absent_gp, "RDPMC raises #GP: absent, as on KVM without a PMU [S-1.6 C-1a]")
{
    provoke_absent(RDPMC_GP, PMU_ABSENT_GP);
}
VERDICT(swallowed, SWALLOWED, PMU_WRITES_SWALLOWED, "writes are swallowed [VP-36 S-1.6 C-2e]")
VERDICT(select_swallowed, SELECT_STUCK, PMU_WRITES_SWALLOWED, "the event select does not keep what is written [VP-29]")
VERDICT(msr_faults, MSR_FAULT, PMU_MSR_FAULTS, "RDMSR of a promised counter faults [VP-13 C-3.3]")
VERDICT(rdpmc_disabled, PCE_LIKE, PMU_RDPMC_DISABLED, "RDPMC faults on a counter that RDMSR reads [VP-88]")
VERDICT(rdpmc_differs, RDPMC_OTHER, PMU_RDPMC_DIFFERS, "RDPMC and RDMSR differ [VP-41]")
VERDICT(narrow, NARROW, PMU_WIDTH_LIES, "the counter is narrower than promised [VP-31]")
VERDICT(does_not_wrap, WIDE, PMU_WIDTH_LIES, "the counter goes on where it should wrap [VP-38]")
VERDICT(firmware, FIRMWARE, PMU_FIRMWARE_OWNS, "firmware keeps a counter enabled [VP-37 C-3.2]")
VERDICT(dead, DEAD, PMU_COUNTERS_DEAD, "the counter takes writes and counts nothing [C-1a]")
VERDICT(too_slow, SLOW, PMU_WRONG_RATE, "the counter counts an eighth of what happens [C-3.4]")
VERDICT(too_fast, FAST, PMU_WRONG_RATE, "the counter counts everything twice [C-3.4 C-3.19]")
VERDICT(overflow_lost, NO_STATUS, PMU_OVERFLOW_LOST, "the counter wraps without a status bit [VP-65]")
TEST(diagnosis, exits_twice, "each exit to the hypervisor adds one: named, the counter stays [VP-62 C-3.14 C-3.15]")
{
    provoke(EXITS_TWICE, PMU_EXITS_MISCOUNTED, false);
}
TEST(diagnosis, exits_lost, "instructions that exit are not counted: named, the counter stays [VP-62]")
{
    provoke(EXITS_LOST, PMU_EXITS_MISCOUNTED, false);
}
TEST(diagnosis, jitter, "counts that differ by one or two from run to run are no failure [C-3.20]")
{
    provoke(JITTER, PMU_OK, false);
}

TEST(diagnosis, no_counters, "CPUID reports a PMU without a counter [S-1.1]")
{
    struct pmu_caps caps = facts;
    uint64_t bad;
    caps.reported = caps.counters = 0;
    CHECK_EQ(diagnose(&caps, GOOD, 0, &bad), PMU_NO_COUNTERS);
}

TEST(diagnosis, not_reported, "RDPMC works, but no CPUID leaf that we know says so [S-1.6]")
{
    struct pmu_caps none = { 0 };
    uint64_t bad;
    CHECK_EQ(diagnose(&none, GOOD, 0, &bad), PMU_NOT_REPORTED);
}

TEST(diagnosis, oddities, "any version, any number of counters: no assertion, and the verdict is right [C-1a]")
{
    static const unsigned versions[] = { 1, 2, 3, 4, 5, 6, 7, 255 };
    for (unsigned i = 0; i < sizeof versions / sizeof *versions; i++) {
        struct pmu_caps caps = facts;
        uint64_t bad;
        caps.version = versions[i];
        CHECK_EQ(diagnose(&caps, GOOD, 0, &bad), PMU_OK);
        caps.reported = caps.counters = PMU_GP(1) | PMU_GP(3); /* holes */
        CHECK_EQ(diagnose(&caps, DEAD, 8, &bad), PMU_COUNTERS_DEAD);
        CHECK_EQ(bad, 8);
    }
}

TEST(diagnosis, in_time, "the self-test of this machine's own PMU takes less than 10 ms and finds what it found [C-1a]")
{
    uint64_t bad;
    KIRQL old = irql_raise(HIGH_LEVEL);
    uint64_t start = sched_time_ns();
    enum pmu_verdict verdict = pmu_diagnose(&pmu_caps, &pmu_hardware, &bad);
    uint64_t end = sched_time_ns();
    irql_lower(old);
    CHECK_EQ(verdict, pmu_verdict());
    CHECK_RANGE(end - start, 1, BUDGET_NS);
}

TEST(diagnosis, sentences, "every verdict has a sentence of its own")
{
    for (unsigned v = 0; v < PMU_VERDICT_COUNT; v++) {
        CHECK(strlen(pmu_verdict_text((enum pmu_verdict)v)) > 10);
        for (unsigned other = 0; other < v; other++)
            CHECK(strcmp(pmu_verdict_text((enum pmu_verdict)v), pmu_verdict_text((enum pmu_verdict)other)) != 0);
    }
}
