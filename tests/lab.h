/* SPDX-License-Identifier: MIT */
/* The conformance tests' laboratory: a processor with the whole PMU to itself, code whose instructions are known, and
 * interrupt handlers of its own. Bodies run on every CPU in turn, at IPI_LEVEL: only the PMU's vector, NMIs and
 * exceptions come through. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/x86.h"
#include "pmu/pmu.h"
#include "tests/test.h"

/* Runs body(ctr) on each CPU with nothing running and all zero, before and after. Skips without a PMU, or if the
 * processor has no such counter; LAB_ANY: the body needs none in particular. */
#define LAB_ANY 64u
void lab_run(void (*body)(unsigned ctr), unsigned ctr);
/* A test of one counter. */
#define LAB_TEST(group, name, ctr, body, meaning) \
    TEST(group, name, meaning) { lab_run(body, ctr); }

/* X(name, number) for each counter that a processor may have. */
#define LAB_EACH_GP(X) X(gp0, 0) X(gp1, 1) X(gp2, 2) X(gp3, 3) X(gp4, 4) X(gp5, 5) X(gp6, 6) X(gp7, 7)
#define LAB_EACH_FIXED(X) X(fixed0, 32) X(fixed1, 33) X(fixed2, 34) X(fixed3, 35)
#define LAB_EACH(X) LAB_EACH_GP(X) LAB_EACH_FIXED(X)

/* Code of known length: what it retires in all for an argument n is `each` * n + `once`, its RET included. */
enum lab_kind { LAB_INSTRUCTIONS, LAB_BRANCHES, LAB_LOADS, LAB_STORES, LAB_KINDS };
struct lab_work {
    const char *name;
    void (*code)(uint64_t n);
    uint8_t each[LAB_KINDS], once[LAB_KINDS];
};
extern const struct lab_work lab_loop_work, lab_memory_work, lab_branches_work, lab_exits_work;
extern void lab_loop(uint64_t n), lab_memory(uint64_t n), lab_branches(uint64_t n), lab_exits(uint64_t n);
extern void lab_halt(uint64_t interrupts), lab_sled(uint64_t n), lab_write_inside(uint64_t value);
extern char lab_sled_end[];
extern uint32_t lab_write_msr;
#define LAB_SLED 1000u
#define LAB_INSIDE_AFTER 11u /* lab_write_inside: instructions after its WRMSR */

/* What is counted around the work: WRMSR, CALL, three moves. */
#define LAB_BEFORE 2u
#define LAB_AFTER 3u
uint64_t lab_expected(const struct lab_work *work, enum lab_kind kind, uint64_t n);

void lab_measure(const struct pmu_gate *gate, void (*work)(uint64_t), uint64_t argument);
/* Programs the counter, runs the work between the two WRMSRs, returns the value. */
uint64_t lab_count(unsigned ctr, uint64_t select, uint64_t start, void (*work)(uint64_t), uint64_t n);
/* The event to use on a counter: instructions if it can count them. PMU_EVENT_COUNT: none that must happen. */
enum pmu_event lab_event(unsigned ctr);
uint64_t lab_select(unsigned ctr, uint32_t flags);
static inline bool lab_is_fixed(unsigned ctr) { return ctr >= PMU_FIXED; }
bool lab_is_intel(void);
/* A count of something exact: equal where the self-test was exact, else at most an eighth more, for what exits to a
 * hypervisor add. */
#define LAB_CHECK_COUNT(found, wanted)                                                         \
    __extension__({                                                                            \
        uint64_t lab_wanted = (wanted);                                                        \
        CHECK_BECAUSE(found, lab_wanted, pmu_caps.exact ? lab_wanted : lab_wanted + lab_wanted / 8 + 8, \
                      pmu_caps.exact ? "exact" : "this PMU overcounts at exits");              \
    })

/* Interrupt handlers of our own for this CPU: the PMU's vector, NMI, #DB. lab_release puts the kernel's back, and
 * the LVT. */
struct lab_frame {
    uint64_t rip, cs, rflags, rsp, ss;
};
struct lab_caught {
    unsigned pmis, nmis, steps, faults;
    unsigned watched;           /* of the steps, those from an address in watch[0] up to below watch[1] */
    uint64_t watch[2];
    uint64_t rip;               /* of the last PMI or NMI */
    uint64_t status;            /* global status in the handler, if there is one */
    uint64_t control;           /* global control in the handler, the same */
    uint32_t lvt;               /* in the handler, before anything is written */
    void (*action)(void);       /* called in the handler of a PMI or NMI; NULL: none */
    bool (*resolve)(uint64_t address);
};
extern struct lab_caught lab_caught;
void lab_catch(void);
/* Page faults too, after lab_catch, until lab_release. resolve maps the page, or says that it is not its own. Ring 3's GS
 * may be in place: it must not ask which CPU this is. */
void lab_resolve(bool (*resolve)(uint64_t address));
void lab_release(void);
uint64_t lab_steps(void (*work)(uint64_t), uint64_t argument);
#define LAB_STEPS_AROUND 4u /* CALL, PUSHFQ, AND, POPFQ */

/* RDMSR and WRMSR whose fault is a failed check. */
uint64_t lab_rdmsr(uint32_t msr);
void lab_wrmsr(uint32_t msr, uint64_t value);
/* Both accesses raise #GP. */
void lab_absent(uint32_t msr);
#define LAB_GP_FAULT 13u
