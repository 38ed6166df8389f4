/* SPDX-License-Identifier: MIT */
/* The conformance tests' laboratory: a processor with the whole PMU to itself, code whose
 * instructions are known, and interrupt handlers of its own. Bodies run on one CPU after the other,
 * at IPI_LEVEL: only the PMU's vector, NMIs and exceptions come through. */
#pragma once
#include "tests/harness/kernel.h"
#include "tests/harness/kinds.h"

struct process;
struct thread;

/* Runs body(ctr) on each CPU whose kind has such a counter, with nothing running and all zero,
 * before and after. Skips without a PMU, if no CPU has it, or if the body skips on all of them;
 * LAB_ANY: the body needs none in particular. */
#define LAB_ANY 64u
void lab_run(void (*body)(unsigned ctr), unsigned ctr);
/* After a test that was ended. */
void lab_forget(void);
/* Tests whose body lab_run runs. LAB_EACH: of each counter, `ctr`; which: those that some CPU
 * reports, the general-purpose ones of them, those that count instructions. Without any it is a
 * test of counter 0, which says so. */
#define LAB_TEST(group, name, meaning)                                                             \
    static void lab_##group##_##name(unsigned);                                                    \
    TEST(group, name, meaning) { lab_run(lab_##group##_##name, LAB_ANY); }                         \
    static void lab_##group##_##name(unsigned unused __attribute__((unused)))
#define LAB_EACH(group, which, meaning)                                                            \
    static void lab_each_##group(unsigned ctr);                                                    \
    TEST_EACH(group, which, meaning) { lab_run(lab_each_##group, ctr); }                           \
    static void lab_each_##group(unsigned ctr)
uint64_t each_counter(void);
uint64_t each_gp(void);
uint64_t each_counting_instructions(void);

/* Code of known length: what it retires in all for an argument n is `each` * n + `once`, its RET
 * included. In each iteration `exits` instructions are ones that every hypervisor intercepts. */
enum lab_kind { LAB_INSTRUCTIONS, LAB_BRANCHES, LAB_LOADS, LAB_STORES, LAB_KINDS };
struct lab_work {
    const char *name;
    void (*code)(uint64_t n);
    uint8_t each[LAB_KINDS], once[LAB_KINDS], exits;
};
extern const struct lab_work lab_loop_work, lab_memory_work, lab_branches_work, lab_pauses_work,
    lab_exits_work;
extern void lab_loop(uint64_t n), lab_memory(uint64_t n), lab_branches(uint64_t n),
    lab_pauses(uint64_t n), lab_exits(uint64_t n);
extern void lab_halt(uint64_t interrupts), lab_sled(uint64_t n), lab_write_inside(uint64_t value);
extern char lab_sled_end[];
extern uint32_t lab_write_msr;
#define LAB_SLED 1000u
#define LAB_INSIDE_AFTER 11u /* lab_write_inside: instructions after its WRMSR */

/* One of each class of instructions, called with 512 writable bytes. effects: a byte for each kind
 * of effect, how often (LAB_EFFECT_BRANCHES..); then which bit of ECX of CPUID leaf 1 must be 1 (0:
 * none), LAB_EXITS, and how many instructions more than the first row's routine it executes. */
enum { LAB_EFFECT_BRANCHES = 2, LAB_EFFECT_CONDITIONAL, LAB_EFFECT_FAR = 5 };
#define LAB_EXITS (1ul << 53) /* a hypervisor may intercept it */
extern const struct lab_op {
    void (*code)(uint64_t buffer);
    uint64_t effects;
    const char *name;
} lab_ops[], lab_ops_end[];
extern void lab_op_iret(uint64_t buffer); /* the code of one */
/* False after a line: this processor lacks it. */
bool lab_has_op(const struct lab_op *op);
static inline uint64_t lab_effect(const struct lab_op *op, unsigned kind)
{
    return op->effects >> 8 * kind & 0xff;
}

/* Instructions counted around the work: WRMSR, as often as it was measured to count, and CALL;
 * three moves. */
uint64_t lab_before(void);
#define LAB_AFTER 3u
uint64_t lab_expected(const struct lab_work *work, enum lab_kind kind, uint64_t n);
/* The part of it that was measured: what a hypervisor counts too much at each exit, as a branch too
 * (VMRUN is one), or leaves out; modulo 2^64. */
uint64_t lab_of_exits(const struct lab_work *work, enum lab_kind kind, uint64_t n);

void lab_measure(const struct pmu_gate *gate, void (*work)(uint64_t), uint64_t argument);
/* Programs the counter, runs the work between the two WRMSRs, returns the value. */
uint64_t lab_count(unsigned ctr, uint64_t select, uint64_t start, void (*work)(uint64_t),
                   uint64_t n);
/* The event to use on a counter: instructions if it can count them. PMU_EVENT_COUNT: none that must
 * happen. */
enum pmu_event lab_event(unsigned ctr);
#define SKIP_WITHOUT_EVENT(ctr)                                                                    \
    SKIP_IF(lab_event(ctr) == PMU_EVENT_COUNT, "no event that must happen on this counter")
#define SKIP_WITHOUT_COUNT_OF(event, ctr)                                                          \
    SKIP_IF(!(pmu_counters_for(pmu_here(), event) >> (ctr)&1),                                     \
            "the processor does not count the event there")
uint64_t lab_select(unsigned ctr, uint32_t flags);
/* Instructions in which the event happens so often at least: cycles by what was measured of a loop
 * of two, times eight where that was not the same each time. lab_iterations: the iterations of
 * lab_loop in which what lab_event says happens so often. */
uint64_t lab_instructions(enum pmu_event event, uint64_t events);
uint64_t lab_iterations(unsigned ctr, uint64_t events);
/* Iterations of lab_loop by which so many interrupts of overflows may be late in all: a few where
 * none was late when the kernel measured; else four times the latest, and 10,000 instructions each
 * at least, which rr allows Zen. */
uint64_t lab_late(unsigned pmis);
static inline bool lab_is_fixed(unsigned ctr) { return ctr >= PMU_FIXED; }
bool lab_is_intel(void);
/* A count of something exact. By the manual it is equal; where the self-test found that hypervisors
 * add to counts at exits, or take from them, a range. */
struct lab_range {
    uint64_t low, high;
    const char *why;
};
struct lab_range lab_range(uint64_t wanted);
/* Interrupts of so many overflows, none of which comes while one before it waits: some hosts raise
 * each twice. */
struct lab_range lab_pmis(unsigned overflows);
#define LAB_CHECK_COUNT(found, wanted)                                                             \
    __extension__({                                                                                \
        struct lab_range lab_allowed = lab_range(wanted);                                          \
        CHECK_BECAUSE(found, lab_allowed.low, lab_allowed.high, lab_allowed.why);                  \
    })

/* Interrupt handlers of our own for this CPU: the PMU's vector, NMI, #DB. lab_release puts the
 * kernel's back, and the LVT. */
struct lab_frame {
    uint64_t rip, cs, rflags, rsp, ss;
};
struct lab_caught {
    unsigned pmis, nmis, steps;
    unsigned watched; /* of the steps, those from an address in watch[0] up to below watch[1] */
    uint64_t watch[2];
    uint64_t rip;         /* of the last PMI or NMI */
    uint64_t status;      /* global status in the handler, if there is one */
    uint64_t control;     /* global control in the handler, the same */
    uint32_t lvt;         /* in the handler, before anything is written */
    void (*action)(void); /* called in the handler of a PMI or NMI; NULL: none */
    bool (*resolve)(uint64_t address);
};
extern struct lab_caught lab_caught;
void lab_catch(void);
/* Page faults of ring 0 too, after lab_catch, until lab_release. resolve maps the page, or says
 * that it is not its own. */
void lab_resolve(bool (*resolve)(uint64_t address));
void lab_release(void);
/* After lab_catch: where a vector leads; a handler of the test's own. */
uint64_t lab_gate(unsigned vector);
void lab_set_gate(unsigned vector, void (*handler)(void));
/* One that INT of ring 3 may use. */
void lab_set_user_gate(unsigned vector, void (*handler)(void));
/* Runs function(argument) in ring 3 on that CPU, with these handlers, and waits until it has ended;
 * the caller has a reference. NULL, a failed check: no thread. */
struct thread *lab_run_user(struct process *process, void (*function)(void), uint64_t argument,
                            unsigned cpu);
uint64_t lab_steps(void (*work)(uint64_t), uint64_t argument);
#define LAB_STEPS_AROUND 4u /* CALL, PUSHFQ, AND, POPFQ */

/* Time for an interrupt that must not come. */
void lab_wait_quietly(void);
/* RDMSR and WRMSR whose fault is a failed check. */
uint64_t lab_rdmsr(uint32_t msr);
void lab_wrmsr(uint32_t msr, uint64_t value);
/* Both accesses raise #GP. */
void lab_absent(uint32_t msr);
#define LAB_GP_FAULT 13u
