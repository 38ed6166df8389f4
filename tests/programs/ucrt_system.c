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
#include <stdlib.h>
#include <string.h>
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

/* Ends the process, as the first argument says. */
static void end(const char *how)
{
    void (*of_cookie)(uintptr_t) =
        (void *)GetProcAddress(GetModuleHandleA("ucrtbase.dll"), "__report_gsfailure");
    char text[2];
    _set_invalid_parameter_handler(NULL); /* mingw-w64's start sets one */
    if (strcmp(how, "cookie") == 0)
        of_cookie(0);
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
    printf("%d checks, %d wrong\n", checks, failures);
    return failures != 0;
}
