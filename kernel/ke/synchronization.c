/* SPDX-License-Identifier: MIT */
/* The services for events, semaphores and mutants. Statuses: synchronization.h. */
#include "kernel/ke/synchronization.h"
#include "kernel/ke/caller.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/waitable.h"

static KEVENT *event_of(struct object *object) { return (KEVENT *)&object->header; }
static KSEMAPHORE *semaphore_of(struct object *object) { return (KSEMAPHORE *)&object->header; }
static KMUTANT *mutant_of(struct object *object) { return (KMUTANT *)&object->header; }

/* Takes it off its owner's list, if a thread still owns it. */
static void destroy_mutant(struct object *object)
{
    KIRQL irql = sched_lock();
    if (mutant_of(object)->OwnerThread)
        RemoveEntryList(&mutant_of(object)->MutantListEntry);
    sched_unlock(irql);
    waitable_destroy(object);
}

WAITABLE_TYPE(event_type, "Event", waitable_destroy, EVENT_QUERY_STATE, EVENT_MODIFY_STATE);
static WAITABLE_TYPE(semaphore_type, "Semaphore", waitable_destroy, SEMAPHORE_QUERY_STATE,
                     SEMAPHORE_MODIFY_STATE);
static WAITABLE_TYPE(mutant_type, "Mutant", destroy_mutant, MUTANT_QUERY_STATE, 0);

/* --- Making them. --- */

NTSTATUS NtCreateEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess,
                       POBJECT_ATTRIBUTES ObjectAttributes, EVENT_TYPE EventType,
                       BOOLEAN InitialState)
{
    NTSTATUS status = waitable_arguments(EventHandle, ObjectAttributes);
    if (!NT_SUCCESS(status))
        return status;
    if (EventType != NotificationEvent && EventType != SynchronizationEvent)
        return STATUS_INVALID_PARAMETER;
    struct object *object = waitable_make(&event_type);
    if (!object)
        return STATUS_INSUFFICIENT_RESOURCES;
    KeInitializeEvent(event_of(object), EventType, InitialState);
    return waitable_publish(object, DesiredAccess, EventHandle);
}

NTSTATUS NtCreateSemaphore(PHANDLE SemaphoreHandle, ACCESS_MASK DesiredAccess,
                           POBJECT_ATTRIBUTES ObjectAttributes, LONG InitialCount,
                           LONG MaximumCount)
{
    NTSTATUS status = waitable_arguments(SemaphoreHandle, ObjectAttributes);
    if (!NT_SUCCESS(status))
        return status;
    if (MaximumCount < 1 || InitialCount < 0 || InitialCount > MaximumCount)
        return STATUS_INVALID_PARAMETER;
    struct object *object = waitable_make(&semaphore_type);
    if (!object)
        return STATUS_INSUFFICIENT_RESOURCES;
    KeInitializeSemaphore(semaphore_of(object), InitialCount, MaximumCount);
    return waitable_publish(object, DesiredAccess, SemaphoreHandle);
}

NTSTATUS NtCreateMutant(PHANDLE MutantHandle, ACCESS_MASK DesiredAccess,
                        POBJECT_ATTRIBUTES ObjectAttributes, BOOLEAN InitialOwner)
{
    NTSTATUS status = waitable_arguments(MutantHandle, ObjectAttributes);
    struct object *object = NT_SUCCESS(status) ? waitable_make(&mutant_type) : NULL;
    if (!object)
        return NT_SUCCESS(status) ? STATUS_INSUFFICIENT_RESOURCES : status;
    KeInitializeMutant(mutant_of(object), InitialOwner);
    return waitable_publish(object, DesiredAccess, MutantHandle);
}

/* --- Changing. --- */

static NTSTATUS change_event(HANDLE handle, PLONG previous, LONG (*change)(KEVENT *))
{
    struct object *object;
    NTSTATUS status = handle_lookup(handle, &event_type, EVENT_MODIFY_STATE, &object);
    if (!NT_SUCCESS(status))
        return status;
    LONG before = change(event_of(object));
    object_release(object);
    return caller_put_optional(previous, &before, sizeof before);
}

static LONG set_event(KEVENT *event) { return KeSetEvent(event, 0, FALSE); }

NTSTATUS NtSetEvent(HANDLE EventHandle, PLONG PreviousState)
{
    return change_event(EventHandle, PreviousState, set_event);
}
NTSTATUS NtResetEvent(HANDLE EventHandle, PLONG PreviousState)
{
    return change_event(EventHandle, PreviousState, KeResetEvent);
}

NTSTATUS NtReleaseSemaphore(HANDLE SemaphoreHandle, LONG ReleaseCount, PLONG PreviousCount)
{
    struct object *object;
    LONG before;
    if (ReleaseCount < 1)
        return STATUS_INVALID_PARAMETER;
    NTSTATUS status =
        handle_lookup(SemaphoreHandle, &semaphore_type, SEMAPHORE_MODIFY_STATE, &object);
    if (!NT_SUCCESS(status))
        return status;
    status = semaphore_release(semaphore_of(object), ReleaseCount, &before);
    object_release(object);
    return NT_SUCCESS(status) ? caller_put_optional(PreviousCount, &before, sizeof before) : status;
}

NTSTATUS NtReleaseMutant(HANDLE MutantHandle, PLONG PreviousCount)
{
    struct object *object;
    LONG before;
    NTSTATUS status = handle_lookup(MutantHandle, &mutant_type, 0, &object);
    if (!NT_SUCCESS(status))
        return status;
    status = mutant_release(mutant_of(object), &before);
    object_release(object);
    return NT_SUCCESS(status) ? caller_put_optional(PreviousCount, &before, sizeof before) : status;
}
