/* SPDX-License-Identifier: MIT */
/* printf of C99 and Windows: all flags, widths, precisions; d i u o x X c s p; e E f F g G, exactly
 * rounded. Lengths: hh h l (32 bits, as in Windows) ll j z t I I32 I64 L. Not: a, n, wide
 * characters. Source: ISO C99 7.19.6.1. */
#include "kernel/user/stdio.h"
#include <stdbool.h>
#include <stdint.h>
#include "kernel/user/decimal.h"

struct sink {
    void (*put)(void *context, char c);
    void *context;
    int written;
};

struct spec {
    bool left, plus, space, alternate, zero;
    int width, precision; /* precision < 0: none */
    unsigned bits;        /* of an integer */
    char conversion;
};

static void put(struct sink *sink, char c)
{
    sink->put(sink->context, c);
    sink->written++;
}

static void put_many(struct sink *sink, char c, int n)
{
    while (n-- > 0)
        put(sink, c);
}

static void put_text(struct sink *sink, const char *text, int n)
{
    for (int i = 0; i < n; i++)
        put(sink, text[i]);
}

/* Writes prefix (sign, 0x), zeros and body, padded to the width. */
static void put_field(struct sink *sink, const struct spec *spec, const char *prefix,
                      int prefix_length, int zeros, const char *body, int length)
{
    int pad = spec->width - prefix_length - zeros - length;
    if (!spec->left && !spec->zero)
        put_many(sink, ' ', pad);
    put_text(sink, prefix, prefix_length);
    if (!spec->left && spec->zero)
        put_many(sink, '0', pad);
    put_many(sink, '0', zeros);
    put_text(sink, body, length);
    if (spec->left)
        put_many(sink, ' ', pad);
}

static int sign_of(const struct spec *spec, bool minus, char *prefix)
{
    *prefix = minus ? '-' : spec->plus ? '+' : ' ';
    return minus || spec->plus || spec->space;
}

static void put_integer(struct sink *sink, struct spec *spec, uint64_t v, bool minus)
{
    char digits[24], prefix[2];
    unsigned n = sizeof digits, base = 10;
    int prefix_length = 0;
    const char *set = spec->conversion == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    bool hex = spec->conversion == 'x' || spec->conversion == 'X',
         is_signed = spec->conversion == 'd';
    if (hex)
        base = 16;
    if (spec->conversion == 'o')
        base = 8;
    for (uint64_t rest = v; rest; rest /= base)
        digits[--n] = set[rest % base];
    if (is_signed)
        prefix_length = sign_of(spec, minus, prefix);
    if (hex && spec->alternate && v) {
        prefix[0] = '0';
        prefix[1] = spec->conversion;
        prefix_length = 2;
    }
    int length = (int)(sizeof digits - n), least = spec->precision < 0 ? 1 : spec->precision;
    if (base == 8 && spec->alternate && least <= length)
        least = length + 1;
    if (spec->precision >= 0)
        spec->zero = false;
    put_field(sink, spec, prefix, prefix_length, least > length ? least - length : 0, digits + n,
              length);
}

static void put_string(struct sink *sink, struct spec *spec, const char *text)
{
    int length = 0;
    if (!text)
        text = "(null)";
    while (text[length] && (spec->precision < 0 || length < spec->precision))
        length++;
    spec->zero = false;
    put_field(sink, spec, "", 0, 0, text, length);
}

/* Digits `from` to `to` of a number; zeros where it has none. */
static int put_digits(char *out, const struct decimal *d, int from, int to)
{
    int n = 0;
    for (int i = from; i < to; i++)
        out[n++] = i >= 0 && i < d->count ? d->digits[i] : '0';
    return n;
}

static int write_exponent(char *out, int exponent, char e)
{
    int n = 0;
    unsigned rest = (unsigned)(exponent < 0 ? -exponent : exponent);
    out[n++] = e;
    out[n++] = exponent < 0 ? '-' : '+';
    if (rest >= 100)
        out[n++] = (char)('0' + rest / 100);
    out[n++] = (char)('0' + rest / 10 % 10);
    out[n++] = (char)('0' + rest % 10);
    return n;
}

#define PRECISION_MAX 400
#define FLOAT_MAX (DECIMAL_DIGITS_MAX + PRECISION_MAX)

/* The text of a finite number without its sign; style 'e' or 'f'. */
static int write_float(char *out, const struct spec *spec, const struct decimal *d, char style,
                       int precision)
{
    bool exponential = style == 'e';
    int point = exponential ? 1 : d->point, n = 0; /* digits before the point */
    n += point > 0 ? put_digits(out, d, 0, point) : put_digits(out, d, -1, 0);
    if (precision || spec->alternate)
        out[n++] = '.';
    n += put_digits(out + n, d, point, point + precision);
    if (exponential)
        n += write_exponent(out + n, d->count ? d->point - 1 : 0,
                            spec->conversion & 0x20 ? 'e' : 'E');
    return n;
}

