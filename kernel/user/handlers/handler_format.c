/* SPDX-License-Identifier: MIT */
/* DbgPrint, and the printf of drivers for both widths. As in ntoskrnl.exe there is no %f. NT: a
 * narrow character is Latin-1's. Any IRQL: all is on the stack. */
#include <windows.h>
#include <winternl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LINE_MAX 512u /* as DbgPrint has it */

/* kernel/driver/driver_strings.c */
VOID NTAPI debug_print_line(const char *text);

/* A text and its format are of one width. */
struct output {
    void *text;
    size_t capacity, length; /* characters; the length of all, whatever fits */
    bool wide, printable;
};

struct spec {
    bool left, zero, hash, wide;
    char sign;               /* of a number that is not negative; 0: none */
    size_t width, precision; /* SIZE_MAX: none */
    unsigned bytes;
};

static unsigned char_at(const void *text, bool wide, size_t i)
{
    return wide ? ((const WCHAR *)text)[i] : ((const unsigned char *)text)[i];
}

static void put_char(struct output *o, unsigned c)
{
    if (o->printable && (!c || c == '\r'))
        return;
    if (o->printable && c != '\n' && c != '\t' && (c < ' ' || c > '~'))
        c = '?';
    if (o->length < o->capacity && o->wide)
        ((WCHAR *)o->text)[o->length] = (WCHAR)c;
    else if (o->length < o->capacity)
        ((char *)o->text)[o->length] = c < 0x100 ? (char)c : '?';
    o->length++;
}

static void put_in_width(struct output *o, const struct spec *s, const void *text, bool wide,
                         size_t length)
{
    size_t pad = s->width > length ? s->width - length : 0;
    for (; pad && !s->left; pad--)
        put_char(o, s->zero ? '0' : ' ');
    for (size_t i = 0; i < length; i++)
        put_char(o, char_at(text, wide, i));
    for (; pad; pad--)
        put_char(o, ' ');
}

static void put_digits(struct output *o, struct spec *s, uint64_t v, unsigned base,
                       const char *sign, const char *alphabet)
{
    char digits[64];
    unsigned n = sizeof digits;
    size_t least = s->precision == SIZE_MAX ? 1 : s->precision > 40 ? 40 : s->precision;
    for (; v || sizeof digits - n < least; v /= base)
        digits[--n] = alphabet[v % base];
    if (s->zero && !s->left && s->precision == SIZE_MAX)
        for (; sizeof digits - n + strlen(sign) < s->width && n > 8;)
            digits[--n] = '0';
    for (size_t i = strlen(sign); i; i--)
        digits[--n] = sign[i - 1];
    s->zero = false;
    put_in_width(o, s, digits + n, false, sizeof digits - n);
}

/* A width that begins with 0 fills a string with zeros, too, as Wine's printf does. */
static void put_string(struct output *o, const struct spec *s, const void *text, size_t limit)
{
    size_t n = 0;
    if (!text) {
        text = s->wide ? (const void *)u"(null)" : "(null)";
        limit = 6;
    }
    while (n < limit && n < s->precision && char_at(text, s->wide, n))
        n++;
    put_in_width(o, s, text, s->wide, n);
}

/* %wZ a UNICODE_STRING, %Z the same of bytes. */
static void put_counted(struct output *o, const struct spec *s, const UNICODE_STRING *string)
{
    if (string && string->Buffer)
        put_string(o, s, string->Buffer, s->wide ? string->Length / 2u : string->Length);
    else
        put_string(o, s, NULL, 0);
}

struct reader {
    const void *format;
    size_t at;
    bool wide;
    va_list args;
};

static unsigned peek_unit(const struct reader *r, size_t ahead)
{
    return char_at(r->format, r->wide, r->at + ahead);
}

static int parse_number(struct reader *r)
{
    int n = 0;
    if (peek_unit(r, 0) == '*') {
        r->at++;
        return va_arg(r->args, int);
    }
    for (; peek_unit(r, 0) >= '0' && peek_unit(r, 0) <= '9'; r->at++)
        n = n * 10 + (int)(peek_unit(r, 0) - '0');
    return n;
}

static bool parse_flag(struct spec *s, unsigned c)
{
    switch (c) {
    case '-': return s->left = true;
    case '0': return s->zero = true;
    case '#': return s->hash = true;
    case '+':
    case ' ': s->sign = c == '+' || s->sign == '+' ? '+' : ' '; return true;
    default: return false;
    }
}

static bool parse_size(struct reader *r, struct spec *s)
{
    const unsigned c = peek_unit(r, 0), next = peek_unit(r, 1);
    if (c == 'I') {
        const bool number = (next == '6' && peek_unit(r, 2) == '4') || next == '3';
        s->bytes = next == '3' ? 4 : 8;
        r->at += number ? 3 : 1;
        return true;
    }
    if (c != 'l' && c != 'h' && c != 'w' && c != 'z')
        return false;
    s->bytes = c == 'z' || (c == 'l' && next == 'l') ? 8 : s->bytes;
    s->wide = c != 'h';
    r->at++;
    return true;
}

