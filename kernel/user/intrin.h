/* SPDX-License-Identifier: MIT */
/* Compiler intrinsics that measuring programs of Windows use. */
#pragma once
#include <stdint.h>
#include <x86intrin.h> /* __rdtsc, _mm_pause and all others of the compiler */

/* One counter of this CPU, by RDPMC selector. STATUS_PRIVILEGED_INSTRUCTION unless the caller is
 * profiled with counters. */
static inline uint64_t __readpmc(uint32_t counter)
{
    uint64_t low, high; /* both instructions clear the upper halves */
    __asm__ __volatile__("rdpmc" : "=a"(low), "=d"(high) : "c"(counter) : "memory");
    return high << 32 | low;
}

/* EAX, EBX, ECX, EDX of a leaf. */
static inline void __cpuidex(int registers[4], int leaf, int subleaf)
{
    __asm__ __volatile__("cpuid"
                         : "=a"(registers[0]), "=b"(registers[1]), "=c"(registers[2]),
                           "=d"(registers[3])
                         : "0"(leaf), "2"(subleaf));
}

static inline void __cpuid(int registers[4], int leaf) { __cpuidex(registers, leaf, 0); }
static inline void _ReadWriteBarrier(void) { __asm__ __volatile__("" : : : "memory"); }
