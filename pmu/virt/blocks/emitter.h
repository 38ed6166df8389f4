/* SPDX-License-Identifier: MIT */
/* Host code for blocks: what all of it is made of. In code of hot ones the guest's registers are
 * the processor's, but for RSP, which is R15, and R13 to R15, which stay in memory. */
#pragma once
#include "pmu/virt/blocks/blocks.h"

/* Host code that grows. */
struct emitter {
    uint8_t *at;
    uint32_t loaded; /* registers that hold the guest's value */
    bool flags;      /* so do the flags */
    bool saved;      /* they are in struct block_state (hot_code.c) */
    bool hot;
};

enum { SCRATCH = 13, POINTER = 14, STACK = 15 };
enum { ADD = 0x03, LOAD = 0x8b, STORE = 0x89, STORE_IMMEDIATE = 0xc7 };
enum { SUB = 0x2b, COMPARE = 0x3b, COMPARE_MEMORY = 0x39, LEA = 0x8d };
enum { JUMP, JUMP_AE = 0x83, JUMP_NE = 0x85, JUMP_BE = 0x86, JUMP_A = 0x87, JUMP_S = 0x88 };
/* From RSP: in code of hot blocks; in other code, after a CALL. */
#define STATE(field) ((int)offsetof(struct block_state, field))
#define PLACE(field) (STATE(field) + 8)

static inline int slot(unsigned reg) { return STATE(r) + 8 * (int)reg; }
static inline bool in_memory(unsigned reg) { return reg >= SCRATCH && reg < NO_REGISTER; }
static inline int low(const void *at) { return (int)(uint64_t)at; }

COLD void emit(struct emitter *e, uint64_t bytes, unsigned n);
/* An instruction of 64 bits (wide: 8) or 32 (0) on a register and memory; no base: at `at`. */
COLD void emit_memory(struct emitter *e, unsigned wide, uint8_t op, unsigned reg, unsigned base,
                      int at);
COLD void emit_registers(struct emitter *e, unsigned wide, uint8_t op, unsigned reg, unsigned rm);
COLD void emit_constant(struct emitter *e, unsigned reg, uint64_t value);
COLD void emit_lea(struct emitter *e, unsigned wide, unsigned to, const struct insn_memory *m);
COLD void emit_lea_offset(struct emitter *e, unsigned to, unsigned base, int offset);
/* Adds to what stands in struct block_state; changes flags. */
COLD void emit_add(struct emitter *e, int place, int n);
/* The guest's register, or the scratch one with its value. */
COLD unsigned hold_register(struct emitter *e, unsigned reg, unsigned scratch);
/* Bring what is the guest's into registers, and back. */
COLD void need_register(struct emitter *e, unsigned reg);
COLD void need_flags(struct emitter *e);
COLD void release_register(struct emitter *e, unsigned reg);
COLD void save_state(struct emitter *e);
/* A hot block's flags: to where they are saved, and from there, by the scratch register. */
COLD void save_flags(struct emitter *e);
COLD void load_flags(struct emitter *e);
/* translate.c. memory: its operand is through a pointer, and needs no REX or VEX of its own. */
COLD void emit_opcode(struct emitter *e, const struct copied *s, uint8_t rex);
