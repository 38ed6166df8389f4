/* SPDX-License-Identifier: MIT */
/* Numbers from and to text, and bits: what ucrtbase has beside msvcrt's. */
#include "ucrt.h"

double __mingw_strtod(const char *text, char **end);
float __mingw_strtof(const char *text, char **end);
float __mingw_wcstof(const wchar_t *text, wchar_t **end);

float strtof(const char *text, char **end)
{
    return text ? __mingw_strtof(text, end) : (wrong(EINVAL), 0);
}
float wcstof(const wchar_t *text, wchar_t **end)
{
    return text ? __mingw_wcstof(text, end) : (wrong(EINVAL), 0);
}

/* EINVAL: no buffer or no such base. ERANGE: too little room; the text is empty then. */
#define TEXT_S(type, name, wide_name, wide_plain, plain)                                           \
    errno_t name(type value, char *text, size_t room, int base)                                    \
    {                                                                                              \
        char whole[80];                                                                            \
        if (text && room)                                                                          \
            *text = 0;                                                                             \
        if (!text || !room || base < 2 || base > 36)                                               \
            return wrong(EINVAL);                                                                  \
        plain(value, whole, base);                                                                 \
        return strcpy_s(text, room, whole);                                                        \
    }                                                                                              \
    errno_t wide_name(type value, wchar_t *text, size_t room, int base)                            \
    {                                                                                              \
        char whole[80];                                                                            \
        size_t n = 0;                                                                              \
        if (text && room)                                                                          \
            *text = 0;                                                                             \
        if (!text || !room || base < 2 || base > 36)                                               \
            return wrong(EINVAL);                                                                  \
        plain(value, whole, base);                                                                 \
        if (strlen(whole) >= room)                                                                 \
            return wrong(ERANGE);                                                                  \
        for (; whole[n]; n++)                                                                      \
            text[n] = (wchar_t)whole[n];                                                           \
        text[n] = 0;                                                                               \
        return 0;                                                                                  \
    }                                                                                              \
    wchar_t *wide_plain(type value, wchar_t *text, int base)                                       \
    {                                                                                              \
        wide_name(value, text, 80, base);                                                          \
        return text;                                                                               \
    }
TEXT_S(int, _itoa_s, _itow_s, _itow, _itoa)
TEXT_S(long, _ltoa_s, _ltow_s, _ltow, _ltoa)
TEXT_S(unsigned long, _ultoa_s, _ultow_s, _ultow, _ultoa)
TEXT_S(long long, _i64toa_s, _i64tow_s, _i64tow, _i64toa)
TEXT_S(unsigned long long, _ui64toa_s, _ui64tow_s, _ui64tow, _ui64toa)

/* --- Integers. --- */

long long llabs(long long n) { return n < 0 ? -n : n; }
lldiv_t lldiv(long long a, long long b) { return (lldiv_t){ a / b, a % b }; }

#undef _rotl
#undef _rotr
#undef _rotl64
#undef _rotr64
unsigned _rotl(unsigned n, int by) { return n << (by & 31) | n >> (-by & 31); }
unsigned _rotr(unsigned n, int by) { return n >> (by & 31) | n << (-by & 31); }
uint64_t _rotl64(uint64_t n, int by) { return n << (by & 63) | n >> (-by & 63); }
uint64_t _rotr64(uint64_t n, int by) { return n >> (by & 63) | n << (-by & 63); }
unsigned short _byteswap_ushort(unsigned short n) { return __builtin_bswap16(n); }
unsigned long _byteswap_ulong(unsigned long n) { return __builtin_bswap32(n); }
uint64_t _byteswap_uint64(uint64_t n) { return __builtin_bswap64(n); }
