/* SPDX-License-Identifier: MIT */
/* Masks and arrays. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof *(array))

/* A loop in which `n` is the number of each bit of the mask, lowest first. */
#define for_each_bit(n, mask)                                                                      \
    for (uint64_t n##_rest = (mask), n;                                                            \
         n##_rest && (n = (uint64_t)__builtin_ctzll(n##_rest), true); n##_rest &= n##_rest - 1)

/* The number of the lowest bit; the mask is not 0. */
static inline unsigned bit_lowest(uint64_t mask) { return (unsigned)__builtin_ctzll(mask); }
static inline unsigned bit_count(uint64_t mask)
{
    unsigned n = 0;
    for (; mask; mask &= mask - 1)
        n++;
    return n;
}
