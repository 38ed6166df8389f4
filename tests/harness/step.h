/* SPDX-License-Identifier: MIT */
/* Windows of a few instructions of ring 0: what comes at each of them. A breakpoint (DR0) finds the
 * window's first instruction, single steps the others, those of functions that it calls among
 * them. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct thread;

enum step_event {
    STEP_NMI,   /* comes at any instruction */
    STEP_SWITCH /* by an interrupt, where those and the IRQL allow it, to step_partner's function,
                 * which then runs once */
};

/* From an instruction up to another one; NULL: until the function or gate that begins there has
 * returned.
 * kernel/base/window.h marks instructions of C. */
struct step_window {
    const void *from, *to;
    enum step_event event;
    unsigned left_out;           /* so many instructions after each at which the event comes */
    const struct thread *thread; /* that passes it; NULL: the caller */
};

/* Runs scenario(argument) again and again on this CPU, on which the caller must stay: each time the
 * event comes at the next instruction of the window that is not left out, when its thread passes
 * it first, until the window has no more. Returns at how many it came. Not at the same time on two
 * CPUs. */
unsigned step_through(const struct step_window *window, void (*scenario)(void *), void *argument);
/* Runs the scenario once, without the event, and calls look with each instruction before it is
 * executed. Interrupts are off. */
void step_look(const struct step_window *window, void (*look)(const uint8_t *instruction),
               void (*scenario)(void *), void *argument);
/* Whether it has come in this run of the scenario. */
bool step_came(void);
/* Starts a thread on this CPU, as important as the caller, for STEP_SWITCH; ends it. */
struct thread *step_partner(void (*function)(void));
/* Until its function has ended, which a tick may interrupt. */
void step_partner_wait(void);
void step_partner_end(struct thread *partner);
