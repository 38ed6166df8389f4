/* SPDX-License-Identifier: MIT */
/* The services for events, semaphores and mutants. Statuses: synchronization.h. */
#include "kernel/ke/synchronization.h"
#include "kernel/base/irql.h"
#include "kernel/ke/caller.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/object_name.h"
#include "kernel/ke/sched.h"
#include "kernel/mm/phys.h"

/* An event, a semaphore or a mutant: behind the header comes what is its own. */
struct waitable {
    struct object object;
    char own[sizeof(KMUTANT) - sizeof(DISPATCHER_HEADER)];
    struct object_name name;
};
_Static_assert(sizeof(struct waitable) <= PAGE_SIZE, "one page");
_Static_assert(offsetof(struct waitable, own) ==
                   offsetof(struct waitable, object.header) + sizeof(DISPATCHER_HEADER),
               "nothing between header and own");

static KEVENT *event_of(struct object *object) { return (KEVENT *)&object->header; }
static KSEMAPHORE *semaphore_of(struct object *object) { return (KSEMAPHORE *)&object->header; }
static KMUTANT *mutant_of(struct object *object) { return (KMUTANT *)&object->header; }

static void destroy(struct object *object)
{
    object_name_leave(&((struct waitable *)object)->name);
    phys_free(object, 1);
}

/* It may still have an owner, which then no longer owns it. */
static void destroy_mutant(struct object *object)
{
    KIRQL irql = sched_lock();
    if (mutant_of(object)->OwnerThread)
        RemoveEntryList(&mutant_of(object)->MutantListEntry);
    sched_unlock(irql);
    destroy(object);
}

#define TYPE(variable, type_name, function, query, modify)                                         \
    const struct object_type variable = {                                                          \
        .name = (type_name),                                                                       \
        .destroy = (function),                                                                     \
        .read = STANDARD_RIGHTS_READ | (query),                                                    \
        .write = STANDARD_RIGHTS_READ | (modify),                                                  \
        .execute = STANDARD_RIGHTS_READ | SYNCHRONIZE,                                             \
        .all = STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | (query) | (modify),                        \
    }
TYPE(event_type, "Event", destroy, EVENT_QUERY_STATE, EVENT_MODIFY_STATE);
TYPE(semaphore_type, "Semaphore", destroy, SEMAPHORE_QUERY_STATE, SEMAPHORE_MODIFY_STATE);
TYPE(mutant_type, "Mutant", destroy_mutant, MUTANT_QUERY_STATE, 0);

/* --- Making them. --- */

static NTSTATUS check_arguments(PHANDLE handle, const OBJECT_ATTRIBUTES *attributes,
                                struct object_name *name, ULONG *flags)
{
    NTSTATUS status = caller_probe_handle(handle);
    *flags = 0;
    return NT_SUCCESS(status) ? object_name_get(attributes, name, flags) : status;
}

static struct object *make(const struct object_type *type)
{
    struct waitable *w = phys_alloc(1);
    if (!w)
        return NULL;
    object_init(&w->object, type, EventNotificationObject, 1);
    return &w->object;
}

/* A handle for the caller takes the place of the first reference. */
static NTSTATUS give(struct object *object, ACCESS_MASK access, PHANDLE handle)
{
    HANDLE made;
    NTSTATUS status = handle_create(object, access, &made);
    object_release(object);
    if (!NT_SUCCESS(status))
        return status;
    status = caller_put(handle, &made, sizeof made);
    if (!NT_SUCCESS(status))
        handle_close(made);
    return status;
}

/* The new one, or, by OBJ_OPENIF, one that has the name. */
static NTSTATUS publish(struct object *object, const struct object_name *name, ULONG flags,
                        ACCESS_MASK access, PHANDLE handle)
{
    struct waitable *w = (struct waitable *)object;
    if (!name->length)
        return give(object, access, handle);
    w->name.length = name->length;
    memcpy(w->name.text, name->text, name->length);
    struct object *found = object_name_enter(&w->name, object);
    if (!found)
        return give(object, access, handle);
    bool same = found->type == object->type, open = flags & OBJ_OPENIF;
    object_release(object);
    if (!same || !open) {
        object_release(found);
        return same ? STATUS_OBJECT_NAME_COLLISION : STATUS_OBJECT_TYPE_MISMATCH;
    }
    NTSTATUS status = give(found, access, handle);
    return NT_SUCCESS(status) ? STATUS_OBJECT_NAME_EXISTS : status;
}

