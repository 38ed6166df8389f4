/* SPDX-License-Identifier: MIT */
/* Code of hot blocks: it finds its accesses by itself, counts itself and goes on with the next hot
 * one, all with the guest's registers in the processor (chain.c). What is not common it leaves to
 * blocks.c. An emulator takes longer to translate it, so that only blocks that run often have it.
 * The guest's flags are the processor's, or saved, or both. */
#include "kernel/base/layout.h"
#include "kernel/base/string.h"
#include "pmu/virt/blocks/hot_code.h"
#include "pmu/virt/blocks/places.h"

enum { SCRATCH = 13, POINTER = 14, STACK = 15 };
enum { SUB = 0x2b, COMPARE = 0x3b, COMPARE_MEMORY = 0x39, LEA = 0x8d };
enum { JUMP_AE = 0x83, JUMP_NE = 0x85, JUMP_BE = 0x86, JUMP_A = 0x87, JUMP_S = 0x88 };
enum { HEAD_MOST = 128, LEAVES_MOST = 4 * PARTS + 1 };
#define STATE(field) ((int)offsetof(struct block_state, field))
#define ONE_TAKEN (1 << (EVENT_TAKEN - EVENT_BRANCHES) * SUM_BITS)

/* Jumps to where the code is left: where their distance stands, and what it is left with. */
static struct {
    uint8_t *at;
    unsigned with;
} leaves[LEAVES_MOST];
static unsigned leave_count;
static int64_t moves; /* by so many bytes the code will be moved */

static int slot(unsigned reg) { return STATE(r) + 8 * (int)reg; }

static bool in_memory(unsigned reg) { return reg >= SCRATCH && reg < NO_REGISTER; }

static int low(const void *at) { return (int)(uint64_t)at; }

/* An instruction of 64 bits (wide: 8) or 32 (0) on a register and memory; without a base: where
 * `at` says. */
static COLD void emit_memory(struct emitter *e, unsigned wide, uint8_t op, unsigned reg,
                             unsigned base, int at)
{
    bool sib = base == RSP || base == NO_REGISTER;
    emit(e, 0x40 | wide | (reg & 8) >> 1 | (base & 8) >> 3, 1);
    emit(e, op, 1);
    emit(e, (base == NO_REGISTER ? 0 : 0x80u) | (reg & 7) << 3 | (sib ? 4 : base & 7), 1);
    if (sib)
        emit(e, base == RSP ? 0x24 : 0x25, 1);
    emit(e, (uint32_t)at, 4);
}

static COLD void emit_registers(struct emitter *e, unsigned wide, uint8_t op, unsigned reg,
                                unsigned rm)
{
    emit(e, 0x40 | wide | (reg & 8) >> 1 | (rm & 8) >> 3, 1);
    emit(e, op | (0xc0 | (reg & 7) << 3 | (rm & 7)) << 8, 2);
}

static COLD void emit_constant(struct emitter *e, unsigned reg, uint64_t value)
{
    emit(e, 0x48 | reg >> 3 | (0xb8u | (reg & 7)) << 8, 2);
    emit(e, value, 8);
}

static COLD void emit_lea(struct emitter *e, unsigned wide, unsigned to,
                          const struct insn_memory *m)
{
    bool base = m->base != NO_REGISTER, index = m->index != NO_REGISTER;
    emit(e, 0x40 | wide | (to & 8) >> 1 | (m->index & 8) >> 2 | (m->base & 8) >> 3, 1);
    emit(e, LEA | ((base ? 0x84 : 4) | (to & 7) << 3) << 8, 2);
    emit(e, (unsigned)m->scale << 6 | (index ? m->index & 7u : 4) << 3 | (base ? m->base & 7u : 5),
         1);
    emit(e, (uint32_t)m->displacement, 4);
}

static COLD void emit_lea_offset(struct emitter *e, unsigned to, unsigned base, int offset)
{
    emit_memory(e, 8, LEA, to, base, offset);
}

/* Adds to what stands in struct block_state; changes flags. */
static COLD void emit_add(struct emitter *e, int place, int n)
{
    emit_memory(e, 8, 0x81, 0, RSP, place);
    emit(e, (uint32_t)n, 4);
}

static COLD void put_distance(uint8_t *at, const uint8_t *to)
{
    uint32_t distance = (uint32_t)(to - (at + 4));
    memcpy(at, &distance, 4);
}

