/* SPDX-License-Identifier: MIT */
/* What the services for events, semaphores, mutants and timers have in common: a page for each
 * object, handles. PASSIVE_LEVEL. Statuses: synchronization.h. */
#pragma once
#include "kernel/ke/object.h"

#define WAITABLE_OWN 120

/* The type's own data follows the header. */
struct waitable {
    struct object object;
    char own[WAITABLE_OWN];
};

#define WAITABLE_TYPE(variable, type_name, function, query, modify)                                \
    const struct object_type variable = {                                                          \
        .name = (type_name),                                                                       \
        .destroy = (function),                                                                     \
        .read = STANDARD_RIGHTS_READ | (query),                                                    \
        .write = STANDARD_RIGHTS_READ | (modify),                                                  \
        .execute = STANDARD_RIGHTS_READ | SYNCHRONIZE,                                             \
        .all = STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | (query) | (modify),                        \
    }

/* For a type's `destroy`: when the last reference goes. */
void waitable_destroy(struct object *object);
/* Looks at what every Create service takes. */
NTSTATUS waitable_arguments(PHANDLE handle, const OBJECT_ATTRIBUTES *attributes);
/* With one reference; the caller initializes it before it publishes it. NULL without memory. */
struct object *waitable_make(const struct object_type *type);
/* Gives the caller a handle, in place of the reference. */
NTSTATUS waitable_publish(struct object *object, ACCESS_MASK access, PHANDLE handle);