/* S and C are of the other width. */
static void parse_spec(struct reader *r, struct spec *s)
{
    *s = (struct spec){ .precision = SIZE_MAX, .bytes = 4, .wide = r->wide };
    while (parse_flag(s, peek_unit(r, 0)))
        r->at++;
    const int width = parse_number(r);
    s->left |= width < 0;
    s->width = (size_t)(width < 0 ? -width : width);
    if (peek_unit(r, 0) == '.') {
        r->at++;
        const int precision = parse_number(r);
        s->precision = precision < 0 ? SIZE_MAX : (size_t)precision;
    }
    while (parse_size(r, s))
        if (peek_unit(r, 0) == 'S' || peek_unit(r, 0) == 'C')
            return;
    if (peek_unit(r, 0) == 'S' || peek_unit(r, 0) == 'C')
        s->wide = !r->wide;
}

/* One conversion; `c` says which. */
static void put_conversion(struct output *o, struct spec *s, unsigned c, va_list *args)
{
    const char *small = "0123456789abcdef", *capital = "0123456789ABCDEF";
    const uint64_t v = c == '%' ? 0 : va_arg(*args, uint64_t);
    const int64_t value = s->bytes == 8 ? (int64_t)v : (int32_t)v;
    const uint64_t bits = s->bytes == 8 ? v : (uint32_t)v;
    const WCHAR unit = s->wide ? (WCHAR)v : (unsigned char)v;
    switch (c) {
    case 'd':
    case 'i':
        put_digits(o, s, value < 0 ? -(uint64_t)value : (uint64_t)value, 10,
                   value < 0 ? "-" : (const char[]){ s->sign, 0 }, small);
        break;
    case 'u': put_digits(o, s, bits, 10, "", small); break;
    case 'o': put_digits(o, s, bits, 8, "", small); break;
    case 'x': put_digits(o, s, bits, 16, s->hash ? "0x" : "", small); break;
    case 'X': put_digits(o, s, bits, 16, s->hash ? "0x" : "", capital); break;
    case 'p':
        s->precision = 16;
        put_digits(o, s, v, 16, "", capital);
        break;
    case 'c':
    case 'C': put_in_width(o, s, &unit, true, 1); break;
    case 's':
    case 'S': put_string(o, s, (const void *)v, SIZE_MAX); break;
    case 'Z': put_counted(o, s, (const UNICODE_STRING *)v); break;
    default: put_char(o, c);
    }
}

/* The length of the whole text. */
static size_t put_format(struct output *o, const void *format, va_list args)
{
    struct reader r = { .format = format, .wide = o->wide };
    struct spec s;
    unsigned c;
    va_copy(r.args, args);
    while ((c = peek_unit(&r, 0))) {
        r.at++;
        if (c != '%') {
            put_char(o, c);
            continue;
        }
        parse_spec(&r, &s);
        c = peek_unit(&r, 0);
        if (c)
            put_conversion(o, &s, c, &r.args);
        r.at += c != 0;
    }
    va_end(r.args);
    return o->length;
}

/* --- For the debugger. NT: every component and level is printed. --- */

static ULONG debug_print(const char *format, va_list args)
{
    char line[LINE_MAX + 1];
    struct output o = { .text = line, .capacity = LINE_MAX, .printable = true };
    put_format(&o, format, args);
    line[o.length < LINE_MAX ? o.length : LINE_MAX] = 0;
    debug_print_line(line);
    return 0; /* STATUS_SUCCESS */
}

#define WITH_LIST(type, last, call)                                                                \
    va_list args;                                                                                  \
    va_start(args, last);                                                                          \
    const type result = call;                                                                      \
    va_end(args);                                                                                  \
    return result

ULONG DbgPrint(const char *Format, ...) { WITH_LIST(ULONG, Format, debug_print(Format, args)); }
ULONG DbgPrintEx(ULONG ComponentId, ULONG Level, const char *Format, ...)
{
    WITH_LIST(ULONG, Format, debug_print(Format, args));
}

/* --- Into memory. --- */

/* Without space for the NUL there is none; -1: the text is cut. */
static int print_to(void *text, size_t size, bool wide, const void *format, va_list args)
{
    struct output o = { .text = text, .capacity = text ? size : 0, .wide = wide };
    const size_t length = put_format(&o, format, args);
    put_char(&o, 0);
    return !text || length <= size ? (int)length : -1;
}

/* Two functions a line, with a list and with arguments. */
#define PRINTS(with_list, name, type, size, ...)                                                   \
    int with_list(__VA_ARGS__, const type *format, va_list args);                                  \
    int with_list(__VA_ARGS__, const type *format, va_list args)                                   \
    {                                                                                              \
        return print_to(text, size, sizeof(type) == 2, format, args);                              \
    }                                                                                              \
    int name(__VA_ARGS__, const type *format, ...);                                                \
    int name(__VA_ARGS__, const type *format, ...)                                                 \
    {                                                                                              \
        WITH_LIST(int, format, print_to(text, size, sizeof(type) == 2, format, args));             \
    }
PRINTS(vsprintf, sprintf, char, 0x7fffffff, char *text)
PRINTS(_vswprintf, _swprintf, WCHAR, 0x7fffffff, WCHAR *text)
PRINTS(_vsnprintf, _snprintf, char, size, char *text, size_t size)
PRINTS(_vsnwprintf, _snwprintf, WCHAR, size, WCHAR *text, size_t size)
