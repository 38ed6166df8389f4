/* SPDX-License-Identifier: MIT */
#include "kernel/ke/waitable.h"
#include "kernel/base/string.h"
#include "kernel/ke/caller.h"
#include "kernel/ke/sched.h"
#include "kernel/mm/phys.h"

_Static_assert(sizeof(struct waitable) <= PAGE_SIZE, "one page");
_Static_assert(offsetof(struct waitable, own) ==
                   offsetof(struct waitable, object.header) + sizeof(DISPATCHER_HEADER),
               "nothing between header and own");

void waitable_destroy(struct object *object)
{
    object_name_leave(&((struct waitable *)object)->name);
    phys_free(object, 1);
}

NTSTATUS waitable_arguments(PHANDLE handle, const OBJECT_ATTRIBUTES *attributes,
                            struct object_name *name, ULONG *flags)
{
    NTSTATUS status = caller_probe(handle, sizeof *handle);
    *flags = 0;
    return NT_SUCCESS(status) ? object_name_get(attributes, name, flags) : status;
}

struct object *waitable_make(const struct object_type *type)
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
NTSTATUS waitable_publish(struct object *object, const struct object_name *name, ULONG flags,
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

NTSTATUS waitable_answer(const struct waitable_query *query, HANDLE handle, PVOID to, ULONG length,
                         PULONG returned)
{
    struct object *object;
    uint64_t info[2] = { 0 };
    if (length != query->size)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = handle_lookup(handle, query->type, EVENT_QUERY_STATE, &object);
    if (!NT_SUCCESS(status))
        return status;
    KIRQL irql = sched_lock();
    query->fill(object, info);
    sched_unlock(irql);
    object_release(object);
    return caller_answer(to, info, query->size, returned);
}
