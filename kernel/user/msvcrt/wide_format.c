/* SPDX-License-Identifier: MIT */
/* wprintf, as in format.c. In a wide format %s and %c are wide, %S and %C narrow. */
#include "msvcrt.h"
#include <stdarg.h>
#include <wchar.h>
#undef putwc
#undef putwchar
#undef getwc
#undef getwchar

int __mingw_vsnwprintf(wchar_t *text, size_t size, const wchar_t *format, va_list args);

#define POINTER L".16llX" /* %p, as Microsoft prints it */
#define POINTER_LENGTH 6

/* Copies the format with C99's widths of strings and characters. The caller frees it. */
static wchar_t *translate_wide_format(const wchar_t *format)
{
    if (!format) {
        wrong(EINVAL);
        return NULL;
    }
    wchar_t *copy = malloc((POINTER_LENGTH * wcslen(format) + 1) * sizeof *copy), *to = copy;
    bool inside = false, sized = false, point = false;
    for (; copy && *format; format++) {
        wchar_t c = *format;
        if (!inside) {
            inside = c == '%';
            sized = point = false;
            *to++ = c;
            continue;
        }
        if (c == 'h' || c == 'l' || c == 'w')
            sized = true;
        if (!sized && (c == 's' || c == 'c'))
            *to++ = 'l';
        if (!sized && (c == 'S' || c == 'C'))
            *to++ = 'h';
        point |= c == '.';
        if (c == 'p' && !point)
            to = wcscpy(to, POINTER) + POINTER_LENGTH - 1;
        *to++ = c == 'w' ? 'l' : c == 'S' ? 's' : c == 'C' ? 'c' : c == 'p' ? 'X' : c;
        if (c == '%' || wcschr(L"diouxXeEfFgGaAcCsSpn", c))
            inside = false;
    }
    if (copy)
        *to = 0;
    return copy;
}

static int print_wide(wchar_t *text, size_t size, const wchar_t *format, va_list args)
{
    wchar_t *copy = translate_wide_format(format);
    va_list again;
    va_copy(again, args);
    int n = copy ? __mingw_vsnwprintf(NULL, 0, copy, again) : -1;
    va_end(again);
    wchar_t *whole = n >= 0 && text ? malloc(((size_t)n + 1) * sizeof *whole) : NULL;
    if (whole) {
        __mingw_vsnwprintf(whole, (size_t)n + 1, copy, args);
        memcpy(text, whole, ((size_t)n < size ? (size_t)n + 1 : size) * sizeof *whole);
    }
    free(whole);
    free(copy);
    return n;
}

/* mingw-w64's own vfwprintf calls Microsoft's, which is this one. */
int vfwprintf(FILE *stream, const wchar_t *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = print_wide(NULL, 0, stream ? format : NULL, again);
    va_end(again);
    wchar_t *whole = n >= 0 ? malloc(((size_t)n + 1) * sizeof *whole) : NULL;
    if (!whole)
        return -1;
    print_wide(whole, (size_t)n + 1, format, args);
    fputws(whole, stream);
    free(whole);
    return n;
}

int __ms_fwprintf(FILE *stream, const wchar_t *format, ...);
int __ms_fwprintf(FILE *stream, const wchar_t *format, ...)
{
    (void)stream, (void)format;
    return -1;
}

int vwprintf(const wchar_t *format, va_list args) { return vfwprintf(stdout, format, args); }

/* -1: the text is longer than `size`. After `size` characters there is no NUL. */
int _vsnwprintf(wchar_t *text, size_t size, const wchar_t *format, va_list args)
{
    int n = print_wide(text, size, format, args);
    return !text || n < 0 || (size_t)n <= size ? n : -1;
}

int _vscwprintf(const wchar_t *format, va_list args) { return _vsnwprintf(NULL, 0, format, args); }

OVER(int, wprintf, (const wchar_t *format, ...), format, vfwprintf(stdout, format, args))
OVER(int, fwprintf, (FILE * stream, const wchar_t *format, ...), format,
     vfwprintf(stream, format, args))
OVER(int, _snwprintf, (wchar_t * text, size_t size, const wchar_t *format, ...), format,
     _vsnwprintf(text, size, format, args))
OVER(int, _scwprintf, (const wchar_t *format, ...), format, _vscwprintf(format, args))

/* Microsoft's old ones, without a size. */
int _swprintf(wchar_t *text, const wchar_t *format, ...);
OVER(int, _swprintf, (wchar_t * text, const wchar_t *format, ...), format,
     _vsnwprintf(text, INT_MAX / 4, format, args))
int _vswprintf(wchar_t *text, const wchar_t *format, va_list args);
int _vswprintf(wchar_t *text, const wchar_t *format, va_list args)
{
    return _vsnwprintf(text, INT_MAX / 4, format, args);
}

/* --- Wide characters in streams: UTF-8. --- */

wint_t fputwc(wchar_t c, FILE *stream)
{
    wchar_t *high = &thread_data()->high, units[2] = { *high, c };
    char bytes[8];
    bool pair = *high && c >= 0xdc00 && c < 0xe000;
    *high = c >= 0xd800 && c < 0xdc00 ? c : 0;
    if (*high)
        return c;
    int n = WideCharToMultiByte(CP_UTF8, 0, pair ? units : units + 1, pair ? 2 : 1, bytes,
                                sizeof bytes, NULL, NULL);
    return stream_write(stream, bytes, (size_t)n) == (size_t)n ? c : WEOF;
}

wint_t putwc(wchar_t c, FILE *stream) { return fputwc(c, stream); }
wint_t putwchar(wchar_t c) { return fputwc(c, stdout); }

int fputws(const wchar_t *text, FILE *stream)
{
    if (!text || !stream) {
        wrong(EINVAL);
        return EOF;
    }
    stream_hold(stream);
    for (; *text; text++)
        fputwc(*text, stream);
    stream_let_go(stream);
    return 0;
}

int _putws(const wchar_t *text)
{
    stream_hold(stdout);
    fputws(text, stdout);
    fputwc(L'\n', stdout);
    stream_let_go(stdout);
    return 0;
}

wint_t fgetwc(FILE *stream)
{
    int c = stream_read(stream);
    return c == EOF ? WEOF : (wint_t)c;
}

wint_t getwc(FILE *stream) { return fgetwc(stream); }
wint_t ungetwc(wint_t c, FILE *stream) { return c == WEOF || ungetc(c, stream) == EOF ? WEOF : c; }
