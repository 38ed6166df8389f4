/* SPDX-License-Identifier: MIT */
/* Ten million instructions, over and over; counted where there is a counter. tests/host/speed.t
 * takes the time between the two lines of each turn. */
#include <stdio.h>
#include "kernel.h"

#define TURNS 9

static ULONG64 read_counter(ULONG selector)
{
    ULONG64 low, high;
    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(selector) : "memory");
    return high << 32 | low;
}

int main(void)
{
    HARDWARE_COUNTER counter = { PMCCounter, 0, 2 }; /* ProfileTotalIssues: instructions */
    ULONG count = 0;
    HANDLE profile;

    if (set_counters(&counter, 1) == 0 &&
        (query_counters(&counter, 1, &count) ||
         EnableThreadProfiling(GetCurrentThread(), 0, 1, &profile)))
        return 1;
    for (int turn = 0; turn < TURNS; turn++) {
        unsigned loop = 5000000;
        printf("begin\n");
        ULONG64 before = count ? read_counter((ULONG)counter.Index) : 0;
        __asm__ volatile("1: dec %0\njnz 1b" : "+r"(loop) : : "cc");
        printf("end %llu\n", count ? read_counter((ULONG)counter.Index) - before : 0);
    }
    return 0;
}
