/* SPDX-License-Identifier: MIT */
/* SYSCALL and SYSRET, which raise #UD while something counts. Source: AMD64 APM volume 3, "SYSCALL", "SYSRET". */
#include "kernel/base/msr.h"
#include "kernel/base/x86.h"
#include "pmu/virt/svm.h"

#define SYSRET_FLAGS 0x3c7fd7u /* what SYSRET loads of R11: all flags but RF and VM */

static void do_syscall(struct vcpu *v, unsigned length)
{
    uint64_t star = rdmsr(MSR_STAR);
    v->r.rcx = v->vmcb.rip + length;
    v->r.r11 = v->vmcb.rflags;
    v->vmcb.rip = rdmsr(MSR_LSTAR);
    v->vmcb.rflags &= ~(rdmsr(MSR_SFMASK) | 1u << 16); /* and RF */
    v->vmcb.rflags |= 2;
    uint16_t cs = (uint16_t)(star >> 32) & 0xfffc;
    virt_set_cpl(v, cs, cs + 8);
}

/* SYSRET to 64-bit code; a 32-bit target gets a compatibility segment. */
static void do_sysret(struct vcpu *v, bool wide)
{
    uint16_t base = (uint16_t)(rdmsr(MSR_STAR) >> 48);
    v->vmcb.rip = wide ? v->r.rcx : (uint32_t)v->r.rcx;
    v->vmcb.rflags = (v->r.r11 & SYSRET_FLAGS) | 2;
    virt_set_cpl(v, (uint16_t)(base + (wide ? 16 : 0)) | 3, (uint16_t)(base + 8) | 3);
    if (!wide)
        v->vmcb.cs.attributes = SEGMENT_CODE32 | SEGMENT_RING3;
}

bool emulate_syscall(struct vcpu *v)
{
    uint8_t op[3], rex = 0;
    unsigned prefixes = guest_code(v, op);
    if (!v->sce || !guest_in_long_mode(v) || op[0] != 0x0f)
        return false;
    bool user = v->vmcb.cpl == 3;
    if (prefixes)
        guest_read(v, v->vmcb.rip + prefixes - 1, &rex, 1);
    if (op[1] == 0x05) {
        do_syscall(v, prefixes + 2);
    } else if (op[1] == 0x07 && v->vmcb.cpl == 0) {
        do_sysret(v, (rex & 0xf8) == 0x48);
    } else {
        return false;
    }
    v->vmcb.shadow = 0;
    count_one(v, user, EFFECT(EVENT_BRANCHES) | EFFECT(EVENT_FAR));
    virt_trap(v); /* the trap depends on the new flags: SYSCALL may have cleared TF, and SYSRET restores it */
    return true;
}
