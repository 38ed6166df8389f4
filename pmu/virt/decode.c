/* SPDX-License-Identifier: MIT */
/* Decodes the instruction at the guest's RIP as far as counters need it: the kind of branch;
 * whether it loads or stores, and where. Each opcode has a letter; its length matters only to
 * branches. An instruction has at most one load and one store, whatever its size, REP or not; PUSH,
 * POP, CALL, RET and gates access the stack. Addresses serve the model of caches alone: a
 * RIP-relative one ignores an immediate after it, and data segments other than FS and GS have base
 * 0. Exact for 64-bit and flat 32-bit code. EVEX is not decoded: most count as no access.
 *
 * insn.c (what follows an opcode) and blocks/copied.c (how it is copied) have their own alphabets.
 * With this one they meet in more than 70 ways: one table would need as many
 * letters, and three more tables from those to what each asks.
 *
 * Source: SDM volume 2, "Opcode Map"; AMD64 APM volume 3, "Opcode and Operand Encodings". */
#include "kernel/base/bits.h"
#include "kernel/base/msr.h"
#include "kernel/base/x86.h"
#include "pmu/virt/guest.h"
#include "pmu/virt/quirk.h"
#include "pmu/virt/vcpu.h"

/* clang-format off */
/* . nothing (of memory)    r w m  ModRM operand: read, written, both      others  see group_access()
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

static char opcode_letter(const struct insn *c)
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
static char group_access(const struct insn *c, char kind)
{
    unsigned reg = insn_reg(c);
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

static uint64_t modrm_address(const struct vcpu *v, const struct insn *c)
{
    struct insn_memory m;
    unsigned end = insn_memory(c, &m);
    uint64_t sum = (uint64_t)m.displacement + (m.relative ? v->vmcb.rip + end : 0);
    sum += m.base != INSN_NONE ? guest_register(v, m.base) : 0;
    sum += m.index != INSN_NONE ? guest_register(v, m.index) << m.scale : 0;
    if (c->segment)
        sum += rdmsr(c->segment == 0x64 ? MSR_FS_BASE : MSR_GS_BASE);
    return c->wide ? sum : (uint32_t)sum;
}

/* Instructions with a ModRM byte; a register operand is no access. */
static void decode_modrm(const struct vcpu *v, const struct insn *c, char kind,
                         struct instruction *i)
{
    unsigned reg = insn_reg(c);
    if (kind == 'k') { /* FF */
        static const uint32_t effects[8] = { 0, 0, JUMP | STORE, FAR | STORE, JUMP, FAR, STORE, 0 };
        static const uint8_t classes[8] = {
            0, 0, BRANCH_IND_CALL, BRANCH_FAR, BRANCH_IND_JMP, BRANCH_FAR, 0, 0
        };
        i->effects = effects[reg];
        i->branch = classes[reg];
        kind = reg < 2 ? 'm' : 'r';
    }
    if (!insn_has_memory(c)) {
        i->address = v->vmcb.rsp - 8; /* of CALL */
        return;
    }
    i->address = modrm_address(v, c);
    if (c->lock && virt_quirks.bug == BUG_LOCKED)
        i->effects |= EFFECT(EVENT_CONDITIONAL);
    kind = group_access(c, kind);
    i->flush = kind == 'c';
    i->effects |=
        (kind == 'r' || kind == 'm' ? LOAD : 0) | (kind == 'w' || kind == 'm' ? STORE : 0);
}

static void decode_conditional(const struct vcpu *v, const struct insn *c, struct instruction *i)
{
    i->effects = BRANCH | EFFECT(EVENT_CONDITIONAL);
    i->branch = BRANCH_JCC;
    i->next = v->vmcb.rip + c->modrm_at +
              (c->map == MAP_ONE          ? 1
               : c->operand16 && !c->wide ? 2
                                          : 4);
}

void instruction_decode(const struct vcpu *v, const struct insn *c, struct instruction *i)
{
    char kind = opcode_letter(c);

    static const struct {
        char kind;
        uint8_t at; /* the register with the address; NO_REGISTER: a number */
        uint32_t effects;
    } simple[] = {
        { 'S', RSP, STORE },         { 'P', RSP, LOAD },         { 'a', NO_REGISTER, LOAD },
        { 'A', NO_REGISTER, STORE }, { 'I', RSI, LOAD },         { 'i', RDI, LOAD },
        { 'D', RDI, STORE },         { 'B', RSI, LOAD | STORE }, { 'J', RSP, JUMP },
        { 'C', RSP, JUMP | STORE },  { 'R', RSP, JUMP | LOAD },  { 'F', RSP, FAR | STORE },
        { 'Q', RSP, FAR },           { 'N', RSP, FAR | LOAD },   { 'X', RSP, FAR | STORE },
        { 'Y', RSP, FAR },           { 'L', RBP, LOAD },         { 't', RBX, LOAD },
    };
    *i = (struct instruction){ 0 };
    if (kind == '.')
        return;
    if (kind == 'j') {
        decode_conditional(v, c, i);
        return;
    }
    for_each_in(s, simple) {
        if (s->kind != kind)
            continue;
        i->effects = s->effects;
        i->branch = kind == 'J'           ? BRANCH_REL_JMP
                    : kind == 'C'         ? BRANCH_REL_CALL
                    : kind == 'R'         ? BRANCH_RET
                    : i->effects & BRANCH ? BRANCH_FAR
                                          : BRANCH_NONE;
        i->address = s->at == NO_REGISTER
                         ? (uint64_t)insn_number(c, c->modrm_at, c->wide ? 8 : 4)
                         : guest_register(v, s->at) - (s->at == RSP && i->effects & STORE ? 8 : 0);
        return;
    }
    decode_modrm(v, c, kind, i);
}

bool instruction_compares(const struct insn *c)
{
    unsigned reg = insn_reg(c);
    if (c->map != MAP_ONE)
        return false;
    switch (c->op) {
    case 0x84:
    case 0x85:
    case 0xa8:
    case 0xa9: return true; /* TEST */
    case 0x80:
    case 0x81:
    case 0x83: return reg == 7; /* CMP */
    case 0xf6:
    case 0xf7: return reg == 0;
    default: return c->op >= 0x38 && c->op <= 0x3d;
    }
}

bool instruction_fuses(const struct insn *c)
{
    return (c->map == MAP_ONE && (c->op & 0xf0) == 0x70) ||
           (c->map == MAP_0F && (c->op & 0xf0) == 0x80);
}
