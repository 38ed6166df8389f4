/* SPDX-License-Identifier: MIT */
/* REP MOVS and REP STOS where each instruction must be decoded: a step is one iteration, of which
 * the last alone counts. The others, up to the end of a page, are done here at once, for a state in
 * which blocks.c may execute. */
#include "kernel/base/layout.h"
#include "pmu/virt/blocks.h"

enum { REP = 0xf3, MOVSB = 0xa4, MOVS = 0xa5, STOSB = 0xaa, STOS = 0xab };
#define RFLAGS_DF (1u << 10)

static uint64_t elements_in_page(uint64_t address, unsigned size)
{
    return (PAGE_SIZE - (address & (PAGE_SIZE - 1))) / size;
}

static void copy_string(uint8_t *to, const uint8_t *from, uint64_t n, unsigned size)
{
    if (size == 1)
        asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
    else if (size == 4)
        asm volatile("rep movsl" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
    else
        asm volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

static void fill_string(uint8_t *to, uint64_t value, uint64_t n, unsigned size)
{
    if (size == 1)
        asm volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(value) : "memory");
    else if (size == 4)
        asm volatile("rep stosl" : "+D"(to), "+c"(n) : "a"(value) : "memory");
    else
        asm volatile("rep stosq" : "+D"(to), "+c"(n) : "a"(value) : "memory");
}

void strings_run(struct vcpu *v)
{
    struct registers *r = &v->r;
    uint64_t offset = v->vmcb.rip & (PAGE_SIZE - 1), n = r->rcx - 1;
    const uint8_t *page = guest_page(v, v->vmcb.rip, ACCESS_EXECUTE), *code;
    if (!page || offset > PAGE_SIZE - 3)
        return;
    code = page + offset;
    if (code[0] != REP || !r->rcx || v->vmcb.rflags & RFLAGS_DF)
        return;
    uint8_t rex = (code[1] & 0xf0) == 0x40 ? code[1] : 0, op = code[rex ? 2 : 1];
    unsigned size = !(op & 1) ? 1 : rex & 8 ? 8 : 4;
    bool moves = op == MOVSB || op == MOVS;
    if (!moves && op != STOSB && op != STOS)
        return;
    n = n > elements_in_page(r->rdi, size) ? elements_in_page(r->rdi, size) : n;
    n = moves && n > elements_in_page(r->rsi, size) ? elements_in_page(r->rsi, size) : n;
    uint8_t *to = guest_page(v, r->rdi, ACCESS_WRITE);
    const uint8_t *from = moves ? guest_page(v, r->rsi, ACCESS_READ) : to;
    if (!to || !from || to == page)
        return;
    to += r->rdi & (PAGE_SIZE - 1);
    if (moves)
        copy_string(to, from + (r->rsi & (PAGE_SIZE - 1)), n, size);
    else
        fill_string(to, v->vmcb.rax, n, size);
    r->rcx -= n;
    r->rdi += n * size;
    r->rsi += moves ? n * size : 0;
}
