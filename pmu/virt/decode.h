/* SPDX-License-Identifier: MIT */
/* The events of one instruction. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/insn.h"
#include "pmu/virt/model.h"

struct instruction {
    uint32_t effects; /* EFFECT(event), all but what predict.c adds */
    uint64_t address; /* of its load or store */
    uint64_t next;    /* of a conditional branch: where RIP is if it is not taken */
    bool flush;       /* CLFLUSH of address */
    uint8_t branch;   /* enum branch */
};

/* INT n and INT3. */
#define EFFECTS_SOFT_INT (EFFECT(EVENT_BRANCHES) | EFFECT(EVENT_FAR) | EFFECT(EVENT_STORES))

/* Whether it is CMP or TEST; a conditional jump, which may fuse with that. */
bool instruction_compares(const struct insn *c);
bool instruction_fuses(const struct insn *c);
/* Decodes `insn`, which is at RIP. */
void instruction_decode(const struct vcpu *v, const struct insn *insn, struct instruction *i);
