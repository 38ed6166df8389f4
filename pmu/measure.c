/* SPDX-License-Identifier: MIT */
/* Measures what ring 0 can measure of a PMU, between the WRMSR that enables a counter and the one
 * that disables it, and prints all measurements in one line. Nobody else uses the PMU; interrupts
 * are off. */
#include "kernel/base/bits.h"
#include "kernel/base/print.h"
#include "kernel/base/x86.h"
#include "pmu/selftest.h"

#define TRIES 8u
#define RUNS 3u      /* of each try */
#define FEW 10u      /* iterations of a loop */
#define LONG 100000u /* iterations, or fewer if they take over LONG_TICKS of the TSC */
#define LONG_TICKS 1000000u
#define LOOP_AT_ONCE 10000u /* iterations: they take many reference cycles */
#define EXIT_LOOP 5         /* instructions of an iteration, one of which exits */
#define FEW_EXITS 2u        /* such iterations: in a virtual machine they take long */

void pmu_spread_add(struct pmu_spread *s, int64_t value)
{
    s->low = !s->tries || value < s->low ? value : s->low;
    s->high = !s->tries || value > s->high ? value : s->high;
    s->tries++;
}

typedef unsigned run_function(const struct pmu_gate *gate, uint64_t loops);

/* What the counter shows after the loops, including the instructions around them. */
static int64_t count_of_loops(unsigned ctr, uint64_t select, run_function *run, uint64_t loops)
{
    pmu_program(ctr, select, 0);
    struct pmu_gate gate = pmu_gate(ctr);
    run(&gate, loops);
    return (int64_t)pmu_read(ctr);
}

/* Without what an SMI adds, which comes in few of the runs. */
static int64_t least_count(unsigned ctr, uint64_t select, run_function *run, uint64_t loops)
{
    int64_t found = INT64_MAX;
    for (unsigned i = 0; i < RUNS; i++) {
        int64_t n = count_of_loops(ctr, select, run, loops);
        found = n < found ? n : found;
    }
    return found;
}

/* What one more instruction that exits counts, beyond the other instructions of its iteration. */
static void measure_exits(struct pmu_spread *s, unsigned ctr, uint64_t select, int64_t others)
{
    int64_t before = least_count(ctr, select, pmu_hardware.run_exits, FEW_EXITS);
    for (unsigned i = 0; i < TRIES; i++) {
        int64_t now = least_count(ctr, select, pmu_hardware.run_exits, FEW_EXITS + i + 1);
        pmu_spread_add(s, now - before - others);
        before = now;
    }
}

static void measure_instructions(struct pmu_measured *m, unsigned ctr, uint64_t select)
{
    for (unsigned i = 0; i < TRIES; i++)
        pmu_spread_add(&m->enabling, least_count(ctr, select, pmu_hardware.run, FEW + i) -
                                         2 * (int64_t)(FEW + i) - (int64_t)PMU_RUN_AROUND + 1);
    measure_exits(&m->exit, ctr, select, EXIT_LOOP - 1);
    measure_exits(&m->exit_at_255, ctr, select | PMU_THRESHOLD(255), 0);
}

/* Iterations of a long measurement, fewer where each instruction is single-stepped. */
static uint64_t choose_iterations(unsigned ctr, uint64_t select)
{
    uint64_t loops = FEW;
    for (; loops < LONG; loops *= 4) {
        uint64_t begin = rdtsc();
        count_of_loops(ctr, select, pmu_hardware.run, loops);
        if (rdtsc() - begin > LONG_TICKS)
            break;
    }
    return loops;
}

static bool find_counter(const struct pmu_kind *kind, enum pmu_event event, unsigned *ctr,
                         uint64_t *select)
{
    uint64_t able = pmu_counters_for(kind, event);
    if (!able)
        return false;
    *ctr = bit_lowest(able);
    *select = pmu_select(kind, event, PMU_KERNEL);
    return true;
}

/* Cycles in 1,000 of an event that comes at a constant rate. */
static void measure_rate(const struct pmu_kind *kind, enum pmu_event event, uint64_t loops,
                         int64_t cycles, struct pmu_spread *s)
{
    unsigned ctr;
    uint64_t select;
    if (!find_counter(kind, event, &ctr, &select))
        return;
    int64_t ticks = count_of_loops(ctr, select, pmu_hardware.run, loops);
    if (ticks > 0)
        pmu_spread_add(s, cycles * 1000 / ticks);
}

static void measure_cycles(const struct pmu_kind *kind, struct pmu_measured *m)
{
    unsigned ctr;
    uint64_t select;
    if (!find_counter(kind, PMU_CYCLES, &ctr, &select))
        return;
    uint64_t loops = choose_iterations(ctr, select);
    for (unsigned i = 0; i < TRIES; i++) {
        int64_t cycles = count_of_loops(ctr, select, pmu_hardware.run, loops);
        pmu_spread_add(&m->cycles, cycles * 1000 / (int64_t)(2 * loops));
        measure_rate(kind, PMU_BUS_CYCLES, loops, cycles, &m->bus_cycle);
        measure_rate(kind, PMU_REF_CYCLES, loops, cycles, &m->ref_cycle);
    }
}

/* An event that must happen, on this counter; PMU_EVENT_COUNT: none. */
static enum pmu_event certain_event(const struct pmu_kind *kind, unsigned ctr)
{
    static const enum pmu_event events[] = { PMU_INSTRUCTIONS, PMU_CYCLES, PMU_REF_CYCLES };
    for_each_in(e, events)
        if (pmu_counters_for(kind, *e) >> ctr & 1)
            return *e;
    return PMU_EVENT_COUNT;
}

