/* SPDX-License-Identifier: MIT */
/* The TSC deadline of the local APIC's timer: the quirk deadline. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "pmu/virt/quirk.h"

struct vcpu;

#define MSR_TSC_DEADLINE 0x6e0u

static inline bool deadline_owns(uint32_t msr)
{
    return virt_quirks.deadline && msr == MSR_TSC_DEADLINE;
}
uint64_t deadline_rdmsr(const struct vcpu *v);
void deadline_wrmsr(struct vcpu *v, uint64_t value);
