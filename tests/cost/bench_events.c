/* SPDX-License-Identifier: MIT */
/* Which events a snippet is measured by, and which counters count them. */
#include "tests/cost/bench.h"
#include "tests/harness/kernel.h"

static char lower_case(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c; }

/* Some write a dot, some a colon before the unit mask's name. */
static char plain(char c) { return c == ':' ? '.' : lower_case(c); }

static bool same_name(const char *a, const char *b)
{
    while (*a && plain(*a) == plain(*b))
        a++, b++;
    return !*a && !*b;
}

/* By the vendor's name, first one that counts plainly; PMU_EVENT_COUNT: by none. */
static enum pmu_event find_event(const char *name)
{
    const struct pmu_event_row *row;
    enum pmu_event found = PMU_EVENT_COUNT;
    for (unsigned e = 0; e < PMU_EVENT_COUNT; e++)
        if ((row = pmu_row(pmu_here()->table, e)) && row->name && same_name(name, row->name) &&
            (found == PMU_EVENT_COUNT || !row->flags))
            found = e;
    return found;
}

/* NULL, or why not. */
static const char *read_event(const struct bench_wanted *w, uint32_t flags, struct bench_event *e)
{
    enum pmu_event event = w->kind == BENCH_VENDORS ? find_event(w->name) : w->code;
    memcpy(e->name, w->name, sizeof e->name);
    if (w->kind == BENCH_RAW) {
        e->select = pmu_raw_select(w->code, (uint8_t)w->umask, flags | w->flags);
        e->counters = pmu_raw_counters(pmu_here(), w->code, w->flags) & pmu_here()->counters;
    } else if (event < PMU_EVENT_COUNT) {
        e->counters = pmu_counters_for(pmu_here(), event);
        e->select = e->counters ? pmu_select(pmu_here(), event, flags) : 0;
    } else {
        return "is no event's name of this processor and no 0xCODE:0xUMASK:FLAGS";
    }
    return e->counters ? NULL : "cannot be counted by this processor";
}

const char *bench_read_events(const struct bench *b, uint32_t flags, struct bench_event *events,
                              unsigned *count, char *text, size_t size)
{
    *count = 0;
    for (const struct bench_wanted *w = b->events; w < b->events + b->h.event_count; w++) {
        const char *wrong = read_event(w, flags, &events[*count]);
        *count += !wrong;
        if (wrong && w->kind != BENCH_IF_THERE) {
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
