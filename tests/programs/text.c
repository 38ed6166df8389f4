/* SPDX-License-Identifier: MIT */
/* Text, numbers, sorting. Also compiled for the host: both must print the same. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static int sign(int n) { return (n > 0) - (n < 0); }
static long at(const void *p, const void *start)
{
    return p ? (long)((const char *)p - (const char *)start) : -1;
}

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
            printf("%d %d %d %ld %ld %zu %zu %c\n", sign(strcmp(a, b)), sign(strncmp(a, b, 2)),
                   sign(memcmp(a, b, 1)), at(strstr(a, b), a), at(memchr(a, *b, strlen(a) + 1), a),
                   strspn(a, b), strcspn(a, b), part[6]);
        }
    for (const char *c = "abcd"; *c; c++)
        printf("%ld %ld ", at(strchr(texts[7], *c), texts[7]), at(strrchr(texts[7], *c), texts[7]));
}

static void pieces(void)
{
    char text[] = ",,one, two;three,", moved[] = "0123456789", *next = NULL;
    for (char *p = strtok_s(text, ",", &next); p; p = strtok_s(NULL, ", ;", &next))
        printf("[%s]", p);
    memmove(moved + 2, moved, 5);
    printf("%s ", moved);
    memmove(moved, moved + 3, 5);
    printf("%s\n", moved);
    char *grown = realloc(_strdup("abc"), 5000);
    printf("%s\n", grown);
    free(grown);
}

static void classes(void)
{
    static int (*const is[])(int) = { isalnum, isalpha, iscntrl, isdigit, isgraph, islower,
                                      isprint, ispunct, isspace, isupper, isxdigit };
    for (int c = -1; c < 128; c++) {
        unsigned bits = 0;
        for (unsigned i = 0; i < COUNT(is); i++)
            bits |= is[i](c) ? 1u << i : 0;
        printf("%03x%02x%02x%c", bits, tolower(c) & 255, toupper(c) & 255, c % 8 == 7 ? '\n' : ' ');
    }
}

/* --- Numbers. --- */

static void numbers(void)
{
    static const char *const small[] = { "0",   "-1",   "+12z", "  42", "0x1F", "0x",     "077",
                                         "08",  "zz",   "",     "- 1",  "1010", "-0x10",  "\t\n7 ",
                                         "1e3", "-1.5", "1e-5", ".5",   "inf",  "-.25e+2" };
    static const char *const large[] = { "9223372036854775807",  "9223372036854775808",
                                         "-9223372036854775808", "-9223372036854775809",
                                         "18446744073709551615", "18446744073709551616",
                                         "-18446744073709551616" };
    static const int bases[] = { 0, 2, 8, 10, 16, 36 };
    for (unsigned i = 0; i < COUNT(small) + COUNT(large); i++) {
        const char *text = i < COUNT(small) ? small[i] : large[i - COUNT(small)];
        char *end;
        for (unsigned b = 0; b < COUNT(bases); b++) {
            errno = 0;
            long long value = _strtoi64(text, &end, bases[b]);
            printf("%lld %ld %d ", value, at(end, text), errno == ERANGE);
            errno = 0;
            unsigned long long more = _strtoui64(text, &end, bases[b]);
            printf("%llu %ld %d\n", more, at(end, text), errno == ERANGE);
        }
        if (i < COUNT(small)) /* of 32 bits */
            printf("%d %ld %lu\n", atoi(text), strtol(text, &end, 16),
                   strtoul(text, &end, 8) & 0xffffffff);
    }
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

int main(void)
{
    pairs();
    pieces();
    classes();
    numbers();
    order();
}
