/* SPDX-License-Identifier: MIT */
/* Registers of the virtual PMU, what they count, and the words of vpmu=: guest.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernel/base/rdpmc.h"
#include "kernel/base/boot_info.h"
#include "pmu/virt/machine.h"
#include "pmu/virt/msr_table.h"
#include "pmu/virt/quirk.h"
#include "pmu/virt/vcpu.h"
#include "tests/guests/fuzz/fuzz.h"
#include "tests/guests/fuzz/guest.h"

static uint32_t some_msr(void)
{
    static const uint32_t near[] = { 0xc1,  0x186,  0x1a0,      0x1d9,      0x309,      0x329,
                                     0x345, 0x38d,  0x390,      0x4c1,      0x1900,     0x1980,
                                     0x600, 0x3f1,  0xc0000300, 0xc0010000, 0xc0010200, 0xc0010114,
                                     0x1c8, 0x14cd, 0x1500,     0xc000010d, 0xc0010300, 0x680,
                                     0x6c0, 0xdc0 };
    return fuzz_below(8) ? near[fuzz_below(26)] + (uint32_t)fuzz_below(20) - 2
                         : (uint32_t)fuzz_edge();
}

static uint64_t some_select(void)
{
    const struct event_code *e = v->pmu.model->events;
    while (e[1].event && fuzz_below(6))
        e++;
    uint64_t select = (e->select & 0xff) | (uint64_t)e->mask << 8 |
                      (uint64_t)(e->select & 0xf00) << 24 | fuzz_below(8) << 16 | SELECT_ENABLE;
    select |= fuzz_below(2) ? SELECT_PMI : 0;
    return fuzz_below(2) ? select : select | fuzz_below(16) << 24 | fuzz_below(2) * SELECT_INVERT;
}

static uint64_t some_value(void)
{
    return fuzz_below(2) ? some_select() : fuzz_below(2) ? -fuzz_below(2000) : fuzz_edge();
}

static bool counter_there(unsigned i)
{
    const struct model *m = v->pmu.model;
    return i < FIXED_FIRST ? m->gp_map >> i & 1 : m->fixed_map >> (i - FIXED_FIRST) & 1;
}

static void check_pmu(void)
{
    const struct pmu *p = &v->pmu;
    const struct model *m = p->model;
    uint64_t there = m->gp_map | (uint64_t)m->fixed_map << 32,
             more = STATUS_BUFFER | STATUS_FROZEN | STATUS_LBR_FROZEN | 1ul << 48;
    FUZZ_CHECK(!(p->status & ~(there | more)) && !(p->global_control & ~(there | more)));
    for (unsigned i = 0; i < COUNTER_MAX; i++) {
        const struct counter *c = &p->counters[i];
        FUZZ_CHECK(c->value <= counter_mask(m));
        FUZZ_CHECK(counter_there(i) || (!c->event && !c->value && !c->select));
    }
    for (unsigned user = 0; user < 2; user++)
        FUZZ_CHECK(count_left(v, user) > 0);
}

static void write_some(unsigned n)
{
    uint64_t value, again;
    while (n--) {
        uint32_t msr = some_msr();
        const struct msr_row *row = msr_find(msr);
        bool ours = row && row->write == count_wrmsr, there = ours && count_rdmsr(v, msr, &value);
        if (!ours || !count_wrmsr(v, msr, some_value()))
            continue;
        FUZZ_CHECK(count_rdmsr(v, msr, &again));
        FUZZ_CHECK(there);
        check_pmu();
    }
    uint32_t selector = fuzz_below(2) ? (uint32_t)fuzz_below(24) | RDPMC_FIXED * fuzz_below(2)
                                      : (uint32_t)fuzz_edge();
    if (count_rdpmc(v, selector, &value))
        FUZZ_CHECK(value <= counter_mask(v->pmu.model) || selector >> 16 == 0x2000);
}

/* Counters that run, most of them near their end. */
static void start_some(void)
{
    const struct model *m = v->pmu.model;
    bool intel = m->ops == &intel_ops;
    uint64_t there = m->gp_map | (uint64_t)m->fixed_map << 32;
    for (unsigned i = 0; i < 6; i++) {
        uint32_t at = m->gp > 4 ? 0xc0010200 + 2 * i : 0xc0010000 + i;
        count_wrmsr(v, intel ? 0x186 + i : at, some_select());
        at = m->gp > 4 ? at + 1 : at + 4;
        count_wrmsr(v, intel ? 0xc1 + i : at, -fuzz_below(2000));
        count_wrmsr(v, 0x309 + i, -fuzz_below(2000));
    }
    count_wrmsr(v, 0x38d, fuzz_bits() & 0xbbbb & ((1ul << 4 * m->fixed) - 1));
    count_wrmsr(v, intel ? 0x38f : 0xc0000301, there);
    count_wrmsr(v, DEBUGCTL, fuzz_below(2) * DEBUGCTL_FREEZE);
}

