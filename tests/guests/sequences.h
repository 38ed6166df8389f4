/* SPDX-License-Identifier: MIT */
/* Random instructions for blocks.c, which has the memory that they access and random numbers. */
#pragma once
#include "tests/guests/guest.h"

static uint8_t *at, rex;

static void b(unsigned byte) { *at++ = (uint8_t)byte; }

static void bytes(unsigned n)
{
    while (n--)
        b(rnd(4) ? rnd(16) * 8 : rnd(256));
}

/* A register for data, mostly one that holds no pointer; never R15, which counts iterations. RSP,
 * R13 and R14 are not the processor's own in blocks. */
static unsigned favoured; /* 0: none */
static unsigned data_register(void)
{
    if (favoured)
        return favoured;
    static const uint8_t plain[] = { 0, 1, 2, 9, 10, 11 }, other[] = { 4, 4, 13, 14, 14, 14 };
    return rnd(14) ? plain[rnd(6)] : rnd(3) ? other[rnd(6)] : rnd(15);
}

static const uint8_t pointers[] = { 3, 5, 6, 7, 8, 12, 13, 4 };

/* Prefixes and REX for reg and rm; then opcode and ModRM. lock: where memory may have it. */
static void modrm(unsigned opcode, int group, bool memory_only, bool lock, unsigned immediate)
{
    unsigned reg = group >= 0 ? (unsigned)group : data_register(), mod = rnd(4), rm, index = 4;
    bool small = !rnd(reg == 4 || reg > 12 ? 2 : 6), with_rex = rnd(2);
    if (memory_only && mod == 3)
        mod = 1;
    rm = mod == 3 ? data_register() : pointers[rnd(8)];
    if (mod != 3 && !rnd(3))
        index = 14;
    with_rex |= reg >= 8 || rm >= 8 || (index == 14 && mod != 3);
    if (mod != 3 && !rnd(24))
        b(0x64 + rnd(2));
    if (mod != 3 && !rnd(128))
        b(0x67); /* to a page that is not there */
    if (small && !rnd(16))
        b(0x40 + rnd(16)); /* ignored */
    if (small)
        b(0x66);
    if (mod != 3 && lock && !rnd(4))
        b(0xf0);
    rex = with_rex ? (uint8_t)(0x40 | rnd(2) << 3 | (reg >> 3) << 2 |
                               (mod != 3 && index == 14 ? 2 : 0) | rm >> 3)
                   : 0;
    if (rex)
        b(rex);
    if (opcode >> 8)
        b(0x0f);
    b(opcode);
    bool sib = mod != 3 && ((rm & 7) == 4 || index == 14);
    bool relative = mod == 0 && (rm & 7) == 5 && !sib;
    if (mod == 0 && (rm & 7) == 5 && sib)
        mod = 1;
    b(mod << 6 | (reg & 7) << 3 | (sib ? 4 : rm & 7));
    if (sib)
        b(rnd(4) << 6 | (index & 7) << 3 | (rm & 7));
    if (mod == 1)
        b(rnd(32) * 8 - 64 + (rnd(4) ? 0 : rnd(8)));
    if (mod == 2 || relative) {
        int displacement = (int)(rnd(8) ? rnd(512) : rnd(8192)) - 256;
        displacement += relative ? (int)(memory + DATA * PAGE + 1024 - at) : 0;
        for (unsigned i = 0; i < 32; i += 8)
            b((unsigned)displacement >> i);
    }
    bytes(immediate == 4 && small && !(rex & 8) ? 2 : immediate);
}

static void with_rex(unsigned opcode, unsigned reg, bool wide)
{
    if (reg >= 8 || wide)
        b(0x40 | (wide ? 8 : 0) | reg >> 3);
    b(opcode | (reg & 7));
}

static void instruction(void);

/* LOOPNE, LOOPE, LOOP, JRCXZ, by RCX or ECX: mostly after MOV ECX; back to itself, or forward. */
static void loop(void)
{
    unsigned op = 0xe0 + rnd(4);
    bool moved = rnd(4);
    if (moved)
        b(0xb9), b(1 + rnd(8)), b(0), b(0), b(0);
    uint8_t *first = at;
    if (!rnd(3))
        b(0x67);
    if (!rnd(8))
        b(0x48);
    b(op);
    uint8_t *from = at++;
    if (moved && op < 0xe3 && rnd(2)) {
        *from = (uint8_t)(first - at);
        return;
    }
    if (rnd(4))
        instruction();
    *from = (uint8_t)(at - from - 1);
}

