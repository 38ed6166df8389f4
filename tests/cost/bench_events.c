/* SPDX-License-Identifier: MIT */
/* Which events a snippet is measured by, and which counters count them. */
#include "tests/cost/bench.h"
#include "tests/harness/kernel.h"

static const char *const names[PMU_EVENT_COUNT] = {
    [PMU_CYCLES] = "cycles",
    [PMU_INSTRUCTIONS] = "instructions",
    [PMU_BUS_CYCLES] = "bus_cycles",
    [PMU_LLC_REFERENCES] = "llc_references",
    [PMU_LLC_MISSES] = "llc_misses",
    [PMU_BRANCHES] = "branches",
    [PMU_BRANCH_MISSES] = "branch_misses",
    [PMU_SLOTS] = "slots",
    [PMU_REF_CYCLES] = "ref_cycles",
    [PMU_LOADS] = "loads",
    [PMU_STORES] = "stores",
    [PMU_PIPELINE_DRY] = "pipeline_dry",
    [PMU_PIPELINE_FROZEN] = "pipeline_frozen",
    [PMU_NONISSUES] = "nonissues",
    [PMU_ISSUE_2] = "issue_2",
    [PMU_ISSUE_3] = "issue_3",
    [PMU_ISSUE_4] = "issue_4",
    [PMU_L1D_ACCESSES] = "l1d_accesses",
    [PMU_L1D_MISSES] = "l1d_misses",
    [PMU_L1I_READS] = "l1i_reads",
    [PMU_L1I_MISSES] = "l1i_misses",
    [PMU_FP_INSTRUCTIONS] = "fp_instructions",
    [PMU_INTEGER_INSTRUCTIONS] = "integer_instructions",
    [PMU_SPECIAL] = "special",
    [PMU_BARRIER_CYCLES] = "barrier_cycles",
    [PMU_LOCKED] = "locked",
    [PMU_MISALIGNED] = "misaligned",
    [PMU_CONDITIONAL_BRANCHES] = "conditional_branches",
    [PMU_INTERRUPTS] = "interrupts",
    [PMU_BRANCH_RECORDS] = "branch records",
};

static char lower_case(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c; }

/* Some write a dot, some a colon before the unit mask's name. */
static char plain(char c) { return c == ':' ? '.' : lower_case(c); }

static bool same_name(const char *a, const char *b)
{
    while (*a && plain(*a) == plain(*b))
        a++, b++;
    return !*a && !*b;
}

/* By our name, or by the vendor's, first one that counts plainly; PMU_EVENT_COUNT: by none. */
static enum pmu_event find_event(const char *name)
{
    const struct pmu_event_row *row;
    enum pmu_event found = PMU_EVENT_COUNT;
    for (unsigned e = 0; e < PMU_EVENT_COUNT; e++)
        if (same_name(name, names[e]))
            return e;
    for (unsigned e = 0; e < PMU_EVENT_COUNT; e++)
        if ((row = pmu_row(pmu_here()->table, e)) && row->name && same_name(name, row->name) &&
            (found == PMU_EVENT_COUNT || !row->flags))
            found = e;
    return found;
}

static void set_event(struct bench_event *e, enum pmu_event event, uint32_t flags)
{
    e->counters = pmu_counters_for(pmu_here(), event);
    e->select = e->counters ? pmu_select(pmu_here(), event, flags) : 0;
}

/* NULL, or why not. */
static const char *read_event(const struct bench_wanted *w, uint32_t flags, struct bench_event *e)
{
    enum pmu_event event = find_event(w->name);
    memcpy(e->name, w->name, sizeof e->name);
    if (event == PMU_EVENT_COUNT && !w->raw)
        return "is no event's name of this processor and no 0xCODE:0xUMASK:FLAGS";
    if (event < PMU_EVENT_COUNT) {
        set_event(e, event, flags);
    } else {
        e->select = pmu_raw_select(w->code, (uint8_t)w->umask, flags | w->flags);
        e->counters = pmu_raw_counters(pmu_here(), w->code, w->flags) & pmu_here()->counters;
    }
    return e->counters ? NULL : "cannot be counted by this processor";
}

static void read_all(uint32_t flags, struct bench_event *events, unsigned *count)
{
    for (unsigned i = 0; i < PMU_EVENT_COUNT && *count < BENCH_EVENTS_MAX; i++) {
        struct bench_event *e = &events[*count];
        set_event(e, i, flags);
        if (!e->counters)
            continue;
        print_to(e->name, sizeof e->name, "%s", names[i]);
        ++*count;
    }
}

const char *bench_read_events(const struct bench *b, uint32_t flags, struct bench_event *events,
                              unsigned *count, char *text, size_t size)
{
    *count = 0;
    for (const struct bench_wanted *w = b->events; w < b->events + b->h.event_count; w++) {
        const char *wrong = *count < BENCH_EVENTS_MAX ? NULL : "is one event too many";
        if (same_name(w->name, "all"))
            read_all(flags, events, count);
        else if (wrong || (wrong = read_event(w, flags, &events[(*count)++]))) {
            print_to(text, size, "%s %s", w->name, wrong);
            return text;
        }
    }
    return *count ? NULL : "there is no event to count";
}

unsigned bench_assign(const struct bench_event *events, unsigned count, unsigned *counters)
{
    uint64_t used = 0;
    unsigned n = 0;
    for (; n < count && events[n].counters & ~used; n++) {
        /* Fixed ones first */
        counters[n] = 63 - (unsigned)__builtin_clzll(events[n].counters & ~used);
        used |= PMU_BIT(counters[n]);
    }
    return n;
}
