/* SPDX-License-Identifier: MIT */
#include "kernel/ke/waitable.h"
#include "kernel/ke/caller.h"
#include "kernel/mm/phys.h"

_Static_assert(sizeof(struct waitable) <= PAGE_SIZE, "one page");
_Static_assert(offsetof(struct waitable, own) ==
                   offsetof(struct waitable, object.header) + sizeof(DISPATCHER_HEADER),
               "nothing between header and own");

void waitable_destroy(struct object *object) { phys_free(object, 1); }

NTSTATUS waitable_arguments(PHANDLE handle, const OBJECT_ATTRIBUTES *attributes)
{
    OBJECT_ATTRIBUTES a = { .Length = sizeof a };
    NTSTATUS status = caller_probe(handle, sizeof *handle);
    if (NT_SUCCESS(status) && attributes)
        status = caller_get(&a, attributes, sizeof a);
    return NT_SUCCESS(status) && a.Length != sizeof a ? STATUS_INVALID_PARAMETER : status;
}

struct object *waitable_make(const struct object_type *type)
{
    struct waitable *w = phys_alloc(1);
    if (!w)
        return NULL;
    object_init(&w->object, type, EventNotificationObject, 1);
    return &w->object;
}

NTSTATUS waitable_publish(struct object *object, ACCESS_MASK access, PHANDLE handle)
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
