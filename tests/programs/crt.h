/* SPDX-License-Identifier: MIT */
/* Functions of msvcrt.dll by their addresses there: mingw-w64 has its own in the program for many,
 * which would be called instead. */
#pragma once
#define __USE_MINGW_ANSI_STDIO 0
#include <windows.h>
#include <errno.h>
#include <float.h>
#include <io.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <process.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <wchar.h>
#include <wctype.h>
#include "check.h"

static HMODULE library;

static inline void *find(const char *name)
{
    void *address = (void *)GetProcAddress(library, name);
    if (!address)
        printf("%s is not there\n", name);
    return address;
}
#define OWN(result, name, ...) ((result(__cdecl *)(__VA_ARGS__))find(#name))
#define TEXT_IS(expression, wanted) IS(strcmp(expression, wanted), 0)
#define WIDE_IS(expression, wanted) IS(wcscmp(expression, wanted), 0)
