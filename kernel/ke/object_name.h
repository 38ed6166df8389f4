/* SPDX-License-Identifier: MIT */
/* Names of events, semaphores, mutants and timers: tools ask by them whether they run already.
 * PASSIVE_LEVEL. NT: there are no folders, and letters count; a name goes with the last reference,
 * not with the last handle; nothing opens by name, but who creates with OBJ_OPENIF gets what
 * exists. */
#pragma once
#include "kernel/ke/object.h"

#define OBJECT_NAME_LENGTH 300u /* characters; NT: 32766 */
#define OBJ_OPENIF 0x80u

/* Of an object that may have one; length 0: none. */
struct object_name {
    LIST_ENTRY list; /* L: names_lock */
    struct object *object;
    USHORT length; /* bytes */
    WCHAR text[OBJECT_NAME_LENGTH];
};

/* What the caller's attributes, which may be NULL, say. STATUS_ACCESS_VIOLATION;
 * STATUS_INVALID_PARAMETER: Length is not 48; STATUS_INVALID_HANDLE: a RootDirectory;
 * STATUS_OBJECT_NAME_INVALID: its length is odd or too much. */
NTSTATUS object_name_get(const OBJECT_ATTRIBUTES *attributes, struct object_name *name,
                         ULONG *flags);
/* Gives `object` the name, which is part of it. Or, if there is one of that name already, a
 * reference to that. */
struct object *object_name_enter(struct object_name *name, struct object *object);
/* When the object is destroyed. */
void object_name_leave(struct object_name *name);
