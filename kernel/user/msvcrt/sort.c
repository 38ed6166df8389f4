/* SPDX-License-Identifier: MIT */
/* Searching, and sorting by a heap sort: no recursion, no slow cases. What is wrong for a search or
 * a sort, as NULL for an array that is not empty, is a wrong parameter (EINVAL). */
#include "msvcrt.h"

typedef int(__cdecl *order)(const void *, const void *);
typedef int(__cdecl *order_s)(void *context, const void *, const void *);

static int without_context(void *compare, const void *a, const void *b)
{
    return (*(order *)compare)(a, b);
}

static bool usable(const void *base, size_t count, size_t size, bool compare)
{
    if ((base || !count) && size && compare)
        return true;
    wrong(EINVAL);
    return false;
}

static void swap(char *a, char *b, size_t size)
{
    for (; size; size--) {
        char c = *a;
        *a++ = *b;
        *b++ = c;
    }
}

static void sift(char *base, size_t at, size_t count, size_t size, order_s compare, void *context)
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        char *c = base + child * size;
        if (child + 1 < count && compare(context, c, c + size) < 0)
            child++;
        if (compare(context, base + at * size, base + child * size) >= 0)
            return;
        swap(base + at * size, base + child * size, size);
    }
}

static void heap_sort(char *base, size_t count, size_t size, order_s compare, void *context)
{
    for (size_t i = count / 2; i-- > 0;)
        sift(base, i, count, size, compare, context);
    for (size_t n = count; n-- > 1;) {
        swap(base, base + n * size, size);
        sift(base, 0, n, size, compare, context);
    }
}

void qsort_s(void *base, size_t count, size_t size, order_s compare, void *context)
{
    if (usable(base, count, size, compare))
        heap_sort(base, count, size, compare, context);
}

void qsort(void *base, size_t count, size_t size, order compare)
{
    if (usable(base, count, size, compare))
        heap_sort(base, count, size, without_context, &compare);
}

static void *binary_search(const void *key, const char *from, size_t count, size_t size,
                           order_s compare, void *context)
{
    while (count) {
        const char *middle = from + count / 2 * size;
        int result = compare(context, key, middle);
        if (result == 0)
            return (void *)middle;
        if (result > 0) {
            from = middle + size;
            count--;
        }
        count /= 2;
    }
    return NULL;
}

void *bsearch_s(const void *key, const void *base, size_t count, size_t size, order_s compare,
                void *context)
{
    return usable(base, count, size, compare)
               ? binary_search(key, base, count, size, compare, context)
               : NULL;
}

void *bsearch(const void *key, const void *base, size_t count, size_t size, order compare)
{
    return usable(base, count, size, compare)
               ? binary_search(key, base, count, size, without_context, &compare)
               : NULL;
}
