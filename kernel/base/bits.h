/* SPDX-License-Identifier: MIT */
/* Masks and arrays. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof *(array))

/* A loop in which `at` points to each element of the array, or of those before its end. */
#define for_each_in(at, array) for_each_until((array) + ARRAY_SIZE(array), at, array)
#define for_each_until(end, at, array) for (__typeof__(*(array)) *at = (array); at < (end); at++)

/* A loop in which `n` is the number of each bit of the mask, lowest first. */
#define for_each_bit(n, mask)                                                                      \
    for (uint64_t n##_rest = (mask), n;                                                            \
         n##_rest && (n = (uint64_t)__builtin_ctzll(n##_rest), true); n##_rest &= n##_rest - 1)

/* The number of the lowest bit; the mask is not 0. Each sample asks it twice, as an index: the
 * compiler would clear the register first, and extend it afterwards. */
static inline uint64_t bit_lowest(uint64_t mask)
{
    uint64_t n;
    asm("bsf %1,%0" : "=r"(n) : "rm"(mask) : "cc");
    return n;
}

static inline unsigned bit_count(uint64_t mask)
{
    unsigned n = 0;
    for (; mask; mask &= mask - 1)
        n++;
    return n;
}
