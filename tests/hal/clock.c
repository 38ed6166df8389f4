/* SPDX-License-Identifier: MIT */
/* The clock: which of many readings is taken, what is made of counters that lie, stand still or are
 * disturbed, and whether the rates of this machine are right by every counter that it has. */
#include "tests/harness/kernel.h"

#define MHZ UINT64_C(1000000)
/* clang-format off */
#define GIVEN(mhz) { "given", (mhz) * MHZ, false, false }
#define ROUGH(mhz) { "rough", (mhz) * MHZ, false, true }
#define MEASURED(mhz) { "measured", (mhz) * MHZ, true, false }
#define SILENT { "silent", 0, true, false }
/* clang-format on */
#define READINGS 6

static const struct choice_case {
    struct clock_reading readings[READINGS];
    int taken; /* -1: none */
    uint64_t agree;
} choices[] = {
    /* What is given is taken if it was measured too. */
    { { GIVEN(2112), MEASURED(2110), MEASURED(2113), MEASURED(2111) }, 0, 0xf },
    { { MEASURED(2110), GIVEN(2112), SILENT, SILENT }, 1, 0x3 },
    /* It lies: a crystal of another machine, a multiple, no crystal, garbage. */
    { { GIVEN(2200), MEASURED(2112), SILENT, SILENT }, 1, 0x2 },
    { { GIVEN(2200), GIVEN(2200), MEASURED(2112), MEASURED(2112) }, 2, 0xc },
    { { GIVEN(0), MEASURED(3000), SILENT, ROUGH(3000) }, 1, 0xa },
    { { { "given", 1, false, false }, MEASURED(3000) }, 1, 0x2 },
    { { { "given", ~UINT64_C(0), false, false }, MEASURED(3000) }, 1, 0x2 },
    /* One counter is wrong: two against one, whichever it is; or what is given decides. */
    { { MEASURED(1000), MEASURED(2500), MEASURED(2510) }, 1, 0x6 },
    { { MEASURED(2500), MEASURED(1000), MEASURED(2510) }, 0, 0x5 },
    { { MEASURED(2500), MEASURED(2510), MEASURED(1000) }, 0, 0x3 },
    { { GIVEN(2500), MEASURED(1000), MEASURED(2500), SILENT }, 0, 0x5 },
    { { MEASURED(1000), MEASURED(2500), SILENT, ROUGH(2500) }, 1, 0xa },
    /* All differ: the first counter. */
    { { GIVEN(1500), MEASURED(2000), MEASURED(2500), MEASURED(3000) }, 1, 0x2 },
    /* Nothing was measured. */
    { { GIVEN(2400), SILENT, SILENT, ROUGH(2400) }, 0, 0x9 },
    { { SILENT, SILENT, SILENT, ROUGH(2400) }, 3, 0x8 },
    { { ROUGH(3600), GIVEN(2400), SILENT }, 1, 0x2 },
    { { ROUGH(3600), ROUGH(2400), ROUGH(2400) }, 1, 0x6 },
    /* Nothing at all, or nothing to believe. */
    { { SILENT, SILENT, SILENT }, -1, 0 },
    { { GIVEN(0), SILENT, ROUGH(0) }, -1, 0 },
    { { GIVEN(20001), { "measured", MHZ - 1, true, false } }, -1, 0 },
    /* The bounds of what is believed, and of what agrees. */
    { { GIVEN(20000), SILENT }, 0, 0x1 },
    { { SILENT, MEASURED(1) }, 1, 0x2 },
    { { MEASURED(1000), MEASURED(991), SILENT }, 0, 0x3 },
    { { MEASURED(1000), MEASURED(990), SILENT }, 0, 0x1 },
};

TEST(clock, choice,
     "a measured rate is preferred to a reported one, a majority to a single one, and implausible "
     "rates are ignored")
{
    for (unsigned i = 0; i < ARRAY_SIZE(choices); i++) {
        const struct choice_case *c = &choices[i];
        struct clock_reading r[READINGS + 1] = { { 0 } }; /* the last is none, and agrees */
        memcpy(r, c->readings, sizeof c->readings);
        r[READINGS] = (struct clock_reading)GIVEN(3000);
        if (c->taken >= 0)
            r[READINGS].hz = r[c->taken].hz;
        struct clock_choice found = clock_choose(r, READINGS);
        bool ok = CHECK_EQ(found.taken ? found.taken - r : -1, c->taken);
        if (!(CHECK_EQ(found.agree, c->agree) && ok))
            test_note("choice %u", i);
    }
}

