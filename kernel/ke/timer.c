/* SPDX-License-Identifier: MIT */
/* The list of set timers, in the order of their times. */
#include "kernel/ke/timer.h"
#include "hal/machine/clock.h"
#include "kernel/base/upcalls.h"
#include "kernel/base/list.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/wait.h"

#define NS_PER_MS 1000000ul

static LIST_ENTRY timers = { &timers, &timers };

static KTIMER *timer_of(LIST_ENTRY *e) { return CONTAINING_RECORD(e, KTIMER, TimerListEntry); }

const KTIMER *timer_next(const KTIMER *timer)
{
    LIST_ENTRY *e = timer ? timer->TimerListEntry.Flink : timers.Flink;
    return e == &timers ? NULL : timer_of(e);
}

static void changed(void)
{
    wait_set_timers(IsListEmpty(&timers) ? WAIT_FOREVER : timer_of(timers.Flink)->DueTime);
}

static void unlink(KTIMER *timer)
{
    RemoveEntryList(&timer->TimerListEntry);
    timer->TimerListEntry.Flink = NULL;
}

static void link(KTIMER *timer)
{
    LIST_ENTRY *e = timers.Flink;
    while (e != &timers && timer_of(e)->DueTime <= timer->DueTime)
        e = e->Flink;
    InsertTailList(e, &timer->TimerListEntry);
}

static void come(KTIMER *timer, uint64_t now)
{
    unlink(timer);
    uint64_t period = timer->Period * NS_PER_MS, due = timer->DueTime;
    if (period) {
        timer->DueTime += ((now - due) / period + 1) * period;
        link(timer);
    }
    dispatcher_signal(&timer->Header);
    if (timer->Dpc)
        timer_dpc(timer->Dpc);
}

static void expire(uint64_t now)
{
    while (!IsListEmpty(&timers) && timer_of(timers.Flink)->DueTime <= now)
        come(timer_of(timers.Flink), now);
    changed();
}

bool timer_set(KTIMER *timer, uint64_t due_ns, ULONG period)
{
    bool was = timer_cancel(timer);
    dispatcher_set(&timer->Header, 0);
    timer->DueTime = due_ns;
    timer->Period = period;
    link(timer);
    expire(clock_ns());
    return was;
}

/* Most ticks find nothing to do and take no lock: where each instruction is single-stepped, a
 * tick must be over before the next one comes. */
void timer_tick(void)
{
    uint64_t now = clock_ns();
    if (now < __atomic_load_n(&wait_first_ns, __ATOMIC_RELAXED))
        return;
    KIRQL irql = sched_lock();
    wait_expire(now);
    expire(now);
    sched_unlock(irql);
}

bool timer_cancel(KTIMER *timer)
{
    bool was = timer_is_set(timer);
    if (was) {
        unlink(timer);
        changed();
    }
    return was;
}
