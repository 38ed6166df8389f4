/* SPDX-License-Identifier: MIT */
/* The guest's debug registers. */
#pragma once
#include <stdbool.h>

struct vcpu;

/* Turn the guest's breakpoints on before each entry and off after it. */
void debug_enter(const struct vcpu *v);
void debug_leave(const struct vcpu *v);
/* Executes the guest's MOV to DR5 or DR7; false: it raised an exception. */
bool debug_write_dr7(struct vcpu *v, unsigned number);
/* Keep DR6 right over a step. The second returns whether the instruction was completed. */
void debug_begin_step(struct vcpu *v);
bool debug_end_step(struct vcpu *v);
/* After a #DB exit: whether the guest has to see it. */
bool debug_is_guests(struct vcpu *v);
