/* SPDX-License-Identifier: MIT */
/* Waits: for one object, for any or all of several, for a time. Each object begins with a
 * DISPATCHER_HEADER. A wait costs one context switch, or none if it is satisfied at once. */
#pragma once
#include "kernel/nt/nt_dispatcher.h"
#include "kernel/ke/object.h"

#define WAIT_FOREVER UINT64_MAX

/* Lives on the waiter's stack. */
struct wait {
    PVOID const *objects;
    unsigned count; /* 0: only the time */
    WAIT_TYPE type; /* WaitAny for 0 */
    KWAIT_REASON reason;
    KPROCESSOR_MODE mode; /* UserMode: the end of the thread ends the wait too */
    uint64_t wake_ns;     /* by clock_ns; a time that is past: do not wait; or WAIT_FOREVER */
    KWAIT_BLOCK *blocks;  /* `count` of them */
};

/* STATUS_WAIT_0 + which one it was (WaitAll: STATUS_WAIT_0), STATUS_ABANDONED_WAIT_0 + which one if
 * that was a mutant whose owner ended (WaitAll: STATUS_ABANDONED_WAIT_0 if one of them),
 * STATUS_TIMEOUT (0 objects: STATUS_SUCCESS), STATUS_MUTANT_LIMIT_EXCEEDED,
 * STATUS_THREAD_IS_TERMINATING. IRQL < DISPATCH_LEVEL. */
NTSTATUS wait_for(const struct wait *wait);

/* L: dispatcher lock, these (sched.h). */
/* wait_for, for a caller that holds the lock; it is released. */
NTSTATUS wait_locked(const struct wait *wait, KIRQL irql);
/* Wakes the threads that wait for an object that was just signaled, in the order of their waits,
 * until it is no longer signaled. */
void wait_signaled(DISPATCHER_HEADER *header);
/* Ends a thread's wait with a status. */
void wait_end(struct thread *thread, NTSTATUS status);
/* Makes a thread look at what is asked of it: ends its wait with the status if that is a UserMode
 * wait, interrupts it if it runs, lets it go on if it is suspended. */
void wait_notice(struct thread *thread, NTSTATUS status);
/* Ends the waits whose time is over. */
void wait_expire(uint64_t now);
/* For timer.c: when the first timer is due. */
void wait_set_timers(uint64_t first_ns);
/* When the first wait ends or the first timer is due. Atomic; the lock is needed to write it. */
extern uint64_t wait_first_ns;

/* Ends the current thread at once. Without the lock. */
__attribute__((noreturn)) void wait_die(void);
/* Signals an object for good. */
void wait_signal(struct object *object);
/* Stops the current thread while it is suspended and need not end. */
void wait_while_suspended(void);
/* Ends the wait of a thread that has been asked to end; if the thread does not wait, makes it
 * check that soon. */
void wait_interrupt(struct thread *thread);

/* Waits until the object is signaled or clock_ns reaches wake_ns. NULL: waits for the time only.
 * For kernel threads. */
NTSTATUS sched_wait(struct object *object, uint64_t wake_ns, KWAIT_REASON reason);
