/* SPDX-License-Identifier: MIT */
/* Repeated string instructions where code does not run freely: a step is one iteration, so they are
 * executed here, a page at a time, for a state in which blocks.c may execute. INS, OUTS, those with
 * a segment, and what is not plain RAM are stepped. An interrupt comes between pages. */
#include "kernel/base/layout.h"
#include "kernel/base/x86.h"
#include "pmu/virt/blocks/blocks.h"
#include "pmu/virt/blocks/places.h"

#define RFLAGS_ZF (1u << 6)
#define STRING_FLAGS 0x8d5u /* OF SF ZF AF PF CF */
#define PAGES_MOST 64

/* REP and REPNE with each element's size and each pair of opcodes from A4h on, and RET. */
extern const uint8_t string_code[2][4][6][4];
asm(".pushsection .text\n.balign 4\nstring_code:\n"
    ".irp repeat, 0xf3, 0xf2\n.irp size, 0, 1, 2, 3\n"
    ".irp op, 0xa4, 0xa6, 0xa8, 0xaa, 0xac, 0xae\n"
    ".byte \\repeat\n"
    ".if \\size == 1\n.byte 0x66\n.endif\n"
    ".if \\size == 3\n.byte 0x48\n.endif\n"
    ".if \\size\n.byte \\op + 1\n.else\n.byte \\op\n.endif\n"
    "ret\n.balign 4\n"
    ".endr\n.endr\n.endr\n.popsection");

enum { MOVS = 0xa4, CMPS = 0xa6, LODS = 0xac, SCAS = 0xae };

struct string {
    struct insn i;
    uint8_t op;     /* of bytes */
    unsigned shift; /* of an element's size */
    bool uses[2];   /* its operands: at RDI, at RSI */
    bool compares;
    const uint8_t *code[2]; /* the host's pages of its first and its last byte */
};

/* False: none, or it must be stepped. */
static bool read_string(const struct vcpu *v, struct string *s)
{
    guest_insn(v, &s->i);
    s->op = s->i.op & 0xfe;
    s->shift = !(s->i.op & 1) ? 0 : s->i.rex & REX_W ? 3 : s->i.operand16 ? 1 : 2;
    s->uses[0] = s->op != LODS;
    s->uses[1] = s->op == MOVS || s->op == CMPS || s->op == LODS;
    s->compares = s->op == CMPS || s->op == SCAS;
    bool string = s->i.map == MAP_ONE && insn_op_is_string(s->i.op) && s->op >= MOVS;
    return string && s->i.repeat != s->i.repeat_not && !s->i.segment && !s->i.lock &&
           !insn_rex_is_ignored(&s->i);
}

/* How many elements from there on lie in the page. */
static uint64_t elements_in_page(uint64_t address, unsigned shift, bool down)
{
    uint64_t at = address & (PAGE_SIZE - 1), size = 1ul << shift;
    if (!down)
        return (PAGE_SIZE - at) >> shift;
    return at + size > PAGE_SIZE ? 0 : (at >> shift) + 1;
}

/* The host's address of it; NULL: none, or code that runs. */
static uint8_t *find_element(const struct vcpu *v, const struct string *s, uint64_t address,
                             enum access access)
{
    uint8_t *host = place_use(v, address, access);
    const uint8_t *page = (const uint8_t *)((uint64_t)host & -PAGE_SIZE);
    return access == ACCESS_WRITE && (page == s->code[0] || page == s->code[1]) ? NULL : host;
}

static uint64_t cut_address(const struct string *s, uint64_t value)
{
    return s->i.address32 ? (uint32_t)value : value;
}

/* Executes what lies in the pages of both operands, up to a counter's wrap; how many iterations. */
static uint64_t run_in_page(struct vcpu *v, const struct string *s)
{
    struct registers *r = &v->r;
    bool down = v->vmcb.rflags & RFLAGS_DF;
    uint64_t left = cut_address(s, r->rcx), *reg[2] = { &r->rdi, &r->rsi }, at[2];
    uint64_t n = count_iterations_left(v, v->vmcb.cpl == 3);
    uint8_t *host[2] = { NULL, NULL };
    n = n < left ? n : left;
    for (unsigned i = 0; i < 2; i++) {
        if (!s->uses[i])
            continue;
        at[i] = cut_address(s, *reg[i]);
        host[i] = find_element(v, s, at[i], i || s->compares ? ACCESS_READ : ACCESS_WRITE);
        uint64_t most = host[i] ? elements_in_page(at[i], s->shift, down) : 0;
        n = n < most ? n : most;
    }
    if (!n)
        return 0;
    const uint8_t *code = string_code[s->i.repeat_not][s->shift][(s->op - MOVS) >> 1];
    uint64_t flags = v->vmcb.rflags & (STRING_FLAGS | RFLAGS_DF), rest = n;
    asm volatile("push %[flags]\npopf\ncall *%[code]\npushf\npop %[flags]\ncld"
                 : "+D"(host[0]), "+S"(host[1]), "+c"(rest), "+a"(v->vmcb.rax), [flags] "+&r"(flags)
                 : [code] "r"(code)
                 : "memory", "cc");
    v->vmcb.rflags = (v->vmcb.rflags & ~(uint64_t)STRING_FLAGS) | (flags & STRING_FLAGS);
    n -= rest;
    uint64_t bytes = (down ? -n : n) << s->shift;
    r->rcx = left - n;
    for (unsigned i = 0; i < 2; i++)
        if (s->uses[i])
            *reg[i] = cut_address(s, at[i] + bytes);
    return n;
}

