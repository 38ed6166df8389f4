/* SPDX-License-Identifier: MIT */
/* Functions of msvcrt.dll: of numbers, text, times, files, and its data. */
#include "crt.h"

static void numbers(void)
{
    wchar_t *end;
    char text[40];
    IS(OWN(long long, _atoi64, const char *)(" -9223372036854775808x"), LLONG_MIN);
    IS(OWN(int, _wtoi, const wchar_t *)(L"\t+17"), 17);
    IS(OWN(long, _wtol, const wchar_t *)(L"99999999999"), LONG_MAX);
    IS(OWN(long long, _wtoi64, const wchar_t *)(L"99999999999"), 99999999999);
    IS(OWN(double, _wtof, const wchar_t *)(L"1.5e1"), 15);
    IS(OWN(double, wcstod, const wchar_t *, wchar_t **)(L"0.25 s", &end) == 0.25 && *end == ' ', 1);
    IS(OWN(unsigned long, wcstoul, const wchar_t *, wchar_t **, int)(L"-0x10!", &end, 0),
       0xfffffff0u);
    IS(*end, '!');
    TEXT_IS(OWN(char *, _ltoa, long, char *, int)(-255, text, 10), "-255");
    TEXT_IS(OWN(char *, _ltoa, long, char *, int)(-1, text, 16), "ffffffff");
}

static void strings(void)
{
    char text[24] = "Some Text", *copy;
    wchar_t wide[24], *wide_copy;
    TEXT_IS(OWN(char *, _strlwr, char *)(text), "some text");
    TEXT_IS(OWN(char *, _strupr, char *)(text), "SOME TEXT");
    TEXT_IS(OWN(char *, _strrev, char *)(text), "TXET EMOS");
    IS(OWN(int, _wcsnicmp, const wchar_t *, const wchar_t *, size_t)(L"ABCx", L"abcy", 3), 0);
    IS(OWN(int, _wcsnicmp, const wchar_t *, const wchar_t *, size_t)(L"ABCx", L"abcy", 4) < 0, 1);
    wide_copy = OWN(wchar_t *, _wcsdup, const wchar_t *)(L"wide");
    WIDE_IS(wide_copy, L"wide");
    OWN(void, free, void *)(wide_copy);
    copy = OWN(char *, _strdup, const char *)("narrow");
    IS(OWN(size_t, _msize, void *)(copy) >= 7, 1);
    OWN(void, free, void *)(copy);
    IS(OWN(size_t, wcsxfrm, wchar_t *, const wchar_t *, size_t)(wide, L"text", 24), 4);
    WIDE_IS(wide, L"text");
    wcscpy(wide, L",a,,b");
    wchar_t *(*token)(wchar_t *, const wchar_t *) = find("wcstok");
    WIDE_IS(token(wide, L","), L"a");
    WIDE_IS(token(NULL, L","), L"b");
    IS(token(NULL, L",") == NULL, 1);
    IS(OWN(size_t, wcrtomb, char *, wchar_t, mbstate_t *)(text, 0x20ac, NULL), 3);
    IS(memcmp(text, "\xe2\x82\xac", 3), 0);
    IS(OWN(int, wctomb, char *, wchar_t)(text, 0xe9), 2);
    size_t (*to_wide)(wchar_t *, const char *, size_t, mbstate_t *) = find("mbrtowc");
    IS(to_wide(wide, "\xc3\xa9", 2, NULL), 2);
    IS(wide[0], 0xe9);
    IS(to_wide(wide, "\xc3", 1, NULL), -2);
    IS(to_wide(wide, "\xff", 1, NULL), -1);
    IS(errno, EILSEQ);
    IS(to_wide(wide, "\xc1", 1, NULL) + to_wide(wide, "\xf5", 1, NULL), -2);
    IS(to_wide(wide, "\xc2", 1, NULL), -2); /* the first and the last byte that begin */
    IS(to_wide(wide, "\xf4", 1, NULL), -2);
    IS(to_wide(wide, "", 1, NULL), 0);
    IS(OWN(size_t, mbrlen, const char *, size_t, mbstate_t *)("\xe2\x82\xac", 3, NULL), 3);
    IS(OWN(int, _isctype, int, int)('g', _ALPHA) && !OWN(int, _isctype, int, int)('g', _HEX), 1);
    IS(OWN(int, iswctype, wint_t, wctype_t)('7', _DIGIT) &&
           !OWN(int, is_wctype, wint_t, wctype_t)('x', _DIGIT),
       1);
    IS(OWN(int, iswascii, wint_t)(0x7f) && !OWN(int, iswascii, wint_t)(0x80), 1);
    IS(OWN(int, __isascii, int)(0x7f) && !OWN(int, __isascii, int)(0x80), 1);
    IS(OWN(int, __toascii, int)(0xc1), 'A');
    TEXT_IS(OWN(char *, setlocale, int, const char *)(LC_ALL, NULL), "C");
    IS(OWN(char *, setlocale, int, const char *)(LC_ALL, "German") == NULL, 1);
    IS(OWN(char *, setlocale, int, const char *)(LC_MAX + 1, "C") == NULL, 1);
    TEXT_IS(OWN(struct lconv *, localeconv, void)()->decimal_point, ".");
    IS(OWN(unsigned, ___lc_codepage_func, void)(), CP_UTF8);
    IS(OWN(int, ___mb_cur_max_func, void)(), 4);
    TEXT_IS(OWN(char *, strerror, int)(ENOENT), "No such file or directory");
    TEXT_IS(OWN(char *, strerror, int)(9999), "Unknown error");
}

