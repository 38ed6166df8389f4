/* SPDX-License-Identifier: MIT */
/* kernel/base/insn.h. For the kernel and the virtual PMU below it: no locks, no other state. */
#include "kernel/base/insn.h"
#include "kernel/base/string.h"

static bool parse_prefix(struct insn *i, uint8_t b)
{
    switch (b) {
    case 0x64:
    case 0x65: i->segment = b; return true;
    case 0x66: i->operand16 = true; return true;
    case 0x67: i->address32 = true; return true;
    case 0xf0: i->lock = true; return true;
    case 0xf2: i->repeat_not = true; return true;
    case 0xf3: i->repeat = true; return true;
    }
    return (b & 0xe7) == 0x26; /* ES CS SS DS */
}

/* Reads a VEX prefix, if C4 or C5 begins one at `at`; returns its length. */
static unsigned parse_vex(struct insn *i, unsigned at)
{
    uint8_t b = i->byte[at], next = i->byte[at + 1];
    if ((b != 0xc4 && b != 0xc5) || (!i->wide && (next & 0xc0) != 0xc0))
        return 0;
    i->vex = true;
    i->rex = b == 0xc4 ? ~next >> 5 & 7 : ~next >> 5 & 4;
    i->map = b == 0xc4 ? next & 3 : MAP_0F;
    i->repeat = (i->byte[at + (b == 0xc4 ? 2 : 1)] & 3) == 2;
    return b == 0xc4 ? 3 : 2;
}

/* A REX prefix counts only directly before the opcode. */
void insn_parse(struct insn *i)
{
    unsigned at = 0;
    for (; at < i->length; at++) {
        bool rex = i->wide && (i->byte[at] & 0xf0) == 0x40;
        if (!rex && !parse_prefix(i, i->byte[at]))
            break;
        i->rex = rex ? i->byte[at] : 0;
    }
    i->prefixes = (uint8_t)at;
    unsigned vex = parse_vex(i, at);
    at += vex;
    if (!vex && i->byte[at] == 0x0f) {
        uint8_t next = i->byte[at + 1];
        i->map = next == 0x38 ? MAP_0F38 : next == 0x3a ? MAP_0F3A : MAP_0F;
        at += i->map == MAP_0F ? 1 : 2;
    }
    i->op = i->byte[at];
    i->modrm_at = (uint8_t)(at + 1);
    i->modrm = i->byte[at + 1];
}

bool insn_rex_is_ignored(const struct insn *i)
{
    for (unsigned at = 0; i->wide && at + 1u < i->prefixes; at++)
        if ((i->byte[at] & 0xf0) == 0x40)
            return true;
    return false;
}

int64_t insn_number(const struct insn *i, unsigned at, unsigned size)
{
    uint64_t value = 0;
    memcpy(&value, i->byte + at, size);
    return size == 1 ? (int8_t)value : size == 4 ? (int32_t)value : (int64_t)value;
}

unsigned insn_memory(const struct insn *i, struct insn_memory *m)
{
    unsigned at = i->modrm_at + 1u, mod = i->modrm >> 6, rm = i->modrm & 7;
    *m = (struct insn_memory){ .base = INSN_NONE, .index = INSN_NONE };
    if (mod == 3)
        return at;
    bool sib = rm == 4;
    if (sib) {
        uint8_t byte = i->byte[at++], index = (byte >> 3 & 7) | (i->rex & REX_X ? 8 : 0);
        m->index = index == 4 ? INSN_NONE : index;
        m->scale = byte >> 6;
        rm = byte & 7;
    }
    if (rm != 5 || mod != 0)
        m->base = (uint8_t)(rm | (i->rex & REX_B ? 8 : 0));
    m->relative = i->wide && !sib && m->base == INSN_NONE;
    unsigned size = mod == 1 ? 1 : mod == 2 || m->base == INSN_NONE ? 4 : 0;
    m->displacement = size ? insn_number(i, at, size) : 0;
    return at + size;
}

/* --- The length. --- */

/* What follows an opcode; capitals have a ModRM byte.
 * . M nothing more   1 2 3 4 B bytes of an immediate   z Z 4 bytes, 2 with 66h and no REX.W
 * v the same, 8 with REX.W   a an address   R registers, whatever mod says   T TEST of a group
 * Q EXTRQ, INSERTQ   x no instruction begins so */
/* clang-format off */
static const char one_byte[] =
    "MMMM1zxxMMMM1zxx" "MMMM1zxxMMMM1zxx" "MMMM1zxxMMMM1zxx" "MMMM1zxxMMMM1zxx"
    "................" "................" "xxxMxxxxzZ1B...." "1111111111111111"
    "BZxBMMMMMMMMMMMM" "..........x....." "aaaa....1z......" "11111111vvvvvvvv"
    "BB2.xxBZ3.2..1x." "MMMMxxx.MMMMMMMM" "1111111144x1...." "......TT......MM";
static const char two_bytes[] =
    "MMMMM.....M.MM.B" "MMMMMMMMMMMMMMMM" "RRRRMMMMMMMMMMMM" "........MMMMMMMM"
    "MMMMMMMMMMMMMMMM" "MMMMMMMMMMMMMMMM" "MMMMMMMMMMMMMMMM" "BBBBMMM.QMMMMMMM"
    "4444444444444444" "MMMMMMMMMMMMMMMM" "...MBMMM...MBMMM" "MMMMMMMMMMBMMMMM"
    "MMBMBBBM........" "MMMMMMMMMMMMMMMM" "MMMMMMMMMMMMMMMM" "MMMMMMMMMMMMMMMM";
/* clang-format on */

/* EVEX, and XOP, which is a POP if its map is below 8, are known here alone. */
static char follows(struct insn *i)
{
    bool one = i->map == MAP_ONE, evex = one && i->op == 0x62;
    if (!evex && (!one || i->op != 0x8f || !(i->modrm & 0x18)))
        return one                  ? one_byte[i->op]
               : i->map == MAP_0F   ? two_bytes[i->op]
               : i->map == MAP_0F38 ? 'M'
                                    : 'B';
    unsigned map = i->modrm & (evex ? 7 : 31);
    i->modrm_at += evex ? 4 : 3;
    i->op = i->byte[i->modrm_at - 1];
    i->modrm = i->byte[i->modrm_at];
    return map == 1 ? two_bytes[i->op] : map == 3 || map == 8 ? 'B' : map == 10 ? 'Z' : 'M';
}

static unsigned immediate_size(const struct insn *i, char kind)
{
    unsigned size = i->rex & REX_W || !i->operand16 ? 4 : 2;
    switch (kind) {
    case 'B': return 1;
    case 'v': return i->rex & REX_W ? 8 : size;
    case 'z':
    case 'Z': return size;
    case 'a': return i->address32 ? 4 : 8;
    case 'T': return insn_reg(i) > 1 ? 0 : i->op & 1 ? size : 1;
    case 'Q': return i->operand16 || i->repeat_not ? 2 : 0;
    }
    return kind >= '1' && kind <= '4' ? (unsigned)(kind - '0') : 0;
}

unsigned insn_length(const struct insn *instruction)
{
    struct insn i = *instruction;
    struct insn_memory memory;
    char kind = follows(&i);
    if (kind == 'R')
        i.modrm |= 0xc0;
    unsigned at = kind >= 'A' && kind <= 'Z' ? insn_memory(&i, &memory) : i.modrm_at;
    at += immediate_size(&i, kind);
    return kind != 'x' && at <= INSN_MAX ? at : 0;
}
