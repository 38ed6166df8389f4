/* SPDX-License-Identifier: MIT */
/* Functions of ucrtbase.dll beside texts and numbers, with wrong parameters and right ones: as
 * ucrt_wrong.c. */
#include <windows.h>
#include <direct.h>
#include <io.h>
#include <locale.h>
#include <malloc.h>
#include <process.h>
#include <stdarg.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timeb.h>
#include <time.h>
#include <wchar.h>
#include "check_wrong.h"

/* --- Streams and files. --- */

static void streams(void)
{
    FILE *none = NULL, *opened = stdout;
    wchar_t wide[4];
    char text[4] = "abc";
    int n = 0;
    WRONG(fputc('a', none), EOF, EINVAL);
    WRONG(fputs("a", none), EOF, EINVAL);
    WRONG(fputs(NULL, stdout), EOF, EINVAL);
    WRONG(fputws(L"a", none), EOF, EINVAL);
    WRONG(fputws(NULL, stdout), EOF, EINVAL);
    WRONG(fwrite("a", 1, 1, none), 0, EINVAL);
    WRONG(fwrite(NULL, 1, 1, stdout), 0, EINVAL);
    WRONG(fwrite(text, SIZE_MAX / 2 + 1, 2, stdout), 0, EINVAL);
    RIGHT(fwrite(NULL, 0, 1, none), 0);
    WRONG(fgetc(none), EOF, EINVAL);
    WRONG(ungetc('a', none), EOF, EINVAL);
    WRONG(fgets(text, 4, none) == NULL, 1, EINVAL);
    WRONG(fgets(NULL, 4, stdin) == NULL, 1, EINVAL);
    WRONG(fgets(text, 0, stdin) == NULL, 1, EINVAL);
    IS(text[0], 'a');
    WRONG(fread(NULL, 1, 1, stdin), 0, EINVAL);
    WRONG(fread(text, 1, 1, none), 0, EINVAL);
    WRONG(fread(text, SIZE_MAX / 2 + 1, 2, stdin), 0, EINVAL);
    WRONG(fread_s(text, 4, 2, 3, stdin), 0, ERANGE);
    RIGHT(fread_s(text, 4, 2, 2, stdin), 0);
    WRONG(feof(none), 0, EINVAL);
    WRONG(ferror(none), 0, EINVAL);
    WRONG((clearerr(none), 0), 0, EINVAL);
    WRONG(clearerr_s(none), EINVAL, EINVAL);
    WRONG(_fileno(none), -1, EINVAL);
    WRONG(fclose(none), EOF, EINVAL);
    WRONG(fseek(none, 0, SEEK_SET), -1, EINVAL);
    CALL(ftell(stdout), -1, ESPIPE, 0);
    WRONG(setvbuf(none, NULL, _IONBF, 0), -1, EINVAL);
    WRONG(setvbuf(stdout, NULL, 99, 0), -1, EINVAL);
    WRONG(fopen_s(NULL, "a", "r"), EINVAL, EINVAL);
    WRONG(fopen_s(&opened, NULL, "r"), EINVAL, EINVAL);
    IS(opened == NULL, 1);
    WRONG(fprintf(none, "a"), -1, EINVAL);
    WRONG(fwprintf(none, L"a"), -1, EINVAL);
    WRONG(__stdio_common_vsprintf(0, text, 4, NULL, NULL, NULL), -1, EINVAL);
    WRONG(__stdio_common_vsprintf(2, NULL, 4, "a", NULL, NULL), -1, EINVAL);
    RIGHT(__stdio_common_vsprintf(2, NULL, 0, "ab", NULL, NULL), 2);
    WRONG(swprintf_s(wide, 4, L"%s", L"long"), -1, ERANGE);
    WRONG(__stdio_common_vsscanf(0, NULL, 1, "%d", NULL, (va_list)&n), EOF, EINVAL);
    WRONG(__stdio_common_vsscanf(0, "1", 1, NULL, NULL, (va_list)&n), EOF, EINVAL);
    WRONG(swscanf(NULL, L"%d", &n), EOF, EINVAL);
    WRONG(_write(9, "a", 1), -1, EBADF);
    WRONG(_write(1, NULL, 1), -1, EINVAL);
    WRONG(_read(-1, text, 1), -1, EBADF);
    WRONG(_close(3), -1, EBADF);
    WRONG(_isatty(3), 0, EBADF);
    WRONG(_dup(77), -1, EBADF);
    CALL(_dup(1), -1, EMFILE, 0);
    WRONG(_access(NULL, 0), -1, EINVAL);
    CALL(_access("a", 0), -1, ENOENT, 0);
    WRONG(_open(NULL, 0), -1, EINVAL);
    CALL(_open("a", 0), -1, ENOENT, 0);
    WRONG(_sopen_s(NULL, "a", 0, 0, 0), EINVAL, EINVAL);
    CALL(_sopen_s(&n, "a", 0, 0, 0), ENOENT, ENOENT, 0);
    IS(n, -1);
}

