/* SPDX-License-Identifier: MIT */
/* Numbers from and to text, and other small things of <stdlib.h>. */
#include "msvcrt.h"
#include <limits.h>
#include <stdint.h>
#include "kernel/user/ntdll/random.h"

double __mingw_strtod(const char *text, char **end);
double __mingw_wcstod(const wchar_t *text, wchar_t **end);

/* --- From text. --- */

static int digit_of(wchar_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 32) >= 'a' && (c | 32) <= 'z')
        return (c | 32) - 'a' + 10;
    return 99;
}

static bool is_space(wchar_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* One parser for bytes and wide characters; `step` is their width. */
struct reader {
    const void *at;
    unsigned step;
};

static wchar_t peek_character(const struct reader *r)
{
    return r->step == 1 ? *(const unsigned char *)r->at : *(const wchar_t *)r->at;
}

static void skip_character(struct reader *r) { r->at = (const char *)r->at + r->step; }

/* The magnitude, at most `positive` or `negative`; beyond that ERANGE and `over`. */
static uint64_t parse_integer(struct reader *r, int base, uint64_t positive, uint64_t negative,
                              bool *minus, bool *over)
{
    const void *start = r->at;
    uint64_t value = 0;
    bool any = false;
    *minus = *over = false;
    if (!start || base < 0 || base == 1 || base > 36) {
        wrong(EINVAL);
        return 0;
    }
    while (is_space(peek_character(r)))
        skip_character(r);
    *minus = peek_character(r) == '-';
    if (peek_character(r) == '-' || peek_character(r) == '+')
        skip_character(r);
    struct reader zero = *r;
    if ((base == 0 || base == 16) && peek_character(r) == '0') {
        skip_character(&zero);
        if ((peek_character(&zero) | 32) == 'x') {
            skip_character(&zero);
            if (digit_of(peek_character(&zero)) < 16) {
                *r = zero;
                base = 16;
            }
        }
        base = base ? base : 8;
    }
    base = base ? base : 10;
    uint64_t limit = *minus ? negative : positive;
    for (; digit_of(peek_character(r)) < base; skip_character(r)) {
        uint64_t next;
        any = true;
        *over |= __builtin_mul_overflow(value, (unsigned)base, &next) ||
                 __builtin_add_overflow(next, (unsigned)digit_of(peek_character(r)), &next) ||
                 next > limit;
        value = *over ? limit : next;
    }
    if (!any)
        r->at = start;
    if (*over)
        errno = ERANGE;
    return value;
}

static int64_t to_signed(struct reader *r, int base, int64_t least, int64_t most)
{
    bool minus, over;
    uint64_t value = parse_integer(r, base, (uint64_t)most, -(uint64_t)least, &minus, &over);
    return (int64_t)(minus ? -value : value);
}

static uint64_t to_unsigned(struct reader *r, int base, uint64_t most)
{
    bool minus, over;
    uint64_t value = parse_integer(r, base, most, most, &minus, &over);
    return over ? most : minus ? -value : value;
}

/* The four integer types, for both widths of characters. */
#define NUMBERS(type, narrow_name, wide_name, call)                                                \
    type narrow_name(const char *text, char **end, int base)                                       \
    {                                                                                              \
        struct reader r = { text, 1 };                                                             \
        type value = (type)(call);                                                                 \
        if (end)                                                                                   \
            *end = (char *)r.at;                                                                   \
        return value;                                                                              \
    }                                                                                              \
    type wide_name(const wchar_t *text, wchar_t **end, int base)                                   \
    {                                                                                              \
        struct reader r = { text, sizeof *text };                                                  \
        type value = (type)(call);                                                                 \
        if (end)                                                                                   \
            *end = (wchar_t *)r.at;                                                                \
        return value;                                                                              \
    }
NUMBERS(long, strtol, wcstol, to_signed(&r, base, LONG_MIN, LONG_MAX))
NUMBERS(unsigned long, strtoul, wcstoul, to_unsigned(&r, base, ULONG_MAX))
NUMBERS(long long, _strtoi64, _wcstoi64, to_signed(&r, base, INT64_MIN, INT64_MAX))
NUMBERS(unsigned long long, _strtoui64, _wcstoui64, to_unsigned(&r, base, UINT64_MAX))

int atoi(const char *text) { return (int)strtol(text, NULL, 10); }
long atol(const char *text) { return strtol(text, NULL, 10); }
long long _atoi64(const char *text) { return _strtoi64(text, NULL, 10); }
int _wtoi(const wchar_t *text) { return (int)wcstol(text, NULL, 10); }
long _wtol(const wchar_t *text) { return wcstol(text, NULL, 10); }
long long _wtoi64(const wchar_t *text) { return _wcstoi64(text, NULL, 10); }

#undef strtod
#undef wcstod
double strtod(const char *text, char **end)
{
    return text ? __mingw_strtod(text, end) : (wrong(EINVAL), 0);
}
double wcstod(const wchar_t *text, wchar_t **end)
{
    return text ? __mingw_wcstod(text, end) : (wrong(EINVAL), 0);
}
double atof(const char *text) { return strtod(text, NULL); }
double _wtof(const wchar_t *text) { return wcstod(text, NULL); }

/* --- To text. --- */

static char *put_integer(uint64_t value, bool minus, char *text, int base)
{
    char digits[66];
    unsigned n = sizeof digits;
    if (!text || base < 2 || base > 36) {
        wrong(EINVAL);
        return text;
    }
    digits[--n] = 0;
    do
        digits[--n] = "0123456789abcdefghijklmnopqrstuvwxyz"[value % (unsigned)base];
    while (value /= (unsigned)base);
    if (minus)
        digits[--n] = '-';
    return memcpy(text, digits + n, sizeof digits - n);
}

/* Only decimal numbers have a sign. */
#define SIGNED_TEXT(name, type, unsigned_type)                                                     \
    char *name(type value, char *text, int base)                                                   \
    {                                                                                              \
        bool minus = base == 10 && value < 0;                                                      \
        uint64_t magnitude = minus ? -(uint64_t)value : (unsigned_type)value;                      \
        return put_integer(magnitude, minus, text, base);                                          \
    }
SIGNED_TEXT(_itoa, int, unsigned)
SIGNED_TEXT(_ltoa, long, unsigned long)
SIGNED_TEXT(_i64toa, long long, unsigned long long)

char *_ultoa(unsigned long value, char *text, int base)
{
    return put_integer(value, false, text, base);
}

char *_ui64toa(unsigned long long value, char *text, int base)
{
    return put_integer(value, false, text, base);
}

/* --- The rest. --- */

void srand(unsigned seed) { thread_data()->random = seed; }

/* Microsoft's generator: the output of programs depends on it. */
int rand(void)
{
    unsigned *state = &thread_data()->random;
    *state = *state * 214013 + 2531011;
    return *state >> 16 & 0x7fff;
}

errno_t rand_s(unsigned *random)
{
    if (!random)
        return wrong(EINVAL);
    *random = (unsigned)random_bits();
    return 0;
}

int abs(int n) { return n < 0 ? -n : n; }
long labs(long n) { return n < 0 ? -n : n; }
div_t div(int a, int b) { return (div_t){ a / b, a % b }; }
ldiv_t ldiv(long a, long b) { return (ldiv_t){ a / b, a % b }; }

char *getenv(const char *name)
{
    if (!name) {
        wrong(EINVAL);
        return NULL;
    }
    size_t n = strlen(name);
    for (char **e = _environ; e && *e; e++)
        if (_strnicmp(*e, name, n) == 0 && (*e)[n] == '=')
            return *e + n + 1;
    return NULL;
}

wchar_t *_wgetenv(const wchar_t *name)
{
    if (!name) {
        wrong(EINVAL);
        return NULL;
    }
    size_t n = wcslen(name);
    for (wchar_t **e = _wenviron; e && *e; e++)
        if (_wcsnicmp(*e, name, n) == 0 && (*e)[n] == '=')
            return *e + n + 1;
    return NULL;
}

/* NT: there is no command interpreter. */
int system(const char *command)
{
    errno = ENOENT;
    return command ? -1 : 0;
}
