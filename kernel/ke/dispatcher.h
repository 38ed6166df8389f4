/* SPDX-License-Identifier: MIT */
/* Events, semaphores, mutants and waits, as drivers call them. The structures lie in the
 * caller's memory, in kernel space. IRQL <= DISPATCH_LEVEL unless a comment says otherwise.
 * Sources: the Windows driver documentation.
 *
 * NT: Increment raises no priority; Wait has no effect: the next wait takes the lock again. */
#pragma once
#include "kernel/nt/nt_dispatcher.h"

VOID KeInitializeEvent(PRKEVENT Event, EVENT_TYPE Type, BOOLEAN State);
/* Signals the event. Returns its state before, 0 or 1, as does the next one. A notification event
 * stays signaled and ends the waits of all threads; a synchronization event ends one wait, or
 * stays signaled until a thread waits. */
LONG KeSetEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait);
LONG KeResetEvent(PRKEVENT Event);
VOID KeClearEvent(PRKEVENT Event);
LONG KeReadStateEvent(PRKEVENT Event);

VOID KeInitializeSemaphore(PRKSEMAPHORE Semaphore, LONG Count, LONG Limit);

/* A kernel mutex. A thread that ends while it owns one stops the system
 * (THREAD_TERMINATE_HELD_MUTEX). Level has no effect. */
VOID KeInitializeMutex(PRKMUTEX Mutex, ULONG Level);
/* A mutant, which is the mutex of ring 3. When its owner ends it becomes free, and the next wait
 * returns STATUS_ABANDONED. */
VOID KeInitializeMutant(PRKMUTANT Mutant, BOOLEAN InitialOwner);
/* 1: free. */
LONG KeReadStateMutex(PRKMUTEX Mutex);

/* Timeout NULL: for ever; in units of 100 ns, negative: from now; else a date, since 1601. Statuses
 * of wait_for; STATUS_INVALID_PARAMETER_1: Count is 0 or above 64, or above 3 without
 * WaitBlockArray (NT: a bug check). IRQL < DISPATCH_LEVEL, or = with a Timeout of 0. */
NTSTATUS KeWaitForSingleObject(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                               BOOLEAN Alertable, PLARGE_INTEGER Timeout);
NTSTATUS KeWaitForMultipleObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType,
                                  KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                                  BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                                  PKWAIT_BLOCK WaitBlockArray);
/* STATUS_SUCCESS. IRQL < DISPATCH_LEVEL. */
NTSTATUS KeDelayExecutionThread(KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                PLARGE_INTEGER Interval);

/* Release one and take the dispatcher lock for it; a mutant is free when it was released as often
 * as it was acquired. *previous: the state before. STATUS_SEMAPHORE_LIMIT_EXCEEDED: an adjustment
 * below 1, or one that exceeds the limit; STATUS_MUTANT_NOT_OWNED. IRQL <= DISPATCH_LEVEL. Drivers'
 * KeReleaseSemaphore and KeReleaseMutex, which return no status: driver/ke.c. */
NTSTATUS semaphore_release(KSEMAPHORE *semaphore, LONG adjustment, LONG *previous);
NTSTATUS mutant_release(KMUTANT *mutant, LONG *previous);
/* Under the dispatcher lock; returns the state before. */
LONG dispatcher_signal(DISPATCHER_HEADER *header);
/* Under the lock; without it anybody may read the state, with all that was written before. */
static inline void dispatcher_set(DISPATCHER_HEADER *header, LONG state)
{
    __atomic_store_n(&header->SignalState, state, __ATOMIC_RELEASE);
}
/* A point in clock_ns from a Windows interval (NULL: never). */
uint64_t dispatcher_deadline(const LARGE_INTEGER *interval);
