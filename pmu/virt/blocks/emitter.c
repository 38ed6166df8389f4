/* SPDX-License-Identifier: MIT */
/* Host code for blocks: its instructions; what moves the guest's registers and flags between the
 * processor and memory. */
#include "kernel/base/string.h"
#include "pmu/virt/blocks/hot_code.h"

void emit(struct emitter *e, uint64_t bytes, unsigned n)
{
    memcpy(e->at, &bytes, n);
    e->at += n;
}

void emit_memory(struct emitter *e, unsigned wide, uint8_t op, unsigned reg, unsigned base, int at)
{
    bool sib = base == RSP || base == NO_REGISTER;
    unsigned mod = base == NO_REGISTER ? 0 : at == (int8_t)at ? 0x40 : 0x80;
    emit(e, 0x40 | wide | (reg & 8) >> 1 | (base & 8) >> 3, 1);
    emit(e, op, 1);
    emit(e, mod | (reg & 7) << 3 | (sib ? 4 : base & 7), 1);
    if (sib)
        emit(e, base == RSP ? 0x24 : 0x25, 1);
    emit(e, (uint32_t)at, mod == 0x40 ? 1 : 4);
}

void emit_registers(struct emitter *e, unsigned wide, uint8_t op, unsigned reg, unsigned rm)
{
    emit(e, 0x40 | wide | (reg & 8) >> 1 | (rm & 8) >> 3, 1);
    emit(e, op | (0xc0 | (reg & 7) << 3 | (rm & 7)) << 8, 2);
}

void emit_constant(struct emitter *e, unsigned reg, uint64_t value)
{
    emit(e, 0x48 | reg >> 3 | (0xb8u | (reg & 7)) << 8, 2);
    emit(e, value, 8);
}

void emit_lea(struct emitter *e, unsigned wide, unsigned to, const struct insn_memory *m)
{
    bool base = m->base != NO_REGISTER, index = m->index != NO_REGISTER;
    emit(e, 0x40 | wide | (to & 8) >> 1 | (m->index & 8) >> 2 | (m->base & 8) >> 3, 1);
    emit(e, LEA | ((base ? 0x84 : 4) | (to & 7) << 3) << 8, 2);
    emit(e, (unsigned)m->scale << 6 | (index ? m->index & 7u : 4) << 3 | (base ? m->base & 7u : 5),
         1);
    emit(e, (uint32_t)m->displacement, 4);
}

void emit_lea_offset(struct emitter *e, unsigned to, unsigned base, int offset)
{
    emit_memory(e, 8, LEA, to, base, offset);
}

void emit_add(struct emitter *e, int place, int n)
{
    emit_memory(e, 8, 0x81, 0, RSP, place);
    emit(e, (uint32_t)n, 4);
}

unsigned hold_register(struct emitter *e, unsigned reg, unsigned scratch)
{
    if (in_memory(reg))
        emit_memory(e, 8, LOAD, scratch, RSP, slot(reg));
    return reg == RSP ? STACK : in_memory(reg) ? scratch : reg;
}

void need_register(struct emitter *e, unsigned reg)
{
    if (!(e->loaded & BIT(reg)))
        emit_memory(e, 8, LOAD, reg, RSP, PLACE(r) + 8 * (int)reg);
    e->loaded |= BIT(reg);
}

void release_register(struct emitter *e, unsigned reg)
{
    if (e->loaded & BIT(reg))
        emit_memory(e, 8, STORE, reg, RSP, PLACE(r) + 8 * (int)reg);
    e->loaded &= ~BIT(reg);
}

void need_flags(struct emitter *e)
{
    if (e->flags)
        return;
    release_register(e, RAX);
    emit_memory(e, 8, LOAD, RAX, RSP, PLACE(flags));
    emit(e, 0x9e7f04, 3); /* add al, 127; sahf */
    e->flags = true;
}

void save_state(struct emitter *e)
{
    for (unsigned reg = 0; reg < 16; reg++)
        release_register(e, reg);
    if (e->flags) {
        emit(e, 0xc0900f9f, 4); /* lahf; seto al */
        emit_memory(e, 8, STORE, RAX, RSP, PLACE(flags));
    }
    e->flags = false;
}

void save_flags(struct emitter *e)
{
    if (!e->saved)
        emit(e, 0x9c0824648d48, HOT_FLAGS); /* lea rsp, [rsp + 8]; pushfq */
    e->saved = true;
}

void load_flags(struct emitter *e)
{
    if (!e->flags) {
        emit(e, 0x24248ac58949, 6); /* mov r13, rax; mov ah, [rsp] */
        emit(e, 0x08240124448a, 6); /* mov al, [rsp + 1]; and al, 8 */
        emit(e, 0xe8894c9e7804, 6); /* add al, 78h; sahf; mov rax, r13 */
    }
    e->flags = true;
}

/* A memory operand of it is a pointer without R8 to R15: X and B of VEX, inverted, become ones. */
static COLD void emit_vex(struct emitter *e, const struct copied *s)
{
    const struct insn *i = &s->i;
    for (unsigned at = i->prefixes; at < i->modrm_at - 1u; at++) {
        bool has_xb = i->byte[i->prefixes] == 0xc4 && at == i->prefixes + 1u;
        emit(e, i->byte[at] | (has_xb && s->memory ? 0x60u : 0), 1);
    }
}

static COLD void emit_prefixes(struct emitter *e, const struct insn *i, uint8_t rex)
{
    if (i->lock)
        emit(e, 0xf0, 1);
    if (i->operand16)
        emit(e, 0x66, 1);
    if (i->repeat || i->repeat_not)
        emit(e, i->repeat ? 0xf3 : 0xf2, 1);
    if (rex)
        emit(e, rex, 1);
    if (i->map != MAP_ONE)
        emit(e, 0x0f, 1);
    if (i->map > MAP_0F)
        emit(e, i->map == MAP_0F38 ? 0x38 : 0x3a, 1);
}

void emit_opcode(struct emitter *e, const struct copied *s, uint8_t rex)
{
    if (s->i.vex)
        emit_vex(e, s);
    else
        emit_prefixes(e, &s->i, rex);
    emit(e, s->i.op, 1);
}
