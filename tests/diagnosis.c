/* SPDX-License-Identifier: MIT */
/* The self-test is tested: a PMU in software, broken in one way after the other, and the verdict that must come. Runs on
 * every machine, with a PMU and without. */
#include "hal/hal.h"
#include "kernel/irql.h"
#include "kernel/sched.h"
#include "kernel/string.h"
#include "kernel/x86.h"
#include "tests/test.h"
#include "pmu/pmu.h"

#define GP 4u
#define FIXED 3u
#define ALL (PMU_FIRST(GP) | PMU_FIRST(FIXED) << PMU_FIXED)
#define INSTRUCTIONS (PMU_FIRST(GP) | PMU_FIX(0)) /* what counts them: no other count is known */
#define GP_MSRS 18u
#define SELECT 0x186u
#define COUNTER 0xc1u
#define FIXED_COUNTER 0x309u
#define FIXED_CONTROL 0x38du
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
    uint64_t select[GP_MSRS], value[64], fixed_control, control, status;
    unsigned runs;
} fake;

static bool has(enum defect defect, unsigned ctr) { return fake.defect == defect && fake.broken >> ctr & 1; }

/* The counter behind an MSR; 64: none. */
static unsigned counter_at(uint32_t msr)
{
    return msr >= COUNTER && msr < COUNTER + GP_MSRS                ? msr - COUNTER
         : msr >= FIXED_COUNTER && msr < FIXED_COUNTER + PMU_FIXED_MAX ? PMU_FIXED + msr - FIXED_COUNTER
                                                                    : 64;
}

/* The four bits of each broken fixed counter in the register that they share. */
static uint64_t broken_nibbles(uint64_t nibble)
{
    uint64_t bits = 0;
    for (unsigned n = 0; n < PMU_FIXED_MAX; n++)
        bits |= fake.broken >> (PMU_FIXED + n) & 1 ? nibble << 4 * n : 0;
    return bits;
}

static unsigned fake_rdmsr(uint32_t msr, uint64_t *value)
{
    unsigned ctr = counter_at(msr);
    if (ctr < 64)
        *value = has(SWALLOWED, ctr) || fake.defect == RDPMC_UD || fake.defect == RDPMC_GP ? 0 : fake.value[ctr];
    else if (msr >= SELECT && msr < SELECT + GP_MSRS)
        *value = fake.select[msr - SELECT] | (has(FIRMWARE, msr - SELECT) ? PMU_ENABLE : 0);
    else if (msr == FIXED_CONTROL)
        *value = fake.fixed_control | (fake.defect == FIRMWARE ? broken_nibbles(1) : 0);
    else
        *value = msr == CONTROL ? fake.control : msr == STATUS ? fake.status : 0;
    return ctr < 64 && has(MSR_FAULT, ctr) ? 13 : 0;
}

static unsigned fake_wrmsr(uint32_t msr, uint64_t value)
{
    unsigned ctr = counter_at(msr);
    if (ctr < 64)
        fake.value[ctr] = value & (has(NARROW, ctr) ? MASK >> 8 : MASK);
    else if (msr >= SELECT && msr < SELECT + GP_MSRS)
        fake.select[msr - SELECT] = has(SELECT_STUCK, msr - SELECT) ? 0 : value;
    else if (msr == FIXED_CONTROL)
        fake.fixed_control = value & ~(fake.defect == SELECT_STUCK ? broken_nibbles(0xf) : 0);
    else if (msr == CONTROL)
        fake.control = value;
    else if (msr == CLEAR)
        fake.status &= ~value;
    return 0;
}

static unsigned fake_rdpmc(uint32_t selector, uint64_t *value)
{
    unsigned ctr = selector >> 30 ? PMU_FIXED + (selector & 0xff) : selector;
    if (fake.defect == RDPMC_UD)
        return 6;
    if (fake.defect == RDPMC_GP || ctr >= 64 || has(PCE_LIKE, ctr))
        return 13;
    *value = fake.value[ctr] + has(RDPMC_OTHER, ctr);
    return 0;
}

