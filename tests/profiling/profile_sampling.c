/* SPDX-License-Identifier: MIT */
/* Sampling by counters, and by time: the number of interrupts, the addresses that they interrupt,
 * and their cost.
 *
 * Source: KP-28 and PO-61 of tests/contract.md. */
#include "tests/harness/lab.h"

#define PERIOD 10000u
#define SAMPLES 1000u
#define LOOP_INSTRUCTIONS 10u /* profile_loop.asm */
#define LOOP_BYTES 64
#define COST_MAX 212  /* instructions of one interrupt */
#define X2APIC_MORE 6 /* EOI and the LVT entry, each with three MOVs more */
#define ACCESSES_MAX 5

static ULONG loop_counts[LOOP_BYTES / 4], all_counts[1];

struct sampling {
    HANDLE loop, all, owner;
    unsigned armed, unarmed; /* counters */
};

/* The counter that samples by the source on this CPU; 64: none. */
static unsigned sampling_counter(KPROFILE_SOURCE source)
{
    unsigned ctr = 0;
    while (ctr < 64 && hal_profile_source(ctr, cpu_number()) != source)
        ctr++;
    return ctr;
}

/* On CPU 0: a counter that only counts, and two objects, of the loop and of all kernel code. */
static bool sampling_start(struct sampling *s, ULONG period)
{
    uint64_t able =
        pmu_counters_for(pmu_of(0), PMU_INSTRUCTIONS) & hal_counters_available(cpu_set_one(0));
    memset(loop_counts, 0, sizeof loop_counts);
    all_counts[0] = 0;
    *s = (struct sampling){ .unarmed = 63u - (unsigned)__builtin_clzll(able | 1) };
    if (!CHECK(able != 0) || !CHECK_STATUS(hal_counters_claim("unarmed", cpu_set_one(0),
                                                              PMU_BIT(s->unarmed), NULL, &s->owner),
                                           STATUS_SUCCESS))
        return false;
    test_run_on(0);
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_program(s->unarmed, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_USER | PMU_KERNEL), 0);
    pmu_start(PMU_BIT(s->unarmed));
    irql_lower(old);
    CHECK_EQ(hal_source_set_interval(SOURCE, period), period);
    s->loop = profile_made((uint64_t)profile_loop_start,
                           (uint64_t)(profile_loop_end - profile_loop_start), 2, loop_counts,
                           sizeof loop_counts, SOURCE, 1);
    s->all = profile_made(KERNEL_VMA, 0x7fffffff, 31, all_counts, sizeof all_counts, SOURCE, 1);
    profile_start(s->loop);
    profile_start(s->all);
    s->armed = sampling_counter(SOURCE);
    return CHECK(s->armed < 64 && s->armed != s->unarmed);
}

static void sampling_end(struct sampling *s)
{
    CHECK_STATUS(NtClose(s->loop), STATUS_SUCCESS);
    CHECK_STATUS(NtClose(s->all), STATUS_SUCCESS);
    CHECK_STATUS(HalFreeHardwareCounters(s->owner), STATUS_SUCCESS);
    hal_source_set_interval(SOURCE, 65536);
    test_run_anywhere();
}

/* Both counters at one moment, and the samples so far. */
struct moment {
    uint64_t armed, unarmed, samples;
};

static struct moment moment_of(const struct sampling *s, ULONG period)
{
    struct moment m;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    do { /* again if a sample came between, as an NMI does at any IRQL */
        m.samples = __atomic_load_n(&all_counts[0], __ATOMIC_ACQUIRE);
        /* Events since the last sample. */
        m.armed = (pmu_read(s->armed) + period) & pmu_mask(pmu_here(), s->armed);
        m.unarmed = pmu_read(s->unarmed);
    } while (m.samples != __atomic_load_n(&all_counts[0], __ATOMIC_ACQUIRE));
    irql_lower(old);
    return m;
}

static uint64_t sum(const ULONG *counts, unsigned n)
{
    uint64_t total = 0;
    while (n--)
        total += counts[n];
    return total;
}

