/* SPDX-License-Identifier: MIT */
/* Executes SYSCALL, SYSRET, SYSENTER and SYSEXIT while something counts: they change the ring, but
 * cause no exit. So the processor's EFER.SCE and SYSENTER_CS are clear then, and they fault. This
 * file executes them in every mode in which the model's processor has them; for a foreign guest,
 * those of which the two vendors differ, always. Sources: AMD64 APM volume 3 and SDM volume 2, the
 * sections of these instructions. */
#include "kernel/base/msr.h"
#include "kernel/base/x86.h"
#include "pmu/virt/guest.h"
#include "pmu/virt/vcpu.h"

enum { SYSCALL = 0x05, SYSRET = 0x07, SYSENTER = 0x34, SYSEXIT = 0x35 }; /* after 0F */
#define SYSRET_FLAGS 0x3c7fd7u /* what SYSRET loads of R11: all flags but RF and VM */
#define SELECTOR 0xfffcu
#define STAR_EIP 0xffffffffu

static bool in_long_mode(const struct vcpu *v) { return v->vmcb.efer & EFER_LMA; }

/* Loads flat segments: ring and width of the code. */
static void set_code(struct vcpu *v, unsigned cs, unsigned ss, bool wide)
{
    virt_set_cpl(v, (uint16_t)cs, (uint16_t)ss);
    if (!wide)
        v->vmcb.cs.attributes = (uint16_t)(SEGMENT_CODE32 | (cs & 3 ? SEGMENT_RING3 : 0));
}

static void do_syscall(struct vcpu *v, unsigned length)
{
    uint64_t star = rdmsr(MSR_STAR);
    bool code64 = v->vmcb.cs.attributes & SEGMENT_LONG;
    v->r.rcx = v->vmcb.rip + length;
    if (in_long_mode(v)) {
        v->r.r11 = v->vmcb.rflags & ~(uint64_t)RFLAGS_RF;
        v->vmcb.rip = rdmsr(code64 ? MSR_LSTAR : MSR_CSTAR);
        v->vmcb.rflags &= ~(rdmsr(MSR_SFMASK) | RFLAGS_RF);
        v->vmcb.rflags |= 2;
    } else {
        v->vmcb.rip = star & STAR_EIP;
        v->vmcb.rflags &= ~(uint64_t)(RFLAGS_IF | RFLAGS_RF | RFLAGS_VM);
    }
    unsigned cs = (unsigned)(star >> 32) & SELECTOR;
    set_code(v, cs, cs + 8, in_long_mode(v));
}

/* SYSRET to 64-bit code; a 32-bit target gets a compatibility segment. */
static void do_sysret(struct vcpu *v, bool wide)
{
    unsigned base = (unsigned)(rdmsr(MSR_STAR) >> 48);
    v->vmcb.rip = wide ? v->r.rcx : (uint32_t)v->r.rcx;
    if (in_long_mode(v))
        v->vmcb.rflags = (v->r.r11 & SYSRET_FLAGS) | 2;
    else
        v->vmcb.rflags |= RFLAGS_IF;
    set_code(v, (base + (wide ? 16 : 0)) | 3, (base + 8) | 3, wide);
}

/* R11 and RCX stay. */
static void do_sysenter(struct vcpu *v)
{
    unsigned cs = v->syscalls.sysenter_cs & SELECTOR;
    v->vmcb.rflags &= ~(uint64_t)(RFLAGS_IF | RFLAGS_RF | RFLAGS_VM);
    v->vmcb.rsp = rdmsr(MSR_SYSENTER_ESP);
    v->vmcb.rip = rdmsr(MSR_SYSENTER_EIP);
    set_code(v, cs, cs + 8, in_long_mode(v));
}

