/* SPDX-License-Identifier: MIT */
/* The local APIC's timer, whose count others than the guest change too; interrupts that come in. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct vcpu;

struct apic_timer {
    uint32_t set;          /* the count that we set last */
    uint32_t left, period; /* to be set after a C1E, and at the next interrupt; 0: none */
    uint64_t due, hidden;  /* when, by the guest's time; virt_hidden when its count was set */
    uint64_t early;        /* when what waits to be taken is due; 0: it may be taken */
    uint32_t of;           /* the initial count that `due` is of */
    bool noted, stands;    /* `due` is watched; the count waits for it */
    bool pending, raised;  /* its interrupt waits since then; it is sent and not taken */
};

/* Around HLT. */
void apic_timer_stop(struct vcpu *v);
void apic_timer_go_on(struct vcpu *v);
/* While time is hidden: from the first on its interrupt waits for the guest's time; the second,
 * before the guest runs or uses its registers, makes its count so. */
void apic_timer_note(struct vcpu *v);
void apic_timer_set_back(struct vcpu *v);
/* TAKEN and the vector of an interrupt that is let in, or that was (`taken`); 0: none for now. */
uint32_t interrupt_take(struct vcpu *v, uint32_t taken);
/* The next entry delivers it. */
void interrupt_inject(struct vcpu *v, uint32_t taken);