static void times(void)
{
    const __time64_t leap = 951868799, last = 32535215999, beyond = last + 1, before = -1;
    struct tm *utc = OWN(struct tm *, _gmtime64, const __time64_t *)(&leap), tm = { 0 };
    IS(utc->tm_year == 100 && utc->tm_mon == 1 && utc->tm_mday == 29, 1); /* 29 February 2000 */
    IS(utc->tm_hour == 23 && utc->tm_min == 59 && utc->tm_sec == 59, 1);
    IS(utc->tm_wday == 2 && utc->tm_yday == 59 && !utc->tm_isdst, 1);
    IS(OWN(__time64_t, _mktime64, struct tm *)(utc), leap);
    IS(OWN(__time64_t, _mkgmtime64, struct tm *)(utc), leap);
    IS(OWN(struct tm *, _gmtime64, const __time64_t *)(&beyond) == NULL && errno == EINVAL, 1);
    IS(OWN(struct tm *, _gmtime64, const __time64_t *)(&before) == NULL, 1);
    errno_t (*safe)(struct tm *, const __time64_t *) = find("_gmtime64_s");
    IS(safe(&tm, &last), 0);
    IS(tm.tm_year == 1100 && tm.tm_mon == 11 && tm.tm_mday == 31 && tm.tm_yday == 364, 1);
    IS(safe(&tm, &beyond), EINVAL);
    IS(tm.tm_year == -1 && tm.tm_sec == -1, 1);
    IS(OWN(errno_t, _localtime64_s, struct tm *, const __time64_t *)(&tm, &leap), 0);
    IS(tm.tm_mday, 29);
    __time32_t short_leap = (__time32_t)leap;
    IS(OWN(struct tm *, _gmtime32, const __time32_t *)(&short_leap)->tm_mday, 29);
    IS(OWN(struct tm *, _localtime32, const __time32_t *)(&short_leap)->tm_mday, 29);
    IS(OWN(struct tm *, _localtime64, const __time64_t *)(&leap)->tm_mday, 29);
    TEXT_IS(OWN(char *, _ctime64, const __time64_t *)(&leap), "Tue Feb 29 23:59:59 2000\n");
    tm = (struct tm){ .tm_year = 100, .tm_mon = 14, .tm_mday = -1 }; /* 27 February 2001 */
    IS(OWN(__time64_t, _mktime64, struct tm *)(&tm), 983232000);
    IS(tm.tm_year == 101 && tm.tm_mon == 1 && tm.tm_mday == 27, 1);
    tm = (struct tm){ .tm_year = 69, .tm_mon = 11, .tm_mday = 31 };
    IS(OWN(__time64_t, _mktime64, struct tm *)(&tm), -1);
    tm = (struct tm){ .tm_year = 1101, .tm_mday = 1 };
    IS(OWN(__time64_t, _mktime64, struct tm *)(&tm), -1); /* the year 3001 */
    IS(OWN(double, _difftime64, __time64_t, __time64_t)(leap, leap - 3), 3);
    __time64_t now = OWN(__time64_t, _time64, __time64_t *)(NULL);
    IS(OWN(__time32_t, _time32, __time32_t *)(&short_leap) - now <= 1 && short_leap >= now, 1);
    struct __timeb64 parts;
    OWN(void, _ftime64, struct __timeb64 *)(&parts);
    IS(parts.time - now <= 1 && parts.millitm < 1000 && !parts.timezone, 1);
}