/* As a counter does: two instructions a turn and five around. */
static uint64_t fake_count(unsigned ctr, enum pmu_event event, uint64_t start, uint64_t loops)
{
    uint64_t n = 2 * loops + 5;
    (void)event;
    n = has(DEAD, ctr) ? 0 : has(SLOW, ctr) ? n / 16 : has(FAST, ctr) ? n * 2 : n;
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

static void fake_clear(unsigned ctr)
{
    fake.value[ctr] = 0;
    if (ctr < GP_MSRS)
        fake.select[ctr] = 0;
}

static const struct pmu_access fake_access = { fake_rdmsr, fake_wrmsr, fake_rdpmc, fake_count, fake_count_exits,
                                               fake_take_overflow, fake_clear };

static const struct pmu_caps facts = {
    .driver = "intel", .version = 4, .reported = ALL, .counters = ALL, .gp_reported = GP, .gp_width = WIDTH,
    .fixed_width = WIDTH, .gp_write_width = WIDTH, .events = ~0u, .table = &intel_architectural,
    .msr = { .select = SELECT, .counter = COUNTER, .write = COUNTER, .stride = 1, .fixed_counter = FIXED_COUNTER,
             .fixed_control = FIXED_CONTROL, .global_control = CONTROL, .global_status = STATUS, .global_clear = CLEAR },
};

/* A verdict, however bad things are, comes within the budget. */
static enum pmu_verdict diagnose(const struct pmu_caps *caps, enum defect defect, uint64_t broken, uint64_t *bad)
{
    memset(&fake, 0, sizeof fake);
    fake.defect = defect;
    fake.broken = broken;
    KIRQL old = irql_raise(HIGH_LEVEL);
    uint64_t start = sched_time_ns();
    enum pmu_verdict verdict = pmu_diagnose(caps, &fake_access, bad);
    uint64_t took = sched_time_ns() - start;
    irql_lower(old);
    CHECK(took < BUDGET_NS);
    return verdict;
}

/* The defect on each set of counters of those that can have it: the verdict, and exactly those left out. */
static void provoke(enum defect defect, enum pmu_verdict wanted, bool left_out, uint64_t able)
{
    struct pmu_caps before = pmu_caps;
    for (uint64_t broken = able; broken; broken = (broken - 1) & able) {
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

#define VERDICT(name, defect, verdict, able, meaning) \
    TEST(diagnosis, name, meaning) { provoke(defect, verdict, true, able); }

TEST(diagnosis, good, "a PMU without a defect is found good, and its counts exact [S-6.3]")
{
    provoke(GOOD, PMU_OK, false, ALL);
}
TEST(diagnosis, absent_ud, "RDPMC raises #UD: absent, as on QEMU's TCG [S-1.6]") { provoke_absent(RDPMC_UD, PMU_ABSENT_UD); }
TEST(diagnosis, absent_gp, "RDPMC raises #GP: absent, as on KVM without a PMU [S-1.6 C-1a]")
{
    provoke_absent(RDPMC_GP, PMU_ABSENT_GP);
}
VERDICT(swallowed, SWALLOWED, PMU_WRITES_SWALLOWED, ALL, "writes are swallowed [VP-36 S-1.6 C-2e]")
VERDICT(select_swallowed, SELECT_STUCK, PMU_WRITES_SWALLOWED, ALL, "the event select does not keep what is written [VP-29]")
VERDICT(msr_faults, MSR_FAULT, PMU_MSR_FAULTS, ALL, "RDMSR of a promised counter faults [VP-13 C-3.3]")
VERDICT(rdpmc_disabled, PCE_LIKE, PMU_RDPMC_DISABLED, ALL, "RDPMC faults on a counter that RDMSR reads [VP-88]")
VERDICT(rdpmc_differs, RDPMC_OTHER, PMU_RDPMC_DIFFERS, ALL, "RDPMC and RDMSR differ [VP-41]")
VERDICT(narrow, NARROW, PMU_WIDTH_LIES, ALL, "the counter is narrower than promised [VP-31]")
VERDICT(does_not_wrap, WIDE, PMU_WIDTH_LIES, ALL, "the counter goes on where it should wrap [VP-38]")
VERDICT(firmware, FIRMWARE, PMU_FIRMWARE_OWNS, ALL, "firmware keeps a counter enabled [VP-37 C-3.2]")
VERDICT(dead, DEAD, PMU_COUNTERS_DEAD, ALL, "the counter takes writes and counts nothing [C-1a]")
VERDICT(too_slow, SLOW, PMU_WRONG_RATE, ALL, "the counter counts a sixteenth of what happens [C-3.4]")
VERDICT(too_fast, FAST, PMU_WRONG_RATE, INSTRUCTIONS, "the counter counts everything twice [C-3.4 C-3.19]")
VERDICT(overflow_lost, NO_STATUS, PMU_OVERFLOW_LOST, ALL, "the counter wraps without a status bit [VP-65]")
TEST(diagnosis, exits_twice, "each exit to the hypervisor adds one: named, the counter stays [VP-62 C-3.14 C-3.15]")
{
    provoke(EXITS_TWICE, PMU_EXITS_MISCOUNTED, false, INSTRUCTIONS);
}
TEST(diagnosis, exits_lost, "instructions that exit are not counted: named, the counter stays [VP-62]")
{
    provoke(EXITS_LOST, PMU_EXITS_MISCOUNTED, false, INSTRUCTIONS);
}
TEST(diagnosis, jitter, "counts that differ by one or two from run to run are no failure [C-3.20]")
{
    provoke(JITTER, PMU_OK, false, ALL);
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

#define LEAF(version, gp, width, length) ((version) | (gp) << 8 | (width) << 16 | (uint32_t)(length) << 24)

/* Leaves 0Ah that no processor has yet, or should have: EAX, EBX, ECX, EDX, and the counters found in them. */
static const struct {
    struct cpuid leaf;
    uint64_t counters;
    enum pmu_verdict verdict;
} leaves[] = {
    { { LEAF(7, 8, 48, 12), 0, 0x7f, 48 << 5 | 0 }, PMU_FIRST(8) | PMU_FIRST(7) << PMU_FIXED, PMU_OK },
    { { LEAF(255, 8, 48, 32), 0, 0xf, 48 << 5 | 4 }, PMU_FIRST(8) | PMU_FIRST(4) << PMU_FIXED, PMU_OK },
    { { LEAF(5, 4, 48, 8), 0, 0xa5, 48 << 5 | 0 }, PMU_FIRST(4) | UINT64_C(0xa5) << PMU_FIXED, PMU_OK },  /* holes */
    { { LEAF(5, 4, 48, 8), 0, 0x8, 48 << 5 | 2 }, PMU_FIRST(4) | UINT64_C(0xb) << PMU_FIXED, PMU_OK },
    { { LEAF(4, 4, 48, 8), 0, 0xff, 48 << 5 | 3 }, PMU_FIRST(4) | UINT64_C(7) << PMU_FIXED, PMU_OK }, /* ECX is not v4's */
    { { LEAF(5, 64, 48, 8), 0, ~0u, 48 << 5 | 31 }, PMU_FIRST(18) | PMU_FIRST(16) << PMU_FIXED, PMU_OK },
    { { LEAF(5, 255, 48, 255), ~0u, ~0u, ~0u }, PMU_FIRST(18) | PMU_FIRST(16) << PMU_FIXED, PMU_WIDTH_LIES },
    { { LEAF(5, 0, 48, 8), 0, 0, 0 }, 0, PMU_NO_COUNTERS },
    { { LEAF(1, 0, 0, 0), 0, 0, 0 }, 0, PMU_NO_COUNTERS },
    { { LEAF(1, 2, 48, 7), 0, 0xff, 48 << 5 | 3 }, PMU_FIRST(2), PMU_OK }, /* version 1 has no fixed ones */
    { { LEAF(5, 0, 48, 8), 0, 3, 48 << 5 }, UINT64_C(3) << PMU_FIXED, PMU_OK }, /* fixed ones alone */
    { { LEAF(3, 4, 0, 7), 0, 0, 0 }, PMU_FIRST(4), PMU_WIDTH_LIES },
    { { LEAF(3, 4, 20, 7), 0, 0, 0 }, PMU_FIRST(4), PMU_WIDTH_LIES },
    { { LEAF(3, 4, 200, 7), 0, 0, 0 }, PMU_FIRST(4), PMU_WIDTH_LIES },
    { { LEAF(3, 4, 48, 0), 0, 0, 0 }, PMU_FIRST(4), PMU_OK }, /* no event at all: registers are what is proved */
};

TEST(diagnosis, strange_leaves, "0 to 255 counters, holes, any version, width and length: no assertion, right verdicts [S-1.1 C-1a]")
{
    for (unsigned i = 0; i < sizeof leaves / sizeof *leaves; i++) {
        struct pmu_caps caps = { .table = &intel_architectural };
        uint64_t bad;
        CHECK(intel_facts(&caps, &leaves[i].leaf, true, true));
        CHECK_EQ(caps.reported, leaves[i].counters);
        caps.counters = caps.reported;
        caps.msr.write = caps.msr.counter; /* the fake has no second set */
        enum pmu_verdict verdict = diagnose(&caps, GOOD, 0, &bad);
        if (!CHECK_EQ(verdict, leaves[i].verdict))
            test_note("leaf %u: %s; counters %lx", i, pmu_verdict_text(verdict), bad);
    }
    struct pmu_caps none = { 0 };
    CHECK(!intel_facts(&none, &(struct cpuid){ LEAF(0, 8, 48, 8), 0, 0, 0 }, true, true));
}

TEST(diagnosis, strange_amd_leaves, "8000_0022 with any number of counters, and without the extended ones [S-1.4 C-1a]")
{
    for (unsigned n = 0; n < 32; n++) {
        struct pmu_caps caps = { 0 };
        struct cpuid v2 = { .eax = 1, .ebx = n };
        CHECK(amd_facts(&caps, true, &v2));
        CHECK_EQ(caps.reported, PMU_FIRST(n & 0xf));
        CHECK_EQ(caps.version, 2);
        CHECK(amd_facts(&caps, false, &v2));
        CHECK_EQ(caps.reported, PMU_FIRST(4));
    }
}

TEST(diagnosis, oddities, "any version, holes among the counters: one that is dead is left out alone [C-1a]")
{
    static const unsigned versions[] = { 1, 2, 3, 4, 5, 6, 7, 255 };
    for (unsigned i = 0; i < sizeof versions / sizeof *versions; i++) {
        struct pmu_caps caps = facts;
        uint64_t bad;
        caps.version = versions[i];
        CHECK_EQ(diagnose(&caps, GOOD, 0, &bad), PMU_OK);
        caps.reported = caps.counters = PMU_GP(1) | PMU_GP(3) | PMU_FIX(2); /* holes */
        CHECK_EQ(diagnose(&caps, DEAD, PMU_GP(3), &bad), PMU_COUNTERS_DEAD);
        CHECK_EQ(bad, PMU_GP(3));
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
