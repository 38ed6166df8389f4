/* SPDX-License-Identifier: MIT */
/* The performance monitoring unit: finding it, proving it, driving it. Vendors differ in facts only
 * (struct pmu_caps, filled by intel.c or amd.c, and an event table); what acts on counters is one
 * piece of code, counter.c.
 *
 * Counters have the same number everywhere, the bit of the global status register: general-purpose
 * n is n, fixed n is 32 + n. Everything acts on this CPU: the caller stays on it, and no interrupt
 * that uses the PMU may come between (interrupts off, or IRQL PROFILE_LEVEL). No lock, any IRQL. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define PMU_FIXED 32 /* the number of fixed counter 0 */
#define PMU_FIXED_MAX 16
#define PMU_BIT(ctr) (UINT64_C(1) << (ctr))
#define PMU_GP(n) PMU_BIT(n)
#define PMU_FIX(n) PMU_BIT(PMU_FIXED + (n))
#define PMU_FIRST(n) (PMU_BIT(n) - 1)
#define PMU_ANY_GP UINT64_C(0xffffffff)

/* The first eight are Intel's architectural events in the order of CPUID 0Ah.EBX. */
enum pmu_event {
    PMU_CYCLES,         /* this core's, while not halted */
    PMU_INSTRUCTIONS,   /* retired */
    PMU_BUS_CYCLES,     /* while not halted, at a constant rate that need not be the TSC's */
    PMU_LLC_REFERENCES, /* last level cache; AMD: L2 */
    PMU_LLC_MISSES,
    PMU_BRANCHES,      /* retired, all kinds */
    PMU_BRANCH_MISSES, /* retired */
    PMU_SLOTS,         /* issue slots while not halted */
    PMU_REF_CYCLES,    /* while not halted, at the TSC's rate */
    PMU_LOADS,         /* retired */
    PMU_STORES,        /* retired */
    /* What the general profile sources of Windows ask for, and what families call so. */
    PMU_PIPELINE_DRY,    /* cycles without anything to issue */
    PMU_PIPELINE_FROZEN, /* cycles in which something to issue had to wait */
    PMU_NONISSUES,       /* cycles in which nothing was issued */
    PMU_ISSUE_2,         /* cycles with two or more micro-operations issued */
    PMU_ISSUE_3,
    PMU_ISSUE_4,
    PMU_L1D_ACCESSES,
    PMU_L1D_MISSES,
    PMU_L1I_READS,
    PMU_L1I_MISSES,
    PMU_FP_INSTRUCTIONS,
    PMU_INTEGER_INSTRUCTIONS,
    PMU_SPECIAL,        /* far transfers */
    PMU_BARRIER_CYCLES, /* waiting for a barrier or a lock */
    PMU_LOCKED,         /* loads with a lock */
    PMU_MISALIGNED,
    PMU_CONDITIONAL_BRANCHES, /* retired: no interrupt adds to them */
    PMU_INTERRUPTS,
    PMU_EVENT_COUNT
};

/* An event as a family of processors counts it. */
struct pmu_event_row {
    enum pmu_event event;
    uint16_t code; /* 12 bits on AMD */
    uint8_t umask;
    uint32_t flags;    /* PMU_EDGE, PMU_INVERT, PMU_THRESHOLD(n) */
    uint64_t counters; /* that can count it; 0: those of the table */
    bool near;         /* not quite what enum pmu_event says: micro-operations, speculation, lines */
    const char *name;  /* the vendor's; NULL: the family lacks the event, whatever its base has */
};

/* Which counters can count a code: the first line of a list with (code & mask) == its code; the last has mask 0. */
struct pmu_constraint {
    uint16_t mask, code;
    uint64_t counters;
};

/* A family's events: what is not as in its base. */
struct pmu_table {
    const char *name;
    const struct pmu_table *base;            /* counts what the rows do not mention; NULL: nothing does */
    const struct pmu_event_row *rows;         /* the last is PMU_EVENT_COUNT */
    uint64_t counters;                        /* for rows that name none; 0: by the constraints */
    const struct pmu_constraint *constraints; /* NULL: every general-purpose counter counts every code */
};

