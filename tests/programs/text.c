/* SPDX-License-Identifier: MIT */
/* Text, numbers, sorting, the calendar. Also compiled for the host: both must print the same. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <wchar.h>
#include <wctype.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static int sign(int n) { return (n > 0) - (n < 0); }
static long at(const void *p, const void *start)
{
    return p ? (long)((const char *)p - (const char *)start) : -1;
}
static long wide_at(const wchar_t *p, const wchar_t *start) { return p ? (long)(p - start) : -1; }

/* --- Bytes. --- */

/* What is not ASCII by its number. */
static void show(const char *text)
{
    for (; *text; text++)
        printf(*text & 0x80 ? "<%02x>" : "%c", *text & 0xff);
    printf(" ");
}

static const char *const texts[] = { "",     "a",      "ab",  "abc", "abd", "b",
                                     "\xff", "abcabc", "bca", "AB",  "aBD" };

static void pairs(void)
{
    for (unsigned i = 0; i < COUNT(texts); i++)
        for (unsigned k = 0; k < COUNT(texts); k++) {
            const char *a = texts[i], *b = texts[k];
            char copy[32] = "<", part[8] = "#######";
            strncpy(part, a, 5);
            strncat(strcat(copy, a), b, 2);
            show(copy);
            show(part);
            printf("%d %d ", sign(_stricmp(a, b)), sign(_strnicmp(a, b, 2)));
            printf("%d %d %d %d %ld %ld %ld %zu %zu %c\n", sign(strcmp(a, b)),
                   sign(strncmp(a, b, 2)), sign(strcoll(a, b)), sign(memcmp(a, b, 1)),
                   at(strstr(a, b), a), at(strpbrk(a, b), a), at(memchr(a, *b, strlen(a) + 1), a),
                   strspn(a, b), strcspn(a, b), part[6]);
        }
    for (const char *c = "abcd"; *c; c++)
        printf("%ld %ld ", at(strchr(texts[7], *c), texts[7]), at(strrchr(texts[7], *c), texts[7]));
}

static void pieces(void)
{
    char text[] = ",,one, two;three,", moved[] = "0123456789";
    for (char *p = strtok(text, ","); p; p = strtok(NULL, ", ;"))
        printf("[%s]", p);
    memmove(moved + 2, moved, 5);
    printf("%s ", moved);
    memmove(moved, moved + 3, 5);
    size_t length = strxfrm(text, "abc", sizeof text);
    printf("%s %zu %s\n", moved, length, text);
    char *grown = realloc(_strdup("abc"), 5000);
    printf("%s\n", grown);
    free(grown);
}

static void classes(void)
{
    static int (*const is[])(int) = { isalnum, isalpha, iscntrl, isdigit, isgraph, islower,
                                      isprint, ispunct, isspace, isupper, isxdigit };
    static int (*const wide[])(wint_t) = { iswalnum, iswalpha, iswcntrl, iswdigit,
                                           iswgraph, iswlower, iswprint, iswpunct,
                                           iswspace, iswupper, iswxdigit };
    for (int c = -1; c < 128; c++) {
        unsigned narrow_bits = 0, wide_bits = 0;
        for (unsigned i = 0; i < COUNT(is); i++) {
            narrow_bits |= is[i](c) ? 1u << i : 0;
            wide_bits |= c >= 0 && wide[i]((wint_t)c) ? 1u << i : 0;
        }
        printf("%03x%03x%02x%02x%c", narrow_bits, wide_bits, tolower(c) & 255, toupper(c) & 255,
               c % 8 == 7 ? '\n' : ' ');
        if (c >= 0 && (towlower((wint_t)c) != (wint_t)tolower(c) ||
                       towupper((wint_t)c) != (wint_t)toupper(c)))
            printf("%d ", c);
    }
}

/* --- Wide characters. --- */

static void wide_texts(void)
{
    static const wchar_t *const all[] = { L"", L"a", L"ab", L"abc", L"b", L"abcab", L"bca" };
    for (unsigned i = 0; i < COUNT(all); i++)
        for (unsigned k = 0; k < COUNT(all); k++) {
            const wchar_t *a = all[i], *b = all[k];
            wchar_t copy[32] = L"<", part[8] = L"#######";
            wcsncpy(part, a, 5);
            wcsncat(wcscat(copy, a), b, 2);
            printf("%d %d %d %ld %ld %zu %zu %zu %ls %ls%lc\n", sign(wcscmp(a, b)),
                   sign(wcsncmp(a, b, 2)), sign(wcscoll(a, b)), wide_at(wcsstr(a, b), a),
                   wide_at(wcspbrk(a, b), a), wcsspn(a, b), wcscspn(a, b), wcslen(a), copy, part,
                   (wint_t)part[6]);
        }
    wchar_t wide[16], copied[16];
    char narrow[16];
    printf("%ld %ld ", wide_at(wcschr(all[5], L'b'), all[5]),
           wide_at(wcsrchr(all[5], L'b'), all[5]));
    size_t to_wide = mbstowcs(wide, "narrow", 16), back = wcstombs(narrow, wide, 16);
    printf("%zu %zu %zu %ls %s\n", to_wide, back, mbstowcs(NULL, "some", 0), wcscpy(copied, wide),
           narrow);
    back = wcstombs(narrow, L"wide", 3);
    printf("%zu %.3s %d %d %lc %ld\n", back, narrow, mblen("x", 1), mbtowc(wide, "y", 1),
           (wint_t)*copied, wcstol(L" -12x", NULL, 10));
    printf("%lld %llu\n", (long long)_wcstoi64(L"7fffffffffffffff", NULL, 16),
           (unsigned long long)_wcstoui64(L"077", NULL, 0));
}