TEST(clock, leaf_15h, "CPUID 15h gives a rate only if crystal, numerator and denominator are there")
{
    static const struct {
        struct cpuid leaf;
        uint64_t hz;
    } cases[] = {
        { { 2, 134, 38400000, 0 }, 2572800000 },
        { { 2, 216, 0, 0 }, 0 },
        { { 0, 216, 24000000, 0 }, 0 },
        { { 2, 0, 24000000, 0 }, 0 },
        { { 1, ~0u, ~0u, 0 }, UINT64_C(0xfffffffe00000001) },
    };
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++)
        CHECK_EQ(clock_tsc_by_15h(&cases[i].leaf), cases[i].hz);
}

/* --- Counters that do not exist, found by the TSC. --- */

#define PER_COUNT 64 /* of the TSC */
static unsigned reads;

static uint64_t read_still(void) { return reads++, 7; }
static uint64_t read_absent(void) { return reads++, ~UINT64_C(0); }
static uint64_t read_good(void) { return reads++, rdtsc() / PER_COUNT; }
static uint64_t read_slow(void) { return reads++ / 100; }
static uint64_t read_backwards(void) { return reads++, ~(rdtsc() / PER_COUNT); }
static uint64_t read_stopping(void) { return reads++ < 300 ? reads : 300; }

static void waste(void)
{
    for (unsigned i = 0; i < 20000; i++)
        asm volatile("");
}

/* Something takes the processor away in two of three readings, before the counter is read or after
 * it. */
static uint64_t read_disturbed(void)
{
    reads++;
    if (reads % 3 == 1)
        waste();
    uint64_t value = rdtsc() / PER_COUNT;
    if (reads % 3 == 2)
        waste();
    return value;
}

/* A host takes the processor away once, after the counter was read and for longer than a counter is
 * waited for. */
static uint64_t read_taken_away(void)
{
    uint64_t value = rdtsc() / PER_COUNT;
    if (++reads == 30)
        for (uint64_t begin = rdtsc(); rdtsc() - begin < 50000000;)
            waste();
    return value;
}

static uint64_t measured(uint64_t (*read)(void), uint64_t hz)
{
    const struct clock_counter counter = { "invented", hz, 0xffffffff, read };
    reads = 0;
    uint64_t flags = read_flags();
    cli();
    uint64_t found = clock_measure_tsc(&counter);
    write_flags(flags);
    return found;
}

TEST(clock, counters,
     "a good counter is measured correctly, even if most of its readings are disturbed [slow]")
{
    for (uint64_t mhz = test_long() ? 1 : 100; mhz <= 100; mhz *= 10) {
        uint64_t want = mhz * MHZ * PER_COUNT;
        /* 1 %: a counter's step is small against the window. */
        CHECK_RANGE(measured(read_good, mhz * MHZ), want - want / 100, want + want / 100);
    }
    uint64_t want = 10 * MHZ * PER_COUNT;
    CHECK_RANGE(measured(read_disturbed, 10 * MHZ), want - want / 100, want + want / 100);
    CHECK_RANGE(measured(read_taken_away, 10 * MHZ), want - want / 100, want + want / 100);
}

/* Looks whether a counter stands still, and the first reading. */
#define READS_STILL 201u
#define WAITED 80000000u /* ticks of the TSC: twice what a counter is waited for */

/* Again if a host took the processor away for as long as a counter is waited for. */
static void gives_up(uint64_t (*read)(void), uint64_t hz, unsigned least, unsigned most)
{
    uint64_t ticks;
    unsigned tries = 0;
    do {
        uint64_t begin = rdtsc();
        CHECK_EQ(measured(read, hz), 0);
        ticks = rdtsc() - begin;
    } while ((reads < least || ticks > WAITED) && ++tries < 10);
    if (!CHECK(reads >= least && reads <= most))
        test_note("%u reads, %lu ticks", reads, ticks);
    CHECK_RANGE(ticks, 1, WAITED);
}

TEST(clock, bad_counters,
     "a counter that is absent, stands still, stops, is too slow or runs backwards ends the "
     "measurement early [slow]")
{
    gives_up(read_good, 0, 0, 0);
    gives_up(read_still, 1000000, READS_STILL, READS_STILL);
    gives_up(read_absent, 1000000, READS_STILL, READS_STILL);
    gives_up(read_stopping, 1000000, 301, ~0u);
    if (test_long()) { /* each as long as a counter that stops */
        gives_up(read_slow, 3579545, 101, ~0u);
        gives_up(read_good, ~UINT64_C(0), 1, ~0u);
    }
    measured(read_backwards, 3579545); /* its differences are those of another rate: any answer,
                                          which the choice judges */
    CHECK_RANGE(reads, 1, ~0u);
}