struct pmu_caps {
    const char *driver; /* "intel", "amd"; NULL: no PMU that we know */
    unsigned version;   /* Intel: of CPUID 0Ah; AMD: 2 with PerfMonV2, else 1 */
    unsigned family, model, stepping;
    uint64_t reported;     /* counters that CPUID promises */
    uint64_t counters;     /* those of them that the self-test found good */
    uint64_t left_running; /* those that firmware had left enabled */
    unsigned gp_reported;  /* general-purpose, as CPUID says; we may drive fewer */
    unsigned gp_width, fixed_width; /* bits */
    unsigned gp_write_width; /* bits that a write sets; those above copy the highest of them */
    bool exact;              /* every instruction count of the self-test was exact */
    uint32_t events;         /* PMU_BIT(enum pmu_event) that the processor says it counts */
    const struct pmu_table *table; /* what it counts, by which code */
    struct pmu_msrs {
        uint32_t select, counter, write, stride; /* general-purpose; write: where written */
        uint32_t fixed_counter, fixed_control;
        uint32_t global_control, global_status, global_clear; /* 0: there is none */
    } msr;
};

extern struct pmu_caps pmu_caps; /* pmu_init writes it, then const */

/* What pmu_init found; pmu_verdict_text has a sentence for each. */
enum pmu_verdict {
    PMU_OK,
    PMU_NOT_REPORTED,
    PMU_NO_COUNTERS,
    PMU_ABSENT_UD,
    PMU_ABSENT_GP,
    PMU_MSR_FAULTS,
    PMU_WRITES_SWALLOWED,
    PMU_RDPMC_DISABLED,
    PMU_RDPMC_DIFFERS,
    PMU_WIDTH_LIES,
    PMU_FIRMWARE_OWNS,
    PMU_COUNTERS_DEAD,
    PMU_WRONG_RATE,
    PMU_OVERFLOW_LOST,
    PMU_PMI_LOST,
    PMU_EXITS_MISCOUNTED,
    PMU_VERDICT_COUNT
};

/* How the self-test reaches the PMU. Faults are vectors, 0: none. */
struct pmu_access {
    unsigned (*rdmsr)(uint32_t msr, uint64_t *value);
    unsigned (*wrmsr)(uint32_t msr, uint64_t value);
    unsigned (*rdpmc)(uint32_t selector, uint64_t *value);
    /* The value of the counter after `loops` times two instructions, or five with a CPUID among them. */
    uint64_t (*count)(unsigned ctr, enum pmu_event event, uint64_t start, uint64_t loops);
    uint64_t (*count_exits)(unsigned ctr, uint64_t loops);
    uint64_t (*take_overflow)(void);
    void (*clear)(unsigned ctr);
};

/* The self-test by itself: what is wrong with a PMU of these facts, reached so; *bad: the counters that fail. For
 * pmu_init, and for tests, which break one thing after the other. Interrupts off; nobody uses the PMU meanwhile. */
enum pmu_verdict pmu_diagnose(const struct pmu_caps *caps, const struct pmu_access *access, uint64_t *bad);
extern const struct pmu_access pmu_hardware;

/* Boot CPU, once, interrupts off, exception handlers in place: picks the driver, resets the PMU,
 * proves each counter and prints one line. Counters that fail are left out of pmu_caps.counters;
 * the verdict is that of the first one. A machine without a PMU is no error: pmu_caps.counters is
 * then 0. */
enum pmu_verdict pmu_init(void);
/* Each CPU; pmu_init does it on the boot CPU: nothing runs, nothing is pending, all is zero. */
void pmu_init_cpu(void);
enum pmu_verdict pmu_verdict(void);
const char *pmu_verdict_text(enum pmu_verdict verdict);
/* For what only others can see, later: prints the sentence; the verdict, if that was PMU_OK. */
void pmu_complain(enum pmu_verdict verdict, uint64_t counters);

/* The row of an event, its own or its base's, and the counters of a row; NULL if the family lacks the event. */
const struct pmu_event_row *pmu_row(const struct pmu_table *table, enum pmu_event event);
uint64_t pmu_row_counters(const struct pmu_table *table, const struct pmu_event_row *row);
/* The counters that can count the event, 0 if the processor lacks it. */
uint64_t pmu_counters_for(enum pmu_event event);
/* What a select has beyond the event: USR, OS and INT of the event select on both vendors. */
#define PMU_USER (1u << 16)
#define PMU_KERNEL (1u << 17)
#define PMU_INTERRUPT (1u << 20)
#define PMU_ENABLE (1u << 22) /* as registers show it; pmu_program and pmu_start set it */
/* The value for pmu_program. The event must be one that pmu_counters_for has counters for. */
uint64_t pmu_select(enum pmu_event event, uint32_t flags);

