/* SPDX-License-Identifier: MIT */
/* The instruction clock: with QEMU's -icount shift=0 (and on Bochs) the TSC advances by one per
 * instruction. It is tested, and its constant measured, by guest code of known length. Boot CPU
 * only, on its host stack, before the guest starts. */
#include "kernel/base/print.h"
#include "kernel/base/msr.h"
#include "kernel/base/x86.h"
#include "pmu/virt/machine.h"
#include "pmu/virt/quirk.h"
#include "pmu/virt/vcpu.h"

#define TRIES 8

uint64_t clock_cost, clock_soft_int;
bool clock_dr6_stays, virt_step;

/* The clock's advance over a run of 2 * loops instructions. */
static uint64_t measure_run_with(struct vcpu *v, uint64_t flags, void (*code)(void), uint64_t loops)
{
    vmcb_enable_svm(v);
    vmcb_make(v);
    v->vmcb.intercept_misc = CATCH_SHUTDOWN | CATCH_SOFT_INT;
    v->vmcb.intercept_exceptions = CATCH_EXCEPTIONS;
    v->vmcb.rflags |= flags;
    v->vmcb.rip = (uint64_t)code;
    v->r.rcx = loops;
    uint64_t clock = svm_run(virt_physical(&v->vmcb), &v->r, &v->stack.nmis, v->stack.nmis);
    if (v->r.rcx)
        virt_die(v, "the first run of guest code failed");
    return clock;
}

static uint64_t measure_run(struct vcpu *v, void (*code)(void), uint64_t loops)
{
    return measure_run_with(v, 0, code, loops);
}

static bool calibrate_clock(struct vcpu *v)
{
    static const uint64_t loops[TRIES] = { 1, 1, 2, 10, 100, 1000, 10000, 1 };
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t cost = measure_run(v, svm_run_call, loops[i]) - 2 * loops[i];
        if (i > 0 && cost != clock_cost)
            return false;
        clock_cost = cost;
    }
    clock_soft_int = measure_run(v, svm_run_int, 1) - 2 - clock_cost;
    return clock_cost < 1000 && clock_soft_int <= 1;
}

/* Bochs leaves DR6 alone when #DB is intercepted. */
static bool dr6_stays(struct vcpu *v)
{
    measure_run_with(v, RFLAGS_TF, svm_run_call, 1); /* one instruction */
    return !(v->vmcb.dr6 & DR6_SINGLE_STEP);
}

static void decide_clock(struct vcpu *v)
{
    clock_dr6_stays = dr6_stays(v);
    if (!virt_step && !calibrate_clock(v)) {
        print(
            "# vpmu: %s: no instruction clock here (QEMU needs -icount shift=0): stepping, slow\n",
            machine_text());
        virt_step = true;
    }
    if (!virt_step && !alarm_init(v)) {
        print("# vpmu: %s: no HPET for the alarm: stepping, slow\n", machine_text());
        virt_step = true;
    }
}

void clock_start(struct vcpu *v)
{
    struct vmcb guest = v->vmcb;
    decide_clock(v);
    v->vmcb = guest;
    if (virt_step)
        print("# vpmu: %s, every counted instruction stepped\n", machine_text());
    else
        print("# vpmu: %s, instruction clock, an exit costs %lu\n", machine_text(), clock_cost);
}

/* --- The quirks tsc and tscfixed. --- */

static void set_ahead(struct vcpu *v, uint64_t ahead)
{
    v->clock.ahead = ahead;
    v->vmcb.tsc_offset = ahead - virt_hidden;
}

void clock_start_tsc(struct vcpu *v) { set_ahead(v, virt_quirks.tsc * v->number); }

bool clock_rdmsr(struct vcpu *v, uint32_t msr, uint64_t *value)
{
    bool there = msr == MSR_TSC || virt_quirks.tsc_fixed != TSC_FAULTS;
    *value = !there ? 0 : msr == MSR_TSC ? rdtsc() + v->vmcb.tsc_offset : v->clock.adjust;
    return there || virt_quirks.ignoremsrs;
}

/* A write of the TSC changes TSC_ADJUST as much. */
bool clock_wrmsr(struct vcpu *v, uint32_t msr, uint64_t value)
{
    uint64_t now;
    if (virt_quirks.tsc_fixed)
        return virt_quirks.tsc_fixed == TSC_IGNORES || virt_quirks.ignoremsrs;
    clock_rdmsr(v, msr, &now);
    v->clock.adjust += value - now;
    set_ahead(v, v->clock.ahead + value - now);
    return true;
}

/* --- The guest's time. A step takes the host over a thousand units of the clock. While anything
 * counts the guest sees as many units as instructions: on the TSC at once, on the HPET when it may
 * look, on the ACPI timer by platform.c, on the local APIC's by apic_timer.c. For foreign guests:
 * where this kernel waits for a time, a step that takes long is soon there. L: the token. --- */

static uint64_t hpet_excess; /* hidden time that the HPET still shows */

static uint64_t instructions_retired(const struct vcpu *v) { return v->retired[0] + v->retired[1]; }

/* The guest's time since left_at was `seen` units. */
static void hide_time(struct vcpu *v, uint64_t now, uint64_t seen)
{
    if (v->clock.hides && now - v->clock.left_at > seen) {
        virt_hidden += now - v->clock.left_at - seen;
        hpet_excess += now - v->clock.left_at - seen;
    }
    v->clock.left_at = now;
    v->clock.left_retired = instructions_retired(v);
}

/* Time of the host's, also where its exit lets a counter begin. */
static void hide_host(struct vcpu *v)
{
    v->clock.hides |= v->pmu.counting;
    hide_time(v, rdtsc(), instructions_retired(v) - v->clock.left_retired);
}

void clock_enter(struct vcpu *v)
{
    if (virt_step || !virt_foreign)
        return;
    hide_host(v);
    v->clock.hides = v->step.active;
    bool looks = v->pmu.decoding[v->vmcb.cpl == 3] && step_touches(&v->step, HPET);
    if (hpet_excess >= alarm_tick && (!v->clock.hides || looks))
        hpet_excess -= alarm_set_back(hpet_excess);
    v->vmcb.tsc_offset = v->clock.ahead - virt_hidden;
}

uint64_t clock_look(struct vcpu *v)
{
    if (virt_foreign) {
        hide_host(v);
        v->vmcb.tsc_offset = v->clock.ahead - virt_hidden;
    }
    return rdtsc() + v->vmcb.tsc_offset;
}

void clock_leave(struct vcpu *v, uint64_t clock)
{
    hide_time(v, v->r.start + clock, v->run.length);
    v->clock.hides = virt_foreign && !virt_step && (v->pmu.counting || v->step.active);
}