/* A jump out of the code. */
static COLD void leave_if(struct emitter *e, uint8_t op, unsigned with)
{
    emit(e, 0x0f | (uint64_t)op << 8, 2);
    leaves[leave_count].at = e->at;
    leaves[leave_count++].with = with;
    emit(e, 0, 4);
}

static COLD void emit_leave(struct emitter *e, const struct block *b, unsigned with, bool saved)
{
    const uint8_t *to = saved ? (const uint8_t *)blocks_leave : blocks_leave_flags;
    emit(e, 0xbd41, 2); /* mov r13d, with */
    emit(e, with, 4);
    emit(e, 0xc6c749, 3); /* mov r14, b */
    emit(e, (uint32_t)low(b), 4);
    emit(e, 0xe9, 1);
    emit(e, (uint32_t)(to - (e->at + 4 + moves)), 4);
}

/* The guest's register, or the scratch one with its value. */
static COLD unsigned hold(struct emitter *e, unsigned reg, unsigned scratch)
{
    if (in_memory(reg))
        emit_memory(e, 8, LOAD, scratch, RSP, slot(reg));
    return reg == RSP ? STACK : in_memory(reg) ? scratch : reg;
}

static COLD void save_flags(struct emitter *e)
{
    if (!e->saved)
        emit(e, 0x9c0824648d48, HOT_FLAGS); /* lea rsp, [rsp + 8]; pushfq */
    e->saved = true;
}

/* From where they are saved. Uses the scratch register. */
static COLD void load_flags(struct emitter *e)
{
    if (!e->flags) {
        emit(e, 0x24248ac58949, 6); /* mov r13, rax; mov ah, [rsp] */
        emit(e, 0x08240124448a, 6); /* mov al, [rsp + 1]; and al, 8 */
        emit(e, 0xe8894c9e7804, 6); /* add al, 78h; sahf; mov rax, r13 */
    }
    e->flags = true;
}

/* What the instruction needs of them, and leaves. */
static COLD void prepare_flags(struct emitter *e, const struct source *s)
{
    enum flags_use use = source_flags(s);
    if (use == FLAGS_CARRY && !e->flags)
        emit(e, 0x2424ba0f, 5); /* bt dword [rsp], 0 */
    if (use == FLAGS_READ || use == FLAGS_MIXED)
        load_flags(e);
    if (use == FLAGS_NONE || use == FLAGS_READ)
        return;
    e->flags = true;
    e->saved = false;
}

/* --- Accesses --- */

static COLD void emit_address(struct emitter *e, const struct part *p)
{
    struct insn_memory m = { p->base, p->index, p->scale, false, (int64_t)p->displacement };
    if (m.base == NO_REGISTER && m.index == NO_REGISTER) {
        emit_constant(e, POINTER, p->displacement);
    } else {
        m.base = (uint8_t)hold(e, m.base, POINTER);
        m.index = (uint8_t)hold(e, m.index, SCRATCH);
        emit_lea(e, 8, POINTER, &m);
    }
    if (p->segment != SLOT_ZERO)
        emit_memory(e, 8, ADD, POINTER, RSP, slot(p->segment));
}

/* Looks the page up, as place_find() does. */
static COLD void look_up(struct emitter *e, const struct part *p, unsigned part)
{
    const struct place *table = places[p->store ? ACCESS_WRITE : ACCESS_READ];
    emit_address(e, p);
    if (p->aligned) {
        emit(e, 0xc6f641 | (uint64_t)p->aligned << 24, 4); /* test r14b, aligned */
        leave_if(e, JUMP_NE, part);
    }
    emit_registers(e, 0, STORE, POINTER, SCRATCH);             /* mov r13d, r14d */
    emit(e, 0x08edc141, 4);                                    /* shr r13d, 8 */
    emit(e, 0xe58141 | (uint64_t)(16 * PLACES - 16) << 24, 7); /* and r13d, ... */
    emit_memory(e, 8, SUB, POINTER, SCRATCH, low(&table->page));
    emit(e, 0xfe8149 | (uint64_t)(PAGE_SIZE - p->size) << 24, 7); /* cmp r14, ... */
    leave_if(e, JUMP_A, part);
    emit_memory(e, 8, ADD, POINTER, SCRATCH, low(&table->host));
}
_Static_assert(sizeof(struct place) == 16 && offsetof(struct place, page) == 0, "a table's entry");

