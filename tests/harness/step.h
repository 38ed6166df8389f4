/* SPDX-License-Identifier: MIT */
/* Windows of a few instructions of ring 0: what comes at each of them. A breakpoint (DR0) finds the
 * window's first instruction, single steps the others, those of functions that it calls among
 * them. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/nt/nt.h"

struct thread;

enum step_event {
    STEP_NMI,   /* comes at any instruction */
    STEP_SWITCH /* by an interrupt, where those and the IRQL allow it, to step_partner's function,
                 * which then runs once */
};

/* A function or gate, until it has returned. */
struct step_window {
    const void *from;
    enum step_event event;
    unsigned left_out;           /* so many instructions after each at which the event comes, but
                                  * not the first after those at which a switch cannot come */
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

/* Two calls that work on one object, the second while the first is under way. */
struct collision {
    const char *name;
    void (*in)(void);    /* the function of the first call in which the second comes */
    bool (*begin)(void); /* makes the object; NULL: it is there */
    NTSTATUS (*first)(void), (*second)(void);
    /* What each says if the other one won; STATUS_SUCCESS: it cannot lose. One: exactly one wins,
     * else at least one does. */
    NTSTATUS lost[2];
    bool one;
    NTSTATUS alone;    /* what the first says if the second never comes */
    void (*end)(void); /* checks what is left and takes it away; NULL: nothing */
};
#define COLLISION(function, from, call, other, at_end, ...)                                        \
    {                                                                                              \
        .name = #call ", " #other, .in = (void (*)(void))(function), .begin = from, .first = call, \
        .second = other, .end = at_end, __VA_ARGS__                                                \
    }
#define ONE_WINS(other_says) .lost = { other_says, other_says }, .one = true
#define LOSES(if_second_won, if_first_won) .lost = { if_second_won, if_first_won }
#define BOTH_WIN .lost = { 0, 0 }
/* Each row on this CPU, again and again: the second call comes at those instructions of the first
 * at which threads can be switched and could not just before, and at few others; at more if the
 * run is long. */
void step_collide(const struct collision *rows, unsigned count);
#define STEP_COLLIDE(rows) step_collide(rows, sizeof(rows) / sizeof *(rows))
