/* SPDX-License-Identifier: MIT */
/* Waits. The dispatcher lock of sched.h guards every DISPATCHER_HEADER, the lists of waiters and
 * the list of those with a deadline; a wait holds it from the test of the objects until the
 * thread has been switched out. */
#include "kernel/ke/wait.h"
#include "hal/machine/clock.h"
#include "kernel/base/upcalls.h"
#include "kernel/base/assert.h"
#include "kernel/base/irql.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"

/* L: dispatcher lock; links are struct thread.sleep; in the order of their wake-up times */
static LIST_ENTRY sleepers = { &sleepers, &sleepers };
uint64_t wait_first_ns = WAIT_FOREVER;
static uint64_t first_timer_ns = WAIT_FOREVER; /* L: dispatcher lock */

/* --- What a wait takes. --- */

static bool can_take(const DISPATCHER_HEADER *h, const struct thread *thread)
{
    return h->SignalState > 0 ||
           (h->Type == MutantObject && ((const KMUTANT *)h)->OwnerThread == thread);
}

/* STATUS_ABANDONED: the thread that had it ended. */
static NTSTATUS take_mutant(KMUTANT *mutant, struct thread *thread)
{
    bool abandoned = mutant->Abandoned;
    LONG state = mutant->Header.SignalState - 1;
    dispatcher_set(&mutant->Header, state);
    if (state < 0)
        return STATUS_SUCCESS;
    mutant->OwnerThread = thread;
    mutant->Abandoned = FALSE;
    InsertTailList(&thread->mutants, &mutant->MutantListEntry);
    return abandoned ? STATUS_ABANDONED : STATUS_SUCCESS;
}

static NTSTATUS take_object(DISPATCHER_HEADER *h, struct thread *thread)
{
    if (h->Type == MutantObject)
        return take_mutant((KMUTANT *)h, thread);
    if (h->Type == EventSynchronizationObject || h->Type == TimerSynchronizationObject)
        dispatcher_set(h, 0);
    else if (h->Type == SemaphoreObject)
        dispatcher_set(h, h->SignalState - 1);
    return STATUS_SUCCESS;
}

/* --- What a wait needs. STATUS_PENDING: more than there is. --- */

static NTSTATUS take_any(const struct wait *w, struct thread *thread)
{
    for (unsigned i = 0; i < w->count; i++)
        if (can_take(w->objects[i], thread))
            return take_object(w->objects[i], thread) + (NTSTATUS)i;
    return STATUS_PENDING;
}

/* All or none. */
static NTSTATUS take_all(const struct wait *w, struct thread *thread)
{
    NTSTATUS status = STATUS_SUCCESS;
    for (unsigned i = 0; i < w->count; i++)
        if (!can_take(w->objects[i], thread))
            return STATUS_PENDING;
    for (unsigned i = 0; i < w->count; i++)
        status |= take_object(w->objects[i], thread);
    return status;
}

static NTSTATUS take_needed(const struct wait *w, struct thread *thread)
{
    return w->type == WaitAny ? take_any(w, thread) : take_all(w, thread);
}

/* --- The lists. --- */

static struct thread *first_sleeper(void)
{
    return CONTAINING_RECORD(sleepers.Flink, struct thread, sleep);
}

static void sleepers_changed(void)
{
    uint64_t ns = IsListEmpty(&sleepers) ? WAIT_FOREVER : first_sleeper()->wait->wake_ns;
    __atomic_store_n(&wait_first_ns, ns < first_timer_ns ? ns : first_timer_ns, __ATOMIC_RELAXED);
}

void wait_set_timers(uint64_t first_ns)
{
    first_timer_ns = first_ns;
    sleepers_changed();
}

static void link_sleeper(struct thread *me)
{
    LIST_ENTRY *next = sleepers.Flink;
    while (next != &sleepers &&
           CONTAINING_RECORD(next, struct thread, sleep)->wait->wake_ns <= me->wait->wake_ns)
        next = next->Flink;
    InsertTailList(next, &me->sleep);
    sleepers_changed();
}

static void link(struct thread *me, const struct wait *w)
{
    me->wait = w;
    for (unsigned i = 0; i < w->count; i++) {
        DISPATCHER_HEADER *h = w->objects[i];
        w->blocks[i] = (KWAIT_BLOCK){
            .WaitType = (UCHAR)w->type, .WaitKey = (USHORT)i, .Thread = me, .Object = h
        };
        InsertTailList(&h->WaitListHead, &w->blocks[i].WaitListEntry);
    }
    if (w->wake_ns != WAIT_FOREVER)
        link_sleeper(me);
}

static void unlink(struct thread *thread)
{
    const struct wait *w = thread->wait;
    for (unsigned i = 0; i < w->count; i++)
        RemoveEntryList(&w->blocks[i].WaitListEntry);
    if (w->wake_ns != WAIT_FOREVER) {
        RemoveEntryList(&thread->sleep);
        sleepers_changed();
    }
    thread->wait = NULL;
}

void wait_end(struct thread *thread, NTSTATUS status)
{
    unlink(thread);
    thread->wait_status = status;
    sched_make_ready(thread);
}

/* --- Waking. --- */

