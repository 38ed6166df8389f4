/* SPDX-License-Identifier: MIT */
/* Models of branch prediction and of caches. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "pmu/virt/decode.h"

enum { PREDICTED = 256, FIRST_LINES = 128, LAST_LINES = 2048, LINE_SHIFT = 6 };
struct predictor {
    uint8_t taken[PREDICTED];
};
struct caches {
    uint64_t first[FIRST_LINES], last[LAST_LINES];
};

/* Whether the conditional branch at `rip` was mispredicted. */
static inline bool predict_wrong(struct predictor *p, uint64_t rip, bool taken)
{
    uint8_t *last = &p->taken[rip % PREDICTED];
    bool wrong = *last != taken;
    *last = taken;
    return wrong;
}
/* Loads the line; returns whether it was absent. */
static inline bool line_missed(uint64_t *lines, unsigned count, uint64_t line)
{
    uint64_t *at = &lines[line % count];
    bool wrong = *at != line;
    *at = line;
    return wrong;
}

/* The events of an access to memory, but for the access itself. */
static inline uint32_t predict_access(struct caches *c, uint64_t address)
{
    uint64_t line = address >> LINE_SHIFT | 1ul << 63; /* 0 is an empty line */
    if (!line_missed(c->first, FIRST_LINES, line))
        return 0;
    if (!line_missed(c->last, LAST_LINES, line))
        return EFFECT(EVENT_REFERENCES);
    c->last[(line ^ 1) % LAST_LINES] = line ^ 1; /* the prefetcher's, which no event counts */
    return EFFECT(EVENT_REFERENCES) | EFFECT(EVENT_MISSES);
}

/* All effects of the instruction that was decoded at run.rip and is done. */
uint32_t instruction_effects(struct vcpu *v, const struct instruction *i);
