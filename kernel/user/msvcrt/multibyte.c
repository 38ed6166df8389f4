/* SPDX-License-Identifier: MIT */
/* Conversion of characters from and to bytes, always UTF-8; copies of strings on the heap. */
#include "msvcrt.h"
#include <wchar.h>

char *_strdup(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

wchar_t *_wcsdup(const wchar_t *text)
{
    wchar_t *copy = malloc((wcslen(text) + 1) * sizeof *copy);
    return copy ? wcscpy(copy, text) : NULL;
}

size_t wcrtomb(char *to, wchar_t c, mbstate_t *state)
{
    char bytes[8];
    (void)state;
    if (!to)
        return 1;
    int n = WideCharToMultiByte(CP_UTF8, 0, &c, 1, bytes, sizeof bytes, NULL, NULL);
    memcpy(to, bytes, (size_t)n);
    return (size_t)n;
}

/* The length of the character that begins with this byte; 1 if none does. */
static size_t utf8_length(unsigned char first)
{
    return first < 0xc2 || first > 0xf4 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* NT: characters beyond 16 bits are illegal sequences here. */
size_t mbrtowc(wchar_t *to, const char *from, size_t size, mbstate_t *state)
{
    wchar_t wide[2];
    (void)state;
    if (!from)
        return 0;
    size_t n = size ? utf8_length((unsigned char)*from) : 0;
    if (n > size || !size)
        return (size_t)-2;
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, from, (int)n, wide, 2) != 1) {
        errno = EILSEQ;
        return (size_t)-1;
    }
    if (to)
        *to = wide[0];
    return wide[0] ? n : 0;
}

size_t mbrlen(const char *from, size_t size, mbstate_t *state)
{
    return mbrtowc(NULL, from, size, state);
}

int mbtowc(wchar_t *to, const char *from, size_t size)
{
    size_t n = mbrtowc(to, from, size, NULL);
    return n == (size_t)-2 ? -1 : (int)n;
}

int wctomb(char *to, wchar_t c) { return to ? (int)wcrtomb(to, c, NULL) : 0; }
int mblen(const char *from, size_t size) { return from ? mbtowc(NULL, from, size) : 0; }

size_t mbstowcs(wchar_t *to, const char *from, size_t room)
{
    int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, from, -1, NULL, 0);
    wchar_t *whole = n && to ? malloc((size_t)n * sizeof *whole) : NULL;
    if (whole) {
        MultiByteToWideChar(CP_UTF8, 0, from, -1, whole, n);
        memcpy(to, whole, (room < (size_t)n ? room : (size_t)n) * sizeof *to);
        free(whole);
    }
    if (!n)
        errno = EILSEQ;
    return !n ? (size_t)-1 : !to || room >= (size_t)n ? (size_t)n - 1 : room;
}

size_t wcstombs(char *to, const wchar_t *from, size_t room)
{
    int n = WideCharToMultiByte(CP_UTF8, 0, from, -1, NULL, 0, NULL, NULL);
    char *whole = to ? malloc((size_t)n) : NULL;
    if (whole) {
        WideCharToMultiByte(CP_UTF8, 0, from, -1, whole, n, NULL, NULL);
        memcpy(to, whole, room < (size_t)n ? room : (size_t)n);
        free(whole);
    }
    return !to || room >= (size_t)n ? (size_t)n - 1 : room;
}
