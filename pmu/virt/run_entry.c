/* SPDX-License-Identifier: MIT */
/* From an exit to the next entry. First this counts, for one ring, what the guest executed since
 * its last entry. A far return or a gate to another ring causes no exit: what follows it in the
 * same run counts for the ring that was left. Then it chooses the guest's next interrupt or
 * exception, and whether to single-step. The VMCB injects one at a time; an NMI waits. QEMU copies
 * what was injected to exit_int_info even when it was delivered, so that field is not used. */
#include "kernel/base/layout.h"
#include "kernel/base/x86.h"
#include "pmu/virt/blocks/blocks.h"
#include "pmu/virt/blocks/nested.h"
#include "pmu/virt/debug.h"
#include "pmu/virt/quirk.h"

#define STEP_TICKS 4 /* closer to the wrap than this many of the alarm's ticks: step */

#define RFLAGS_ZERO 0xffffffffffc08028 /* the reserved bits that read as 0 */
#define RFLAGS_FREE 0xad5              /* arithmetic flags and IF, which code changes often */

enum { OP_PUSHF = 0x9c, OP_POPF = 0x9d, OP_IRET = 0xcf, OP_STI = 0xfb };

/* TF for one instruction. The guest's own TF comes back in end_step. */
static void begin_step(struct vcpu *v)
{
    v->step.active = true;
    v->step.guest_tf = v->vmcb.rflags & RFLAGS_TF;
    v->step.guest_if = v->vmcb.rflags & RFLAGS_IF;
    guest_insn(v, &v->step.insn);
    debug_begin_step(v);
    bool decodes = v->pmu.decoding[v->vmcb.cpl == 3] || v->pmu.ds.armed || virt_quirks.far;
    v->step.code = (struct instruction){ 0 };
    if (decodes || virt_foreign)
        instruction_decode(v, &v->step.insn, &v->step.code);
    bool accesses = v->step.code.effects & (EFFECT(EVENT_LOADS) | EFFECT(EVENT_STORES));
    v->step.reaches =
        virt_foreign && accesses ? guest_physical(v, v->step.code.address) : UINT64_MAX;
    if (!decodes)
        v->step.code = (struct instruction){ 0 };
    v->vmcb.rflags |= RFLAGS_TF;
    v->statistics.steps++;
}

static uint64_t stack_address(const struct vcpu *v)
{
    if (guest_in_long_mode(v))
        return v->vmcb.rsp;
    uint64_t sp = v->vmcb.ss.attributes & SEGMENT_BIG ? v->vmcb.rsp : (uint16_t)v->vmcb.rsp;
    return (uint32_t)(v->vmcb.ss.base + sp);
}

/* TF is in the second byte, of which alone it is known that it is there: eight of its page. */
static void clear_pushed_tf(struct vcpu *v)
{
    uint64_t eight, at = stack_address(v) + 1, first = at & ~7ul;
    if (guest_read(v, first, &eight, sizeof eight) == sizeof eight)
        guest_write64(v, first, eight & ~((uint64_t)RFLAGS_TF >> 8 << 8 * (at & 7)));
}

/* Restores the guest's flags. Returns whether the instruction was completed. */
static bool end_step(struct vcpu *v)
{
    bool done = debug_end_step(v);
    bool popped = done && (insn_is(&v->step.insn, MAP_ONE, OP_POPF) ||
                           insn_is(&v->step.insn, MAP_ONE, OP_IRET));
    v->step.active = false;
    if (!popped && !v->step.guest_tf)
        v->vmcb.rflags &= ~(uint64_t)RFLAGS_TF;
    if (done && insn_is(&v->step.insn, MAP_ONE, OP_PUSHF) && !v->step.guest_tf)
        clear_pushed_tf(v);
    if (done && insn_is(&v->step.insn, MAP_ONE, OP_STI) && !v->step.guest_if)
        v->vmcb.shadow = 1; /* Bochs does not report it after a step */
    if (done && v->step.iret)
        v->nmi.blocked = false;
    v->step.iret = false;
    return done;
}

/* Whether the delivery of the injected event raised an exception. */
static bool inject_failed(const struct vcpu *v)
{
    bool exception = v->vmcb.exit_code >= EXIT_EXCEPTION && v->vmcb.exit_code < EXIT_EXCEPTION + 32;
    exception |= v->vmcb.exit_code == EXIT_NPF && !(v->vmcb.exit_info1 & 16);
    return v->run.injected & INJECT_VALID && exception && !v->run.length &&
           v->vmcb.rip == v->run.rip;
}

/* The clock's advance when the instruction that has just faulted, which faults again, is executed
 * alone. */
static uint64_t fault_again(struct vcpu *v)
{
    uint64_t code = v->vmcb.exit_code, flags = v->vmcb.rflags, start = v->r.start, clock;
    v->vmcb.rflags &= ~(uint64_t)RFLAGS_IF;
    do
        clock = svm_run(virt_physical(&v->vmcb), &v->r, &v->stack.nmis, v->stack.nmis);
    while (clock == SVM_NOT_RUN || v->vmcb.exit_code == EXIT_NMI);
    if (v->vmcb.exit_code != code)
        virt_die(v, "a fault did not come again");
    v->vmcb.rflags = flags;
    v->r.start = start;
    return clock;
}

