/* SPDX-License-Identifier: MIT */
/* Quirks by which firmware and the host's kernel change counters, at the start or from time to
 * time, whatever the guest runs. Per CPU. */
#include "kernel/base/bits.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "pmu/virt/quirk.h"
#include "pmu/virt/vcpu.h"

#define OWNER_US 10000u   /* the period at which firmware enables its counters again */
#define WINDOW_US 1000u   /* the host's tick */
#define RESET_US 100000u  /* from one loss of all registers to the next */
#define STEPS_APART 2000u /* instructions between NMIs of a guest that is stepped */
#define FIRMWARES_DEBUGCTL (DEBUGCTL_FREEZE_LBR | DEBUGCTL_FREEZE | DEBUGCTL_SMM)
#define FIRMWARES_SELECT (0xc0u | SELECT_USER | SELECT_KERNEL)

static void enable_counters(struct pmu *p, uint64_t counters)
{
    for_each_bit(n, counters & p->model->gp_map)
        p->counters[n].select |= SELECT_ENABLE;
    for_each_bit(n, counters >> 32 & p->model->fixed_map)
        p->fixed_control |= 3ul << 4 * n;
}

void firmware_start(struct vcpu *v)
{
    uint64_t left = virt_quirks.left_one && v->number ? 0 : virt_quirks.left;
    uint64_t counters = left | virt_quirks.owned;
    struct pmu *p = &v->pmu;
    for_each_bit(n, counters & p->model->gp_map)
        p->counters[n].select = FIRMWARES_SELECT;
    enable_counters(p, counters);
    if (p->model->version >= 2)
        p->global_control |= counters & model_counters(p->model);
    if (left && p->model->freezes)
        model_write_debugctl(p, FIRMWARES_DEBUGCTL, FIRMWARES_DEBUGCTL);
    if (virt_quirks.frozen)
        p->status |= p->model->ops->frozen(p->model);
    if (virt_quirks.lbrleft)
        records_leave_on(p);
    if (virt_quirks.pebs == PEBS_LEFT)
        p->ds.enable = ds_counters(p->model);
    if (virt_quirks.brs && !p->model->lbr_depth)
        records_leave_sampled(p);
    v->random = virt_quirks.seed + v->number;
    count_refresh(v);
}

static void take_smi(struct vcpu *v)
{
    v->pmu.smis++;
    count_smi(v);
    if (!(v->pmu.debugctl & DEBUGCTL_SMM))
        count_unseen(v, virt_quirks.smi3, virt_quirks.smi_length);
}

static void enable_owned(struct vcpu *v) { enable_counters(&v->pmu, virt_quirks.owned); }

static void end_throttle(struct vcpu *v)
{
    for_each_in(c, v->pmu.counters) {
        c->overflows = 0;
        c->throttled = false;
    }
}

/* Not before the guest's handlers are in place. A step takes a thousand units of the clock and
 * more: by the clock alone the next NMI would come before a stepped handler of it has ended. */
static void take_nmi(struct vcpu *v)
{
    uint64_t retired = v->retired[0] + v->retired[1];
    bool stepped = v->step.active || v->pmu.ds.enable || v->pmu.decoding[0] || v->pmu.decoding[1];
    if (!v->statistics.wrmsr || (stepped && retired - v->firmware.nmi_retired < STEPS_APART))
        return;
    v->nmi.pending = true;
    v->firmware.nmi_retired = retired;
}

/* A thread's counters count in ring 3 alone. */
static bool counts_thread(const struct pmu *p)
{
    for (unsigned i = 0; i < COUNTER_MAX; i++)
        if (p->counters[i].event && p->counters[i].user && !p->counters[i].kernel)
            return true;
    return false;
}

/* A guest that was restored, or moved: the host keeps no register. Once: as soon as there is a
 * thread's to lose. */
static void lose_registers(struct vcpu *v)
{
    struct pmu *p = &v->pmu;
    bool once = virt_quirks.bug == BUG_RESET;
    if (once && (v->firmware.was_reset || !counts_thread(p)))
        return;
    v->firmware.was_reset = true;
    memset(p->counters, 0, sizeof p->counters);
    memset(&p->ds, 0, sizeof p->ds);
    p->fixed_control = p->global_control = p->status = p->debugctl = 0;
}

void firmware_run(struct vcpu *v)
{
    struct firmware *f = &v->firmware;
    uint64_t now = f->next == UINT64_MAX ? 0 : rdtsc();
    if (now < f->next)
        return;
    /* us: from one time to the next; 0: never. */
    const struct {
        uint64_t us;
        void (*happen)(struct vcpu *v);
    } events[FIRMWARE_EVENTS] = {
        { virt_quirks.bug >= BUG_RESET ? RESET_US : 0, lose_registers },
        { virt_quirks.nmi, take_nmi },
        { virt_quirks.smi, take_smi },
        { virt_quirks.owned ? OWNER_US : 0, enable_owned },
        { virt_quirks.throttle ? WINDOW_US : 0, end_throttle },
    };
    f->next = UINT64_MAX;
    for (unsigned i = 0; i < FIRMWARE_EVENTS; i++) {
        if (events[i].us && now >= f->at[i]) {
            f->at[i] = now + events[i].us * clock_us;
            events[i].happen(v);
        }
        f->next = events[i].us && f->at[i] < f->next ? f->at[i] : f->next;
    }
    count_refresh(v);
}

uint64_t firmware_next(const struct vcpu *v) { return v->firmware.next; }
