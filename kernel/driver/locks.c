/* SPDX-License-Identifier: MIT */
/* Fast mutexes, spin locks with a handle, lists with a lock. Source: the Windows driver
 * documentation. */
#include "kernel/base/irql.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/thread.h"

#define SELF_DEADLOCK 0x1000u /* of Driver Verifier's deadlock detection */
#define WRONG_THREAD 0x1004u

/* --- Fast mutexes. ExInitializeFastMutex is inline in drivers. --- */

/* Atomic; 1: it is free. */
static bool take_free(PFAST_MUTEX mutex)
{
    LONG one = 1;
    return __atomic_compare_exchange_n(&mutex->Count, &one, 0, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static void own_mutex(PFAST_MUTEX mutex, KIRQL old)
{
    mutex->Owner = thread_current();
    mutex->OldIrql = old;
}

/* Returns at APC_LEVEL. A bug check if the thread has the mutex already (NT: Windows waits for
 * ever, unless Driver Verifier is on). */
VOID ExAcquireFastMutex(PFAST_MUTEX FastMutex)
{
    KIRQL old = irql_raise(APC_LEVEL);
    if (FastMutex->Owner == thread_current())
        bug_check(DRIVER_VERIFIER_DETECTED_VIOLATION,
                  (uint64_t[]){ SELF_DEADLOCK, (uint64_t)FastMutex, 0, 0 },
                  "ExAcquireFastMutex of a fast mutex that this thread has already");
    if (__atomic_sub_fetch(&FastMutex->Count, 1, __ATOMIC_ACQUIRE)) {
        __atomic_fetch_add(&FastMutex->Contention, 1, __ATOMIC_RELAXED);
        KeWaitForSingleObject(&FastMutex->Event, WrFastMutex, KernelMode, FALSE, NULL);
    }
    own_mutex(FastMutex, old);
}

BOOLEAN ExTryToAcquireFastMutex(PFAST_MUTEX FastMutex)
{
    KIRQL old = irql_raise(APC_LEVEL);
    bool taken = take_free(FastMutex);
    if (taken)
        own_mutex(FastMutex, old);
    else
        irql_lower(old);
    return taken;
}

VOID ExReleaseFastMutex(PFAST_MUTEX FastMutex)
{
    KIRQL old = (KIRQL)FastMutex->OldIrql;
    if (FastMutex->Owner != thread_current())
        bug_check(DRIVER_VERIFIER_DETECTED_VIOLATION,
                  (uint64_t[]){ WRONG_THREAD, (uint64_t)FastMutex, 0, 0 },
                  "ExReleaseFastMutex of a fast mutex that another thread has, or none");
    FastMutex->Owner = NULL;
    if (__atomic_add_fetch(&FastMutex->Count, 1, __ATOMIC_RELEASE) <= 0)
        KeSetEvent(&FastMutex->Event, 0, FALSE);
    irql_lower(old);
}

/* --- In-stack queued spin locks. NT: waiters are not queued. --- */

VOID KeAcquireInStackQueuedSpinLock(PKSPIN_LOCK SpinLock, PKLOCK_QUEUE_HANDLE LockHandle)
{
    LockHandle->Lock = SpinLock;
    LockHandle->OldIrql = KeAcquireSpinLockRaiseToDpc(SpinLock);
}

VOID KeReleaseInStackQueuedSpinLock(PKLOCK_QUEUE_HANDLE LockHandle)
{
    KeReleaseSpinLock(LockHandle->Lock, LockHandle->OldIrql);
}

VOID KeAcquireInStackQueuedSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock, PKLOCK_QUEUE_HANDLE LockHandle)
{
    LockHandle->Lock = SpinLock;
    KeAcquireSpinLockAtDpcLevel(SpinLock);
}

VOID KeReleaseInStackQueuedSpinLockFromDpcLevel(PKLOCK_QUEUE_HANDLE LockHandle)
{
    KeReleaseSpinLockFromDpcLevel(LockHandle->Lock);
}

/* --- Lists. The lock is taken at HIGH_LEVEL: any IRQL may use them. --- */

static KIRQL enter_list(PKSPIN_LOCK lock)
{
    KIRQL old = irql_raise(HIGH_LEVEL);
    KeAcquireSpinLockAtDpcLevel(lock);
    return old;
}

/* NULL instead of the head itself: the list was empty. */
static PLIST_ENTRY leave_list(PKSPIN_LOCK lock, KIRQL old, PLIST_ENTRY head, PLIST_ENTRY entry)
{
    KeReleaseSpinLockFromDpcLevel(lock);
    irql_lower(old);
    return entry == head ? NULL : entry;
}

/* The entry that was the first; NULL: the list was empty. */
PLIST_ENTRY ExInterlockedInsertHeadList(PLIST_ENTRY ListHead, PLIST_ENTRY ListEntry,
                                        PKSPIN_LOCK Lock)
{
    KIRQL old = enter_list(Lock);
    PLIST_ENTRY first = ListHead->Flink;
    InsertHeadList(ListHead, ListEntry);
    return leave_list(Lock, old, ListHead, first);
}

/* The entry that was the last; NULL: the list was empty. */
PLIST_ENTRY ExInterlockedInsertTailList(PLIST_ENTRY ListHead, PLIST_ENTRY ListEntry,
                                        PKSPIN_LOCK Lock)
{
    KIRQL old = enter_list(Lock);
    PLIST_ENTRY last = ListHead->Blink;
    InsertTailList(ListHead, ListEntry);
    return leave_list(Lock, old, ListHead, last);
}

/* The entry that was the first; NULL: the list is empty. */
PLIST_ENTRY ExInterlockedRemoveHeadList(PLIST_ENTRY ListHead, PKSPIN_LOCK Lock)
{
    KIRQL old = enter_list(Lock);
    PLIST_ENTRY first = ListHead->Flink;
    RemoveEntryList(first); /* of an empty list: the head itself, which stays as it is */
    return leave_list(Lock, old, ListHead, first);
}
