/* SPDX-License-Identifier: MIT */
/* A program for Windows' newer C library, ucrtbase.dll by its API sets: compiled with -D_UCRT and
 * linked with libucrt.a, as UCRT64 does it. */
#include <windows.h>
#include <errno.h>
#include <process.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>
#include "check.h"

/* --- Output: what it prints is the library's own matter, where it goes is kernel32's. --- */

static void printing(void)
{
    char text[40];
    IS(sprintf_s(text, sizeof text, "%5.2f %S|%lld", 2.5, L"wide", 1ll << 40), 24);
    IS(strcmp(text, " 2.50 wide|1099511627776"), 0);
    printf("%s and %ls\n", "narrow", L"wide");
    wprintf(L"%s and %hs\n", L"wide", "narrow");
    puts("a line");
    fputs("standard error\n", stderr);
}

/* --- The process. --- */

static int wrong_parameters;

static void on_wrong(const wchar_t *what, const wchar_t *function, const wchar_t *file,
                     unsigned line, uintptr_t reserved)
{
    (void)what, (void)function, (void)file, (void)line, (void)reserved;
    wrong_parameters++;
}

static int descending(void *context, const void *a, const void *b)
{
    ++*(int *)context;
    return *(const int *)b - *(const int *)a;
}

static unsigned __stdcall other(void *argument)
{
    errno = 77;
    *(int *)argument = errno;
    return 5;
}

static void process(void)
{
    char *value = NULL, room[4];
    size_t count = 0;
    int numbers[] = { 3, 1, 4, 1, 5 }, compared = 0, error = 0;
    IS(_putenv_s("UCRT_TEST", "here"), 0);
    IS(strcmp(getenv("ucrt_test"), "here"), 0);
    IS(_dupenv_s(&value, &count, "UCRT_TEST"), 0);
    IS(count == 5 && strcmp(value, "here") == 0, 1);
    free(value);
    IS(_putenv("UCRT_TEST="), 0);
    IS(getenv("UCRT_TEST") == NULL, 1);
    qsort_s(numbers, 5, sizeof *numbers, descending, &compared);
    IS(numbers[0] == 5 && numbers[1] == 4 && numbers[4] == 1 && compared > 4, 1);
    errno = 3;
    HANDLE thread = (HANDLE)_beginthreadex(NULL, 0, other, &error, 0, NULL);
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
    IS(error == 77 && errno == 3, 1);
    _set_invalid_parameter_handler(on_wrong);
    IS(strcpy_s(room, sizeof room, "long"), ERANGE);
    IS(wrong_parameters == 1 && room[0] == 0, 1);
    void *block = _aligned_malloc(100, 64);
    IS((uintptr_t)block % 64, 0);
    memset(block, 7, 100);
    block = _aligned_realloc(block, 200, 64);
    IS((uintptr_t)block % 64 == 0 && ((char *)block)[99] == 7, 1);
    _aligned_free(block);
    time_t day = 86400;
    struct tm tm;
    IS(gmtime_s(&tm, &day) == 0 && tm.tm_mday == 2 && tm.tm_year == 70, 1);
    IS(time(NULL) > 1000000000, 1);
    errno_t none = fopen_s((FILE **)&value, "none", "r");
    IS(none == ENOENT && value == NULL, 1);
}

/* --- Which library this is. --- */

static void library(void)
{
    HMODULE ucrt = GetModuleHandleA("ucrtbase.dll");
    IS(ucrt != NULL, 1);
    IS(GetModuleHandleA("api-ms-win-crt-runtime-l1-1-0.dll") == ucrt, 1);
    IS(GetModuleHandleA("msvcrt.dll") == NULL, 1);
    IS(LoadLibraryA("api-ms-win-core-synch-l1-2-0") == GetModuleHandleA("kernel32"), 1);
    IS(LoadLibraryA("api-ms-win-crt") == NULL, 1);
    IS(LoadLibraryA("VCRUNTIME140.dll.x") == NULL, 1);
}

static void first(void) { puts("first, at the end"); }
static void last(void) { puts("last, before the end"); }

int main(int argc, char **argv)
{
    IS(argc, 3);
    IS(strcmp(argv[1], "a b"), 0);
    IS(strcmp(argv[2], "c"), 0);
    printing();
    process();
    library();
    atexit(first);
    atexit(last);
    printf("%d checks, %d wrong\n", checks, failures);
    return failures != 0;
}
