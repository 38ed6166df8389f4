/* SPDX-License-Identifier: MIT */
/* Strings: what ucrtbase has beside msvcrt's. Without room the _s functions return an error code
 * and leave an empty string. */
#include "ucrt.h"
#include <ctype.h>
#include <wchar.h>
#include <wctype.h>

/* --- Memory. --- */

errno_t memcpy_s(void *to, size_t room, const void *from, size_t size)
{
    if (!size)
        return 0;
    if (!to || !from || room < size) {
        if (to)
            memset(to, 0, room);
        return wrong(to && from ? ERANGE : EINVAL);
    }
    memcpy(to, from, size);
    return 0;
}

errno_t memmove_s(void *to, size_t room, const void *from, size_t size)
{
    if (!size)
        return 0;
    if (!to || !from || room < size)
        return wrong(to && from ? ERANGE : EINVAL);
    memmove(to, from, size);
    return 0;
}

static size_t wide_bytes(size_t count)
{
    size_t bytes;
    return __builtin_mul_overflow(count, sizeof(wchar_t), &bytes) ? SIZE_MAX : bytes;
}

errno_t wmemcpy_s(wchar_t *to, size_t room, const wchar_t *from, size_t count)
{
    return memcpy_s(to, wide_bytes(room), from, wide_bytes(count));
}

errno_t wmemmove_s(wchar_t *to, size_t room, const wchar_t *from, size_t count)
{
    return memmove_s(to, wide_bytes(room), from, wide_bytes(count));
}

int _memicmp(const void *a, const void *b, size_t size)
{
    const unsigned char *p = a, *q = b;
    for (; size; size--, p++, q++)
        if (tolower(*p) != tolower(*q))
            return tolower(*p) - tolower(*q);
    return 0;
}

void *_memccpy(void *to, const void *from, int c, size_t size)
{
    const unsigned char *p = from;
    for (unsigned char *q = to; size; size--)
        if ((*q++ = *p++) == (unsigned char)c)
            return q;
    return NULL;
}

/* --- Strings. --- */

/* wcstok: without a place to keep the rest, as it was before 2015. */
wchar_t *wcstok_kept(wchar_t *text, const wchar_t *ends, wchar_t **at)
{
    return at ? wcstok_s(text, ends, at) : wcstok(text, ends);
}

errno_t strerror_s(char *text, size_t room, int error)
{
    return strncpy_s(text, room, strerror(error), _TRUNCATE) == EINVAL ? EINVAL : 0;
}

/* --- Kinds of characters. --- */

int iswblank(wint_t c) { return c == ' ' || c == '\t'; }
int isblank(int c) { return c == ' ' || c == '\t'; }
int __iscsym(int c) { return isalnum(c) || c == '_'; }
int __iscsymf(int c) { return isalpha(c) || c == '_'; }

/* The table that <ctype.h>'s inline functions look in, by characters from -1 to 255. */
const unsigned short *__pctype_func(void)
{
    static unsigned short table[257];
    for (int c = 127; c >= 0 && !table[1]; c--) /* NUL's is the last */
        table[1 + c] = (unsigned short)_isctype(c, 0xffff);
    return table + 1;
}

static const struct {
    const char *name;
    wctype_t mask;
} kinds[] = {
    { "alnum", _ALPHA | _DIGIT }, { "alpha", _ALPHA },
    { "blank", _BLANK },          { "cntrl", _CONTROL },
    { "digit", _DIGIT },          { "graph", _ALPHA | _DIGIT | _PUNCT },
    { "lower", _LOWER },          { "print", _ALPHA | _DIGIT | _PUNCT | _BLANK },
    { "punct", _PUNCT },          { "space", _SPACE },
    { "upper", _UPPER },          { "xdigit", _HEX },
};

/* 0: there is no such kind. */
wctype_t wctype(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].mask;
    return 0;
}

/* --- From and to bytes. --- */

wint_t btowc(int c) { return c >= 0 && c < 0x80 ? (wint_t)c : WEOF; }
int wctob(wint_t c) { return c < 0x80 ? c : EOF; }

/* After a text that did not fit *from is what was not converted. */
size_t mbsrtowcs(wchar_t *to, const char **from, size_t room, mbstate_t *state)
{
    const char *at = *from;
    size_t n = 0;
    if (!to)
        return mbstowcs(NULL, at, 0);
    for (size_t length; n < room; n++, at += length) {
        length = mbrtowc(to + n, at, MB_LEN_MAX, state);
        if (length == (size_t)-1 || length == (size_t)-2)
            return (size_t)-1;
        if (!length)
            break;
    }
    *from = n < room ? NULL : at;
    return n;
}

size_t wcsrtombs(char *to, const wchar_t **from, size_t room, mbstate_t *state)
{
    const wchar_t *at = *from;
    size_t n = 0;
    char bytes[8];
    if (!to)
        return wcstombs(NULL, at, 0);
    for (;; at++) {
        size_t length = wcrtomb(bytes, *at, state);
        if (length > room - n) {
            *from = at;
            return n;
        }
        memcpy(to + n, bytes, length);
        if (!*at)
            break;
        n += length;
    }
    *from = NULL;
    return n;
}

/* As wcstombs, but no character is cut in two. */
static size_t whole_characters(char *to, const wchar_t *from, size_t room)
{
    return to ? wcsrtombs(to, &from, room, NULL) : wcstombs(NULL, from, 0);
}

/* `most` characters, or with _TRUNCATE as many as there is room for. */
/* NULL and no room: *converted is the room that the text needs, with its NUL. EILSEQ: `from` is not
 * UTF-8. NT: a pair of surrogates may be cut in two. */
#define CONVERT(to_type, from_type, name, plain)                                                   \
    errno_t name(size_t *converted, to_type *to, size_t room, const from_type *from, size_t most)  \
    {                                                                                              \
        if (converted)                                                                             \
            *converted = 0;                                                                        \
        if (to && room)                                                                            \
            *to = 0;                                                                               \
        if (!from || !to != !room)                                                                 \
            return wrong(EINVAL);                                                                  \
        size_t n = plain(NULL, from, 0), length = n < most ? n : most;                             \
        if (n == (size_t)-1)                                                                       \
            return EILSEQ;                                                                         \
        bool cut = to && length >= room;                                                           \
        if (cut && most != _TRUNCATE)                                                              \
            return wrong(ERANGE);                                                                  \
        length = cut ? room - 1 : length;                                                          \
        if (to)                                                                                    \
            length = plain(to, from, length);                                                      \
        if (to)                                                                                    \
            to[length] = 0;                                                                        \
        if (converted)                                                                             \
            *converted = length + 1;                                                               \
        return cut ? STRUNCATE : 0;                                                                \
    }
CONVERT(wchar_t, char, mbstowcs_s, mbstowcs)
CONVERT(char, wchar_t, wcstombs_s, whole_characters)

/* NULL and no room: 0, as there are no states. */
errno_t wctomb_s(int *converted, char *to, size_t room, wchar_t c)
{
    char bytes[8] = "";
    int n = to ? wctomb(bytes, c) : 0;
    if (converted)
        *converted = to ? -1 : 0;
    if (!to && room)
        return wrong(EINVAL);
    if ((size_t)n > room)
        return wrong(ERANGE);
    memcpy(to, bytes, (size_t)n);
    if (converted)
        *converted = n;
    return 0;
}
