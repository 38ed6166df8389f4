/* SPDX-License-Identifier: MIT */
/* What can be waited for, and the handles that name it. */
#pragma once
#include "kernel/nt.h"

struct thread;
struct process;

enum object_type { OBJECT_THREAD = 1, OBJECT_PROCESS, OBJECT_PROFILE, OBJECT_TRACE };

/* First member of what it is part of. */
struct object {
    enum object_type type;
    uint32_t refs;          /* atomic */
    bool signaled;          /* L: sched_lock */
    struct thread *waiters; /* L: sched_lock; by thread.wait_next */
};

#define HANDLES_MAX 128

struct handle_entry {
    struct object *object;
    ACCESS_MASK access;
};

static inline void object_hold(struct object *o) { __atomic_fetch_add(&o->refs, 1, __ATOMIC_RELAXED); }
/* Drops a reference; the last one frees. IRQL < DISPATCH_LEVEL. */
void object_release(struct object *object);

/* Puts the object, and a reference of its own, into the current process's table; kernel threads share one.
 * STATUS_INSUFFICIENT_RESOURCES: the table is full. */
NTSTATUS handle_create(struct object *object, ACCESS_MASK access, HANDLE *handle);
/* The object behind a handle of the current process, with a reference for the caller; pseudo-handles too.
 * STATUS_INVALID_HANDLE, STATUS_OBJECT_TYPE_MISMATCH, STATUS_ACCESS_DENIED, in that order. type 0: any. */
NTSTATUS handle_lookup(HANDLE handle, enum object_type type, ACCESS_MASK wanted, struct object **object);
/* The same, and what access the handle has. */
NTSTATUS handle_lookup_access(HANDLE handle, enum object_type type, ACCESS_MASK wanted, struct object **object,
                              ACCESS_MASK *access);
/* STATUS_INVALID_HANDLE if there is none. */
NTSTATUS handle_close(HANDLE handle);
/* Closes all of a process that has no thread any more. */
void handle_close_all(struct process *process);
