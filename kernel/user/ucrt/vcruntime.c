/* SPDX-License-Identifier: MIT */
/* What Microsoft's compiler calls by itself: on Windows vcruntime140.dll, and ucrtbase.dll has it
 * too. NT: no exceptions of Microsoft's C++ and no RTTI. */
#include "ucrt.h"

/* No C++ exception is ever on its way. */
void **__current_exception(void) { return &thread_data()->exception[0]; }
void **__current_exception_context(void) { return &thread_data()->exception[1]; }
int __uncaught_exceptions(void) { return 0; }
bool __uncaught_exception(void) { return false; }

struct exception_data {
    const char *what;
    bool owned;
};

void __std_exception_copy(const struct exception_data *from, struct exception_data *to)
{
    char *copy = from->owned && from->what ? _strdup(from->what) : NULL;
    *to = copy ? (struct exception_data){ copy, true }
               : (struct exception_data){ from->owned ? NULL : from->what, false };
}

void __std_exception_destroy(struct exception_data *data)
{
    if (data->owned)
        free((void *)data->what);
    *data = (struct exception_data){ 0 };
}

struct type_info {
    const char *plain;
    char decorated[];
};

int __std_type_info_compare(const struct type_info *a, const struct type_info *b)
{
    return a == b ? 0 : strcmp(a->decorated + 1, b->decorated + 1);
}

/* FNV-1a, of 64 bits. */
size_t __std_type_info_hash(const struct type_info *type)
{
    size_t hash = 14695981039346656037ull;
    for (const char *p = type->decorated + 1; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 1099511628211ull;
    return hash ^ hash >> 32;
}

/* The names that type_info::name() made: none. */
void __std_type_info_destroy_list(void *list) { (void)list; }
