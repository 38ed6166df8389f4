/* SPDX-License-Identifier: MIT */
/* Checks of a program, which prints those that fail. */
#pragma once
#include <stdio.h>

static int checks, failures;

static void check(int line, const char *what, long long found, long long wanted)
{
    checks++;
    if (found == wanted)
        return;
    failures++;
    printf("line %d: %s: 0x%llx, want 0x%llx\n", line, what, found, wanted);
}
#define IS(expression, wanted)                                                                     \
    check(__LINE__, #expression, (long long)(expression), (long long)(wanted))
