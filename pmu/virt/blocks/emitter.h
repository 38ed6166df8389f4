/* SPDX-License-Identifier: MIT */
/* Host code for blocks: emitter.c has what all of it is made of, hot_code.c what hot ones have
 * besides. */
#pragma once
#include "pmu/virt/blocks/blocks.h"

/* Host code that grows. */
struct emitter {
    uint8_t *at;
    uint32_t loaded; /* registers that hold the guest's value */
    bool flags;      /* so do the flags */
    bool hot;        /* for blocks_chain() */
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

/* hot_code.c: what comes before a part's own code, which begins with the state in memory. */
COLD void hot_enter_part(struct emitter *e, const struct block *b, struct part *p);
/* A store of the address in RDI that CALL leaves. */
COLD void hot_call(struct emitter *e, uint64_t next);
/* Ends the code that begins at `emitted`, and moves it to where it stays. */
COLD void hot_end(struct emitter *e, struct block *b, const uint8_t *emitted,
                  struct block_space *space);