/* Instructions that the guest completed; the clock also counts some that exited instead. Which ones
 * that fault hangs on QEMU's version: what its translator refuses, and its helpers do not. */
static uint64_t by_clock(struct vcpu *v, uint64_t clock)
{
    uint64_t n = clock - clock_cost, code = v->vmcb.exit_code;
    if (code == EXIT_SOFT_INT)
        return n - clock_soft_int;
    bool fault = code == EXIT_EXCEPTION + VECTOR_UD || code == EXIT_EXCEPTION + VECTOR_GP;
    if (n && fault && !emulate_is_due(v)) /* these two a helper refuses */
        return clock - fault_again(v);
    return n;
}

/* One step is one instruction, but for the iterations of a string instruction before its last. */
static bool is_string(const struct insn *i)
{
    return i->map == MAP_ONE && insn_op_is_string(i->op);
}

static uint64_t by_step(const struct vcpu *v)
{
    return v->step.done && !(is_string(&v->step.insn) && v->vmcb.rip == v->run.rip);
}

/* A step of a string instruction, and one whose trap the processor did not report (svm.asm,
 * host_debug), are no clock's. */
static uint64_t length_of_run(struct vcpu *v, uint64_t clock, bool step)
{
    if (virt_step || (step && (is_string(&v->step.insn) || (clock_dr6_stays && !v->step.done))))
        return by_step(v);
    return by_clock(v, clock);
}

static void learn_way_in(struct vcpu *v)
{
    if (v->alarm.aimed && v->r.start - v->alarm.aimed_at < v->alarm.way_in)
        v->alarm.way_in = v->r.start - v->alarm.aimed_at;
    v->alarm.aimed = false;
}

/* What was injected is delivered: the guest is in ring 0. */
static void account_delivery(struct vcpu *v)
{
    early_serialize(v);
    if ((v->run.injected & INJECT_TYPE) == INJECT_SOFT_INT)
        count_one(v, v->run.soft_user, EFFECTS_SOFT_INT);
    if (v->run.user)
        count_taken_in_ring3(v, v->run.injected);
}

static void account_step(struct vcpu *v, bool user)
{
    if (!v->run.length) {
        count_iterations(v, user, 1);
        return;
    }
    uint32_t effects = instruction_effects(v, &v->step.code);
    records_add_step(v, v->step.code.branch, effects);
    count_record(v);
    count_one(v, user, effects);
    count_add(v, user, v->run.length - 1); /* MOV SS delays the trap by one instruction */
}

/* INT3 and INTO exit as exceptions on processors and Bochs, and as INT n on QEMU. */
static void join_soft_ints(struct vmcb *g)
{
    if (g->exit_code == EXIT_EXCEPTION + VECTOR_BP || g->exit_code == EXIT_EXCEPTION + VECTOR_OF)
        g->exit_code = EXIT_SOFT_INT;
}

/* After CMPXCHG16B, until an instruction sets the flags, QEMU 7.2 has chance bits in them; an exit
 * or a timer makes these last. TF then traps, NT faults at an IRET that is not intercepted. Both
 * are dropped: a real fault comes again. */
static void clean_flags(struct vcpu *v)
{
    struct vmcb *g = &v->vmcb;
    uint64_t vector = g->exit_code - EXIT_EXCEPTION;
    if (!(g->rflags & RFLAGS_ZERO))
        return;
    g->rflags = (g->rflags & RFLAGS_FREE) | (v->run.rflags & ~(uint64_t)RFLAGS_FREE);
    if (vector == VECTOR_GP || (vector == VECTOR_DB && !(g->rflags & RFLAGS_TF)))
        g->exit_code = EXIT_NMI;
}

/* By a port or by memory. The commonest steps reach no more than the stack. */
static bool may_ask_device(const struct vcpu *v)
{
    const struct insn *i = &v->step.insn;
    bool stack = i->op == OP_POPF || i->op == OP_IRET || i->op == OP_STI || (i->op & 0xf0) == 0x50;
    if (insn_has_memory(i) && guest_ram_page(v->step.reaches & -PAGE_SIZE))
        return false;
    return i->map == MAP_ONE ? !stack : insn_has_memory(i);
}

void entry_account(struct vcpu *v, uint64_t clock)
{
    bool step = v->step.active, injected = v->run.injected & INJECT_VALID;
    clean_flags(v);
    join_soft_ints(&v->vmcb);
    v->step.done = step && end_step(v);
    v->step.alone &= !step;
    learn_way_in(v);
    v->run.length = length_of_run(v, clock, step);
    v->run.inject_failed = inject_failed(v);
    if (injected && !v->run.inject_failed)
        account_delivery(v);
    if (!v->step.done || may_ask_device(v))
        nested_device();
    if (v->step.done)
        account_step(v, !injected && v->run.user);
    else
        count_add(v, !injected && v->run.user, v->run.length);
    if (v->vmcb.exit_code == EXIT_HLT)
        pmi_hasten(v);
}

