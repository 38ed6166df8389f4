/* SPDX-License-Identifier: MIT */
/* SYSCALL, SYSRET, SYSENTER and SYSEXIT. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct vcpu;

/* What the guest believes of them. */
struct syscalls {
    bool sce;             /* its EFER.SCE; the processor's is clear while something counts */
    bool sysenter_hidden; /* the processor's SYSENTER_CS is 0 now, as while something counts */
    uint16_t sysenter_cs; /* the guest's */
};

/* Whether a SYSCALL or SYSRET at RIP, which has faulted, is executed here. */
bool emulate_is_due(struct vcpu *v);
/* Executes the one at RIP, or raises what the model's processor raises. False: there is none. */
bool emulate_syscall(struct vcpu *v);
/* Makes them fault, or not; returns the exceptions by which they do. */
uint32_t emulate_hide_syscalls(struct vcpu *v, bool hide);
/* RDMSR and WRMSR of SYSENTER_CS (msr_table.h). */
bool emulate_read_sysenter(struct vcpu *v, uint32_t msr, uint64_t *value);
bool emulate_write_sysenter(struct vcpu *v, uint32_t msr, uint64_t value);
