/* SPDX-License-Identifier: MIT */
/* What firmware and the host's kernel do to counters. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct vcpu;

enum { FIRMWARE_EVENTS = 5 };
struct firmware {
    uint64_t at[FIRMWARE_EVENTS], next; /* by the clock: when each is due; the first of them */
    uint64_t nmi_retired;               /* instructions at the last NMI */
    bool was_reset;
};

/* Called after reset: what firmware leaves in the registers. */
void firmware_start(struct vcpu *v);
/* Before each entry: does what is due by the clock. firmware_next: when the next is due. */
void firmware_run(struct vcpu *v);
uint64_t firmware_next(const struct vcpu *v);
