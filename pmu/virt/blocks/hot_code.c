/* SPDX-License-Identifier: MIT */
/* Code of hot blocks: all of a block in one call, which finds its accesses by itself, counts itself
 * and goes on with the next hot one (blocks_chain()). It returns to blocks.c for what is not
 * common. An emulator takes longer to translate it, so that only blocks that run often have it. */
#include "kernel/base/layout.h"
#include "kernel/base/string.h"
#include "pmu/virt/blocks/hot_code.h"
#include "pmu/virt/blocks/places.h"

/* Back to blocks.c, which does what this part needs. */
static COLD void leave_code(struct emitter *e, unsigned part)
{
    emit(e, 0xb8 | (uint64_t)part << 8, 5); /* mov eax, part */
    emit(e, 0xc3, 1);
}
enum { LEAVE_SIZE = 6 };

static COLD void emit_add(struct emitter *e, unsigned place, int n)
{
    emit(e, 0x24848148, 4); /* add qword [rsp + place], n */
    emit(e, place, 4);
    emit(e, (uint32_t)n, 4);
}

/* RSI: where the memory operand is. Nothing of the guest's is in registers. */
static COLD void emit_address(struct emitter *e, const struct part *p)
{
    emit(e, 0xbe48, 2); /* mov rsi, displacement */
    emit(e, p->displacement, 8);
    const uint8_t slots[] = { p->base, p->segment };
    for (unsigned i = 0; i < sizeof slots; i++)
        if (slots[i] != SLOT_ZERO)
            emit_move(e, ADD, RSI, PLACE(r) + 8 * slots[i]);
    if (p->index == SLOT_ZERO)
        return;
    emit_move(e, LOAD, RDI, PLACE(r) + 8 * p->index);
    emit(e, 0x3e348d48 | (uint64_t)p->scale << 30, 4); /* lea rsi, [rsi + rdi * scale] */
}

/* Looks the page up, as place_find() does. */
static COLD void emit_look_up(struct emitter *e, const struct part *p, unsigned part)
{
    const struct place *table = places[p->store ? ACCESS_WRITE : ACCESS_READ];
    emit_address(e, p);
    if (p->aligned) {
        emit(e, 0xc6f640 | (uint64_t)p->aligned << 24, 4); /* test sil, aligned */
        emit(e, 0x74 | LEAVE_SIZE << 8, 2);
        leave_code(e, part);
    }
    emit(e, 0xf789, 2);                                           /* mov edi, esi */
    emit(e, 0x08efc1, 3);                                         /* shr edi, 8 */
    emit(e, 0xe781 | (uint64_t)(16 * PLACES - 16) << 16, 6);      /* and edi, ... */
    emit(e, 0xb72b48 | (uint64_t)&table->page << 24, 7);          /* sub rsi, [rdi + page] */
    emit(e, 0xfe8148 | (uint64_t)(PAGE_SIZE - p->size) << 24, 7); /* cmp rsi, ... */
    emit(e, 0x76 | LEAVE_SIZE << 8, 2);
    leave_code(e, part);
    emit(e, 0xb70348 | (uint64_t)&table->host << 24, 7); /* add rsi, [rdi + host] */
}
_Static_assert(sizeof(struct place) == 16 && offsetof(struct place, page) == 0, "a table's entry");

/* A jump to where RSI points, if the address is canonical with 48 bits. */
static COLD void emit_target(struct emitter *e, const struct block *b, unsigned part)
{
    emit(e, 0x3e8b48, 3);   /* mov rdi, [rsi] */
    emit(e, 0xf88948, 3);   /* mov rax, rdi */
    emit(e, 0x2ff8c148, 4); /* sar rax, 47 */
    emit(e, 0xc0ff, 2);     /* inc eax */
    emit(e, 0x01f883, 3);   /* cmp eax, 1 */
    emit(e, 0x76 | LEAVE_SIZE << 8, 2);
    leave_code(e, part);
    emit(e, 0x253c8948, 4); /* mov [target], rdi */
    emit(e, (uint32_t)(uint64_t)&b->way[true].rip, 4);
}

void hot_enter_part(struct emitter *e, const struct block *b, struct part *p)
{
    unsigned number = (unsigned)(p - b->part);
    bool jumps = p->special == JUMP_LOADED;
    if (p->access && (p->special == PLAIN || p->special == CALL || jumps)) {
        emit_look_up(e, p, number);
        if (jumps)
            emit_target(e, b, number);
        else
            emit_move(e, STORE, RSI, PLACE(pointer));
        if (p->stack)
            emit_add(e, PLACE(r) + 8 * RSP, p->stack);
    } else if (p->access || p->special) {
        leave_code(e, number);
    }
    p->code = e->at;
}

void hot_call(struct emitter *e, uint64_t next)
{
    emit(e, 0xbf48, 2); /* mov rdi, next */
    emit(e, next, 8);
    emit_move(e, LOAD, RSI, PLACE(pointer));
    emit(e, 0x3e8948, 3); /* mov [rsi], rdi */
}

/* After all parts. The code moves so many bytes. */
static COLD void end_code(struct emitter *e, const struct block *b, int64_t moves)
{
    bool loops = b->conditional && b->condition >= LOOPS, flags = e->flags;
    save_state(e);
    if (b->conditional && !loops && !flags)
        need_flags(e);
    emit(e, 0xb8 | (uint64_t)(loops ? ENDED : b->conditional ? 0 : 1) << 8, 5); /* mov eax, ... */
    if (loops) {
        emit(e, 0xc3, 1);
        return;
    }
    if (b->conditional)
        emit(e, 0xc0900f | (uint64_t)b->condition << 8, 3); /* setcc al */
    emit(e, 0xe9, 1);                                       /* jmp blocks_chain */
    emit(e, (uint32_t)((uint64_t)blocks_chain - (uint64_t)(e->at + 4 + moves)), 4);
}

void hot_end(struct emitter *e, struct block *b, const uint8_t *emitted, struct block_space *space)
{
    end_code(e, b, space->code - emitted);
    uint64_t size = (uint64_t)(e->at - emitted);
    memcpy(space->code, emitted, size);
    for (struct part *p = b->part; p < b->part + b->parts; p++)
        if (p->code)
            p->code = space->code + (p->code - emitted);
    b->enter = space->code;
    space->code += size;
}