/* A jump forward, over a few instructions; or a call of them. */
static void forward(void)
{
    unsigned kind = rnd(6);
    uint8_t *from;
    if (kind == 0) { /* CALL over a jump to code that ends with RET */
        b(0xe8), b(2), b(0), b(0), b(0), b(0xeb);
        from = at++;
        instruction();
        rnd(4) ? b(0xc3) : (b(0xc2), b(rnd(2) * 8), b(rnd(4) ? 0 : 0x80));
    } else if (kind == 1) { /* LEA RAX, [RIP + n]; PUSH; JMP or CALL by register or memory */
        unsigned how = rnd(4);
        b(0x48), b(0x8d), b(0x05);
        from = at;
        at += 4;
        b(0x50), b(0xff);
        b(how == 0 ? 0xe0 : how == 1 ? 0xd0 : how == 2 ? 0x24 : 0x14);
        if (how > 1)
            b(0x24);
        instruction();
        *from = (uint8_t)(at - from - 4);
        from[1] = from[2] = from[3] = 0;
        return;
    } else {
        if (kind == 2) {
            b(0x0f), b(0x80 + rnd(16));
            from = at;
            at += 4;
            instruction();
            *from = (uint8_t)(at - from - 4);
            from[1] = from[2] = from[3] = 0;
            return;
        }
        b(kind == 3 ? 0xeb : 0x70 + rnd(16));
        from = at++;
        instruction();
    }
    *from = (uint8_t)(at - from - 1);
}

/* RBX becomes an address in the last bytes of a page. */
static void point_to_end(void) { b(0x66), b(0xbb), b(0xe0 + rnd(32)), b(0x4f); } /* MOV BX */

/* SSE and AVX, on registers 0 to 3 and memory. */
static void vector(void)
{
    /* Bits 16: an immediate; 12 on: 66, F3, F2; 8 on: the map. */
    static const uint32_t codes[] = {
        0x110,  0x111,  0x1128,  0x129,   0x1116,  0x113,   0x157,   0x1160, 0x116c, 0x116e, 0x116f,
        0x216f, 0x216f, 0x11170, 0x11173, 0x11172, 0x1174,  0x1176,  0x117e, 0x217e, 0x117f, 0x217f,
        0x11d4, 0x11d6, 0x11d7,  0x11da,  0x11e7,  0x11eb,  0x11ef,  0x11f8, 0x1200, 0x1229, 0x1237,
        0x1258, 0x1278, 0x1130f, 0x11363, 0x177,   0x3110,  0x2111,  0x212a, 0x312a, 0x212d, 0x312c,
        0x12e,  0x112f, 0x151,   0x3151,  0x158,   0x2159,  0x115c,  0x315e, 0x15a,  0x115a, 0x215a,
        0x15b,  0x215b, 0x115f,  0x21e6,  0x31e6,  0x101c2, 0x131c2, 0x111c6
    };
    static const uint8_t prefixes[] = { 0, 0x66, 0xf3, 0xf2 };
    uint32_t code = codes[rnd(sizeof codes / sizeof *codes)], prefix = code >> 12 & 3,
             map = code >> 8 & 3, op = code & 255;
    bool vex = rnd(2), three = map > 1 || rnd(2), at_end = !rnd(4);
    unsigned base = at_end ? 3 : pointers[rnd(vex && !three ? 4 : 8)];
    unsigned mod = at_end ? 0 : rnd(3) ? 1 : 3, high = mod == 1 && base >= 8;
    unsigned extended = rnd(6) ? 0 : 4,
             last = (rnd(6) ? 0x78 : (~rnd(4) & 15) << 3) | !rnd(3) << 2 | prefix;
    if (at_end)
        point_to_end();
    if (vex) {
        b(three ? 0xc4 : 0xc5);
        if (three)
            b(((high ? 0xc0 : 0xe0) ^ extended << 5) | map);
        b(three ? last : 0x80 | last);
    } else {
        if (prefix)
            b(prefixes[prefix]);
        if (high || extended || !rnd(4))
            b(0x40 | extended | high | (rnd(4) ? 0 : 8));
        b(0x0f);
        if (map > 1)
            b(map == 2 ? 0x38 : 0x3a);
    }
    b(op);
    if (op == 0x77)
        return;
    b(mod << 6 | rnd(extended ? 8 : 4) << 3 | (mod == 3 ? rnd(4) : base & 7));
    if (mod == 1 && (base & 7) == 4)
        b(0x24);
    if (mod == 1)
        b(rnd(8) * 16 - 64 + (rnd(4) ? 0 : rnd(16)));
    if (code >> 16)
        b(rnd(4) ? rnd(24) : rnd(256));
}