NTSTATUS NtCreateEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess,
                       POBJECT_ATTRIBUTES ObjectAttributes, EVENT_TYPE EventType,
                       BOOLEAN InitialState)
{
    struct object_name name;
    ULONG flags;
    NTSTATUS status = check_arguments(EventHandle, ObjectAttributes, &name, &flags);
    if (!NT_SUCCESS(status))
        return status;
    if (EventType != NotificationEvent && EventType != SynchronizationEvent)
        return STATUS_INVALID_PARAMETER;
    struct object *object = make(&event_type);
    if (!object)
        return STATUS_INSUFFICIENT_RESOURCES;
    KeInitializeEvent(event_of(object), EventType, InitialState);
    return publish(object, &name, flags, DesiredAccess, EventHandle);
}

NTSTATUS NtCreateSemaphore(PHANDLE SemaphoreHandle, ACCESS_MASK DesiredAccess,
                           POBJECT_ATTRIBUTES ObjectAttributes, LONG InitialCount,
                           LONG MaximumCount)
{
    struct object_name name;
    ULONG flags;
    NTSTATUS status = check_arguments(SemaphoreHandle, ObjectAttributes, &name, &flags);
    if (!NT_SUCCESS(status))
        return status;
    if (MaximumCount < 1 || InitialCount < 0 || InitialCount > MaximumCount)
        return STATUS_INVALID_PARAMETER;
    struct object *object = make(&semaphore_type);
    if (!object)
        return STATUS_INSUFFICIENT_RESOURCES;
    KeInitializeSemaphore(semaphore_of(object), InitialCount, MaximumCount);
    return publish(object, &name, flags, DesiredAccess, SemaphoreHandle);
}

NTSTATUS NtCreateMutant(PHANDLE MutantHandle, ACCESS_MASK DesiredAccess,
                        POBJECT_ATTRIBUTES ObjectAttributes, BOOLEAN InitialOwner)
{
    struct object_name name;
    ULONG flags;
    NTSTATUS status = check_arguments(MutantHandle, ObjectAttributes, &name, &flags);
    struct object *object = NT_SUCCESS(status) ? make(&mutant_type) : NULL;
    if (!object)
        return NT_SUCCESS(status) ? STATUS_INSUFFICIENT_RESOURCES : status;
    KeInitializeMutant(mutant_of(object), InitialOwner);
    return publish(object, &name, flags, DesiredAccess, MutantHandle);
}

/* --- Opening them. --- */

static NTSTATUS open_named(const struct object_type *type, PHANDLE handle, ACCESS_MASK access,
                           const OBJECT_ATTRIBUTES *attributes)
{
    struct object_name name;
    ULONG flags;
    NTSTATUS status = check_arguments(handle, attributes, &name, &flags);
    if (!NT_SUCCESS(status))
        return status;
    if (!attributes || !name.length)
        return attributes ? STATUS_OBJECT_PATH_SYNTAX_BAD : STATUS_INVALID_PARAMETER;
    struct object *found = object_name_find(&name);
    if (!found)
        return STATUS_OBJECT_NAME_NOT_FOUND;
    if (found->type == type)
        return give(found, access, handle);
    object_release(found);
    return STATUS_OBJECT_TYPE_MISMATCH;
}

NTSTATUS NtOpenEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess,
                     POBJECT_ATTRIBUTES ObjectAttributes)
{
    return open_named(&event_type, EventHandle, DesiredAccess, ObjectAttributes);
}

NTSTATUS NtOpenSemaphore(PHANDLE SemaphoreHandle, ACCESS_MASK DesiredAccess,
                         POBJECT_ATTRIBUTES ObjectAttributes)
{
    return open_named(&semaphore_type, SemaphoreHandle, DesiredAccess, ObjectAttributes);
}

NTSTATUS NtOpenMutant(PHANDLE MutantHandle, ACCESS_MASK DesiredAccess,
                      POBJECT_ATTRIBUTES ObjectAttributes)
{
    return open_named(&mutant_type, MutantHandle, DesiredAccess, ObjectAttributes);
}

/* --- Changing and asking. --- */

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

static LONG set(KEVENT *event) { return KeSetEvent(event, 0, FALSE); }
static LONG pulse(KEVENT *event) { return KePulseEvent(event, 0, FALSE); }

NTSTATUS NtSetEvent(HANDLE EventHandle, PLONG PreviousState)
{
    return change_event(EventHandle, PreviousState, set);
}
NTSTATUS NtPulseEvent(HANDLE EventHandle, PLONG PreviousState)
{
    return change_event(EventHandle, PreviousState, pulse);
}
NTSTATUS NtResetEvent(HANDLE EventHandle, PLONG PreviousState)
{
    return change_event(EventHandle, PreviousState, KeResetEvent);
}
NTSTATUS NtClearEvent(HANDLE EventHandle) { return change_event(EventHandle, NULL, KeResetEvent); }

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
    KIRQL irql = sched_lock();
    status = dispatcher_release_semaphore(semaphore_of(object), ReleaseCount, &before);
    sched_unlock(irql);
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
    KIRQL irql = sched_lock();
    status = dispatcher_release_mutant(mutant_of(object), &before);
    sched_unlock(irql);
    object_release(object);
    return NT_SUCCESS(status) ? caller_put_optional(PreviousCount, &before, sizeof before) : status;
}