/* The same for an event by its code and unit mask, whether or not the table knows it. Flags may also
 * be PMU_EDGE, PMU_ANY_THREAD, PMU_INVERT and PMU_THRESHOLD(n). */
#define PMU_EDGE (1u << 18)
#define PMU_ANY_THREAD (1u << 21)
#define PMU_INVERT (1u << 23)
#define PMU_THRESHOLD(n) ((uint32_t)(uint8_t)(n) << 24)
uint64_t pmu_raw_select(unsigned code, uint8_t umask, uint32_t flags);
/* The counters for it: what the table's rows with the code and its constraints leave of the general-purpose ones. */
uint64_t pmu_raw_counters(unsigned code);

/* Gives a stopped counter its event and its value, and forgets an overflow; pmu_start lets it run.
 * A fixed counter takes only PMU_USER, PMU_KERNEL and PMU_INTERRUPT from the select. Select 0
 * clears the counter. */
void pmu_program(unsigned ctr, uint64_t select, uint64_t start);
/* With global control one WRMSR, which writes all of that register: counters started behind our
 * back stop. */
void pmu_start(uint64_t counters);
void pmu_stop(uint64_t counters);
/* Stops and clears. */
void pmu_clear(uint64_t counters);
/* All that run stop, and go on: for the interrupt. Between, pmu_start and pmu_stop decide what will
 * go on. */
void pmu_pause(void);
void pmu_resume(void);
bool pmu_paused(void);
uint64_t pmu_read(unsigned ctr);
/* May run meanwhile. Where gp_write_width is less than gp_width (no full-width writes) only values
 * that are sign-extended from there can be written. */
void pmu_write(unsigned ctr, uint64_t value);
/* For the interrupt, on a paused counter that wrapped: arms it so that it overflows `period` events
 * after it did so last. Short, because each sample pays for it. */
void pmu_rearm(unsigned ctr, uint64_t period);
/* Returns the counters that overflowed, and forgets it. Without a status register: those that were
 * written with their top bit set and now have it clear. */
uint64_t pmu_take_overflow(void);
/* Counters that pmu_start has running on this CPU. */
uint64_t pmu_running(void);
/* Those of them that somebody else has stopped or given another event since. Not while paused. */
uint64_t pmu_rewritten(void);

uint32_t pmu_rdpmc_index(unsigned ctr);
/* Where a counter is read, where it is written, what selects its event (fixed ones share that). */
uint32_t pmu_counter_msr(unsigned ctr);
uint32_t pmu_write_msr(unsigned ctr);
uint32_t pmu_select_msr(unsigned ctr);
/* All bits of a counter. Differences are modulo this. */
uint64_t pmu_mask(unsigned ctr);
/* In events; pmu_write(ctr, -period & pmu_mask(ctr)) arms it. */
uint64_t pmu_max_period(unsigned ctr);

/* The one WRMSR that starts or stops a programmed counter, for code that counts nothing else. */
struct pmu_gate {
    uint32_t msr;
    uint64_t on, off;
};
struct pmu_gate pmu_gate(unsigned ctr);

/* For pmu.c and the drivers: whether the driver knows this processor, and what it has. */
bool intel_probe(struct pmu_caps *caps);
bool amd_probe(struct pmu_caps *caps);
/* What they make of CPUID leaf 0Ah, and of 8000_0022; apart, so that tests can invent leaves. Any bits are legal. */
struct cpuid;
bool intel_facts(struct pmu_caps *caps, const struct cpuid *leaf, bool hypervisor, bool full_width_writes);
bool amd_facts(struct pmu_caps *caps, bool extended, const struct cpuid *v2);
/* The table of a processor; one that we do not know gets what it is most like. */
const struct pmu_table *intel_table(unsigned family, unsigned model, bool small_core);
const struct pmu_table *amd_table(unsigned family, unsigned model);
extern const struct pmu_table intel_architectural;
