/* SPDX-License-Identifier: MIT */
/* Between an exit and the next entry: whose instructions the stretch was, which event the guest takes next, and
 * whether to step. There is one slot for an event (vmcb.event); an NMI waits for a free one.
 * QEMU copies the event to exit_int_info even when it was delivered, so that field is not looked at. */
#include "kernel/x86.h"
#include "pmu/virt/svm.h"

enum { OP_PUSHF = 0x9c, OP_POPF = 0x9d, OP_IRET = 0xcf };

/* TF for one instruction. The guest's own TF comes back in end_step. */
static void begin_step(struct vcpu *v)
{
    v->stepping = true;
    v->guest_tf = v->vmcb.rflags & RFLAGS_TF;
    v->entry_dr6 = v->vmcb.dr6;
    guest_code(v, v->step_op);
    v->vmcb.rflags |= RFLAGS_TF;
    v->statistics.steps++;
}

static void clear_pushed_tf(struct vcpu *v)
{
    uint64_t flags;
    if (guest_read(v, v->vmcb.rsp, &flags, sizeof flags) == sizeof flags)
        guest_write64(v, v->vmcb.rsp, flags & ~(uint64_t)RFLAGS_TF);
}

/* Whether the instruction was completed; the guest's flags are its own again. */
static bool end_step(struct vcpu *v)
{
    bool done = v->vmcb.exit_code == EXIT_EXCEPTION + VECTOR_DB && v->vmcb.dr6 & DR6_SINGLE_STEP;
    bool popped = done && (v->step_op[0] == OP_POPF || v->step_op[0] == OP_IRET);
    v->stepping = false;
    if (!popped && !v->guest_tf)
        v->vmcb.rflags &= ~(uint64_t)RFLAGS_TF;
    if (done && v->step_op[0] == OP_PUSHF && !v->guest_tf)
        clear_pushed_tf(v);
    if (done && v->step_iret)
        v->nmi_blocked = false;
    v->step_iret = false;
    return done;
}

bool event_take_debug(struct vcpu *v)
{
    if (!v->step_done)
        return true;
    if (v->guest_tf)
        return true;
    v->vmcb.dr6 = (v->vmcb.dr6 & ~(uint64_t)DR6_SINGLE_STEP) | (v->entry_dr6 & DR6_SINGLE_STEP);
    return (v->vmcb.dr6 & 15) != (v->entry_dr6 & 15); /* a breakpoint of the guest's at the same time */
}

/* The event of the last entry did not get through: an exception in its delivery came first. */
static bool event_failed(const struct vcpu *v)
{
    bool exception = v->vmcb.exit_code >= EXIT_EXCEPTION && v->vmcb.exit_code < EXIT_EXCEPTION + 32;
    return v->entry_event & EVENT_VALID && exception && !v->stretch && v->vmcb.rip == v->entry_rip;
}

/* Instructions of the stretch, by the clock: less what it counts although the exit came before. */
static uint64_t by_clock(struct vcpu *v, uint64_t clock)
{
    uint64_t n = clock - clock_cost;
    uint8_t op[3];
    if (v->vmcb.exit_code == EXIT_SOFT_INT)
        return n - clock_soft_int;
    if (v->vmcb.exit_code == EXIT_EXCEPTION + VECTOR_UD && clock_undefined) {
        guest_code(v, op);
        if (op[0] != 0x0f || (op[1] != 0x05 && op[1] != 0x07)) /* SYSCALL and SYSRET fault before the clock */
            return n - 1;
    }
    return n;
}

void event_account(struct vcpu *v, uint64_t clock)
{
    uint64_t event = v->entry_event;
    v->step_done = v->stepping && end_step(v);
    v->stretch = virt_step ? v->step_done : by_clock(v, clock);
    v->event_failed = event_failed(v);
    if (event & EVENT_VALID && (event & EVENT_TYPE) == EVENT_SOFT_INT && !v->event_failed)
        count_add(v, v->soft_user, 1);
    count_add(v, event & EVENT_VALID ? false : v->entry_user, v->stretch);
}

void event_prepare(struct vcpu *v)
{
    baton_collect_nmis(v);
    baton_slice(v);
    if (v->pmu.pmi)
        count_deliver_pmi(v);
    if (v->nmi_pending && !v->nmi_blocked && !(v->vmcb.event & EVENT_VALID)) {
        v->vmcb.event = 2 | EVENT_NMI | EVENT_VALID;
        v->nmi_pending = false;
        v->nmi_blocked = true;
    }
    v->entry_event = v->vmcb.event;
    v->entry_rip = v->vmcb.rip;
    v->entry_user = v->vmcb.cpl == 3;
    if (v->entry_event & EVENT_VALID)
        v->step_iret = false;
    else if (v->step_iret || (virt_step && v->pmu.counting))
        begin_step(v);
}