/* --- Memory, environment, time, settings. --- */

static void environment(void)
{
    size_t n = 9;
    char text[8] = "x", *copy = text;
    WRONG(_putenv_s("A=B", "c"), EINVAL, EINVAL);
    WRONG(_putenv_s(NULL, "c"), EINVAL, EINVAL);
    WRONG(_putenv_s("a", NULL), EINVAL, EINVAL);
    WRONG(_putenv(NULL), -1, EINVAL);
    CALL(_putenv("WITHOUT"), -1, EINVAL, 0);
    CALL(_putenv("=x"), -1, EINVAL, 0);
    RIGHT(_putenv("UCRT_WRONG=a=b"), 0);
    RIGHT(getenv_s(&n, text, 8, "UCRT_WRONG"), 0);
    IS(n == 4 && strcmp(text, "a=b") == 0, 1);
    CALL(getenv_s(&n, text, 3, "UCRT_WRONG"), ERANGE, ERANGE, 0);
    IS(n == 4 && text[0] == 0, 1);
    RIGHT(getenv_s(&n, NULL, 0, "UCRT_WRONG"), 0);
    IS(n, 4);
    RIGHT(getenv_s(&n, text, 8, "UCRT_NONE"), 0);
    IS(n, 0);
    WRONG(getenv_s(NULL, text, 8, "UCRT_WRONG"), EINVAL, EINVAL);
    WRONG(getenv_s(&n, NULL, 8, "UCRT_WRONG"), EINVAL, EINVAL);
    WRONG(getenv_s(&n, text, 8, NULL), EINVAL, EINVAL);
    WRONG(getenv(NULL) == NULL, 1, EINVAL);
    WRONG(_wgetenv(NULL) == NULL, 1, EINVAL);
    RIGHT(_dupenv_s(&copy, NULL, "UCRT_NONE"), 0);
    IS(copy == NULL, 1);
    WRONG(_dupenv_s(NULL, &n, "UCRT_WRONG"), EINVAL, EINVAL);
    WRONG(_dupenv_s(&copy, &n, NULL), EINVAL, EINVAL);
    CALL(_getcwd(text, 3) == NULL, 1, ERANGE, 0);
    WRONG(_getcwd(text, -1) == NULL, 1, EINVAL);
    WRONG(_getcwd(text, 0) == NULL, 1, EINVAL);
    RIGHT(strcmp(_getcwd(text, 4), "C:\\"), 0);
}

static void blocks(void)
{
    volatile size_t much = SIZE_MAX / 2;
    WRONG(_aligned_malloc(8, 3) == NULL, 1, EINVAL);
    CALL(_aligned_malloc(SIZE_MAX - 8, 16) == NULL, 1, ENOMEM, 0);
    CALL(_aligned_malloc(8, SIZE_MAX / 2 + 1) == NULL, 1, ENOMEM, 0);
    CALL(calloc(much, 3) == NULL, 1, ENOMEM, 0);
    CALL(_recalloc(NULL, much, 3) == NULL, 1, ENOMEM, 0);
    WRONG(_msize(NULL), -1, EINVAL);
    char *block = _recalloc(NULL, 3, 5);
    IS(_msize(block), 15);
    memset(block, 7, 15);
    block = _recalloc(block, 4, 5);
    IS(block[14] == 7 && block[15] == 0 && block[19] == 0, 1);
    free(block);
    WRONG(_beginthreadex(NULL, 0, NULL, NULL, 0, NULL), 0, EINVAL);
    WRONG(_beginthread(NULL, 0, NULL), -1, EINVAL);
}

