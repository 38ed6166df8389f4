/* SPDX-License-Identifier: MIT */
/* Snippets of code that are measured instead of the tests: modules that tests/tools/bench made with
 * nasm. A snippet stands in its module twice, in so many copies and in twice as many: what only the
 * short run and the long run differ by is its cost. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image;
struct pmu_kind;

/* Addresses of a page table of its own, the same in both rings. */
#define BENCH_CODE 0x10000000ul /* the module */
#define BENCH_DATA 0x20000000ul /* ring 0: struct bench_data */
/* Memory of the snippet: RSP, RBP, RSI, RDI and R14 point into the middle of one each. */
#define BENCH_AREAS 0x30000000ul
#define BENCH_AREA_STEP 0x1000000ul
#define BENCH_AREA_COUNT 5u
#define BENCH_AREA_PAGES 64u

#define BENCH_RUNS_MAX 1000u
#define BENCH_GATES 32u

/* What a module begins with; offsets are of the module. tests/tools/bench writes the same in
 * nasm. */
struct bench_half {
    uint32_t entry;  /* what is executed first: INIT and what starts the counters */
    uint32_t body;   /* the first copy */
    uint32_t end;    /* after the last copy */
    uint32_t stop;   /* after the INT3 that ends the run */
    uint32_t copies; /* of the snippet */
    uint32_t starts; /* offsets of the copies, 32 bits each */
};
struct bench_header {
    char magic[8];
    uint32_t size;          /* of the module, in bytes */
    uint32_t ring;          /* 0 or 3 */
    uint32_t iterations;    /* of the loop around the copies; 0: there is none */
    uint32_t runs, warmup;  /* runs that are reported, and before them runs that are not */
    uint32_t parts;         /* of a copy, for each of which figures are given */
    uint32_t title, events; /* NUL-terminated; event_count struct bench_wanted */
    uint32_t event_count;
    struct bench_half half[2];
};
#define BENCH_MAGIC "NTBENCH1"

/* An event: the vendor's, by its name; ours, by its number; of `all`, left out where it cannot be
 * counted; what 0xCODE:0xUMASK:FLAGS says. */
enum { BENCH_VENDORS, BENCH_OURS, BENCH_IF_THERE, BENCH_RAW };
struct bench_wanted {
    char name[64];
    uint32_t kind, code, umask, flags; /* PMU_EDGE, PMU_INVERT, PMU_THRESHOLD */
};

/* The code of ring 0 writes these MSRs just before and after the copies; the last msr is 0. */
struct bench_gate {
    uint32_t msr, reserved;
    uint64_t on, off;
};
struct bench_data {
    uint64_t saved[4]; /* RAX, RCX, RDX, R15 while gates are written */
    struct bench_gate gates[BENCH_GATES + 1];
};

/* A module that can run. */
struct bench {
    struct bench_header h;
    const char *title;
    const struct bench_wanted *events;
    const uint8_t *file;
    uint64_t *pml4;
    struct bench_data *data;
};

/* --- bench_module.c --- */

bool bench_is(const struct image *image);
/* Reads a module and maps it. NULL, or what is wrong with it. PASSIVE_LEVEL. */
const char *bench_open(struct bench *b, const struct image *image);
void bench_close(struct bench *b);
/* Where an address lies: "offset 0x3 of copy 1 of 100", "INIT" and so on. */
void bench_place(const struct bench *b, unsigned half, uint64_t rip, char *text, size_t size);

/* --- bench_events.c --- */

struct bench_event {
    char name[64];
    uint64_t select;
    uint64_t counters; /* that can count it */
};
#define BENCH_EVENTS_MAX 64u
/* Reads the module's list for this CPU. NULL, or what cannot be counted, in `text`. `flags`:
 * PMU_USER or PMU_KERNEL. */
const char *bench_read_events(const struct bench *b, uint32_t flags, struct bench_event *events,
                              unsigned *count, char *text, size_t size);
/* Puts events on counters until one finds none; returns how many. */
unsigned bench_assign(const struct bench_event *events, unsigned count, unsigned *counters);

/* --- bench_run.c --- */

/* How a run ended. */
struct bench_end {
    uint64_t vector, error, rip, cs, rflags, rsp; /* bench_enter.asm knows the order */
    uint64_t address;                             /* of a page fault */
};
#define BENCH_HANG 256u /* instead of a vector: the time was over */
/* Executes one half on this CPU. `counters` that are programmed count its copies and, the same in
 * both halves, a few instructions around. trial: with the timer's interrupt, for at most `limit`
 * ticks of the TSC; else with interrupts off. True: it came to its end with its stack pointer where
 * its stack is. */
bool bench_execute(const struct bench *b, unsigned half, uint64_t counters, bool trial,
                   uint64_t limit, struct bench_end *end);

/* Measures each module that is a snippet; the machine's exit code. */
unsigned bench_run(void);
