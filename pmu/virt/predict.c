/* SPDX-License-Identifier: MIT */
/* Simple models of mispredictions and cache events. They do not imitate a real processor. Each CPU
 * has its own state, which changes while something shows it. Prediction: a conditional branch goes
 * where it went last; its address selects one of 256 directions. All other branches are predicted
 * correctly. Caches: two direct-mapped levels of 64-byte lines, 128 and 2,048, by linear address,
 * for data only. A miss of the first is a reference of the last level; a miss of both is its miss,
 * and also brings the other line of its 128 bytes into the last level. CLFLUSH empties the line in
 * both. */
#include "pmu/virt/vcpu.h"

static void flush_line(uint64_t *lines, unsigned count, uint64_t line)
{
    if (lines[line % count] == line)
        lines[line % count] = 0;
}

uint32_t instruction_effects(struct vcpu *v, const struct instruction *i)
{
    uint32_t effects = i->effects;
    if (i->branch == BRANCH_JCC) {
        bool taken = v->vmcb.rip != i->next;
        effects |= taken ? EFFECT(EVENT_TAKEN) | EFFECT(EVENT_COND_TAKEN) : EFFECT(EVENT_NOT_TAKEN);
        bool wrong = v->pmu.predicts && predict_wrong(&v->predictor, v->run.rip, taken);
        effects |= wrong ? EFFECT(EVENT_MISPREDICTED) : 0;
    }
    if (v->pmu.caches && effects & (EFFECT(EVENT_LOADS) | EFFECT(EVENT_STORES)))
        effects |= predict_access(&v->caches, i->address);
    if (i->flush) {
        uint64_t line = i->address >> LINE_SHIFT | 1ul << 63;
        flush_line(v->caches.first, FIRST_LINES, line);
        flush_line(v->caches.last, LAST_LINES, line);
    }
    return effects;
}
