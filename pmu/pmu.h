/* SPDX-License-Identifier: MIT */
/* The performance monitoring unit: detection, self-test, driver. Vendors differ in facts only
 * (struct pmu_kind, filled by intel.c or amd.c, and an event table); all code that acts on counters
 * is counter.c. A hybrid processor has CPUs of several kinds.
 *
 * A counter has the same number everywhere, that of its bit in the global status register:
 * general-purpose counter n is n, fixed counter n is 32 + n. A function without a kind among its
 * parameters acts on this CPU: the caller stays on it and keeps away interrupts that use the PMU
 * (interrupts off, or IRQL PROFILE_LEVEL). No lock, any IRQL. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/cpu.h"
#include "kernel/base/rdpmc.h"
#include "kernel/base/x86.h"
#include "pmu/measured.h"

#define PMU_FIXED 32 /* the number of fixed counter 0 */
#define PMU_FIXED_MAX 16
#define PMU_BUFFER 62 /* no counter: the event buffer has reached its threshold (OvfBuf) */
#define PMU_BIT(ctr) (1ul << (ctr))
#define PMU_GP(n) PMU_BIT(n)
#define PMU_FIX(n) PMU_BIT(PMU_FIXED + (n))
#define PMU_FIRST(n) (PMU_BIT(n) - 1)
#define PMU_ANY_GP 0xfffffffful

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
    /* Events for the general profile sources of Windows. */
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
    PMU_BRANCH_RECORDS, /* entries of the list of branches, while it is on */
    PMU_EVENT_COUNT
};

/* An event as a family of processors counts it. */
struct pmu_event_row {
    enum pmu_event event;
    uint16_t code; /* 12 bits on AMD */
    uint8_t umask;
    uint32_t flags;    /* PMU_EDGE, PMU_INVERT, PMU_THRESHOLD(n) */
    uint64_t counters; /* that can count it; 0: those of the table */
    bool near;         /* not exactly the event: micro-operations, speculation, lines */
    const char *name;  /* the vendor's; NULL: the family lacks the event, even if its base has it */
};

/* Which counters can count a code: the first line with (code & mask) == its code applies; the last
 * line has mask 0. */
struct pmu_constraint {
    uint16_t mask, code;
    uint64_t counters;
};

/* AMD's families, for tables outside pmu/ that differ by family. */
enum amd_family {
    AMD_K8 = 1 << 0, /* 0Fh */
    AMD_10H = 1 << 1,
    AMD_11H = 1 << 2,
    AMD_12H = 1 << 3,
    AMD_14H = 1 << 4,
    AMD_15H = 1 << 5,
    AMD_16H = 1 << 6,
    AMD_ZEN1 = 1 << 7,
    AMD_ZEN2 = 1 << 8,
    AMD_ZEN3 = 1 << 9,
    AMD_ZEN4 = 1 << 10,
    AMD_ZEN5 = 1 << 11,
};

/* The events of a family that differ from those of its base. */
struct pmu_table {
    const char *name;
    uint16_t family;                  /* enum amd_family; 0: not AMD's */
    const struct pmu_table *base;     /* has the events without a row here; NULL: none has */
    const struct pmu_event_row *rows; /* the last is PMU_EVENT_COUNT */
    bool stale;                       /* pmu_forget_event comes before each select */
    uint64_t counters;                /* for rows that name none; 0: by the constraints */
    /* NULL: every general-purpose counter counts every code. */
    const struct pmu_constraint *constraints;
};

/* The result of the self-test; pmu_verdict_text has a sentence for each. */
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
    PMU_OVERFLOW_LATE,
    PMU_PMI_LOST,
    PMU_EXITS_MISCOUNTED,
    PMU_TOO_MANY_KINDS,
    PMU_VERDICT_COUNT
};

/* A kind of CPU. Two CPUs are of one kind if CPUID reports the same for both and their registers
 * behave the same. */
