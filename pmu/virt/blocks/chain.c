/* SPDX-License-Identifier: MIT */
/* The ways into the code of hot blocks, out of it, and from one to the next. In it RSP is at struct
 * block_state, and the guest's registers are the processor's, but for RSP, which is R15, and R13 to
 * R15, which stay in memory. */
#include "kernel/base/layout.h"
#include "pmu/virt/blocks/blocks.h"
#include "pmu/virt/blocks/hot_code.h"
#include "pmu/virt/blocks/nested.h"
#include "pmu/virt/blocks/places.h"

_Static_assert(offsetof(struct block_state, flags) == 0, "PUSHFQ stores there");

#define PINNED(move)                                                                               \
    move(rax, 0) move(rcx, 1) move(rdx, 2) move(rbx, 3) move(r15, 4) move(rbp, 5) move(rsi, 6)     \
        move(rdi, 7) move(r8, 8) move(r9, 9) move(r10, 10) move(r11, 11) move(r12, 12)
#define IN(reg, n) "mov 8 * " #n " + %c[r](%%rsp), %%" #reg "\n"
#define OUT(reg, n) "mov %%" #reg ", 8 * " #n " + %c[r](%%rsp)\n"

/* With RSP there, to the code in RAX, with its operand in R14. */
__attribute__((naked)) void blocks_enter(void)
{
    asm volatile(
        "mov %c[pointer](%%rsp), %%r14\n"
        "mov %%rax, %c[pointer](%%rsp)\n" PINNED(IN) "jmp *%c[pointer](%%rsp)"
        :
        : [pointer] "i"(offsetof(struct block_state, pointer)), [r] "i"(offsetof(struct block_state,
                                                                                 r)));
}

/* R13: what execute_hot() returns; R14: the block. */
__attribute__((naked)) void blocks_leave(void)
{
    asm volatile(
        ".globl blocks_leave_flags\njmp 1f\nblocks_leave_flags: lea 8(%%rsp), %%rsp\npushfq\n"
        "1:" PINNED(OUT) "mov %%r14, %c[block](%%rsp)\nmov %%r13, %%rax\n"
                         "mov %c[host](%%rsp), %%rsp\nret"
        :
        : [block] "i"(offsetof(struct block_state, block)),
          [host] "i"(offsetof(struct block_state, host_rsp)),
          [r] "i"(offsetof(struct block_state, r)));
}

/* --- Hot blocks that go on with others, and those others, of each ring. When code may have changed
 * it is compared before they run again, which costs less than to find out anew what follows; but
 * not where a write into its pages would have been noticed. Now and then all are forgotten, so that
 * what runs no more is not compared. --- */

enum { LINKED_MOST = 1024, PAGES_MOST = 128, KEEPS_MOST = 64 };
static struct links {
    struct block *block[LINKED_MOST];
    struct {
        uint64_t rip;
        const uint8_t *host;
    } page[PAGES_MOST]; /* of their code */
    unsigned count, pages, kept;
    uint8_t vectors;        /* the most that one of them uses */
    uint64_t time, changes; /* when they were compared: places_time, nested_changes */
} links[2];

struct targets block_targets[2];

void block_unlink(struct block *b)
{
    for (unsigned jumps = 0; jumps < 2; jumps++)
        b->way[jumps].go = b->enter - HOT_STOP * (1 + jumps);
    b->linked = false;
}

static void unlink_ring(bool user)
{
    struct links *l = &links[user];
    struct targets *t = &block_targets[user];
    while (l->count) {
        struct block *b = l->block[--l->count];
        t->rip[b->rip % TARGETS] = 0;
        block_unlink(b);
    }
    t->rip[0] = 1;
    l->pages = l->kept = l->vectors = 0;
}

void blocks_unlink(void)
{
    unlink_ring(false);
    unlink_ring(true);
}

bool block_is_same(const struct block *b, const uint8_t *bytes)
{
    unsigned i = 0, last = b->length - 8u;
    if (b->length < 8) {
        while (i < b->length && b->bytes[i] == bytes[i])
            i++;
        return i == b->length;
    }
    while (i < last && get64(b->bytes + i) == get64(bytes + i))
        i += 8;
    return i >= last && get64(b->bytes + last) == get64(bytes + last);
}

static bool are_same(const struct vcpu *v, struct links *l)
{
    bool watched = true;
    for (unsigned i = 0; i < l->pages; i++) {
        const uint8_t *host = l->page[i].host;
        if (place_find(v, l->page[i].rip, ACCESS_EXECUTE) != host)
            return false;
        place_holds_code((uint64_t)host);
        watched &= nested_watch((uint64_t)host - DIRECT_MAP, host);
    }
    watched &= l->changes == nested_changes; /* none became known just now */
    for (unsigned i = 0; i < l->count && !watched; i++)
        if (!block_is_same(l->block[i], l->block[i]->code))
            return false;
    l->changes = nested_changes;
    return true;
}

void blocks_keep_links(struct vcpu *v, bool user, enum vectors allowed)
{
    struct links *l = &links[user];
    if (l->time == places_time)
        return;
    if (++l->kept >= KEEPS_MOST || l->vectors > allowed || !are_same(v, l))
        unlink_ring(user);
    l->time = places_time;
}

static void add_page(struct links *l, const struct block *b)
{
    uint64_t rip = b->rip & -PAGE_SIZE;
    unsigned i = 0;
    while (i < l->pages && l->page[i].rip != rip)
        i++;
    l->page[i].rip = rip;
    l->page[i].host = b->code - (b->rip - rip);
    l->pages += i == l->pages;
}

static void add_linked(struct links *l, struct block *b)
{
    if (b->linked)
        return;
    b->linked = true;
    l->block[l->count++] = b;
    l->vectors = b->vectors > l->vectors ? b->vectors : l->vectors;
    add_page(l, b);
}

/* Of its ring, with space for two more. */
static struct links *links_of(const struct block *b)
{
    struct links *l = &links[b->user];
    if (l->count + 2 > LINKED_MOST || l->pages + 2 > PAGES_MOST)
        unlink_ring(b->user);
    return l;
}

void block_link(struct block *b, bool jumps, struct block *next)
{
    struct links *l = links_of(b);
    add_linked(l, b);
    add_linked(l, next);
    b->way[jumps].go = next->enter + (b->flags_saved ? HOT_FLAGS : 0);
}

void block_add_target(struct block *b)
{
    struct targets *t = &block_targets[b->user];
    add_linked(links_of(b), b);
    t->rip[b->rip % TARGETS] = b->rip;
    t->code[b->rip % TARGETS] = b->enter + HOT_FLAGS;
}
