/* SPDX-License-Identifier: MIT */
/* Measures what counters of ring 3 count beyond what ring 3 executes, by visits to ring 3. Each
 * visit executes a known number of instructions and at most one trap, so the difference is what the
 * trap adds. It is used only if it is the same each time. Runs on the first CPU of each kind, when
 * it starts: nobody else uses its PMU.
 *
 * Weaver et al. measured one instruction more for each hardware interrupt and page fault on all
 * x86 processors except the Pentium 4; no manual says so. */
#include "hal/apic.h"
#include "hal/clock.h"
#include "hal/hal.h"
#include "kernel/base/bits.h"
#include "kernel/base/x86.h"
#include "pmu/pmu.h"

#define TRIES 16u
#define FEW 20u      /* turns of two instructions */
#define LONG 100000u /* turns; fewer, where single-stepping makes them take longer than LONG_US */
#define LONG_US 500u
#define LONG_TRIES 4u
#define PERIOD 40u /* the least number of counts to an overflow */
#define PENDING_PAUSES 10000u
_Static_assert((int)HAL_INTERRUPT == (int)PMU_TRAP_INTERRUPT &&
                   (int)HAL_EXCEPTION == (int)PMU_TRAP_EXCEPTION &&
                   (int)HAL_NMI == (int)PMU_TRAP_NMI,
               "the same order");

struct bench {
    void (*visit)(struct hal_visit *);
    struct pmu_measured *measured;
    enum pmu_retired what;
    unsigned ctr;
    uint64_t select;
    unsigned each;  /* counts of one turn */
    uint64_t turns; /* in a long stretch */
    int64_t around; /* counts outside the loop, without traps */
};

bool hal_unmeasured(void) { return pmu_here()->counters && pmu_unmeasured(); }

bool hal_traps_add(void) { return pmu_here()->measured.traps_add; }

int64_t hal_trap_adds(unsigned ctr, enum hal_trap trap)
{
    return pmu_trap_adds(ctr, (enum pmu_trap)trap);
}

/* The count of the visit, without that of the loop's turns. */
static int64_t count(const struct bench *b, struct hal_visit *v, uint64_t select, uint64_t start)
{
    uint64_t mask = pmu_mask(pmu_here(), b->ctr);
    v->selector = pmu_rdpmc_index(b->ctr);
    pmu_program(b->ctr, select, start & mask);
    pmu_start(PMU_BIT(b->ctr));
    b->visit(v);
    pmu_stop(PMU_BIT(b->ctr));
    return (int64_t)((pmu_read(b->ctr) - start) & mask) - (int64_t)(v->turns * b->each);
}

static uint64_t long_stretch(const struct bench *b)
{
    struct hal_visit v = { .what = HAL_VISIT_PLAIN, .turns = FEW };
    for (; v.turns < LONG; v.turns *= 4) {
        uint64_t begin = rdtsc();
        count(b, &v, b->select, 0);
        if (rdtsc() - begin > clock_tsc_hz / 1000000 * LONG_US)
            break;
    }
    return v.turns;
}

static void measure_quiet(struct bench *b)
{
    struct hal_visit v = { .what = HAL_VISIT_PLAIN };
    struct pmu_spread found = { 0 };
    for (unsigned i = 0; i < TRIES + LONG_TRIES; i++) {
        v.turns = i < TRIES ? FEW + i : b->turns;
        pmu_spread_add(&found, count(b, &v, b->select, 0));
    }
    b->around = found.low;
    b->measured->quiet[b->what] = (struct pmu_spread){ 0, found.high - found.low, found.tries };
}

static void measure_exceptions(const struct bench *b)
{
    struct hal_visit v = { .turns = FEW };
    for (unsigned i = 0; i < TRIES; i++) {
        v.what = i % 2 ? HAL_VISIT_UNDEFINED : HAL_VISIT_PAGE_FAULT;
        pmu_spread_add(&b->measured->trap[PMU_TRAP_EXCEPTION][b->what],
                       count(b, &v, b->select, 0) - b->around);
    }
}

