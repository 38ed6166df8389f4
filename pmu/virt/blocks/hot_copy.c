/* SPDX-License-Identifier: MIT */
/* Copies of the guest's instructions in the code of hot blocks. */
#include "pmu/virt/blocks/hot_code.h"

/* What the instruction needs of them, and leaves. */
static COLD void prepare_flags(struct emitter *e, const struct copied *s)
{
    enum flags_use use = copied_flags(s);
    if (use == FLAGS_CARRY && !e->flags)
        emit(e, 0x2424ba0f, 5); /* bt dword [rsp], 0 */
    if (use == FLAGS_READ || use == FLAGS_MIXED)
        load_flags(e);
    if (use == FLAGS_NONE || use == FLAGS_READ)
        return;
    e->flags = true;
    e->saved = false;
}

/* Whether its registers need not be loaded before, or stored behind it. */
static COLD bool writes_alone(const struct copied *s)
{
    bool moves_wide = s->i.map == MAP_ONE ? s->i.op == 0x8b || s->i.op == 0x63 || s->form == 'I'
                                          : s->i.map == MAP_0F && (s->i.op & 0xf6) == 0xb6;
    return s->memory && !s->i.operand16 && moves_wide;
}
static COLD bool reads_alone(const struct copied *s)
{
    return s->i.map == MAP_ONE && ((s->i.op >= 0x38 && s->i.op <= 0x3b) || (s->i.op & ~1) == 0x84 ||
                                   (s->memory && (s->i.op & ~1) == 0x88));
}

/* With RSI, RDI or RBX as its pointer: without a REX. */
static COLD unsigned borrow_pointer(struct emitter *e, const struct copied *s)
{
    uint32_t busy = copied_registers(s);
    unsigned reg = !(busy & BIT(RSI)) ? RSI : !(busy & BIT(RDI)) ? RDI : RBX;
    emit_registers(e, 8, STORE, reg, SCRATCH);
    emit_registers(e, 8, STORE, POINTER, reg);
    return reg;
}

static COLD void emit_rest(struct emitter *e, const struct copied *s, unsigned modrm)
{
    if (s->has_modrm)
        emit(e, modrm, 1);
    for (unsigned i = s->has_modrm ? s->immediate_at : s->i.modrm_at; i < s->size; i++)
        emit(e, s->i.byte[i], 1);
}

/* Where it cannot have another REX: VEX, AH to BH. */
static COLD void copy_as_it_is(struct emitter *e, const struct copied *s)
{
    unsigned modrm = s->i.modrm, pointer = NO_REGISTER, reg = NO_REGISTER;
    if (s->memory)
        modrm = (modrm & 0x38) | (pointer = borrow_pointer(e, s));
    else if (s->form == 'v')
        for (reg = SCRATCH; reg < NO_REGISTER && !(copied_registers(s) & BIT(reg));)
            reg++;
    if (reg == STACK)
        emit_registers(e, 8, STORE, STACK, POINTER);
    if (reg != NO_REGISTER)
        emit_memory(e, 8, LOAD, reg, RSP, slot(reg));
    emit_opcode(e, s, 0);
    emit_rest(e, s, modrm);
    if (reg != NO_REGISTER)
        emit_memory(e, 8, STORE, reg, RSP, slot(reg));
    if (reg == STACK)
        emit_registers(e, 8, LOAD, STACK, POINTER);
    if (pointer != NO_REGISTER)
        emit_registers(e, 8, LOAD, pointer, SCRATCH);
}

static COLD void copy_lea(struct emitter *e, const struct copied *s)
{
    unsigned to = copied_reg(s), at = to == RSP ? STACK : in_memory(to) ? SCRATCH : to;
    bool narrow = s->i.operand16 && !(s->i.rex & REX_W);
    struct insn_memory m = s->at;
    m.base = (uint8_t)hold_register(e, m.base, POINTER);
    m.index = (uint8_t)hold_register(e, m.index, SCRATCH);
    if (narrow && in_memory(to)) { /* keeps the upper bits */
        emit_lea(e, 8, POINTER, &m);
        emit(e, 0x66, 1);
        emit_memory(e, 0, STORE, POINTER, RSP, slot(to));
        return;
    }
    if (narrow)
        emit(e, 0x66, 1);
    emit_lea(e, s->i.rex & REX_W, at, &m);
    if (in_memory(to))
        emit_memory(e, 8, STORE, at, RSP, slot(to));
}