/* Files by number and by stream: there are the three that every program has. */
static void files(void)
{
    struct _stat64 stat;
    FILE *streams = OWN(FILE *, __iob_func, void)(), *output = streams + 1;
    fpos_t position = 0;
    char text[8];
    errno = 0;
    IS(OWN(int, _write, int, const void *, unsigned)(1, "by number\n", 10), 10);
    IS(OWN(int, _write, int, const void *, unsigned)(0, "x", 1) == -1 && errno == EBADF, 1);
    IS(OWN(int, _read, int, void *, unsigned)(0, text, 1), 0);
    IS(OWN(int, _read, int, void *, unsigned)(1, text, 1), -1);
    IS(OWN(int, _isatty, int)(2) && !OWN(int, _isatty, int)(3), 1);
    IS(OWN(int, _close, int)(3), -1);
    IS(OWN(int, _commit, int)(1) | OWN(int, _commit, int)(-1), -1);
    IS(OWN(int, _setmode, int, int)(1, 0x8000), 0x4000); /* from text to binary */
    IS(OWN(int, _setmode, int, int)(9, 0x8000), -1);
    IS(OWN(int, _dup, int)(1) == -1 && errno == EMFILE, 1);
    IS(OWN(int, _dup, int)(5) == -1 && errno == EBADF, 1);
    IS(OWN(int, _dup2, int, int)(1, 2) == -1 && errno == EMFILE, 1);
    IS(OWN(int, _dup2, int, int)(7, 2) == -1 && errno == EBADF, 1);
    IS(OWN(int, _open, const char *, int, ...)("x", 0) == -1 && errno == ENOENT, 1);
    IS(OWN(int, _wopen, const wchar_t *, int, ...)(L"x", 0), -1);
    IS(OWN(int, _access, const char *, int)("x", 0) & OWN(int, _unlink, const char *)("x"), -1);
    IS(OWN(long, _lseek, int, long, int)(1, 0, 0) == -1 && errno == ESPIPE, 1);
    IS(OWN(long long, _lseeki64, int, long long, int)(4, 0, 0) == -1 && errno == EBADF, 1);
    IS(OWN(long long, _telli64, int)(1), -1);
    IS(OWN(long, _filelength, int)(1), 0);
    IS(OWN(long long, _filelengthi64, int)(8), -1);
    IS(OWN(int, _fstat64, int, struct _stat64 *)(0, &stat), 0);
    IS(stat.st_mode & _S_IFMT, _S_IFCHR);
    IS(OWN(int, _fstat64, int, struct _stat64 *)(3, &stat) == -1 && errno == EBADF, 1);
    IS(OWN(int, _stat64, const char *, struct _stat64 *)("x", &stat) == -1 && errno == ENOENT, 1);
    IS(OWN(intptr_t, _get_osfhandle, int)(1), (intptr_t)GetStdHandle(STD_OUTPUT_HANDLE));
    IS(OWN(intptr_t, _get_osfhandle, int)(3), -1);
    IS(OWN(int, _fileno, FILE *)(output), 1);
    IS(OWN(FILE *, _fdopen, int, const char *)(1, "w") == output, 1);
    IS(OWN(FILE *, _fdopen, int, const char *)(3, "w") == NULL, 1);
    IS(OWN(FILE *, _wfopen, const wchar_t *, const wchar_t *)(L"x", L"w") == NULL, 1);
    IS(errno, EACCES);
    IS(OWN(FILE *, freopen, const char *, const char *, FILE *)("x", "r", output) == NULL, 1);
    IS(errno, ENOENT);
    IS(OWN(FILE *, tmpfile, void)() == NULL, 1);
    IS(OWN(int, rename, const char *, const char *)("a", "b"), -1);
    IS(OWN(int, remove, const char *)("x"), -1);
    IS(OWN(int, fseek, FILE *, long, int)(output, 0, 0) & OWN(long, ftell, FILE *)(output), -1);
    IS(errno, ESPIPE);
    OWN(void, rewind, FILE *)(streams);
    OWN(void, setbuf, FILE *, char *)(output, NULL);
    IS(OWN(int, _fcloseall, void)(), 0);
    IS(OWN(int, _fseeki64, FILE *, long long, int)(output, 0, 0), -1);
    IS(OWN(long long, _ftelli64, FILE *)(output), -1);
    IS(OWN(int, fgetpos, FILE *, fpos_t *)(output, &position) &
           OWN(int, fsetpos, FILE *, const fpos_t *)(output, &position),
       -1);
    IS(OWN(int, getchar, void)() & OWN(int, getc, FILE *)(streams), EOF);
    IS(OWN(wint_t, ungetwc, wint_t, FILE *)(0x20ac, streams), 0x20ac);
    IS(OWN(wint_t, fgetwc, FILE *)(streams), 0x20ac);
    IS(OWN(wint_t, getwc, FILE *)(streams), WEOF);
    IS(OWN(wint_t, ungetwc, wint_t, FILE *)(WEOF, streams), WEOF); /* takes no place */
    IS(OWN(wint_t, ungetwc, wint_t, FILE *)(0x20ac, streams), 0x20ac);
    IS(OWN(int, fgetc, FILE *)(streams), 0xac); /* its low byte */
}

