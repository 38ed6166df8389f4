/* SPDX-License-Identifier: MIT */
/* The TSC deadline of the local APIC's timer: the quirk deadline. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct vcpu;

#define MSR_TSC_DEADLINE 0x6e0u

/* Its RDMSR and WRMSR (msr_table.h). */
bool deadline_rdmsr(struct vcpu *v, uint32_t msr, uint64_t *value);
bool deadline_wrmsr(struct vcpu *v, uint32_t msr, uint64_t value);
