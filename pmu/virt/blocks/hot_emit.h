/* SPDX-License-Identifier: MIT */
/* Code of hot blocks: the guest's registers are the processor's, but for RSP, which is R15, and R13
 * to R15, which stay in memory. */
#pragma once
#include "pmu/virt/blocks/emitter.h"

enum { SCRATCH = 13, POINTER = 14, STACK = 15 };
enum { SUB = 0x2b, COMPARE = 0x3b, COMPARE_MEMORY = 0x39, LEA = 0x8d };
enum { JUMP_AE = 0x83, JUMP_NE = 0x85, JUMP_BE = 0x86, JUMP_A = 0x87, JUMP_S = 0x88 };
#define STATE(field) ((int)offsetof(struct block_state, field))

static inline int slot(unsigned reg) { return STATE(r) + 8 * (int)reg; }
static inline bool in_memory(unsigned reg) { return reg >= SCRATCH && reg < NO_REGISTER; }
static inline int low(const void *at) { return (int)(uint64_t)at; }

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
COLD void save_flags(struct emitter *e);
/* From where they are saved. Uses the scratch register. */
COLD void load_flags(struct emitter *e);
