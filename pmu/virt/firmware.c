/* SPDX-License-Identifier: MIT */
/* Quirks by which firmware and the host's kernel change counters, at the start or from time to
 * time, whatever the guest runs. Per CPU. */
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

static bool is_due(uint64_t *at, uint64_t now, uint64_t us)
{
    if (now < *at)
        return false;
    *at = now + us * clock_us;
    return true;
}

static void enable_counters(struct pmu *p, uint64_t counters)
{
    for (unsigned n = 0; n < GP_MAX; n++)
        if (counters & p->model->gp_map & 1ul << n)
            p->counters[n].select |= SELECT_ENABLE;
    for (unsigned n = 0; n < FIXED_MAX; n++)
        if (counters >> 32 & p->model->fixed_map & 1u << n)
            p->fixed_control |= 3ul << 4 * n;
}

void firmware_start(struct vcpu *v)
{
    uint64_t left = virt_quirks.left_one && v->number ? 0 : virt_quirks.left;
    uint64_t counters = left | virt_quirks.owned;
    struct pmu *p = &v->pmu;
    for (unsigned n = 0; n < GP_MAX; n++)
        if (counters & p->model->gp_map & 1ul << n)
            p->counters[n].select = FIRMWARES_SELECT;
    enable_counters(p, counters);
    if (p->model->version >= 2)
        p->global_control |= counters & (p->model->gp_map | (uint64_t)p->model->fixed_map << 32);
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

static void end_throttle(struct pmu *p)
{
    for (unsigned i = 0; i < COUNTER_MAX; i++) {
        p->counters[i].overflows = 0;
        p->counters[i].throttled = false;
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
    count_refresh(v);
}

void firmware_run(struct vcpu *v)
{
    uint64_t now;
    bool resets = virt_quirks.bug >= BUG_RESET;
    if (!virt_quirks.smi && !virt_quirks.owned && !virt_quirks.throttle && !virt_quirks.nmi &&
        !resets)
        return;
    now = rdtsc();
    if (resets && is_due(&v->firmware.reset_at, now, RESET_US))
        lose_registers(v);
    if (virt_quirks.nmi && is_due(&v->firmware.nmi_at, now, virt_quirks.nmi))
        take_nmi(v);
    if (virt_quirks.smi && is_due(&v->firmware.smi_at, now, virt_quirks.smi))
        take_smi(v);
    bool owner = virt_quirks.owned && is_due(&v->firmware.owner_at, now, OWNER_US);
    bool tick = virt_quirks.throttle && is_due(&v->firmware.tick_at, now, WINDOW_US);
    if (owner)
        enable_counters(&v->pmu, virt_quirks.owned);
    if (tick)
        end_throttle(&v->pmu);
    if (owner || tick)
        count_refresh(v);
}

uint64_t firmware_next(const struct vcpu *v)
{
    uint64_t next = virt_quirks.smi ? v->firmware.smi_at : UINT64_MAX;
    if (virt_quirks.owned && v->firmware.owner_at < next)
        next = v->firmware.owner_at;
    if (virt_quirks.throttle && v->firmware.tick_at < next)
        next = v->firmware.tick_at;
    if (virt_quirks.nmi && v->firmware.nmi_at < next)
        next = v->firmware.nmi_at;
    if (virt_quirks.bug >= BUG_RESET && v->firmware.reset_at < next)
        next = v->firmware.reset_at;
    return next;
}