/* ... where its address is a number. */
static COLD void look_up_constant(struct emitter *e, const struct part *p, unsigned part)
{
    uint64_t address = p->displacement, page = address & -PAGE_SIZE;
    const struct place *place = place_entry(address, p->store ? ACCESS_WRITE : ACCESS_READ);
    emit_constant(e, POINTER, page);
    emit_memory(e, 8, COMPARE_MEMORY, POINTER, NO_REGISTER, low(&place->page));
    leave_if(e, JUMP_NE, part);
    emit_memory(e, 8, LOAD, POINTER, NO_REGISTER, low(&place->host));
    if (address != page)
        emit_lea_offset(e, POINTER, POINTER, (int)(address - page));
}

static COLD void find_access(struct emitter *e, const struct part *p, unsigned part)
{
    bool constant = p->base == SLOT_ZERO && p->index == SLOT_ZERO && p->segment == SLOT_ZERO;
    bool inside = p->displacement % PAGE_SIZE + p->size <= PAGE_SIZE &&
                  !(p->displacement & p->aligned);
    if (constant && inside)
        look_up_constant(e, p, part);
    else
        look_up(e, p, part);
}

/* On RAX or RDX, or a scratch register, and what the part divides by. */
static COLD void with_divisor(struct emitter *e, const struct part *p, uint8_t op, unsigned reg)
{
    unsigned wide = p->wide ? 8 : 0;
    if (p->access)
        emit_memory(e, wide, op, reg, POINTER, 0);
    else if (in_memory(p->operand))
        emit_memory(e, wide, op, reg, RSP, slot(p->operand));
    else
        emit_registers(e, wide, op, reg, p->operand);
}

/* Leaves what may raise #DE, as may_divide() has it. */
static COLD void check_division(struct emitter *e, const struct part *p, unsigned part)
{
    unsigned wide = p->wide ? 8 : 0;
    if (!p->is_signed) {
        with_divisor(e, p, COMPARE, RDX);
        leave_if(e, JUMP_AE, part);
        return;
    }
    emit_registers(e, wide, LOAD, SCRATCH, RAX);
    emit_registers(e, wide, 0xc1, 7, SCRATCH); /* sar r13, 63 or 31 */
    emit(e, p->wide ? 63 : 31, 1);
    emit_registers(e, wide, COMPARE, SCRATCH, RDX);
    leave_if(e, JUMP_NE, part);
    with_divisor(e, p, LOAD, SCRATCH);
    emit_registers(e, wide, 0xff, 0, SCRATCH); /* inc */
    emit_registers(e, wide, 0x83, 7, SCRATCH); /* cmp r13, 1 */
    emit(e, 1, 1);
    leave_if(e, JUMP_BE, part);
}

/* [R14 * 8 + at] */
static COLD void emit_entry(struct emitter *e, unsigned op, const void *at)
{
    emit(e, op, 3);
    emit(e, 0xf5, 1);
    emit(e, (uint32_t)low(at), 4);
}

/* Leaves R14 as the number of its entry in block_targets, or leaves the code if there is none. A
 * call keeps in memory where it pushes, or the target. */
static COLD void check_target(struct emitter *e, const struct part *p, unsigned part)
{
    if (p->special == CALL_REGISTER)
        emit_memory(e, 8, STORE, POINTER, RSP, STATE(pointer));
    if (p->special == JUMP_LOADED || p->special == CALL_LOADED)
        emit_memory(e, 8, LOAD, SCRATCH, POINTER, 0);
    else
        emit_registers(e, 8, STORE, hold(e, p->operand, SCRATCH), SCRATCH);
    emit(e, 0xf5b60f45, 4);                     /* movzx r14d, r13b */
    emit_entry(e, 0x2c3b4e, block_targets.rip); /* cmp r13, ... */
    leave_if(e, JUMP_NE, part);
    if (p->special == CALL_LOADED)
        emit_memory(e, 8, STORE, SCRATCH, RSP, STATE(pointer));
}