/* An interrupt that is pending when ring 3 is entered. */
static void measure_interrupts(const struct bench *b)
{
    struct hal_visit v = { .what = HAL_VISIT_PLAIN, .turns = FEW, .interrupts = true };
    for (unsigned i = 0; i < TRIES; i++) {
        apic_send_self(APIC_PMI_VECTOR);
        for (unsigned pauses = 0; !apic_is_pending(APIC_PMI_VECTOR) && pauses < PENDING_PAUSES;
             pauses++)
            pause();
        int64_t added = count(b, &v, b->select, 0) - b->around;
        if (v.taken == 1)
            pmu_spread_add(&b->measured->trap[PMU_TRAP_INTERRUPT][b->what], added);
    }
}

/* Interrupts or NMIs that the counter's overflow raises in the middle of the loop; their delay is
 * the skid. */
static void measure_overflows(const struct bench *b, enum pmu_trap trap, uint32_t lvt,
                              struct pmu_spread *skid)
{
    struct hal_visit v = { .what = HAL_VISIT_PLAIN,
                           .turns = PERIOD + b->turns / 4,
                           .interrupts = true };
    struct pmu_spread *spread = &b->measured->trap[trap][b->what];
    for (unsigned i = 0; i < TRIES; i++) {
        apic_write_pmi_lvt(lvt);
        int64_t added =
            count(b, &v, b->select | PMU_INTERRUPT, -(uint64_t)(PERIOD + i)) - b->around;
        pmu_take_overflow();
        if (v.taken != 1)
            continue;
        pmu_spread_add(spread, added);
        if (skid)
            pmu_spread_add(skid, (int64_t)v.value);
    }
}

static void measure_retired(struct bench *b, bool nmi)
{
    struct pmu_spread *skid = &b->measured->skid;
    b->turns = long_stretch(b);
    measure_quiet(b);
    measure_exceptions(b);
    measure_interrupts(b);
    measure_overflows(b, PMU_TRAP_INTERRUPT, APIC_PMI_VECTOR,
                      b->what == PMU_RETIRED_INSTRUCTIONS ? skid : NULL);
    if (nmi)
        measure_overflows(b, PMU_TRAP_NMI, APIC_LVT_NMI, NULL);
}

/* The skid as measured contains what the interrupt itself adds. */
static void take_off_interrupts(struct pmu_measured *m)
{
    m->skid.low -= m->trap[PMU_TRAP_INTERRUPT][PMU_RETIRED_INSTRUCTIONS].low;
    m->skid.high -= m->trap[PMU_TRAP_INTERRUPT][PMU_RETIRED_INSTRUCTIONS].low;
}

static bool traps_add(const struct pmu_measured *m)
{
    bool add = false;
    for (unsigned t = 0; t < PMU_TRAPS; t++)
        for (unsigned e = 0; e < PMU_RETIRED; e++)
            add |= pmu_stable(&m->trap[t][e]) && m->trap[t][e].low;
    return add;
}

void hal_measure(void (*visit)(struct hal_visit *), bool nmi)
{
    static const enum pmu_event events[PMU_RETIRED] = { PMU_INSTRUCTIONS, PMU_BRANCHES };
    const struct pmu_kind *pmu = pmu_here();
    uint32_t lvt = apic_read_pmi_lvt();
    struct bench b = { .visit = visit, .measured = pmu_unmeasured() };
    for (unsigned e = 0; e < PMU_RETIRED; e++) {
        uint64_t able = pmu_counters_for(pmu, events[e]);
        if (!able)
            continue;
        b.what = (enum pmu_retired)e;
        b.ctr = bit_lowest(able);
        b.select = pmu_select(pmu, events[e], PMU_USER);
        b.each = e == PMU_RETIRED_INSTRUCTIONS ? 2 : 1;
        measure_retired(&b, nmi);
    }
    take_off_interrupts(b.measured);
    pmu_reset();
    apic_write_pmi_lvt(lvt);
    b.measured->traps_add = traps_add(b.measured);
    b.measured->done = true;
}
