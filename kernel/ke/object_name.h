/* SPDX-License-Identifier: MIT */
/* Names of events, semaphores and mutants: those in \BaseNamedObjects. PASSIVE_LEVEL. NT: letters
 * count, whatever OBJ_CASE_INSENSITIVE says; a name goes with the last reference, not with the last
 * handle. */
#pragma once
#include "kernel/ke/object.h"

#define OBJECT_NAME_LENGTH 300u /* characters after the folder; NT: 32766 */
#define OBJ_OPENIF 0x80u

/* Of an object that may have one; Length 0: none. */
struct object_name {
    LIST_ENTRY list; /* L: names_lock */
    struct object *object;
    USHORT length; /* bytes */
    WCHAR text[OBJECT_NAME_LENGTH];
};

/* What the caller's attributes, which may be NULL, say. STATUS_ACCESS_VIOLATION;
 * STATUS_INVALID_PARAMETER: Length is not 48; STATUS_INVALID_HANDLE: a RootDirectory;
 * STATUS_OBJECT_NAME_INVALID: its length is odd or too much; STATUS_OBJECT_PATH_SYNTAX_BAD: it does
 * not begin with a backslash; STATUS_OBJECT_PATH_NOT_FOUND: it is in another folder. */
NTSTATUS object_name_get(const OBJECT_ATTRIBUTES *attributes, struct object_name *name,
                         ULONG *flags);
/* Gives `object` the name, which is part of it. Or, if there is one of that name already, a
 * reference to that. */
struct object *object_name_enter(struct object_name *name, struct object *object);
/* A reference to the object of that name; NULL: there is none. */
struct object *object_name_find(const struct object_name *name);
/* When the object is destroyed. */
void object_name_leave(struct object_name *name);
