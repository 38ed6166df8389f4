/* SPDX-License-Identifier: MIT */
/* From an overflow to the guest's interrupt: status, PMI, freezing, and delays by quirks. Delays
 * are counted in instructions of both rings. */
#include "pmu/virt/quirk.h"
#include "pmu/virt/vcpu.h"

#define LATE 600u      /* instructions: with the bug late, from an overflow to its status */
#define TWICE_AFTER 8u /* instructions: by then the handler of the first PMI runs */

static bool pmi_is_lost(struct vcpu *v)
{
    unsigned running = 0;
    for (unsigned i = 0; i < COUNTER_MAX; i++)
        running += v->pmu.counters[i].event != EVENT_NONE;
    return virt_quirks.lostpmi && running >= 2 && virt_random(v) % virt_quirks.lostpmi == 0;
}

static uint64_t choose_skid(struct vcpu *v)
{
    uint64_t spread = virt_quirks.skid_spread, n = virt_quirks.skid;
    if (spread)
        n += virt_random(v) % (2 * spread + 1);
    return n > spread ? n - spread : 0;
}

static void pmi_after(struct pmu *p, uint64_t n)
{
    if (!n)
        p->pmi = true;
    else if (!p->due[DUE_PMI] || n < p->due[DUE_PMI])
        p->due[DUE_PMI] = n;
}

/* The host stops a counter that overflows too often; firmware_run starts it again. */
static void throttle_counter(struct counter *c)
{
    if (!virt_quirks.throttle || ++c->overflows <= virt_quirks.throttle)
        return;
    c->throttled = true;
    c->event = EVENT_NONE;
}

static void set_status(struct pmu *p, uint64_t bit)
{
    if (virt_quirks.bug != BUG_LATE) {
        p->status |= bit;
        return;
    }
    p->late_status |= bit;
    p->due[DUE_STATUS] = LATE;
}

void pmi_request(struct vcpu *v, uint64_t status)
{
    set_status(&v->pmu, status);
    if (!pmi_is_lost(v))
        pmi_after(&v->pmu, choose_skid(v));
}

void pmi_overflow(struct vcpu *v, unsigned counter)
{
    struct counter *c = &v->pmu.counters[counter];
    if (c->pmi)
        pmi_request(v, counter_status(counter));
    else
        set_status(&v->pmu, counter_status(counter));
    throttle_counter(c);
}

unsigned pmi_pass(struct pmu *p, uint64_t n)
{
    unsigned now = 0;
    for (unsigned i = 0; i < DUES; i++) {
        now |= p->due[i] && p->due[i] <= n ? 1u << i : 0;
        p->due[i] -= p->due[i] < n ? p->due[i] : n;
    }
    return now;
}

void pmi_now(struct vcpu *v, unsigned dues)
{
    struct pmu *p = &v->pmu;
    p->pmi |= dues & (1u << DUE_PMI | 1u << DUE_AGAIN);
    p->again |= dues & 1u << DUE_AGAIN;
    if (dues & 1u << DUE_STATUS) {
        p->status |= p->late_status;
        p->late_status = 0;
        count_refresh(v);
    }
    if (dues & 1u << DUE_FREEZE) {
        p->model->ops->on_pmi(p);
        count_refresh(v);
    }
}

void pmi_hasten(struct vcpu *v) { pmi_now(v, pmi_pass(&v->pmu, UINT64_MAX)); }

void pmi_deliver(struct vcpu *v)
{
    struct pmu *p = &v->pmu;
    bool mask = virt_quirks.lvtmask ? virt_quirks.lvtmask == LVTMASK_ALWAYS : p->model->auto_mask;
    p->pmi = false;
    if (virt_quirks.twice && !p->again)
        p->due[DUE_AGAIN] = TWICE_AFTER;
    if (virt_quirks.freeze_lag)
        p->due[DUE_FREEZE] = virt_quirks.freeze_lag;
    else
        p->model->ops->on_pmi(p);
    p->again = false;
    host_apic_pmi(v, mask);
    count_refresh(v);
}
