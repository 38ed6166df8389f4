/* SPDX-License-Identifier: MIT */
/* What the code of hot blocks is made of. */
#include "pmu/virt/blocks/hot_emit.h"
#include "pmu/virt/blocks/hot_code.h"

void emit_memory(struct emitter *e, unsigned wide, uint8_t op, unsigned reg, unsigned base, int at)
{
    bool sib = base == RSP || base == NO_REGISTER;
    emit(e, 0x40 | wide | (reg & 8) >> 1 | (base & 8) >> 3, 1);
    emit(e, op, 1);
    emit(e, (base == NO_REGISTER ? 0 : 0x80u) | (reg & 7) << 3 | (sib ? 4 : base & 7), 1);
    if (sib)
        emit(e, base == RSP ? 0x24 : 0x25, 1);
    emit(e, (uint32_t)at, 4);
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