static void times(void)
{
    struct tm tm = { .tm_mday = 1, .tm_year = 70, .tm_wday = 4 };
    __time64_t before = -1, late = 32535215999ll + 1, day = 86400;
    char text[32] = "x";
    const char *volatile no_format = NULL;
    long seconds = 1;
    RIGHT(asctime_s(text, 26, &tm), 0);
    IS(strcmp(text, "Thu Jan 01 00:00:00 1970\n"), 0);
    WRONG(asctime_s(text, 25, &tm), EINVAL, EINVAL);
    IS(text[0], 0);
    WRONG(asctime_s(NULL, 26, &tm), EINVAL, EINVAL);
    tm.tm_wday = -1;
    WRONG(asctime_s(text, 26, &tm), EINVAL, EINVAL);
    WRONG(strftime(text, 32, "<%A>", &tm), 2, EINVAL);
    RIGHT(strftime(text, 32, "%d", &tm), 2);
    tm.tm_mon = 12;
    WRONG(strftime(text, 32, "<%b>", &tm), 2, EINVAL);
    tm.tm_wday = 4;
    WRONG(asctime(&tm) == NULL, 1, EINVAL);
    WRONG(strftime(text, 32, no_format, &tm), 0, EINVAL);
    WRONG(strftime(text, 0, "%d", &tm), 0, EINVAL);
    CALL(strftime(text, 2, "%d", &tm), 0, ERANGE, 0);
    RIGHT(_ctime64_s(text, 26, &day), 0);
    IS(strcmp(text, "Fri Jan 02 00:00:00 1970\n"), 0);
    WRONG(_ctime64_s(text, 26, NULL), EINVAL, EINVAL);
    CALL(_ctime64_s(text, 26, &before), EINVAL, EINVAL, 0);
    WRONG(_gmtime64(NULL) == NULL, 1, EINVAL);
    CALL(_gmtime64(&before) == NULL, 1, EINVAL, 0);
    CALL(_gmtime64(&late) == NULL, 1, EINVAL, 0);
    late--;
    RIGHT(_gmtime64(&late)->tm_year, 1100);
    WRONG(_gmtime64_s(&tm, NULL), EINVAL, EINVAL);
    IS(tm.tm_sec == -1 && tm.tm_isdst == -1, 1);
    CALL(_gmtime64_s(&tm, &before), EINVAL, EINVAL, 0);
    WRONG(_mktime64(NULL), -1, EINVAL);
    WRONG(_get_timezone(NULL), EINVAL, EINVAL);
    RIGHT(_get_timezone(&seconds), 0);
    IS(seconds, 0);
    WRONG(_ftime64_s(NULL), EINVAL, EINVAL);
}

int _set_new_mode(int mode);

static void settings(void)
{
    int value = 9;
    unsigned long dos = 9;
    WRONG(_set_fmode(1), EINVAL, EINVAL);
    RIGHT(_set_fmode(0x8000), 0);
    RIGHT(_get_fmode(&value), 0);
    IS(value, 0x8000);
    WRONG(_get_fmode(NULL), EINVAL, EINVAL);
    RIGHT(_set_error_mode(2), 0);
    RIGHT(_set_error_mode(3), 2);
    RIGHT(_set_error_mode(0), 2);
    WRONG(_set_error_mode(4), -1, EINVAL);
    WRONG(_set_new_mode(2), -1, EINVAL);
    WRONG(_configthreadlocale(3), -1, EINVAL);
    RIGHT(_configthreadlocale(0), 2);
    _set_errno(33);
    IS(_get_errno(&value) == 0 && value == 33, 1);
    WRONG(_get_errno(NULL), EINVAL, EINVAL);
    _set_doserrno(44);
    IS(_get_doserrno(&dos) == 0 && dos == 44, 1);
}

