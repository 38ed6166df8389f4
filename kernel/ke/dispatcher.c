/* SPDX-License-Identifier: MIT */
/* The Ke routines of dispatcher objects: events, semaphores, mutants. The waits are in wait.c.
 * The dispatcher lock guards all. */
#include "kernel/ke/dispatcher.h"
#include "hal/machine/clock.h"
#include "kernel/base/list.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"
#include "kernel/nt/nt_time.h"

#define THREAD_WAIT_OBJECTS 3 /* more need a WaitBlockArray */

static void initialize(DISPATCHER_HEADER *header, KOBJECTS type, size_t size, LONG state)
{
    *header = (DISPATCHER_HEADER){ .Type = (UCHAR)type,
                                   .Size = (UCHAR)(size / sizeof(ULONG)),
                                   .SignalState = state };
    InitializeListHead(&header->WaitListHead);
}

static LONG state_of(const DISPATCHER_HEADER *header)
{
    return __atomic_load_n(&header->SignalState, __ATOMIC_ACQUIRE);
}

LONG dispatcher_signal(DISPATCHER_HEADER *header)
{
    LONG before = header->SignalState;
    dispatcher_set(header, 1);
    wait_signaled(header);
    return before;
}

/* --- Events. --- */

VOID KeInitializeEvent(PRKEVENT Event, EVENT_TYPE Type, BOOLEAN State)
{
    initialize(&Event->Header,
               Type == NotificationEvent ? EventNotificationObject : EventSynchronizationObject,
               sizeof *Event, State != FALSE);
}

LONG KeSetEvent(PRKEVENT Event, KPRIORITY, BOOLEAN)
{
    KIRQL irql = sched_lock();
    LONG before = dispatcher_signal(&Event->Header);
    sched_unlock(irql);
    return before;
}

LONG KeResetEvent(PRKEVENT Event)
{
    KIRQL irql = sched_lock();
    LONG before = Event->Header.SignalState;
    dispatcher_set(&Event->Header, 0);
    sched_unlock(irql);
    return before;
}

VOID KeClearEvent(PRKEVENT Event) { KeResetEvent(Event); }
LONG KeReadStateEvent(PRKEVENT Event) { return state_of(&Event->Header); }

/* --- Semaphores. --- */

VOID KeInitializeSemaphore(PRKSEMAPHORE Semaphore, LONG Count, LONG Limit)
{
    initialize(&Semaphore->Header, SemaphoreObject, sizeof *Semaphore, Count);
    Semaphore->Limit = Limit;
}

static NTSTATUS release_semaphore(KSEMAPHORE *semaphore, LONG adjustment, LONG *previous)
{
    LONG before = semaphore->Header.SignalState;
    *previous = before;
    if (adjustment < 1 || adjustment > semaphore->Limit - before)
        return STATUS_SEMAPHORE_LIMIT_EXCEEDED;
    dispatcher_set(&semaphore->Header, before + adjustment);
    wait_signaled(&semaphore->Header);
    return STATUS_SUCCESS;
}

NTSTATUS semaphore_release(KSEMAPHORE *semaphore, LONG adjustment, LONG *previous)
{
    KIRQL irql = sched_lock();
    NTSTATUS status = release_semaphore(semaphore, adjustment, previous);
    sched_unlock(irql);
    return status;
}

/* --- Mutants. --- */

VOID KeInitializeMutant(PRKMUTANT Mutant, BOOLEAN InitialOwner)
{
    initialize(&Mutant->Header, MutantObject, sizeof *Mutant, 1);
    Mutant->OwnerThread = NULL;
    Mutant->Abandoned = FALSE;
    Mutant->ApcDisable = 0;
    if (InitialOwner)
        KeWaitForSingleObject(Mutant, Executive, KernelMode, FALSE, NULL);
}

VOID KeInitializeMutex(PRKMUTEX Mutex, ULONG)
{
    KeInitializeMutant(Mutex, FALSE);
    Mutex->ApcDisable = 1;
}

static NTSTATUS release_mutant(KMUTANT *mutant, LONG *previous)
{
    *previous = mutant->Header.SignalState;
    if (mutant->OwnerThread != thread_current())
        return STATUS_MUTANT_NOT_OWNED;
    if (++mutant->Header.SignalState < 1)
        return STATUS_SUCCESS;
    mutant->OwnerThread = NULL;
    RemoveEntryList(&mutant->MutantListEntry);
    wait_signaled(&mutant->Header);
    return STATUS_SUCCESS;
}

NTSTATUS mutant_release(KMUTANT *mutant, LONG *previous)
{
    KIRQL irql = sched_lock();
    NTSTATUS status = release_mutant(mutant, previous);
    sched_unlock(irql);
    return status;
}

LONG KeReadStateMutex(PRKMUTEX Mutex) { return state_of(&Mutex->Header); }

/* --- Waits. --- */

uint64_t dispatcher_deadline(const LARGE_INTEGER *interval)
{
    if (!interval || interval->QuadPart == INT64_MIN)
        return WAIT_FOREVER;
    const bool relative = interval->QuadPart < 0;
    int64_t units = relative ? -interval->QuadPart : interval->QuadPart - SYSTEM_TIME_AT_BOOT;
    if (units < 0)
        return 0;
    if ((uint64_t)units > WAIT_FOREVER / 200)
        return WAIT_FOREVER;
    return (relative ? clock_ns() : 0) + (uint64_t)units * 100;
}

NTSTATUS KeWaitForMultipleObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType,
                                  KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode, BOOLEAN,
                                  PLARGE_INTEGER Timeout, PKWAIT_BLOCK WaitBlockArray)
{
    KWAIT_BLOCK own[THREAD_WAIT_OBJECTS];
    if (!Count || Count > (WaitBlockArray ? MAXIMUM_WAIT_OBJECTS : THREAD_WAIT_OBJECTS))
        return STATUS_INVALID_PARAMETER_1;
    const struct wait wait = { Object,
                               Count,
                               WaitType,
                               WaitReason,
                               WaitMode,
                               dispatcher_deadline(Timeout),
                               WaitBlockArray ? WaitBlockArray : own };
    return wait_for(&wait);
}

NTSTATUS KeWaitForSingleObject(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                               BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    return KeWaitForMultipleObjects(1, &Object, WaitAny, WaitReason, WaitMode, Alertable, Timeout,
                                    NULL);
}

NTSTATUS KeDelayExecutionThread(KPROCESSOR_MODE WaitMode, BOOLEAN, PLARGE_INTEGER Interval)
{
    const struct wait wait = {
        NULL, 0, WaitAny, DelayExecution, WaitMode, dispatcher_deadline(Interval), NULL
    };
    return wait_for(&wait);
}
