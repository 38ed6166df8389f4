/* SPDX-License-Identifier: MIT */
/* Last-branch records of one CPU: each branch that is taken, with its class. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct pmu;
struct vcpu;

/* The numbers of the bits of LBR_SELECT that hide them; below: those of rings. */
enum branch {
    BRANCH_NONE,
    BRANCH_JCC = 2, /* LOOP and JRCXZ too */
    BRANCH_REL_CALL,
    BRANCH_IND_CALL,
    BRANCH_RET,
    BRANCH_IND_JMP,
    BRANCH_REL_JMP,
    BRANCH_FAR, /* interrupts and exceptions too */
    BRANCH_CLASSES
};

/* How registers show the entries: Core 2's, Nehalem's and later; where entry 0 is the newest,
 * the architectural and AMD's second. AMD's pair is beside them. */
enum lbr_form { FORM_NONE, FORM_OLD, FORM_STACK, FORM_ARCH, FORM_AMD };

/* An entry has a class until registers show it: from then on it is as they show it. */
enum { RECORDS_MAX = 32, RECORD_FROM = 0, RECORD_TO, RECORD_INFO, RECORD_FIELDS, RECORD_CLASS = 3 };
struct records {
    /* Derived by records_refresh(): whether branches are recorded now; plain: each that is not
     * hidden is an entry, and that is all. */
    bool on, list_on, pair_on, plain, plain_if_right;
    bool gained; /* an entry, which count_record() has not seen yet */
    bool counted;
    uint64_t hides[2];               /* classes as bits, in ring 0 and in ring 3 */
    uint64_t last;                   /* of the ring's indices */
    uint64_t top;                    /* the index of the newest */
    uint64_t select;                 /* what is hidden */
    uint64_t control, depth;         /* registers that some forms have; depth 0: the model's */
    uint64_t compared, compared_end; /* where the last step was a comparison; quirk fused */
    uint64_t pair[4];
    uint64_t entries[RECORDS_MAX][RECORD_CLASS + 1];
};

static inline void records_push(struct records *r, enum branch class, uint64_t from, uint64_t to,
                                bool mispredicted)
{
    r->top = (r->top + 1) & r->last;
    uint64_t *record = r->entries[r->top];
    record[RECORD_FROM] = from;
    record[RECORD_TO] = to;
    record[RECORD_INFO] = (uint64_t)mispredicted << 63;
    record[RECORD_CLASS] = class;
}

/* A taken branch, which is done: the CPL decides as what it is now. Only while records.on. */
void records_add(struct vcpu *v, enum branch class, uint64_t from, uint64_t to, bool mispredicted);
/* The instruction at run.rip is done; effects: all it had. */
void records_add_step(struct vcpu *v, enum branch class, uint32_t effects);
/* The event of vmcb.inject came at `from`; RIP is its handler's. #DB turns DEBUGCTL's bit
 * off, and what that turns on has no entry of it: true, count_refresh() must follow. */
bool records_add_event(struct vcpu *v, uint64_t from);
void records_refresh(struct pmu *p);
/* Empties the list; leaves it on, as firmware does with the quirk lbrleft. */
void records_lose(struct pmu *p);
void records_leave_on(struct pmu *p);
/* What firmware leaves in the registers of the quirk brs. */
void records_leave_sampled(struct pmu *p);
/* Where a conditional branch is for the list, after the instruction that was stepped. */
uint64_t records_from(const struct records *r, uint64_t from);
/* The fields of the n-th newest entry, as registers show them. */
void records_show(struct pmu *p, unsigned n, uint64_t field[RECORD_FIELDS]);
/* On a PMI, if DEBUGCTL says so. */
void records_freeze(struct pmu *p);
/* Registers of the list, but for DEBUGCTL. False: #GP. */
bool records_read(struct pmu *p, uint32_t msr, uint64_t *value);
bool records_write(struct pmu *p, uint32_t msr, uint64_t value);
