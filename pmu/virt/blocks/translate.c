/* SPDX-License-Identifier: MIT */
/* Makes blocks of the guest's 64-bit code that the host can execute: instructions up to a jump, or
 * to one that must be stepped (copied.c says which). Those on registers are copied. A memory
 * operand becomes one through a pointer, which blocks.c finds first. Registers keep their numbers;
 * RSP, which holds the address of struct block_state, is replaced by one that the instruction does
 * not use. So the processor itself computes results and flags. */
#include "kernel/base/layout.h"
#include "kernel/base/string.h"
#include "pmu/virt/blocks/hot_code.h"
#include "pmu/virt/quirk.h"

static COLD void enter_part(struct emitter *e, const struct block *b, struct part *p)
{
    if (p->code)
        return;
    if (e->hot)
        hot_enter_part(e, b, p);
    else
        p->code = e->at;
}

/* Takes a register that is not in *busy for another use. */
static COLD unsigned borrow_register(struct emitter *e, uint32_t *busy)
{
    unsigned reg = !(*busy & BIT(RSI)) ? RSI : !(*busy & BIT(RDI)) ? RDI : RBX;
    *busy |= BIT(reg);
    release_register(e, reg);
    return reg;
}

static COLD void copy_instruction(struct emitter *e, const struct copied *s)
{
    uint32_t mask = copied_registers(s), busy;
    unsigned pointer = NO_REGISTER, stack = NO_REGISTER, mod = s->i.modrm;
    bool lea = s->form == 'l';
    if (e->hot) {
        hot_copy(e, s);
        return;
    }
    uint8_t rex = s->i.rex, sib = s->i.byte[s->i.modrm_at + 1];
    if (lea && s->at.base != NO_REGISTER)
        mask |= BIT(s->at.base);
    if (lea && s->at.index != NO_REGISTER)
        mask |= BIT(s->at.index);
    busy = mask & ~BIT(RSP);
    if (copied_flags(s))
        need_flags(e);
    for (unsigned reg = 0; reg < 16; reg++)
        if (busy & BIT(reg))
            need_register(e, reg);
    if (s->memory && !lea) {
        pointer = borrow_register(e, &busy);
        emit_memory(e, 8, LOAD, pointer, RSP, PLACE(pointer));
        mod = (mod & 0x38) | pointer;
        rex = rex ? rex & ~(REX_B | REX_X) : 0;
    }
    if (mask & BIT(RSP)) {
        stack = borrow_register(e, &busy);
        emit_memory(e, 8, LOAD, stack, RSP, PLACE(r) + 8 * RSP);
        if (s->has_modrm && !copied_is_group(s) && copied_reg(s) == RSP)
            mod = (mod & ~0x38u) | stack << 3;
        if (copied_rm_is_rsp(s))
            mod = (mod & ~7u) | stack;
        if (lea && (sib & 7) == 4 && !(rex & REX_B) && (s->i.modrm & 7) == 4)
            sib = (uint8_t)((sib & ~7u) | stack);
    }
    emit_opcode(e, s, rex);
    if (s->has_modrm)
        emit(e, mod, 1);
    unsigned from = s->has_modrm && !lea ? s->immediate_at : s->i.modrm_at + (lea ? 1u : 0u);
    if (lea && (s->i.modrm & 7) == 4) {
        emit(e, sib, 1);
        from++;
    }
    for (unsigned i = from; i < s->size; i++)
        emit(e, s->i.byte[i], 1);
    if (stack != NO_REGISTER)
        emit_memory(e, 8, STORE, stack, RSP, PLACE(r) + 8 * RSP);
}

/* A MOV of the register, or of an immediate, to or from the memory operand, for PUSH and POP. */
static COLD void emit_access(struct emitter *e, uint8_t op, unsigned reg, int64_t immediate)
{
    struct copied s = { .form = 'm', .has_modrm = true, .memory = true };
    s.i.op = op;
    s.i.modrm = (uint8_t)((reg & 7) << 3);
    s.i.rex = 0x48 | (reg & 8 ? REX_R : 0);
    if (op == STORE_IMMEDIATE) {
        memcpy(s.i.byte, &immediate, 4);
        s.size = 4;
    }
    copy_instruction(e, &s);
}