struct pmu_kind {
    /* What CPUID reports, and the tables. Compared as a whole, so unused fields are 0. */
    const char *driver; /* "intel", "amd"; NULL: no PMU that we know */
    unsigned version;   /* Intel: of CPUID 0Ah; AMD: 2 with PerfMonV2, else 1 */
    unsigned family, model, stepping;
    uint64_t reported;    /* counters that CPUID promises, or whose registers were found */
    unsigned gp_reported; /* general-purpose of these; we may drive fewer */
    unsigned gp_width, fixed_width; /* bits */
    unsigned gp_write_width; /* bits that a write sets; the higher bits copy the highest of these */
    uint32_t events;         /* PMU_BIT(enum pmu_event) that the processor says it counts */
    uint32_t select_flags;   /* PMU_EDGE to PMU_THRESHOLD: those that a select has */
    uint16_t code_max;       /* the highest event code */
    bool unfenced; /* LFENCE does not wait for the instructions before it, so RDPMC may lack some */
    bool known; /* the table is this processor's own, not the generic one of unknown processors */
    const struct pmu_table *table; /* what it counts, by which code */
    struct pmu_msrs {
        uint32_t select, counter, write, stride; /* general-purpose; write: to write it */
        uint32_t fixed_counter, fixed_stride, fixed_control;
        uint32_t global_control, global_status, global_clear; /* 0: there is none */
    } msr;
    uint64_t clears; /* bits that may be written to global_clear */
    /* What the self-test found on the first CPU of the kind. */
    uint64_t counters;     /* those of `reported` that passed */
    uint64_t left_running; /* firmware had left these enabled on some CPU of the kind */
    bool exact;    /* each instruction count of the self-test was exact, apart from offset */
    int offset;    /* instructions too many (< 0: too few) in each of them */
    unsigned late; /* reads of the overflow status until a bit came, where it is late */
    enum pmu_verdict verdict; /* of the first counter that failed */
    struct pmu_measured measured;
};

/* The kinds of this machine, the boot CPU's first. Written while CPUs start, then const. The last
 * element is for CPUs of all kinds for which there is no element: they have no counters. */
#define PMU_KINDS_MAX 8
extern const struct pmu_kind *const pmu_kinds;
extern unsigned pmu_kind_count;

/* What counter.c knows of a CPU. */
struct pmu_cpu {
    const struct pmu_kind *kind;
    /* Copied from its kind, because each sample needs them; banks: of general-purpose and of fixed
     * counters. */
    uint32_t global_control, global_status, global_clear;
    uint32_t plain_control; /* global_control while nothing is lent, else 0 */
    uint64_t counters, clears;
    uint64_t takes; /* of the status: what pmu_take_overflow returns */
    struct pmu_bank {
        uint64_t mask;  /* a counter's bits */
        uint32_t rdpmc; /* selector of counter n: rdpmc + n */
        uint32_t write; /* the MSR to write it: write + n * stride */
        uint64_t stride;
        uint64_t unused; /* pmu_rearm wants this size */
    } banks[2];
    uint64_t running; /* counters that pmu_start started: they run while not paused */
    uint64_t armed;   /* without a status register: counters written with their top bit set */
    uint64_t lent;    /* counters whose registers somebody else writes; lent_ran: those of them that
                         ran before the pause */
    uint64_t lent_ran;
    bool paused;                 /* nothing runs until pmu_resume */
    uint64_t selects[64];        /* the select that pmu_program gave each counter, without EN */
    uint64_t ring3[PMU_RETIRED]; /* counters that count this event in ring 3 only */
};

/* The state of this CPU; the kind of this CPU and of another one; the index of a kind. */
static inline struct pmu_cpu *pmu_this_cpu(void) { return CPU_FIELD(pmu); }
static inline const struct pmu_kind *pmu_here(void) { return pmu_this_cpu()->kind; }
static inline const struct pmu_kind *pmu_of(unsigned cpu) { return cpus[cpu]->pmu->kind; }
static inline unsigned pmu_kind_number(const struct pmu_kind *pmu)
{
    return (unsigned)(pmu - pmu_kinds);
}

