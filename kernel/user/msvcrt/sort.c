/* SPDX-License-Identifier: MIT */
/* Searching, and sorting by a heap sort: no recursion, no slow cases. What is wrong for a search or
 * a sort, as NULL for an array that is not empty, is a wrong parameter (EINVAL). */
#include "msvcrt.h"

typedef int(__cdecl *order)(const void *, const void *);

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

static void sift(char *base, size_t at, size_t count, size_t size, order compare)
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        char *c = base + child * size;
        if (child + 1 < count && compare(c, c + size) < 0)
            child++;
        if (compare(base + at * size, base + child * size) >= 0)
            return;
        swap(base + at * size, base + child * size, size);
    }
}

static void heap_sort(char *base, size_t count, size_t size, order compare)
{
    for (size_t i = count / 2; i-- > 0;)
        sift(base, i, count, size, compare);
    for (size_t n = count; n-- > 1;) {
        swap(base, base + n * size, size);
        sift(base, 0, n, size, compare);
    }
}

void qsort(void *base, size_t count, size_t size, order compare)
{
    if (usable(base, count, size, compare))
        heap_sort(base, count, size, compare);
}

void *bsearch(const void *key, const void *base, size_t count, size_t size, order compare)
{
    const char *from = base;
    if (!usable(base, count, size, compare))
        return NULL;
    while (count) {
        const char *middle = from + count / 2 * size;
        int result = compare(key, middle);
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
