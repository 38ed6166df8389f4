/* SPDX-License-Identifier: MIT */
/* Last-branch records: a list, kept by the processor, of the branches that it took last. Functions
 * act on this CPU, whose own list `b` describes. No lock, any IRQL. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "pmu/pmu.h"

#define PMU_BRANCHES_MAX 32

/* What hides branches, on every processor: bits of the filter. */
enum {
    PMU_HIDE_KERNEL,
    PMU_HIDE_USER,
    PMU_HIDE_JCC,
    PMU_HIDE_REL_CALL,
    PMU_HIDE_IND_CALL,
    PMU_HIDE_RET,
    PMU_HIDE_IND_JMP,
    PMU_HIDE_REL_JMP,
    PMU_HIDE_FAR,
    PMU_HIDE_COUNT
};
/* In a filter that hides jumps and far branches: a return takes its call's entry away. */
#define PMU_CALL_STACK (1u << PMU_HIDE_COUNT)

/* How the registers show a list. PMU_BRANCHES_OLD: of Core 2, which hides nothing. ARCH and AMD:
 * entry 0 is the newest. */
enum pmu_branches_form {
    PMU_BRANCHES_NONE,
    PMU_BRANCHES_OLD,
    PMU_BRANCHES_STACK,
    PMU_BRANCHES_ARCH,
    PMU_BRANCHES_AMD
};

/* What a kind of CPU has; all 0: none. MSRs that are 0 are not there. */
struct pmu_branches {
    enum pmu_branches_form form;
    unsigned depth, format;          /* format: 345h[5:0]; AMD: 0 */
    uint32_t from, to, info, stride; /* of entry 0, and from one to the next */
    uint32_t top, filter;            /* which is the newest; what is hidden */
    uint32_t control;                /* starts, by the bits `enable` */
    uint64_t enable, others;         /* others: bits of AMD's that are not ours and stay */
    bool call_stack;                 /* the filter has PMU_CALL_STACK */
    bool left_on;                    /* firmware had it on; kinds.c */
};

struct pmu_branch {
    uint64_t from, to;
    bool mispredicted;
};

/* Whether a list records, before anything was written. */
bool pmu_branches_left_on(void);
/* What this CPU has, into zeros. */
void pmu_branches_probe(struct pmu_branches *b);
/* What pmu_init_cpu has found on CPUs of this kind (kinds.c). */
const struct pmu_branches *pmu_branches_of(const struct pmu_kind *kind);
/* Chooses what is hidden; returns the WRMSR that starts and the one that stops. */
struct pmu_gate pmu_branches_gate(const struct pmu_branches *b, uint32_t hidden);
/* While stopped: empties the list; copies it, newest first, with empty entries as zeros. Returns
 * how many entries that are: the depth, less those of AMD's that are of a wrong path; 0: the list
 * is on. */
void pmu_branches_clear(const struct pmu_branches *b);
unsigned pmu_branches_read(const struct pmu_branches *b, struct pmu_branch list[PMU_BRANCHES_MAX]);
