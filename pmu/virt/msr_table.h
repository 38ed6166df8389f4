/* SPDX-License-Identifier: MIT */
/* The MSRs that the guest does not have from the processor. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct vcpu;

/* first to last. What RDMSR and WRMSR do; false: #GP. */
struct msr_row {
    uint32_t first, last;
    bool (*read)(struct vcpu *v, uint32_t msr, uint64_t *value);
    bool (*write)(struct vcpu *v, uint32_t msr, uint64_t value);
    const uint64_t *quirk; /* without it the row is not there; NULL: it always is */
};

/* NULL: it is the processor's. */
const struct msr_row *msr_find(uint32_t msr);
/* Makes them exit, on all CPUs. Once, when the quirks are known. */
void msr_catch(void);