/* Calls the library's function of this name, which takes a list of arguments. */
#define WITH_LIST(function, type, arguments, ...)                                                  \
    static int function(const char *name, __VA_ARGS__, const type *format, ...)                    \
    {                                                                                              \
        va_list list;                                                                              \
        va_start(list, format);                                                                    \
        int n = arguments;                                                                         \
        va_end(list);                                                                              \
        return n;                                                                                  \
    }
#define LISTED(...) ((int(__cdecl *)(__VA_ARGS__, va_list))find(name))
WITH_LIST(to_stream, char, LISTED(FILE *, const char *)(to, format, list), FILE *to)
WITH_LIST(to_stream_wide, wchar_t, LISTED(FILE *, const wchar_t *)(to, format, list), FILE *to)
WITH_LIST(to_output, char, LISTED(const char *)(format, list), int unused)
WITH_LIST(to_output_wide, wchar_t, LISTED(const wchar_t *)(format, list), int unused)
WITH_LIST(to_text, char, LISTED(char *, const char *)(to, format, list), char *to)
WITH_LIST(to_text_wide, wchar_t, LISTED(wchar_t *, const wchar_t *)(to, format, list), wchar_t *to)
WITH_LIST(to_sized, char, LISTED(char *, size_t, const char *)(to, size, format, list), char *to,
          size_t size)
WITH_LIST(to_sized_wide, wchar_t,
          LISTED(wchar_t *, size_t, const wchar_t *)(to, size, format, list), wchar_t *to,
          size_t size)

