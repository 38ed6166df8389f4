/* SPDX-License-Identifier: MIT */
/* Calls a function before each of its system calls, and says where that is: a trace with branches
 * has it. */
#include <stdio.h>
#include <windows.h>

#define CALLS 100

static __attribute__((noinline)) void mark(void) { __asm__ volatile(""); }

int main(void)
{
    for (int i = 0; i < CALLS; i++) {
        mark();
        GetCurrentProcessorNumber();
    }
    printf("marked %d times at %llX\n", CALLS, (unsigned long long)(ULONG_PTR)mark);
    return 0;
}
