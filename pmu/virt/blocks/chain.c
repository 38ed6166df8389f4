/* SPDX-License-Identifier: MIT */
/* The way from a hot block to the next. */
#include "kernel/base/layout.h"
#include "pmu/virt/blocks/blocks.h"
#include "pmu/virt/blocks/places.h"

#define IN_STATE(member) (8 + offsetof(struct block_state, member)) /* from RSP: a CALL */
#define RIP_IN_STATE                                                                               \
    ((int)offsetof(struct vcpu, vmcb.rip) - (int)offsetof(struct vcpu, stack.state) + 8)

/* Counts the block, and goes on with the one that followed it before, if that is the next, has not
 * changed, and fits. */
__attribute__((naked)) void blocks_chain(void)
{
    asm volatile(
        "mov %c[most](%%rsp), %%r8\n"
        "mov %c[block](%%rsp), %%rdi\n"
        "mov %%eax, %%r9d\n"
        "imul %[way_size], %%eax, %%eax\n"
        "lea %c[way](%%rdi, %%rax), %%rsi\n"
        "mov %c[way_sums](%%rsi), %%rdx\n"
        "add %%rdx, %c[sums](%%rsp)\n"
        "mov %c[sums] + 8(%%rsp), %%rdx\n"
        "add %c[way_sums] + 8(%%rsi), %%rdx\n"
        "mov %%rdx, %c[sums] + 8(%%rsp)\n"
        "mov (%%rsi), %%rax\n"
        "mov %%rax, %c[rip](%%rsp)\n"
        "test %%r8, %%r8\n"
        "jz 2f\n"
        "mov %c[link](%%rsi), %%rdi\n"
        "xor (%%rdi), %%rax\n"
        "mov places_time, %%rcx\n"
        "xor %c[checked](%%rdi), %%rcx\n"
        "or %%rcx, %%rax\n"
        "mov %c[code](%%rdi), %%rcx\n"
        "xor %c[page](%%rsp), %%rcx\n"
        "and %c[mask](%%rsp), %%rcx\n"
        "or %%rcx, %%rax\n"
        "jnz 1f\n"
        "add %c[all_sums] + 8(%%rdi), %%rdx\n"
        "cmp %%r8, %%rdx\n"
        "jae 1f\n"
        "mov %%rdi, %c[block](%%rsp)\n"
        "jmp *%c[enter](%%rdi)\n"
        "1: mov %[counted], %%eax\n"
        "ret\n"
        "2: lea %c[looked_at](%%r9), %%eax\n"
        "ret\n"
        ".globl blocks_cold\nblocks_cold: mov %[next], %%eax\n"
        "ret"
        :
        : [most] "i"(IN_STATE(most)), [block] "i"(IN_STATE(block)), [sums] "i"(IN_STATE(sums)),
          [page] "i"(IN_STATE(page)), [mask] "i"(IN_STATE(mask)), [rip] "i"(RIP_IN_STATE),
          [way] "i"(offsetof(struct block, way)), [way_size] "i"(sizeof(struct way)),
          [way_sums] "i"(offsetof(struct way, sums)), [link] "i"(offsetof(struct way, link)),
          [checked] "i"(offsetof(struct block, checked)),
          [all_sums] "i"(offsetof(struct block, way[false].sums)),
          [code] "i"(offsetof(struct block, code)), [enter] "i"(offsetof(struct block, enter)),
          [counted] "i"(COUNTED), [looked_at] "i"(LOOKED_AT), [next] "i"(NEXT));
}
_Static_assert(offsetof(struct block, rip) == 0 && offsetof(struct way, rip) == 0, "blocks_chain");
