/* SPDX-License-Identifier: MIT */
/* scanf as ucrtbase exports it: mingw-w64's own, with a format that says the same to it. */
#include "ucrt.h"
#include <wchar.h>

int __mingw_vsscanf(const char *text, const char *format, va_list args);
int __mingw_vfscanf(FILE *stream, const char *format, va_list args);

#define SECURE 1u      /* scanf_s: behind the address of %s, %c and %[ stands its room */
#define LEGACY_WIDE 2u /* %s in a wide format is wide */
#define GROWTH 16      /* characters that a conversion may become longer */

struct conversion {
    bool skipped, narrow, wide;
    unsigned width;
    char size[4]; /* h, hh, l, ll, I64 and so on */
    const char *set, *end;
};

/* Reads one behind its %. Returns its last character's place. */
static const char *parse(const char *p, struct conversion *c)
{
    unsigned n = 0;
    *c = (struct conversion){ .skipped = *p == '*' };
    p += c->skipped;
    for (; *p >= '0' && *p <= '9'; p++)
        c->width = c->width < 100000000 ? 10 * c->width + (unsigned)(*p - '0') : c->width;
    for (; *p && strchr("hlLwjztI", *p); p++) {
        if (*p == 'I' && (memcmp(p, "I64", 3) == 0 || memcmp(p, "I32", 3) == 0)) {
            memcpy(c->size, p[1] == '6' ? "ll" : "", p[1] == '6' ? 3 : 1);
            p += 2;
            continue;
        }
        c->narrow |= *p == 'h';
        c->wide |= *p == 'l' || *p == 'w';
        if (n < sizeof c->size - 1)
            c->size[n++] = *p == 'w' || *p == 'L' ? 'l' : *p == 'I' ? 'z' : *p;
    }
    c->set = p;
    if (*p == '[') {
        p += p[1] == '^' ? 2 : 1;
        for (p += *p == ']'; *p && *p != ']';)
            p++;
    }
    c->end = *p ? p : p - 1;
    return c->end;
}

/* Whether the conversion fills a buffer; then its size says whether of wide characters. */
static bool is_text(struct conversion *c, bool wide_format)
{
    bool capital = *c->set == 'S' || *c->set == 'C';
    if (!*c->set || !strchr("sScC[", *c->set))
        return false;
    bool wide = c->wide || (!c->narrow && capital != wide_format);
    strcpy(c->size, wide ? "l" : "");
    return true;
}

/* Rewrites the format, and copies the addresses among `args`. NT: a text longer than its room is
 * cut off; Windows stores an empty one and ends there. NULL: no memory, or a room of 0. */
static char *rewrite(const char *format, uint64_t options, bool wide_format, va_list args,
                     void **slots)
{
    size_t parts = 1;
    for (const char *p = format; *p; p++)
        parts += *p == '%';
    char *copy = malloc(strlen(format) + parts * GROWTH + 1), *to = copy;
    for (const char *p = format; copy && *p; p++) {
        struct conversion c;
        *to++ = *p;
        if (*p != '%')
            continue;
        if (p[1] == '%') {
            *to++ = *++p;
            continue;
        }
        p = parse(p + 1, &c);
        bool text = is_text(&c, wide_format), one = (*c.set | 32) == 'c';
        if (c.skipped)
            *to++ = '*';
        else
            *slots++ = va_arg(args, void *);
        if (text && !c.skipped && options & SECURE) {
            unsigned room = va_arg(args, unsigned), most = room - !one;
            if (!room || !most) {
                free(copy);
                return NULL;
            }
            unsigned asked = c.width ? c.width : one ? 1 : most;
            c.width = asked < most ? asked : most;
        }
        to += c.width ? _snprintf(to, GROWTH, "%u", c.width) : 0;
        for (const char *s = c.size; *s; s++)
            *to++ = *s;
        for (const char *s = c.set; s <= c.end; s++)
            *to++ = text && s == c.set && *s != '[' ? *s | 32 : *s;
    }
    if (copy)
        *to = 0;
    return copy;
}

/* Of a stream or, if that is NULL, of a text. */
static int scan(FILE *stream, const char *text, const char *format, uint64_t options,
                bool wide_format, va_list args)
{
    if (!format || !(stream || text)) {
        wrong(EINVAL);
        return EOF;
    }
    void **slots = malloc((strlen(format) + 1) * sizeof *slots);
    char *copy = slots ? rewrite(format, options, wide_format, args, slots) : NULL;
    int n = EOF;
    if (!copy)
        errno = EINVAL;
    else if (stream)
        n = __mingw_vfscanf(stream, copy, (va_list)slots);
    else
        n = __mingw_vsscanf(text, copy, (va_list)slots);
    free(copy);
    free(slots);
    return n;
}

int __stdio_common_vfscanf(uint64_t options, FILE *stream, const char *format, void *locale,
                           va_list args)
{
    (void)locale;
    return scan(stream, NULL, format, options, false, args);
}

/* The text may lack its NUL if `room` ends it. */
int __stdio_common_vsscanf(uint64_t options, const char *text, size_t room, const char *format,
                           void *locale, va_list args)
{
    size_t n = text ? strnlen(text, room) : 0;
    char *copy = text ? malloc(n + 1) : NULL;
    (void)locale;
    if (text && !copy)
        return EOF;
    if (copy) {
        memcpy(copy, text, n);
        copy[n] = 0;
    }
    int result = scan(NULL, copy, format, options, false, args);
    free(copy);
    return result;
}

static char *narrow(const wchar_t *wide, size_t room)
{
    int length = (int)wcsnlen(wide, room < INT_MAX ? room : INT_MAX);
    int n = WideCharToMultiByte(CP_UTF8, 0, wide, length, NULL, 0, NULL, NULL);
    char *text = malloc((size_t)n + 1);
    if (!text)
        return NULL;
    WideCharToMultiByte(CP_UTF8, 0, wide, length, text, n, NULL, NULL);
    text[n] = 0;
    return text;
}

/* NT: %n and widths count bytes of UTF-8. */
static int scan_wide(FILE *stream, const wchar_t *text, size_t room, const wchar_t *format,
                     uint64_t options, va_list args)
{
    char *plain = format ? narrow(format, INT_MAX) : NULL, *from = text ? narrow(text, room) : NULL;
    int n = EOF;
    if ((plain || !format) && (from || !text))
        n = scan(stream, from, plain, options, options & LEGACY_WIDE, args);
    free(plain);
    free(from);
    return n;
}

int __stdio_common_vfwscanf(uint64_t options, FILE *stream, const wchar_t *format, void *locale,
                            va_list args)
{
    (void)locale;
    return scan_wide(stream, NULL, 0, format, options, args);
}

int __stdio_common_vswscanf(uint64_t options, const wchar_t *text, size_t room,
                            const wchar_t *format, void *locale, va_list args)
{
    (void)locale;
    return scan_wide(NULL, text, room, format, options, args);
}