/* --- What is right. --- */

size_t _aligned_msize(void *block, size_t alignment, size_t offset);

static void aligned(void)
{
    char *block = _aligned_malloc(100, 64), *whole = ((char **)block)[-1];
    IS(_aligned_msize(block, 64, 0), 172 - (block - whole));
    memset(block, 7, 100);
    block = _aligned_realloc(block, 10, 16);
    IS((uintptr_t)block % 16 == 0 && block[9] == 7, 1);
    IS(_aligned_realloc(block, 0, 16) == NULL, 1);
    block = _aligned_realloc(NULL, 8, 32);
    IS((uintptr_t)block % 32, 0);
    _aligned_free(block);
    IS(_heapchk(), _HEAPOK);
}

static void now(void)
{
    struct {
        __time64_t seconds;
        long ns;
    } t = { 0 };
    int (*get)(void *, int) = OWN(_timespec64_get, int, void *, int);
    for (int i = 0; i < 100 && t.ns < 10000000; i++, Sleep(20))
        IS(get(&t, 1), 1);
    IS(t.ns >= 10000000 && t.ns < 1000000000, 1);
    IS(_time64(NULL) - t.seconds >= 0 && _time64(NULL) - t.seconds < 60, 1);
    IS(get(&t, 2), 0);
}

static void locales(void)
{
    struct _stat64i32 stat;
    int (*fstat_of)(int, void *) = OWN(_fstat64i32, int, int, void *);
    IS(_create_locale(LC_ALL, "C") != NULL && _create_locale(LC_ALL, "de") == NULL, 1);
    IS(OWN(_wcreate_locale, void *, int, const wchar_t *)(LC_ALL, L"de") == NULL, 1);
    IS(wcscmp(_wsetlocale(LC_ALL, NULL), L"C") == 0 && _wsetlocale(LC_ALL, L"de") == NULL, 1);
    RIGHT(fstat_of(1, &stat), 0);
    IS(stat.st_mode & _S_IFMT, _S_IFCHR);
    WRONG(fstat_of(3, &stat), -1, EBADF);
    WRONG(fstat_of(1, NULL), -1, EINVAL);
}

static int sequence;
static int one(void) { return sequence = sequence * 10 + 1; }
static int two(void) { return sequence = sequence * 10 + 2; }
static int count(void) { return ++sequence; }

static void at_exit(void)
{
    void *table[3] = { 0 };
    int (*begin)(void *) = OWN(_initialize_onexit_table, int, void *);
    int (*add)(void *, int (*)(void)) = OWN(_register_onexit_function, int, void *, int (*)(void));
    int (*call)(void *) = OWN(_execute_onexit_table, int, void *);
    IS(begin(table) == 0 && begin(NULL) == -1 && add(NULL, one) == -1 && call(NULL) == -1, 1);
    IS(add(table, one) == 0 && add(table, one) == 0 && add(table, two) == 0, 1);
    IS(call(table), 0);
    IS(sequence, 211);
    sequence = 0;
    for (int i = 0; i < 200; i++)
        add(table, count);
    IS(call(table) == 0 && call(table) == 0 && sequence == 200, 1);
}

/* --- Handlers. --- */

static int own_calls;
static void on_wrong_here(const wchar_t *what, const wchar_t *function, const wchar_t *file,
                          unsigned line, uintptr_t reserved)
{
    (void)what, (void)function, (void)file, (void)line, (void)reserved;
    own_calls++;
}

static size_t asked;
static int on_no_memory(size_t size) { return (asked = size) == 5; }

static jmp_buf back;
static void jump(void) { longjmp(back, 1); }
static void on_signal(int number) { own_calls += number; }

