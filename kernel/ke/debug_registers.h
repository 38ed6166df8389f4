/* SPDX-License-Identifier: MIT */
/* Debug registers of threads of ring 3, as CONTEXT shows them, and the last branch of a thread that
 * asks for it. They are in the processor while the thread runs, in ring 0 too. What is kept of the
 * values was observed of Windows: of Dr7 the local enables, LE, GE, R/W and LEN, of Dr6 bits 3:0
 * and 15:13; an address that is not ring 3's becomes 0. LE (bit 8) records the thread's last
 * branch, GE (bit 9) has TF step from branch to branch, where the processor has that.
 * NT: kept as written also while nothing is enabled. Breakpoints on ports, which ring 3 does not
 * have, hit nothing. In ring 0 nothing is reported. */
#pragma once
#include "hal/branches.h"
#include "kernel/nt/nt_context.h"

struct thread;
struct trap_frame;

struct debug_registers {
    uint64_t address[4], dr6, dr7;
    uint64_t control;                    /* DEBUGCTL's bits that LE and GE have set */
    struct hal_branch last;              /* of ring 3 to ring 3; 0: none is known */
    struct hal_branch exception, before; /* that before the last exception; what was there first */
};

/* The parts of a context; the thread is the current one or runs nowhere. */
void debug_get(const struct thread *thread, CONTEXT *context);
void debug_set(struct thread *thread, const CONTEXT *context);
/* In a switch, if either thread uses them. */
void debug_switch(struct thread *from, struct thread *to);
/* #DB came out of ring 3: notes why in the thread's Dr6, and its last branch. Interrupts off. */
void debug_trapped(void);
/* #DB came in ring 0, at any instruction of it: whether ring 3 is its cause. It needs no more. */
bool debug_is_users(const struct trap_frame *frame);
