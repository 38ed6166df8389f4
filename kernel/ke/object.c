/* SPDX-License-Identifier: MIT */
/* References, and handle tables: (index + 1) * 4 into the process's table, as Windows numbers them.
 * A table grows by pages. handle_lock, DISPATCH_LEVEL. */
#include "kernel/ke/object.h"
#include "kernel/base/cpu.h"
#include "kernel/base/irql.h"
#include "kernel/base/lock.h"
#include "kernel/base/refuse.h"
#include "kernel/ke/process.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"

_Static_assert(HANDLES_PER_PAGE * sizeof(struct handle_entry) == PAGE_SIZE, "one page");

static struct lock handle_lock = LOCK("handles", DISPATCH_LEVEL);
static struct handle_entry system_first[HANDLES_PER_PAGE];
static struct handle_table system_handles = {
    .pages = { system_first }
}; /* L: handle_lock; of kernel threads */

void object_init(struct object *object, const struct object_type *type, KOBJECTS kind,
                 uint32_t refs)
{
    *object = (struct object){ .type = type, .refs = refs, .header = { .Type = (UCHAR)kind } };
    InitializeListHead(&object->header.WaitListHead);
}

void object_release(struct object *object)
{
    uint32_t before = __atomic_fetch_sub(&object->refs, 1, __ATOMIC_ACQ_REL);
    ASSERT(before > 0);
    if (before == 1)
        object->type->destroy(object);
}

/* --- Tables. All under handle_lock. --- */

static struct handle_table *table(void)
{
    struct process *process = thread_current()->process;
    return process ? &process->handles : &system_handles;
}

/* L: handle_lock */
static struct handle_entry *entry_of(HANDLE handle)
{
    uint64_t h = (uint64_t)handle, i = h / 4 - 1;
    if (!h || h % 4 || i >= HANDLES_MAX)
        return NULL;
    struct handle_entry *page = table()->pages[i / HANDLES_PER_PAGE];
    struct handle_entry *entry = page ? &page[i % HANDLES_PER_PAGE] : NULL;
    return entry && entry->object ? entry : NULL;
}

/* The lowest free entry, in a new page if need be; NULL: none, or no memory. L: handle_lock */
static struct handle_entry *free_entry(struct handle_table *t, uint64_t *index)
{
    for (*index = t->taken; *index < HANDLES_MAX; ++*index) {
        struct handle_entry **page = &t->pages[*index / HANDLES_PER_PAGE];
        if (!*page && !(*page = phys_alloc(1)))
            return NULL;
        if (!(*page)[*index % HANDLES_PER_PAGE].object)
            return &(*page)[*index % HANDLES_PER_PAGE];
    }
    return NULL;
}

/* Replaces generic rights by those of the type. */
static ACCESS_MASK map_generic(const struct object_type *type, ACCESS_MASK access)
{
    const ACCESS_MASK generic =
        GENERIC_READ | GENERIC_WRITE | GENERIC_EXECUTE | GENERIC_ALL | MAXIMUM_ALLOWED;
    ACCESS_MASK own = access & ~generic;
    own |= access & GENERIC_READ ? type->read : 0;
    own |= access & GENERIC_WRITE ? type->write : 0;
    own |= access & GENERIC_EXECUTE ? type->execute : 0;
    return own | (access & (GENERIC_ALL | MAXIMUM_ALLOWED) ? type->all : 0);
}

NTSTATUS handle_create(struct object *object, ACCESS_MASK access, HANDLE *handle)
{
    uint64_t index;
    KIRQL irql = lock_acquire(&handle_lock);
    struct handle_entry *entry = claim_fails() ? NULL : free_entry(table(), &index);
    if (entry) {
        table()->taken = index + 1;
        object_hold(object);
        *entry = (struct handle_entry){ object, map_generic(object->type, access) };
        *handle = (HANDLE)((index + 1) * 4);
    }
    lock_release(&handle_lock, irql);
    return entry ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
}

static NTSTATUS check_rights(const struct handle_entry *found, const struct object_type *type,
                             ACCESS_MASK wanted)
{
    if (!found->object)
        return STATUS_INVALID_HANDLE;
    if (type && found->object->type != type)
        return STATUS_OBJECT_TYPE_MISMATCH;
    wanted = map_generic(found->object->type, wanted);
    return (found->access & wanted) == wanted ? STATUS_SUCCESS : STATUS_ACCESS_DENIED;
}

NTSTATUS handle_lookup(HANDLE handle, const struct object_type *type, ACCESS_MASK wanted,
                       struct object **object)
{
    ACCESS_MASK access;
    return handle_lookup_access(handle, type, wanted, object, &access);
}

NTSTATUS handle_lookup_access(HANDLE handle, const struct object_type *type, ACCESS_MASK wanted,
                              struct object **object, ACCESS_MASK *access)
{
    struct thread *me = thread_current();
    struct handle_entry found = { NULL, 0 };

    KIRQL irql = lock_acquire(&handle_lock);
    if (handle == NtCurrentThread())
        found = (struct handle_entry){ &me->object, THREAD_ALL_ACCESS };
    else if (handle == NtCurrentProcess() && me->process)
        found = (struct handle_entry){ &me->process->object, PROCESS_ALL_ACCESS };
    else if (entry_of(handle))
        found = *entry_of(handle);
    NTSTATUS status = check_rights(&found, type, wanted);
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
    KIRQL irql = lock_acquire(&handle_lock);
    struct handle_entry *entry = entry_of(handle);
    struct object *object = entry ? entry->object : NULL;
    if (entry) {
        entry->object = NULL;
        if ((uint64_t)handle / 4 - 1 < table()->taken)
            table()->taken = (uint64_t)handle / 4 - 1;
    }
    lock_release(&handle_lock, irql);
    if (!object)
        return STATUS_INVALID_HANDLE;
    object_release(object);
    return STATUS_SUCCESS;
}

unsigned handle_count(void)
{
    const struct handle_table *t = table();
    unsigned n = 0;
    for (unsigned i = 0; i < HANDLE_PAGES && t->pages[i]; i++)
        for (unsigned k = 0; k < HANDLES_PER_PAGE; k++)
            n += t->pages[i][k].object != NULL;
    return n;
}

static void close_page(struct handle_entry *page)
{
    for (unsigned i = 0; i < HANDLES_PER_PAGE; i++) {
        struct object *object = page[i].object;
        page[i].object = NULL;
        if (object)
            object_release(object);
    }
}

/* L: handle_lock: no thread of the process is left. */
void handle_close_all(struct process *process)
{
    struct handle_table *t = process ? &process->handles : &system_handles;
    t->taken = 0;
    for (unsigned i = 0; i < HANDLE_PAGES; i++) {
        struct handle_entry *page = t->pages[i];
        if (page)
            close_page(page);
        if (!page || page == system_first)
            continue;
        t->pages[i] = NULL;
        phys_free(page, 1);
    }
}
