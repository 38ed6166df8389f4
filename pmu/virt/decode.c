/* SPDX-License-Identifier: MIT */
/* Decodes the instruction at the guest's RIP as far as counters need it: the kind of branch;
 * whether it loads or stores, and where. Each opcode has a letter; its length matters only to
 * branches. An instruction has at most one load and one store, whatever its size, REP or not; PUSH,
 * POP, CALL, RET and gates access the stack. Addresses serve the model of caches alone: a
 * RIP-relative one ignores an immediate behind it, and data segments other than FS and GS have base
 * 0. Exact for 64-bit and flat 32-bit code. EVEX is not decoded: most count as no access. Source:
 * SDM volume 2, "Opcode Map"; AMD64 APM volume 3, "Opcode and Operand Encodings". */
#include "kernel/base/bits.h"
#include "kernel/base/msr.h"
#include "kernel/base/x86.h"
#include "pmu/virt/guest.h"
#include "pmu/virt/vcpu.h"

/* clang-format off */
/* . nothing (of memory)    r w m  ModRM operand: read, written, both      others  see group()
 * S P  push, pop           a A    accumulator and offset: read, written   I D i  string: read RSI, write RDI, read RDI
 * B  string: both          j Jcc, LOOP, JCXZ   J jmp   C call   R ret     F Q far call, far jmp
 * N  far return            X  INT               Y  SYSCALL and its like   L LEAVE   t XLAT */
static const char one_byte[] =
    "mmrr..SPmmrr..S." "mmrr..SPmmrr..SP" "mmrr....mmrr...." "mmrr....rrrr...."
    "................" "SSSSSSSSPPPPPPPP" "SPrr....SrSrDDII" "jjjjjjjjjjjjjjjj"
    "ggggrrmmwwrrw.rm" "..........F.SP.." "aaAABBII..DDIIii" "................"
    "mmRRrrwwSLNNXXXN" "mmmm...trxrxrxrx" "jjjj....CJQJ...." "......hh......mk";
static const char two_bytes[] =
    "uvrr.Y.Y........" "rwrwrrrw........" "........rwrwrrrr" "....YY.........."
    "rrrrrrrrrrrrrrrr" "rrrrrrrrrrrrrrrr" "rrrrrrrrrrrrrrrr" "rrrrrrr...rrrrzw"
    "jjjjjjjjjjjjjjjj" "wwwwwwwwwwwwwwww" "SP.rmm..SP.mmmyr" "mmrmrrrrr.bmrrrr"
    "mmrwrrrm........" "rrrrrrwrrrrrrrrr" "rrrrrrrwrrrrrrrr" "rrrrrrrrrrrrrrr.";
/* clang-format on */
_Static_assert(sizeof one_byte == 257 && sizeof two_bytes == 257, "one letter each");

enum { MAP_ONE, MAP_0F, MAP_0F38, MAP_0F3A };

struct code {
    uint8_t byte[15];
    unsigned length, at;     /* end of the readable bytes; position of the decoder */
    bool wide;               /* 64-bit code */
    bool repeat, repeat_not; /* F3, F2 */
    bool operand16, segment; /* 66; FS or GS */
    uint32_t segment_msr;
    uint8_t rex, map, op, modrm; /* rex: R X B of VEX too */
    bool vex;
};

static uint8_t peek(const struct code *c, unsigned ahead)
{
    return c->at + ahead < c->length ? c->byte[c->at + ahead] : 0;
}

static bool prefix(struct code *c)
{
    uint8_t b = peek(c, 0);
    switch (b) {
    case 0x64:
    case 0x65:
        c->segment = true;
        c->segment_msr = b == 0x64 ? MSR_FS_BASE : MSR_GS_BASE;
        return true;
    case 0x66: c->operand16 = true; return true;
    case 0xf3: c->repeat = true; return true;
    case 0xf2: c->repeat_not = true; return true;
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x67:
    case 0xf0: return true;
    }
    return false;
}

/* Reads a VEX prefix, if C4 or C5 begins one here. */
static bool vex(struct code *c)
{
    uint8_t b = peek(c, 0), next = peek(c, 1);
    if ((b != 0xc4 && b != 0xc5) || (!c->wide && (next & 0xc0) != 0xc0))
        return false;
    c->vex = true;
    c->rex = b == 0xc4 ? ~next >> 5 & 7 : ~next >> 5 & 4;
    c->map = b == 0xc4 ? next & 3 : MAP_0F;
    c->repeat = (peek(c, b == 0xc4 ? 2 : 1) & 3) == 2;
    c->at += b == 0xc4 ? 3 : 2;
    return true;
}