/* The second access of one that loads what it pushes, or where it jumps. */
static COLD void find_pushed(struct emitter *e, const struct part *p, unsigned part)
{
    const struct part push = { .base = RSP,
                               .index = SLOT_ZERO,
                               .segment = SLOT_ZERO,
                               .displacement = -8ul,
                               .size = 8,
                               .store = true };
    if (p->special == PUSH_LOADED) {
        emit_memory(e, 8, LOAD, SCRATCH, POINTER, 0);
        emit_memory(e, 8, STORE, SCRATCH, RSP, STATE(pointer));
    }
    find_access(e, &push, part);
    if (p->special == PUSH_LOADED) {
        emit_memory(e, 8, LOAD, SCRATCH, RSP, STATE(pointer));
        emit_memory(e, 8, STORE, SCRATCH, POINTER, 0);
    }
    emit_lea_offset(e, STACK, STACK, -8);
}

void hot_enter_part(struct emitter *e, const struct block *b, struct part *p)
{
    unsigned part = (unsigned)(p - b->part), special = p->special;
    bool loaded = special == PUSH_LOADED || special == CALL_LOADED;
    if (p->access || special) {
        save_flags(e);
        e->flags = false;
    }
    if (p->access)
        find_access(e, p, part);
    if (special == DIVIDE)
        check_division(e, p, part);
    if (part_computes_target(p))
        check_target(e, p, part);
    if (loaded)
        find_pushed(e, p, part);
    if (special == LEAVE)
        emit_lea_offset(e, STACK, RBP, 8);
    else if (p->stack)
        emit_lea_offset(e, STACK, STACK, p->stack);
    p->code = e->at;
}

/* --- Copies --- */

/* Whether its registers need not be loaded before, or stored behind it. */
static COLD bool writes_alone(const struct source *s)
{
    bool moves_wide = s->i.map == MAP_ONE ? s->i.op == 0x8b || s->i.op == 0x63 || s->form == 'I'
                                          : s->i.map == MAP_0F && (s->i.op & 0xf6) == 0xb6;
    return s->memory && !s->i.operand16 && moves_wide;
}
static COLD bool reads_alone(const struct source *s)
{
    return s->i.map == MAP_ONE && ((s->i.op >= 0x38 && s->i.op <= 0x3b) || (s->i.op & ~1) == 0x84 ||
                                   (s->memory && (s->i.op & ~1) == 0x88));
}

/* With RSI, RDI or RBX as its pointer: without a REX. */
static COLD unsigned borrow_pointer(struct emitter *e, const struct source *s)
{
    uint32_t busy = source_registers(s);
    unsigned reg = !(busy & BIT(RSI)) ? RSI : !(busy & BIT(RDI)) ? RDI : RBX;
    emit_registers(e, 8, STORE, reg, SCRATCH);
    emit_registers(e, 8, STORE, POINTER, reg);
    return reg;
}

static COLD void emit_rest(struct emitter *e, const struct source *s, unsigned modrm)
{
    if (s->has_modrm)
        emit(e, modrm, 1);
    for (unsigned i = s->has_modrm ? s->immediate_at : s->i.modrm_at; i < s->size; i++)
        emit(e, s->i.byte[i], 1);
}

