/* SPDX-License-Identifier: MIT */
/* Strings of bytes. memcpy, memset, memmove, memcmp, strlen and strcmp are ntdll's. For
 * drivers, too (kernel/user/handlers). */
#include "msvcrt.h"
#include <ctype.h>

size_t strnlen(const char *text, size_t size)
{
    size_t n = 0;
    while (n < size && text[n])
        n++;
    return n;
}

char *strcpy(char *to, const char *from)
{
    memcpy(to, from, strlen(from) + 1);
    return to;
}

char *strncpy(char *to, const char *from, size_t size)
{
    size_t n = strnlen(from, size);
    memcpy(to, from, n);
    memset(to + n, 0, size - n);
    return to;
}

char *strcat(char *to, const char *from)
{
    strcpy(to + strlen(to), from);
    return to;
}

char *strncat(char *to, const char *from, size_t size)
{
    size_t n = strnlen(from, size);
    char *end = to + strlen(to);
    memcpy(end, from, n);
    end[n] = 0;
    return to;
}

int strncmp(const char *a, const char *b, size_t size)
{
    for (; size && *a && *a == *b; size--)
        a++, b++;
    return size ? (unsigned char)*a - (unsigned char)*b : 0;
}

int _strnicmp(const char *a, const char *b, size_t size)
{
    for (; size && *a && tolower((unsigned char)*a) == tolower((unsigned char)*b); size--)
        a++, b++;
    return size ? tolower((unsigned char)*a) - tolower((unsigned char)*b) : 0;
}

int _stricmp(const char *a, const char *b) { return _strnicmp(a, b, SIZE_MAX); }

void *memchr(const void *from, int value, size_t size)
{
    const unsigned char *p = from;
    for (; size; size--, p++)
        if (*p == (unsigned char)value)
            return (void *)p;
    return NULL;
}

char *strchr(const char *text, int c)
{
    for (;; text++)
        if (*text == (char)c)
            return (char *)text;
        else if (!*text)
            return NULL;
}

char *strrchr(const char *text, int c)
{
    const char *found = NULL;
    for (;; text++) {
        if (*text == (char)c)
            found = text;
        if (!*text)
            return (char *)found;
    }
}

char *strstr(const char *text, const char *part)
{
    size_t n = strlen(part);
    for (; n; text++) {
        text = strchr(text, *part);
        if (!text || strncmp(text, part, n) == 0)
            break;
    }
    return (char *)text;
}

size_t strspn(const char *text, const char *set)
{
    size_t n = 0;
    while (text[n] && strchr(set, text[n]))
        n++;
    return n;
}

size_t strcspn(const char *text, const char *set)
{
    size_t n = 0;
    while (text[n] && !strchr(set, text[n]))
        n++;
    return n;
}

/* NULL: no more tokens. */
char *strtok_s(char *text, const char *ends, char **at)
{
    if (!ends || !at || (!text && !*at)) {
        wrong(EINVAL);
        return NULL;
    }
    text = text ? text : *at;
    text += strspn(text, ends);
    char *end = text + strcspn(text, ends);
    *at = *end ? end + 1 : end;
    *end = 0;
    return *text ? text : NULL;
}