typedef int new_handler(size_t);
static void handlers(void)
{
    void (*of_thread)(void *) = OWN(_set_thread_local_invalid_parameter_handler, void, void *);
    unsigned (*behavior)(unsigned, unsigned) =
        OWN(_set_abort_behavior, unsigned, unsigned, unsigned);
    of_thread(on_wrong_here);
    CALL(_get_errno(NULL), EINVAL, EINVAL, 0);
    IS(own_calls, 1);
    of_thread(NULL);
    WRONG(_get_errno(NULL), EINVAL, EINVAL);
    IS(OWN(_set_new_handler, new_handler *, new_handler *)(on_no_memory) == NULL, 1);
    IS(OWN(_callnewh, int, size_t)(5) == 1 && asked == 5 && OWN(_callnewh, int, size_t)(6) == 0, 1);
    IS(behavior(0, 1), 3);
    IS(behavior(1, 1), 2);
    IS(behavior(0, 0), 3);
    OWN(set_terminate, void *, void *)(jump);
    OWN(_set_purecall_handler, void *, void *)(jump);
    if (!setjmp(back))
        OWN(terminate, void, void)();
    if (!setjmp(back))
        OWN(_purecall, void, void)();
    EXCEPTION_POINTERS none = { 0 };
    int (*filter)(DWORD, EXCEPTION_POINTERS *) =
        OWN(_seh_filter_dll, int, DWORD, EXCEPTION_POINTERS *);
    signal(SIGSEGV, on_signal);
    IS(filter(0xc0000005, &none), EXCEPTION_CONTINUE_SEARCH);
    IS(filter(0xe06d7363, &none), EXCEPTION_CONTINUE_SEARCH);
    own_calls = 0;
    IS(raise(SIGSEGV) == 0 && own_calls == SIGSEGV, 1);
    IS(signal(SIGSEGV, SIG_IGN) == SIG_DFL, 1); /* a handler is called once */
    IS(OWN(_seh_filter_exe, int, DWORD, void *)(0xc0000005, &none), EXCEPTION_CONTINUE_EXECUTION);
    IS(raise(SIGSEGV), 0);
    signal(SIGSEGV, SIG_DFL);
}

/* Of vcruntime140.dll. */
struct type {
    const char *plain;
    char decorated[8];
};

static void vcruntime(void)
{
    struct {
        const char *what;
        bool owned;
    } from = { "why", true }, to;
    const struct type a = { "x", ".abc" }, b = { "y", ".abc" }, c = { "x", ".abd" };
    int (*compare)(const void *, const void *) =
        OWN(__std_type_info_compare, int, const void *, const void *);
    size_t (*hash)(const void *) = OWN(__std_type_info_hash, size_t, const void *);
    OWN(__std_exception_copy, void, const void *, void *)(&from, &to);
    IS(to.owned && to.what != from.what && strcmp(to.what, "why") == 0, 1);
    OWN(__std_exception_destroy, void, void *)(&to);
    IS(to.what == NULL && !to.owned, 1);
    from.owned = false;
    OWN(__std_exception_copy, void, const void *, void *)(&from, &to);
    IS(to.what == from.what && !to.owned, 1);
    IS(compare(&a, &a) == 0 && compare(&a, &b) == 0 && compare(&a, &c) < 0, 1);
    IS(hash(&a) == hash(&b) && hash(&a) != hash(&c), 1);
}

static void quick(void) { printf("%d checks, %d wrong\n", checks, failures); }

/* Ends the process, as the first argument says. */
static void end(const char *how)
{
    char text[2];
    _set_invalid_parameter_handler(NULL); /* mingw-w64's start sets one */
    if (strcmp(how, "cookie") == 0)
        OWN(__report_gsfailure, void, uintptr_t)(0);
    if (strcmp(how, "parameter") == 0)
        strcpy_s(text, 2, "long");
    if (strcmp(how, "quiet") == 0)
        _set_abort_behavior(0, _CALL_REPORTFAULT);
    abort();
}

int main(int argc, char **argv)
{
    if (argc > 1)
        end(argv[1]);
    _set_invalid_parameter_handler(on_wrong);
    streams();
    environment();
    blocks();
    times();
    settings();
    aligned();
    now();
    locales();
    at_exit();
    handlers();
    vcruntime();
    OWN(_crt_at_quick_exit, int, void *)(quick);
    OWN(quick_exit, void, int)(failures != 0);
}
