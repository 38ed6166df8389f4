/* SPDX-License-Identifier: MIT */
/* A program whose instructions have names (pebs_program.asm), run while counters write records, and
 * what each record must say: it is run a second time in single steps, whose handler keeps all
 * registers. On one CPU that a test has to itself. */
#pragma once
#include "pmu/pebs/pebs.h"
#include "tests/harness/lab.h"

#define PEBS_BYTES 65536u
#define PEBS_STEPS_MAX 64u
#define PEBS_GROUPS (PEBS_MEMORY | PEBS_GPR | PEBS_XMM | PEBS_LBR)
#define PEBS_GUARD 0xa5u
#define STATUS_BUFFER PMU_BIT(62)
#define DS_AREA 0x600u

struct pebs_row {
    uint64_t at;
    const char *text;
    uint64_t data;
};
extern const struct pebs_row pebs_rows[]; /* ends with an address 0 */
/* After an instruction. */
struct pebs_step {
    uint64_t rip, flags, gpr[16], xmm[32];
};
_Static_assert(sizeof(struct pebs_step) == 400, "pebs_program.asm");
struct pebs_run {
    uint32_t msr;
    uint64_t on, off;
    void (*code)(void);
    uint64_t flags; /* TF: it is stepped */
};
extern void pebs_run(const struct pebs_run *run), pebs_program(void), pebs_on_step(void);
extern struct pebs_step *pebs_cursor;

#define SKIP_WITHOUT_PEBS() SKIP_IF(!pebs_facts(), "no records")
#define SKIP_WITHOUT_GROUPS() SKIP_IF(!pebs_facts()->groups, "records have no groups")

/* This CPU's, each with guard bytes behind its buffer. */
struct pebs_place {
    struct ds_area area __attribute__((aligned(64)));
    uint8_t buffer[PEBS_BYTES] __attribute__((aligned(64)));
    uint32_t size, capacity; /* of a record; records */
    uint64_t data_cfg;
};
extern struct pebs_place pebs_place;

/* Where records of this MSR_PEBS_DATA_CFG go, `capacity` of them; a PMI comes at `threshold`. */
void pebs_prepare(uint64_t data_cfg, unsigned capacity, unsigned threshold);
/* Gives the counter instructions of ring 0, to write its first record one event after `events`, and
 * the next ones after `period` and one more. 0: no next one. */
void pebs_arm(unsigned ctr, uint64_t events, uint64_t period);
/* Runs the program while these counters run and write records; then none do. on_pmi: in the PMI's
 * handler, which waits for it if it is not NULL; lab_caught has the rest. */
void pebs_record(uint64_t counters, void (*on_pmi)(void));
/* With this global control, and with PEBS_ENABLE as it is. */
void pebs_run_gated(uint64_t control, void (*on_pmi)(void));
/* While it runs, the list of branches is on, if `on` is not 0. */
extern struct pmu_gate pebs_list_gate;
/* What a PMI is: the vector's interrupt, or APIC_LVT_NMI. */
extern uint32_t pebs_lvt;
/* The program's steps, before counters are armed; how many. pebs_record's counters. */
unsigned pebs_steps(uint64_t counters);
/* Records that wait, and the n-th of them. */
unsigned pebs_count(void);
bool pebs_get(unsigned n, struct pebs_record *r);
/* Nothing was written behind the records. */
void pebs_check_guard(void);
/* The record is of some instruction of the program, and each field is as that instruction left it.
 * Which; PEBS_STEPS_MAX: it is of none, as pebs_step_of says of an address. */
unsigned pebs_check(const struct pebs_record *r);
/* After so many events: the step that a record must be of, where a processor says which. */
unsigned pebs_expected(uint64_t events);
unsigned pebs_step_of(uint64_t address);
const char *pebs_name(unsigned step);
/* Whether that step is a branch that is taken. */
bool pebs_branch(unsigned step, uint64_t *from, uint64_t *to);
