/* SPDX-License-Identifier: MIT */
/* Code of hot blocks: it finds its accesses by itself, counts itself and goes on with the next hot
 * one, all with the guest's registers in the processor (chain.c). What is not common it leaves to
 * blocks.c. An emulator takes longer to translate it, so that only blocks that run often have it.
 * The guest's flags are the processor's, or saved, or both. */
#include "kernel/base/layout.h"
#include "kernel/base/string.h"
#include "pmu/virt/blocks/hot_code.h"
#include "pmu/virt/blocks/places.h"

enum { HEAD_MOST = 128, LEAVES_MOST = 4 * PARTS + 1 };
#define ONE_TAKEN (1 << (EVENT_TAKEN - EVENT_BRANCHES) * SUM_BITS)

/* Jumps to where the code is left: where their distance stands, and what it is left with. */
static struct {
    uint8_t *at;
    unsigned with;
} leaves[LEAVES_MOST];
static unsigned leave_count;
static int64_t moves; /* by so many bytes the code will be moved */

static COLD void put_distance(uint8_t *at, const uint8_t *to)
{
    uint32_t distance = (uint32_t)(to - (at + 4));
    memcpy(at, &distance, 4);
}

/* A jump out of the code. */
static COLD void leave_if(struct emitter *e, uint8_t op, unsigned with)
{
    emit(e, op == JUMP ? 0xe940u : 0x0f | (uint64_t)op << 8, 2);
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

/* --- Accesses --- */

static COLD void emit_address(struct emitter *e, const struct part *p)
{
    struct insn_memory m = { p->base, p->index, p->scale, false, (int64_t)p->displacement };
    if (m.base == NO_REGISTER && m.index == NO_REGISTER) {
        emit_constant(e, POINTER, p->displacement);
    } else {
        m.base = (uint8_t)hold_register(e, m.base, POINTER);
        m.index = (uint8_t)hold_register(e, m.index, SCRATCH);
        emit_lea(e, 8, POINTER, &m);
    }
    if (p->segment != SLOT_ZERO)
        emit_memory(e, 8, ADD, POINTER, RSP, slot(p->segment));
}

/* Looks the page up, as place_find() does. */
static COLD void find_page(struct emitter *e, const struct part *p, unsigned part)
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

static COLD void find_hot(struct emitter *e, const struct part *p, unsigned part)
{
    bool constant = p->base == SLOT_ZERO && p->index == SLOT_ZERO && p->segment == SLOT_ZERO;
    bool inside =
        p->displacement % PAGE_SIZE + p->size <= PAGE_SIZE && !(p->displacement & p->aligned);
    if (constant && inside)
        look_up_constant(e, p, part);
    else
        find_page(e, p, part);
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

/* R14: of its bits those that are the number of an entry. */
static COLD void keep_target(struct emitter *e)
{
    emit(e, 0xe68141, 3); /* and r14d, ... */
    emit(e, TARGETS - 1, 4);
}

/* Leaves R14 as the number of its entry in block_targets, or leaves the code if there is none. A
 * call keeps in memory where it pushes, or the target. */
static COLD void check_target(struct emitter *e, const struct block *b, const struct part *p,
                              unsigned part)
{
    if (p->special == CALL_REGISTER)
        emit_memory(e, 8, STORE, POINTER, RSP, STATE(pointer));
    if (p->special == JUMP_LOADED || p->special == CALL_LOADED)
        emit_memory(e, 8, LOAD, SCRATCH, POINTER, 0);
    else
        emit_registers(e, 8, STORE, hold_register(e, p->operand, SCRATCH), SCRATCH);
    emit_registers(e, 0, STORE, SCRATCH, POINTER);
    keep_target(e);
    emit_entry(e, 0x2c3b4e, block_targets[b->user].rip); /* cmp r13, ... */
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
    find_hot(e, &push, part);
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
        find_hot(e, p, part);
    if (special == DIVIDE)
        check_division(e, p, part);
    if (special == STRING)
        leave_if(e, JUMP, part);
    if (part_computes_target(p))
        check_target(e, b, p, part);
    if (loaded)
        find_pushed(e, p, part);
    if (special == LEAVE)
        emit_lea_offset(e, STACK, RBP, 8);
    else if (p->stack)
        emit_lea_offset(e, STACK, STACK, p->stack);
    p->code = e->at;
}

/* --- The beginning and the end --- */

void hot_begin(struct emitter *e, uint8_t *emitted)
{
    leave_count = 0;
    e->at = emitted + HEAD_MOST;
    e->saved = true;
}

_Static_assert(STATE(sums) > INT8_MAX && STATE(left) > INT8_MAX, "12 bytes change one of them");

/* Before the body: counts the block as one whose branch mostly jumps if it jumps back. Returns
 * where the flags would be saved. */
static COLD uint8_t *emit_head(struct emitter *e, const struct block *b, uint8_t *body, bool back)
{
    uint8_t *end = e->at;
    const struct sums all = whole_sums(b->way[back].sums);
    uint64_t counts[] = { all.word[0], all.word[1] & ((1ul << SUM_INSTRUCTIONS) - 1) };
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

static COLD void go_to(struct emitter *e, const struct block *b, bool jumps, const uint8_t *head)
{
    if (b->way[jumps].rip == b->rip && jumps && !block_computes_target(b)) {
        emit(e, 0xe9, 1);
        emit(e, 0, 4);
        put_distance(e->at - 4, head + (e->saved ? HOT_FLAGS : 0));
        return;
    }
    if (block_computes_target(b)) {
        if (b->part[b->parts - 1].special == CALL_LOADED) {
            emit_memory(e, 0, LOAD, POINTER, RSP, STATE(pointer));
            keep_target(e);
        }
        emit_entry(e, 0x24ff42, block_targets[b->user].code); /* jmp */
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
        go_to(e, b, false, head);
        *distance = (uint8_t)(e->at - distance - 1);
        if (counts && !back)
            correct_taken(e, ONE_TAKEN);
    }
    go_to(e, b, true, head);
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
        p->code = p->code ? p->code + moves : NULL;
    space->code += end - start;
}