/* Where it cannot have another REX: VEX, AH to BH. */
static COLD void copy_as_it_is(struct emitter *e, const struct source *s)
{
    unsigned modrm = s->i.modrm, pointer = NO_REGISTER, reg = NO_REGISTER;
    if (s->memory)
        modrm = (modrm & 0x38) | (pointer = borrow_pointer(e, s));
    else if (s->form == 'v')
        for (reg = SCRATCH; reg < NO_REGISTER && !(source_registers(s) & BIT(reg));)
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

static COLD void copy_lea(struct emitter *e, const struct source *s)
{
    unsigned to = source_reg(s), at = to == RSP ? STACK : in_memory(to) ? SCRATCH : to;
    struct insn_memory m = s->at;
    m.base = (uint8_t)hold(e, m.base, POINTER);
    m.index = (uint8_t)hold(e, m.index, SCRATCH);
    if (s->i.operand16 && in_memory(to)) { /* keeps the upper bits */
        emit_lea(e, 8, POINTER, &m);
        emit(e, 0x66, 1);
        emit_memory(e, 0, STORE, POINTER, RSP, slot(to));
        return;
    }
    if (s->i.operand16)
        emit(e, 0x66, 1);
    emit_lea(e, s->i.rex & REX_W, at, &m);
    if (in_memory(to))
        emit_memory(e, 8, STORE, at, RSP, slot(to));
}

/* Brings a register operand into one that the code may use. */
static COLD unsigned bring(struct emitter *e, const struct source *s, unsigned reg, unsigned *free)
{
    if (!in_memory(reg))
        return reg == RSP ? STACK : reg;
    unsigned at = (*free)++;
    if (!writes_alone(s))
        emit_memory(e, 8, LOAD, at, RSP, slot(reg));
    return at;
}

void hot_copy(struct emitter *e, const struct source *s)
{
    struct source c = *s;
    bool vector = s->form == 'v', of_modrm = s->has_modrm;
    bool is_reg = of_modrm && (vector ? s->vector == 'k' : !source_is_group(s));
    bool is_rm = of_modrm && !s->memory && (!vector || s->vector == 'd');
    bool in_op = source_form_is(s->form, "riI");
    unsigned rm = is_rm ? source_rm(s) : NO_REGISTER, free = SCRATCH, modrm = s->i.modrm;
    unsigned reg = is_reg ? source_reg(s) : in_op ? source_op_register(s) : NO_REGISTER;
    bool high = !s->i.rex && ((is_reg && reg != insn_reg(&s->i)) || (is_rm && rm != (modrm & 7)) ||
                              (in_op && reg != (s->i.op & 7)));
    prepare_flags(e, s);
    if (s->form == 'l') {
        copy_lea(e, s);
        return;
    }
    if (s->i.vex || high) {
        copy_as_it_is(e, s);
        return;
    }
    unsigned at_reg = bring(e, s, reg, &free);
    unsigned at_rm = rm == reg ? at_reg : bring(e, s, rm, &free);
    unsigned rex = s->i.rex & (unsigned)~(s->memory ? REX_B | REX_X : 0);
    if (s->memory) {
        modrm = (modrm & 0x38) | (POINTER & 7);
        rex |= REX_B;
    }
    if (is_reg) {
        modrm = (modrm & ~0x38u) | (at_reg & 7) << 3;
        rex = (rex & (unsigned)~REX_R) | (at_reg & 8) >> 1;
    }
    if (is_rm) {
        modrm = (modrm & ~7u) | (at_rm & 7);
        rex = (rex & (unsigned)~REX_B) | (at_rm & 8) >> 3;
    }
    if (in_op) {
        c.i.op = (uint8_t)((c.i.op & ~7u) | (at_reg & 7));
        rex = (rex & (unsigned)~REX_B) | (at_reg & 8) >> 3;
    }
    emit_opcode(e, &c, (uint8_t)(rex || s->i.rex ? 0x40 | rex : 0));
    emit_rest(e, s, modrm);
    if (in_memory(reg) && !reads_alone(s))
        emit_memory(e, 8, STORE, at_reg, RSP, slot(reg));
    if (in_memory(rm) && rm != reg && !reads_alone(s))
        emit_memory(e, 8, STORE, at_rm, RSP, slot(rm));
}

void hot_constant(struct emitter *e, unsigned reg, uint64_t value)
{
    emit_constant(e, in_memory(reg) ? SCRATCH : reg, value);
    if (in_memory(reg))
        emit_memory(e, 8, STORE, SCRATCH, RSP, slot(reg));
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

/* --- The beginning and the end --- */

void hot_begin(struct emitter *e, uint8_t *emitted)
{
    leave_count = 0;
    e->at = emitted + HEAD_MOST;
    e->saved = true;
}

/* Before the body: counts the block as one whose branch mostly jumps if it jumps back. Returns
 * where the flags would be saved. */
static COLD uint8_t *emit_head(struct emitter *e, const struct block *b, uint8_t *body, bool back)
{
    uint8_t *end = e->at;
    uint64_t counts[] = { b->way[back].sums.word[0],
                          b->way[back].sums.word[1] & ((1ul << SUM_INSTRUCTIONS) - 1) };
    unsigned size = HOT_FLAGS + 12 + 6 + (counts[0] ? 12 : 0) + (counts[1] ? 12 : 0);
    uint8_t *start = body - size;
    e->at = start;
    emit(e, 0x9c0824648d48, HOT_FLAGS);
    emit_memory(e, 8, 0x81, 5, RSP, STATE(left)); /* sub */
    emit(e, b->instructions, 4);
    leave_if(e, JUMP_S, HOT_NOT_BEGUN);
    for (unsigned i = 0; i < SUM_WORDS; i++)
        if (counts[i])
            emit_add(e, STATE(sums) + 8 * (int)i, (int)counts[i]);
    e->at = end;
    return start;
}

/* Adds to the branches that were taken. */
static COLD void correct_taken(struct emitter *e, int n)
{
    if (e->saved) {
        emit_add(e, STATE(sums), n);
        return;
    }
    emit_memory(e, 8, LOAD, SCRATCH, RSP, STATE(sums));
    emit_lea_offset(e, SCRATCH, SCRATCH, n);
    emit_memory(e, 8, STORE, SCRATCH, RSP, STATE(sums));
}

static COLD void go_on(struct emitter *e, const struct block *b, bool jumps, const uint8_t *head)
{
    if (b->way[jumps].rip == b->rip && jumps && !block_computes_target(b)) {
        emit(e, 0xe9, 1);
        emit(e, 0, 4);
        put_distance(e->at - 4, head + (e->saved ? HOT_FLAGS : 0));
        return;
    }
    if (block_computes_target(b)) {
        if (b->part[b->parts - 1].special == CALL_LOADED) {
            emit(e, 0x24b4b60f44, 5); /* movzx r14d, byte [pointer] */
            emit(e, (uint32_t)STATE(pointer), 4);
        }
        emit_entry(e, 0x24ff42, block_targets.code); /* jmp */
        return;
    }
    emit(e, 0x2524ff, 3); /* jmp [go] */
    emit(e, (uint32_t)low(&b->way[jumps].go), 4);
}

/* JO, JB, JE, JBE, JS, JP by the saved flags: a test whose result is the other way round. */
static COLD bool test_saved(struct emitter *e, unsigned condition)
{
    static const uint16_t bits[8] = { 0x0800, 1, 0x40, 0x41, 0x80, 4, 0, 0 };
    unsigned bit = bits[condition >> 1];
    if (!bit)
        return false;
    emit(e, 0x2444f6, 3); /* test byte [rsp + ...], ... */
    emit(e, bit > 0xff, 1);
    emit(e, bit > 0xff ? bit >> 8 : bit, 1);
    return true;
}

/* The jump, over what comes if it is not taken. Returns where its distance stands. */
static COLD uint8_t *emit_condition(struct emitter *e, const struct block *b)
{
    unsigned op = 0x70u | b->condition;
    if (b->condition >= LOOPS) {
        if (!(b->condition & 2))
            load_flags(e);
        if (b->condition & LOOP_ECX)
            emit(e, 0x67, 1);
        op = 0xe0u | (b->condition & 3);
    } else if (!e->flags) {
        if (test_saved(e, b->condition))
            op = b->condition & 1 ? 0x74 : 0x75;
        else
            load_flags(e);
    }
    emit(e, op, 2);
    return e->at - 1;
}

static COLD void end_code(struct emitter *e, const struct block *b, const uint8_t *head, bool back)
{
    bool counts = b->conditional && b->way[true].rip != b->way[false].rip;
    if (b->conditional) {
        uint8_t *distance = emit_condition(e, b);
        if (counts && back)
            correct_taken(e, -ONE_TAKEN);
        go_on(e, b, false, head);
        *distance = (uint8_t)(e->at - distance - 1);
        if (counts && !back)
            correct_taken(e, ONE_TAKEN);
    }
    go_on(e, b, true, head);
}

/* What the jumps out of it lead to, the same for all of a part. */
static COLD void end_leaves(struct emitter *e, const struct block *b)
{
    for (unsigned i = 0; i < leave_count; i++) {
        if (!leaves[i].at)
            continue;
        for (unsigned k = i; k < leave_count; k++)
            if (leaves[k].with == leaves[i].with) {
                put_distance(leaves[k].at, e->at);
                leaves[k].at = NULL;
            }
        emit_leave(e, b, leaves[i].with, true);
    }
}

void hot_end(struct emitter *e, struct block *b, uint8_t *emitted, struct block_space *space)
{
    bool back = block_jumps_back(b);
    uint8_t *head = emit_head(e, b, emitted + HEAD_MOST, back), *start = head - 2 * HOT_STOP;
    moves = space->code - start;
    b->enter = head + moves;
    end_code(e, b, head, back);
    b->flags_saved = e->saved;
    end_leaves(e, b);
    uint8_t *end = e->at;
    e->at = start;
    emit_leave(e, b, HOT_ENDED | true, e->saved);
    emit_leave(e, b, HOT_ENDED | false, e->saved);
    memcpy(space->code, start, (uint64_t)(end - start));
    for (struct part *p = b->part; p < b->part + b->parts; p++)
        p->code += moves;
    space->code += end - start;
}