/* Properties of the running CPUs of a mask; 0 if there are none. In this order: their kinds, as
 * bits of pmu_kind_number; the counters that work on all of them, or on some; the bits that a
 * counter has on all. */
uint32_t pmu_kinds_of(struct cpu_set among);
uint64_t pmu_common_counters(struct cpu_set among);
uint64_t pmu_some_counters(struct cpu_set among);
uint64_t pmu_common_mask(struct cpu_set among, unsigned ctr);

/* Called by each CPU when it starts, one after the other, interrupts off, exception handlers in
 * place. Detects the kind by this CPU's own CPUID, resets the PMU and, if the kind is new, tests
 * each counter. Counters that fail are not used. A CPU without a PMU is no error: its kind has
 * no counters. */
void pmu_init_cpu(void);
/* Stops and clears every counter of this CPU and its overflow status. Registers may be absent. */
void pmu_reset(void);
/* Where to store the measurements of this CPU's kind; NULL: they are done. */
struct pmu_measured *pmu_unmeasured(void);
/* How many counts a trap of this kind adds to the counter, which runs on this CPU, beyond what
 * ring 3 executed; 0 if that is not known. */
int64_t pmu_trap_adds(unsigned ctr, enum pmu_trap trap);
/* When all CPUs run: prints a line for each kind. */
void pmu_report(void);
/* Prints a line for each erratum that no measurement finds. */
void pmu_report_errata(const struct pmu_kind *pmu);
const char *pmu_verdict_text(enum pmu_verdict verdict);
/* For defects that others detect later: prints the verdict's sentence, and makes it the kind's
 * verdict if that was PMU_OK. */
void pmu_complain(const struct pmu_kind *pmu, enum pmu_verdict verdict, uint64_t counters);

/* The row of an event, in the table or its bases; NULL if the family lacks the event. The counters
 * of a row. */
const struct pmu_event_row *pmu_row(const struct pmu_table *table, enum pmu_event event);
uint64_t pmu_row_counters(const struct pmu_table *table, const struct pmu_event_row *row);
/* The counters that can count the event, 0 if the processor lacks it. */
uint64_t pmu_counters_for(const struct pmu_kind *pmu, enum pmu_event event);
/* Flags of a select: USR, OS and INT of the event select, the same for both vendors. */
#define PMU_USER (1u << 16)
#define PMU_KERNEL (1u << 17)
#define PMU_INTERRUPT (1u << 20)
#define PMU_ENABLE (1u << 22) /* in the register; set by pmu_program or pmu_start */
/* The value for pmu_program. The event must be one for which pmu_counters_for returns counters. */
uint64_t pmu_select(const struct pmu_kind *pmu, enum pmu_event event, uint32_t flags);

/* The value for pmu_program of an event by its code and unit mask, whether or not the table knows
 * it. Flags may also be PMU_EDGE, PMU_ANY_THREAD, PMU_INVERT and PMU_THRESHOLD(n). */
#define PMU_ADAPTIVE (1ul << 34) /* its records have groups (pmu/pebs); fixed counters too */
#define PMU_EDGE (1u << 18)
#define PMU_ANY_THREAD (1u << 21)
#define PMU_INVERT (1u << 23)
#define PMU_THRESHOLD(n) ((uint32_t)(uint8_t)(n) << 24)
uint64_t pmu_raw_select(unsigned code, uint8_t umask, uint32_t flags);
/* Whether two selects, each on its kind of CPU, count the same: the same event in the same rings
 * by both tables, or the same code where both kinds have one table. A code that is in no table
 * cannot be compared between kinds. */
bool pmu_same_meaning(const struct pmu_kind *a, uint64_t select_a, const struct pmu_kind *b,
                      uint64_t select_b);
/* The general-purpose counters that can count the code by the table's rows and constraints; 0 if
 * the processor's selects do not have the code or a flag. */
uint64_t pmu_raw_counters(const struct pmu_kind *pmu, unsigned code, uint32_t flags);

