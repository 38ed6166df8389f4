/* SPDX-License-Identifier: MIT */
/* System calls one after the other, 20,000 or as many as said: twice as many events for a trace.
 * Before each it calls a function, and says where that is: a trace with branches has it. */
#include <stdio.h>
#include <stdlib.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

static __attribute__((noinline)) void mark(void) { __asm__ volatile(""); }

int main(int argc, char **argv)
{
    const int calls = argc > 1 ? atoi(argv[1]) : 20000;
    for (int i = 0; i < calls; i++) {
        mark();
        GetCurrentProcessorNumber();
    }
    printf("%d system calls, marked at %llX\n", calls, (unsigned long long)(ULONG_PTR)mark);
    return 0;
}
