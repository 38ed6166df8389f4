/* SPDX-License-Identifier: MIT */
/* Standard output and error. NT: nothing is buffered, whatever setvbuf says: what a program has
 * printed is on the console when it crashes. There is no input, and no other stream. */
#include "msvcrt.h"
#include <fcntl.h>
#include <io.h>
#include <wchar.h>

static FILE streams[3];
FILE *__iob_func(void) { return streams; }
FILE *__acrt_iob_func(unsigned number) { return &streams[number]; }

static int bad(void)
{
    errno = EBADF;
    return -1;
}

int _fileno(FILE *stream)
{
    return stream >= streams && stream < streams + 3 ? (int)(stream - streams) : bad();
}

static bool write_all(FILE *stream, const char *text, size_t size)
{
    const int file = _fileno(stream);
    DWORD written;
    if (file < 1)
        return bad() == 0;
    return WriteFile(GetStdHandle(file == 2 ? STD_ERROR_HANDLE : STD_OUTPUT_HANDLE), text,
                     (DWORD)size, &written, NULL);
}

size_t fwrite(const void *from, size_t size, size_t count, FILE *stream)
{
    size_t bytes;
    if (__builtin_mul_overflow(size, count, &bytes) || (!from && bytes)) {
        wrong(EINVAL);
        return 0;
    }
    return bytes && write_all(stream, from, bytes) ? count : 0;
}

int fputc(int c, FILE *stream)
{
    const char byte = (char)c;
    return write_all(stream, &byte, 1) ? (unsigned char)c : EOF;
}
int putc(int c, FILE *stream) { return fputc(c, stream); }
int putchar(int c) { return fputc(c, stdout); }

int fputs(const char *text, FILE *stream)
{
    return write_all(stream, text, strlen(text)) ? 0 : EOF;
}
int puts(const char *text) { return printf("%s\n", text) < 0 ? EOF : 0; }

int fflush(FILE *stream) { return stream && _fileno(stream) < 0 ? EOF : 0; }
int setvbuf(FILE *stream, char *buffer, int mode, size_t size)
{
    return _fileno(stream) < 0 ? -1 : 0;
}

/* --- Files by number. --- */

int _setmode(int file, int mode) { return (unsigned)file < 3 ? _O_TEXT : bad(); }
int _read(int file, void *to, unsigned size) { return file == 0 ? 0 : bad(); }
int _close(int file) { return (unsigned)file < 3 ? 0 : bad(); }

/* --- printf: mingw-w64's own formatting, and what it calls. --- */

int __mingw_vsnprintf(char *text, size_t size, const char *format, va_list args);

size_t wcrtomb(char *to, wchar_t c, mbstate_t *state)
{
    char bytes[8];
    int n = WideCharToMultiByte(CP_UTF8, 0, &c, 1, bytes, sizeof bytes, NULL, NULL);
    if (to)
        memcpy(to, bytes, (size_t)n);
    return (size_t)n;
}

/* Of localeconv's texts, which are ASCII. */
size_t mbrtowc(wchar_t *to, const char *from, size_t size, mbstate_t *state)
{
    *to = (wchar_t)*from;
    return *from != 0;
}

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
        else if (*format == '%' || strchr("diouxXeEfFgGaAcCsSpn", *format))
            inside = false;
    }
    if (copy)
        *to = 0;
    return copy;
}

static int print_to(char *text, size_t size, const char *format, va_list args)
{
    char room[LOCAL], *copy = translate_format(format, room);
    int n = copy ? __mingw_vsnprintf(text, size, copy, args) : -1;
    if (copy != room)
        free(copy);
    return n;
}

int _vscprintf(const char *format, va_list args) { return print_to(NULL, 0, format, args); }
int vsprintf(char *text, const char *format, va_list args)
{
    return print_to(text, INT_MAX, format, args);
}

/* The whole text, in `room` if it fits, otherwise on the heap; its length, or -1. */
static int print_whole(char **whole, char *room, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = print_to(room, LOCAL, format, again);
    va_end(again);
    *whole = n < LOCAL ? room : malloc((size_t)n + 1);
    if (*whole != room && *whole)
        print_to(*whole, (size_t)n + 1, format, args);
    return *whole ? n : -1;
}

/* A text is written at once. */
int vfprintf(FILE *stream, const char *format, va_list args)
{
    char room[LOCAL], *whole;
    int n = print_whole(&whole, room, format, args);
    if (n > 0 && !write_all(stream, whole, (size_t)n))
        n = -1;
    if (whole != room)
        free(whole);
    return n;
}

/* Microsoft's: -1 if the text does not fit, and no NUL if there is no room for it. */
int _vsnprintf(char *text, size_t size, const char *format, va_list args)
{
    char room[LOCAL], *whole;
    int n = print_whole(&whole, room, format, args);
    if (n >= 0 && text)
        memcpy(text, whole, (size_t)n < size ? (size_t)n + 1 : size);
    if (whole != room)
        free(whole);
    return !text || n < 0 || (size_t)n <= size ? n : -1;
}

int vprintf(const char *format, va_list args) { return vfprintf(stdout, format, args); }

/* Functions with `...`, over those with a va_list. */
#define OVER(name, call, ...)                                                                      \
    int name(__VA_ARGS__, ...)                                                                     \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        int result = call;                                                                         \
        va_end(args);                                                                              \
        return result;                                                                             \
    }
OVER(printf, vfprintf(stdout, format, args), const char *format)
OVER(fprintf, vfprintf(stream, format, args), FILE *stream, const char *format)
OVER(sprintf, vsprintf(text, format, args), char *text, const char *format)
OVER(_snprintf, _vsnprintf(text, size, format, args), char *text, size_t size, const char *format)
