/* SPDX-License-Identifier: MIT */
/* Timers: KTIMERs of drivers (kernel/driver/dpc.c) and those in ring 3's objects
 * (timer_services.c). One list; the dispatcher lock (sched.h) guards all of it, and callers hold
 * it. */
#pragma once
#include <stdbool.h>
#include "kernel/nt/nt_dispatcher.h"

struct thread;

/* Ring 3's. The call is of the thread that set the timer. */
struct user_timer {
    KTIMER timer;
    LIST_ENTRY link;       /* thread->timers */
    struct thread *thread; /* NULL: no call */
    PVOID routine, context;
    bool queued; /* the call waits in the thread's queue */
};

/* The timer interrupt's: ends the waits whose time is over, and signals the timers that are due.
 * Takes the lock itself, as no other routine here. */
void timer_tick(void);
/* From here on not signaled, and signaled when clock_ns reaches due_ns: at once if that is past;
 * then each `period` milliseconds, of which it leaves out those that have gone; 0: no more. True:
 * it was set already. */
bool timer_set(KTIMER *timer, uint64_t due_ns, ULONG period);
/* True: it was set. Its state stays. */
bool timer_cancel(KTIMER *timer);
static inline bool timer_is_set(const KTIMER *timer) { return timer->TimerListEntry.Flink; }
/* The set timer that comes after this one, or first; NULL: there is none. */
const KTIMER *timer_next(const KTIMER *timer);
/* Parts it from the thread that set it. */
void timer_part(struct user_timer *timer);
/* Cancels the timers whose calls are the thread's, which ends. */
void timer_thread_ends(struct thread *thread);

/* Set by whoever sets timers of the kind: what comes when one with a DPC, or one of ring 3 with a
 * thread, expires. DISPATCH_LEVEL. */
extern void (*timer_dpc)(struct _KDPC *dpc);
extern void (*timer_call)(struct user_timer *timer);