/* Sets the alarm so that the next run ends with the slice, or just before a counter wraps; the rest
 * is single-stepped. The alarm is never late: it assumes the shortest time seen from here to the
 * guest, and comes two of the comparator's ticks early. Returns whether to single-step. */
static bool aim_alarm(struct vcpu *v, bool user, uint64_t slice_end)
{
    uint64_t left = count_left(v, user), at = slice_end;
    if (left <= STEP_TICKS * alarm_tick || (left != UINT64_MAX && v->alarm.rang && !v->run.length))
        return true;
    v->alarm.aimed_at = rdtsc();
    if (left != UINT64_MAX) {
        uint64_t way = v->alarm.way_in == UINT64_MAX ? 0 : v->alarm.way_in;
        uint64_t wrap = v->alarm.aimed_at + way + left - 2 * alarm_tick;
        at = wrap < at ? wrap : at;
    }
    if (at < v->alarm.at && alarm_is_near(v))
        return true;
    v->alarm.aimed = at != UINT64_MAX && alarm_want(v, at);
    return false;
}

/* Whether a counter wraps at the delivery of what is injected, or writes a record: INT n counts
 * there, and with the quirk irq3 all that interrupts ring 3. */
static bool delivery_matters(const struct vcpu *v)
{
    bool int_n = (v->vmcb.inject & INJECT_TYPE) == INJECT_SOFT_INT;
    uint64_t events = (v->vmcb.cpl == 3 ? virt_quirks.irq3 : 0) + int_n;
    return events && count_left(v, !int_n || v->run.soft_user) <= events;
}

static bool must_step(struct vcpu *v, bool injects, uint64_t slice_end)
{
    bool user = !injects && v->vmcb.cpl == 3; /* an interrupt is taken in ring 0 */
    return virt_step ? v->pmu.counting
                     : v->pmu.decoding[user] || (injects ? delivery_matters(v) : v->rep.inside) ||
                           aim_alarm(v, user, slice_end);
}

static void inject_nmi(struct vcpu *v)
{
    if (!v->nmi.pending || v->nmi.blocked || v->vmcb.inject & INJECT_VALID)
        return;
    v->vmcb.inject = 2 | INJECT_NMI | INJECT_VALID;
    v->nmi.pending = false;
    v->nmi.blocked = true;
}

/* QEMU 7.2 leaves an injected external interrupt in its exception_index. If a timer's deadline
 * stops the guest before that is reset, the interrupt is delivered twice, even with IF clear. */
static bool is_interrupt(const struct vcpu *v)
{
    return (v->vmcb.inject & INJECT_TYPE) == INJECT_INTERRUPT;
}

void entry_cancel(struct vcpu *v)
{
    bool iret = v->step.iret;
    v->vmcb.exit_code = EXIT_NMI;
    v->alarm.aimed = false;
    v->run.length = 0; /* no progress: if it was the alarm, aim_alarm() takes a step */
    if (v->step.active)
        end_step(v);
    v->step.iret = iret;
}

void entry_prepare(struct vcpu *v)
{
    ds_write_record(v);
    token_collect_nmis(v);
    if (v->run.reentry && virt_quirks.vmrun)
        count_extra(v, v->vmcb.cpl == 3, 1);
    v->run.reentry = false;
    uint64_t slice_end = token_slice(v);
    if ((v->token.parked || v->startup.due) && startup_enter(v))
        x2apic_init(v);
    firmware_run(v);
    if (firmware_next(v) < slice_end)
        slice_end = firmware_next(v);
    blocks_run(v, slice_end);
    rep_decide(v);
    bool injects, step;
    do {
        ds_write_record(v); /* of INT n, which is delivered here */
        if (v->pmu.pmi)
            pmi_deliver(v);
        inject_nmi(v);
        injects = v->vmcb.inject & INJECT_VALID;
        if (injects) /* a handler comes first, whoever delivers */
            v->step.iret = v->step.alone = false;
        step = v->step.iret || v->step.alone || must_step(v, injects, slice_end);
    } while (injects && (step || is_interrupt(v)) && deliver_in_software(v));
    v->run.injected = v->vmcb.inject;
    v->run.rip = v->vmcb.rip;
    v->run.user = v->vmcb.cpl == 3;
    if (step && !injects) {
        if (slice_end != UINT64_MAX)
            alarm_claim(v, slice_end); /* aim_alarm() did not want one */
        begin_step(v);
    }
    v->run.rflags = v->vmcb.rflags;
}

/* A PMI that is due at the end of the run is delivered before the instruction that caused
 * the exit, which is executed again afterwards. This is not possible for exits with side
 * effects. */
bool entry_pmi_first(const struct vcpu *v)
{
    return v->pmu.pmi && v->vmcb.exit_code != EXIT_EXCEPTION + VECTOR_DB && !v->run.inject_failed;
}