void wait_signaled(DISPATCHER_HEADER *h)
{
    for (LIST_ENTRY *e = h->WaitListHead.Flink; e != &h->WaitListHead && h->SignalState > 0;) {
        struct thread *thread = CONTAINING_RECORD(e, KWAIT_BLOCK, WaitListEntry)->Thread;
        NTSTATUS status = take_needed(thread->wait, thread);
        e = e->Flink;
        if (status == STATUS_PENDING)
            continue;
        wait_end(thread, status);
        e = h->WaitListHead.Flink; /* another entry of the same thread may have been the next */
    }
}

static void abandon(struct thread *thread)
{
    while (!IsListEmpty(&thread->mutants)) {
        KMUTANT *mutant = CONTAINING_RECORD(thread->mutants.Flink, KMUTANT, MutantListEntry);
        if (mutant->ApcDisable && !thread->killed)
            panic("THREAD_TERMINATE_HELD_MUTEX: %s ends and has the kernel mutex %p", thread->name,
                  mutant);
        RemoveEntryList(&mutant->MutantListEntry);
        dispatcher_set(&mutant->Header, 1);
        mutant->OwnerThread = NULL;
        mutant->Abandoned = TRUE;
        wait_signaled(&mutant->Header);
    }
}

void wait_signal(struct object *object)
{
    KIRQL irql = sched_lock();
    dispatcher_set(&object->header, 1);
    wait_signaled(&object->header);
    sched_unlock(irql);
}

static void mark_dead(struct thread *thread)
{
    thread->state = THREAD_DEAD;
    thread->ended = clock_ns();
    abandon(thread);
    dispatcher_set(&thread->object.header, 1);
    wait_signaled(&thread->object.header);
}

/* L: dispatcher lock */
__attribute__((noreturn)) static void die_locked(KIRQL irql)
{
    mark_dead(thread_current());
    sched_switch_locked(irql, WrTerminated);
    __builtin_unreachable();
}

void wait_die(void) { die_locked(sched_lock()); }

void wait_expire(uint64_t now)
{
    while (!IsListEmpty(&sleepers) && first_sleeper()->wait->wake_ns <= now) {
        struct thread *first = first_sleeper();
        wait_end(first, first->wait->count ? STATUS_TIMEOUT : STATUS_SUCCESS);
    }
}

void wait_notice(struct thread *thread, NTSTATUS status)
{
    if (thread->state == THREAD_WAITING && thread->wait->mode == UserMode)
        wait_end(thread, status);
    else if (thread->state == THREAD_SUSPENDED)
        sched_make_ready(thread);
    else if (thread->state == THREAD_RUNNING)
        sched_reschedule(thread->cpu);
}

void wait_interrupt(struct thread *thread)
{
    KIRQL irql = sched_lock();
    wait_notice(thread, STATUS_THREAD_IS_TERMINATING);
    sched_unlock(irql);
}

/* --- Waiting. --- */

static bool at_limit(const struct wait *w, const struct thread *me)
{
    for (unsigned i = 0; i < w->count; i++) {
        const KMUTANT *mutant = w->objects[i];
        if (mutant->Header.Type == MutantObject && mutant->OwnerThread == me &&
            mutant->Header.SignalState == INT32_MIN)
            return true;
    }
    return false;
}

/* STATUS_PENDING: the thread must wait. */
static NTSTATUS try_now(struct thread *me, const struct wait *w)
{
    if (w->mode == UserMode && __atomic_load_n(&me->terminate, __ATOMIC_ACQUIRE))
        return STATUS_THREAD_IS_TERMINATING;
    if (at_limit(w, me))
        return STATUS_MUTANT_LIMIT_EXCEEDED;
    NTSTATUS status = take_needed(w, me);
    if (status == STATUS_PENDING && w->wake_ns != WAIT_FOREVER && w->wake_ns <= clock_ns())
        status = w->count ? STATUS_TIMEOUT : STATUS_SUCCESS;
    return status;
}

void wait_while_suspended(void)
{
    struct thread *me = thread_current();
    KIRQL irql = sched_lock();
    while (me->suspended && !__atomic_load_n(&me->terminate, __ATOMIC_ACQUIRE) &&
           !thread_must_end(me)) {
        me->state = THREAD_SUSPENDED;
        sched_switch_locked(irql, Suspended);
        irql = sched_lock();
    }
    sched_unlock(irql);
}

NTSTATUS wait_locked(const struct wait *w, KIRQL irql)
{
    struct thread *me = thread_current();
    if (irql < DISPATCH_LEVEL && thread_must_end(me)) {
        sched_unlock(irql);
        wait_killed();
    }
    NTSTATUS status = try_now(me, w);
    if (status != STATUS_PENDING) {
        sched_unlock(irql);
        return status;
    }
    link(me, w);
    me->state = THREAD_WAITING;
    sched_switch_locked(irql, w->reason);
    if (me->wait_status != STATUS_KERNEL_APC)
        return me->wait_status;
    wait_while_suspended(); /* and then waits again */
    return wait_locked(w, sched_lock());
}

NTSTATUS wait_for(const struct wait *w)
{
    ASSERT(irql_current() < DISPATCH_LEVEL || (irql_current() == DISPATCH_LEVEL && !w->wake_ns));
    return wait_locked(w, sched_lock());
}

NTSTATUS sched_wait(struct object *object, uint64_t wake_ns, KWAIT_REASON reason)
{
    KWAIT_BLOCK block;
    PVOID header = object ? &object->header : NULL;
    const struct wait w = { &header, object ? 1 : 0, WaitAny, reason, KernelMode, wake_ns, &block };
    return wait_for(&w);
}
