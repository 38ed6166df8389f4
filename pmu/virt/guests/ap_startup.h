/* SPDX-License-Identifier: MIT */
/* A foreign guest's other CPUs: INIT and STARTUP. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct vcpu;
struct virt_payload;

/* A CPU's part. L: the token. */
struct startup {
    bool due;     /* a STARTUP came: it begins in this page */
    uint8_t page; /* its number */
};

/* Before the first entry, if there are any: which. The guest may not write the local APIC's
 * registers from then on. */
void startup_plan(const struct virt_payload *payload);
/* Starts their hosts, by the boot CPU's, which has the token. */
void startup_hosts(struct vcpu *v);
/* After a fault of the nested map: whether it was such a write. */
bool startup_is_write(const struct vcpu *v);
/* Does it for the guest, and returns the instruction's length; 0: the guest must, in a step. */
unsigned startup_write(struct vcpu *v);
/* Sends an interrupt for the guest; one: its destination, where `icr` has no shorthand. */
void startup_send(struct vcpu *v, uint32_t one, uint32_t icr);
/* Before an entry: waits for STARTUP after INIT, and begins where it says. Whether it begins. */
bool startup_enter(struct vcpu *v);