/* Errata AAK100, AAP53 and BD53 of Nehalem and Westmere: a general-purpose counter may count core
 * cycles, or nothing, instead of its new event, unless three events that count nothing were enabled
 * there before. In a select of a counter that stands still; `running`: the global control now.
 * Nothing on other kinds. True: an access faulted. Source: Linux, intel_pmu_nhm_workaround. */
bool pmu_forget_event(const struct pmu_kind *pmu, unsigned ctr, uint64_t running,
                      unsigned (*write)(uint32_t msr, uint64_t value));

/* Gives a stopped counter its event and its value, and clears its overflow status; pmu_start starts
 * it. A fixed counter takes only PMU_USER, PMU_KERNEL, PMU_INTERRUPT and PMU_ADAPTIVE from the
 * select. Select 0 clears the counter. */
void pmu_program(unsigned ctr, uint64_t select, uint64_t start);
/* With a global control this is one WRMSR of the whole register: counters that somebody else
 * started stop, unless lent. */
void pmu_start(uint64_t counters);
void pmu_stop(uint64_t counters);
/* From now on, until pmu_clear, somebody else programs these counters by their registers. Their
 * bits of the global control stay as he sets them; pmu_resume restarts those that ran before the
 * pause. */
void pmu_lend(uint64_t counters);
/* Stops and clears. */
void pmu_clear(uint64_t counters);
bool pmu_paused(void);
uint64_t pmu_read(unsigned ctr);
/* The counter may be running. Where gp_write_width is less than gp_width (no full-width writes)
 * only values that are sign-extended from gp_write_width can be written. */
void pmu_write(unsigned ctr, uint64_t value);
/* The select of a counter as its register shows it, without PMU_ENABLE; for a fixed counter
 * PMU_USER, PMU_KERNEL and PMU_INTERRUPT. */
uint64_t pmu_selected(unsigned ctr);
/* Counters of this CPU that pmu_start started. */
uint64_t pmu_running(void);
/* Those of them whose select or enable bit somebody else has changed. Not while paused. */
uint64_t pmu_rewritten(void);
/* Whether the counter's select is still what pmu_program wrote, if it did; a guest that is restored
 * may have lost all registers. Paused or not. */
bool pmu_kept(unsigned ctr);

/* --- For the interrupt. Inline, because every sample executes them. --- */

/* In counter.c: the same without a global control, or with counters lent; and without a status
 * register. */
void pmu_pause_any(void);
void pmu_resume_any(void);
uint64_t pmu_take_wrapped(void);

/* Stops all counters, until pmu_resume. In between, pmu_start and pmu_stop change which ones it
 * restarts. */
static inline void pmu_pause(void)
{
    struct pmu_cpu *cpu = pmu_this_cpu();
    if (!cpu->plain_control) {
        pmu_pause_any();
        return;
    }
    wrmsr(cpu->plain_control, 0);
    cpu->paused = true;
}

static inline void pmu_resume(void)
{
    struct pmu_cpu *cpu = pmu_this_cpu();
    cpu->paused = false;
    if (cpu->plain_control)
        wrmsr(cpu->plain_control, cpu->running);
    else
        pmu_resume_any();
}

/* Returns the counters that overflowed, and PMU_BUFFER's bit, and clears their status. Without a
 * status register: those that were written with their top bit set and now have it clear. */
static inline uint64_t pmu_take_overflow(void)
{
    const struct pmu_cpu *cpu = pmu_this_cpu();
    if (!cpu->global_status)
        return pmu_take_wrapped();
    uint64_t status = rdmsr(cpu->global_status);
    if (__builtin_expect(status != 0, 1))
        wrmsr(cpu->global_clear, status & cpu->clears); /* freeze bits too */
    return status & cpu->takes;
}

/* On a paused counter that wrapped: arms it so that it overflows `period` events after its last
 * overflow; false, and nothing done: more than a period has passed. */
