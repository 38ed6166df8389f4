/* SPDX-License-Identifier: MIT */
/* Strings of bytes and of wide characters: functions that are the same for both. The _s functions
 * know the room of what they write. Without room they leave an empty string and return ERANGE; for
 * a wrong pointer they return EINVAL. Both are wrong parameters (wrong()). */
#include "msvcrt.h"
#include <ctype.h>
#include <wctype.h>

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

#define COPY(type, p)                                                                              \
    errno_t p##cpy_s(type *to, size_t room, const type *from)                                      \
    {                                                                                              \
        if (!to || !room)                                                                          \
            return wrong(EINVAL);                                                                  \
        size_t n = from ? p##len(from) : room;                                                     \
        if (n >= room) {                                                                           \
            *to = 0;                                                                               \
            return wrong(from ? ERANGE : EINVAL);                                                  \
        }                                                                                          \
        memcpy(to, from, (n + 1) * sizeof *to);                                                    \
        return 0;                                                                                  \
    }                                                                                              \
    /* With _TRUNCATE it copies what fits, and returns STRUNCATE if that is not all. */            \
    errno_t p##ncpy_s(type *to, size_t room, const type *from, size_t size)                        \
    {                                                                                              \
        if (!to || !room)                                                                          \
            return wrong(EINVAL);                                                                  \
        size_t n = from ? p##nlen(from, size) : room;                                              \
        bool fits = n < room;                                                                      \
        if (!from || (!fits && size != _TRUNCATE)) {                                               \
            *to = 0;                                                                               \
            return wrong(from ? ERANGE : EINVAL);                                                  \
        }                                                                                          \
        n = fits ? n : room - 1;                                                                   \
        memcpy(to, from, n * sizeof *to);                                                          \
        to[n] = 0;                                                                                 \
        return fits ? 0 : STRUNCATE;                                                               \
    }                                                                                              \
    /* The last three begin with a string in `to`; one that does not end is a wrong parameter. */  \
    errno_t p##cat_s(type *to, size_t room, const type *from)                                      \
    {                                                                                              \
        size_t used = to ? p##nlen(to, room) : 0;                                                  \
        errno_t error =                                                                            \
            used < room ? p##cpy_s(to ? to + used : to, room - used, from) : wrong(EINVAL);        \
        if (error && to && room)                                                                   \
            *to = 0;                                                                               \
        return error;                                                                              \
    }                                                                                              \
    errno_t p##ncat_s(type *to, size_t room, const type *from, size_t size)                        \
    {                                                                                              \
        size_t used = to ? p##nlen(to, room) : 0;                                                  \
        errno_t error =                                                                            \
            used < room ? p##ncpy_s(to ? to + used : to, room - used, from, size) : wrong(EINVAL); \
        if (error && error != STRUNCATE && to && room)                                             \
            *to = 0;                                                                               \
        return error;                                                                              \
    }
COPY(char, str)
COPY(wchar_t, wcs)

#define CHANGE(type, unit, p, name, change)                                                        \
    type *_##p##name(type *text)                                                                   \
    {                                                                                              \
        for (type *at = text; *at; at++)                                                           \
            *at = (type)change((unit)*at);                                                         \
        return text;                                                                               \
    }
CHANGE(char, unsigned char, str, lwr, tolower)
CHANGE(char, unsigned char, str, upr, toupper)
CHANGE(wchar_t, wchar_t, wcs, lwr, towlower)
CHANGE(wchar_t, wchar_t, wcs, upr, towupper)

#define FILL(type, value, p)                                                                       \
    type *_##p##rev(type *text)                                                                    \
    {                                                                                              \
        for (size_t i = 0, n = p##len(text); i < n / 2; i++) {                                     \
            type c = text[i];                                                                      \
            text[i] = text[n - 1 - i];                                                             \
            text[n - 1 - i] = c;                                                                   \
        }                                                                                          \
        return text;                                                                               \
    }                                                                                              \
    type *_##p##nset(type *text, value c, size_t size)                                             \
    {                                                                                              \
        for (type *at = text; size && *at; size--)                                                 \
            *at++ = (type)c;                                                                       \
        return text;                                                                               \
    }
FILL(char, int, str)
FILL(wchar_t, wchar_t, wcs)
char *_strset(char *text, int c) { return _strnset(text, c, SIZE_MAX); }
