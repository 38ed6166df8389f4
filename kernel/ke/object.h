/* SPDX-License-Identifier: MIT */
/* Objects that have handles and users, and the tables of handles. */
#pragma once
#include "kernel/base/list.h"
#include "kernel/nt/nt_dispatcher.h"

struct object;
struct process;
struct thread;

/* What all objects of a kind have in common. */
struct object_type {
    const char *name;
    void (*destroy)(struct object *object); /* the last reference has gone; IRQL < DISPATCH_LEVEL */
    ACCESS_MASK read, write, execute, all;  /* what the generic rights mean */
};

/* First member of what it is part of. `header` is what threads wait for, and what a driver gets a
 * pointer to. */
struct object {
    const struct object_type *type;
    uint32_t refs;            /* atomic */
    DISPATCHER_HEADER header; /* L: dispatcher lock (sched.h) */
};

#define HANDLES_PER_PAGE 256
#define HANDLE_PAGES 16 /* NT: 16 million handles; here 4096 */
#define HANDLES_MAX (HANDLES_PER_PAGE * HANDLE_PAGES)

struct handle_entry {
    struct object *object;
    ACCESS_MASK access;
};

struct handle_table {
    /* L: handle_lock. Allocated from the first on, as they are needed. */
    struct handle_entry *pages[HANDLE_PAGES];
    uint64_t taken; /* L: handle_lock; no entry below is free */
};

/* An object that is not signaled, with so many references. */
void object_init(struct object *object, const struct object_type *type, KOBJECTS kind,
                 uint32_t refs);
static inline void object_hold(struct object *o)
{
    __atomic_fetch_add(&o->refs, 1, __ATOMIC_RELAXED);
}
/* Drops a reference; the last one frees. IRQL < DISPATCH_LEVEL. */
void object_release(struct object *object);
static inline bool object_signaled(const struct object *o)
{
    return __atomic_load_n(&o->header.SignalState, __ATOMIC_ACQUIRE) > 0;
}

/* Puts the object, and a reference of its own, into the current process's table; kernel threads
 * share one. Generic rights become the type's, MAXIMUM_ALLOWED all of them.
 * STATUS_INSUFFICIENT_RESOURCES: the table is full, or there is no memory. */
NTSTATUS handle_create(struct object *object, ACCESS_MASK access, HANDLE *handle);
/* The object of a handle of the current process, with a reference for the caller;
 * pseudo-handles too. STATUS_INVALID_HANDLE, STATUS_OBJECT_TYPE_MISMATCH, STATUS_ACCESS_DENIED, in
 * that order. type NULL: any. */
NTSTATUS handle_lookup(HANDLE handle, const struct object_type *type, ACCESS_MASK wanted,
                       struct object **object);
/* handle_lookup, which also returns the access that the handle has. */
NTSTATUS handle_lookup_access(HANDLE handle, const struct object_type *type, ACCESS_MASK wanted,
                              struct object **object, ACCESS_MASK *access);
/* STATUS_INVALID_HANDLE if there is none. */
NTSTATUS handle_close(HANDLE handle);
/* Closes all of a process that has no thread any more. */
void handle_close_all(struct process *process); /* NULL: those of kernel threads */
/* How many handles the current process has open. */
unsigned handle_count(void);
