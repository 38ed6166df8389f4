/* SPDX-License-Identifier: MIT */
/* The numbered locks that static parts of programs take. */
#include "msvcrt.h"

#define LOCKS 64

static CRITICAL_SECTION locks[LOCKS];

void locks_begin(void)
{
    for (unsigned i = 0; i < LOCKS; i++)
        InitializeCriticalSection(&locks[i]);
}

void _lock(int number) { EnterCriticalSection(&locks[number & (LOCKS - 1)]); }
void _unlock(int number) { LeaveCriticalSection(&locks[number & (LOCKS - 1)]); }
