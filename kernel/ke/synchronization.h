/* SPDX-License-Identifier: MIT */
/* Services for events, semaphores, mutants, timers and waits. Callers are ring-3 threads through
 * the service table, or kernel threads, whose pointers are not checked. PASSIVE_LEVEL. Statuses in
 * the order of their checks; sources: the Windows driver documentation, winternl.h, and where it is
 * silent, as marked, our choice.
 *
 * All: STATUS_ACCESS_VIOLATION for pointers, then of each handle STATUS_INVALID_HANDLE,
 * STATUS_OBJECT_TYPE_MISMATCH, STATUS_ACCESS_DENIED. Pointers to a previous state may be NULL.
 * NT: names are ignored: one program runs, and nothing opens by name. Nothing asks for a state. */
#pragma once
#include "kernel/ke/object.h"
#include "kernel/nt/nt_dispatcher.h"

extern const struct object_type event_type;

/* STATUS_ACCESS_VIOLATION (handle, attributes); STATUS_INVALID_PARAMETER: the attributes' Length,
 * EventType, or the counts below; STATUS_INSUFFICIENT_RESOURCES. */
NTSTATUS NtCreateEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess,
                       POBJECT_ATTRIBUTES ObjectAttributes, EVENT_TYPE EventType,
                       BOOLEAN InitialState);
/* InitialCount from 0 to MaximumCount, MaximumCount from 1. */
NTSTATUS NtCreateSemaphore(PHANDLE SemaphoreHandle, ACCESS_MASK DesiredAccess,
                           POBJECT_ATTRIBUTES ObjectAttributes, LONG InitialCount,
                           LONG MaximumCount);
NTSTATUS NtCreateMutant(PHANDLE MutantHandle, ACCESS_MASK DesiredAccess,
                        POBJECT_ATTRIBUTES ObjectAttributes, BOOLEAN InitialOwner);

/* EVENT_MODIFY_STATE. */
NTSTATUS NtSetEvent(HANDLE EventHandle, PLONG PreviousState);
NTSTATUS NtResetEvent(HANDLE EventHandle, PLONG PreviousState);
/* STATUS_INVALID_PARAMETER: ReleaseCount below 1. SEMAPHORE_MODIFY_STATE.
 * STATUS_SEMAPHORE_LIMIT_EXCEEDED: nothing was added. */
NTSTATUS NtReleaseSemaphore(HANDLE SemaphoreHandle, LONG ReleaseCount, PLONG PreviousCount);
/* No right is needed: SYNCHRONIZE alone is enough to use a mutex. STATUS_MUTANT_NOT_OWNED. */
NTSTATUS NtReleaseMutant(HANDLE MutantHandle, PLONG PreviousCount);

/* As above; STATUS_INVALID_PARAMETER_4: TimerType (our choice, as _6 below). */
NTSTATUS NtCreateTimer(PHANDLE TimerHandle, ACCESS_MASK DesiredAccess,
                       POBJECT_ATTRIBUTES ObjectAttributes, TIMER_TYPE TimerType);
/* Signals the timer at DueTime, as of KeWaitForSingleObject, and then each Period milliseconds (0:
 * once); until then it is not signaled. TIMER_MODIFY_STATE. *PreviousState: whether it was set
 * already. STATUS_INVALID_PARAMETER_6: Period is negative. With ResumeTimer
 * STATUS_TIMER_RESUME_IGNORED: it is set, but wakes no machine. NT: STATUS_NOT_SUPPORTED: a
 * TimerApcRoutine, as there are no APCs. */
NTSTATUS NtSetTimer(HANDLE TimerHandle, PLARGE_INTEGER DueTime, PVOID TimerApcRoutine,
                    PVOID TimerContext, BOOLEAN ResumeTimer, LONG Period, PBOOLEAN PreviousState);
/* Cancels the timer. *CurrentState: whether it is signaled; that
 * does not change. TIMER_MODIFY_STATE. */
NTSTATUS NtCancelTimer(HANDLE TimerHandle, PBOOLEAN CurrentState);

/* SYNCHRONIZE for what is waited for. Then the statuses of wait_for (wait.h). Timeout as of
 * KeWaitForSingleObject. */
NTSTATUS NtWaitForSingleObject(HANDLE Handle, BOOLEAN Alertable, PLARGE_INTEGER Timeout);
/* STATUS_INVALID_PARAMETER_1: Count is 0 or above 64; STATUS_INVALID_PARAMETER_3: WaitType; after
 * the handles, one after the other, STATUS_INVALID_PARAMETER_MIX: WaitAll, and an object that is
 * there twice. */
NTSTATUS NtWaitForMultipleObjects(ULONG Count, const HANDLE Handles[], WAIT_TYPE WaitType,
                                  BOOLEAN Alertable, PLARGE_INTEGER Timeout);
/* An interval of 0 yields: STATUS_NO_YIELD_PERFORMED if nobody else is ready. */
NTSTATUS NtDelayExecution(BOOLEAN Alertable, PLARGE_INTEGER DelayInterval);
NTSTATUS NtYieldExecution(void);
