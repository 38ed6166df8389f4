/* SPDX-License-Identifier: MIT */
/* The kernel's own msvcrt.dll, each function by its address there: mingw-w64 has its own in the
 * program for many, which would be called instead. text.c and format.c compare with the host. */
#define __USE_MINGW_ANSI_STDIO 0
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <errno.h>
#include <immintrin.h>
#include <io.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <process.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>
#include "check.h"

static HMODULE library;

static void *find(const char *name)
{
    void *address = (void *)GetProcAddress(library, name);
    if (!address)
        printf("%s is not there\n", name);
    return address;
}
#define OWN(result, name, ...) ((result(__cdecl *)(__VA_ARGS__))find(#name))
#define TEXT_IS(expression, wanted) IS(strcmp(expression, wanted), 0)

static void memory(void)
{
    void *(*change)(void *, size_t) = find("realloc");
    char *block, *copy = OWN(char *, _strdup, const char *)("narrow");
    unsigned kept = 0;
    TEXT_IS(copy, "narrow");
    OWN(void, free, void *)(copy);
    errno = 0;
    IS(OWN(void *, malloc, size_t)(SIZE_MAX / 2) == NULL && errno == ENOMEM, 1);
    errno = 0;
    IS(OWN(void *, calloc, size_t, size_t)(SIZE_MAX / 8, 16) == NULL && errno == ENOMEM, 1);
    block = change(NULL, 10);
    strcpy(block, "kept");
    block = change(block, 100000);
    TEXT_IS(block, "kept");
    for (unsigned i = 0; i < 40; i++, block = change(NULL, 8 << 20)) /* more than there is */
        kept += !block || change(block, 0);
    IS(kept, 0);
}

static int by_byte(const void *a, const void *b) { return *(const char *)a - *(const char *)b; }

static void sorts(void)
{
    typedef int (*order)(const void *, const void *);
    void (*sort)(void *, size_t, size_t, order) = find("qsort");
    char text[] = "cab";
    for (unsigned i = 0; i < 3; i++) { /* each is wrong */
        errno = 0;
        sort(i == 0 ? NULL : text, 3, i != 1, i == 2 ? NULL : by_byte);
        IS(errno, EINVAL);
    }
    TEXT_IS(text, "cab");
}

static void numbers(void)
{
    char text[40], *end;
    errno = 0;
    IS(OWN(long, strtol, const char *, char **, int)("1", &end, 37) == 0 && errno == EINVAL, 1);
    TEXT_IS(OWN(char *, _ultoa, unsigned long, char *, int)(-1, text, 16), "ffffffff");
    TEXT_IS(OWN(char *, _ultoa, unsigned long, char *, int)(35, text, 36), "z");
    errno = 0;
    IS(OWN(char *, _ultoa, unsigned long, char *, int)(7, text, 1) == text && errno == EINVAL, 1);
    int (*random)(void) = find("rand");
    IS(random(), 41); /* Microsoft's, which begin as with 1 */
    OWN(void, srand, unsigned)(1);
    IS(random() == 41 && random() == 18467, 1);
    unsigned one = 0, two = 0, three = 0;
    errno_t (*any)(unsigned *) = find("rand_s");
    IS(any(&one) || any(&two) || any(&three) || (one == two && two == three), 0);
    IS(any(NULL), EINVAL);
    double (*scale)(double, int) = find("ldexp");
    IS(scale(0.75, 5) == 24 && scale(-3, -1074) == -3 * 4.9406564584124654e-324, 1);
    IS(isinf(scale(1, 1024)) && scale(0x1p-1022, 2045) == 0x1p1023, 1);
}