/* A record into whatever is there. */
static void write_record(void)
{
    struct ds *ds = &v->pmu.ds;
    if (!v->pmu.model->pebs_format)
        return;
    ds->area = guest_some_address();
    ds->config = fuzz_bits() & 0xff00000f;
    ds->due = fuzz_bits() & ds_counters(v->pmu.model);
    ds_write_record(v);
    FUZZ_CHECK(!ds->due);
    check_pmu();
    v->pmu.pmi = false; /* as if it were delivered */
}

void guest_make_pmu(void)
{
    const struct model *m = v->pmu.model;
    memset(&v->pmu, 0, sizeof v->pmu);
    v->pmu.model = m;
    count_refresh(v);
    if (fuzz_below(4))
        start_some();
    write_some(2 + (unsigned)fuzz_below(20));
    write_record();
}

static bool exact_quirks(const struct vcpu *a, const struct vcpu *b)
{
    for (unsigned i = 0; i < COUNTER_MAX; i++) {
        const struct counter *c = &a->pmu.counters[i], *d = &b->pmu.counters[i];
        if (c->value != d->value || c->in_cycle != d->in_cycle || c->held != d->held)
            return false;
    }
    return a->pmu.status == b->pmu.status;
}

/* What n instructions count is the same in one step and in several, but for edges, which are
 * counted within n of one kind only, and where a quirk stops a counter or is of chance. */
void guest_try_counting(void)
{
    static struct vcpu once, pieces;
    guest_make_pmu();
    for (unsigned i = 0; i < COUNTER_MAX; i++)
        v->pmu.counters[i].edge = false;
    memcpy(&once, v, sizeof once);
    memcpy(&pieces, v, sizeof pieces);
    uint64_t n = fuzz_below(5000), done = 0;
    bool user = fuzz_below(2);
    while (done < n) {
        uint64_t some = 1 + fuzz_below(n - done);
        count_add(&pieces, user, some);
        done += some;
    }
    count_add(&once, user, n);
    FUZZ_CHECK(virt_quirks.throttle || virt_quirks.wrap0 || exact_quirks(&once, &pieces));
}

/* A block whose instructions were decoded counts as much at once as in pieces. */
void guest_try_block(void)
{
    static struct vcpu once, pieces;
    uint64_t events[EVENT_RECORDS + 1] = { 0 }, n = fuzz_below(400);
    bool user = fuzz_below(2);
    guest_make_pmu();
    if (n >= count_block_left(v, user))
        return;
    memcpy(&once, v, sizeof once);
    memcpy(&pieces, v, sizeof pieces);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t effects = (uint32_t)fuzz_bits() & ~((1u << EVENT_BRANCHES) - 1);
        effects &= (2u << EVENT_MISSES) - 1;
        if (virt_quirks.far)
            effects &= ~EFFECT(EVENT_FAR); /* in no block */
        count_one(&pieces, user, effects);
        for (enum event e = EVENT_BRANCHES; e <= EVENT_MISSES; e++)
            events[e] += effects >> e & 1;
    }
    count_block(&once, user, n, events);
    FUZZ_CHECK(exact_quirks(&once, &pieces) && !once.pmu.pmi && !pieces.pmu.pmi);
}

/* --- vpmu= --- */

