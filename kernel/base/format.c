/* SPDX-License-Identifier: MIT */
/* The small printf that print uses, without any console: also built into the tests in ring 3. */
#include <stdint.h>
#include "kernel/base/print.h"

struct sink {
    void (*put)(void *context, char c);
    void *context;
};

static void put_to(const struct sink *sink, char c) { sink->put(sink->context, c); }

struct spec {
    unsigned width;
    bool left, zero, is_long;
};

static void put_padded(const struct sink *sink, const struct spec *spec, const char *text,
                       unsigned length)
{
    unsigned pad = spec->width > length ? spec->width - length : 0;
    if (!spec->left)
        while (pad) {
            put_to(sink, spec->zero ? '0' : ' ');
            pad--;
        }
    for (unsigned i = 0; i < length; i++)
        put_to(sink, text[i]);
    while (pad--)
        put_to(sink, ' ');
}

static void put_number(const struct sink *sink, const struct spec *spec, uint64_t v, unsigned base,
                       bool minus)
{
    char digits[24];
    unsigned n = sizeof digits;
    do {
        digits[--n] = "0123456789abcdef"[v % base];
        v /= base;
    } while (v);
    if (minus)
        digits[--n] = '-';
    put_padded(sink, spec, digits + n, sizeof digits - n);
}

static void format_one(const struct sink *sink, const char **format, va_list *args)
{
    struct spec spec = { 0 };
    const char *f = *format;
    for (; *f == '-' || *f == '0'; f++) {
        spec.left |= *f == '-';
        spec.zero |= *f == '0';
    }
    if (*f == '*') {
        spec.width = va_arg(*args, unsigned);
        f++;
    }
    for (; *f >= '0' && *f <= '9'; f++)
        spec.width = spec.width * 10 + (unsigned)(*f - '0');
    for (; *f == 'l' || *f == 'z'; f++)
        spec.is_long = true;

    switch (*f) {
    case 'd': {
        int64_t v = spec.is_long ? va_arg(*args, int64_t) : va_arg(*args, int);
        put_number(sink, &spec, v < 0 ? -(uint64_t)v : (uint64_t)v, 10, v < 0);
        break;
    }
    case 'u':
    case 'x':
        put_number(sink, &spec, spec.is_long ? va_arg(*args, uint64_t) : va_arg(*args, unsigned),
                   *f == 'u' ? 10 : 16, false);
        break;
    case 'p':
        spec.width = 16;
        spec.zero = true;
        put_number(sink, &spec, (uint64_t)va_arg(*args, void *), 16, false);
        break;
    case 's': {
        const char *text = va_arg(*args, const char *);
        unsigned length = 0;
        while (text && text[length])
            length++;
        put_padded(sink, &spec, text, length);
        break;
    }
    case 'c': put_to(sink, (char)va_arg(*args, int)); break;
    default:
        put_to(sink, *f ? *f : '%');
        if (!*f)
            f--;
    }
    *format = f + 1;
}

void format_to(void (*put_char)(void *context, char c), void *context, const char *format,
               va_list args)
{
    const struct sink sink = { put_char, context };
    va_list copy;
    va_copy(copy, args);
    while (*format)
        if (*format != '%') {
            put_to(&sink, *format++);
        } else {
            format++;
            format_one(&sink, &format, &copy);
        }
    va_end(copy);
}

struct buffer {
    char *text;
    size_t size, used;
};

static void put_buffer(void *context, char c)
{
    struct buffer *buffer = context;
    if (buffer->used + 1 < buffer->size)
        buffer->text[buffer->used++] = c;
}

size_t print_to_va(char *text, size_t size, const char *format, va_list args)
{
    struct buffer buffer = { text, size, 0 };
    format_to(put_buffer, &buffer, format, args);
    if (size)
        text[buffer.used] = 0;
    return buffer.used;
}

size_t print_to(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t used = print_to_va(text, size, format, args);
    va_end(args);
    return used;
}
