/* SPDX-License-Identifier: MIT */
/* Measures what counters of ring 3 count beyond what ring 3 executes, by runs in ring 3. Each
 * run executes a known number of instructions and at most one trap, so the difference is what the
 * trap adds. It is used only if it is the same each time. Runs on the first CPU of each kind, when
 * it starts: nobody else uses its PMU.
 *
 * Weaver et al. measured one instruction more for each hardware interrupt and page fault on all
 * x86 processors except the Pentium 4; no manual says so. */
#include "hal/machine/apic.h"
#include "hal/machine/clock.h"
#include "hal/measure_traps.h"
#include "kernel/base/bits.h"
#include "kernel/base/x86.h"
#include "pmu/pmu.h"

#define TRIES 16u
#define FEW 20u /* iterations of two instructions */
#define LONG                                                                                       \
    100000u /* iterations; fewer, where single-stepping makes them take longer than LONG_US */
#define LONG_US 500u
#define LONG_TRIES 4u
#define PERIOD 40u /* the least number of counts to an overflow */
#define PENDING_PAUSES 10000u
#define LATE 1000u /* iterations at least, and at most so often, for a late interrupt */
#define LATE_RUNS 8u
#define LOST_TRIES 8u /* after so many tries that lost counts an overflow is not tried again */
#define LOST_US 2000u /* a host that stops a counter starts it again in less, if a tick is 1 ms */
_Static_assert((int)HAL_INTERRUPT == (int)PMU_TRAP_INTERRUPT &&
                   (int)HAL_EXCEPTION == (int)PMU_TRAP_EXCEPTION &&
                   (int)HAL_NMI == (int)PMU_TRAP_NMI,
               "the same order");

struct bench {
    void (*run)(struct hal_ring3_run *);
    struct pmu_measured *measured;
    enum pmu_retired what;
    unsigned ctr;
    uint64_t select;
    unsigned each;       /* counts of one iteration */
    uint64_t iterations; /* in a long stretch */
    int64_t around;      /* counts outside the loop, without traps */
};

bool hal_unmeasured(void) { return pmu_here()->counters && pmu_unmeasured(); }

bool hal_traps_add(void) { return pmu_here()->measured.traps_add; }

int64_t hal_trap_adds(unsigned ctr, enum hal_trap trap)
{
    return pmu_trap_adds(ctr, (enum pmu_trap)trap);
}

/* The count of the run, without that of the loop's iterations. */
static int64_t count_of_run(const struct bench *b, struct hal_ring3_run *v, uint64_t select,
                            uint64_t start)
{
    uint64_t mask = pmu_mask(pmu_here(), b->ctr);
    v->selector = pmu_rdpmc_index(b->ctr);
    pmu_program(b->ctr, select, start & mask);
    pmu_start(PMU_BIT(b->ctr));
    b->run(v);
    pmu_stop(PMU_BIT(b->ctr));
    return (int64_t)((pmu_read(b->ctr) - start) & mask) - (int64_t)(v->iterations * b->each);
}

static uint64_t long_stretch(const struct bench *b)
{
    struct hal_ring3_run v = { .what = HAL_RING3_PLAIN, .iterations = FEW };
    for (; v.iterations < LONG; v.iterations *= 4) {
        uint64_t begin = rdtsc();
        count_of_run(b, &v, b->select, 0);
        if (rdtsc() - begin > clock_tsc_hz / 1000000 * LONG_US)
            break;
    }
    return v.iterations;
}

static void measure_quiet(struct bench *b)
{
    struct hal_ring3_run v = { .what = HAL_RING3_PLAIN };
    struct pmu_spread found = { 0 };
    for (unsigned i = 0; i < TRIES + LONG_TRIES; i++) {
        v.iterations = i < TRIES ? FEW + i : b->iterations;
        int64_t around = count_of_run(b, &v, b->select, 0);
        if (around < 0)
            b->measured->stood[b->what]++;
        else
            pmu_spread_add(&found, around);
    }
    b->around = found.low;
    b->measured->quiet[b->what] = (struct pmu_spread){ 0, found.high - found.low, found.tries };
}

static void measure_exceptions(const struct bench *b)
{
    struct hal_ring3_run v = { .iterations = FEW };
    for (unsigned i = 0; i < TRIES; i++) {
        v.what = i % 2 ? HAL_RING3_UNDEFINED : HAL_RING3_PAGE_FAULT;
        pmu_spread_add(&b->measured->trap[PMU_TRAP_EXCEPTION][b->what],
                       count_of_run(b, &v, b->select, 0) - b->around);
    }
}

/* An interrupt that is pending when ring 3 is entered. */
static void measure_interrupts(const struct bench *b)
{
    struct hal_ring3_run v = { .what = HAL_RING3_PLAIN, .iterations = FEW, .interrupts = true };
    for (unsigned i = 0; i < TRIES; i++) {
        apic_send_self(APIC_PMI_VECTOR);
        for (unsigned pauses = 0; !apic_is_pending(APIC_PMI_VECTOR) && pauses < PENDING_PAUSES;
             pauses++)
            pause();
        int64_t added = count_of_run(b, &v, b->select, 0) - b->around;
        if (v.taken == 1)
            pmu_spread_add(&b->measured->trap[PMU_TRAP_INTERRUPT][b->what], added);
    }
}

static void wait_us(uint64_t us)
{
    uint64_t start = rdtsc();
    while (rdtsc() - start < clock_tsc_hz / 1000000 * us)
        pause();
}

