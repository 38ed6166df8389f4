/* SPDX-License-Identifier: MIT */
/* Host code that moves the guest's registers and flags between the processor and memory. */
#include "kernel/base/string.h"
#include "pmu/virt/blocks/emitter.h"

void emit(struct emitter *e, uint64_t bytes, unsigned n)
{
    memcpy(e->at, &bytes, n);
    e->at += n;
}

void emit_move(struct emitter *e, uint8_t op, unsigned reg, unsigned place)
{
    bool far = place > INT8_MAX;
    emit(e, 0x48u | (reg & 8) >> 1, 1);
    emit(e, op | ((far ? 0x84u : 0x44u) | (reg & 7) << 3) << 8 | 0x24u << 16, 3);
    emit(e, place, far ? 4 : 1);
}

void need_register(struct emitter *e, unsigned reg)
{
    if (!(e->loaded & BIT(reg)))
        emit_move(e, LOAD, reg, PLACE(r) + 8 * reg);
    e->loaded |= BIT(reg);
}

void release_register(struct emitter *e, unsigned reg)
{
    if (e->loaded & BIT(reg))
        emit_move(e, STORE, reg, PLACE(r) + 8 * reg);
    e->loaded &= ~BIT(reg);
}

void need_flags(struct emitter *e)
{
    if (e->flags)
        return;
    release_register(e, RAX);
    emit_move(e, LOAD, RAX, PLACE(flags));
    emit(e, 0x9e7f04, 3); /* add al, 127; sahf */
    e->flags = true;
}

void save_state(struct emitter *e)
{
    for (unsigned reg = 0; reg < 16; reg++)
        release_register(e, reg);
    if (e->flags) {
        emit(e, 0xc0900f9f, 4); /* lahf; seto al */
        emit_move(e, STORE, RAX, PLACE(flags));
    }
    e->flags = false;
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
