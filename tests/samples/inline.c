/* SPDX-License-Identifier: MIT */
/* Counts the instructions of a few lines: read the counter, work, read again, subtract what the two
 * readings cost. No call, no system call in between, so one instruction more is one more in the
 * result. */
#include "counter.h"

#define TRIES 100

/* The least of some tries: a switch in between reads another CPU's counter. */
#define COUNT(least, work)                                                                         \
    do {                                                                                           \
        (least) = ~0ull;                                                                           \
        for (int try = 0; try < TRIES; try++) {                                                    \
            ULONG64 before = read_counter(selector);                                               \
            work;                                                                                  \
            ULONG64 count = read_counter(selector) - before;                                       \
            (least) = count < (least) ? count : (least);                                           \
        }                                                                                          \
    } while (0)

int main(void)
{
    ULONG selector;
    ULONG64 empty, one, ten, loop;
    HANDLE profile;
    if (!enable(&selector, &profile)) /* now RDPMC works in this thread */
        return 1;
    COUNT(empty, );
    COUNT(one, __asm__ volatile("nop"));
    COUNT(ten, __asm__ volatile(".rept 10\nnop\n.endr"));
    COUNT(loop, __asm__ volatile("mov $1000, %%r8d\n1: dec %%r8d\njnz 1b" : : : "r8", "cc"));
    printf("two readings cost %llu\n", empty);
    printf("one instruction: %llu\n", one - empty);
    printf("ten instructions: %llu\n", ten - empty);
    printf("a loop of 1000 iterations: %llu\n", loop - empty);
    return (int)DisableThreadProfiling(profile);
}
