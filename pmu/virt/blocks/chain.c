/* SPDX-License-Identifier: MIT */
/* The ways into the code of hot blocks, out of it, and from one to the next. In it RSP is at struct
 * block_state, and the guest's registers are the processor's, but for RSP, which is R15, and R13 to
 * R15, which stay in memory. */
#include "kernel/base/layout.h"
#include "pmu/virt/blocks/blocks.h"
#include "pmu/virt/blocks/hot_code.h"
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

/* --- Hot blocks that go on with others, while no code can have changed. --- */

enum { LINKED_MOST = 1024 };
static struct block *linked[LINKED_MOST];
static unsigned linked_count;

struct targets block_targets;
static uint16_t targets[TARGETS]; /* that are set */
static unsigned target_count;

void block_unlink(struct block *b)
{
    for (unsigned jumps = 0; jumps < 2; jumps++)
        b->way[jumps].go = b->enter - HOT_STOP * (1 + jumps);
    b->linked = false;
}

void blocks_unlink(void)
{
    while (linked_count)
        block_unlink(linked[--linked_count]);
    while (target_count)
        block_targets.rip[targets[--target_count]] = 0;
    block_targets.rip[0] = 1;
}

void block_link(struct block *b, bool jumps, const struct block *next)
{
    if (linked_count == LINKED_MOST)
        blocks_unlink();
    if (!b->linked)
        linked[linked_count++] = b;
    b->linked = true;
    b->way[jumps].go = next->enter + (b->flags_saved ? HOT_FLAGS : 0);
}

void block_add_target(const struct block *b)
{
    uint16_t at = b->rip % TARGETS;
    if (block_targets.rip[at] % TARGETS != at)
        targets[target_count++] = at;
    block_targets.rip[at] = b->rip;
    block_targets.code[at] = b->enter + HOT_FLAGS;
}
