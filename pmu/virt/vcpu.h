/* SPDX-License-Identifier: MIT */
/* One CPU of the virtual PMU: its guest, and what each file keeps of it. A struct vcpu is touched
 * by its CPU's host side only, but for what is marked atomic. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "pmu/virt/alarm.h"
#include "pmu/virt/apic_timer.h"
#include "pmu/virt/blocks/block_state.h"
#include "pmu/virt/virt_clock.h"
#include "pmu/virt/emulate.h"
#include "pmu/virt/run_entry.h"
#include "pmu/virt/firmware.h"
#include "pmu/virt/model.h"
#include "pmu/virt/platform.h"
#include "pmu/virt/predict.h"
#include "pmu/virt/blocks/rep.h"
#include "pmu/virt/guests/ap_startup.h"
#include "pmu/virt/svm.h"
#include "pmu/virt/turn.h"
#include "pmu/virt/vmcb.h"
#include "pmu/virt/x2apic.h"

/* What CPUID reports of this CPU (own_leaf.c). */
struct statistics {
    uint64_t rdpmc, rdmsr, wrmsr, pmi, exits, steps, alarms, passes;
};

struct vcpu {
    struct vmcb vmcb;
    uint8_t host_save[4096];
    struct {
        uint32_t nmis;       /* NMIs that the host took; svm_nmi finds the count below its stack */
        uint8_t below[1020]; /* of an NMI, while RSP is at `state` */
        struct block_state state;
        uint8_t bytes[HOST_STACK_SIZE - 1024 - sizeof(struct block_state)];
    } stack __attribute__((aligned(HOST_STACK_SIZE)));
    struct registers r; /* the guest's */
    unsigned number;
    uint32_t host_apic_id;
    uint64_t retired[2]; /* kernel, user; while something counts or several CPUs run */
    uint64_t iterations; /* of string instructions beyond these, which take as long */
    uint64_t random;     /* the state of virt_random() */
    struct {
        uint32_t seen; /* of stack.nmis */
        bool pending;  /* one is the guest's */
        bool blocked;  /* one was injected and has not reached its IRET */
    } nmi;
    struct statistics statistics;
    struct pmu pmu;
    struct step step;
    struct run run;
    struct rep rep;
    struct syscalls syscalls;
    struct clock clock;
    struct alarm alarm;
    struct token token;
    struct startup startup;
    struct x2apic x2apic;
    struct apic_timer timer;
    struct firmware firmware;
    struct platform platform;
    struct predictor predictor;
    struct caches caches;
};

extern bool virt_foreign;    /* the guest is not this kernel */
extern uint64_t virt_hidden; /* time that it has not seen; L: the token */

uint64_t virt_physical(const void *p);
/* A number below 2^31, by the seed. */
uint64_t virt_random(struct vcpu *v);
/* Ends the machine after a line about this CPU. */
__attribute__((noreturn)) void virt_die(const struct vcpu *v, const char *why);
/* The guest did what resets a processor. */
__attribute__((noreturn)) void virt_end_guest(const struct vcpu *v, const char *why);
__attribute__((noreturn)) void virt_host_fault(unsigned vector, const uint64_t *frame);
/* Long mode segments by their selectors; CS decides the CPL. */
void virt_set_segment(struct segment *s, uint16_t selector, uint16_t attributes);
void virt_set_cpl(struct vcpu *v, uint16_t cs, uint16_t ss);
/* The guest raises this at its next entry. */
void virt_raise(struct vcpu *v, unsigned vector, uint32_t code);
/* Called when an intercepted instruction is done: raises #DB if the guest's own TF is set. */
void virt_trap(struct vcpu *v);
