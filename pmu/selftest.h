/* SPDX-License-Identifier: MIT */
/* The self-test, for kinds.c and for tests that pass a PMU made of software. */
#pragma once
#include "pmu/pmu.h"

/* How the self-test accesses a PMU. Each function returns the vector of the fault that came; 0:
 * none. */
struct pmu_access {
    unsigned (*rdmsr)(uint32_t msr, uint64_t *value);
    unsigned (*wrmsr)(uint32_t msr, uint64_t value);
    unsigned (*rdpmc)(uint32_t selector, uint64_t *value);
    /* Between the WRMSR that starts and the one that stops they run `loops` iterations of two
     * instructions, or of five, one of them CPUID. The counter then shows these and PMU_RUN_AROUND
     * more: the first WRMSR and what loads the registers of the second. */
    unsigned (*run)(const struct pmu_gate *gate, uint64_t loops);
    unsigned (*run_exits)(const struct pmu_gate *gate, uint64_t loops);
};
#define PMU_RUN_AROUND 3u
#define PMU_RUN_EXITS_AROUND 4u
extern const struct pmu_access pmu_hardware; /* of this CPU */

struct pmu_finding {
    enum pmu_verdict verdict; /* of the first counter that is not good */
    uint64_t bad;             /* the counters that fail; the others can be used */
    bool exact;               /* every count is, apart from the offset */
    unsigned late;            /* reads of the overflow status until a bit came */
    int offset;               /* instructions too many (< 0: too few) in a count of any length */
};

/* Finds the defect of the PMU that these facts describe, by these functions. Writes the registers
 * of the reported counters and leaves them 0. Nobody else may use the PMU meanwhile. Interrupts
 * off. */
struct pmu_finding pmu_diagnose(const struct pmu_kind *pmu, const struct pmu_access *access);
/* In kinds.c: the element for a CPU with these facts in the list of kinds, which has PMU_KINDS_MAX
 * elements. If no kind in the list has these facts and answers on this CPU, a new one is tested and
 * added. The last element is for CPUs for which there is no other element. */
struct pmu_kind *pmu_place_kind(struct pmu_kind *list, unsigned *count, const struct pmu_kind *mine,
                                const struct pmu_access *access);
/* Whether the registers of all these counters answer correctly: the quick part of the self-test. */
bool pmu_answers(const struct pmu_kind *pmu, const struct pmu_access *access, uint64_t counters);
