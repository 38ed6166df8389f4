/* SPDX-License-Identifier: MIT */
/* Programs whose branches have names (lbr_program.asm), run with the list on, and the comparison of
 * the whole list with the assembler's table. */
#pragma once
#include "pmu/branches.h"
#include "tests/harness/lab.h"

#define DEBUGCTL 0x1d9u

/* A branch that is taken; the last row is all 0. From lbr_program.asm. */
struct lbr_row {
    uint64_t from, to;
    const char *from_name, *to_name;
    uint64_t class; /* as PMU_HIDE_JCC and so on */
};
extern const struct lbr_row lbr_program_rows[], lbr_user_rows[], lbr_trap_rows[], lbr_calls_rows[],
    lbr_only_calls_rows[], lbr_returns_rows[], lbr_deep_rows[], lbr_missing_rows[],
    lbr_watched_rows[], lbr_next_rows[], lbr_narrow_rows[];
extern void lbr_program(uint64_t unused), lbr_trap(uint64_t unused), lbr_calls(uint64_t unused),
    lbr_returns(uint64_t unused), lbr_deep(uint64_t unused), lbr_missing(uint64_t unused),
    lbr_watched(uint64_t unused), lbr_pushed(uint64_t unused), lbr_next(uint64_t unused);
extern void lbr_on_int3(void), lbr_on_int80(void), lbr_on_undefined(void), lbr_on_page_fault(void),
    lbr_on_interrupt(void), lbr_on_pmi(void);
extern void lbr_on_start(void), lbr_on_stop(void), lbr_on_syscall(void), user_branches(void),
    user_narrow(void);
extern struct pmu_gate lbr_gate; /* for the first two */
extern uint64_t lbr_kernels_syscall, lbr_kernels_page_fault;
extern uint32_t lbr_control;    /* of the list, for lbr_on_pmi */
extern uint64_t lbr_controlled; /* its value there */

/* What this CPU has. */
static inline const struct pmu_branches *branches_here(void) { return pmu_branches_of(pmu_here()); }

#define SKIP_WITHOUT_FILTER()                                                                      \
    do {                                                                                           \
        SKIP_WITHOUT_BRANCHES();                                                                   \
        if (branches_here()->form == PMU_BRANCHES_OLD)                                             \
            SKIP("the list hides nothing");                                                        \
    } while (0)
#define SKIP_WITHOUT_BRANCHES() SKIP_IF(!branches_here()->depth, "no last-branch records")

/* The handlers of the program's exceptions, after lab_catch. */
void lbr_catch_exceptions(void);
/* Runs it with the list on. */
void lbr_run(void (*program)(uint64_t), struct pmu_gate gate);
/* The list is as the rows say that the filter lets through. */
void lbr_check_list(const struct lbr_row rows[], uint32_t hidden);
/* In which of its rings a branch "begins" or "ends" that the filter hid; NULL: neither list had
 * shown it. */
extern const char *lbr_ring_rule;
/* Whether #DB ends the list, as it is measured. */
bool lbr_debug_ends(void);
/* lbr_program, from an empty list. */
void lbr_check_program(uint32_t hidden);
/* A program of branches.asm in ring 3 on this CPU; inside it the gate is on, of a list or other. */
void lbr_run_gated(void (*program)(void), struct pmu_gate gate);
/* From an empty list. */
void lbr_run_ring3(void (*program)(void), const struct lbr_row rows[], uint32_t hidden);
unsigned lbr_count_rows(const struct lbr_row rows[]);
