/* SPDX-License-Identifier: MIT */
/* C's memory: the process's heap. */
#include "msvcrt.h"

static void *check_block(void *block)
{
    if (!block)
        errno = ENOMEM;
    return block;
}

void *malloc(size_t size) { return check_block(HeapAlloc(GetProcessHeap(), 0, size)); }
void free(void *block) { HeapFree(GetProcessHeap(), 0, block); }

void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return check_block(NULL);
    return check_block(HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, bytes));
}

void *realloc(void *block, size_t size)
{
    if (!block)
        return malloc(size);
    if (!size) {
        free(block);
        return NULL;
    }
    return check_block(HeapReAlloc(GetProcessHeap(), 0, block, size));
}