/* Registers that ModRM, or the opcode, names; where the code has them. */
struct operands {
    bool of_reg, of_rm, of_op;
    unsigned reg, rm, at_reg, at_rm;
};

static COLD struct operands operands_of(const struct copied *s)
{
    bool vector = s->form == 'v';
    struct operands o = { .reg = NO_REGISTER, .rm = NO_REGISTER };
    o.of_reg = s->has_modrm && (vector ? copied_form_is(s->vector, "kt") : !copied_is_group(s));
    o.of_rm = s->has_modrm && !s->memory && (!vector || copied_form_is(s->vector, "dI"));
    o.of_op = copied_form_is(s->form, "riI");
    if (o.of_reg || o.of_op)
        o.reg = o.of_reg ? copied_reg(s) : copied_op_register(s);
    if (o.of_rm)
        o.rm = copied_rm(s);
    return o;
}

/* AH to BH, which a REX would make other registers. */
static COLD bool has_high_byte(const struct copied *s, const struct operands *o)
{
    return !s->i.rex &&
           ((o->of_reg && o->reg != insn_reg(&s->i)) || (o->of_rm && o->rm != (s->i.modrm & 7u)) ||
            (o->of_op && o->reg != (s->i.op & 7u)));
}

/* Brings a register operand into one that the code may use. */
static COLD unsigned bring(struct emitter *e, const struct copied *s, unsigned reg, unsigned *free)
{
    if (!in_memory(reg))
        return reg == RSP ? STACK : reg;
    unsigned at = (*free)++;
    if (!writes_alone(s))
        emit_memory(e, 8, LOAD, at, RSP, slot(reg));
    return at;
}

/* The instruction, on where its operands are. */
static COLD void emit_on(struct emitter *e, const struct copied *s, const struct operands *o)
{
    struct copied c = *s;
    unsigned rex = s->i.rex, modrm = s->i.modrm;
    if (s->memory) {
        modrm = (modrm & 0x38) | (POINTER & 7);
        rex = (rex & (unsigned)~REX_X) | REX_B;
    }
    if (o->of_reg) {
        modrm = (modrm & ~0x38u) | (o->at_reg & 7) << 3;
        rex = (rex & (unsigned)~REX_R) | (o->at_reg & 8) >> 1;
    }
    if (o->of_rm || o->of_op)
        rex = (rex & (unsigned)~REX_B) | ((o->of_rm ? o->at_rm : o->at_reg) & 8) >> 3;
    if (o->of_rm)
        modrm = (modrm & ~7u) | (o->at_rm & 7);
    if (o->of_op)
        c.i.op = (uint8_t)((c.i.op & ~7u) | (o->at_reg & 7));
    emit_opcode(e, &c, (uint8_t)(rex || s->i.rex ? 0x40 | rex : 0));
    emit_rest(e, s, modrm);
}

void hot_copy(struct emitter *e, const struct copied *s)
{
    struct operands o = operands_of(s);
    unsigned free = SCRATCH;
    prepare_flags(e, s);
    if (s->form == 'l') {
        copy_lea(e, s);
        return;
    }
    if (s->i.vex || has_high_byte(s, &o)) {
        copy_as_it_is(e, s);
        return;
    }
    o.at_reg = bring(e, s, o.reg, &free);
    o.at_rm = o.rm == o.reg ? o.at_reg : bring(e, s, o.rm, &free);
    emit_on(e, s, &o);
    if (reads_alone(s))
        return;
    if (in_memory(o.reg))
        emit_memory(e, 8, STORE, o.at_reg, RSP, slot(o.reg));
    if (in_memory(o.rm) && o.rm != o.reg)
        emit_memory(e, 8, STORE, o.at_rm, RSP, slot(o.rm));
}

void hot_call(struct emitter *e, const struct part *p, uint64_t next)
{
    unsigned to = POINTER;
    if (p->special == CALL_REGISTER)
        emit_memory(e, 8, LOAD, to = SCRATCH, RSP, STATE(pointer));
    for (int at = 0; at < 8; at += 4) {
        emit_memory(e, 0, STORE_IMMEDIATE, 0, to, at);
        emit(e, next >> 8 * at, 4);
    }
}