static void strings(void)
{
    TEXT_IS(OWN(struct lconv *, localeconv, void)()->decimal_point, ".");
    IS(OWN(unsigned, ___lc_codepage_func, void)(), CP_UTF8);
    IS(OWN(int, ___mb_cur_max_func, void)(), 4);
    TEXT_IS(OWN(char *, strerror, int)(ENOENT), "error 2");
    IS(OWN(size_t, strnlen, const char *, size_t)("abc", 2), 2);
    wchar_t wide[] = L"abcd";
    IS(OWN(int, _wcsnicmp, const wchar_t *, const wchar_t *, size_t)(wide, L"ABCE", 3), 0);
    IS(OWN(wchar_t *, wcsrchr, const wchar_t *, wchar_t)(wide, 'c') - wide, 2);
}

/* Calls the library's function of this name, which takes a list of arguments. */
#define WITH_LIST(function, arguments, ...)                                                        \
    static int function(const char *name, __VA_ARGS__, const char *format, ...)                    \
    {                                                                                              \
        va_list list;                                                                              \
        va_start(list, format);                                                                    \
        int n = arguments;                                                                         \
        va_end(list);                                                                              \
        return n;                                                                                  \
    }
#define LISTED(...) ((int(__cdecl *)(__VA_ARGS__, va_list))find(name))
WITH_LIST(to_stream, LISTED(FILE *, const char *)(to, format, list), FILE *to)
WITH_LIST(to_output, LISTED(const char *)(format, list), int unused)
WITH_LIST(to_text, LISTED(char *, const char *)(to, format, list), char *to)
WITH_LIST(to_sized, LISTED(char *, size_t, const char *)(to, size, format, list), char *to,
          size_t size)

static void output(void)
{
    FILE *streams = OWN(FILE *, __iob_func, void)(), *out = streams + 1;
    size_t (*write)(const void *, size_t, size_t, FILE *) = find("fwrite");
    char text[24], pointers[40], much[1300];
    int (*print)(char *, size_t, const char *, ...) = find("_snprintf");
    memset(text, '#', sizeof text);
    IS(print(text, 4, "%d", 12345), -1);
    IS(memcmp(text, "1234#", 5), 0); /* and no NUL */
    IS(print(text, 5, "%d", 54321), 5);
    IS(memcmp(text, "54321#", 6), 0);
    IS(print(text, 6, "%d", 12345), 5);
    TEXT_IS(text, "12345");
    IS(print(pointers, 40, "%p|%.3s|%%", (void *)0xabc, "longer"), 22);
    TEXT_IS(pointers, "0000000000000ABC|lon|%");
    IS(print(text, 24, "%ws %S %lc", L"\x20ac", L"b", 0xe9), 8);
    TEXT_IS(text, "\xe2\x82\xac b \xc3\xa9");
    IS(print(much, sizeof much, "%*d", 1200, 7), 1200); /* more than the library has at hand */
    IS(to_stream("vfprintf", out, "%c|%5d|", 'v', 42), 8);
    IS(to_output("vprintf", 0, "%d|", 1), 2);
    IS(to_output("_vscprintf", 0, "%d|", 12345), 6);
    IS(to_text("vsprintf", text, "%d-%d", 3, 4), 3);
    TEXT_IS(text, "3-4");
    IS(to_sized("_vsnprintf", text, 24, "%.2f", 1.5), 4);
    TEXT_IS(text, "1.50");
    IS(OWN(int, fputc, int, FILE *)('p', out), 'p');
    IS(OWN(int, putc, int, FILE *)('q', out), 'q');
    IS(OWN(int, puts, const char *)("|"), 0);
    IS(write("ab", 1, 2, out) + write("\n", 1, 1, out), 3);
    IS(OWN(int, fflush, FILE *)(NULL) | OWN(int, fflush, FILE *)(out), 0);
    IS(OWN(int, setvbuf, FILE *, char *, int, size_t)(out, NULL, _IOFBF, 0), 0);
    errno = 0;
    IS(OWN(int, fputs, const char *, FILE *)("no", streams) == EOF && errno == EBADF, 1);
    IS(write("a", SIZE_MAX, 2, out) == 0 && errno == EINVAL, 1);
    const HANDLE error = GetStdHandle(STD_ERROR_HANDLE);
    IS(SetStdHandle(STD_ERROR_HANDLE, NULL), TRUE);
    IS(OWN(int, fputs, const char *, FILE *)("unseen", streams + 2), EOF);
    IS(SetStdHandle(STD_ERROR_HANDLE, error), TRUE);
    IS(OWN(int, _fileno, FILE *)(streams + 2), 2);
    IS(OWN(int, _fileno, FILE *)(streams + 3), -1);
    IS(OWN(int, _setmode, int, int)(1, 0x8000), 0x4000); /* from text to binary */
    IS(OWN(int, _setmode, int, int)(9, 0x8000), -1);
    IS(OWN(int, _read, int, void *, unsigned)(0, text, 1), 0);
    IS(OWN(int, _read, int, void *, unsigned)(1, text, 1) & OWN(int, _close, int)(3), -1);
}

