/* SPDX-License-Identifier: MIT */
/* Models of branch prediction and of caches. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "pmu/virt/decode.h"

enum { PREDICTED = 256, FIRST_LINES = 128, LAST_LINES = 2048 };
struct predictor {
    uint8_t taken[PREDICTED];
};
struct caches {
    uint64_t first[FIRST_LINES], last[LAST_LINES];
};

/* Whether the conditional branch at `rip` was mispredicted. */
bool predict_wrong(struct predictor *p, uint64_t rip, bool taken);
/* The events of an access to memory, but for the access itself. */
uint32_t predict_access(struct caches *c, uint64_t address);
/* All effects of the instruction that was decoded at run.rip and is done. */
uint32_t instruction_effects(struct vcpu *v, const struct instruction *i);
