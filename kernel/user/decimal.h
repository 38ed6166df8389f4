/* SPDX-License-Identifier: MIT */
/* The decimal digits of a double, all of them. */
#pragma once
#include <stdbool.h>

#define DECIMAL_DIGITS_MAX 1100 /* at most 767 are significant, 309 before the point */

struct decimal {
    int count;           /* digits, without zeros in front; 0: the number is 0 */
    int point;           /* digits before the point; may be negative */
    const char *special; /* "infINF", "nanNAN" with a NUL between, or NULL */
    char digits[DECIMAL_DIGITS_MAX];
};

/* Returns whether the number has a minus. */
bool decimal_from(struct decimal *d, double value);
/* Keeps `count` digits, rounding to nearest, ties to even. */
void decimal_round(struct decimal *d, int count);
