/* SPDX-License-Identifier: MIT */
/* DbgPrint, and the run-time library of strings and memory. Any IRQL. */
#include "kernel/driver/driver.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"

#define LINE_MAX 512 /* as DbgPrint has it */

struct output {
    char text[LINE_MAX + 1];
    unsigned length;
};

struct spec {
    bool left, zero, plus, hash, wide;
    unsigned width, precision; /* ~0: none */
    unsigned bytes;
};

static void put_char(struct output *o, unsigned c)
{
    if (o->length < LINE_MAX && c)
        o->text[o->length++] = c == '\n' || c == '\t' || (c >= ' ' && c <= '~') ? (char)c : '?';
}

static void put_in_width(struct output *o, const struct spec *s, const char *text, unsigned length)
{
    unsigned pad = s->width > length ? s->width - length : 0;
    for (; pad && !s->left; pad--)
        put_char(o, s->zero ? '0' : ' ');
    for (unsigned i = 0; i < length; i++)
        put_char(o, (unsigned char)text[i]);
    for (; pad; pad--)
        put_char(o, ' ');
}

static void put_digits(struct output *o, struct spec *s, uint64_t v, unsigned base,
                       const char *sign, bool capital)
{
    char digits[64];
    unsigned n = sizeof digits;
    const char *alphabet = capital ? "0123456789ABCDEF" : "0123456789abcdef";
    unsigned least = s->precision == ~0u ? 1 : s->precision > 40 ? 40 : s->precision;
    for (; v || sizeof digits - n < least; v /= base)
        digits[--n] = alphabet[v % base];
    if (s->zero && !s->left && s->precision == ~0u)
        for (; sizeof digits - n + strlen(sign) < s->width && n > 8;)
            digits[--n] = '0';
    for (size_t i = strlen(sign); i; i--)
        digits[--n] = sign[i - 1];
    s->zero = false;
    put_in_width(o, s, digits + n, sizeof digits - n);
}

static void put_string(struct output *o, struct spec *s, const void *text, unsigned limit)
{
    char narrow[LINE_MAX];
    unsigned n = 0;
    if (!text)
        text = s->wide ? (const void *)u"(null)" : "(null)";
    for (; n < limit && n < s->precision && n < LINE_MAX; n++) {
        unsigned c = s->wide ? ((const WCHAR *)text)[n] : ((const unsigned char *)text)[n];
        if (!c)
            break;
        narrow[n] = c < 0x7f ? (char)c : '?';
    }
    s->zero = false;
    put_in_width(o, s, narrow, n);
}

/* %wZ a UNICODE_STRING, %Z the same of bytes. */
static void put_counted(struct output *o, struct spec *s, const UNICODE_STRING *string)
{
    if (string && string->Buffer)
        put_string(o, s, string->Buffer, s->wide ? string->Length / 2u : string->Length);
    else
        put_string(o, s, NULL, 6);
}

static unsigned parse_number(const char **f, __builtin_ms_va_list *args)
{
    unsigned n = 0;
    if (**f == '*') {
        (*f)++;
        return __builtin_va_arg(*args, unsigned);
    }
    for (; **f >= '0' && **f <= '9'; (*f)++)
        n = n * 10 + (unsigned)(**f - '0');
    return n;
}

static const char *parse_spec(const char *f, struct spec *s, __builtin_ms_va_list *args)
{
    *s = (struct spec){ .precision = ~0u, .bytes = 4 };
    for (;; f++)
        if (*f == '-')
            s->left = true;
        else if (*f == '0')
            s->zero = true;
        else if (*f == '+' || *f == ' ')
            s->plus = *f == '+';
        else if (*f == '#')
            s->hash = true;
        else
            break;
    s->width = parse_number(&f, args);
    if (*f == '.') {
        f++;
        s->precision = parse_number(&f, args);
    }
    if (f[0] == 'I' && f[1] == '6' && f[2] == '4')
        s->bytes = 8, f += 3;
    else if (f[0] == 'I' && f[1] == '3' && f[2] == '2')
        f += 3;
    else if (f[0] == 'I' || *f == 'z')
        s->bytes = 8, f++;
    else
        for (; *f == 'l' || *f == 'h' || *f == 'w'; f++) {
            s->bytes = *f == 'l' && f[1] == 'l' ? 8 : s->bytes;
            s->wide = *f != 'h';
        }
    return f;
}

