/* SPDX-License-Identifier: MIT */
/* Random numbers. NT: of the TSC, well mixed, and no secret from anybody. */
#pragma once
#include <stdint.h>
#include <x86intrin.h>

/* The finalizer of splitmix64 (public domain, S. Vigna). */
static inline uint64_t random_bits(void)
{
    static uint64_t count;
    uint64_t z = __rdtsc() + 0x9e3779b97f4a7c15 * __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}
