/* SPDX-License-Identifier: MIT */
/* What a virtual PMU is: the facts of its model, and the registers of one CPU. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define GP_MAX 8
#define FIXED_MAX 4
#define COUNTER_MAX (GP_MAX + FIXED_MAX)
#define FIXED_FIRST GP_MAX              /* counters[GP_MAX + n] is fixed counter n */

struct vcpu;

/* What the model counts; any other event stays 0. From EVENT_BRANCHES on an event happens once or not at all in each
 * instruction, which must be looked at; those before it are told by the clock. */
enum event {
    EVENT_NONE, EVENT_INSTRUCTIONS, EVENT_CYCLES, EVENT_SLOTS,
    EVENT_BRANCHES, EVENT_CONDITIONAL, EVENT_TAKEN, EVENT_FAR, EVENT_MISPREDICTED,
    EVENT_LOADS, EVENT_STORES, EVENT_REFERENCES, EVENT_MISSES,
};
#define EFFECT(event) (1u << (event))

struct event_code {
    uint16_t select;
    uint8_t mask;
    enum event event;
};

struct counter {
    uint64_t select;
    uint64_t value;
    /* Derived by the model's refresh. */
    enum event event;                   /* EVENT_NONE: it stands still */
    bool user, kernel, pmi, edge, invert;
    uint8_t threshold;
    bool held;                          /* the condition, in the last instruction that it looked at */
};

struct pmu {
    struct counter counters[COUNTER_MAX];
    uint64_t fixed_control, global_control, status, debugctl;
    bool counting;                      /* some counter is not EVENT_NONE */
    bool decoding[2];                   /* kernel, user: some counter needs each instruction */
    bool pmi;                           /* one is due at the next boundary */
};

struct model {
    const char *name, *vendor;
    uint32_t signature;                 /* CPUID 1 EAX */
    uint8_t version, gp, fixed, width;
    uint8_t slots;                      /* issued in a cycle; 0: the model has no such event */
    uint32_t max_leaf, max_extended_leaf;
    bool full_width;                    /* 4C1h; Intel */
    bool auto_mask;                     /* of the LVT entry at a PMI */
    /* Acting on the registers only; false: #GP. */
    bool (*read)(struct pmu *pmu, uint32_t msr, uint64_t *value);
    bool (*write)(struct pmu *pmu, uint32_t msr, uint64_t value);
    void (*refresh)(struct pmu *pmu);   /* sets the derived fields of all counters */
    void (*on_pmi)(struct pmu *pmu);    /* freezes, if the model can; or NULL */
    bool (*selector)(uint32_t ecx, unsigned *counter);
    void (*leaf)(uint32_t leaf, uint32_t subleaf, uint32_t r[4]); /* changes what CPUID answers */
    const struct event_code *events;    /* ends with EVENT_NONE */
};

extern const struct model *virt_model;  /* the one in use; set once, before any guest runs */
extern const struct model *const intel_models[], *const amd_models[]; /* end with NULL */

static inline uint64_t counter_mask(const struct model *m) { return (1ull << m->width) - 1; }
/* Event select bits that both vendors have. */
#define SELECT_USER (1u << 16)
#define SELECT_KERNEL (1u << 17)
#define SELECT_EDGE (1u << 18)
#define SELECT_PMI (1u << 20)
#define SELECT_ENABLE (1u << 22)
#define SELECT_INVERT (1u << 23)
/* Sets the derived fields from the event select, whose event number is `number`. */
void model_refresh(struct counter *c, uint16_t number, bool enabled);

/* count.c */
/* Adds `n` retired instructions at this CPL to what runs. */
void count_add(struct vcpu *v, bool user, uint64_t n);
/* One that had these effects. */
void count_one(struct vcpu *v, bool user, uint32_t effects);
/* Instructions at this CPL until a counter that raises a PMI wraps; UINT64_MAX: never. */
uint64_t count_left(const struct vcpu *v, bool user);
/* After a change of the registers: what counts now. */
void count_refresh(struct vcpu *v);
/* The three instructions; false: #GP. */
bool count_rdmsr(struct vcpu *v, uint32_t msr, uint64_t *value);
bool count_wrmsr(struct vcpu *v, uint32_t msr, uint64_t value);
bool count_rdpmc(struct vcpu *v, uint32_t selector, uint64_t *value);
/* Whether this MSR is the PMU's, on any model: absent ones fault. */
bool count_owns(uint32_t msr);
/* Sends what pmu.pmi asks for, by the guest's own LVT entry. */
void count_deliver_pmi(struct vcpu *v);
