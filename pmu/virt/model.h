/* SPDX-License-Identifier: MIT */
/* The structures of a virtual PMU: the facts of its model, and the registers of one CPU. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "pmu/virt/ds.h"
#include "pmu/virt/records.h"

#define GP_MAX 12
#define FIXED_MAX 7
#define COUNTER_MAX (GP_MAX + FIXED_MAX)
#define FIXED_FIRST GP_MAX /* counters[GP_MAX + n] is fixed counter n */

struct vcpu;

/* The events that the model counts; all others stay 0. From EVENT_BRANCHES on, an event occurs at
 * most once in an instruction, which must be decoded; the clock gives the events before it. */
enum event {
    EVENT_NONE,
    EVENT_INSTRUCTIONS,
    EVENT_CYCLES,
    EVENT_BUS_CYCLES,
    EVENT_SLOTS,
    EVENT_SMIS, /* AMD */
    EVENT_BRANCHES,
    EVENT_CONDITIONAL,
    EVENT_TAKEN,
    EVENT_FAR,
    EVENT_MISPREDICTED,
    EVENT_LOADS,
    EVENT_STORES,
    EVENT_REFERENCES,
    EVENT_MISSES,
    /* Conditional branches; blocks.c works them out of those above. */
    EVENT_COND_TAKEN,
    EVENT_NOT_TAKEN,
    EVENT_RECORDS, /* entries of the list of branches; those of an interrupt too */
};
#define EFFECT(event) (1u << (event))

struct event_code {
    uint16_t select; /* Intel: the second unit mask from bit 8; AMD: 12 bits */
    uint8_t mask;
    enum event event;
};

struct counter {
    uint64_t select;
    uint64_t value;
    /* Derived by the model's refresh. */
    enum event event; /* EVENT_NONE: it stands still */
    bool user, kernel, pmi, edge, invert, equal;
    bool pebs; /* it writes records */
    uint8_t threshold;
    bool held;         /* whether the condition held in the last cycle counted */
    uint64_t in_cycle; /* with a threshold or edges: events since the last cycle began */
    bool enabled_now;  /* by the WRMSR that is being executed */
    /* Of quirks. */
    uint64_t shown;        /* by RDPMC, or its value at the last serializing event */
    uint64_t lack;         /* what this RDPMC does not show yet */
    bool late;             /* it wrapped to 0 and will report that at the next event */
    bool has_host, denied; /* the host gave it a counter, or had none left when it asked */
    bool throttled;        /* by the host, until its next tick */
    bool stands;           /* by the bug `held`, until it is disabled */
    bool forgets, stale;   /* the next event is counted; this one is not, but cycles are */
    uint16_t remembered;   /* event and unit mask of the last select */
    uint64_t overflows;    /* in this tick of the host */
};

/* Effects that come some instructions after their cause. */
enum due { DUE_PMI, DUE_AGAIN, DUE_FREEZE, DUE_STATUS, DUES };

struct pmu {
    const struct model *model;
    struct counter counters[COUNTER_MAX];
    uint64_t fixed_control, global_control, status, debugctl, metrics;
    bool counting;         /* some counter is not EVENT_NONE, or something is due */
    uint32_t runs[2];      /* kernel, user: counters that may count, as bits */
    bool instructions[2];  /* kernel, user: some counter counts instructions */
    bool decoding[2];      /* kernel, user: some counter needs each instruction */
    bool predicts, caches; /* something shows mispredictions; some counter counts cache events */
    bool pmi;              /* one is due at the next boundary */
    bool again;            /* ... and repeats one, by the quirk twice */
    uint64_t due[DUES];    /* instructions until it happens; 0: none is pending */
    uint64_t unordered[2]; /* kernel, user: instructions since the last serializing event */
    uint64_t late_status;  /* what DUE_STATUS will set */
    uint64_t misc;         /* Intel's MISC_ENABLE: the bits that the guest has changed */
    uint64_t de_cfg;       /* AMD's MSR C001_1029h */
    uint32_t smis;
    uint64_t uncore[2];  /* 391h, 392h; quirk uncore */
    unsigned forgetting; /* bits: of the three events of the quirk stale, those that were written */
    struct records records;
    struct ds ds;
};

