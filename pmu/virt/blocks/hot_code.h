/* SPDX-License-Identifier: MIT */
/* What the code of hot blocks has besides. */
#pragma once
#include "pmu/virt/blocks/emitter.h"

/* Before a hot block's code stand two stops, where it does not go on, the other way's first; it
 * begins with what stores the flags, of so many bytes. */
enum { HOT_STOP = 18, HOT_FLAGS = 6 };

/* The code begins. */
COLD void hot_begin(struct emitter *e, uint8_t *emitted);
/* What comes before a part's own code. */
COLD void hot_enter_part(struct emitter *e, const struct block *b, struct part *p);
/* Ends the code, and moves it. */
COLD void hot_end(struct emitter *e, struct block *b, uint8_t *emitted, struct block_space *space);

/* hot_copy.c */
COLD void hot_copy(struct emitter *e, const struct copied *s);
/* A store of the address that CALL leaves. */
COLD void hot_call(struct emitter *e, const struct part *p, uint64_t next);
