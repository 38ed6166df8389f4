/* SPDX-License-Identifier: MIT */
/* Works out what counts, after a change of the registers: by event selects, by quirks that keep
 * counters from counting whatever their registers say, and by what is due. */
#include "kernel/base/print.h"
#include "pmu/virt/quirk.h"
#include "pmu/virt/vcpu.h"

static enum event find_event(const struct model *m, uint16_t number, uint64_t select)
{
    for (const struct event_code *e = m->events; e->event; e++)
        if (e->select == number && e->mask == (uint8_t)(select >> 8))
            return e->event;
    return EVENT_NONE;
}

/* Why a foreign guest reads 0: once for each event, of the first few. */
static void say_uncounted(uint16_t number, uint8_t mask)
{
    enum { MOST = 8 };
    static uint32_t said[MOST];
    static unsigned count;
    uint32_t code = (uint32_t)number << 8 | mask;
    for (unsigned i = 0; i < MOST; i++)
        if (__atomic_load_n(&said[i], __ATOMIC_RELAXED) == code)
            return;
    unsigned at = __atomic_load_n(&count, __ATOMIC_RELAXED);
    if (at >= MOST || (at = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED)) >= MOST)
        return;
    __atomic_store_n(&said[at], code, __ATOMIC_RELAXED);
    print("\n# vpmu: event %xh, unit mask %xh is not modelled here: it counts 0\n", number, mask);
}

void model_refresh(const struct model *m, struct counter *c, uint16_t number, bool enabled)
{
    c->user = c->select & SELECT_USER;
    c->kernel = c->select & SELECT_KERNEL;
    c->pmi = c->select & SELECT_PMI;
    c->edge = c->select & SELECT_EDGE;
    c->invert = c->select & SELECT_INVERT;
    c->threshold = (uint8_t)(c->select >> 24);
    enabled = enabled && c->select & SELECT_ENABLE && (c->user || c->kernel);
    c->event = enabled ? find_event(m, number, c->select) : EVENT_NONE;
    if (virt_foreign && enabled && !c->event && number)
        say_uncounted(number, (uint8_t)(c->select >> 8));
}

void model_write_counter(struct pmu *p, struct counter *c, uint64_t value)
{
    value &= counter_mask(p->model);
    if (virt_quirks.bug == BUG_DOWN && value < c->value)
        p->status |= counter_status((unsigned)(c - p->counters));
    c->stands |= virt_quirks.bug == BUG_HELD && c->event != EVENT_NONE;
    c->value = value;
    c->late = false;
    p->ds.armed &= ~counter_status((unsigned)(c - p->counters));
    p->ds.passed &= p->ds.armed;
}

bool model_write_debugctl(struct pmu *p, uint64_t value, uint64_t legal)
{
    if (virt_quirks.debugctl)
        value &= ~DEBUGCTL_IGNORED;
    bool records = p->model->lbr_depth || p->model->ops->vendor[0] == 'A';
    if (value & ~((p->model->freezes ? legal : 0) | (records ? DEBUGCTL_LBR : 0) | DEBUGCTL_BTF))
        return false;
    if (p->model->lbr_format == LBR_ARCHITECTURAL)
        value &= ~(uint64_t)DEBUGCTL_LBR; /* ignored */
    p->debugctl = value;
    return true;
}

static void swallow_writes(struct pmu *p)
{
    for (unsigned i = 0; i < COUNTER_MAX; i++) {
        unsigned bit = i < FIXED_FIRST ? i : 32 + i - FIXED_FIRST;
        if (virt_quirks.dead >> bit & 1)
            p->counters[i].select = p->counters[i].value = 0;
        if (virt_quirks.dead >> bit & 1 && i >= FIXED_FIRST)
            p->fixed_control &= ~(0xful << 4 * (i - FIXED_FIRST));
    }
}

/* The host's counters are given out in the order of requests. A counter that got none does not
 * count until it is programmed again. */
static void contend_counters(struct pmu *p)
{
    unsigned given = 0;
    for (unsigned i = 0; i < COUNTER_MAX; i++) {
        struct counter *c = &p->counters[i];
        c->has_host &= c->event != EVENT_NONE;
        c->denied &= c->event != EVENT_NONE;
        given += c->has_host;
    }
    for (unsigned i = 0; i < COUNTER_MAX; i++) {
        struct counter *c = &p->counters[i];
        if (c->event && !c->has_host && !c->denied) {
            c->has_host = given < virt_quirks.contend;
            c->denied = !c->has_host;
            given += c->has_host;
        }
        c->event = c->denied ? EVENT_NONE : c->event;
    }
}

uint64_t pmi_left(const struct pmu *p)
{
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < DUES; i++)
        if (p->due[i] && p->due[i] < least)
            least = p->due[i];
    return least;
}

void count_refresh(struct vcpu *v)
{
    struct pmu *p = &v->pmu;
    if (virt_quirks.dead)
        swallow_writes(p);
    p->model->ops->refresh(p);
    if (virt_quirks.contend)
        contend_counters(p);
    records_refresh(p);
    bool branches = p->records.on || p->debugctl & DEBUGCTL_BTF;
    p->counting = pmi_left(p) != UINT64_MAX || branches;
    p->decoding[0] = p->decoding[1] = branches;
    p->instructions[0] = p->instructions[1] = false;
    p->runs[0] = p->runs[1] = 0;
    p->predicts = p->records.on;
    p->caches = false;
    for (unsigned i = 0; i < COUNTER_MAX; i++) {
        struct counter *c = &p->counters[i];
        c->pebs = p->ds.enable & counter_status(i);
        c->stands &= c->event != EVENT_NONE;
        if (c->throttled || c->stands ||
            (c->event == EVENT_BRANCHES && virt_quirks.bug == BUG_BRANCHES))
            c->event = EVENT_NONE;
        p->counting |= c->event != EVENT_NONE;
        p->runs[0] |= (uint32_t)(c->event && c->kernel) << i;
        p->runs[1] |= (uint32_t)(c->event && c->user) << i;
        p->predicts |= c->event == EVENT_MISPREDICTED;
        p->caches |= c->event == EVENT_REFERENCES || c->event == EVENT_MISSES;
        p->instructions[0] |= c->event == EVENT_INSTRUCTIONS && c->kernel;
        p->instructions[1] |= c->event == EVENT_INSTRUCTIONS && c->user;
        bool decoded = c->event >= EVENT_BRANCHES && c->event != EVENT_RECORDS; /* by the list */
        p->decoding[0] |= decoded && c->kernel;
        p->decoding[1] |= decoded && c->user;
        c->held &= c->event != EVENT_NONE;
        c->in_cycle = c->event ? c->in_cycle : 0;
    }
}
