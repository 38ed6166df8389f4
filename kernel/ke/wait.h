/* SPDX-License-Identifier: MIT */
/* Waiting: for one object, for several, for any or all of them, for a time. What is waited for
 * begins with a DISPATCHER_HEADER. One wait is one switch, and none if it need not wait. */
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
    uint64_t wake_ns;     /* by clock_ns; past: nothing is waited for; WAIT_FOREVER */
    KWAIT_BLOCK *blocks;  /* `count` of them */
    bool alertable;       /* UserMode: a call that is queued to the thread (suspend.h) ends it */
};

/* STATUS_WAIT_0 + which one it was (WaitAll: STATUS_WAIT_0), STATUS_ABANDONED_WAIT_0 + which one if
 * that was a mutant whose owner ended (WaitAll: STATUS_ABANDONED_WAIT_0 if one of them),
 * STATUS_TIMEOUT (0 objects: STATUS_SUCCESS), STATUS_MUTANT_LIMIT_EXCEEDED,
 * STATUS_THREAD_IS_TERMINATING, STATUS_USER_APC. IRQL < DISPATCH_LEVEL. */
NTSTATUS wait_for(const struct wait *wait);

/* The rest under the dispatcher lock (sched.h). */

/* The same, and lets go of the lock, which the caller took. */
NTSTATUS wait_locked(const struct wait *wait, KIRQL irql);
/* Wakes who waits for an object that was just signaled, those who came first first, as many as it
 * lasts for. */
void wait_signaled(DISPATCHER_HEADER *header);
/* Ends a thread's wait with a status. */
void wait_end(struct thread *thread, NTSTATUS status);
/* The same of a UserMode wait; a thread that runs is made to look at what is asked of it, one that is suspended goes on. */
void wait_notice(struct thread *thread, NTSTATUS status);
/* A thread's wait that is never to go on. */
void wait_unlink(struct thread *thread);
/* The thread has ended: its mutants are abandoned, and who waits for it goes on. */
void wait_mark_dead(struct thread *thread);

/* Ends the current thread at once. Without the lock. */
__attribute__((noreturn)) void wait_die(void);
/* Signals an object for good. */
void wait_signal(struct object *object);
/* Ends waits whose time has come. From the timer interrupt. */
void wait_expire(void);
/* Stops the current thread while it is suspended and need not end. */
void wait_while_suspended(void);
/* Ends the wait of a thread that has been asked to end, or sees to it that it notices. */
void wait_interrupt(struct thread *thread);

/* At boot: ends the current thread if it must end (thread_must_end). Called before a wait and after a mutex. */
extern void (*wait_killed)(void);

/* Waits until the object is signaled or clock_ns reaches wake_ns. NULL: only the time. For kernel
 * threads. */
NTSTATUS sched_wait(struct object *object, uint64_t wake_ns, KWAIT_REASON reason);