/* What was measured to count too much or too little, in events: a rule of silicon, where enabling
 * counts otherwise than once. */
static uint64_t late_and_enabling(uint64_t samples)
{
    int64_t offset = pmu_here()->offset, late = pmu_here()->measured.skid.high;
    return samples * (uint64_t)(offset < 0 ? -offset : offset) +
           2 * (late > 0 ? (uint64_t)late : 0);
}

static uint64_t lost_everywhere(void)
{
    uint64_t lost = 0;
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        lost += hal_profile_lost[cpu];
    return lost;
}

TEST(profile_sampling, exact,
     "1,000 samples times their interval are what a second counter counted, and all samples are in "
     "the loop [KP-28 PO-61]")
{
    struct sampling s;
    unsigned wanted = test_long() ? SAMPLES : SAMPLES / 25;
    SKIP_WITHOUT_SOURCE();
    uint64_t lost_before = lost_everywhere();
    REQUIRE(sampling_start(&s, PERIOD));
    struct moment before = moment_of(&s, PERIOD);
    profile_loop_alone((uint64_t)wanted * PERIOD / LOOP_INSTRUCTIONS);
    hal_profile_collect(cpu_set_one(0));
    uint64_t lost = lost_everywhere() - lost_before;
    struct moment after = moment_of(&s, PERIOD);
    uint64_t events = (after.unarmed - before.unarmed) & pmu_mask(pmu_here(), s.unarmed);
    uint64_t samples = after.samples - before.samples;
    sampling_end(&s);
    if (lost)
        test_note("%lu samples, of which %lu of overflows whose interrupt was lost", samples, lost);
    CHECK_RANGE(samples, wanted, wanted + wanted / 4); /* with the interrupts' own */
    /* At most one sample is due at either end, and late; each counts once more the write that
     * enables. */
    uint64_t around = PERIOD + late_and_enabling(samples);
    CHECK_RANGE(samples * PERIOD, events - around, events + around);
    /* Where a single write stops both counters, no event is lost between samples. */
    if (pmu_here()->msr.global_control)
        CHECK_EQ(samples * PERIOD + after.armed - before.armed, events);
    /* At most two are in this test's own instructions, before and after. Those whose interrupt was
     * lost are where a tick found them, or here. */
    CHECK_RANGE(sum(loop_counts, LOOP_BYTES / 4) + lost, samples - 2, samples + lost);
}

TEST(profile_sampling, interrupts_off,
     "code with interrupts off is sampled by NMIs; otherwise all its samples come where interrupts "
     "are enabled")
{
    struct sampling s;
    SKIP_WITHOUT_SOURCE();
    REQUIRE(sampling_start(&s, PERIOD));
    uint64_t lost = lost_everywhere();
    cli();
    profile_loop(10 * PERIOD / LOOP_INSTRUCTIONS);
    sti();
    uint64_t found = sum(loop_counts, LOOP_BYTES / 4);
    hal_profile_collect(cpu_set_one(0));
    lost = lost_everywhere() - lost;
    sampling_end(&s);
    if (hal_pmi_is_nmi())
        CHECK_RANGE(found + lost, 9, 10u + (lost != 0));
    else
        CHECK_EQ(found, 0);
    CHECK_RANGE(all_counts[0], 10, 12);                   /* with those of the start and the stop */
    memset(hal_profile_lost, 0, sizeof hal_profile_lost); /* those of this test are no defect */
}

/* --- What an interrupt costs. --- */

struct interrupt_cost {
    uint64_t instructions; /* from the vector to IRET */
    struct vpmu_accesses accesses;
};

/* Instructions beside those of the loop. */
static uint64_t retired_around_loop(uint64_t iterations)
{
    uint64_t before = vpmu_retired();
    profile_loop(iterations);
    return vpmu_retired() - before - LOOP_INSTRUCTIONS * iterations;
}

/* Measures one sample, with a loop of one and a half periods, against a loop without a sample.
 * False if a timer tick intervened, or a sample may be outside the loop. */
