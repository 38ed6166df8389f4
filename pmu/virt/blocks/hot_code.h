/* SPDX-License-Identifier: MIT */
/* What the code of hot blocks has besides. */
#pragma once
#include "pmu/virt/blocks/emitter.h"

/* What comes before a part's own code, which begins with the state in memory. */
COLD void hot_enter_part(struct emitter *e, const struct block *b, struct part *p);
/* A store of the address in RDI that CALL leaves. */
COLD void hot_call(struct emitter *e, uint64_t next);
/* Ends the code that begins at `emitted`, and moves it to where it stays. */
COLD void hot_end(struct emitter *e, struct block *b, const uint8_t *emitted,
                  struct block_space *space);
