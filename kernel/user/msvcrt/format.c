/* SPDX-License-Identifier: MIT */
/* printf: mingw-w64's own, under Microsoft's names and with a few of its rules. */
#include "msvcrt.h"
#include <stdarg.h>

int __mingw_vfprintf(FILE *stream, const char *format, va_list args);
int __mingw_vsnprintf(char *text, size_t size, const char *format, va_list args);

#define LOCAL 512

#define POINTER ".16llX" /* %p, as Microsoft prints it */

/* Copies the format with %ls for Microsoft's %ws and POINTER for %p: to `room` if it fits,
 * otherwise to the heap. */
static char *translate_format(const char *format, char *room)
{
    size_t size = 1;
    if (!format) {
        wrong(EINVAL);
        return NULL;
    }
    for (const char *p = format; *p; p++)
        size += *p == 'p' ? sizeof POINTER : 1;
    char *copy = size <= LOCAL ? room : malloc(size), *to = copy;
    bool inside = false, point = false;
    for (; copy && *format; format++) {
        *to++ = inside && *format == 'w' ? 'l' : *format;
        if (inside && *format == 'p' && !point)
            to = strcpy(to - 1, POINTER) + strlen(POINTER);
        point = inside && (point || *format == '.');
        if (!inside)
            inside = *format == '%';
        else if (*format == '%' || (strchr("diouxXeEfFgGaAcCsSpn", *format) && *format))
            inside = false;
    }
    if (copy)
        *to = 0;
    return copy;
}

int vfprintf(FILE *stream, const char *format, va_list args)
{
    char room[LOCAL], *copy = translate_format(stream ? format : NULL, room);
    if (!copy)
        return -1;
    stream_hold(stream);
    int n = __mingw_vfprintf(stream, copy, args);
    stream_let_go(stream);
    if (copy != room)
        free(copy);
    return n;
}

static int print_to(char *text, size_t size, const char *format, va_list args)
{
    char room[LOCAL], *copy = translate_format(format, room);
    int n = copy ? __mingw_vsnprintf(text, size, copy, args) : -1;
    if (copy != room)
        free(copy);
    return n;
}

int vsprintf(char *text, const char *format, va_list args)
{
    return print_to(text, INT_MAX, format, args);
}

/* Microsoft's: -1 if the text does not fit, and no NUL if there is no room for it. */
int _vsnprintf(char *text, size_t size, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = print_to(NULL, 0, format, again);
    va_end(again);
    if (n < 0 || !text)
        return n;
    if ((size_t)n < size)
        return print_to(text, size, format, args);
    char *whole = malloc((size_t)n + 1);
    if (!whole)
        return -1;
    print_to(whole, (size_t)n + 1, format, args);
    memcpy(text, whole, size);
    free(whole);
    return (size_t)n == size ? n : -1;
}

int _vscprintf(const char *format, va_list args) { return print_to(NULL, 0, format, args); }
int vprintf(const char *format, va_list args) { return vfprintf(stdout, format, args); }

int vfprintf_s(FILE *stream, const char *format, va_list args)
{
    return vfprintf(stream, format, args);
}

/* A text that does not fit ends the program on Windows; here it gives -1 and an empty text. */
int vsprintf_s(char *text, size_t size, const char *format, va_list args)
{
    int n = print_to(text, size, format, args);
    if (n >= 0 && (size_t)n < size)
        return n;
    if (text && size)
        *text = 0;
    errno = ERANGE;
    return -1;
}

OVER(int, printf, (const char *format, ...), format, vfprintf(stdout, format, args))
OVER(int, printf_s, (const char *format, ...), format, vfprintf(stdout, format, args))
OVER(int, fprintf, (FILE * stream, const char *format, ...), format, vfprintf(stream, format, args))
OVER(int, fprintf_s, (FILE * stream, const char *format, ...), format,
     vfprintf(stream, format, args))
OVER(int, sprintf, (char *text, const char *format, ...), format, vsprintf(text, format, args))
OVER(int, sprintf_s, (char *text, size_t size, const char *format, ...), format,
     vsprintf_s(text, size, format, args))
OVER(int, _snprintf, (char *text, size_t size, const char *format, ...), format,
     _vsnprintf(text, size, format, args))
OVER(int, _scprintf, (const char *format, ...), format, _vscprintf(format, args))