/* What a value may be: its edges, and what the field is then. */
static void try_edges(void)
{
    static const struct {
        const char *words;
        bool good;
        uint64_t dead, wrmsr, left;
    } edges[] = {
        { "dead=63", true, 1ull << 63, 0, 0 },
        { "dead=0+2+5,wrmsr=+1", true, 0x25, 1, 0 },
        { "wrmsr=-1", true, 0, ~0ull, 0 },
        { "wrmsr=1,left=0xFFFFFFFFFFFFFFFf", true, 0, 1, ~0ull },
        { "left=18446744073709551615", true, 0, 0, ~0ull },
        { .words = "left=0" },
        { .words = "left=18446744073709551616" },
        { .words = "left=0x10000000000000000" },
        { .words = "dead=64" },
        { .words = "dead=63+" },
        { .words = "dead=" },
        { .words = "wrmsr=2" },
        { .words = "wrmsr=-2" },
        { .words = "wrmsr=" },
        { .words = "lvtmask=nev" },
        { .words = "smi=50" },
        { .words = "smi=49:5" },
        { .words = "skid=5+-" },
    };
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        virt_quirks = (struct quirks){ .ipc = 1, .ref = 1 };
        FUZZ_CHECK(quirk_parse(edges[i].words, "GenuineIntel") == edges[i].good);
        FUZZ_CHECK(!edges[i].good ||
                   (virt_quirks.dead == edges[i].dead && virt_quirks.wrmsr == edges[i].wrmsr &&
                    virt_quirks.left == edges[i].left));
    }
}

void guest_try_words(void)
{
    static const char *const words[] = {
        "step",    "seed=",     "irq3",       "ipc=",     "ref=",        "hybrid",
        "vmrun",   "noemul",    "emulraw",    "wrmsr=",   "anythread",   "metrics",
        "gp=",     "sticky=",   "noset",      "v2bits=",  "uncore",      "fastrdpmc",
        "v2alias", "misc=",     "ignoremsrs", "hyperv",   "kvm",         "lvtmask=",
        "skid=",   "twice",     "lostpmi",    "contend=", "throttle=",   "left=",
        "owned=",  "dead=",     "far",        "wrap0",    "freeze-lag=", "smi=",
        "smi3",    "exitcost=", "pit=",       "c1e",      "debugctl=",   "v2status",
        "stale",   "x2apic=",   ",",          "leftone",  "frozen",      "tscfixed=",
        "=",       "+",         "-",          ":",        "0x",          "never",
        "always",  "dead",      "ignore",     "1",        "4",           "99999999999999999999",
        "ffff",    "63",        "[",          "+-"
    };
    char text[BOOT_LINE_MAX], *exactly;
    unsigned model = 0, n;
    try_edges();
    while (all_models[model + 1].name && fuzz_below(8))
        model++;
    n = (unsigned)snprintf(text, sizeof text, "%s",
                           fuzz_below(6) ? all_models[model].name : all_machines[0].name);
    for (unsigned i = fuzz_below(2) ? 2 : (unsigned)fuzz_below(30); i && n < 400; i--)
        n += (unsigned)snprintf(text + n, sizeof text - n, "%s%s", fuzz_below(3) ? "," : "",
                                words[fuzz_below(sizeof words / sizeof *words)]);
    if (!fuzz_below(4))
        text[fuzz_below(n)] = (char)fuzz_below(256);
    n = (unsigned)strlen(text) + 1;
    exactly = malloc(n);
    memcpy(exactly, text, n);
    virt_quirks = (struct quirks){ .ipc = 1, .ref = 1 };
    if (strchr(exactly, ','))
        quirk_parse(strchr(exactly, ',') + 1, fuzz_below(2) ? "GenuineIntel" : "AuthenticAMD");
    virt_quirks = (struct quirks){ .ipc = 1, .ref = 1 };
    if (machine_choose(exactly)) {
        v->pmu.model = machine_model(fuzz_below(2));
        FUZZ_CHECK(virt_quirks.ipc >= 1 && virt_quirks.ipc <= 16 && virt_quirks.ref >= 1);
        FUZZ_CHECK(v->pmu.model->gp >= 1 && v->pmu.model->gp <= GP_MAX);
    } else {
        virt_quirks = (struct quirks){ .ipc = 1, .ref = 1 };
        FUZZ_CHECK(machine_choose(fuzz_below(2) ? "intel-v5" : "amd-v2"));
        v->pmu.model = machine_model(0);
    }
    free(exactly);
}
