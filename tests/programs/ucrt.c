/* SPDX-License-Identifier: MIT */
/* A program for Windows' newer C library, ucrtbase.dll by its API sets: compiled with -D_UCRT and
 * linked with libucrt.a, as UCRT64 does it. */
#include <windows.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <process.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>
#include "check.h"

/* --- printf. --- */

static int cut(char *text, size_t room, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, room, format, args);
    va_end(args);
    return n;
}

static int cut_as_once(char *text, size_t room, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = _vsnprintf(text, room, format, args);
    va_end(args);
    return n;
}

static void printing(void)
{
    char text[80];
    wchar_t wide[80];
    IS(cut(text, sizeof text, "%d %5.2f %-4s|%S|%lld", -7, 2.5, "ab", L"wide", 1ll << 40), 32);
    IS(strcmp(text, "-7  2.50 ab  |wide|1099511627776"), 0);
    IS(cut(text, 4, "%s", "abcdef"), 6);
    IS(strcmp(text, "abc"), 0);
    IS(cut(NULL, 0, "%s", "abcdef"), 6);
    text[4] = 'x';
    IS(cut_as_once(text, 4, "%s", "abcdef"), -1);
    IS(memcmp(text, "abcdx", 5), 0);
    IS(cut_as_once(text, 4, "%s", "abcd"), 4);
    IS(sprintf(text, "%p %#x %e", (void *)0x12ab, 255u, 1.5), 34);
    IS(strcmp(text, "00000000000012AB 0xff 1.500000e+00"), 0);
    IS(_snprintf_s(text, 4, _TRUNCATE, "%s", "abcdef"), -1);
    IS(strcmp(text, "abc"), 0);
    IS(sprintf_s(text, sizeof text, "%I64d", 5ll), 1);
    IS(swprintf(wide, 80, L"%s %hs %d", L"wide", "narrow", 3), 13);
    IS(wcscmp(wide, L"wide narrow 3"), 0);
    IS(swprintf(wide, 80, L"%p.", (void *)0xfedc), 17);
    IS(wcscmp(wide, L"000000000000FEDC."), 0);
    IS(_vscprintf("12345", NULL), 5);
    printf("%s and %ls\n", "narrow", L"wide");
    wprintf(L"%s and %hs\n", L"wide", "narrow");
    puts("a line");
    fputs("standard error\n", stderr);
}

static void scanning(void)
{
    char word[4] = "", letter = 0;
    int n = 0, m = 0;
    double x = 0;
    float y = 0;
    IS(sscanf("12 0x1f 2.5 1e3", "%d %i %lf %f", &n, &m, &x, &y), 4);
    IS(n == 12 && m == 31 && x == 2.5 && y == 1e3f, 1);
    IS(sscanf_s("x ab]c 9", "%c %3[]ab] %*s %d", &letter, 1u, word, (unsigned)sizeof word, &n), 3);
    IS(letter == 'x' && n == 9 && strcmp(word, "ab]") == 0, 1);
    wchar_t wide[8] = L"";
    IS(swscanf(L"one 2", L"%7s %d", wide, &n), 2);
    IS(n == 2 && wcscmp(wide, L"one") == 0, 1);
}

/* --- Text and numbers. --- */

static void text(void)
{
    char room[8], line[] = "a,b;c", *rest;
    wchar_t wide[4] = L"abc", words[] = L"x y", *wide_rest;
    IS(strcpy_s(room, sizeof room, "1234567"), 0);
    IS(strcat_s(room, sizeof room, "8"), ERANGE);
    IS(room[0], 0);
    IS(strncpy_s(room, 4, "abcdef", _TRUNCATE), STRUNCATE);
    IS(strcmp(room, "abc"), 0);
    IS(strcmp(strtok_s(line, ",;", &rest), "a"), 0);
    IS(strcmp(strtok_s(NULL, ",;", &rest), "b"), 0);
    IS(strcmp(strtok_s(NULL, ",;", &rest), "c"), 0);
    IS(strtok_s(NULL, ",;", &rest) == NULL, 1);
    IS(wcscmp(wcstok_s(words, L" ", &wide_rest), L"x"), 0);
    IS(wcscmp(wcstok_s(NULL, L" ", &wide_rest), L"y"), 0);
    IS(wcscat_s(wide, 4, L"d"), ERANGE);
    IS(strtoull("ffffffffffffffff", NULL, 16) == ULLONG_MAX, 1);
    IS(strtof("0.1", NULL) == 0.1f, 1);
    IS(_itoa_s(-12, room, 3, 10), ERANGE);
    IS(_itoa_s(-12, room, 4, 10), 0);
    IS(strcmp(room, "-12"), 0);
    IS(isalpha('a') && !isalpha('1') && isxdigit('F') && isspace('\v'), 1);
    IS(memcpy_s(room, 2, "abc", 3), ERANGE);
    IS(_byteswap_ulong(0x01020304) == 0x04030201, 1);
    IS(_rotl(0x80000001, 4), 0x18);
}

static void numbers(void)
{
    IS(round(2.5) == 3 && trunc(-2.5) == -2 && cbrt(27) == 3 && log2(8) == 3, 1);
    IS(fma(2, 3, 4) == 10 && hypot(3, 4) == 5 && lround(-1.5) == -2, 1);
    IS(nextafter(1, 2) - 1 == DBL_EPSILON && nextafter(0, -1) < 0, 1);
    IS(fabs(tgamma(5) - 24) < 1e-12 && fabs(erf(1) - 0.8427007929497149) < 1e-15, 1);
    IS(fmod(7, 4) == 3 && pow(2, 10) == 1024 && sqrt(2) * sqrt(2) - 2 < 1e-15, 1);
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
    scanning();
    text();
    numbers();
    process();
    library();
    atexit(first);
    atexit(last);
    printf("%d checks, %d wrong\n", checks, failures);
    return failures != 0;
}
