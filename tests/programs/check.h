/* SPDX-License-Identifier: MIT */
/* Checks of a program, which prints those that fail. */
#pragma once
#include <stdio.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

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
/* The call returns `failure`, with that error. */
#define FAILS(call, failure, error)                                                                \
    SetLastError(0);                                                                               \
    IS(call, failure);                                                                             \
    IS(GetLastError(), error)

/* The last line, and the exit status. */
static inline int check_result(void)
{
    printf("%d checks, %d wrong\n", checks, failures);
    return failures;
}

/* Another handle, which has these rights only. */
static inline HANDLE limited(HANDLE of, ACCESS_MASK access)
{
    HANDLE own = GetCurrentProcess(), copy = NULL;
    IS(DuplicateHandle(own, of, own, &copy, access, FALSE, 0), TRUE);
    return copy;
}

/* Waits for the end of a thread, closes its handle and returns its exit status. */
static inline DWORD end_of(HANDLE thread)
{
    DWORD code = 99;
    IS(WaitForSingleObject(thread, 60000), WAIT_OBJECT_0);
    GetExitCodeThread(thread, &code);
    CloseHandle(thread);
    return code;
}
