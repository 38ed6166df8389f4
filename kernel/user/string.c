/* SPDX-License-Identifier: MIT */
/* The rest of <string.h>: kernel/base/string.c is in the ring-3 image, too. */
#include "kernel/user/string.h"

int strncmp(const char *a, const char *b, size_t size)
{
    for (; size && *a && *a == *b; size--)
        a++, b++;
    return size ? (unsigned char)*a - (unsigned char)*b : 0;
}

static int lower(char c) { return c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c; }

int _stricmp(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b))
        a++, b++;
    return lower(*a) - lower(*b);
}

char *strcpy(char *to, const char *from) { return memcpy(to, from, strlen(from) + 1); }

char *strncpy(char *to, const char *from, size_t size)
{
    size_t i = 0;
    for (; i < size && from[i]; i++)
        to[i] = from[i];
    for (; i < size; i++)
        to[i] = 0;
    return to;
}

char *strcat(char *to, const char *from)
{
    strcpy(to + strlen(to), from);
    return to;
}

char *strchr(const char *s, int c)
{
    for (; *s != (char)c; s++)
        if (!*s)
            return NULL;
    return (char *)(size_t)s;
}

char *strrchr(const char *s, int c)
{
    const char *found = NULL;
    do
        if (*s == (char)c)
            found = s;
    while (*s++);
    return (char *)(size_t)found;
}

char *strstr(const char *s, const char *part)
{
    size_t length = strlen(part);
    for (; strncmp(s, part, length); s++)
        if (!*s)
            return NULL;
    return (char *)(size_t)s;
}
