/* SPDX-License-Identifier: MIT */
/* The services for timers. Statuses: synchronization.h. */
#include "hal/machine/clock.h"
#include "kernel/base/irql.h"
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

WAITABLE_TYPE(timer_type, "Timer", destroy_timer, TIMER_QUERY_STATE, TIMER_MODIFY_STATE);

NTSTATUS NtCreateTimer(PHANDLE TimerHandle, ACCESS_MASK DesiredAccess,
                       POBJECT_ATTRIBUTES ObjectAttributes, TIMER_TYPE TimerType)
{
    struct object_name name;
    ULONG flags;
    NTSTATUS status = waitable_arguments(TimerHandle, ObjectAttributes, &name, &flags);
    if (!NT_SUCCESS(status))
        return status;
    if (TimerType != NotificationTimer && TimerType != SynchronizationTimer)
        return STATUS_INVALID_PARAMETER_4;
    struct object *object = waitable_make(&timer_type);
    if (!object)
        return STATUS_INSUFFICIENT_RESOURCES;
    object->header.Type =
        TimerType == NotificationTimer ? TimerNotificationObject : TimerSynchronizationObject;
    return waitable_publish(object, &name, flags, DesiredAccess, TimerHandle);
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

static void query_timer(const struct object *object, void *info)
{
    const uint64_t due = timer_of(object)->DueTime;
    int64_t left = due > INT64_MAX ? INT64_MAX : (int64_t)(due - clock_ns());
    TIMER_BASIC_INFORMATION *basic = info;
    basic->RemainingTime.QuadPart = left / 100;
    basic->TimerState = object->header.SignalState > 0;
}

NTSTATUS NtQueryTimer(HANDLE TimerHandle, TIMER_INFORMATION_CLASS TimerInformationClass,
                      PVOID TimerInformation, ULONG TimerInformationLength, PULONG ReturnLength)
{
    static const struct waitable_query basic = { &timer_type, sizeof(TIMER_BASIC_INFORMATION),
                                                 query_timer };
    if (TimerInformationClass != TimerBasicInformation)
        return STATUS_INVALID_INFO_CLASS;
    return waitable_answer(&basic, TimerHandle, TimerInformation, TimerInformationLength,
                           ReturnLength);
}