/* ANDN, BLSR and its kin, BZHI, PEXT, PDEP, BEXTR, shifts. */
static void bmi(void)
{
    static const uint16_t codes[] = { 0xf2,  0xf3, 0xf3,  0xf3,  0xf5, 0x2f5,
                                      0x3f5, 0xf7, 0x1f7, 0x2f7, 0x3f7 };
    unsigned code = codes[rnd(sizeof codes / sizeof *codes)], reg = data_register();
    unsigned other = data_register(), rm = data_register(), mod = rnd(4) ? 3 : 0;
    if ((code & 255) == 0xf3)
        reg = rnd(8) ? 1 + rnd(3) : 0;
    if (!mod)
        point_to_end(), rm = 3;
    b(0xc4), b(0xe2 ^ (reg & 8) << 4 ^ (rm & 8) << 2),
        b(rnd(2) << 7 | (~other & 15) << 3 | code >> 8);
    b(code & 255), b(mod << 6 | (reg & 7) << 3 | (rm & 7));
}

/* Conversions, MOVD and PMOVMSKB, between one of XMM0 to XMM3 and a general register; x87's
 * control word. */
static void convert(void)
{
    static const struct {
        uint8_t prefix, op;
        bool to_general; /* by ModRM.reg, else by ModRM.rm */
    } codes[] = { { 2, 0x2a, false }, { 3, 0x2a, false }, { 2, 0x2d, true }, { 3, 0x2c, true },
                  { 1, 0x6e, false }, { 1, 0x7e, false }, { 1, 0xd7, true } };
    static const uint8_t prefixes[] = { 0, 0x66, 0xf3, 0xf2 }, odd[] = { 4, 13, 14 };
    if (!rnd(8)) { /* FLDCW, FNSTENV, FNSTCW */
        point_to_end(), b(0xd9), b(0x2b + 8 * rnd(3));
        return;
    }
    unsigned n = rnd(sizeof codes / sizeof *codes),
             general = rnd(2) ? data_register() : odd[rnd(3)];
    unsigned reg = codes[n].to_general ? general : rnd(4), wide = rnd(2) << 7;
    unsigned rm = codes[n].to_general ? rnd(4) : general;
    if (rnd(2)) {
        b(0xc4), b(0xe1 ^ (reg & 8) << 4 ^ (rm & 8) << 2), b(wide | 0x78 | codes[n].prefix);
    } else {
        b(prefixes[codes[n].prefix]), b(0x40 | wide >> 4 | (reg & 8) >> 1 | (rm & 8) >> 3), b(0x0f);
    }
    b(codes[n].op), b(0xc0 | (reg & 7) << 3 | (rm & 7));
}

