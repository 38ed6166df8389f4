/* SPDX-License-Identifier: MIT */
/* The blocks, kept by RIP: compared with the guest's code, where that may have changed since, and
 * made anew. L: the token. */
#include "kernel/base/string.h"
#include "pmu/virt/blocks/blocks.h"
#include "pmu/virt/blocks/places.h"

/* Enough for what a Linux kernel and its shell execute again and again. An emulator takes long to
 * translate code anew. */
enum { BLOCKS = 18688, INDEX_BITS = 15, ALL_PARTS = 46080, HOT_SIZE = 9 << 16 };

static struct block blocks[BLOCKS]; /* 0 is none */
static struct part parts[ALL_PARTS];
static uint8_t code[CODE_SIZE];
static struct block_space space = { .part = parts, .code = code, .first = code };
static uint8_t hot_code[HOT_SIZE];
static struct block_space hot_space = { BLOCK_INSTRUCTIONS, NULL, hot_code, hot_code, true };
bool block_predicts;
static unsigned block_count = 1;
static uint16_t block_index[1 << INDEX_BITS]; /* by hashed RIP; then the next free entry */

static bool is_full(void)
{
    return block_count == BLOCKS || space.part + PARTS > parts + ALL_PARTS ||
           space.code + BLOCK_CODE_MOST > code + CODE_SIZE;
}

static void forget_all(void)
{
    memset(block_index, 0, sizeof block_index);
    space = (struct block_space){ .part = parts, .code = code, .first = code };
    hot_space.code = hot_code;
    block_forget_code();
    block_count = 1;
    places_time++;
    blocks_unlink(); /* no link leads to a hot block whose code another takes the place of */
}

static bool is_at(const struct block *b, uint64_t rip, bool user)
{
    return b->rip == rip && b->predicted == block_predicts && b->user == user;
}

/* The entry of block_index where the block is, or would be. */
static uint16_t *index_entry(uint64_t rip, bool user)
{
    uint64_t at = (rip + block_predicts + 2 * user) * 0x9e3779b97f4a7c15 >> (64 - INDEX_BITS);
    while (block_index[at] && !is_at(&blocks[block_index[at]], rip, user))
        at = (at + 1) % (1 << INDEX_BITS);
    return &block_index[at];
}

/* The bytes of an instruction that may end in the next page, as if all stood at a page's end. */
static const uint8_t *gather_code(struct vcpu *v, uint64_t rip, const uint8_t *first)
{
    static uint8_t gathered[PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
    unsigned here = PAGE_SIZE - (rip & (PAGE_SIZE - 1)), all = here;
    const uint8_t *more = place_find(v, rip + here, ACCESS_EXECUTE);
    if (more) {
        place_holds_code((uint64_t)more);
        memcpy(gathered + PAGE_SIZE - INSN_MAX + here, more, INSN_MAX - here);
        all = INSN_MAX;
    }
    memcpy(gathered + PAGE_SIZE - all, first, here);
    return gathered + PAGE_SIZE - all;
}

/* Nothing is known to follow it. */
static void make_block(struct vcpu *v, struct block *b, const uint8_t *bytes,
                       struct block_space *to)
{
    block_translate(v, b, bytes, to);
    b->predicted = block_predicts;
    if (b->hot)
        block_unlink(b);
    else
        b->way[false].link = b->way[true].link = blocks;
}

struct block *block_look_up(struct vcpu *v, enum vectors allowed)
{
    uint64_t rip = v->vmcb.rip;
    bool user = v->vmcb.cpl == 3;
    uint16_t *entry = index_entry(rip, user);
    struct block *b = &blocks[*entry];
    if (*entry && b->checked == places_time)
        return b;
    const uint8_t *there = place_find(v, rip, ACCESS_EXECUTE), *bytes = there;
    if (!there)
        return NULL;
    place_holds_code((uint64_t)there);
    space.most = BLOCK_INSTRUCTIONS;
    if ((rip & (PAGE_SIZE - 1)) > PAGE_SIZE - INSN_MAX) {
        bytes = gather_code(v, rip, there);
        space.most = 1;
    }
    if (!*entry || !block_is_same(b, bytes)) {
        if (is_full()) {
            forget_all();
            entry = index_entry(rip, user);
        }
        if (!*entry)
            *entry = (uint16_t)block_count++;
        b = &blocks[*entry];
        make_block(v, b, bytes, &space);
    }
    if (!b->instructions || b->vectors > allowed)
        return NULL;
    b->code = there;
    b->checked = places_time;
    return b;
}

void block_heat(struct vcpu *v, struct block *b)
{
    const uint8_t *there = b->code;
    if ((b->rip & (PAGE_SIZE - 1)) + b->length > PAGE_SIZE)
        return;
    if (hot_space.code + BLOCK_CODE_MOST > hot_code + HOT_SIZE) {
        forget_all();
        return;
    }
    hot_space.part = b->part;
    hot_space.most = b->instructions; /* it has no more parts than there are */
    make_block(v, b, there, &hot_space);
    b->code = there;
    b->checked = places_time;
}
