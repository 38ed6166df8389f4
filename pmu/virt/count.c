/* SPDX-License-Identifier: MIT */
/* What every model shares: adding retired instructions to the counters that run, overflow, PMI, and which MSRs
 * are a PMU's. Cycles are a stated model: one per instruction, none in HLT, in each as many slots as the core has. */
#include "pmu/virt/svm.h"

/* Every register of a PMU, of any vendor or version: what the model lacks faults. */
static const struct {
    uint32_t first, last;
} pmu_msrs[] = {
    { 0xc1, 0xc8 }, { 0xe7, 0xe8 }, { 0x186, 0x18d }, { 0x1a0, 0x1a0 }, { 0x1d9, 0x1d9 }, { 0x309, 0x30f },
    { 0x329, 0x329 }, { 0x345, 0x345 }, { 0x38d, 0x392 }, { 0x3f1, 0x3f2 }, { 0x4c1, 0x4c8 },
    { 0x600, 0x600 }, { 0x1900, 0x19ff }, { 0xc00000e7, 0xc00000e9 }, { 0xc0000300, 0xc0000303 },
    { 0xc0010000, 0xc0010007 }, { 0xc0010114, 0xc0010114 }, { 0xc0010117, 0xc0010117 },
    { 0xc0010200, 0xc001020f }, { 0xc0010230, 0xc001023b }, { 0xc0010240, 0xc0010247 },
    { 0xc0010280, 0xc0010280 }, { 0xc0010300, 0xc001031f },
};

bool count_owns(uint32_t msr)
{
    for (unsigned i = 0; i < sizeof pmu_msrs / sizeof *pmu_msrs; i++)
        if (msr >= pmu_msrs[i].first && msr <= pmu_msrs[i].last)
            return true;
    return false;
}

static enum event find_event(uint16_t number, uint64_t select)
{
    for (const struct event_code *e = virt_model->events; e->event; e++)
        if (e->select == number && e->mask == (uint8_t)(select >> 8))
            return e->event;
    return EVENT_NONE;
}

void model_refresh(struct counter *c, uint16_t number, bool enabled)
{
    c->user = c->select & SELECT_USER;
    c->kernel = c->select & SELECT_KERNEL;
    c->pmi = c->select & SELECT_PMI;
    c->edge = c->select & SELECT_EDGE;
    c->invert = c->select & SELECT_INVERT;
    c->threshold = (uint8_t)(c->select >> 24);
    enabled = enabled && c->select & SELECT_ENABLE && (c->user || c->kernel);
    c->event = enabled ? find_event(number, c->select) : EVENT_NONE;
}

static bool runs(const struct counter *c, bool user) { return c->event && (user ? c->user : c->kernel); }

/* Status bit of a counter: fixed ones from bit 32. */
static uint64_t status_bit(unsigned counter)
{
    return counter < FIXED_FIRST ? 1ull << counter : 1ull << (32 + counter - FIXED_FIRST);
}

static void overflow(struct vcpu *v, unsigned counter)
{
    v->pmu.status |= status_bit(counter);
    if (v->pmu.counters[counter].pmi)
        v->pmu.pmi = true;
}

/* What one instruction, which is one cycle, adds: how often the event happens in it, or with a threshold whether
 * that often. An edge is counted where this begins to hold. */
static unsigned in_each(const struct counter *c, uint32_t effects)
{
    unsigned n = c->event >= EVENT_BRANCHES ? effects >> c->event & 1 : c->event == EVENT_SLOTS ? virt_model->slots : 1;
    return c->threshold ? (n >= c->threshold) != c->invert : n;
}

static void add(struct vcpu *v, unsigned counter, uint64_t n)
{
    struct counter *c = &v->pmu.counters[counter];
    uint64_t mask = counter_mask(virt_model);
    c->value += n;
    if (c->value > mask)
        overflow(v, counter);
    c->value &= mask;
}

static void retire(struct vcpu *v, bool user, uint64_t n, uint32_t effects)
{
    v->retired[user] += n;
    if (!v->pmu.counting || !n)
        return;
    for (unsigned i = 0; i < COUNTER_MAX; i++) {
        struct counter *c = &v->pmu.counters[i];
        if (!runs(c, user))
            continue;
        unsigned each = in_each(c, effects);
        add(v, i, !c->edge ? n * each : each && !c->held);
        c->held = each;
    }
}

void count_add(struct vcpu *v, bool user, uint64_t n) { retire(v, user, n, 0); }
void count_one(struct vcpu *v, bool user, uint32_t effects) { retire(v, user, 1, effects); }

/* Counters of decoded events are not asked: where they run, each instruction is stepped anyway. */
uint64_t count_left(const struct vcpu *v, bool user)
{
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < COUNTER_MAX && v->pmu.counting; i++) {
        const struct counter *c = &v->pmu.counters[i];
        unsigned each = in_each(c, 0);
        uint64_t left = counter_mask(virt_model) - c->value + 1;
        if (!runs(c, user) || !c->pmi || !each || (c->edge && (c->held || left > 1)))
            continue;
        left = (left + each - 1) / each;
        least = left < least ? left : least;
    }
    return least;
}

void count_refresh(struct vcpu *v)
{
    struct pmu *p = &v->pmu;
    virt_model->refresh(p);
    p->counting = p->decoding[0] = p->decoding[1] = false;
    for (unsigned i = 0; i < COUNTER_MAX; i++) {
        struct counter *c = &p->counters[i];
        p->counting |= c->event != EVENT_NONE;
        p->decoding[0] |= c->event >= EVENT_BRANCHES && c->kernel;
        p->decoding[1] |= c->event >= EVENT_BRANCHES && c->user;
        c->held &= c->event != EVENT_NONE;
    }
}

bool count_rdmsr(struct vcpu *v, uint32_t msr, uint64_t *value)
{
    v->statistics.rdmsr++;
    return virt_model->read(&v->pmu, msr, value);
}

bool count_wrmsr(struct vcpu *v, uint32_t msr, uint64_t value)
{
    v->statistics.wrmsr++;
    if (!virt_model->write(&v->pmu, msr, value))
        return false;
    count_refresh(v);
    return true;
}

bool count_rdpmc(struct vcpu *v, uint32_t selector, uint64_t *value)
{
    unsigned counter;
    if (!virt_model->selector(selector, &counter))
        return false;
    *value = v->pmu.counters[counter].value;
    return true;
}

void count_deliver_pmi(struct vcpu *v)
{
    v->pmu.pmi = false;
    if (virt_model->on_pmi)
        virt_model->on_pmi(&v->pmu);
    host_apic_pmi(v, virt_model->auto_mask);
    count_refresh(v);
}