static void measure_at_once(const struct pmu_kind *kind, struct pmu_measured *m)
{
    uint64_t all = 0;
    for_each_bit(ctr, kind->counters) {
        enum pmu_event event = certain_event(kind, ctr);
        if (event == PMU_EVENT_COUNT)
            continue;
        pmu_program(ctr, pmu_select(kind, event, PMU_KERNEL), 0);
        all |= PMU_BIT(ctr);
    }
    pmu_start(all);
    for (unsigned i = 0; i < LOOP_AT_ONCE; i++)
        asm volatile("");
    pmu_stop(all);
    for_each_bit(ctr, all) {
        m->wanted++;
        m->at_once += pmu_read((unsigned)ctr) != 0;
    }
}

static void measure_tsc(struct pmu_measured *m)
{
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t first = rdtsc(), next;
        while ((next = rdtsc()) == first)
            pause();
        pmu_spread_add(&m->tsc, (int64_t)(next - first));
    }
}

void pmu_measure(struct pmu_kind *kind)
{
    unsigned ctr;
    uint64_t select;
    measure_tsc(&kind->measured);
    if (find_counter(kind, PMU_INSTRUCTIONS, &ctr, &select))
        measure_instructions(&kind->measured, ctr, select);
    measure_cycles(kind, &kind->measured);
    measure_at_once(kind, &kind->measured);
}

/* --- Printing. --- */

/* "1", "0 to 2" */
static void print_spread(const char *before, const struct pmu_spread *s, const char *after)
{
    if (!s->tries)
        return;
    print("%s%ld", before, s->low);
    if (s->low != s->high)
        print(" to %ld", s->high);
    print("%s", after);
}

/* Prints 250 as "0.250"; the average of both ends is exact enough. */
static void print_thousandths(const char *before, const struct pmu_spread *s, const char *after)
{
    int64_t mean = (s->low + s->high) / 2;
    if (s->tries)
        print("%s%ld.%03ld%s", before, mean / 1000, mean % 1000, after);
}

static void print_traps(const struct pmu_measured *m)
{
    static const char *const names[PMU_TRAPS] = { "an interrupt adds ", ", an exception ",
                                                  ", an NMI " };
    bool any = false, measured = false;
    for (unsigned t = 0; t < PMU_TRAPS; t++)
        for (unsigned e = 0; e < PMU_RETIRED; e++) {
            any |= m->trap[t][e].low || m->trap[t][e].high;
            measured |= m->trap[t][e].tries;
        }
    if (!any)
        print(measured ? "traps add nothing to ring 3" : "no trap was measured");
    for (unsigned t = 0; t < PMU_TRAPS && any; t++) {
        print_spread(names[t], &m->trap[t][PMU_RETIRED_INSTRUCTIONS], "");
        print_spread(" + ", &m->trap[t][PMU_RETIRED_BRANCHES], "");
    }
    if (any)
        print(" instructions + branches to ring 3");
}

const char *pmu_ring3_inexact(const struct pmu_kind *kind)
{
    const struct pmu_measured *m = &kind->measured;
    if (kind->unfenced)
        return "LFENCE does not wait: RDPMC may lack some instructions";
    if (!m->quiet[PMU_RETIRED_INSTRUCTIONS].tries)
        return "what traps add to ring 3's counts was not measured";
    if (m->quiet[PMU_RETIRED_INSTRUCTIONS].high)
        return "ring 3's counts differ where nothing happens";
    for (unsigned t = 0; t < PMU_TRAPS; t++) {
        const struct pmu_spread *added = &m->trap[t][PMU_RETIRED_INSTRUCTIONS];
        if (added->tries && !pmu_stable(added))
            return "traps add to ring 3's counts, and not the same each time";
        if (added->tries && !pmu_trap_known(added))
            return "ring 3's counts differ by more than a trap can add";
    }
    return NULL;
}

void pmu_report_measured(const struct pmu_kind *kind)
{
    const struct pmu_measured *m = &kind->measured;
    const char *inexact = pmu_ring3_inexact(kind);
    if (!kind->counters)
        return;
    print("# measured: ");
    print_traps(m);
    print("%s%s", inexact ? ": " : m->traps_add ? ", taken off" : "", inexact ? inexact : "");
    print_spread("; PMI ", &m->skid, " late");
    if (m->pmis.high > 1)
        print_spread("; an overflow raises ", &m->pmis, " PMIs");
    print_spread("; enabling counts ", &m->enabling, "");
    print_spread(", an exit ", &m->exit, "");
    print_spread(", at threshold 255 ", &m->exit_at_255, "");
    print_thousandths("; cycles per instruction ", &m->cycles, "");
    print_thousandths(", per bus cycle ", &m->bus_cycle, "");
    if (m->ref_cycle.high != 1000)
        print_thousandths(", per reference cycle ", &m->ref_cycle, "");
    print_spread("; TSC step ", &m->tsc, "");
    if (m->at_once < m->wanted)
        print("; only %u of %u counters count at the same time: the host has the others",
              m->at_once, m->wanted);
    for (unsigned e = 0; e < PMU_RETIRED; e++)
        if (m->stood[e])
            print("; %s of ring 3 were not counted in %u of %u tries",
                  e == PMU_RETIRED_BRANCHES ? "branches" : "instructions", m->stood[e],
                  m->stood[e] + m->quiet[e].tries);
    if (m->lost)
        print("; %u tries lost counts: something stops a counter that overflows", m->lost);
    print("\n");
}
