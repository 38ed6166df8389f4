/* SPDX-License-Identifier: MIT */
/* The instruction clock, and the time that the guest sees. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/msr.h"
#include "pmu/virt/quirk.h"

struct vcpu;

/* A CPU's part. */
struct clock {
    bool hides; /* the guest must not see how long its step takes */
    /* Its time is accounted for up to here: the clock; instructions retired. */
    uint64_t left_at, left_retired;
    uint64_t ahead, adjust; /* of the guest's TSC to the clock; MSR TSC_ADJUST */
};

extern bool virt_step;      /* no instruction clock: step while something counts */
extern uint64_t clock_cost; /* what svm_run returns for a run of 0 instructions */
/* 1 if the clock counts an INT n although the exit comes first; else 0. */
extern uint64_t clock_soft_int;
extern bool clock_dr6_stays; /* an intercepted #DB does not set DR6 */

/* Measures them with v's VMCB, which is unchanged afterwards; decides virt_step and prints it. */
void clock_start(struct vcpu *v);
/* The quirks tsc and tscfixed: after reset; RDMSR and WRMSR of both MSRs (msr_table.h). */
void clock_start_tsc(struct vcpu *v);
bool clock_rdmsr(struct vcpu *v, uint32_t msr, uint64_t *value);
bool clock_wrmsr(struct vcpu *v, uint32_t msr, uint64_t value);
/* What the guest's RDTSC reads now, without a run of it. */
uint64_t clock_look(struct vcpu *v);
/* Before and after each run of the guest: what time it sees. clock: what svm_run returned. */
void clock_enter(struct vcpu *v);
void clock_leave(struct vcpu *v, uint64_t clock);