static void opcode(struct code *c)
{
    while (c->at < c->length && prefix(c))
        c->at++;
    if (c->wide && (peek(c, 0) & 0xf0) == 0x40)
        c->rex = c->byte[c->at++];
    if (!vex(c) && peek(c, 0) == 0x0f) {
        uint8_t next = peek(c, 1);
        c->map = next == 0x38 ? MAP_0F38 : next == 0x3a ? MAP_0F3A : MAP_0F;
        c->at += c->map == MAP_0F ? 1 : 2;
    }
    c->op = peek(c, 0);
    c->at++;
    c->modrm = peek(c, 0);
}

static char letter(const struct code *c)
{
    uint8_t op = c->op;
    switch (c->map) {
    case MAP_ONE: return one_byte[op];
    case MAP_0F: return two_bytes[op];
    case MAP_0F38: /* masked stores of VEX; MOVBE */
        if (c->vex ? op == 0x2e || op == 0x2f || op == 0x8e : op == 0xf1 && !c->repeat_not)
            return 'w';
        return 'r';
    default: /* extractions */
        return (op >= 0x14 && op <= 0x17) || (c->vex && (op == 0x19 || op == 0x1d || op == 0x39))
                   ? 'w'
                   : 'r';
    }
}

#define LOAD EFFECT(EVENT_LOADS)
#define STORE EFFECT(EVENT_STORES)
#define BRANCH EFFECT(EVENT_BRANCHES)
#define JUMP (BRANCH | EFFECT(EVENT_TAKEN))
#define FAR (BRANCH | EFFECT(EVENT_FAR))

/* Opcodes whose ModRM.reg selects the access to the memory operand; c: CLFLUSH. */
static char group(const struct code *c, char kind)
{
    unsigned reg = c->modrm >> 3 & 7;
    switch (kind) {
    case 'g': return reg == 7 ? 'r' : 'm'; /* arithmetic; CMP */
    case 'h': return "rrmmrrrr"[reg];      /* TEST NOT NEG MUL DIV */
    case 'u': return "wwrrrrrr"[reg];      /* SLDT STR */
    case 'v': return "wwrrw.r."[reg];      /* SGDT SIDT LGDT LIDT SMSW INVLPG */
    case 'b': return "rrrrrmmm"[reg];      /* BT; BTS BTR BTC */
    case 'y':
        return (c->operand16 ? ".......c"
                             : "wrrwwrwc")[reg]; /* FXSAVE.. XSAVEOPT, CLFLUSH; CLFLUSHOPT */
    case 'z': return c->repeat ? 'r' : 'w';      /* MOVQ MOVD */
    case 'x': {                                  /* x87 at D9, DB, DD, DF: stores by reg */
        static const uint8_t stores[4] = { 0xcc, 0x8e, 0xce, 0xce };
        return stores[(c->op - 0xd9) / 2] >> reg & 1 ? 'w' : 'r';
    }
    }
    return kind;
}

/* Displacement of `size` bytes at `ahead`. */
static uint64_t displacement(const struct code *c, unsigned ahead, unsigned size)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++)
        value |= (uint64_t)peek(c, ahead + i) << 8 * i;
    return size == 1 ? (uint64_t)(int8_t)value : size == 4 ? (uint64_t)(int32_t)value : value;
}

static uint64_t get(const struct vcpu *v, unsigned number)
{
    static const uint8_t places[16] = {
        0,
        offsetof(struct registers, rcx),
        offsetof(struct registers, rdx),
        offsetof(struct registers, rbx),
        0,
        offsetof(struct registers, rbp),
        offsetof(struct registers, rsi),
        offsetof(struct registers, rdi),
        offsetof(struct registers, r8),
        offsetof(struct registers, r9),
        offsetof(struct registers, r10),
        offsetof(struct registers, r11),
        offsetof(struct registers, r12),
        offsetof(struct registers, r13),
        offsetof(struct registers, r14),
        offsetof(struct registers, r15),
    };
    if (number == 0 || number == 4)
        return number ? v->vmcb.rsp : v->vmcb.rax;
    return *(const uint64_t *)(const void *)((const uint8_t *)&v->r + places[number]);
}

