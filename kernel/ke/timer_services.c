/* SPDX-License-Identifier: MIT */
/* The services for timers. Statuses: synchronization.h. */
#include "kernel/ke/caller.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/synchronization.h"
#include "kernel/ke/timer.h"
#include "kernel/ke/waitable.h"

_Static_assert(sizeof(KTIMER) - sizeof(DISPATCHER_HEADER) <= WAITABLE_OWN, "size");

static KTIMER *timer_of(const struct object *object) { return (KTIMER *)&object->header; }

static void destroy_timer(struct object *object)
{
    KIRQL irql = sched_lock();
    timer_cancel(timer_of(object));
    sched_unlock(irql);
    waitable_destroy(object);
}

static WAITABLE_TYPE(timer_type, "Timer", destroy_timer, TIMER_QUERY_STATE, TIMER_MODIFY_STATE);

NTSTATUS NtCreateTimer(PHANDLE TimerHandle, ACCESS_MASK DesiredAccess,
                       POBJECT_ATTRIBUTES ObjectAttributes, TIMER_TYPE TimerType)
{
    NTSTATUS status = waitable_arguments(TimerHandle, ObjectAttributes);
    if (!NT_SUCCESS(status))
        return status;
    if (TimerType != NotificationTimer && TimerType != SynchronizationTimer)
        return STATUS_INVALID_PARAMETER_4;
    struct object *object = waitable_make(&timer_type);
    if (!object)
        return STATUS_INSUFFICIENT_RESOURCES;
    object->header.Type =
        TimerType == NotificationTimer ? TimerNotificationObject : TimerSynchronizationObject;
    return waitable_publish(object, DesiredAccess, TimerHandle);
}

NTSTATUS NtSetTimer(HANDLE TimerHandle, PLARGE_INTEGER DueTime, PVOID TimerApcRoutine, PVOID,
                    BOOLEAN ResumeTimer, LONG Period, PBOOLEAN PreviousState)
{
    struct object *object;
    LARGE_INTEGER due;
    BOOLEAN before;
    NTSTATUS status = caller_get(&due, DueTime, sizeof due);
    if (NT_SUCCESS(status))
        status = caller_probe_optional(PreviousState, sizeof before);
    if (NT_SUCCESS(status) && TimerApcRoutine)
        status = STATUS_NOT_SUPPORTED;
    if (NT_SUCCESS(status) && Period < 0)
        status = STATUS_INVALID_PARAMETER_6;
    if (NT_SUCCESS(status))
        status = handle_lookup(TimerHandle, &timer_type, TIMER_MODIFY_STATE, &object);
    if (!NT_SUCCESS(status))
        return status;
    KIRQL irql = sched_lock();
    before = timer_set(timer_of(object), dispatcher_deadline(&due), (ULONG)Period);
    sched_unlock(irql);
    object_release(object);
    status = caller_put_optional(PreviousState, &before, sizeof before);
    return NT_SUCCESS(status) && ResumeTimer ? STATUS_TIMER_RESUME_IGNORED : status;
}

NTSTATUS NtCancelTimer(HANDLE TimerHandle, PBOOLEAN CurrentState)
{
    struct object *object;
    BOOLEAN before = FALSE;
    NTSTATUS status = caller_probe_optional(CurrentState, sizeof before);
    if (NT_SUCCESS(status))
        status = handle_lookup(TimerHandle, &timer_type, TIMER_MODIFY_STATE, &object);
    if (!NT_SUCCESS(status))
        return status;
    KIRQL irql = sched_lock();
    timer_cancel(timer_of(object));
    before = object->header.SignalState > 0;
    sched_unlock(irql);
    object_release(object);
    return caller_put_optional(CurrentState, &before, sizeof before);
}