/* --- Numbers. --- */

static void numbers(void)
{
    static const char *const all[] = { "0",
                                       "-1",
                                       "+12z",
                                       "  42",
                                       "0x1F",
                                       "0x",
                                       "077",
                                       "08",
                                       "zz",
                                       "",
                                       "- 1",
                                       "1010",
                                       "-0x10",
                                       "\t\n7 ",
                                       "1e3",
                                       "9223372036854775807",
                                       "-1.5",
                                       "1e-5",
                                       ".5",
                                       "inf",
                                       "-.25e+2",
                                       "9223372036854775808",
                                       "-9223372036854775808",
                                       "-9223372036854775809",
                                       "18446744073709551615",
                                       "18446744073709551616",
                                       "-18446744073709551616" };
    static const int bases[] = { 0, 2, 8, 10, 16, 36 };
    for (unsigned i = 0; i < COUNT(all); i++) {
        char *end;
        for (unsigned b = 0; b < COUNT(bases); b++) {
            errno = 0;
            long long value = _strtoi64(all[i], &end, bases[b]);
            printf("%lld %ld %d ", value, at(end, all[i]), errno == ERANGE);
            errno = 0;
            unsigned long long more = _strtoui64(all[i], &end, bases[b]);
            printf("%llu %ld %d\n", more, at(end, all[i]), errno == ERANGE);
        }
        double real = strtod(all[i], &end);
        printf("%g %ld %g\n", real + 0.0, at(end, all[i]), atof(all[i]) + 0.0);
        if (i < 15) /* of 32 bits */
            printf("%d %ld %ld %lu\n", atoi(all[i]), atol(all[i]), strtol(all[i], &end, 16),
                   strtoul(all[i], &end, 8) & 0xffffffff);
    }
    int exponent;
    double whole, part = modf(-3.75, &whole), half = frexp(48.0, &exponent);
    div_t d = div(-17, 5);
    ldiv_t l = ldiv(17, -5);
    printf("%g %g %g %d %g\n", part, whole, half, exponent, ldexp(0.75, 5));
    printf("%d %d %ld %ld %d %ld\n", d.quot, d.rem, l.quot, l.rem, abs(-5), labs(-6));
}

static void scans(void)
{
    int a = 0, b = 0, n;
    unsigned x = 0;
    char word[16] = "", set[16] = "", c = '?';
    double real = 0;
    n = sscanf("12 -7 word 0x1f abc,def 2.5", "%d%d %s %x %[a-c]%c%*s %lf", &a, &b, word, &x, set,
               &c, &real);
    printf("%d %d %d %s %x %s %c %g\n", n, a, b, word, x, set, c, real);
    n = sscanf("123456 :z", "%3d%3d :%n", &a, &b, &n) + 10 * n;
    printf("%d %d %d %d\n", a, b, sscanf("", "%d", &a), sscanf("x", "%d", &a));
}

/* --- Order. --- */

static int by_value(const void *a, const void *b)
{
    return sign(*(const int *)a - *(const int *)b);
}

static void order(void)
{
    for (int n = 0; n < 40; n++) {
        int values[40];
        unsigned found = 0;
        for (int i = 0; i < n; i++)
            values[i] = i * 7919 % 41;
        qsort(values, (size_t)n, sizeof values[0], by_value);
        for (int key = -1; key < 42; key++) {
            const int *p = bsearch(&key, values, (size_t)n, sizeof values[0], by_value);
            found += p ? (unsigned)(p - values + 1) * (unsigned)key : 0;
        }
        for (int i = 0; i < n; i++)
            printf("%d ", values[i]);
        printf("%u\n", found);
    }
}

/* --- The calendar. --- */

static void calendar(void)
{
    static const int years[] = { 70, 71, 72, 99, 100, 101, 104, 123, 124, 199, 200, 201 };
    static const char format[] = "%a %A %b %B %d %H %I %j %m %M %p %S %U %w %W %y %Y %% %F %T %D";
    char text[200], small[8];
    for (unsigned y = 0; y < COUNT(years); y++)
        for (int month = -1; month < 14; month++)
            for (int day = -1; day < 33; day += 11) {
                struct tm tm = { .tm_year = years[y],
                                 .tm_mon = month,
                                 .tm_mday = day,
                                 .tm_hour = 3 * month + 1,
                                 .tm_min = day,
                                 .tm_sec = 59 };
                const struct tm again = tm;
                time_t when = mktime(&tm);
                if (years[y] == 70 && month < 1)
                    continue; /* before 1970 Windows knows no time */
                const struct tm *utc = gmtime(&when);
                strftime(text, sizeof text, format, utc);
                printf("%lld %d %d %s", (long long)when, tm.tm_wday, tm.tm_yday, text);
                const char *clock = asctime(localtime(&when));
                printf(" %.7s%s", clock, clock + 10); /* Windows' day is never blank */
                if (again.tm_mon == tm.tm_mon && again.tm_mday == tm.tm_mday && tm.tm_isdst > 0)
                    printf("summer\n");
            }
    struct tm tm = { .tm_year = 100, .tm_mday = 2, .tm_wday = 0, .tm_yday = 1 };
    wchar_t wide[16];
    size_t fits = strftime(small, 8, "%Y-%m", &tm);
    printf("%zu %s ", fits, small);
    printf("%zu ", strftime(small, 8, "%H:%M:%S", &tm));
    fits = wcsftime(wide, 16, L"%d %b", &tm);
    time_t tenth = 9 * 86400;
    printf("%zu %ls %s%g\n", fits, wide, ctime(&tenth), difftime(5, 3));
}

int main(void)
{
    pairs();
    pieces();
    classes();
    wide_texts();
    numbers();
    scans();
    order();
    calendar();
}
