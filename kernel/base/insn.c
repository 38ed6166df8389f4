/* SPDX-License-Identifier: MIT */
/* kernel/base/insn.h. For the kernel, and for the virtual PMU below it: no locks, no other state.
 * */
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
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e: return true;
    }
    return false;
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

/* What follows an opcode of the first map: ModRM, or bytes of an immediate; Z is 4 bytes, 2 with
 * 66h, V the same but 8 with REX.W. */
enum { M = 0x10, Z = 5, V = 6, A = 7, BAD = 0x20 };
/* clang-format off */
#define OPERATION M, M, M, M, 1, Z
static const uint8_t after_one[256] = {
    OPERATION, BAD, BAD, OPERATION, BAD, BAD, OPERATION, BAD, BAD, OPERATION, BAD, BAD,
    OPERATION, BAD, BAD, OPERATION, BAD, BAD, OPERATION, BAD, BAD, OPERATION, BAD, BAD,
    [0x60] = BAD, BAD, BAD, M, BAD, BAD, BAD, BAD, Z, M | Z, 1, M | 1,
    [0x70] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    [0x80] = M | 1, M | Z, BAD, M | 1, M, M, M, M, M, M, M, M, M, M, M, M,
    [0x9a] = BAD,
    [0xa0] = A, A, A, A, [0xa8] = 1, Z,
    [0xb0] = 1, 1, 1, 1, 1, 1, 1, 1, V, V, V, V, V, V, V, V,
    [0xc0] = M | 1, M | 1, 2, 0, BAD, BAD, M | 1, M | Z, 3, 0, 2, 0, 0, 1, BAD,
    [0xd0] = M, M, M, M, BAD, BAD, BAD, 0, M, M, M, M, M, M, M, M,
    [0xe0] = 1, 1, 1, 1, 1, 1, 1, 1, 4, 4, BAD, 1,
    [0xf6] = M, M, [0xfe] = M, M,
};
/* clang-format on */

static unsigned after_0f(uint8_t op)
{
    if (op >= 0x80 && op <= 0x8f)
        return 4;
    if (op == 0x05 || op == 0x06 || op == 0x08 || op == 0x09 || op == 0x0b || op == 0x0e ||
        (op >= 0x30 && op <= 0x37) || op == 0x77 || (op >= 0xa0 && op <= 0xa2) ||
        (op >= 0xa8 && op <= 0xaa) || op >> 3 == 0xc8 >> 3)
        return 0;
    bool immediate = (op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac || op == 0xba ||
                     op == 0xc2 || (op >= 0xc4 && op <= 0xc6);
    return M | immediate;
}

unsigned insn_length(const struct insn *i)
{
    unsigned after = i->map == MAP_ONE    ? after_one[i->op]
                     : i->map == MAP_0F   ? after_0f(i->op)
                     : i->map == MAP_0F38 ? M
                                          : M | 1;
    if (after & BAD)
        return 0;
    if (i->map == MAP_ONE && (i->op & 0xfe) == 0xf6 && insn_reg(i) < 2)
        after |= i->op & 1 ? Z : 1; /* TEST */
    struct insn_memory memory;
    unsigned at = after & M ? insn_memory(i, &memory) : i->modrm_at, bytes = after & 15;
    if (bytes == V && i->rex & REX_W)
        bytes = 8;
    else if (bytes == Z || bytes == V)
        bytes = i->operand16 ? 2 : 4;
    else if (bytes == A)
        bytes = i->address32 ? 4 : 8;
    return at + bytes <= INSN_MAX ? at + bytes : 0;
}
