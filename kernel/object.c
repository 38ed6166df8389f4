/* SPDX-License-Identifier: MIT */
/* Handle tables: (index + 1) * 4 into the process's array, as Windows numbers them. handle_lock, DISPATCH_LEVEL. */
#include "kernel/object.h"
#include "kernel/cpu.h"
#include "kernel/etw.h"
#include "kernel/irql.h"
#include "kernel/lock.h"
#include "kernel/process.h"
#include "kernel/profile.h"
#include "kernel/thread.h"

static struct lock handle_lock = LOCK("handles", DISPATCH_LEVEL);
static struct handle_entry system_handles[HANDLES_MAX]; /* L: handle_lock; of kernel threads */

static struct handle_entry *table(void)
{
    struct process *process = thread_current()->process;
    return process ? process->handles : system_handles;
}

void object_release(struct object *object)
{
    uint32_t before = __atomic_fetch_sub(&object->refs, 1, __ATOMIC_ACQ_REL);
    ASSERT(before > 0);
    if (before > 1)
        return;
    if (object->type == OBJECT_THREAD)
        thread_destroy((struct thread *)object);
    else if (object->type == OBJECT_PROFILE)
        profile_destroy(object);
    else if (object->type == OBJECT_TRACE)
        etw_consumer_destroy(object);
    else
        process_destroy((struct process *)object);
}

static struct handle_entry *entry_of(HANDLE handle)
{
    uint64_t h = (uint64_t)handle;
    if (h % 4 || h < 4 || h / 4 > HANDLES_MAX || !table()[h / 4 - 1].object)
        return NULL;
    return &table()[h / 4 - 1];
}

NTSTATUS handle_create(struct object *object, ACCESS_MASK access, HANDLE *handle)
{
    struct handle_entry *entries = table();
    NTSTATUS status = STATUS_INSUFFICIENT_RESOURCES;
    uint8_t irql = lock_acquire(&handle_lock);
    for (uint64_t i = 0; i < HANDLES_MAX; i++)
        if (!entries[i].object) {
            object_hold(object);
            entries[i] = (struct handle_entry){ object, access };
            *handle = (HANDLE)((i + 1) * 4);
            status = STATUS_SUCCESS;
            break;
        }
    lock_release(&handle_lock, irql);
    return status;
}

static NTSTATUS check(const struct object *object, ACCESS_MASK access, enum object_type type, ACCESS_MASK wanted)
{
    if (type && object->type != type)
        return STATUS_OBJECT_TYPE_MISMATCH;
    return (access & wanted) == wanted ? STATUS_SUCCESS : STATUS_ACCESS_DENIED;
}

NTSTATUS handle_lookup(HANDLE handle, enum object_type type, ACCESS_MASK wanted, struct object **object)
{
    ACCESS_MASK access;
    return handle_lookup_access(handle, type, wanted, object, &access);
}

NTSTATUS handle_lookup_access(HANDLE handle, enum object_type type, ACCESS_MASK wanted, struct object **object,
                              ACCESS_MASK *access)
{
    struct thread *me = thread_current();
    struct handle_entry found = { NULL, 0 };

    uint8_t irql = lock_acquire(&handle_lock);
    if (handle == NtCurrentThread())
        found = (struct handle_entry){ &me->object, THREAD_ALL_ACCESS };
    else if (handle == NtCurrentProcess() && me->process)
        found = (struct handle_entry){ &me->process->object, THREAD_ALL_ACCESS };
    else if (entry_of(handle))
        found = *entry_of(handle);
    NTSTATUS status = found.object ? check(found.object, found.access, type, wanted) : STATUS_INVALID_HANDLE;
    if (NT_SUCCESS(status)) {
        object_hold(found.object);
        *object = found.object;
        *access = found.access;
    }
    lock_release(&handle_lock, irql);
    return status;
}

NTSTATUS handle_close(HANDLE handle)
{
    uint8_t irql = lock_acquire(&handle_lock);
    struct handle_entry *entry = entry_of(handle);
    struct object *object = entry ? entry->object : NULL;
    if (entry)
        entry->object = NULL;
    lock_release(&handle_lock, irql);
    if (!object)
        return STATUS_INVALID_HANDLE;
    object_release(object);
    return STATUS_SUCCESS;
}

void handle_close_all(struct process *process)
{
    for (unsigned i = 0; i < HANDLES_MAX; i++) {
        struct object *object = process->handles[i].object;
        process->handles[i].object = NULL;
        if (object)
            object_release(object);
    }
}
