/* SPDX-License-Identifier: MIT */
/* Strings of wide characters; for drivers, too (kernel/user/handlers). */
#include "msvcrt.h"
#include <wchar.h>
#include <wctype.h>

size_t wcsnlen(const wchar_t *text, size_t size)
{
    size_t n = 0;
    while (n < size && text[n])
        n++;
    return n;
}

size_t wcslen(const wchar_t *text) { return wcsnlen(text, SIZE_MAX); }

wchar_t *wcscpy(wchar_t *to, const wchar_t *from)
{
    memcpy(to, from, (wcslen(from) + 1) * sizeof *to);
    return to;
}

wchar_t *wcsncpy(wchar_t *to, const wchar_t *from, size_t size)
{
    size_t i = 0;
    for (; i < size && from[i]; i++)
        to[i] = from[i];
    for (; i < size; i++)
        to[i] = 0;
    return to;
}

wchar_t *wcscat(wchar_t *to, const wchar_t *from)
{
    wcscpy(to + wcslen(to), from);
    return to;
}

wchar_t *wcsncat(wchar_t *to, const wchar_t *from, size_t size)
{
    wchar_t *end = to + wcslen(to);
    for (; size && *from; size--)
        *end++ = *from++;
    *end = 0;
    return to;
}

int wcsncmp(const wchar_t *a, const wchar_t *b, size_t size)
{
    for (; size && *a && *a == *b; size--)
        a++, b++;
    return size ? *a - *b : 0;
}

int wcscmp(const wchar_t *a, const wchar_t *b) { return wcsncmp(a, b, SIZE_MAX); }

int _wcsnicmp(const wchar_t *a, const wchar_t *b, size_t size)
{
    for (; size && *a && towlower(*a) == towlower(*b); size--)
        a++, b++;
    return size ? towlower(*a) - towlower(*b) : 0;
}

int _wcsicmp(const wchar_t *a, const wchar_t *b) { return _wcsnicmp(a, b, SIZE_MAX); }

wchar_t *wcschr(const wchar_t *text, wchar_t c)
{
    for (;; text++)
        if (*text == c)
            return (wchar_t *)text;
        else if (!*text)
            return NULL;
}

wchar_t *wcsrchr(const wchar_t *text, wchar_t c)
{
    const wchar_t *found = NULL;
    for (;; text++) {
        if (*text == c)
            found = text;
        if (!*text)
            return (wchar_t *)found;
    }
}

wchar_t *wcsstr(const wchar_t *text, const wchar_t *part)
{
    size_t n = wcslen(part);
    for (; n; text++) {
        text = wcschr(text, *part);
        if (!text || wcsncmp(text, part, n) == 0)
            break;
    }
    return (wchar_t *)text;
}