static void query_event(const struct object *object, void *info)
{
    EVENT_TYPE type =
        object->header.Type == EventNotificationObject ? NotificationEvent : SynchronizationEvent;
    *(EVENT_BASIC_INFORMATION *)info =
        (EVENT_BASIC_INFORMATION){ type, object->header.SignalState };
}

static void query_semaphore(const struct object *object, void *info)
{
    const KSEMAPHORE *s = (const KSEMAPHORE *)&object->header;
    *(SEMAPHORE_BASIC_INFORMATION *)info =
        (SEMAPHORE_BASIC_INFORMATION){ s->Header.SignalState, s->Limit };
}

static void query_mutant(const struct object *object, void *info)
{
    const KMUTANT *m = (const KMUTANT *)&object->header;
    *(MUTANT_BASIC_INFORMATION *)info =
        (MUTANT_BASIC_INFORMATION){ m->Header.SignalState, m->OwnerThread == thread_current(),
                                    m->Abandoned };
}

static void query_owner(const struct object *object, void *info)
{
    const struct thread *owner = ((const KMUTANT *)&object->header)->OwnerThread;
    *(MUTANT_OWNER_INFORMATION *)info =
        (MUTANT_OWNER_INFORMATION){ owner ? thread_client_id(owner) : (CLIENT_ID){ NULL, NULL } };
}

struct query {
    const struct object_type *type;
    ULONG size;
    void (*fill)(const struct object *object, void *info); /* under the dispatcher lock */
};

static NTSTATUS answer(const struct query *query, HANDLE handle, PVOID to, ULONG length,
                       PULONG returned)
{
    struct object *object;
    uint64_t info[2] = { 0 };
    ULONG size = query->size;
    if (length != size)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = handle_lookup(handle, query->type, EVENT_QUERY_STATE, &object);
    if (!NT_SUCCESS(status))
        return status;
    KIRQL irql = sched_lock();
    query->fill(object, info);
    sched_unlock(irql);
    object_release(object);
    status = caller_put(to, info, size);
    return NT_SUCCESS(status) ? caller_put_optional(returned, &size, sizeof size) : status;
}
_Static_assert(EVENT_QUERY_STATE == SEMAPHORE_QUERY_STATE &&
                   EVENT_QUERY_STATE == MUTANT_QUERY_STATE,
               "one right");

NTSTATUS NtQueryEvent(HANDLE EventHandle, EVENT_INFORMATION_CLASS EventInformationClass,
                      PVOID EventInformation, ULONG EventInformationLength, PULONG ReturnLength)
{
    static const struct query basic = { &event_type, sizeof(EVENT_BASIC_INFORMATION), query_event };
    if (EventInformationClass != EventBasicInformation)
        return STATUS_INVALID_INFO_CLASS;
    return answer(&basic, EventHandle, EventInformation, EventInformationLength, ReturnLength);
}

NTSTATUS NtQuerySemaphore(HANDLE SemaphoreHandle,
                          SEMAPHORE_INFORMATION_CLASS SemaphoreInformationClass,
                          PVOID SemaphoreInformation, ULONG SemaphoreInformationLength,
                          PULONG ReturnLength)
{
    static const struct query basic = { &semaphore_type, sizeof(SEMAPHORE_BASIC_INFORMATION),
                                        query_semaphore };
    if (SemaphoreInformationClass != SemaphoreBasicInformation)
        return STATUS_INVALID_INFO_CLASS;
    return answer(&basic, SemaphoreHandle, SemaphoreInformation, SemaphoreInformationLength,
                  ReturnLength);
}

NTSTATUS NtQueryMutant(HANDLE MutantHandle, MUTANT_INFORMATION_CLASS MutantInformationClass,
                       PVOID MutantInformation, ULONG MutantInformationLength, PULONG ReturnLength)
{
    static const struct query classes[] = {
        { &mutant_type, sizeof(MUTANT_BASIC_INFORMATION), query_mutant },
        { &mutant_type, sizeof(MUTANT_OWNER_INFORMATION), query_owner },
    };
    if ((unsigned)MutantInformationClass > MutantOwnerInformation)
        return STATUS_INVALID_INFO_CLASS;
    return answer(&classes[MutantInformationClass], MutantHandle, MutantInformation,
                  MutantInformationLength, ReturnLength);
}
