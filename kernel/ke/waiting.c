/* SPDX-License-Identifier: MIT */
/* The services that wait. Statuses: synchronization.h. */
#include "kernel/ke/caller.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/synchronization.h"
#include "kernel/ke/thread.h"

static NTSTATUS get_deadline(const LARGE_INTEGER *timeout, uint64_t *wake_ns)
{
    LARGE_INTEGER interval;
    NTSTATUS status = timeout ? caller_get(&interval, timeout, sizeof interval) : STATUS_SUCCESS;
    *wake_ns = dispatcher_deadline(timeout && NT_SUCCESS(status) ? &interval : NULL);
    return status;
}

static NTSTATUS wait_for_objects(struct object *const *objects, unsigned count, WAIT_TYPE type,
                                 uint64_t wake_ns)
{
    PVOID headers[MAXIMUM_WAIT_OBJECTS];
    KWAIT_BLOCK blocks[MAXIMUM_WAIT_OBJECTS];
    for (unsigned i = 0; i < count; i++)
        headers[i] = &objects[i]->header;
    const struct wait wait = { headers, count, type, UserRequest, UserMode, wake_ns, blocks };
    return wait_for(&wait);
}

NTSTATUS NtWaitForSingleObject(HANDLE Handle, BOOLEAN, PLARGE_INTEGER Timeout)
{
    struct object *object;
    uint64_t wake_ns;
    NTSTATUS status = get_deadline(Timeout, &wake_ns);
    if (NT_SUCCESS(status))
        status = handle_lookup(Handle, NULL, SYNCHRONIZE, &object);
    if (!NT_SUCCESS(status))
        return status;
    status = wait_for_objects(&object, 1, WaitAny, wake_ns);
    object_release(object);
    return status;
}

static void release_objects(struct object *const *objects, unsigned count)
{
    while (count--)
        object_release(objects[count]);
}

static bool has_twins(struct object *const *objects, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        for (unsigned j = 0; j < i; j++)
            if (objects[i] == objects[j])
                return true;
    return false;
}

/* All or none. */
static NTSTATUS look_up_objects(const HANDLE *handles, unsigned count, WAIT_TYPE type,
                                struct object **objects)
{
    for (unsigned i = 0; i < count; i++) {
        NTSTATUS status = handle_lookup(handles[i], NULL, SYNCHRONIZE, &objects[i]);
        if (!NT_SUCCESS(status)) {
            release_objects(objects, i);
            return status;
        }
    }
    if (type == WaitAny || !has_twins(objects, count))
        return STATUS_SUCCESS;
    release_objects(objects, count);
    return STATUS_INVALID_PARAMETER_MIX;
}

NTSTATUS NtWaitForMultipleObjects(ULONG Count, const HANDLE Handles[], WAIT_TYPE WaitType, BOOLEAN,
                                  PLARGE_INTEGER Timeout)
{
    HANDLE handles[MAXIMUM_WAIT_OBJECTS];
    struct object *objects[MAXIMUM_WAIT_OBJECTS];
    uint64_t wake_ns;
    if (!Count || Count > MAXIMUM_WAIT_OBJECTS)
        return STATUS_INVALID_PARAMETER_1;
    if (WaitType != WaitAll && WaitType != WaitAny)
        return STATUS_INVALID_PARAMETER_3;
    NTSTATUS status = get_deadline(Timeout, &wake_ns);
    if (NT_SUCCESS(status))
        status = caller_get(handles, Handles, Count * sizeof handles[0]);
    if (NT_SUCCESS(status))
        status = look_up_objects(handles, Count, WaitType, objects);
    if (!NT_SUCCESS(status))
        return status;
    status = wait_for_objects(objects, Count, WaitType, wake_ns);
    release_objects(objects, Count);
    return status;
}

NTSTATUS NtYieldExecution(void)
{
    return sched_switch(WrYieldExecution) ? STATUS_SUCCESS : STATUS_NO_YIELD_PERFORMED;
}

NTSTATUS NtDelayExecution(BOOLEAN, PLARGE_INTEGER DelayInterval)
{
    LARGE_INTEGER interval;
    NTSTATUS status = caller_get(&interval, DelayInterval, sizeof interval);
    if (!NT_SUCCESS(status))
        return status;
    const struct wait wait = {
        NULL, 0, WaitAny, DelayExecution, UserMode, dispatcher_deadline(&interval), NULL
    };
    if (interval.QuadPart == 0)
        return NtYieldExecution();
    return wait_for(&wait);
}
