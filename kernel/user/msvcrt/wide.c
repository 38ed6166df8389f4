/* SPDX-License-Identifier: MIT */
/* Strings of wide characters; for drivers, too (kernel/user/handlers). */
#include "msvcrt.h"
#include <wchar.h>
#include <wctype.h>

#define FUNCTION(name) wcs##name
#define TYPE wchar_t
#define UNIT wchar_t
#define PARAMETER wchar_t
#include "text_functions.h"

size_t wcslen(const wchar_t *text) { return wcsnlen(text, SIZE_MAX); }

int wcscmp(const wchar_t *a, const wchar_t *b) { return wcsncmp(a, b, SIZE_MAX); }

int _wcsnicmp(const wchar_t *a, const wchar_t *b, size_t size)
{
    for (; size && *a && towlower(*a) == towlower(*b); size--)
        a++, b++;
    return size ? towlower(*a) - towlower(*b) : 0;
}

int _wcsicmp(const wchar_t *a, const wchar_t *b) { return _wcsnicmp(a, b, SIZE_MAX); }