/* A vendor's registers. These functions change registers only; false: #GP. */
struct model_ops {
    const char *vendor;
    bool (*read)(struct pmu *pmu, uint32_t msr, uint64_t *value);
    bool (*write)(struct pmu *pmu, uint32_t msr, uint64_t value);
    bool (*rdpmc)(struct pmu *pmu, uint32_t selector, uint64_t *value);
    void (*refresh)(struct pmu *pmu); /* sets the derived fields of all counters */
    void (*on_pmi)(struct pmu *pmu);  /* freezes, if the model can */
    void (*leaf)(const struct model *m, uint32_t leaf, uint32_t subleaf,
                 uint32_t r[4]);               /* changes what CPUID answers */
    uint64_t (*frozen)(const struct model *m); /* bits of the global status that a freeze sets */
    bool (*fences)(const struct pmu *pmu);     /* whether LFENCE is serializing */
};
extern const struct model_ops intel_ops, amd_ops;

/* Leaves of CPUID that not every Intel processor has. */
enum { LEAF_CORE_TYPE = 0x1a, LEAF_LBR = 0x1c, LEAF_PMU_EXTENDED = 0x23 };

struct model {
    const char *name, *brand; /* brand: of CPUID 8000_0002h to 8000_0004h; NULL: the real one */
    const struct model_ops *ops;
    uint32_t signature; /* CPUID 1 EAX */
    uint8_t version, gp, fixed,
        width;                  /* gp, fixed: counters below the first gap, as leaf 0Ah reports */
    uint16_t gp_map, fixed_map; /* all counters; machine_choose derives those that are 0 */
    uint8_t slots;              /* issued in a cycle; 0: the model has no such event */
    uint8_t core_type;          /* CPUID 1Ah.EAX[31:24], of a hybrid processor; else 0 */
    uint32_t max_leaf, max_extended_leaf;
    uint64_t select_extra;           /* legal beyond version 1; Intel */
    bool full_width;                 /* 4C1h; Intel */
    bool freezes;                    /* DEBUGCTL can freeze counters on a PMI */
    bool any_thread, metrics;        /* Intel: AnyThread is legal; PERF_METRICS is there */
    bool auto_mask;                  /* a PMI masks its LVT entry */
    uint8_t lbr_depth, lbr_format;   /* of last-branch records; as 345h[5:0] reports */
    uint8_t pebs_format;             /* as 345h[11:8] reports, from 3 on; 0: there is no PEBS */
    const struct event_code *events; /* ends with EVENT_NONE */
};

extern const struct model all_models[]; /* ends with a name NULL */
/* A name for a model with quirks, and for facts in which the processor differs from the model. */
struct machine {
    const char *name, *words, *brand;
    uint32_t signature;              /* 0: the model's */
    const struct event_code *events; /* NULL: the model's */
    bool full_width;                 /* false: as the model's */
    bool no_list;                    /* a hypervisor hides the list of branches, and PEBS */
    uint8_t lbr_format;              /* 0: the model's */
    bool small;                      /* all CPUs are small cores */
    uint32_t max_leaf;               /* 0: the model's */
};
extern const struct machine all_machines[]; /* ends with a name NULL */
/* Turns a hybrid processor's large core into its small one. */
void model_small_core(struct model *m);

/* What RDPMC reads. */
static inline uint64_t counter_show(struct counter *c) { return c->shown = c->value - c->lack; }
static inline uint64_t counter_mask(const struct model *m) { return (1ul << m->width) - 1; }
/* Its counters, as global status and global control number them; of one of them, its bit. */
static inline uint64_t model_counters(const struct model *m)
{
    return m->gp_map | (uint64_t)m->fixed_map << 32;
}
static inline uint64_t counter_status(unsigned counter)
{
    return counter < FIXED_FIRST ? 1ul << counter : 1ul << (32 + counter - FIXED_FIRST);
}
/* Select bits beyond version 1, for select_extra. */
#define SELECT_EQUAL (1ul << 36)
#define SELECT_UMASK2 (0xfful << 40)
/* Records with groups: of a select, and of a fixed counter's bits in its control. */
#define SELECT_ADAPTIVE (1ul << 34)
#define FIXED_ADAPTIVE (1ul << 32)
enum { SMALL_CORE = 0x20, LARGE_CORE = 0x40 }; /* core_type */
/* lbr_format, as 345h[5:0]: mispredictions in FROM; transactions too; registers of their own. */
enum {
    LBR_EIP = 2,
    LBR_FLAGS = 3,
    LBR_TSX = 4,
    LBR_INFO = 5,
    LBR_TIME = 6,
    LBR_ARCHITECTURAL = 0x3f
};
#define LBR_DEPTHS 0xbu /* of 8, 16 and 32, as leaf 1Ch reports */
/* Event select bits that both vendors have. */
#define SELECT_USER (1u << 16)
#define SELECT_KERNEL (1u << 17)
#define SELECT_EDGE (1u << 18)
#define SELECT_PMI (1u << 20)
#define SELECT_ENABLE (1u << 22)
#define SELECT_INVERT (1u << 23)
#define STATUS_FROZEN (1ul << 59) /* in global status */
#define STATUS_LBR_FROZEN (1ul << 58)
#define DEBUGCTL 0x1d9
#define DEBUGCTL_LBR 1u /* record branches */
#define DEBUGCTL_BTF 2u /* TF steps from branch to branch */
#define DEBUGCTL_FREEZE_LBR (1u << 11)
#define DEBUGCTL_FREEZE (1u << 12)
#define DEBUGCTL_SMM (1u << 14) /* freeze while in SMM; Intel */
/* refresh.c */
/* Sets the derived fields from the event select, whose event number is `number`. */
void model_refresh(const struct model *m, struct counter *c, uint16_t number, bool enabled);
/* A write to a counter; bits beyond its width are lost. */
void model_write_counter(struct pmu *p, struct counter *c, uint64_t value);
/* A write to DEBUGCTL of a vendor that has the bits `legal`. */
bool model_write_debugctl(struct pmu *p, uint64_t value, uint64_t legal);
/* Works out what counts, after a change of the registers. */
void count_refresh(struct vcpu *v);
/* Instructions until something is due; UINT64_MAX: nothing is. */
uint64_t pmi_left(const struct pmu *p);

