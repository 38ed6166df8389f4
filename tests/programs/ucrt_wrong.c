/* SPDX-License-Identifier: MIT */
/* Functions of ucrtbase.dll with wrong parameters: each calls the program's handler once, sets
 * errno and returns what Microsoft documents. */
#include <windows.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include "check.h"

static int calls;

static void on_wrong(const wchar_t *what, const wchar_t *function, const wchar_t *file,
                     unsigned line, uintptr_t reserved)
{
    (void)what, (void)function, (void)file, (void)line, (void)reserved;
    calls++;
}

/* The call returns `want`, with this errno and so many calls of the handler. */
#define CALL(call, want, error, times)                                                             \
    errno = calls = 0;                                                                             \
    IS(call, want);                                                                                \
    IS(errno, error);                                                                              \
    IS(calls, times)
#define WRONG(call, want, error) CALL(call, want, error, 1)
#define RIGHT(call, want) CALL(call, want, 0, 0)

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

int main(void)
{
    _set_invalid_parameter_handler(on_wrong);
    str_copies();
    str_changes();
    wcs_copies();
    wcs_changes();
    memory();
    order();
    printf("%d checks, %d wrong\n", checks, failures);
    return failures != 0;
}