static COLD void add_sums(uint64_t *sums, uint32_t effects)
{
    for (enum event e = EVENT_BRANCHES; e <= EVENT_MISSES; e++)
        if (effects & EFFECT(e))
            *sums += 1ul << small_shift(e);
}

/* Where the memory operand is; after: the next instruction. */
static COLD void set_address(struct part *p, const struct copied *s, uint64_t after)
{
    p->segment = s->i.segment == 0x64 ? SLOT_FS : s->i.segment ? SLOT_GS : SLOT_ZERO;
    p->base = s->at.base;
    p->index = s->at.index;
    p->scale = s->at.scale;
    p->displacement = (uint64_t)s->at.displacement + (s->at.relative ? after : 0);
    p->after = s->at.relative ? (uint8_t)(s->size - s->immediate_at) : 0;
    p->size = (uint8_t)copied_access_size(s);
    p->aligned = (uint8_t)copied_vector_alignment(s);
}
_Static_assert((int)SLOT_ZERO == (int)INSN_NONE, "an address without a register");

/* An access to the stack. */
static COLD void set_stack(struct part *p, unsigned base, int displacement, int add)
{
    p->base = (uint8_t)base;
    p->displacement = (uint64_t)displacement;
    p->stack = add;
}

/* PUSH, POP and LEAVE: a MOV. */
static COLD bool translate_stack(struct part *p, struct emitter *e, const struct copied *s,
                                 const struct block *b, int64_t immediate)
{
    bool pop = s->form == 'p', leave = s->form == 'L', reg = s->form == 'P';
    if (!pop && !leave && !reg && s->form != 'q' && s->form != 'Q')
        return false;
    set_stack(p, leave ? RBP : RSP, pop || leave ? 0 : -8, leave ? 0 : pop ? 8 : -8);
    p->special = leave ? LEAVE : PLAIN;
    enter_part(e, b, p);
    if (pop || leave)
        emit_access(e, LOAD, leave ? RBP : copied_op_register(s), 0);
    else
        emit_access(e, reg ? STORE : STORE_IMMEDIATE, reg ? copied_op_register(s) : 0, immediate);
    return true;
}

/* CALL, JMP by register or memory, and RET. */
static COLD void translate_jump(struct part *p, const struct copied *s, int64_t immediate)
{
    bool call = s->form == 'C' || (s->form == 'g' && insn_reg(&s->i) == 2), loaded = s->memory;
    if (s->form == 'C') {
        p->special = CALL;
    } else if (s->form == 'g') {
        p->special = call     ? loaded ? CALL_LOADED : CALL_REGISTER
                     : loaded ? JUMP_LOADED
                              : JUMP_REGISTER;
        p->operand = (uint8_t)insn_rm(&s->i);
        p->store &= !loaded; /* CALL_LOADED has two accesses */
    } else {
        p->special = JUMP_LOADED;
        set_stack(p, RSP, 0, 8 + (int)immediate);
    }
    if (call && !loaded)
        set_stack(p, RSP, -8, -8);
}

