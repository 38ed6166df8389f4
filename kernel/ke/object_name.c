/* SPDX-License-Identifier: MIT */
/* One list, names_lock, DISPATCH_LEVEL. An object on it may be about to be destroyed: who finds it
 * takes a reference only if there is one left. */
#include "kernel/ke/object_name.h"
#include "kernel/base/irql.h"
#include "kernel/base/list.h"
#include "kernel/base/lock.h"
#include "kernel/ke/caller.h"

static struct lock names_lock = LOCK("object names", DISPATCH_LEVEL);
static LIST_ENTRY names = { &names, &names }; /* L: names_lock */

static NTSTATUS get_text(PUNICODE_STRING from, struct object_name *name)
{
    UNICODE_STRING string;
    NTSTATUS status = caller_get(&string, from, sizeof string);
    if (!NT_SUCCESS(status) || !string.Length)
        return status;
    if (string.Length % sizeof(WCHAR) || string.Length > sizeof name->text)
        return STATUS_OBJECT_NAME_INVALID;
    name->length = string.Length;
    return caller_get(name->text, string.Buffer, string.Length);
}

NTSTATUS object_name_get(const OBJECT_ATTRIBUTES *attributes, struct object_name *name,
                         ULONG *flags)
{
    OBJECT_ATTRIBUTES a = { .Length = sizeof a };
    name->length = 0;
    NTSTATUS status = attributes ? caller_get(&a, attributes, sizeof a) : STATUS_SUCCESS;
    if (!NT_SUCCESS(status))
        return status;
    *flags = a.Attributes;
    if (a.Length != sizeof a)
        return STATUS_INVALID_PARAMETER;
    if (a.RootDirectory)
        return STATUS_INVALID_HANDLE;
    return a.ObjectName ? get_text(a.ObjectName, name) : STATUS_SUCCESS;
}

static bool try_hold(struct object *object)
{
    uint32_t refs = __atomic_load_n(&object->refs, __ATOMIC_RELAXED);
    while (refs)
        if (__atomic_compare_exchange_n(&object->refs, &refs, refs + 1, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return true;
    return false;
}

/* Under the lock. */
static struct object *find_name(const struct object_name *name)
{
    for (const LIST_ENTRY *e = names.Flink; e != &names; e = e->Flink) {
        const struct object_name *n = CONTAINING_RECORD(e, struct object_name, list);
        if (n->length == name->length && !memcmp(n->text, name->text, n->length) &&
            try_hold(n->object))
            return n->object;
    }
    return NULL;
}

struct object *object_name_enter(struct object_name *name, struct object *object)
{
    KIRQL irql = lock_acquire(&names_lock);
    struct object *found = find_name(name);
    if (!found) {
        name->object = object;
        InsertTailList(&names, &name->list);
    }
    lock_release(&names_lock, irql);
    return found;
}

void object_name_leave(struct object_name *name)
{
    if (!name->object)
        return;
    KIRQL irql = lock_acquire(&names_lock);
    RemoveEntryList(&name->list);
    lock_release(&names_lock, irql);
}