static bool measure_sample(const struct sampling *s, unsigned try, struct interrupt_cost *cost)
{
    const uint64_t iterations = PERIOD * 3 / 2 / LOOP_INSTRUCTIONS;
    hal_profile_collect(cpu_set_one(0)); /* if the last try's was lost */
    KIRQL old = irql_raise(DISPATCH_LEVEL);
    /* Half a period and more, each time another; any sample that was close is past. */
    profile_loop(PERIOD / 20 + try * 7 % (PERIOD / 10));
    uint64_t before = sum(loop_counts, LOOP_BYTES / 4), ticks = trap_counts[VECTOR_TIMER];
    struct vpmu_accesses a = vpmu_accesses();
    uint64_t without = retired_around_loop(1);
    /* Read later, so too small by some. */
    uint64_t left = -pmu_read(s->armed) & pmu_mask(pmu_here(), s->armed);
    if (left < PERIOD)
        cost->instructions = retired_around_loop(iterations) - without;
    cost->accesses = vpmu_accesses_since(a);
    cost->accesses.rdpmc = 0; /* the test's own */
    uint64_t samples = sum(loop_counts, LOOP_BYTES / 4) - before;
    irql_lower(old);
    bool just_one = samples == 1 && left > PERIOD * 6 / 10 && left < PERIOD * 9 / 10;
    return just_one && ticks == trap_counts[VECTOR_TIMER];
}

TEST(profile_sampling, cost,
     "an interrupt that samples costs at most 5 accesses to PMU MSRs and 212 instructions, from "
     "its vector to IRET")
{
    struct sampling s;
    struct interrupt_cost cost = { 0 };
    bool measured = false;
    SKIP_WITHOUT_SOURCE();
    SKIP_WITHOUT_VPMU();
    REQUIRE(sampling_start(&s, PERIOD));
    profile_stop(s.all);
    for (unsigned i = 0; i < 200 && !measured; i++)
        measured = measure_sample(&s, i, &cost);
    sampling_end(&s);
    REQUIRE(measured);
    cost_tell(cost.instructions, cost.accesses, "one sample");
    if (pmu_here()->msr.global_control && !hal_pmi_is_nmi()) {
        uint64_t pmis = lab_pmis(1).high;
        CHECK_RANGE(cost.accesses.rdmsr + cost.accesses.wrmsr, 1, ACCESSES_MAX * pmis);
        CHECK_RANGE(cost.instructions, 100, /* the entry alone */
                    (COST_MAX + (apic_x2 ? X2APIC_MORE : 0)) * pmis);
    }
}

/* Ticks of this processor and samples of its time, with no tick between. */
static struct between {
    uint64_t ticks, samples;
} look(const ULONG *counts)
{
    KIRQL old = irql_raise(HIGH_LEVEL);
    struct between now = { cpu_current()->ticks, __atomic_load_n(counts, __ATOMIC_RELAXED) };
    irql_lower(old);
    return now;
}

TEST(profile_sampling, between_ticks,
     "an interval of one and a half ticks gives two samples in three ticks: the remainder is not "
     "lost")
{
    ULONG counts = 0;
    ULONG before = hal_source_interval(ProfileTime);
    unsigned ticks_wanted = test_long() ? 60 : 12;
    test_run_on(0);
    const volatile uint64_t *ticks = &cpus[0]->ticks;
    hal_source_set_interval(ProfileTime, (ULONG)(sched_tick_ns() * 3 / 2 / 100));
    HANDLE profile =
        profile_made(0xffffffff80000000, 0x40000000, 30, &counts, sizeof counts, ProfileTime, 1);
    profile_start(profile);
    struct between first = look(&counts);
    for (uint64_t looks = 1; *ticks < first.ticks + ticks_wanted; looks++)
        pause_rarely(looks);
    struct between last = look(&counts);
    CHECK_STATUS(NtClose(profile), STATUS_SUCCESS);
    uint64_t thirds = 2 * (last.ticks - first.ticks);
    CHECK_BECAUSE(3 * (last.samples - first.samples), thirds - 2, thirds + 2,
                  "what is left of a sample at the first look and at the last");
    hal_source_set_interval(ProfileTime, before);
}
