/* SPDX-License-Identifier: MIT */
/* Between an exit and the next entry: whose instructions the stretch was (a far return or a gate to another ring is no
 * exit: what follows it in the stretch counts for the ring left), which event the guest takes next, and
 * whether to step. There is one slot for an event (vmcb.event); an NMI waits for a free one.
 * QEMU copies the event to exit_int_info even when it was delivered, so that field is not looked at. */
#include "kernel/x86.h"
#include "pmu/virt/svm.h"

#define STEP_TICKS 4 /* closer to the wrap than this many of the alarm's ticks: step */

enum { OP_PUSHF = 0x9c, OP_POPF = 0x9d, OP_IRET = 0xcf };

/* TF for one instruction. The guest's own TF comes back in end_step. */
static void begin_step(struct vcpu *v)
{
    v->stepping = true;
    v->guest_tf = v->vmcb.rflags & RFLAGS_TF;
    v->entry_dr6 = v->vmcb.dr6;
    guest_code(v, v->step_op);
    if (v->pmu.decoding[0] || v->pmu.decoding[1])
        instruction_decode(v, &v->step_code);
    else
        v->step_code = (struct instruction){ 0 };
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
    bool trapped = v->vmcb.exit_code == EXIT_EXCEPTION + VECTOR_DB;
    if (trapped && clock_dr6_stays)
        v->vmcb.dr6 |= DR6_SINGLE_STEP;
    bool done = trapped && v->vmcb.dr6 & DR6_SINGLE_STEP;
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

/* One step is one instruction, but for the iterations of a string instruction before its last. */
static bool is_string(uint8_t op)
{
    return (op >= 0xa4 && op <= 0xa7) || (op >= 0xaa && op <= 0xaf) || (op >= 0x6c && op <= 0x6f);
}

static uint64_t by_step(const struct vcpu *v)
{
    return v->step_done && !(is_string(v->step_op[0]) && v->vmcb.rip == v->entry_rip);
}

void event_account(struct vcpu *v, uint64_t clock)
{
    uint64_t event = v->entry_event;
    bool step = v->stepping;
    v->step_done = step && end_step(v);
    if (v->aimed && v->r.start - v->aimed_at < v->way_in)
        v->way_in = v->r.start - v->aimed_at;
    v->aimed = false;
    bool counted = step && (is_string(v->step_op[0]) || (clock_dr6_stays && !v->step_done)); /* svm.asm, host_debug */
    v->stretch = virt_step || counted ? by_step(v) : by_clock(v, clock);
    v->event_failed = event_failed(v);
    if (event & EVENT_VALID && (event & EVENT_TYPE) == EVENT_SOFT_INT && !v->event_failed)
        count_one(v, v->soft_user, EFFECTS_SOFT_INT);
    bool user = event & EVENT_VALID ? false : v->entry_user;
    if (v->step_done && v->stretch) {
        count_one(v, user, instruction_effects(v, &v->step_code));
        count_add(v, user, v->stretch - 1); /* MOV SS holds the trap back for one instruction more */
    } else {
        count_add(v, user, v->stretch);
    }
}

/* The next stretch ends with the slice or just before a counter wraps, by alarm; the rest is stepped. Nothing is
 * late: the shortest way seen from here to the guest is taken off, and twice the comparator's granularity.
 * Whether to step. */
static bool aim(struct vcpu *v, bool user, uint64_t slice_end)
{
    uint64_t left = count_left(v, user), at = slice_end;
    if (left <= STEP_TICKS * alarm_tick || (left != UINT64_MAX && v->alarm_rang && !v->stretch))
        return true;
    v->aimed_at = rdtsc();
    if (left != UINT64_MAX) {
        uint64_t way = v->way_in == UINT64_MAX ? 0 : v->way_in;
        uint64_t wrap = v->aimed_at + way + left - 2 * alarm_tick;
        at = wrap < at ? wrap : at;
    }
    v->aimed = at != UINT64_MAX && alarm_want(v, at);
    return false;
}

static bool must_step(struct vcpu *v, bool event, uint64_t slice_end)
{
    bool user = !event && v->vmcb.cpl == 3; /* an event is taken in ring 0 */
    return virt_step ? v->pmu.counting : v->pmu.decoding[user] || aim(v, user, slice_end);
}

static void inject_nmi(struct vcpu *v)
{
    if (!v->nmi_pending || v->nmi_blocked || v->vmcb.event & EVENT_VALID)
        return;
    v->vmcb.event = 2 | EVENT_NMI | EVENT_VALID;
    v->nmi_pending = false;
    v->nmi_blocked = true;
}

/* QEMU 7.2 injects an external interrupt and leaves it in its own exception_index: if then a timer's deadline stops
 * the guest before anything else resets that, the interrupt is delivered twice, IF clear or not. */
static bool is_interrupt(const struct vcpu *v) { return (v->vmcb.event & EVENT_TYPE) == EVENT_INTERRUPT; }

void event_cancel(struct vcpu *v)
{
    bool iret = v->step_iret;
    v->vmcb.exit_code = EXIT_NMI;
    v->aimed = false;
    v->stretch = 0; /* no progress: if it was the alarm, aim() takes a step */
    if (v->stepping)
        end_step(v);
    v->step_iret = iret;
}

void event_prepare(struct vcpu *v)
{
    baton_collect_nmis(v);
    uint64_t slice_end = baton_slice(v);
    bool event, step;
    do {
        if (v->pmu.pmi)
            count_deliver_pmi(v);
        inject_nmi(v);
        event = v->vmcb.event & EVENT_VALID;
        if (v->step_iret && !event)
            step = true; /* one instruction needs no alarm */
        else
            step = must_step(v, event, slice_end);
    } while (event && (step || is_interrupt(v)) && event_deliver(v));
    v->entry_event = v->vmcb.event;
    v->entry_rip = v->vmcb.rip;
    v->entry_user = v->vmcb.cpl == 3;
    if (event)
        v->step_iret = false;
    else if (step) {
        if (slice_end != UINT64_MAX)
            alarm_claim(v, slice_end); /* aim() did not want one */
        begin_step(v);
    }
}

/* A PMI that fell due at the end of the stretch comes before the instruction that made the exit: that one is
 * executed again. Not so where the exit itself has done something. */
bool event_comes_first(const struct vcpu *v)
{
    return v->pmu.pmi && v->vmcb.exit_code != EXIT_EXCEPTION + VECTOR_DB && !v->event_failed;
}