/* The instruction's part of the block; emits its code. Returns whether the block ends. */
static COLD bool translate_instruction(struct part *p, struct emitter *e, const struct copied *s,
                                       struct block *b, uint64_t after)
{
    int64_t immediate = insn_number(&s->i, s->immediate_at, copied_immediate_size(s));
    if (s->form == '-' || s->form == 'N' || translate_stack(p, e, s, b, immediate))
        return false;
    if (copied_form_is(s->form, "jJokKC"))
        b->way[true].rip = after + (uint64_t)immediate;
    if (copied_form_is(s->form, "jJo")) {
        b->conditional = true;
        b->condition =
            s->form != 'o' ? s->i.op & 15 : LOOPS | (s->i.op & 3) | (s->i.address32 ? LOOP_ECX : 0);
    }
    if (s->form == 'x') {
        p->special = STRING;
        p->operand = (s->i.op - 0xa4) >> 1;
        p->scale = !(s->i.op & 1) ? 0 : s->i.rex & REX_W ? 3 : s->i.operand16 ? 1 : 2;
        enter_part(e, b, p);
        return false;
    }
    if (s->form == 'g' && insn_reg(&s->i) == 6) {
        p->special = PUSH_LOADED;
        p->store = false; /* it has two accesses */
        enter_part(e, b, p);
        return false;
    }
    bool jumps = copied_form_is(s->form, "CRS") || (s->form == 'g' && insn_reg(&s->i) > 1);
    if (jumps) {
        translate_jump(p, s, immediate);
        enter_part(e, b, p);
    }
    if (e->hot && (p->special == CALL || p->special == CALL_REGISTER || p->special == CALL_LOADED))
        hot_call(e, p, after);
    if (jumps || copied_form_is(s->form, "jJokK"))
        return true;
    if (copied_divides(s)) {
        p->special = DIVIDE;
        p->operand = s->memory ? NO_REGISTER : (uint8_t)copied_rm(s);
        p->wide = s->i.rex & REX_W;
        p->is_signed = insn_reg(&s->i) == 7;
    }
    enter_part(e, b, p);
    if (s->form == 'l' && s->at.relative) { /* a constant */
        unsigned reg = copied_reg(s);
        bool stays = e->hot && in_memory(reg);
        emit_constant(e, stays ? SCRATCH : reg, after + (uint64_t)s->at.displacement);
        e->loaded |= BIT(reg);
        if (stays)
            emit_memory(e, 8, STORE, SCRATCH, RSP, slot(reg));
        return false;
    }
    copy_instruction(e, s);
    return false;
}

static COLD void end_part(struct block *b, struct emitter *e)
{
    struct part *p = b->parts ? &b->part[b->parts - 1] : NULL;
    if (!p || e->hot)
        return;
    if (!p->code || p->code == e->at) {
        p->code = NULL;
        return;
    }
    save_state(e);
    emit(e, 0xc3, 1); /* ret */
}

/* False: the block has no more parts. */
static COLD bool begin_part(struct block *b, struct emitter *e)
{
    if (b->parts == PARTS)
        return false;
    end_part(b, e);
    b->part[b->parts++] = (struct part){
        .before = b->way[false].sums,
        .offset = b->length,
        .base = SLOT_ZERO,
        .index = SLOT_ZERO,
        .segment = SLOT_ZERO,
        .size = 8,
    };
    return true;
}

/* How many bytes of an instruction there can be before the page ends. */
static COLD unsigned bytes_in_page(const uint8_t *code)
{
    unsigned left = PAGE_SIZE - ((uint64_t)code & (PAGE_SIZE - 1));
    return left < INSN_MAX ? left : INSN_MAX;
}

/* Adds the next instruction to the block. False: it ends before this one. */
static COLD bool append_instruction(struct vcpu *v, struct block *b, struct emitter *e,
                                    const uint8_t *code, bool *ends)
{
    struct copied s = { .i.length = (uint8_t)bytes_in_page(code) };
    struct instruction i;
    memcpy(s.i.byte, code, s.i.length);
    if (!copied_parse(&s) || copied_is_refused(&s))
        return false;
    v->vmcb.rip = b->rip + b->length;
    instruction_decode(v, &s.i, &i);
    bool string = s.form == 'x';
    bool load = i.effects & EFFECT(EVENT_LOADS), store = i.effects & EFFECT(EVENT_STORES);
    bool operand = s.memory && s.form != 'l' && s.form != 'N';
    if (operand && !load && !store)
        return false;
    bool jumps = s.form == 'g' && insn_reg(&s.i) > 1;
    if ((load || store || jumps || copied_divides(&s) || !b->parts) && !begin_part(b, e))
        return false;
    struct part *p = &b->part[b->parts - 1];
    uint64_t after = v->vmcb.rip + s.size;
    if (operand)
        set_address(p, &s, after);
    if (b->vectors < copied_vectors(&s))
        b->vectors = (uint8_t)copied_vectors(&s);
    p->access |= (load || store) && !string;
    p->store |= store;
    *ends = translate_instruction(p, e, &s, b, after);
    b->branch = b->from = b->length;
    if (virt_quirks.fused && b->compared && instruction_fuses(&s.i))
        b->from = b->compared - 1;
    b->compared = instruction_compares(&s.i) ? b->length + 1 : 0;
    b->branch_class = i.branch;
    b->instructions++;
    b->way[false].sums += 1ul << SMALL_INSTRUCTIONS;
    b->length = (uint8_t)(b->length + s.size);
    add_sums(&b->way[false].sums, i.effects);
    return true;
}

