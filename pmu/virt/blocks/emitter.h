/* SPDX-License-Identifier: MIT */
/* Host code for blocks: what all of it is made of. */
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

enum { ADD = 0x03, LOAD = 0x8b, STORE = 0x89, STORE_IMMEDIATE = 0xc7 };
#define PLACE(field) ((unsigned)offsetof(struct block_state, field) + 8) /* from RSP: a CALL */

COLD void emit(struct emitter *e, uint64_t bytes, unsigned n);
/* Between a register and struct block_state. */
COLD void emit_move(struct emitter *e, uint8_t op, unsigned reg, unsigned place);
/* Bring what is the guest's into registers, and back. */
COLD void need_register(struct emitter *e, unsigned reg);
COLD void need_flags(struct emitter *e);
COLD void release_register(struct emitter *e, unsigned reg);
COLD void save_state(struct emitter *e);
/* translate.c. memory: its operand is through a pointer, and needs no REX or VEX of its own. */
COLD void emit_opcode(struct emitter *e, const struct copied *s, uint8_t rex);
