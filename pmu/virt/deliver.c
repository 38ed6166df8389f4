/* SPDX-License-Identifier: MIT */
/* Delivers an interrupt or exception to the guest in software. Delivery by the processor clears TF,
 * so the first instruction of the handler could not be single-stepped; and QEMU has a defect with
 * interrupts (run_entry.c). Unusual cases are left to the processor. Source: AMD64 APM volume 2,
 * "Long-Mode Interrupt Control Transfers". */
#include "kernel/base/msr.h"
#include "kernel/base/vectors.h"
#include "kernel/base/x86.h"
#include "pmu/virt/guest.h"
#include "pmu/virt/vcpu.h"

#define GATE_INTERRUPT 0x0e
#define GATE_TRAP 0x0f
#define GATE_PRESENT 0x80
/* Of a descriptor: present, DPL, S, type without accessed and readable; L and D. */
#define CODE_MASK 0x0060fc0000000000u
#define CODE_RING0 0x0020980000000000u
#define TSS_RSP0 4
#define TSS_IST1 36
#define RFLAGS_NT (1u << 14)

/* Whether the gate's selector is present 64-bit code of ring 0, not conforming. */
static bool is_handler_code(const struct vcpu *v, uint16_t selector)
{
    uint64_t d, at = selector & ~7u;
    if (selector & 4 || at + 7 > v->vmcb.gdtr.limit ||
        guest_read(v, v->vmcb.gdtr.base + at, &d, sizeof d) != sizeof d)
        return false;
    return (d & CODE_MASK) == CODE_RING0;
}

/* Reads the gate. False unless it leads to 64-bit ring 0 code and the event may use it. */
static bool read_gate(const struct vcpu *v, struct gate *g)
{
    unsigned vector = v->vmcb.inject & 0xff, dpl;
    if (!(v->vmcb.efer & EFER_LMA) || 16 * vector + 15 > v->vmcb.idtr.limit)
        return false;
    if (guest_read(v, v->vmcb.idtr.base + 16 * vector, g, sizeof *g) != sizeof *g)
        return false;
    dpl = g->type >> 5 & 3;
    if ((v->vmcb.inject & INJECT_TYPE) == INJECT_SOFT_INT && dpl < v->vmcb.cpl)
        return false;
    unsigned kind = g->type & 0x9f;
    return (kind == (GATE_PRESENT | GATE_INTERRUPT) || kind == (GATE_PRESENT | GATE_TRAP)) &&
           g->selector >= 4 && is_handler_code(v, g->selector);
}

/* The top of the handler's stack, aligned. */
static bool find_stack(struct vcpu *v, const struct gate *g, uint64_t *rsp)
{
    unsigned ist = g->ist & 7;
    *rsp = v->vmcb.rsp;
    if (ist || v->vmcb.cpl) {
        svm_save(virt_physical(&v->vmcb)); /* VMRUN does not switch TR */
        uint64_t at = v->vmcb.tr.base + (ist ? TSS_IST1 + 8 * (ist - 1) : TSS_RSP0);
        if (guest_read(v, at, rsp, sizeof *rsp) != sizeof *rsp)
            return false;
    }
    *rsp &= ~15ul;
    return true;
}

static uint64_t pushed_flags(const struct vcpu *v)
{
    unsigned vector = v->vmcb.inject & 0xff;
    bool fault = (v->vmcb.inject & INJECT_TYPE) == INJECT_EXCEPTION && vector != VECTOR_DB &&
                 vector != VECTOR_BP;
    return v->vmcb.rflags | (fault ? RFLAGS_RF : 0);
}

static bool push_frame(const struct vcpu *v, uint64_t *rsp)
{
    uint64_t frame[] = { v->vmcb.ss.selector, v->vmcb.rsp, pushed_flags(v),
                         v->vmcb.cs.selector, v->vmcb.rip, v->vmcb.inject >> 32 };
    unsigned n = v->vmcb.inject & INJECT_HAS_CODE ? 6 : 5;
    for (unsigned i = 0; i < n; i++) {
        *rsp -= 8;
        if (!guest_write64(v, *rsp, frame[i]))
            return false;
    }
    return true;
}

bool deliver_in_software(struct vcpu *v)
{
    struct gate g;
    uint64_t rsp;
    if (!read_gate(v, &g) || !find_stack(v, &g, &rsp) || !push_frame(v, &rsp))
        return false;

    early_serialize(v);
    struct segment ss = v->vmcb.ss;
    bool same_stack = !v->vmcb.cpl && !(g.ist & 7);
    uint64_t from = v->vmcb.rip;
    if ((v->vmcb.inject & INJECT_TYPE) == INJECT_SOFT_INT)
        count_one(v, v->run.soft_user, EFFECTS_SOFT_INT);
    if (v->vmcb.cpl == 3)
        count_taken_in_ring3(v, v->vmcb.inject);
    virt_set_cpl(v, g.selector & ~3u, 0); /* the gate's RPL is ignored */
    v->vmcb.ss = same_stack ? ss : (struct segment){ 0, 0, 0, 0 };
    v->vmcb.rsp = rsp;
    v->vmcb.rip = g.offset_low | (uint64_t)g.offset_middle << 16 | (uint64_t)g.offset_high << 32;
    v->vmcb.rflags &= ~(uint64_t)(RFLAGS_TF | RFLAGS_NT | RFLAGS_RF | (g.type & 1 ? 0 : RFLAGS_IF));
    v->vmcb.shadow = 0;
    if (v->pmu.records.on && records_add_event(v, from))
        count_refresh(v);
    count_record(v);
    v->vmcb.inject = 0;
    return true;
}