/* --- This machine. --- */

static uint64_t begin_quiet(void)
{
    uint64_t flags = read_flags();
    test_run_on(0);
    cli();
    return flags;
}

static void end_quiet(uint64_t flags)
{
    write_flags(flags);
    test_run_anywhere();
}

TEST(clock, right, "each counter of known rate on this machine confirms the TSC's rate [slow]")
{
    const struct clock_sources *sources = clock_sources();
    struct clock_counter counters[CLOCK_COUNTERS];
    uint64_t hz[CLOCK_COUNTERS], flags = begin_quiet();
    unsigned answered = 0;
    clock_counters(sources, counters);
    for (unsigned i = 0; i < CLOCK_COUNTERS; i++)
        hz[i] = clock_measure_tsc(&counters[i]);
    end_quiet(flags);
    for (unsigned i = 0; i < CLOCK_COUNTERS; i++) {
        answered += hz[i] != 0;
        if (hz[i] && !CHECK_RANGE(hz[i], clock_tsc_hz - clock_tsc_hz / 100,
                                  clock_tsc_hz + clock_tsc_hz / 100))
            test_note("%s", counters[i].name);
    }
    SKIP_IF(!answered, "no counter of known rate answers");
}

TEST(clock, steady,
     "a counter that is read again and again never steps back; the speaker stays off [slow]")
{
    struct clock_counter counters[CLOCK_COUNTERS];
    uint64_t flags = begin_quiet();
    out8(0x61, in8(0x61) | 2);
    clock_counters(clock_sources(), counters);
    if (in8(0x61) != 0xff) /* there is such a port */
        CHECK_EQ(in8(0x61) & 3, 1);
    for (unsigned i = 0; i < CLOCK_COUNTERS; i++) {
        uint64_t last = counters[i].hz ? counters[i].read() : 0, back = 0;
        for (unsigned n = 0; n < 40000 && counters[i].hz; n++) {
            uint64_t now = counters[i].read();
            back += ((now - last) & counters[i].mask) > counters[i].mask / 2;
            last = now;
        }
        if (!CHECK_EQ(back, 0))
            test_note("%s", counters[i].name);
    }
    end_quiet(flags);
}

TEST(clock, width, "the PM timer counts with 32 bits where the FADT says so, else with 24")
{
    struct clock_sources sources = *clock_sources();
    struct clock_counter counters[CLOCK_COUNTERS];
    for (unsigned wide = 0; wide < 2; wide++) {
        sources.pm_timer_32 = wide;
        uint64_t flags = begin_quiet();
        clock_counters(&sources, counters);
        end_quiet(flags);
        CHECK_EQ(counters[CLOCK_PM_TIMER].mask, wide ? 0xffffffff : 0xffffff);
    }
}

TEST(clock, timer, "the APIC timer counts at the rate that was determined")
{
    uint64_t flags = begin_quiet();
    uint64_t hz = clock_measure_timer(clock_tsc_hz);
    apic_timer_change(apic_timer_period());
    end_quiet(flags);
    CHECK_RANGE(hz, apic_timer_hz - apic_timer_hz / 100, apic_timer_hz + apic_timer_hz / 100);
}

static void read_tsc(void *tsc) { *(uint64_t *)tsc = rdtsc(); }

TEST(clock, cpus_agree,
     "the TSC of each CPU, read by a call, is between two readings of the caller")
{
    SKIP_WITH_ONE_CPU();
    for (unsigned cpu = 0; test_run_on_each(cpu); cpu++) {
        for (unsigned other = 0; other < cpu_count; other++) {
            uint64_t there = 0, before = rdtsc();
            smp_call(cpu_set_one(other), read_tsc, &there);
            uint64_t after = rdtsc();
            if (!cpus[cpu]->tsc_behind && !cpus[other]->tsc_behind)
                CHECK(there >= before && there <= after);
        }
    }
}

TEST(clock, begins, "the clock begins at 0, or with the word wrap a second before 2^32 ms")
{
    CHECK_RANGE(clock_ns() - (boot_wraps() ? 4294966296000000ul : 0), 1, 3600000000000ul);
}

TEST(clock, wall, "the real-time clock's seconds are read as BCD or as binary")
{
    CHECK_EQ(clock_rtc_seconds(0x59, false), 59);
    CHECK_EQ(clock_rtc_seconds(59, true), 59);
    CHECK_EQ(clock_rtc_seconds(0x10, true), 16);
    CHECK_EQ(clock_rtc_seconds(0xff, true), 15); /* no clock there: any number of seconds */
}
