/* SPDX-License-Identifier: MIT */
/* Checks of calls with wrong parameters, after _set_invalid_parameter_handler(on_wrong). */
#pragma once
#include <windows.h>
#include <errno.h>
#include <stdint.h>
#include "check.h"

static int calls;

static void on_wrong(const wchar_t *what, const wchar_t *function, const wchar_t *file,
                     unsigned line, uintptr_t reserved)
{
    (void)what, (void)function, (void)file, (void)line, (void)reserved;
    calls++;
}

/* The call returns `want`, with this errno and so many calls of the handler. */
#define CALL(call, want, error, times)                                                             \
    errno = calls = 0;                                                                             \
    IS(call, want);                                                                                \
    IS(errno, error);                                                                              \
    IS(calls, times)
#define WRONG(call, want, error) CALL(call, want, error, 1)
#define RIGHT(call, want) CALL(call, want, 0, 0)

/* Of ucrtbase.dll: mingw-w64's headers have no such function, or its library has another. */
#define OWN(name, result, ...)                                                                     \
    ((result(*)(__VA_ARGS__))(void *)GetProcAddress(GetModuleHandleA("ucrtbase.dll"), #name))
