/* SPDX-License-Identifier: MIT */
/* Executes SYSCALL, SYSRET, SYSENTER and SYSEXIT while something counts: they change the ring, but
 * cause no exit. So the processor's EFER.SCE and SYSENTER_CS are clear then, and they fault. This
 * file executes them, in every mode of the guest, as QEMU or Bochs would. Source: AMD64 APM volume
 * 3, the sections of these instructions. */
#include "kernel/base/msr.h"
#include "kernel/base/x86.h"
#include "pmu/virt/svm.h"

#define RFLAGS_VM (1u << 17)
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
    unsigned cs = v->sysenter_cs & SELECTOR;
    v->vmcb.rflags &= ~(uint64_t)(RFLAGS_IF | RFLAGS_RF | RFLAGS_VM);
    v->vmcb.rsp = rdmsr(MSR_SYSENTER_ESP);
    v->vmcb.rip = rdmsr(MSR_SYSENTER_EIP);
    set_code(v, cs, cs + 8, in_long_mode(v));
}

static void do_sysexit(struct vcpu *v, bool wide)
{
    unsigned base = v->sysenter_cs + (wide ? 32 : 16);
    v->vmcb.rsp = wide ? v->r.rcx : (uint32_t)v->r.rcx;
    v->vmcb.rip = wide ? v->r.rdx : (uint32_t)v->r.rdx;
    set_code(v, base | 3, (base + 8) | 3, wide);
}

/* Whether REX.W stands before the opcode. */
static bool is_wide(const struct vcpu *v, unsigned prefixes)
{
    uint8_t rex = 0;
    if (prefixes && v->vmcb.cs.attributes & SEGMENT_LONG)
        guest_read(v, v->vmcb.rip + prefixes - 1, &rex, 1);
    return (rex & 0xf8) == 0x48;
}

bool emulate_syscall(struct vcpu *v, unsigned vector)
{
    enum { SYSCALL = 0x05, SYSRET = 0x07, SYSENTER = 0x34, SYSEXIT = 0x35 };
    uint8_t op[3];
    unsigned prefixes = guest_code(v, op);
    bool user = v->vmcb.cpl == 3,
         may = vector == VECTOR_UD ? v->sce : v->sysenter_cs && v->sysenter_hidden;
    if (op[0] != 0x0f || !may || !(v->vmcb.cr0 & CR0_PE))
        return false;
    if (vector == VECTOR_UD && op[1] == SYSCALL) {
        do_syscall(v, prefixes + 2);
    } else if (vector == VECTOR_UD && op[1] == SYSRET && v->vmcb.cpl) {
        virt_raise(v, VECTOR_GP, 0);
        return true;
    } else if (vector == VECTOR_UD && op[1] == SYSRET) {
        do_sysret(v, is_wide(v, prefixes));
    } else if (vector == VECTOR_GP && op[1] == SYSENTER) {
        do_sysenter(v);
    } else if (vector == VECTOR_GP && op[1] == SYSEXIT && !v->vmcb.cpl) {
        do_sysexit(v, is_wide(v, prefixes));
    } else {
        return false;
    }
    v->vmcb.shadow = 0;
    count_one(v, user, EFFECT(EVENT_BRANCHES) | EFFECT(EVENT_FAR));
    virt_trap(v); /* the trap depends on the new flags: SYSCALL may have cleared TF, and SYSRET
                     restores it */
    return true;
}

void emulate_hide_syscalls(struct vcpu *v, bool hide)
{
    v->vmcb.efer &= ~(uint64_t)EFER_SCE;
    if (v->sce && !hide)
        v->vmcb.efer |= EFER_SCE;
    if (v->sysenter_hidden == hide)
        return;
    v->sysenter_hidden = hide;
    wrmsr(MSR_SYSENTER_CS, hide ? 0 : v->sysenter_cs);
}

void emulate_set_sysenter_cs(struct vcpu *v, uint64_t value)
{
    v->sysenter_cs = (uint16_t)value;
    if (!v->sysenter_hidden)
        wrmsr(MSR_SYSENTER_CS, v->sysenter_cs);
}
