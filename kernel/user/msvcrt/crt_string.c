/* SPDX-License-Identifier: MIT */
/* Strings of bytes. memcpy, memset, memmove, memcmp, strlen and strcmp are ntdll's. For
 * drivers, too (kernel/user/handlers). */
#include "msvcrt.h"
#include <ctype.h>

#define FUNCTION(name) str##name
#define TYPE char
#define UNIT unsigned char
#define PARAMETER int
#include "text_functions.h"

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