/* What each of several traps added; two numbers if they did not add the same. */
static void add_each(struct pmu_spread *s, int64_t added, unsigned traps)
{
    pmu_spread_add(s, added / traps);
    if (added % traps)
        pmu_spread_add(s, added / traps + 1);
}

/* As long as the loop, or the skid if that was measured; what was not waited for would come in the
 * next try. */
static uint64_t wait_iterations(const struct bench *b)
{
    uint64_t loop = b->iterations / 4, skid = (uint64_t)b->measured->skid.high;
    return PERIOD + (skid > loop && skid < LONG ? skid : loop);
}

/* What came in the run came of this overflow alone: not an NMI that is nobody's, nor a late
 * interrupt of the try before. */
static bool is_undisturbed(const struct bench *b, const struct hal_ring3_run *v, enum pmu_trap trap)
{
    return v->nmis == (trap == PMU_TRAP_NMI ? v->taken : 0) &&
           v->value <= pmu_mask(pmu_here(), b->ctr) / 2;
}

/* A run in which the counter overflows, and more, in which it counts on, until the interrupt has
 * come: it would come in the next try. Returns what the last one counted beside its loop. */
static int64_t count_of_overflow(const struct bench *b, struct hal_ring3_run *v, unsigned period)
{
    v->iterations = wait_iterations(b);
    int64_t around = count_of_run(b, v, b->select | PMU_INTERRUPT, -(uint64_t)period);
    v->iterations = v->iterations < LATE ? LATE : v->iterations;
    for (unsigned i = 0; i < LATE_RUNS && !v->taken && around >= 0; i++)
        around = count_of_run(b, v, b->select, pmu_read(b->ctr));
    return around - b->around;
}

/* Interrupts or NMIs that the counter's overflow raises in the middle of the loop; the delay of the
 * first is the skid. Some hosts raise each twice. A host may stop a counter that overflows often
 * (Linux' perf does): then it counts less than ring 3 executed, which says nothing about the trap.
 */
static void measure_overflows(const struct bench *b, enum pmu_trap trap, uint32_t lvt)
{
    struct hal_ring3_run v = { .what = HAL_RING3_PLAIN, .interrupts = true };
    struct pmu_measured *m = b->measured;
    bool skids = trap == PMU_TRAP_INTERRUPT && b->what == PMU_RETIRED_INSTRUCTIONS;
    for (unsigned i = 0, lost = 0; i < TRIES && lost < LOST_TRIES; i++) {
        apic_write_pmi_lvt(lvt);
        int64_t added = count_of_overflow(b, &v, PERIOD + i);
        pmu_take_overflow();
        if (added < 0) {
            lost++;
            m->lost++;
            wait_us(LOST_US);
        } else if (v.taken && is_undisturbed(b, &v, trap)) {
            add_each(&m->trap[trap][b->what], added, v.taken);
            if (trap == PMU_TRAP_INTERRUPT)
                pmu_spread_add(&m->pmis, v.taken);
            if (skids)
                pmu_spread_add(&m->skid, (int64_t)v.value);
        }
    }
}

static bool traps_add(const struct pmu_measured *m)
{
    bool add = false;
    for_each_in(events, m->trap)
        for_each_in(trap, *events)
            add |= pmu_trap_known(trap) && trap->low;
    return add;
}

void hal_measure(void (*run)(struct hal_ring3_run *), bool nmi)
{
    static const enum pmu_event events[PMU_RETIRED] = { PMU_INSTRUCTIONS, PMU_BRANCHES };
    const struct pmu_kind *pmu = pmu_here();
    uint32_t lvt = apic_read_pmi_lvt();
    struct pmu_measured *m = pmu_unmeasured();
    struct bench benches[PMU_RETIRED];
    unsigned n = 0;
    for (unsigned e = 0; e < PMU_RETIRED; e++) {
        uint64_t able = pmu_counters_for(pmu, events[e]);
        if (!able)
            continue;
        struct bench *b = &benches[n];
        *b = (struct bench){ .run = run,
                             .measured = m,
                             .what = (enum pmu_retired)e,
                             .ctr = bit_lowest(able),
                             .select = pmu_select(pmu, events[e], PMU_USER),
                             .each = e == PMU_RETIRED_INSTRUCTIONS ? 2 : 1 };
        b->iterations = long_stretch(b);
        measure_quiet(b);
        if (!m->quiet[e].tries)
            continue;
        n++;
        measure_exceptions(b);
        measure_interrupts(b);
    }
    /* Overflows come last: a host that stops the counter for them disturbs nothing else. */
    for (unsigned i = 0; i < n; i++) {
        measure_overflows(&benches[i], PMU_TRAP_INTERRUPT, APIC_PMI_VECTOR);
        if (nmi)
            measure_overflows(&benches[i], PMU_TRAP_NMI, APIC_LVT_NMI);
    }
    /* The skid as measured contains what the interrupt itself adds. */
    const struct pmu_spread *added = &m->trap[PMU_TRAP_INTERRUPT][PMU_RETIRED_INSTRUCTIONS];
    if (pmu_trap_known(added) && m->skid.low >= added->low) {
        m->skid.low -= added->low;
        m->skid.high -= added->low;
    }
    pmu_reset();
    apic_write_pmi_lvt(lvt);
    m->traps_add = traps_add(m);
    m->done = true;
}
