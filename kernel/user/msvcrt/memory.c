/* SPDX-License-Identifier: MIT */
/* C's memory: the process's heap. */
#include "msvcrt.h"
#include <malloc.h>

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

size_t _msize(void *block)
{
    if (block)
        return HeapSize(GetProcessHeap(), 0, block);
    wrong(EINVAL);
    return SIZE_MAX;
}

/* The block's own address is stored before the aligned part. */
void *_aligned_malloc(size_t size, size_t alignment)
{
    size_t bytes;
    if (!alignment || alignment & (alignment - 1)) {
        wrong(EINVAL);
        return NULL;
    }
    bool fits = !__builtin_add_overflow(alignment, sizeof(void *), &bytes) &&
                !__builtin_add_overflow(size, bytes, &bytes);
    char *block = fits ? malloc(bytes) : check_block(NULL);
    if (!block)
        return NULL;
    uintptr_t at =
        ((uintptr_t)block + sizeof(void *) + alignment - 1) & ~(uintptr_t)(alignment - 1);
    ((void **)at)[-1] = block;
    return (void *)at;
}

void _aligned_free(void *block)
{
    if (block)
        free(((void **)block)[-1]);
}
