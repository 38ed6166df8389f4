/* SPDX-License-Identifier: MIT */
/* stdout and stderr. A line of stdout, or the text of one call to stderr, goes to the console in as
 * few pieces as the service allows. A lock per stream keeps the lines of threads apart. */
#include "kernel/user/stdio.h"
#include <stdbool.h>
#include "kernel/base/string.h"
#include "windows.h"

#define CONSOLE_MAX 256 /* characters in one write_console */

struct user_file {
    uint32_t lock; /* atomic */
    bool by_line;  /* false: written after each call */
    unsigned used;
    char text[CONSOLE_MAX];
};

static struct user_file files[2] = { { .by_line = true }, { .by_line = false } };
FILE *const stdout = &files[0];
FILE *const stderr = &files[1];

static void lock(FILE *file)
{
    while (__atomic_exchange_n(&file->lock, 1, __ATOMIC_ACQUIRE))
        ZwYieldExecution();
}

static void flush(FILE *file)
{
    if (file->used)
        write_console(file->text, file->used);
    file->used = 0;
}

static void unlock(FILE *file)
{
    if (!file->by_line)
        flush(file);
    __atomic_store_n(&file->lock, 0, __ATOMIC_RELEASE);
}

static void put(void *context, char c)
{
    FILE *file = context;
    file->text[file->used++] = c;
    if (file->used == CONSOLE_MAX || (c == '\n' && file->by_line))
        flush(file);
}

int fflush(FILE *file)
{
    for (unsigned i = 0; i < 2; i++)
        if (!file || file == &files[i]) {
            lock(&files[i]);
            flush(&files[i]);
            unlock(&files[i]);
        }
    return 0;
}

size_t fwrite(const void *data, size_t size, size_t count, FILE *file)
{
    const char *bytes = data;
    lock(file);
    for (size_t i = 0; i < size * count; i++)
        put(file, bytes[i]);
    unlock(file);
    return count;
}

int fputs(const char *text, FILE *file)
{
    fwrite(text, 1, strlen(text), file);
    return 0;
}

int putc(int c, FILE *file)
{
    char byte = (char)c;
    fwrite(&byte, 1, 1, file);
    return (unsigned char)byte;
}

int fputc(int c, FILE *file) { return putc(c, file); }
int putchar(int c) { return putc(c, stdout); }
int puts(const char *text) { return printf("%s\n", text); }

int vfprintf(FILE *file, const char *format, va_list args)
{
    lock(file);
    int written = format_text(put, file, format, args);
    unlock(file);
    return written;
}

int vprintf(const char *format, va_list args) { return vfprintf(stdout, format, args); }

int fprintf(FILE *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int written = vfprintf(file, format, args);
    va_end(args);
    return written;
}

int printf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int written = vfprintf(stdout, format, args);
    va_end(args);
    return written;
}

struct buffer {
    char *text;
    size_t size, used;
};

static void put_buffer(void *context, char c)
{
    struct buffer *buffer = context;
    if (buffer->used + 1 < buffer->size)
        buffer->text[buffer->used] = c;
    buffer->used++;
}

int vsnprintf(char *text, size_t size, const char *format, va_list args)
{
    struct buffer buffer = { text, size, 0 };
    int written = format_text(put_buffer, &buffer, format, args);
    if (size)
        text[buffer.used < size ? buffer.used : size - 1] = 0;
    return written;
}

int snprintf(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int written = vsnprintf(text, size, format, args);
    va_end(args);
    return written;
}

int vsprintf(char *text, const char *format, va_list args)
{
    return vsnprintf(text, SIZE_MAX, format, args);
}

int sprintf(char *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int written = vsprintf(text, format, args);
    va_end(args);
    return written;
}
