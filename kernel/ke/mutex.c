/* SPDX-License-Identifier: MIT */
#include "kernel/ke/mutex.h"
#include "kernel/base/upcalls.h"
#include "kernel/base/assert.h"
#include "kernel/base/list.h"
#include "kernel/base/print.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"

static unsigned abandoned; /* atomic */

/* L: dispatcher lock, but a thread may ask without it whether it is the owner itself. */
static void set_owner(struct mutex *mutex, struct thread *thread)
{
    __atomic_store_n(&mutex->owner, thread, __ATOMIC_RELAXED);
}

/* L: dispatcher lock */
static void give_to(struct mutex *mutex, struct thread *thread)
{
    set_owner(mutex, thread);
    mutex->next = thread->held;
    thread->held = mutex;
}

/* The header is that of a synchronization event, signaled only to hand the mutex over. */
static void wait_for_turn(struct mutex *mutex, KIRQL irql)
{
    KWAIT_BLOCK block;
    PVOID header = &mutex->header;
    const struct wait wait = { &header, 1, WaitAny, WrMutex, KernelMode, WAIT_FOREVER, &block };
    if (!mutex->header.WaitListHead.Flink)
        InitializeListHead(&mutex->header.WaitListHead);
    mutex->header.Type = EventSynchronizationObject;
    wait_locked(&wait, irql);
}

void mutex_acquire(struct mutex *mutex)
{
    struct thread *me = thread_current();
    if (__atomic_load_n(&mutex->owner, __ATOMIC_RELAXED) == me)
        panic("%s taken twice by thread %s", mutex->name, me->name);
    KIRQL irql = sched_lock();
    if (mutex->owner) {
        wait_for_turn(mutex, irql);
    } else {
        give_to(mutex, me);
        sched_unlock(irql);
    }
}

/* L: dispatcher lock. The next thread owns the mutex before it runs, because it may be ended
 * before it runs. */
static void hand_over(struct mutex *mutex)
{
    const LIST_ENTRY *waiters = &mutex->header.WaitListHead;
    set_owner(mutex, NULL);
    if (!waiters->Flink || IsListEmpty(waiters))
        return;
    give_to(mutex, CONTAINING_RECORD(waiters->Flink, KWAIT_BLOCK, WaitListEntry)->Thread);
    dispatcher_set(&mutex->header, 1);
    wait_signaled(&mutex->header);
}

static void give_up(struct thread *me)
{
    KIRQL irql = sched_lock();
    struct mutex *mutex = me->held;
    me->held = mutex->next;
    hand_over(mutex);
    sched_unlock(irql);
}

void mutex_release(struct mutex *mutex)
{
    struct thread *me = thread_current();
    ASSERT(mutex->owner == me && me->held == mutex);
    give_up(me);
    if (thread_must_end(me))
        wait_killed();
}

void mutex_abandon(void)
{
    for (struct thread *me = thread_current(); me->held; give_up(me)) {
        print("# thread %s ended inside %s\n", me->name, me->held->name);
        __atomic_fetch_add(&abandoned, 1, __ATOMIC_RELAXED);
    }
}

unsigned mutex_abandoned(void) { return __atomic_load_n(&abandoned, __ATOMIC_RELAXED); }
