/* SPDX-License-Identifier: MIT */
/* printf as ucrtbase exports it: the names that programs call are inline functions of its headers.
 * `options` are bits of corecrt_stdio_config.h. NT: there is no locale but "C". */
#include "ucrt.h"

#define LEGACY_TERMINATION 1u /* _vsnprintf: no NUL if there is no room for it, -1 if it is long */
#define C99_LENGTH 2u         /* vsnprintf: the length of the whole text */
#define LEGACY_WIDE 4u        /* %s in a wide format is wide */

#define CUT (-1)

static unsigned rules_of(uint64_t options)
{
    return FORMAT_LONG_IS_DOUBLE | (options & LEGACY_WIDE ? 0 : FORMAT_C99_STRINGS);
}

int __stdio_common_vfprintf(uint64_t options, FILE *stream, const char *format, void *locale,
                            va_list args)
{
    (void)locale;
    return format_to_stream(stream, rules_of(options), format, args);
}

int __stdio_common_vfwprintf(uint64_t options, FILE *stream, const wchar_t *format, void *locale,
                             va_list args)
{
    (void)locale;
    return format_to_wide_stream(stream, rules_of(options), format, args);
}

/* The whole text on the heap; its length, or -1. */
static int whole_text(char **whole, uint64_t options, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = format_to_text(NULL, 0, rules_of(options), format, again);
    va_end(again);
    *whole = n >= 0 ? malloc((size_t)n + 1) : NULL;
    return *whole ? format_to_text(*whole, (size_t)n + 1, rules_of(options), format, args) : -1;
}

static int whole_wide_text(wchar_t **whole, uint64_t options, const wchar_t *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = format_to_wide_text(NULL, 0, rules_of(options), format, again);
    va_end(again);
    *whole = n >= 0 ? malloc(((size_t)n + 1) * sizeof **whole) : NULL;
    return *whole ? format_to_wide_text(*whole, (size_t)n + 1, rules_of(options), format, args)
                  : -1;
}

/* Without a buffer the length alone. Otherwise `options` say what a buffer of `room` characters
 * holds, and what is returned, if the text does not fit with its NUL. */
#define TO_TEXT(type, name, whole_of)                                                              \
    int name(uint64_t options, type *text, size_t room, const type *format, void *locale,          \
             va_list args)                                                                         \
    {                                                                                              \
        type *whole;                                                                               \
        (void)locale;                                                                              \
        if (room && !text) {                                                                       \
            wrong(EINVAL);                                                                         \
            return CUT;                                                                            \
        }                                                                                          \
        int n = whole_of(&whole, options, format, args);                                           \
        bool fits = n >= 0 && (size_t)n < room;                                                    \
        if (n >= 0 && room)                                                                        \
            memcpy(text, whole, (fits ? (size_t)n + 1 : room) * sizeof *text);                     \
        free(whole);                                                                               \
        if (!text || fits || n < 0)                                                                \
            return n;                                                                              \
        if (room && !(options & LEGACY_TERMINATION))                                               \
            text[room - 1] = 0;                                                                    \
        bool full = (size_t)n == room && options & LEGACY_TERMINATION;                             \
        return full || options & C99_LENGTH ? n : CUT;                                             \
    }
TO_TEXT(char, __stdio_common_vsprintf, whole_text)
TO_TEXT(wchar_t, __stdio_common_vswprintf, whole_wide_text)

/* At most `most` characters, or with _TRUNCATE as many as there is room for: -1 if that cuts the
 * text off. If they do not fit, the text is empty and the parameter is wrong (ERANGE). */
#define TO_TEXT_S(type, name, limited_name, whole_of)                                              \
    int limited_name(uint64_t options, type *text, size_t room, size_t most, const type *format,   \
                     void *locale, va_list args)                                                   \
    {                                                                                              \
        type *whole;                                                                               \
        (void)locale;                                                                              \
        if (!text || !room || !format) {                                                           \
            wrong(EINVAL);                                                                         \
            return CUT;                                                                            \
        }                                                                                          \
        int n = whole_of(&whole, options, format, args);                                           \
        size_t length = n < 0 ? 0 : (size_t)n < most ? (size_t)n : most;                           \
        bool fits = length < room;                                                                 \
        if (!fits && most == _TRUNCATE)                                                            \
            length = room - 1;                                                                     \
        bool long_one = length >= room;                                                            \
        if (n >= 0 && !long_one)                                                                   \
            memcpy(text, whole, length * sizeof *text);                                            \
        text[long_one ? 0 : length] = 0;                                                           \
        free(whole);                                                                               \
        if (long_one)                                                                              \
            wrong(ERANGE);                                                                         \
        return !long_one && n >= 0 && length == (size_t)n ? n : CUT;                               \
    }                                                                                              \
    int name(uint64_t options, type *text, size_t room, const type *format, void *locale,          \
             va_list args)                                                                         \
    {                                                                                              \
        return limited_name(options, text, room, (size_t)INT_MAX, format, locale, args);           \
    }
TO_TEXT_S(char, __stdio_common_vsprintf_s, __stdio_common_vsnprintf_s, whole_text)
TO_TEXT_S(wchar_t, __stdio_common_vswprintf_s, __stdio_common_vsnwprintf_s, whole_wide_text)

/* --- Opening, which finds no file. --- */

/* EINVAL: one of them is NULL. */
errno_t fopen_s(FILE **stream, const char *name, const char *mode)
{
    if (stream)
        *stream = NULL;
    return stream && name && mode ? (errno = ENOENT) : wrong(EINVAL);
}

int _flushall(void)
{
    fflush(NULL);
    return 3;
}

errno_t clearerr_s(FILE *stream)
{
    clearerr(stream);
    return stream ? 0 : EINVAL;
}

size_t fread_s(void *to, size_t room, size_t size, size_t count, FILE *stream)
{
    if (!to || !size || count <= room / size)
        return fread(to, size, count, stream);
    wrong(ERANGE);
    return 0;
}