static volatile LONG begun;

static unsigned __stdcall begin(void *argument)
{
    begun += *(int *)argument;
    IS(*OWN(int *, _errno, void)(), 0); /* its own */
    OWN(void, _endthreadex, unsigned)(5);
    return 6;
}

static void process(void)
{
    int number = 3;
    errno = EINVAL;
    uintptr_t (*make)(void *, unsigned, unsigned(__stdcall *)(void *), void *, unsigned,
                      unsigned *) = find("_beginthreadex");
    IS(end_of((HANDLE)make(NULL, 0, begin, &number, 0, NULL)), 5);
    IS(begun == 3 && errno == EINVAL && !make(NULL, 0, NULL, NULL, 0, NULL), 1);
    IS(*OWN(int *, _errno, void)(), errno);
    IS(strstr(*(char **)find("_acmdln"), "crt") && wcsstr(*(wchar_t **)find("_wcmdln"), L"crt"), 1);
    int (*arguments)(int *, wchar_t ***, wchar_t ***, int, void *) = find("__wgetmainargs");
    wchar_t **words, **variables;
    IS(arguments(&number, &words, &variables, 0, NULL) || number != 1 || !*variables, 0);
    IS(wcsstr(words[0], L"crt.exe") && !words[1], 1);
    IS(*(wchar_t ***)find("__winitenv") == variables && *(char ***)find("__initenv"), 1);
    TEXT_IS(OWN(char *, getenv, const char *)("SYSTEMROOT"), "C:\\Windows");
    IS(OWN(char *, getenv, const char *)("SYSTEM") == NULL, 1); /* begins two names */
    IS(*(int *)find("_fmode") | *(int *)find("_commode"), 0);
    __time64_t now = OWN(__time64_t, _time64, __time64_t *)(NULL);
    IS(now / 86400 == 18262 && OWN(__time64_t, time, __time64_t *)(&now) == now, 1); /* 2020 */
    IS(OWN(clock_t, clock, void)() > 0, 1);
    _mm_setcsr(0x7f80); /* rounds toward zero */
    OWN(void, _fpreset, void)();
    IS(_mm_getcsr(), 0x1f80);
}

static int noted;
static void note_signal(int number) { noted = number; }

/* abort calls this handler; without it, it would end the program with 3. */
static void aborted(int number)
{
    IS(number, SIGABRT);
    exit(check_result());
}

int main(void)
{
    library = GetModuleHandleA("msvcrt.dll");
    memory();
    sorts();
    numbers();
    strings();
    output();
    process();
    signal(SIGTERM, SIG_IGN);
    IS(OWN(int, raise, int)(SIGTERM), 0);
    signal(SIGTERM, note_signal);
    IS(OWN(int, raise, int)(SIGTERM), 0);
    IS(noted, SIGTERM);
    IS(signal(SIGTERM, SIG_IGN) == SIG_DFL, 1); /* a handler is called once */
    IS(signal(99, note_signal) == SIG_ERR && errno == EINVAL, 1);
    signal(SIGABRT, aborted);
    OWN(void, _assert, const char *, const char *, unsigned)("holds", "crt.c", 7);
    return 1;
}