/* count.c */
/* Adds `n` retired instructions at this CPL to the counters that run. */
void count_add(struct vcpu *v, bool user, uint64_t n);
/* Iterations of a repeated string instruction that is not complete: cycles alone. */
void count_iterations(struct vcpu *v, bool user, uint64_t n);
/* How many until a counter wraps. */
uint64_t count_iterations_left(const struct vcpu *v, bool user);
/* One that had these effects. */
void count_one(struct vcpu *v, bool user, uint32_t effects);
/* Firmware took an SMI. */
void count_smi(struct vcpu *v);
/* After records_add() and its kin: counts the entry, if there is one, in the ring of the CPL. */
void count_record(struct vcpu *v);
/* Adds n events that no instruction caused to the counters of instructions and of branches. */
void count_extra(struct vcpu *v, bool user, uint64_t n);
/* The guest took this interrupt, exception or NMI in ring 3. */
void count_taken_in_ring3(struct vcpu *v, uint64_t inject);
/* Counts an instruction that the host executed for the guest. */
void count_emulated(struct vcpu *v, bool user);
/* Instructions at this CPL until a counter that raises a PMI wraps; UINT64_MAX: never. */
uint64_t count_left(const struct vcpu *v, bool user);
/* Instructions at this CPL until some counter may wrap, or something is due; 0: their events
 * must be counted one by one. */
uint64_t count_block_left(const struct vcpu *v, bool user);
/* Adds fewer instructions than that. events: how often each happened, by enum event. */
void count_block(struct vcpu *v, bool user, uint64_t n, const uint64_t events[]);
/* The three instructions; false: #GP. */
bool count_rdmsr(struct vcpu *v, uint32_t msr, uint64_t *value);
bool count_wrmsr(struct vcpu *v, uint32_t msr, uint64_t value);
bool count_rdpmc(struct vcpu *v, uint32_t selector, uint64_t *value);
/* Intel's count of SMIs, with the quirk smi; AMD's interrupt pending message, with c1e. */
enum { SMI_COUNT = 0x34, INT_PENDING = 0xc0010055 };
/* Adds instructions that the clock did not see: to the running counters only. */
void count_unseen(struct vcpu *v, bool user, uint64_t n);

/* early.c */
/* All instructions of this CPU so far have retired. */
void early_serialize(struct vcpu *v);
/* Before the RDPMC at RIP: works out what it does not show. */
void early_look(struct vcpu *v);

/* pmi.c */
void pmi_overflow(struct vcpu *v, unsigned counter);
/* Sets this bit of the status, and a PMI comes. */
void pmi_request(struct vcpu *v, uint64_t status);
/* n instructions pass: returns what becomes due, as bits. pmi_now takes these, and does it. */
unsigned pmi_pass(struct pmu *p, uint64_t n);
void pmi_now(struct vcpu *v, unsigned dues);
/* Called when the guest halts: all pending effects happen now. */
void pmi_hasten(struct vcpu *v);
/* Sends the PMI that pmu.pmi requests, as the guest's LVT entry says. */
void pmi_deliver(struct vcpu *v);
