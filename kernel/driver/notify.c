/* SPDX-License-Identifier: MIT */
/* Routines that drivers have called when threads and processes begin and end. Slots are written
 * under notify_lock and read without it; the removal of a routine waits until no processor runs
 * it. Source: the Windows driver documentation. */
#include "kernel/base/assert.h"
#include "kernel/base/upcalls.h"
#include "kernel/base/irql.h"
#include "kernel/base/lock.h"
#include "kernel/base/print.h"
#include "kernel/base/refuse.h"
#include "kernel/driver/driver.h"
#include "kernel/ke/process.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"

#define NOTIFY_MAX 64
#define STATUS_PROCEDURE_NOT_FOUND ((NTSTATUS)0xC000007A)

typedef VOID(NTAPI *notify_routine)(HANDLE, HANDLE, BOOLEAN);

struct kind {
    const char *name;
    notify_routine routines[NOTIFY_MAX]; /* atomic */
    uint32_t running;                    /* atomic */
};

static struct kind of_threads = { .name = "thread" }, of_processes = { .name = "process" };
static struct lock notify_lock = LOCK("notify routines", DISPATCH_LEVEL);

static void call_notify_routines(struct kind *kind, uint64_t a, uint64_t b, bool create)
{
    struct driver_call call;
    __atomic_fetch_add(&kind->running, 1, __ATOMIC_ACQ_REL);
    for (unsigned i = 0; i < NOTIFY_MAX; i++) {
        notify_routine routine = __atomic_load_n(&kind->routines[i], __ATOMIC_ACQUIRE);
        if (!routine)
            continue;
        driver_enter(&call, routine);
        routine((HANDLE)a, (HANDLE)b, create);
        driver_leave(&call);
    }
    __atomic_fetch_sub(&kind->running, 1, __ATOMIC_ACQ_REL);
}

/* A process's first thread is its beginning. NT: the parent is process 0. */
static void thread_event(struct thread *thread, bool create)
{
    struct process *process = thread->process;
    if (create && process && !__atomic_exchange_n(&process->announced, true, __ATOMIC_ACQ_REL))
        call_notify_routines(&of_processes, 0, PROCESS_ID, true);
    call_notify_routines(&of_threads, process ? PROCESS_ID : 0, thread->id, create);
}

static void process_event(struct process *)
{
    call_notify_routines(&of_processes, 0, PROCESS_ID, false);
}

/* L: notify_lock */
static notify_routine *find_slot(struct kind *kind, notify_routine routine)
{
    for (unsigned i = 0; i < NOTIFY_MAX; i++)
        if (kind->routines[i] == routine)
            return &kind->routines[i];
    return NULL;
}

/* False: there are too many; or, if it may be there once, it is. */
static bool add_routine(struct kind *kind, notify_routine routine, bool once)
{
    KIRQL irql = lock_acquire(&notify_lock);
    bool refused = claim_fails() || (once && find_slot(kind, routine));
    notify_routine *slot = refused ? NULL : find_slot(kind, NULL);
    if (slot)
        __atomic_store_n(slot, routine, __ATOMIC_RELEASE);
    lock_release(&notify_lock, irql);
    thread_notify = thread_event;
    process_notify_end = process_event;
    return slot;
}

static bool remove_routine(struct kind *kind, notify_routine routine)
{
    KIRQL irql = lock_acquire(&notify_lock);
    notify_routine *slot = routine ? find_slot(kind, routine) : NULL;
    if (slot)
        __atomic_store_n(slot, NULL, __ATOMIC_RELEASE);
    lock_release(&notify_lock, irql);
    while (slot && __atomic_load_n(&kind->running, __ATOMIC_ACQUIRE))
        sched_switch(WrYieldExecution);
    return slot;
}

/* STATUS_INSUFFICIENT_RESOURCES: there are 64. */
NTSTATUS PsSetCreateThreadNotifyRoutine(notify_routine NotifyRoutine)
{
    return add_routine(&of_threads, NotifyRoutine, false) ? STATUS_SUCCESS
                                                          : STATUS_INSUFFICIENT_RESOURCES;
}

/* STATUS_PROCEDURE_NOT_FOUND. */
NTSTATUS PsRemoveCreateThreadNotifyRoutine(notify_routine NotifyRoutine)
{
    return remove_routine(&of_threads, NotifyRoutine) ? STATUS_SUCCESS : STATUS_PROCEDURE_NOT_FOUND;
}

/* STATUS_INVALID_PARAMETER, as documented: it is registered already, 64 are, or the one to remove
 * is not. */
NTSTATUS PsSetCreateProcessNotifyRoutine(notify_routine NotifyRoutine, BOOLEAN Remove)
{
    bool done = Remove ? remove_routine(&of_processes, NotifyRoutine)
                       : add_routine(&of_processes, NotifyRoutine, true);
    return done ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}

void routines_left(struct driver *driver)
{
    const struct kind *const kinds[] = { &of_threads, &of_processes };
    for (unsigned k = 0; k < 2; k++)
        for (unsigned i = 0; i < NOTIFY_MAX; i++) {
            char place[96];
            uint64_t routine = (uint64_t)kinds[k]->routines[i];
            if (!routine || driver_at(routine) != driver)
                continue;
            driver_place(routine, place, sizeof place);
            driver_left(driver, "a %s notify routine, %s", kinds[k]->name, place);
        }
}
