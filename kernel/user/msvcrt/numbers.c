/* SPDX-License-Identifier: MIT */
/* Numbers from and to text, and other small things of <stdlib.h>. */
#include "msvcrt.h"
#include <limits.h>
#include <locale.h>
#include <stdint.h>
#include "kernel/user/ntdll/random.h"

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 32) >= 'a' && (c | 32) <= 'z')
        return (c | 32) - 'a' + 10;
    return 99;
}

/* The base that a text has, and what follows its 0x. */
static const char *find_base(const char *text, int *base)
{
    const bool zero = *text == '0';
    if ((*base == 0 || *base == 16) && zero && (text[1] | 32) == 'x' && digit_of(text[2]) < 16) {
        *base = 16;
        return text + 2;
    }
    *base = *base ? *base : zero ? 8 : 10;
    return text;
}

/* The magnitude, at most `positive` or `negative`; beyond that ERANGE and `over`. */
static uint64_t parse_integer(const char *text, char **end, int base, uint64_t positive,
                              uint64_t negative, bool *minus, bool *over)
{
    const char *at = text;
    uint64_t value = 0, next;
    *minus = *over = false;
    if (!text || base < 0 || base == 1 || base > 36) {
        wrong(EINVAL);
        return 0;
    }
    while (*at == ' ' || (*at >= '\t' && *at <= '\r'))
        at++;
    *minus = *at == '-';
    at = find_base(at + (*at == '-' || *at == '+'), &base);
    const uint64_t limit = *minus ? negative : positive;
    const char *first = at;
    for (; digit_of(*at) < base; at++) {
        *over |= __builtin_mul_overflow(value, (unsigned)base, &next) ||
                 __builtin_add_overflow(next, (unsigned)digit_of(*at), &next) || next > limit;
        value = *over ? limit : next;
    }
    if (end)
        *end = (char *)(at == first ? text : at);
    if (*over)
        errno = ERANGE;
    return value;
}

#define NUMBER(type, name, most, negative, sum)                                                    \
    type name(const char *text, char **end, int base)                                              \
    {                                                                                              \
        bool minus, over;                                                                          \
        uint64_t value = parse_integer(text, end, base, most, negative, &minus, &over);            \
        return (type)(sum);                                                                        \
    }
NUMBER(long, strtol, LONG_MAX, LONG_MAX + 1ull, minus ? -value : value)
NUMBER(long long, _strtoi64, INT64_MAX, INT64_MAX + 1ull, minus ? -value : value)
NUMBER(unsigned long, strtoul, ULONG_MAX, ULONG_MAX, minus && !over ? -value : value)
NUMBER(unsigned long long, _strtoui64, UINT64_MAX, UINT64_MAX, minus && !over ? -value : value)
int atoi(const char *text) { return (int)strtol(text, NULL, 10); }

char *_ultoa(unsigned long value, char *text, int base)
{
    char digits[33];
    unsigned n = sizeof digits;
    if (base < 2 || base > 36) {
        wrong(EINVAL);
        return text;
    }
    digits[--n] = 0;
    do
        digits[--n] = "0123456789abcdefghijklmnopqrstuvwxyz"[value % (unsigned)base];
    while (value /= (unsigned)base);
    return memcpy(text, digits + n, sizeof digits - n);
}

/* What mingw-w64's own functions use of mathematics. */
double ldexp(double x, int exponent)
{
    long double result = x, power = exponent;
    asm("fscale" : "+t"(result) : "u"(power));
    return (double)result;
}

/* Microsoft's generator: the output of programs depends on it. */
void srand(unsigned seed) { thread_data()->random = seed; }
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

/* --- The locale: "C", with texts in UTF-8. --- */

struct lconv *localeconv(void)
{
    static char empty[] = "", point[] = ".";
    static struct lconv conventions = { .decimal_point = point,
                                        .thousands_sep = empty,
                                        .grouping = empty };
    return &conventions;
}

unsigned ___lc_codepage_func(void);
unsigned ___lc_codepage_func(void) { return CP_UTF8; }
int ___mb_cur_max_func(void);
int ___mb_cur_max_func(void) { return 4; }

/* NT: Windows has texts. */
char *strerror(int error)
{
    static char text[24];
    sprintf(text, "error %d", error);
    return text;
}

char *_strdup(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}
