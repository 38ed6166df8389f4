/* SPDX-License-Identifier: MIT */
/* Common system instructions of 64-bit code where code does not run freely, for a state in which
 * blocks.c may execute. What would fault, and what is rare, is stepped. Only on QEMU, which flushes
 * a guest's TLB at each VMRUN: so what the host forgets is all that a flush takes. */
#include "kernel/base/layout.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "pmu/virt/blocks/blocks.h"
#include "pmu/virt/blocks/places.h"

#define CR4_TSD (1u << 2)

static uint64_t *register_of(struct vcpu *v, unsigned n)
{
    return n == RAX ? &v->vmcb.rax : n == RSP ? &v->vmcb.rsp : (uint64_t *)&v->r + n;
}

static bool push_flags(struct vcpu *v)
{
    uint64_t flags = v->vmcb.rflags & ~(uint64_t)(RFLAGS_RF | RFLAGS_VM), at = v->vmcb.rsp - 8;
    uint8_t *to = at % PAGE_SIZE <= PAGE_SIZE - 8 ? place_use(v, at, ACCESS_WRITE) : NULL;
    if (!to)
        return false;
    memcpy(to, &flags, sizeof flags);
    v->vmcb.rsp = at;
    return true;
}

static bool read_clock(struct vcpu *v, bool aux)
{
    if (v->vmcb.cpl == 3 && v->vmcb.cr4 & CR4_TSD)
        return false;
    if (aux && !(cpuid(0x80000001, 0).edx >> 27 & 1))
        return false;
    uint64_t now = clock_look(v);
    v->vmcb.rax = (uint32_t)now;
    v->r.rdx = now >> 32;
    if (aux)
        v->r.rcx = (uint32_t)rdmsr(MSR_TSC_AUX);
    return true;
}

/* Of CR2 and CR3. */
static bool move_control(struct vcpu *v, const struct insn *i)
{
    unsigned n = insn_reg(i);
    uint64_t *reg = register_of(v, insn_rm(i));
    if (i->rex & REX_R || (n != 2 && n != 3))
        return false;
    if (i->op == 0x20) {
        *reg = n == 2 ? v->vmcb.cr2 : v->vmcb.cr3;
        return true;
    }
    if (n != 3 || !guest_ram_page(*reg & -PAGE_SIZE))
        return false;
    v->vmcb.cr3 = *reg;
    places_forget();
    return true;
}

/* 0F 01, of ring 0. */
static bool do_group(struct vcpu *v, const struct insn *i)
{
    bool invlpg = insn_has_memory(i) && insn_reg(i) == 7, smap = v->vmcb.cr4 & CR4_SMAP;
    if (i->modrm == 0xf8) {
        asm volatile("swapgs" ::: "memory");
        return true;
    }
    if (!invlpg && !(smap && (i->modrm == 0xca || i->modrm == 0xcb)))
        return false;
    if (!invlpg) /* CLAC, STAC */
        v->vmcb.rflags = (v->vmcb.rflags & ~(uint64_t)RFLAGS_AC) | (i->modrm & 1 ? RFLAGS_AC : 0);
    places_forget();
    return true;
}

static bool do_two_bytes(struct vcpu *v, const struct insn *i)
{
    bool kernel = v->vmcb.cpl == 0;
    switch (i->op) {
    case 0x01: return i->modrm == 0xf9 ? read_clock(v, true) : kernel && do_group(v, i);
    case 0x20:
    case 0x22: return kernel && move_control(v, i);
    case 0x31: return read_clock(v, false);
    case 0xae: return !insn_has_memory(i) && insn_reg(i) >= 5; /* fences */
    }
    return false;
}

static bool do_instruction(struct vcpu *v, const struct insn *i)
{
    uint64_t *flags = &v->vmcb.rflags;
    if (i->map == MAP_0F)
        return do_two_bytes(v, i);
    switch (i->map == MAP_ONE ? i->op : 0) {
    case 0x9c: return push_flags(v);
    case 0xfc:
    case 0xfd: *flags = (*flags & ~(uint64_t)RFLAGS_DF) | (i->op & 1 ? RFLAGS_DF : 0); return true;
    case 0xfa: *flags &= v->vmcb.cpl ? -1ul : ~(uint64_t)RFLAGS_IF; return !v->vmcb.cpl;
    }
    return false;
}

bool system_run(struct vcpu *v)
{
    struct insn i;
    struct instruction code = { 0 };
    guest_insn(v, &i);
    unsigned length = insn_length(&i);
    bool prefix = i.operand16 || i.address32 || i.lock || i.repeat || i.repeat_not || i.vex;
    if (prefix || !length || length > i.length || insn_rex_is_ignored(&i) ||
        !place_use(v, v->vmcb.rip, ACCESS_EXECUTE) ||
        !place_use(v, v->vmcb.rip + length - 1, ACCESS_EXECUTE))
        return false;
    if (v->pmu.decoding[v->vmcb.cpl == 3])
        instruction_decode(v, &i, &code);
    if (!do_instruction(v, &i))
        return false;
    v->vmcb.rip += length;
    v->vmcb.rflags &= ~(uint64_t)RFLAGS_RF;
    count_one(v, v->vmcb.cpl == 3, instruction_effects(v, &code));
    return true;
}
