/* SPDX-License-Identifier: MIT */
/* 20,000 system calls one after the other, twice as many events for a trace. */
#include <stdio.h>
#include <windows.h>

#define CALLS 20000

int main(void)
{
    for (int i = 0; i < CALLS; i++)
        GetCurrentProcessorNumber();
    printf("%d system calls\n", CALLS);
    return 0;
}
