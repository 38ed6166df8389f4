/* SPDX-License-Identifier: MIT */
/* The four routines that compilers call on their own, and three that only we call. No REP: measured
 * paths use them. */
#include "kernel/base/string.h"
#include "kernel/base/sanitize/kasan.h"
#include "kernel/base/sanitize/kcsan.h"

struct word {
    uint64_t v;
} __attribute__((packed, may_alias));

static inline void *copy_bytes(void *to, const void *from, size_t size)
{
    char *t = to;
    const char *f = from;
    for (; size >= 8; size -= 8, t += 8, f += 8)
        ((struct word *)t)->v = ((const struct word *)f)->v;
    while (size--)
        *t++ = *f++;
    return to;
}

void *memcpy(void *to, const void *from, size_t size)
{
    kasan_check(from, size, false);
    kasan_check(to, size, true);
    kcsan_check(from, size, false);
    kcsan_check(to, size, true);
    return copy_bytes(to, from, size);
}

void *memcpy_from_shared(void *to, const void *from, size_t size)
{
    kasan_check(from, size, false);
    kasan_check(to, size, true);
    return copy_bytes(to, from, size);
}

void *memmove(void *to, const void *from, size_t size)
{
    kasan_check(from, size, false);
    kcsan_check(from, size, false);
    kasan_check(to, size, true);
    kcsan_check(to, size, true);
    char *t = to;
    const char *f = from;
    if (t < f || t >= f + size)
        return memcpy(to, from, size);
    while (size--)
        t[size] = f[size];
    return to;
}

void *memset(void *to, int value, size_t size)
{
    kasan_check(to, size, true);
    kcsan_check(to, size, true);
    char *t = to;
    uint64_t v = 0x0101010101010101ul * (uint8_t)value;
    for (; size >= 8; size -= 8, t += 8)
        ((struct word *)t)->v = v;
    while (size--)
        *t++ = (char)value;
    return to;
}

int memcmp(const void *a, const void *b, size_t size)
{
    const uint8_t *x = a, *y = b;
    for (; size; size--, x++, y++)
        if (*x != *y)
            return *x - *y;
    return 0;
}

size_t strlen(const char *s)
{
    size_t n = 0;
    while (s[n])
        n++;
    kasan_check(s, n + 1, false);
    kcsan_check(s, n + 1, false);
    return n;
}

int strcmp(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return (uint8_t)*a - (uint8_t)*b;
}

static int lower_case(char c) { return c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c; }

bool string_same(const char *a, const char *b)
{
    while (*a && lower_case(*a) == lower_case(*b))
        a++, b++;
    return *a == *b;
}