/* Where all its elements are, in one page; NULL: elsewhere, or where code may run. */
static uint8_t *find_elements(const struct vcpu *v, uint64_t address, uint64_t size,
                              enum access access)
{
    bool fits = address % PAGE_SIZE + size <= PAGE_SIZE;
    uint8_t *host = fits ? place_find(v, address, access) : NULL;
    return access == ACCESS_WRITE && host && place_may_hold_code((uint64_t)host) ? NULL : host;
}

bool strings_run_part(struct vcpu *v, const struct part *p)
{
    uint64_t *r = v->stack.state.r, n = r[RCX], size = n << p->scale, rest = n;
    bool user = v->vmcb.cpl == 3, moves = !p->operand;
    if (v->vmcb.rflags & RFLAGS_DF || (v->pmu.caches && v->pmu.decoding[user]) ||
        !rep_counts_one(v, user) || n > PAGE_SIZE || count_iterations_left(v, user) < n + RUN_MOST)
        return false;
    if (!n)
        return true;
    uint8_t *to = find_elements(v, r[RDI], size, ACCESS_WRITE);
    uint8_t *from = moves ? find_elements(v, r[RSI], size, ACCESS_READ) : to;
    if (!to || !from)
        return false;
    asm volatile("call *%[code]"
                 : "+D"(to), "+S"(from), "+c"(rest)
                 : "a"(r[RAX]), [code] "r"(string_code[0][p->scale][p->operand])
                 : "memory");
    r[RDI] += size;
    r[RSI] += moves ? size : 0;
    r[RCX] = 0;
    count_iterations(v, user, n);
    return true;
}

/* The comparison ends it. */
static bool is_decided(const struct vcpu *v, const struct string *s)
{
    return s->compares && (v->vmcb.rflags & RFLAGS_ZF) / RFLAGS_ZF == s->i.repeat_not;
}

/* In the last step RCX is 0 and the addresses are those after it; none such follows a comparison
 * that ended it: the accesses of its last iteration count. */
static void decode_last(struct vcpu *v, const struct string *s, bool decided,
                        struct instruction *code)
{
    const struct registers ended = v->r;
    uint64_t back = (v->vmcb.rflags & RFLAGS_DF ? 1ul : -1ul) << s->shift;
    if (decided) {
        v->r.rdi = cut_address(s, ended.rdi + back);
        v->r.rsi = cut_address(s, ended.rsi + back);
    }
    instruction_decode(v, &s->i, code);
    v->r = ended;
}

bool strings_run(struct vcpu *v)
{
    bool user = v->vmcb.cpl == 3, decided = false;
    struct instruction code = { 0 };
    struct string s;
    if (!read_string(v, &s))
        return false;
    for (unsigned i = 0; i < 2; i++) {
        uint8_t *at = place_use(v, v->vmcb.rip + i * (s.i.modrm_at - 1u), ACCESS_EXECUTE);
        if (!at)
            return false;
        s.code[i] = (const uint8_t *)((uint64_t)at & -PAGE_SIZE);
    }
    for (unsigned i = 0; i < PAGES_MOST && !decided && cut_address(&s, v->r.rcx); i++) {
        uint64_t n = run_in_page(v, &s);
        if (!n)
            return false;
        decided = is_decided(v, &s);
        count_iterations(v, user, n - decided); /* as by the clock */
        if (v->pmu.pmi && !decided)
            return false;
    }
    if (!decided && cut_address(&s, v->r.rcx))
        return false;
    if (v->pmu.decoding[user])
        decode_last(v, &s, decided, &code);
    v->vmcb.rip += s.i.modrm_at;
    v->vmcb.rflags &= ~(uint64_t)RFLAGS_RF;
    count_one(v, user, instruction_effects(v, &code));
    return true;
}