static void output(void)
{
    FILE *out = OWN(FILE *, __iob_func, void)() + 1;
    char text[24];
    wchar_t wide[24];
    IS(OWN(int, _scprintf, const char *, ...)("%d-%s", 12, "ab"), 5);
    IS(OWN(int, _scwprintf, const wchar_t *, ...)(L"%d-%s", 12, L"abc"), 6);
    IS(OWN(int, fprintf_s, FILE *, const char *, ...)(out, "%05d|", 42), 6);
    IS(OWN(int, printf_s, const char *, ...)("%-4x|", 0xab), 5);
    IS(OWN(int, fwprintf, FILE *, const wchar_t *, ...)(out, L"%s|", L"wide"), 5);
    IS(to_stream("vfprintf", out, "%c|", 'v'), 2);
    IS(to_stream("vfprintf_s", out, "%3d|", 7), 4);
    IS(to_stream_wide("vfwprintf", out, L"%hs|", "narrow"), 7);
    IS(to_stream("vfprintf", out, "%%|"), 2);
    IS(to_output("vprintf", 0, "%d|", 1), 2);
    IS(to_output_wide("vwprintf", 0, L"%d|", 2), 2);
    IS(to_sized("vsprintf_s", text, 3, "%d", 12), 2);
    IS(OWN(int, fputc, int, FILE *)('p', out), 'p');
    IS(OWN(int, putc, int, FILE *)('q', out), 'q');
    IS(OWN(wint_t, fputwc, wchar_t, FILE *)(0xe9, out), 0xe9);
    IS(OWN(wint_t, putwc, wchar_t, FILE *)('w', out), 'w');
    IS(OWN(wint_t, putwchar, wchar_t)('\n'), '\n');
    IS(OWN(int, fputws, const wchar_t *, FILE *)(L"a line", out) >= 0, 1);
    IS(OWN(int, _putws, const wchar_t *)(L" by wide characters") >= 0, 1);
    IS(to_sized("vsprintf_s", text, sizeof text, "%u %s", 7u, "x"), 3);
    TEXT_IS(text, "7 x");
    IS(OWN(int, sprintf_s, char *, size_t, const char *, ...)(text, 24, "%03o", 8), 3);
    TEXT_IS(text, "010");
    IS(to_text("vsprintf", text, "%d-%d", 3, 4), 3);
    TEXT_IS(text, "3-4");
    IS(to_text_wide("vswprintf", wide, L"%d=", 6), 2); /* without a size, in msvcrt */
    WIDE_IS(wide, L"6=");
    IS(to_sized_wide("_vsnwprintf", wide, 24, L"%d!", 5), 2);
    WIDE_IS(wide, L"5!");
    IS(to_sized_wide("_vsnwprintf", wide, 3, L"%d", 12345), -1); /* it does not fit */
    IS(OWN(int, _snwprintf, wchar_t *, size_t, const wchar_t *, ...)(wide, 24, L"%.2f", 1.5), 4);
    WIDE_IS(wide, L"1.50");
}

/* What is written to stderr goes to the handle of the standard error. */
static void handles(void)
{
    const HANDLE was = GetStdHandle(STD_ERROR_HANDLE);
    FILE *err = stderr;
    IS(SetStdHandle(STD_ERROR_HANDLE, NULL), TRUE);
    fputs("unseen", err);
    IS(ferror(err) != 0, 1);
    IS(SetStdHandle(STD_ERROR_HANDLE, was), TRUE);
    clearerr(err);
}

static void process(void)
{
    char ***environment = find("_environ");
    IS(*OWN(int *, _errno, void)() == errno && *OWN(unsigned long *, __doserrno, void)() < 10000,
       1);
    IS(*(int *)find("__argc"), 1);
    TEXT_IS((*(char ***)find("__argv"))[0] + strlen((*(char ***)find("__argv"))[0]) - 7, "crt.exe");
    IS(*environment != NULL && *(wchar_t ***)find("__wargv") != NULL, 1);
    IS(strstr(*(char **)find("_acmdln"), "crt") && wcsstr(*(wchar_t **)find("_wcmdln"), L"crt"), 1);
    IS(OWN(wchar_t *, _wgetenv, const wchar_t *)(L"NOT_THERE") == NULL, 1);
    TEXT_IS(OWN(char *, getenv, const char *)("SYSTEMROOT"), "C:\\Windows");
    IS(OWN(char *, getenv, const char *)("SYSTEM") == NULL, 1); /* begins two names */
    IS(*(int *)find("_fmode") | *(int *)find("_commode"), 0);
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
    numbers();
    strings();
    times();
    files();
    output();
    handles();
    process();
    IS(OWN(int, fclose, FILE *)(OWN(FILE *, __iob_func, void)()), 0);
    IS(OWN(int, fclose, FILE *)(OWN(FILE *, __iob_func, void)()), EOF);
    signal(SIGTERM, SIG_IGN);
    IS(OWN(int, raise, int)(SIGTERM), 0);
    signal(SIGTERM, note_signal);
    IS(OWN(int, raise, int)(SIGTERM), 0);
    IS(noted, SIGTERM);
    IS(signal(SIGTERM, SIG_IGN) == SIG_DFL, 1); /* a handler is called once */
    signal(SIGABRT, aborted);
    OWN(void, abort, void)();
    return 1;
}
