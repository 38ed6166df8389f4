/* SPDX-License-Identifier: MIT */
#include "kernel/ke/thread_name.h"
#include "kernel/base/irql.h"
#include "kernel/base/string.h"
#include "kernel/ke/caller.h"
#include "kernel/ke/sched.h"
#include "kernel/mm/phys.h"

/* A page of a thread that has had one. */
struct thread_name {
    USHORT length; /* bytes */
    WCHAR text[THREAD_NAME_LENGTH];
};
_Static_assert(sizeof(struct thread_name) <= PAGE_SIZE, "one page");

/* Either right is enough: whoever has the greater one has the limited one. */
static NTSTATUS look_up_thread(HANDLE handle, ACCESS_MASK rights, struct thread **thread)
{
    struct object *object;
    ACCESS_MASK access;
    NTSTATUS status = handle_lookup_access(handle, &thread_type, 0, &object, &access);
    if (!NT_SUCCESS(status))
        return status;
    *thread = (struct thread *)object;
    if (access & rights)
        return STATUS_SUCCESS;
    object_release(object);
    return STATUS_ACCESS_DENIED;
}

NTSTATUS thread_name_set(HANDLE handle, const void *info, ULONG length)
{
    UNICODE_STRING string;
    struct thread *thread;
    if (length != sizeof string)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = caller_get(&string, info, sizeof string);
    if (!NT_SUCCESS(status))
        return status;
    if (string.Length % sizeof(WCHAR) || string.Length > sizeof(WCHAR) * THREAD_NAME_LENGTH)
        return STATUS_INVALID_PARAMETER;
    struct thread_name *name = phys_alloc(1);
    if (!name)
        return STATUS_NO_MEMORY;
    name->length = string.Length;
    status = caller_get(name->text, string.Buffer, string.Length);
    if (NT_SUCCESS(status))
        status = look_up_thread(handle, THREAD_SET_LIMITED_INFORMATION | THREAD_SET_INFORMATION,
                                &thread);
    if (!NT_SUCCESS(status)) {
        phys_free(name, 1);
        return status;
    }
    KIRQL irql = sched_lock();
    struct thread_name *old = thread->description;
    thread->description = name;
    sched_unlock(irql);
    if (old)
        phys_free(old, 1);
    object_release(&thread->object);
    return STATUS_SUCCESS;
}

static NTSTATUS give(const struct thread_name *name, UNICODE_STRING *to, ULONG length,
                     PULONG returned)
{
    const ULONG size = sizeof *to + name->length;
    const UNICODE_STRING string = { name->length, name->length, (WCHAR *)(to + 1) };
    NTSTATUS status = caller_put_optional(returned, &size, sizeof size);
    if (NT_SUCCESS(status) && length < size)
        status = STATUS_BUFFER_TOO_SMALL;
    if (NT_SUCCESS(status))
        status = caller_put(to, &string, sizeof string);
    return NT_SUCCESS(status) ? caller_put(to + 1, name->text, name->length) : status;
}

NTSTATUS thread_name_query(HANDLE handle, void *info, ULONG length, PULONG returned)
{
    struct thread *thread;
    struct thread_name *name = phys_alloc(1);
    if (!name)
        return STATUS_NO_MEMORY;
    NTSTATUS status =
        look_up_thread(handle, THREAD_QUERY_LIMITED_INFORMATION | THREAD_QUERY_INFORMATION,
                       &thread);
    if (NT_SUCCESS(status)) {
        KIRQL irql = sched_lock();
        if (thread->description)
            memcpy(name, thread->description, sizeof *name);
        sched_unlock(irql);
        object_release(&thread->object);
        status = give(name, info, length, returned);
    }
    phys_free(name, 1);
    return status;
}
