/* SPDX-License-Identifier: MIT */
/* The locale: "C", whatever is asked for. */
#include "msvcrt.h"
#include <limits.h>
#include <locale.h>

static char empty[] = "", point[] = ".";
static struct lconv conventions = {
    .decimal_point = point,
    .thousands_sep = empty,
    .grouping = empty,
    .int_curr_symbol = empty,
    .currency_symbol = empty,
    .mon_decimal_point = empty,
    .mon_thousands_sep = empty,
    .mon_grouping = empty,
    .positive_sign = empty,
    .negative_sign = empty,
    .int_frac_digits = CHAR_MAX,
    .frac_digits = CHAR_MAX,
    .p_cs_precedes = CHAR_MAX,
    .p_sep_by_space = CHAR_MAX,
    .n_cs_precedes = CHAR_MAX,
    .n_sep_by_space = CHAR_MAX,
    .p_sign_posn = CHAR_MAX,
    .n_sign_posn = CHAR_MAX,
};

struct lconv *localeconv(void) { return &conventions; }

/* NULL: no such locale, for all but "C". */
char *setlocale(int category, const char *locale)
{
    static char name[] = "C";
    bool known = !locale || !*locale || strcmp(locale, "C") == 0 || strcmp(locale, "POSIX") == 0;
    return category >= LC_MIN && category <= LC_MAX && known ? name : NULL;
}

unsigned ___lc_codepage_func(void);
unsigned ___lc_codepage_func(void) { return CP_UTF8; }
int ___mb_cur_max_func(void);
int ___mb_cur_max_func(void) { return 4; }
