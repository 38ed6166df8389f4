/* SPDX-License-Identifier: MIT */
/* Timers: KTIMERs of drivers (kernel/driver/dpc.c) and those in ring 3's objects
 * (timer_services.c). The dispatcher lock (sched.h) guards them. */
#pragma once
#include <stdbool.h>
#include "kernel/nt/nt_dispatcher.h"

/* The timer interrupt's: ends the waits whose time is over, and signals the timers that are due.
 * Takes the lock itself. */
void timer_tick(void);

/* L: dispatcher lock, these. */
/* Sets the timer, which is not signaled until clock_ns reaches due_ns (at once if that is past),
 * then every `period` milliseconds, missed periods left out; 0: once. True: it was set already. */
bool timer_set(KTIMER *timer, uint64_t due_ns, ULONG period);
/* True: it was set. Its state stays. */
bool timer_cancel(KTIMER *timer);
static inline bool timer_is_set(const KTIMER *timer) { return timer->TimerListEntry.Flink; }
/* The set timer that comes after this one, or first; NULL: there is none. */
const KTIMER *timer_next(const KTIMER *timer);