static void instruction(void)
{
    static const uint16_t plain[] = { 0x63,  0x84,  0x85,  0x88,  0x89,  0x8a,  0x8b,  0x1af,
                                      0x1b6, 0x1b7, 0x1be, 0x1bf, 0x1bc, 0x1bd, 0x1a5, 0x1ad,
                                      0x1a3, 0x1ab, 0x1b3, 0x1bb, 0x11f, 0x86,  0x87 };
    static const uint16_t locked[] = { 0x86, 0x87, 0x1b0, 0x1b1, 0x1c0, 0x1c1 };
    static const uint8_t strings[] = { 0xa4, 0xa6, 0xaa, 0xac, 0xae };
    static const uint8_t alone[] = { 0x98, 0x99, 0xf5, 0xf8, 0xf9, 0xfc, 0xc9 };
    unsigned group = rnd(8), reg = data_register();
    switch (rnd(29)) {
    case 0:
    case 1:
    case 2: modrm(rnd(8) << 3 | rnd(4), -1, false, false, 0); break;
    case 3: modrm((rnd(7) << 3) | rnd(2), -1, true, true, 0); break;
    case 4: modrm(0x80 + (rnd(2) ? 3 : 0), (int)group, false, group != 7, 1); break;
    case 5: modrm(0x81, (int)group, false, group != 7, 4); break;
    case 6: modrm(0xc0 + rnd(2), (int)group, false, false, 1); break;
    case 7: modrm(0xd0 + rnd(4), (int)group, false, false, 0); break;
    case 8:
        if (!rnd(8)) /* MOV RDX, RCX; DIV RCX: the quotient is one bit too long */
            b(0x48), b(0x89), b(0xca), b(0x48), b(0xf7), b(0xf1);
        else if (!rnd(12)) /* CQO; AND RCX, 0; IDIV RCX */
            b(0x48), b(0x99), b(0x48), b(0x83), b(0xe1), b(0), b(0x48), b(0xf7), b(0xf9);
        modrm(0xf6 + rnd(2), rnd(4) ? 2 + (int)rnd(4) : 6 + (int)rnd(2), false, false, 0);
        break;
    case 9: modrm(0xf6, 0, false, false, 1); break;
    case 10:
        rnd(4) ? modrm(0xfe + rnd(2), (int)rnd(2), false, true, 0) : modrm(0xff, 6, true, false, 0);
        break;
    case 11: modrm(plain[rnd(sizeof plain / 2)], -1, false, false, 0); break;
    case 12: modrm(locked[rnd(sizeof locked / 2)], -1, true, true, 0); break;
    case 13: modrm(rnd(2) ? 0x140 + rnd(16) : 0x190 + rnd(16), -1, false, false, 0); break;
    case 14: modrm(0x8d, -1, true, false, 0); break;
    case 15:
        rnd(2) ? modrm(0x1ba, 4 + (int)rnd(4), false, true, 1) : modrm(0xc6, 0, false, false, 1);
        break;
    case 16:
        if (rnd(2))
            with_rex(rnd(2) ? 0x50 : 0x58, reg, false);
        else
            b(0x6a), b(rnd(256));
        break;
    case 17:
        if (rnd(2)) {
            bool wide = rnd(2), byte = !rnd(4); /* SPL among them */
            byte && !rnd(3) ? (b(0x40), b(0xb4)) : with_rex(byte ? 0xb0 : 0xb8, reg, wide);
            bytes(byte ? 1 : wide ? 8 : 4);
        } else if (rnd(2)) {
            b(0x0f), b(0xc8 + (reg & 7));
        } else {
            modrm(rnd(2) ? 0x6b : 0x1a4 + 8 * rnd(2), -1, false, false, 1);
        }
        break;
    case 18: b(alone[rnd(rnd(8) ? 6 : 7)]); break;
    case 19:
    case 25: /* MOV ECX; REP MOVS or STOS, REPE or REPNE with CMPS or SCAS, REP LODS */
        if (rnd(4))
            b(0xb9), b(rnd(256)), b(rnd(4)), b(0), b(0);
        b(0xf2 + rnd(2)), b(0x48 - 8 * rnd(2)), b(strings[rnd(sizeof strings)] + rnd(2));
        break;
    case 20: loop(); break;
    case 21: b(0xf3), modrm(0x1bc + rnd(2), -1, false, false, 0); break; /* TZCNT, LZCNT */
    case 22:
    case 23:
    case 24:
        if (!with_vectors && rnd(16))
            forward();
        else
            rnd(4) ? vector() : rnd(10) ? convert() : bmi();
        break;
    case 28: /* MOV, LEA */
        favoured = 13 + rnd(2);
        modrm(0x8b + rnd(2) * 2, -1, true, false, 0);
        favoured = 0;
        break;
    default: forward();
    }
}
