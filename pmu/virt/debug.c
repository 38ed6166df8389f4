/* SPDX-License-Identifier: MIT */
/* The guest's debug registers. DR0 to DR3 are its own at all times; its breakpoints are on only
 * from entry to exit, so that host code meets none. QEMU's VMRUN loads DR7 but arms no breakpoint.
 * So the host writes DR7 just before it, and executes the guest's own MOV to DR7 here. Source:
 * AMD64 APM volume 2, "Debug Registers". */
#include "kernel/base/x86.h"
#include "pmu/virt/debug.h"
#include "pmu/virt/guest.h"
#include "pmu/virt/vcpu.h"

enum { OP_MOV_FROM_DR = 0x21, OP_MOV_TO_DR = 0x23 }; /* after 0F */
#define CR4_DE (1u << 3)
#define DR7_OFF 0x400u
#define DR6_BREAKPOINTS 15u
#define DR6_WRITABLE 0xe00fu
#define DR6_FIXED 0xffff0ff0u

void debug_enter(const struct vcpu *v)
{
    if (v->vmcb.dr7 & DR7_ANY)
        write_dr7(v->vmcb.dr7);
}

void debug_leave(const struct vcpu *v)
{
    if (v->vmcb.dr7 & DR7_ANY)
        write_dr7(DR7_OFF);
}

/* Data breakpoints that the guest has enabled, as bits of DR6. */
static unsigned data_breakpoints(uint64_t dr7)
{
    unsigned mask = 0;
    for (unsigned i = 0; i < 4; i++)
        if (dr7 >> 2 * i & 3 && dr7 >> (16 + 4 * i) & 1) /* R/W 1 and 3; 0 is execution, 2 is I/O */
            mask |= 1u << i;
    return mask;
}

/* Whether the opcode with ModRM is this MOV with DR6, or DR4, its other name. */
static bool moves_dr6(const struct vcpu *v, uint8_t op)
{
    return insn_is(&v->step.insn, MAP_0F, op) && (insn_reg(&v->step.insn) & 5) == 4;
}

bool debug_write_dr7(struct vcpu *v, unsigned number)
{
    struct insn i;
    guest_insn(v, &i);
    uint64_t value = guest_register(v, insn_rm(&i));
    if (!guest_in_long_mode(v))
        value = (uint32_t)value;
    unsigned refused = number == 5 && v->vmcb.cr4 & CR4_DE ? VECTOR_UD
                       : value >> 32                       ? VECTOR_GP
                                                           : 0;
    if (refused) {
        virt_raise(v, refused, 0);
        return false;
    }
    v->vmcb.dr7 = value | DR7_OFF;
    return true;
}

void debug_begin_step(struct vcpu *v)
{
    v->step.dr6 = v->vmcb.dr6;
    if (!moves_dr6(v, OP_MOV_FROM_DR))
        v->vmcb.dr6 &= ~(uint64_t)DR6_SINGLE_STEP; /* the guest's own would look like the step's */
}

bool debug_end_step(struct vcpu *v)
{
    bool trapped = v->vmcb.exit_code == EXIT_EXCEPTION + VECTOR_DB;
    if (trapped && clock_dr6_stays)
        v->vmcb.dr6 |= DR6_SINGLE_STEP;
    bool done = trapped && v->vmcb.dr6 & DR6_SINGLE_STEP;
    if (moves_dr6(v, OP_MOV_FROM_DR))
        done = done && v->vmcb.rip != v->run.rip;
    if (done && moves_dr6(v, OP_MOV_TO_DR))
        v->step.dr6 = (guest_register(v, insn_rm(&v->step.insn)) & DR6_WRITABLE) | DR6_FIXED;
    if (!done) /* a breakpoint before it, or another exit */
        v->vmcb.dr6 = trapped ? v->vmcb.dr6 | (v->step.dr6 & DR6_SINGLE_STEP) : v->step.dr6;
    return done;
}

/* A #DB ends BTF, which has the guest's own step go on until a branch is taken. */
static bool is_own_due(struct vcpu *v)
{
    const struct instruction *i = &v->step.code;
    if (!(v->pmu.debugctl & DEBUGCTL_BTF))
        return true;
    bool stepped = v->step.done && v->vmcb.dr6 & DR6_SINGLE_STEP,
         hit = v->vmcb.dr6 & data_breakpoints(v->vmcb.dr7);
    if (stepped && (!i->branch || v->vmcb.rip == i->next)) {
        v->vmcb.dr6 = (v->vmcb.dr6 & ~(uint64_t)DR6_SINGLE_STEP) | (v->step.dr6 & DR6_SINGLE_STEP);
        if (!hit) {
            v->vmcb.dr6 = v->step.dr6;
            return false;
        }
    }
    v->pmu.debugctl &= ~(uint64_t)DEBUGCTL_BTF;
    count_refresh(v);
    return true;
}

bool debug_is_guests(struct vcpu *v)
{
    if (!v->step.done || v->step.guest_tf)
        return is_own_due(v);
    /* A step sets DR6's bit of each breakpoint that matches, also of execution at the next RIP. */
    uint64_t found = v->vmcb.dr6 & DR6_BREAKPOINTS;
    bool hit = found & data_breakpoints(v->vmcb.dr7);
    v->vmcb.dr6 = v->step.dr6;
    if (hit)
        v->vmcb.dr6 = (v->step.dr6 & ~(uint64_t)DR6_BREAKPOINTS) | found;
    return hit;
}
