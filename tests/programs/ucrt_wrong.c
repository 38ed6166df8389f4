/* SPDX-License-Identifier: MIT */
/* Functions of ucrtbase.dll with wrong parameters: each calls the program's handler once, sets
 * errno and returns what Microsoft documents. */
#define _CRT_RAND_S
#include <windows.h>
#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include "check_wrong.h"

/* Both widths: `p` is the beginning of names, T() makes a text. */
#define COPIES(type, p, T)                                                                         \
    static void p##_copies(void)                                                                   \
    {                                                                                              \
        type to[4] = { 'x', 'y', 'z', '!' };                                                       \
        WRONG(p##cpy_s(NULL, 4, T("a")), EINVAL, EINVAL);                                          \
        WRONG(p##cpy_s(to, 0, T("a")), EINVAL, EINVAL);                                            \
        IS(to[0], 'x');                                                                            \
        WRONG(p##cpy_s(to, 4, NULL), EINVAL, EINVAL);                                              \
        IS(to[0] == 0 && to[1] == 'y', 1);                                                         \
        RIGHT(p##cpy_s(to, 4, T("abc")), 0);                                                       \
        IS(p##cmp(to, T("abc")), 0);                                                               \
        WRONG(p##cpy_s(to, 3, T("abc")), ERANGE, ERANGE);                                          \
        IS(to[0], 0);                                                                              \
        RIGHT(p##cat_s(to, 4, T("ab")), 0);                                                        \
        RIGHT(p##cat_s(to, 4, T("c")), 0);                                                         \
        IS(p##cmp(to, T("abc")), 0);                                                               \
        WRONG(p##cat_s(to, 3, T("")), EINVAL, EINVAL); /* no end within the room */                \
        IS(to[0], 0);                                                                              \
        RIGHT(p##cpy_s(to, 4, T("ab")), 0);                                                        \
        WRONG(p##cat_s(to, 4, T("cd")), ERANGE, ERANGE);                                           \
        IS(to[0], 0);                                                                              \
        WRONG(p##cat_s(NULL, 4, T("cd")), EINVAL, EINVAL);                                         \
        RIGHT(p##ncpy_s(to, 4, T("abcd"), 3), 0);                                                  \
        IS(p##cmp(to, T("abc")), 0);                                                               \
        WRONG(p##ncpy_s(to, 4, T("abcd"), 4), ERANGE, ERANGE);                                     \
        IS(to[0], 0);                                                                              \
        RIGHT(p##ncpy_s(to, 3, T("abcd"), _TRUNCATE), STRUNCATE);                                  \
        IS(p##cmp(to, T("ab")), 0);                                                                \
        WRONG(p##ncpy_s(to, 4, NULL, 2), EINVAL, EINVAL);                                          \
        IS(to[0], 0);                                                                              \
        RIGHT(p##ncat_s(to, 4, T("abcd"), 2), 0);                                                  \
        RIGHT(p##ncat_s(to, 4, T("xyz"), _TRUNCATE), STRUNCATE);                                   \
        IS(p##cmp(to, T("abx")), 0);                                                               \
        WRONG(p##ncat_s(to, 4, T("yz"), 1), ERANGE, ERANGE);                                       \
        IS(to[0], 0);                                                                              \
        WRONG(p##ncat_s(NULL, 4, T("yz"), 1), EINVAL, EINVAL);                                     \
    }                                                                                              \
    static void p##_changes(void)                                                                  \
    {                                                                                              \
        type text[8] = { 'a', 'B', '[', '`', 'z', 'Z' }, *at = NULL;                               \
        RIGHT(_##p##upr_s(text, 8), 0);                                                            \
        IS(p##cmp(text, T("AB[`ZZ")), 0);                                                          \
        RIGHT(_##p##lwr_s(text, 7), 0);                                                            \
        IS(p##cmp(text, T("ab[`zz")), 0);                                                          \
        IS(p##cmp(_##p##rev(text), T("zz`[ba")), 0);                                               \
        IS(p##cmp(_##p##nset(text, '-', 2), T("--`[ba")), 0);                                      \
        IS(p##cmp(_##p##set(text, '+'), T("++++++")), 0);                                          \
        WRONG(_##p##upr_s(text, 6), EINVAL, EINVAL);                                               \
        IS(text[0] == 0 && text[1] == '+', 1);                                                     \
        WRONG(_##p##lwr_s(NULL, 6), EINVAL, EINVAL);                                               \
        WRONG(p##tok_s(NULL, T(" "), &at) == NULL, 1, EINVAL);                                     \
        WRONG(p##tok_s(text, NULL, &at) == NULL, 1, EINVAL);                                       \
        WRONG(p##tok_s(text, T(" "), NULL) == NULL, 1, EINVAL);                                    \
        p##cpy_s(text, 8, T("  a b "));                                                            \
        RIGHT(p##cmp(p##tok_s(text, T(" "), &at), T("a")), 0);                                     \
        RIGHT(p##cmp(p##tok_s(NULL, T(" "), &at), T("b")), 0);                                     \
        RIGHT(p##tok_s(NULL, T(" "), &at) == NULL, 1);                                             \
        RIGHT(p##tok_s(NULL, T(" "), &at) == NULL, 1);                                             \
    }
#define NARROW(text) text
#define WIDE(text) L##text
COPIES(char, str, NARROW)
COPIES(wchar_t, wcs, WIDE)

static void memory(void)
{
    char to[4] = "abc";
    wchar_t wide[2] = L"x";
    RIGHT(memcpy_s(NULL, 0, NULL, 0), 0);
    WRONG(memcpy_s(NULL, 4, to, 1), EINVAL, EINVAL);
    WRONG(memmove_s(to, 2, to, 3), ERANGE, ERANGE);
    WRONG(memmove_s(to, 2, NULL, 1), EINVAL, EINVAL);
    IS(strcmp(to, "abc"), 0);
    RIGHT(memmove_s(to, 4, to + 1, 3), 0);
    IS(strcmp(to, "bc"), 0);
    WRONG(memcpy_s(to, 2, "xyz", 3), ERANGE, ERANGE);
    IS(to[0] == 0 && to[1] == 0, 1);
    to[0] = 'x';
    WRONG(memcpy_s(to, 1, NULL, 1), EINVAL, EINVAL);
    IS(to[0], 0);
    WRONG(wmemcpy_s(wide, 1, L"ab", 2), ERANGE, ERANGE);
    IS(wide[0], 0);
    WRONG(wmemmove_s(wide, 2, wide, SIZE_MAX / 2 + 2), ERANGE, ERANGE);
}

static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static int ascending_s(void *sign, const void *a, const void *b)
{
    return *(int *)sign * ascending(a, b);
}

static void order(void)
{
    int numbers[] = { 5, 3, 1 }, key = 3, sign = -1;
    WRONG((qsort(NULL, 3, 4, ascending), 0), 0, EINVAL);
    WRONG((qsort(numbers, 3, 0, ascending), 0), 0, EINVAL);
    WRONG((qsort(numbers, 3, 4, NULL), 0), 0, EINVAL);
    RIGHT((qsort(NULL, 0, 4, ascending), 0), 0);
    WRONG((qsort_s(NULL, 3, 4, ascending_s, &sign), 0), 0, EINVAL);
    RIGHT((qsort(numbers, 3, 4, ascending), numbers[0]), 1);
    RIGHT((int *)bsearch(&key, numbers, 3, 4, ascending) - numbers, 1);
    WRONG(bsearch(&key, NULL, 3, 4, ascending) == NULL, 1, EINVAL);
    RIGHT((qsort_s(numbers, 3, 4, ascending_s, &sign), numbers[0]), 5);
    key = 1;
    RIGHT((int *)bsearch_s(&key, numbers, 3, 4, ascending_s, &sign) - numbers, 2);
    WRONG(bsearch_s(&key, numbers, 3, 0, ascending_s, &sign) == NULL, 1, EINVAL);
    key = 2;
    RIGHT(bsearch_s(&key, numbers, 3, 4, ascending_s, &sign) == NULL, 1);
}

/* --- Numbers. --- */

static void numbers(void)
{
    char text[40] = "x", *end = NULL;
    wchar_t wide[40] = L"x", *wide_end = NULL;
    RIGHT(_itoa_s(-12, text, 4, 10), 0);
    IS(strcmp(text, "-12"), 0);
    WRONG(_itoa_s(-12, text, 3, 10), ERANGE, ERANGE);
    IS(text[0], 0);
    WRONG(_itoa_s(1, text, 40, 1), EINVAL, EINVAL);
    WRONG(_itoa_s(1, text, 40, 37), EINVAL, EINVAL);
    WRONG(_itoa_s(1, NULL, 40, 10), EINVAL, EINVAL);
    RIGHT(_i64toa_s(-1, text, 40, 36), 0);
    IS(strcmp(text, "3w5e11264sgsf"), 0);
    RIGHT(_ui64tow_s(1ull << 63, wide, 20, 10), 0);
    IS(wcscmp(wide, L"9223372036854775808"), 0);
    WRONG(_ui64tow_s(1ull << 63, wide, 19, 10), ERANGE, ERANGE);
    IS(wide[0], 0);
    WRONG(_itow_s(1, wide, 40, 99), EINVAL, EINVAL);
    RIGHT(wcscmp(_itow(-255, wide, 16), L"ffffff01"), 0);
    WRONG((_itoa(7, text, 0), 0), 0, EINVAL);
    WRONG((_i64toa(7, text, 1), 0), 0, EINVAL);
    WRONG(_ultoa(7, NULL, 10) == NULL, 1, EINVAL);
    WRONG(strtol("12", &end, 200), 0, EINVAL);
    IS(strcmp(end, "12"), 0);
    WRONG(wcstol(L"12", &wide_end, 1), 0, EINVAL);
    WRONG(_strtoui64("12", NULL, -8), 0, EINVAL);
    WRONG(strtol(NULL, &end, 10), 0, EINVAL);
    WRONG(atoi(NULL), 0, EINVAL);
    WRONG(OWN(strtod, double, const void *, void *)(NULL, NULL) != 0, 0, EINVAL);
    WRONG(OWN(wcstod, double, const void *, void *)(NULL, NULL) != 0, 0, EINVAL);
    WRONG(OWN(strtof, float, const void *, void *)(NULL, NULL) != 0, 0, EINVAL);
    WRONG(OWN(wcstof, float, const void *, void *)(NULL, NULL) != 0, 0, EINVAL);
    RIGHT(OWN(strtod, double, const void *, void *)("1.5", NULL) == 1.5, 1);
    WRONG(rand_s(NULL), EINVAL, EINVAL);
}

static void wide_and_narrow(void)
{
    size_t n = 9;
    char text[8] = "x";
    wchar_t wide[8] = L"x";
    int bytes = 9;
    RIGHT(mbstowcs_s(&n, NULL, 0, "a\xe2\x82\xac", 0), 0);
    IS(n, 1); /* of at most none */
    RIGHT(mbstowcs_s(&n, NULL, 0, "a\xe2\x82\xac", _TRUNCATE), 0);
    IS(n, 3);
    RIGHT(mbstowcs_s(&n, wide, 8, "a\xe2\x82\xac", 8), 0);
    IS(n == 3 && wcscmp(wide, L"a\u20ac") == 0, 1);
    RIGHT(mbstowcs_s(&n, wide, 2, "abc", _TRUNCATE), STRUNCATE);
    IS(n == 2 && wcscmp(wide, L"a") == 0, 1);
    RIGHT(mbstowcs_s(NULL, wide, 8, "abc", 2), 0);
    IS(wcscmp(wide, L"ab"), 0);
    WRONG(mbstowcs_s(&n, wide, 3, "abc", 3), ERANGE, ERANGE);
    IS(n == 0 && wide[0] == 0, 1);
    wide[0] = 'x';
    CALL(mbstowcs_s(&n, wide, 8, "\xff", 8), EILSEQ, EILSEQ, 0);
    IS(n == 0 && wide[0] == 0, 1);
    WRONG(mbstowcs_s(&n, wide, 0, "a", 1), EINVAL, EINVAL);
    WRONG(mbstowcs_s(&n, NULL, 1, "a", 1), EINVAL, EINVAL);
    WRONG(mbstowcs_s(&n, wide, 8, NULL, 1), EINVAL, EINVAL);
    RIGHT(wcstombs_s(&n, text, 8, L"a\u20ac", _TRUNCATE), 0);
    IS(n == 5 && strcmp(text, "a\xe2\x82\xac") == 0, 1);
    RIGHT(wcstombs_s(&n, text, 4, L"a\u20ac", _TRUNCATE), STRUNCATE);
    IS(n == 2 && strcmp(text, "a") == 0, 1); /* no half of a character */
    WRONG(wcstombs_s(&n, text, 4, L"a\u20ac", 8), ERANGE, ERANGE);
    IS(n == 0 && text[0] == 0, 1);
    RIGHT(wctomb_s(&bytes, text, 3, L'\u20ac'), 0);
    IS(bytes, 3);
    WRONG(wctomb_s(&bytes, text, 2, L'\u20ac'), ERANGE, ERANGE);
    IS(bytes, -1);
    WRONG(wctomb_s(&bytes, NULL, 2, L'a'), EINVAL, EINVAL);
    RIGHT(wctomb_s(&bytes, NULL, 0, L'a'), 0);
    IS(bytes, 0);
    RIGHT(wctomb_s(NULL, text, 1, L'a'), 0);
}

/* --- What is right. --- */

static void doubles(void)
{
    double (*next)(double, double) = OWN(nextafter, double, double, double);
    short (*kind)(double) = OWN(_dclass, short, double);
    unsigned word = 0;
    double one = 1;
    IS(next(1, 2) == 1 + 0x1p-52 && next(1, 0) == 1 - 0x1p-53 && next(-1, 0) == -1 + 0x1p-53, 1);
    IS(next(0, 1) == 0x1p-1074 && next(0, -1) == -0x1p-1074 && next(2, 2) == 2, 1);
    IS(isnan(next(NAN, 1)) && isnan(next(1, NAN)), 1);
    IS(kind(NAN) == 2 && kind(-INFINITY) == 1 && kind(-0.0) == 0, 1);
    IS(kind(1) == -1 && kind(0x1p-1074) == -2, 1);
    IS(OWN(_fdclass, short, float)(0x1p-140f), -2);
    IS(OWN(_dtest, short, const double *)(&one), -1);
    IS(OWN(_dsign, int, double)(-0.0) == 0x8000 && OWN(_dsign, int, double)(1) == 0, 1);
    IS(OWN(_fdsign, int, float)(-1) == 0x8000 && OWN(_fdsign, int, float)(1) == 0, 1);
    IS(OWN(_hypotf, float, float, float)(3, 4) == 5, 1);
    IS(OWN(_copysignf, float, float, float)(1, -2) == -1 && OWN(_chgsignf, float, float)(1) == -1,
       1);
    IS(OWN(_finitef, int, float)(INFINITY) == 0 && OWN(_isnanf, int, float)(NAN) != 0, 1);
    IS(OWN(_logb, double, double)(9) == 3 && OWN(_scalb, double, double, long)(3, 2) == 12, 1);
    IS(_controlfp_s(&word, 0, 0), 0);
    IS(word != 0 && word == _controlfp(0, 0), 1);
}

static void bits(void)
{
    lldiv_t d = OWN(lldiv, lldiv_t, long long, long long)(-7, 2);
    IS(d.quot == -3 && d.rem == -1, 1);
    IS(OWN(llabs, long long, long long)(-1ll << 40), 1ll << 40);
    unsigned (*left)(unsigned, int) = OWN(_rotl, unsigned, unsigned, int);
    unsigned (*right)(unsigned, int) = OWN(_rotr, unsigned, unsigned, int);
    IS(left(0x80000001, 4) == 0x18 && right(0x18, 4) == 0x80000001, 1);
    IS(left(5, 32) == 5 && right(5, 0) == 5, 1);
    IS(OWN(_rotl64, uint64_t, uint64_t, int)(1ull << 63 | 1, 1), 3);
    IS(OWN(_rotr64, uint64_t, uint64_t, int)(3, 1), (long long)(1ull << 63 | 1));
    IS(OWN(_byteswap_ushort, unsigned short, unsigned short)(0x102), 0x201);
    IS(OWN(_byteswap_ulong, unsigned, unsigned)(0x1020304), 0x4030201);
    IS(OWN(_byteswap_uint64, uint64_t, uint64_t)(1), 1ll << 56);
}

static void characters(void)
{
    char text[8];
    wchar_t wide[8], words[] = L"a b", *rest = NULL;
    IS(_memicmp("aBc[", "AbC{", 3), 0);
    IS(_memicmp("aBc", "AbD", 3) < 0 && _memicmp("b", "A", 1) > 0, 1);
    IS((char *)_memccpy(text, "abc", 'b', 3) - text, 2);
    IS(_memccpy(text, "abc", 'x', 3) == NULL, 1);
    RIGHT(strerror_s(text, 8, ENOENT), 0);
    IS(strcmp(text, "No such"), 0);
    WRONG(strerror_s(NULL, 8, ENOENT), EINVAL, EINVAL);
    IS(OWN(isblank, int, int)('\t') && !OWN(isblank, int, int)('\n'), 1);
    IS(OWN(iswblank, int, int)(' ') && !OWN(iswblank, int, int)('\v'), 1);
    IS(OWN(__iscsym, int, int)('_') && OWN(__iscsym, int, int)('1'), 1);
    IS(OWN(__iscsymf, int, int)('_') && !OWN(__iscsymf, int, int)('1'), 1);
    const unsigned short *kinds = OWN(__pctype_func, const unsigned short *, void)();
    IS(kinds['A'], _UPPER | _HEX | 0x100);
    IS(kinds['z'] == (_LOWER | 0x100) && kinds['0'] == (_DIGIT | _HEX) && kinds[-1] == 0, 1);
    IS(OWN(wctype, int, const char *)("punct"), _PUNCT);
    IS(OWN(wctype, int, const char *)("xdigit") == _HEX && !OWN(wctype, int, const char *)("x"), 1);
    IS(OWN(btowc, wint_t, int)('a') == 'a' && OWN(btowc, wint_t, int)(0x80) == WEOF, 1);
    IS(OWN(btowc, wint_t, int)(EOF) == WEOF && OWN(wctob, int, wint_t)(0x80) == EOF, 1);
    const char *from = "ab\xe2\x82\xac";
    size_t (*to_wide)(wchar_t *, const char **, size_t, void *) =
        OWN(mbsrtowcs, size_t, wchar_t *, const char **, size_t, void *);
    IS(to_wide(wide, &from, 2, NULL), 2);
    IS(*from, '\xe2');
    IS(to_wide(wide, &from, 8, NULL), 1);
    IS(wide[0] == 0x20ac && wide[1] == 0 && from == NULL, 1);
    const wchar_t *wide_from = L"ab\u20ac";
    size_t (*to_bytes)(char *, const wchar_t **, size_t, void *) =
        OWN(wcsrtombs, size_t, char *, const wchar_t **, size_t, void *);
    IS(to_bytes(NULL, &wide_from, 0, NULL), 5);
    IS(to_bytes(text, &wide_from, 4, NULL), 2);
    IS(*wide_from, 0x20ac);
    IS(to_bytes(text, &wide_from, 4, NULL), 3);
    IS(memcmp(text, "\xe2\x82\xac", 4) == 0 && wide_from == NULL, 1);
    wchar_t *(*token)(wchar_t *, const wchar_t *, wchar_t **) =
        OWN(wcstok, wchar_t *, wchar_t *, const wchar_t *, wchar_t **);
    IS(wcscmp(token(words, L" ", &rest), L"a") == 0 && rest == words + 2, 1);
    IS(wcscmp(token(rest, L" ", NULL), L"b") == 0 && token(NULL, L" ", NULL) == NULL, 1);
    IS(strtok(strcpy(text, " x"), " ") == text + 1 && strtok(NULL, " ") == NULL, 1);
}

static void scans(void)
{
    int n = 0;
    long long big = 0;
    wchar_t wide[8] = L"";
    char text[4] = "";
    const char *volatile sizes = "%I32d %I64d %ls";
    IS(sscanf("12 -3000000000 abc", sizes, &n, &big, wide), 3);
    IS(n == 12 && big == -3000000000 && wcscmp(wide, L"abc") == 0, 1);
    IS(sscanf("]x y", "%3[]x] %n", text, &n), 1);
    IS(strcmp(text, "]x") == 0 && n == 3, 1);
    IS(sscanf("7% 8", "%*d%% %i", &n), 1);
    IS(n, 8);
    IS(sscanf_s("abc", "%c%c", &text[0], 1u, &text[1], 1u), 2);
    IS(text[0] == 'a' && text[1] == 'b', 1);
    IS(sscanf_s("abcdef", "%99999999999s", text, 3u), 1);
    IS(strcmp(text, "ab"), 0);
    IS(swscanf(L"ab 5", L"%hs %d", text, &n), 2);
    IS(strcmp(text, "ab") == 0 && n == 5, 1);
}

int main(void)
{
    _set_invalid_parameter_handler(on_wrong);
    str_copies();
    str_changes();
    wcs_copies();
    wcs_changes();
    memory();
    order();
    numbers();
    wide_and_narrow();
    doubles();
    bits();
    characters();
    scans();
    printf("%d checks, %d wrong\n", checks, failures);
    return failures != 0;
}