static void do_sysexit(struct vcpu *v, bool wide)
{
    unsigned base = v->syscalls.sysenter_cs + (wide ? 32 : 16);
    v->vmcb.rsp = wide ? v->r.rcx : (uint32_t)v->r.rcx;
    v->vmcb.rip = wide ? v->r.rdx : (uint32_t)v->r.rdx;
    set_code(v, base | 3, (base + 8) | 3, wide);
}

static bool model_is_intel(const struct vcpu *v) { return v->pmu.model->ops->vendor[0] == 'G'; }

/* What the model's processor raises instead; 0: nothing. Intel's have SYSCALL in 64-bit mode only,
 * AMD's no SYSENTER in long mode. */
static unsigned syscall_refusal(const struct vcpu *v, unsigned op)
{
    bool star = op == SYSCALL || op == SYSRET;
    if (star ? !v->syscalls.sce || (model_is_intel(v) && !guest_in_long_mode(v))
             : !model_is_intel(v) && in_long_mode(v))
        return VECTOR_UD;
    if (!star && !(v->syscalls.sysenter_cs & SELECTOR))
        return VECTOR_GP;
    return v->vmcb.cpl && (op == SYSRET || op == SYSEXIT) ? VECTOR_GP : 0;
}

static bool is_syscall(struct vcpu *v, struct insn *i)
{
    guest_insn(v, i);
    return i->map == MAP_0F && v->vmcb.cr0 & CR0_PE &&
           (i->op == SYSCALL || i->op == SYSRET || i->op == SYSENTER || i->op == SYSEXIT);
}

bool emulate_is_due(struct vcpu *v)
{
    struct insn i;
    return is_syscall(v, &i) && !syscall_refusal(v, i.op) && (i.op == SYSCALL || i.op == SYSRET);
}

bool emulate_syscall(struct vcpu *v)
{
    struct insn i;
    if (!is_syscall(v, &i))
        return false;
    unsigned refused = syscall_refusal(v, i.op);
    bool user = v->vmcb.cpl == 3, wide = i.rex & REX_W;
    uint64_t from = v->vmcb.rip;
    if (refused) {
        virt_raise(v, refused, 0);
        return true;
    }
    switch (i.op) {
    case SYSCALL: do_syscall(v, i.prefixes + 2u); break;
    case SYSRET: do_sysret(v, wide); break;
    case SYSENTER: do_sysenter(v); break;
    case SYSEXIT: do_sysexit(v, wide); break;
    }
    v->vmcb.shadow = 0;
    if (v->pmu.records.on)
        records_add(v, BRANCH_FAR, from, v->vmcb.rip, false);
    count_record(v);
    count_one(v, user, EFFECT(EVENT_BRANCHES) | EFFECT(EVENT_FAR));
    virt_trap(v); /* the trap depends on the new flags: SYSCALL may have cleared TF, and SYSRET
                     restores it */
    return true;
}

uint32_t emulate_hide_syscalls(struct vcpu *v, bool hide)
{
    bool intel = model_is_intel(v), hide_sce = hide || (virt_foreign && intel);
    bool hide_sysenter = hide || (virt_foreign && !intel);
    v->vmcb.efer &= ~(uint64_t)EFER_SCE;
    if (v->syscalls.sce && !hide_sce)
        v->vmcb.efer |= EFER_SCE;
    if (v->syscalls.sysenter_hidden != hide_sysenter)
        wrmsr(MSR_SYSENTER_CS, hide_sysenter ? 0 : v->syscalls.sysenter_cs);
    v->syscalls.sysenter_hidden = hide_sysenter;
    return 1u << VECTOR_UD | 1u << VECTOR_GP;
}

bool emulate_read_sysenter(struct vcpu *v, uint32_t, uint64_t *value)
{
    *value = v->syscalls.sysenter_cs;
    return true;
}

bool emulate_write_sysenter(struct vcpu *v, uint32_t msr, uint64_t value)
{
    v->syscalls.sysenter_cs = (uint16_t)value;
    if (!v->syscalls.sysenter_hidden)
        wrmsr(msr, v->syscalls.sysenter_cs);
    return true;
}
