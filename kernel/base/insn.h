/* SPDX-License-Identifier: MIT */
/* An instruction of 64-bit or flat 32-bit code, taken apart as far as all opcodes have it in
 * common: prefixes, opcode, and the memory operand that a ModRM byte names. Whether an opcode has a
 * ModRM byte is the caller's to know. Sources: SDM volume 2, "Instruction Format"; AMD64 APM volume
 * 3, "Instruction Prefixes". */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { INSN_MAX = 15, INSN_NONE = 16 }; /* bytes of one; no register */
enum { REX_B = 1, REX_X = 2, REX_R = 4, REX_W = 8 };
enum insn_map { MAP_ONE, MAP_0F, MAP_0F38, MAP_0F3A };

struct insn {
    uint8_t byte[32]; /* its first ones, then zeros */
    uint8_t length;   /* how many of them are known; at most INSN_MAX */
    bool wide;        /* 64-bit code */
    uint8_t prefixes; /* bytes before the opcode, VEX not included */
    uint8_t rex;      /* or what VEX has of it */
    uint8_t segment;  /* the prefix 64h (FS) or 65h (GS); 0: none */
    bool operand16, address32, lock, repeat, repeat_not, vex; /* 66, 67, F0, F3, F2 */
    enum insn_map map;
    uint8_t op;
    uint8_t modrm_at, modrm; /* the byte after the opcode */
};

struct insn_memory {
    uint8_t base, index, scale; /* registers, or INSN_NONE */
    bool relative;              /* to the next instruction */
    int64_t displacement;
};

/* Reads byte, length and wide, and sets the rest. */
void insn_parse(struct insn *i);
/* A REX that another prefix follows: a processor ignores it, QEMU 7.2 does not. */
bool insn_rex_is_ignored(const struct insn *i);
/* `size` bytes from `at`, with their sign if they are 1 or 4. */
int64_t insn_number(const struct insn *i, unsigned at, unsigned size);
/* Where the operand of ModRM.rm is; all INSN_NONE and 0 if it is a register. Returns the position
 * of the byte after it: of an immediate, or of the next instruction. */
unsigned insn_memory(const struct insn *i, struct insn_memory *m);

/* The length of an instruction of 64-bit code that was parsed; 0: no instruction begins so. */
unsigned insn_length(const struct insn *i);

static inline bool insn_is(const struct insn *i, enum insn_map map, uint8_t op)
{
    return i->map == map && i->op == op;
}
/* Of the first map: MOVS CMPS STOS LODS SCAS INS OUTS. */
static inline bool insn_op_is_string(uint8_t op)
{
    return (op >= 0xa4 && op <= 0xa7) || (op >= 0xaa && op <= 0xaf) || (op >= 0x6c && op <= 0x6f);
}
static inline bool insn_has_memory(const struct insn *i) { return i->modrm >> 6 != 3; }
static inline unsigned insn_reg(const struct insn *i) { return i->modrm >> 3 & 7; }
/* The register that ModRM.rm names, if it names one. */
static inline unsigned insn_rm(const struct insn *i)
{
    return (i->modrm & 7) | (i->rex & REX_B ? 8 : 0);
}
