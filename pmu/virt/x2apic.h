/* SPDX-License-Identifier: MIT */
/* The local APIC's mode, and its registers as MSRs: the quirk x2apic. The deadline of its timer:
 * the quirk deadline. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/msr.h"
#include "pmu/virt/quirk.h"

struct vcpu;

#define MSR_TSC_DEADLINE 0x6e0u

/* A CPU's part. */
struct x2apic {
    uint64_t base;     /* what IA32_APIC_BASE reads */
    uint64_t icr;      /* what 830h reads */
    uint64_t deadline; /* the last that the guest wrote */
};

void x2apic_start(struct vcpu *v); /* on its CPU, before the first entry */
/* After INIT: the local APIC keeps its mode and its id. */
void x2apic_init(struct vcpu *v);
/* RDMSR and WRMSR of IA32_APIC_BASE and those registers, and of the deadline (msr_table.h). */
bool x2apic_rdmsr(struct vcpu *v, uint32_t msr, uint64_t *value);
bool x2apic_wrmsr(struct vcpu *v, uint32_t msr, uint64_t value);
bool x2apic_read_deadline(struct vcpu *v, uint32_t msr, uint64_t *value);
bool x2apic_write_deadline(struct vcpu *v, uint32_t msr, uint64_t value);
/* Whether IA32_APIC_BASE turned the local APIC off: CPUID then reports none. */
bool x2apic_is_off(const struct vcpu *v);
