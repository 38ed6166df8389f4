/* SPDX-License-Identifier: MIT */
/* The local APIC's mode, and its registers as MSRs: the quirk x2apic. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/msr.h"
#include "pmu/virt/quirk.h"

struct vcpu;

/* A CPU's part. */
struct x2apic {
    uint64_t base; /* what IA32_APIC_BASE reads */
    uint64_t icr;  /* what 830h reads */
};

void x2apic_start(struct vcpu *v); /* on its CPU, before the first entry */
#define X2APIC_MSRS 0x100u
/* After INIT: the local APIC keeps its mode and its id. */
void x2apic_init(struct vcpu *v);
/* Whether the guest's accesses of this MSR come here. */
static inline bool x2apic_owns(uint32_t msr)
{
    return virt_quirks.x2apic && (msr == MSR_APIC_BASE || msr - MSR_X2APIC < X2APIC_MSRS);
}
/* False: #GP. */
bool x2apic_rdmsr(const struct vcpu *v, uint32_t msr, uint64_t *value);
bool x2apic_wrmsr(struct vcpu *v, uint32_t msr, uint64_t value);
/* Whether IA32_APIC_BASE turned the local APIC off: CPUID then reports none. */
bool x2apic_is_off(const struct vcpu *v);