/* Where code stands by its hash: what many blocks have stands there once. An emulator takes long to
 * translate it, and a store into a page that has executed takes it longer. */
enum { PLACED_BITS = 15 };
static uint32_t placed[1 << PLACED_BITS];

void block_forget_code(void) { memset(placed, 0, sizeof placed); }

static COLD const uint8_t *place_code(const uint8_t *emitted, unsigned n, struct block_space *space)
{
    uint64_t hash = n;
    for (unsigned i = 0; i < n; i++)
        hash = (hash ^ emitted[i]) * 0x9e3779b97f4a7c15;
    uint32_t *at = &placed[hash >> (64 - PLACED_BITS)];
    const uint8_t *there = space->first + *at;
    if (there + n <= space->code && !memcmp(there, emitted, n))
        return there;
    there = space->code;
    *at = (uint32_t)(there - space->first);
    memcpy(space->code, emitted, n);
    space->code += n;
    return there;
}

/* Its parts' code, which ends at `end`. */
static COLD void place_parts(struct block *b, const uint8_t *end, struct block_space *space)
{
    for (struct part *p = b->part + b->parts; p-- > b->part;)
        if (p->code) {
            const uint8_t *from = p->code;
            p->code = place_code(from, (unsigned)(end - from), space);
            end = from;
        }
}

/* Where it goes on. */
static COLD void end_block(struct block *b, bool ends)
{
    struct way *jump = &b->way[true], *next = &b->way[false];
    if (b->parts)
        b->part[b->parts - 1].last = true;
    next->rip = b->rip + b->length;
    jump->sums = next->sums;
    if (!ends)
        jump->rip = next->rip;
    if (b->conditional && jump->rip != next->rip) /* else it counts as not taken, as in a step */
        jump->sums += 1ul << small_shift(EVENT_TAKEN);
}

void block_translate(struct vcpu *v, struct block *b, const uint8_t *code,
                     struct block_space *space)
{
    static uint8_t emitted[BLOCK_CODE_MOST];
    struct emitter e = { .at = emitted, .hot = space->hot };
    uint64_t rip = v->vmcb.rip;
    bool ends = false;
    *b = (struct block){ .part = space->part, .hot = space->hot, .user = v->vmcb.cpl == 3 };
    if (e.hot)
        hot_begin(&e, emitted);
    b->rip = rip;
    while (!ends && b->instructions < space->most && b->length + 15 <= BLOCK_BYTES &&
           (((uint64_t)code + b->length) & ~(PAGE_SIZE - 1)) ==
               ((uint64_t)code & ~(PAGE_SIZE - 1)) &&
           append_instruction(v, b, &e, code + b->length, &ends))
        ;
    end_part(b, &e);
    end_block(b, ends);
    if (!b->instructions) /* what was refused, so that other code is not */
        b->length = (uint8_t)bytes_in_page(code);
    v->vmcb.rip = rip;
    space->part += b->parts;
    if (space->hot)
        hot_end(&e, b, emitted, space);
    else
        place_parts(b, e.at, space);
    memcpy(space->code, code, b->length);
    b->bytes = space->code;
    space->code += b->length;
}