/* One conversion; `c` says which. */
static void put_conversion(struct output *o, struct spec *s, char c, __builtin_ms_va_list *args)
{
    uint64_t v = c == '%' ? 0 : __builtin_va_arg(*args, uint64_t);
    int64_t value = s->bytes == 8 ? (int64_t)v : (int32_t)v;
    uint64_t unsigned_value = s->bytes == 8 ? v : (uint32_t)v;
    switch (c) {
    case 'd':
    case 'i':
        put_digits(o, s, value < 0 ? -(uint64_t)value : (uint64_t)value, 10,
                   value < 0 ? "-"
                   : s->plus ? "+"
                             : "",
                   false);
        break;
    case 'u': put_digits(o, s, unsigned_value, 10, "", false); break;
    case 'o': put_digits(o, s, unsigned_value, 8, "", false); break;
    case 'x':
    case 'X': put_digits(o, s, unsigned_value, 16, s->hash ? "0x" : "", c == 'X'); break;
    case 'p':
        s->precision = 16;
        put_digits(o, s, v, 16, "", true);
        break;
    case 'c':
    case 'C': put_in_width(o, s, (const char[]){ (char)v }, 1); break;
    case 's':
    case 'S':
        s->wide |= c == 'S';
        put_string(o, s, (const void *)v, LINE_MAX);
        break;
    case 'Z': put_counted(o, s, (const UNICODE_STRING *)v); break;
    default: put_char(o, (unsigned char)c);
    }
}

static void debug_print(const char *f, __builtin_ms_va_list *args)
{
    struct output o;
    struct spec s;
    o.length = 0;
    while (*f) {
        if (*f != '%') {
            put_char(&o, (unsigned char)*f++);
            continue;
        }
        f = parse_spec(f + 1, &s, args);
        if (*f)
            put_conversion(&o, &s, *f++, args);
    }
    o.text[o.length] = 0;
    print("%s", o.text);
}

NTAPI ULONG DbgPrint(PCSTR Format, ...)
{
    __builtin_ms_va_list args;
    __builtin_ms_va_start(args, Format);
    debug_print(Format, &args);
    __builtin_ms_va_end(args);
    return STATUS_SUCCESS;
}

/* NT: every component and level is printed. */
NTAPI ULONG DbgPrintEx(ULONG ComponentId, ULONG Level, PCSTR Format, ...)
{
    __builtin_ms_va_list args;
    (void)ComponentId, (void)Level;
    __builtin_ms_va_start(args, Format);
    debug_print(Format, &args);
    __builtin_ms_va_end(args);
    return STATUS_SUCCESS;
}

/* --- Strings and memory. --- */

VOID RtlInitUnicodeString(PUNICODE_STRING DestinationString, PWSTR SourceString)
{
    size_t n = 0;
    while (SourceString && SourceString[n] && n < 0x7ffe)
        n++;
    *DestinationString =
        (UNICODE_STRING){ (USHORT)(2 * n), (USHORT)(SourceString ? 2 * n + 2 : 0), SourceString };
}

static WCHAR upper_char(WCHAR c) { return c >= 'a' && c <= 'z' ? (WCHAR)(c - 0x20) : c; }

bool text_equal(const UNICODE_STRING *a, const UNICODE_STRING *b, bool any_case)
{
    bool same = a->Length == b->Length;
    for (unsigned i = 0; same && i < a->Length / 2u; i++)
        same = any_case ? upper_char(a->Buffer[i]) == upper_char(b->Buffer[i])
                        : a->Buffer[i] == b->Buffer[i];
    return same;
}

BOOLEAN RtlEqualUnicodeString(PUNICODE_STRING String1, PUNICODE_STRING String2,
                              BOOLEAN CaseInSensitive)
{
    return text_equal(String1, String2, CaseInSensitive);
}

VOID RtlCopyMemory(PVOID to, const void *from, SIZE_T size) { memcpy(to, from, size); }

VOID RtlMoveMemory(PVOID to, const void *from, SIZE_T size) { memmove(to, from, size); }

VOID RtlZeroMemory(PVOID to, SIZE_T size) { memset(to, 0, size); }

VOID RtlFillMemory(PVOID to, SIZE_T size, UCHAR value) { memset(to, value, size); }

SIZE_T RtlCompareMemory(const void *a, const void *b, SIZE_T size)
{
    const UCHAR *x = a, *y = b;
    SIZE_T n = 0;
    while (n < size && x[n] == y[n])
        n++;
    return n;
}