static uint64_t base_address(const struct vcpu *v, const struct code *c)
{
    unsigned mod = c->modrm >> 6, rm = c->modrm & 7, ahead = 1;
    uint64_t sum = 0;
    if (rm == 4) {
        uint8_t sib = peek(c, ahead++);
        unsigned index = (sib >> 3 & 7) | (c->rex & 2) << 2, base = sib & 7;
        if (index != 4)
            sum += get(v, index) << (sib >> 6);
        if (base == 5 && mod == 0)
            return sum + displacement(c, ahead, 4);
        sum += get(v, base | (c->rex & 1) << 3);
    } else if (rm == 5 && mod == 0) {
        return displacement(c, ahead, 4) + (c->wide ? v->vmcb.rip + c->at + ahead + 4 : 0);
    } else {
        sum = get(v, rm | (c->rex & 1) << 3);
    }
    return sum + (mod == 0 ? 0 : displacement(c, ahead, mod == 1 ? 1 : 4));
}

static uint64_t modrm_address(const struct vcpu *v, const struct code *c)
{
    uint64_t sum = base_address(v, c) + (c->segment ? rdmsr(c->segment_msr) : 0);
    return c->wide ? sum : (uint32_t)sum;
}

/* Instructions with a ModRM byte; a register operand is no access. */
static void with_modrm(const struct vcpu *v, const struct code *c, char kind, struct instruction *i)
{
    bool memory = c->modrm >> 6 != 3;
    unsigned reg = c->modrm >> 3 & 7;
    if (kind == 'k') { /* FF */
        static const uint32_t effects[8] = { 0, 0, JUMP | STORE, FAR | STORE, JUMP, FAR, STORE, 0 };
        i->effects = effects[reg];
        kind = reg < 2 ? 'm' : 'r';
    }
    if (!memory) {
        i->address = v->vmcb.rsp - 8; /* of CALL */
        return;
    }
    i->address = modrm_address(v, c);
    kind = group(c, kind);
    i->flush = kind == 'c';
    i->effects |=
        (kind == 'r' || kind == 'm' ? LOAD : 0) | (kind == 'w' || kind == 'm' ? STORE : 0);
}

static void conditional(const struct vcpu *v, const struct code *c, struct instruction *i)
{
    i->effects = BRANCH | EFFECT(EVENT_CONDITIONAL);
    i->next = v->vmcb.rip + c->at + (c->map == MAP_ONE ? 1 : c->operand16 && !c->wide ? 2 : 4);
}

void instruction_decode(const struct vcpu *v, struct instruction *i)
{
    struct code c = { .wide = v->vmcb.cs.attributes & 1u << 9 };
    uint64_t linear = v->vmcb.rip + (c.wide ? 0 : v->vmcb.cs.base);
    c.length = guest_read(v, linear, c.byte, sizeof c.byte);
    opcode(&c);
    char kind = letter(&c);

    static const struct {
        char kind;
        uint32_t effects;
    } simple[] = {
        { 'S', STORE }, { 'P', LOAD },         { 'a', LOAD },        { 'A', STORE },
        { 'I', LOAD },  { 'i', LOAD },         { 'D', STORE },       { 'B', LOAD | STORE },
        { 'J', JUMP },  { 'C', JUMP | STORE }, { 'R', JUMP | LOAD }, { 'F', FAR | STORE },
        { 'Q', FAR },   { 'N', FAR | LOAD },   { 'X', FAR | STORE }, { 'Y', FAR },
        { 'L', LOAD },  { 't', LOAD },
    };
    *i = (struct instruction){ 0 };
    if (kind == '.')
        return;
    if (kind == 'j') {
        conditional(v, &c, i);
        return;
    }
    for (unsigned n = 0; n < ARRAY_SIZE(simple); n++) {
        if (simple[n].kind != kind)
            continue;
        i->effects = simple[n].effects;
        i->address = kind == 'I' || kind == 'B'   ? v->r.rsi
                     : kind == 'i' || kind == 'D' ? v->r.rdi
                     : kind == 'a' || kind == 'A' ? displacement(&c, 0, c.wide ? 8 : 4)
                     : kind == 'L'                ? v->r.rbp
                     : kind == 't'                ? v->r.rbx
                     : i->effects & STORE         ? v->vmcb.rsp - 8
                                                  : v->vmcb.rsp;
        return;
    }
    with_modrm(v, &c, kind, i);
}