static inline bool pmu_rearm(unsigned ctr, uint64_t period)
{
    struct pmu_cpu *cpu = pmu_this_cpu();
    _Static_assert(sizeof cpu->banks[0] == PMU_FIXED, "the number's bit is the bank's offset");
    const struct pmu_bank *bank = (const void *)((const char *)cpu->banks + (ctr & PMU_FIXED));
    uint64_t start, past = rdpmc(bank->rdpmc + ctr); /* events since it wrapped */
    if (__builtin_expect(!__builtin_sub_overflow(past, period, &start), 0))
        return false;
    wrmsr(bank->write + ctr * (uint32_t)bank->stride, start & bank->mask);
    if (!cpu->global_status)
        cpu->armed |= PMU_BIT(ctr);
    return true;
}

/* Then: the same, after the last whole period. Returns how many have passed, whose overflows had no
 * interrupt. */
uint64_t pmu_rearm_late(unsigned ctr, uint64_t period);

static inline uint32_t pmu_rdpmc_index(unsigned ctr)
{
    return ctr < PMU_FIXED ? ctr : RDPMC_FIXED + ctr - PMU_FIXED;
}
/* Its inverse; what names no counter gives a number that has another index. */
static inline unsigned pmu_rdpmc_counter(uint64_t index)
{
    return (unsigned)(index >= RDPMC_FIXED ? index - RDPMC_FIXED + PMU_FIXED : index);
}
/* The MSR by which a counter is read, the one by which it is written, and its select (fixed
 * counters share one). */
uint32_t pmu_counter_msr(const struct pmu_kind *pmu, unsigned ctr);
uint32_t pmu_write_msr(const struct pmu_kind *pmu, unsigned ctr);
uint32_t pmu_select_msr(const struct pmu_kind *pmu, unsigned ctr);
/* All bits of a counter. Differences of counts are masked with this. */
uint64_t pmu_mask(const struct pmu_kind *pmu, unsigned ctr);
/* The largest period, in events; pmu_write(ctr, -period & pmu_mask(pmu, ctr)) arms the counter. */
uint64_t pmu_max_period(const struct pmu_kind *pmu, unsigned ctr);

/* The one WRMSR that starts or stops a programmed counter, for code that counts nothing else. */
struct pmu_gate {
    uint32_t msr;
    uint64_t on, off;
};
struct pmu_gate pmu_gate(unsigned ctr);

static inline void pmu_set_signature(struct pmu_kind *kind, uint32_t signature)
{
    unsigned family = signature >> 8 & 0xf;
    kind->stepping = signature & 0xf;
    kind->family = family + (family == 0xf ? signature >> 20 & 0xff : 0);
    kind->model = (signature >> 4 & 0xf) | (signature >> 12 & 0xf0);
}

/* For kinds.c: whether the driver is for this CPU; fills in what the CPU has. */
bool intel_probe(struct pmu_kind *kind);
bool amd_probe(struct pmu_kind *kind);
/* Conclusions from CPUID and some registers. Separate, so that tests can supply any values. */
#define INTEL_EXTENDED 4
struct intel_leaves {
    struct cpuid pmu;                      /* 0Ah */
    struct cpuid extended[INTEL_EXTENDED]; /* 23h by subleaf; absent ones: 0 */
    uint64_t found; /* counters that have registers and may not stand in the leaves */
    bool full_width_writes, v6_registers;
};
bool intel_facts(struct pmu_kind *kind, const struct intel_leaves *leaves);
bool amd_facts(struct pmu_kind *kind, bool extended, const struct cpuid *v2);
/* The table of a processor; an unknown processor gets the table of the most similar one. Tiny
 * cores: the smaller kind where there are two kinds of small cores. */
enum intel_core { INTEL_LARGE_CORE, INTEL_SMALL_CORE, INTEL_TINY_CORE };
#define INTEL_MODEL_ARROW_LAKE_H 0xc5
const struct pmu_table *intel_table(unsigned family, unsigned model, enum intel_core core);
const struct pmu_table *amd_table(unsigned family, unsigned model);
bool amd_is_known(unsigned family, unsigned model);
extern const struct pmu_table intel_architectural;
