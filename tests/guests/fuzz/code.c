/* SPDX-License-Identifier: MIT */
/* tests/guests/fuzz/code.h */
#include "tests/guests/fuzz/code.h"
#include "tests/guests/fuzz/fuzz.h"

/* Opcodes that blocks of code have; 100h and up: after 0F. */
static const uint16_t ranges[][2] = {
    { 0x00, 0x05 },   { 0x08, 0x0d },   { 0x10, 0x15 },   { 0x18, 0x1d },   { 0x20, 0x25 },
    { 0x28, 0x2d },   { 0x30, 0x35 },   { 0x38, 0x3d },   { 0x50, 0x5f },   { 0x63, 0x63 },
    { 0x68, 0x6b },   { 0x70, 0x81 },   { 0x83, 0x8b },   { 0x8d, 0x8d },   { 0x90, 0x99 },
    { 0xa8, 0xa9 },   { 0xb0, 0xc3 },   { 0xc6, 0xc7 },   { 0xc9, 0xc9 },   { 0xd0, 0xd3 },
    { 0xe8, 0xeb },   { 0xf5, 0xf9 },   { 0xfe, 0xff },   { 0x11e, 0x11f }, { 0x140, 0x14f },
    { 0x180, 0x19f }, { 0x1a3, 0x1a5 }, { 0x1ab, 0x1ad }, { 0x1af, 0x1b1 }, { 0x1b3, 0x1b3 },
    { 0x1b6, 0x1b7 }, { 0x1ba, 0x1c1 }, { 0x1c8, 0x1cf }, { 0xa4, 0xa5 },   { 0xaa, 0xab },
    { 0xe0, 0xe3 },
};
enum { RANGES = sizeof ranges / sizeof *ranges };

static uint8_t *at;

static void put_bytes(uint64_t bytes, unsigned n)
{
    for (; n; n--, bytes >>= 8)
        *at++ = (uint8_t)bytes;
}

static unsigned some_opcode(void)
{
    const uint16_t *range = ranges[fuzz_below(RANGES)];
    return fuzz_below(40) ? range[0] + (unsigned)fuzz_below(range[1] - range[0] + 1u)
                          : (unsigned)fuzz_below(0x200);
}

static bool locks(unsigned opcode) { return opcode == 0x86 || opcode == 0x87; }

/* A pointer as base, R14 as index; seldom anything. */
static void put_modrm(const struct code *c, unsigned *rex)
{
    static const uint8_t pointers[] = { 3, 5, 6, 7, 8, 12, 13, 4 };
    unsigned mod = (unsigned)fuzz_below(4), reg = (unsigned)fuzz_below(8);
    unsigned rm = fuzz_below(8) ? pointers[fuzz_below(8)] : (unsigned)fuzz_below(16);
    bool index = !fuzz_below(4);
    if (mod != 3)
        *rex |= rm >= 8 ? 0x41 : 0;
    if (mod != 3 && rm < 8)
        *rex &= ~1u;
    if (mod == 3)
        rm = (unsigned)fuzz_below(8);
    bool sib = mod != 3 && ((rm & 7) == 4 || index);
    if (sib)
        *rex = index ? *rex | 0x42 : *rex & ~2u;
    if (*rex)
        put_bytes(*rex, 1);
    put_bytes(c->opcode > 0xff ? 0x0f | (c->opcode & 0xff) << 8 : c->opcode,
              c->opcode > 0xff ? 2 : 1);
    put_bytes(mod << 6 | reg << 3 | (sib ? 4 : rm & 7), 1);
    if (sib)
        put_bytes(fuzz_below(4) << 6 | (index ? 6 : 4) << 3 | (rm & 7), 1);
    bool relative = mod == 0 && rm == 5 && !sib, base = mod == 0 && sib && (rm & 7) == 5;
    uint64_t near = fuzz_below(32) * 8 - (relative || base ? 0 : 128);
    if (!c->locks && !fuzz_below(4))
        near += fuzz_below(8);
    if (mod == 1)
        put_bytes(near, 1);
    else if (mod == 2 || relative || base)
        put_bytes(near + (relative ? c->data - c->moved - (uint64_t)at : base ? c->data : 0), 4);
}

static bool has_modrm(unsigned opcode)
{
    unsigned low = opcode & 0xff;
    if (opcode > 0xff)
        return (low & 0xf0) != 0x80 && (low & 0xf8) != 0xc8;
    return low < 0x40 ? (low & 7) < 4
                      : low == 0x63 || low == 0x69 || low == 0x6b || (low >= 0x80 && low < 0x90) ||
                            low == 0xc0 || low == 0xc1 || low == 0xc6 || low == 0xc7 ||
                            (low >= 0xd0 && low < 0xd4) || (low & 0xf6) == 0xf6;
}

static void put_instruction(struct code *c)
{
    static const uint8_t prefixes[] = { 0x2e, 0x2e, 0x26, 0xf2, 0x67, 0x36 };
    unsigned rex = fuzz_below(2) ? 0x40 | (unsigned)fuzz_below(16) : 0;
    do
        c->opcode = some_opcode();
    while (locks(c->opcode) && !c->locks);
    if ((c->opcode & 0x1e7) == 0x1a3 || c->opcode == 0x1ba)
        put_bytes(0xf5, 1); /* CMC: blocks.c says why */
    bool string = (c->opcode & 0xfff4) == 0xa4 && (c->opcode & 0xe) != 8;
    if (!fuzz_below(6))
        put_bytes(0x66, 1);
    bool loop = (c->opcode & ~3u) == 0xe0;
    if (loop && !fuzz_below(3))
        put_bytes(0x67, 1);
    if (!fuzz_below(30))
        put_bytes(prefixes[fuzz_below(sizeof prefixes)], 1);
    if (c->locks && !fuzz_below(4))
        put_bytes(0xf0, 1);
    if (c->gs || !fuzz_below(16))
        put_bytes(0x65, 1);
    if (string || !fuzz_below(40))
        put_bytes(0xf3, 1);
    if (has_modrm(c->opcode)) {
        put_modrm(c, &rex);
    } else {
        if (rex)
            put_bytes(rex, 1);
        put_bytes(c->opcode > 0xff ? 0x0f | (c->opcode & 0xff) << 8 : c->opcode,
                  c->opcode > 0xff ? 2 : 1);
    }
    bool jumps = (c->opcode & 0xf0) == 0x70 || (c->opcode & 0xfff0) == 0x180 ||
                 (c->opcode >= 0xe8 && c->opcode <= 0xeb);
    if (loop && fuzz_below(8)) /* forward, or a little back */
        put_bytes(fuzz_below(28) - 4, 1);
    else if (jumps && fuzz_below(8))
        put_bytes(fuzz_below(24), (c->opcode & 0xf0) == 0x70 || c->opcode == 0xeb ? 1 : 4);
    else if (fuzz_below(4))
        put_bytes(fuzz_edge(), (unsigned)fuzz_below(9));
}

unsigned code_make(struct code *c, uint8_t *to, unsigned most)
{
    at = to;
    for (uint64_t n = 1 + fuzz_below(6); n && at + CODE_INSTRUCTION <= to + most; n--)
        put_instruction(c);
    unsigned length = (unsigned)(at - to);
    if (!fuzz_below(8))
        to[fuzz_below(length)] = (uint8_t)fuzz_below(256);
    return length;
}