/* %g: the precision counts significant digits; zeros at the end are left out. */
static int write_general(char *out, const struct spec *spec, struct decimal *d, int precision)
{
    if (precision == 0)
        precision = 1;
    decimal_round(d, precision);
    int exponent = d->count ? d->point - 1 : 0, significant = precision;
    if (!spec->alternate) {
        while (d->count && d->digits[d->count - 1] == '0')
            d->count--;
        significant = d->count ? d->count : 1;
    }
    if (exponent < -4 || exponent >= precision)
        return write_float(out, spec, d, 'e', significant - 1);
    int behind = significant - 1 - exponent;
    return write_float(out, spec, d, 'f', behind > 0 ? behind : 0);
}

static void put_float(struct sink *sink, struct spec *spec, double value)
{
    struct decimal d;
    char body[FLOAT_MAX], prefix[1];
    int length, precision = spec->precision < 0 ? 6 : spec->precision;
    char style = spec->conversion | 0x20;
    if (precision > PRECISION_MAX)
        precision = PRECISION_MAX;
    int prefix_length = sign_of(spec, decimal_from(&d, value), prefix);
    if (d.special) {
        spec->zero = false;
        put_field(sink, spec, prefix, prefix_length, 0,
                  d.special + (spec->conversion & 0x20 ? 0 : 4), 3);
        return;
    }
    if (style == 'g') {
        length = write_general(body, spec, &d, precision);
    } else {
        decimal_round(&d, style == 'e' ? 1 + precision : d.point + precision);
        length = write_float(body, spec, &d, style, precision);
    }
    put_field(sink, spec, prefix, prefix_length, 0, body, length);
}

/* --- Reading the format. --- */

static int number(const char **format, va_list *args)
{
    int n = 0;
    if (**format == '*') {
        ++*format;
        return va_arg(*args, int);
    }
    for (; **format >= '0' && **format <= '9'; ++*format)
        n = n < 100000 ? n * 10 + (**format - '0') : n;
    return n;
}

static void read_flags(struct spec *spec, const char **format)
{
    for (;; ++*format)
        switch (**format) {
        case '-': spec->left = true; break;
        case '+': spec->plus = true; break;
        case ' ': spec->space = true; break;
        case '#': spec->alternate = true; break;
        case '0': spec->zero = true; break;
        default: return;
        }
}

/* Returns the bits of an integer argument. */
static unsigned read_length(const char **format)
{
    const char *f = *format;
    unsigned bits = 32, skip = 1;
    if (f[0] == 'h') {
        bits = f[1] == 'h' ? 8 : 16;
        skip = f[1] == 'h' ? 2 : 1;
    } else if (f[0] == 'l') {
        bits = f[1] == 'l' ? 64 : 32;
        skip = f[1] == 'l' ? 2 : 1;
    } else if (f[0] == 'I' && f[1] == '3' && f[2] == '2') {
        skip = 3;
    } else if (f[0] == 'I' || f[0] == 'j' || f[0] == 'z' || f[0] == 't' || f[0] == 'L') {
        bits = 64;
        skip = f[0] == 'I' && f[1] == '6' && f[2] == '4' ? 3 : 1;
    } else {
        skip = 0;
    }
    *format += skip;
    return bits;
}

static void convert_integer(struct sink *sink, struct spec *spec, va_list *args)
{
    uint64_t v = spec->bits == 64 ? va_arg(*args, uint64_t) : va_arg(*args, uint32_t);
    unsigned shift = 64 - spec->bits;
    if (spec->conversion == 'i')
        spec->conversion = 'd';
    if (spec->conversion == 'd') {
        int64_t s = (int64_t)(v << shift) >> shift;
        put_integer(sink, spec, s < 0 ? -(uint64_t)s : (uint64_t)s, s < 0);
    } else {
        put_integer(sink, spec, v << shift >> shift, false);
    }
}

static void convert(struct sink *sink, struct spec *spec, bool is_long_double, va_list *args)
{
    char c;
    switch (spec->conversion) {
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X': convert_integer(sink, spec, args); break;
    case 'p': /* Windows: sixteen capital digits */
        spec->conversion = 'X';
        spec->precision = 16;
        put_integer(sink, spec, va_arg(*args, uint64_t), false);
        break;
    case 'c':
        c = (char)va_arg(*args, int);
        spec->zero = false;
        put_field(sink, spec, "", 0, 0, &c, 1);
        break;
    case 's': put_string(sink, spec, va_arg(*args, const char *)); break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        put_float(sink, spec,
                  is_long_double ? (double)va_arg(*args, long double) : va_arg(*args, double));
        break;
    default: put(sink, spec->conversion);
    }
}

int format_text(void (*put_char)(void *context, char c), void *context, const char *format,
                va_list args)
{
    struct sink sink = { put_char, context, 0 };
    va_list copy;
    va_copy(copy, args);
    while (*format) {
        if (*format != '%') {
            put(&sink, *format++);
            continue;
        }
        struct spec spec = { .precision = -1 };
        format++;
        read_flags(&spec, &format);
        spec.width = number(&format, &copy);
        if (spec.width < 0) {
            spec.left = true;
            spec.width = -spec.width;
        }
        if (*format == '.') {
            format++;
            spec.precision = number(&format, &copy);
        }
        bool is_long_double = *format == 'L';
        spec.bits = read_length(&format);
        spec.conversion = *format;
        if (!*format)
            break;
        convert(&sink, &spec, is_long_double, &copy);
        format++;
    }
    va_end(copy);
    return sink.written;
}
