/* SPDX-License-Identifier: MIT */
/* Functions of msvcrt.dll: of memory, of text that has a size, of threads and input. */
#include "crt.h"

static void memory(void)
{
    void *(*aligned)(size_t, size_t) = find("_aligned_malloc");
    void *(*change)(void *, size_t) = find("realloc");
    char *block = aligned(100, 256);
    errno = 0;
    IS((uintptr_t)block & 255, 0);
    memset(block, 'x', 100);
    OWN(void, _aligned_free, void *)(block);
    IS(aligned(1, 24) == NULL && errno == EINVAL, 1);
    IS(aligned(SIZE_MAX - 8, 16) == NULL && errno == ENOMEM, 1);
    errno = 0;
    IS(OWN(void *, malloc, size_t)(SIZE_MAX / 2) == NULL && errno == ENOMEM, 1);
    errno = 0;
    IS(OWN(void *, calloc, size_t, size_t)(SIZE_MAX / 8, 16) == NULL && errno == ENOMEM, 1);
    IS(OWN(size_t, _msize, void *)(NULL), -1);
    block = change(NULL, 10);
    strcpy(block, "kept");
    block = change(block, 100000);
    TEXT_IS(block, "kept");
    IS(change(block, 0) == NULL, 1);
}

static void sized_text(void)
{
    char text[16];
    wchar_t wide[16] = L"Wide Text", *token, *at = NULL;
    int (*print)(char *, size_t, const char *, ...) = find("_snprintf");
    memset(text, '#', sizeof text);
    IS(print(text, 4, "%d", 12345), -1);
    IS(memcmp(text, "1234#", 5), 0); /* and no NUL */
    IS(print(text, 5, "%d", 54321), 5);
    IS(memcmp(text, "54321#", 6), 0);
    IS(print(text, 6, "%d", 12345), 5);
    TEXT_IS(text, "12345");
    errno = 0;
    IS(OWN(int, sprintf_s, char *, size_t, const char *, ...)(text, 5, "%d", 12345), -1);
    IS(!text[0] && errno == ERANGE, 1);
    char pointers[40];
    IS(print(pointers, 40, "%p|%.3s|%%", (void *)0xabc, "longer"), 22);
    TEXT_IS(pointers, "0000000000000ABC|lon|%");
    WIDE_IS(OWN(wchar_t *, _wcslwr, wchar_t *)(wide), L"wide text");
    WIDE_IS(OWN(wchar_t *, _wcsupr, wchar_t *)(wide), L"WIDE TEXT");
    WIDE_IS(OWN(wchar_t *, _wcsrev, wchar_t *)(wide), L"TXET EDIW");
    WIDE_IS(OWN(wchar_t *, _wcsnset, wchar_t *, wchar_t, size_t)(wide, '-', 4), L"---- EDIW");
    WIDE_IS(OWN(wchar_t *, _wcsset, wchar_t *, wchar_t)(wide, '='), L"=========");
    IS(OWN(int, _wcsicmp, const wchar_t *, const wchar_t *)(L"ABC", L"abd") < 0, 1);
    errno_t (*copy)(wchar_t *, size_t, const wchar_t *) = find("wcscpy_s");
    IS(copy(wide, 5, L"four") | copy(wide + 5, 2, L"x"), 0);
    IS(copy(wide, 4, L"four"), ERANGE);
    IS(wide[0], 0);
    IS(OWN(errno_t, wcscat_s, wchar_t *, size_t, const wchar_t *)(wide, 16, L"a;;b"), 0);
    token = OWN(wchar_t *, wcstok_s, wchar_t *, const wchar_t *, wchar_t **)(wide, L";", &at);
    WIDE_IS(token, L"a");
    token = OWN(wchar_t *, wcstok_s, wchar_t *, const wchar_t *, wchar_t **)(NULL, L";", &at);
    WIDE_IS(token, L"b");
}

/* The _s functions of both widths. */
static int by_byte(const void *a, const void *b) { return *(const char *)a - *(const char *)b; }

static void wrong_sorts(void)
{
    typedef int (*order)(const void *, const void *);
    char text[] = "cab";
    for (unsigned i = 0; i < 3; i++) {
        errno = 0;
        OWN(void, qsort, void *, size_t, size_t, order)
        (i == 0 ? NULL : text, 3, i != 1, i == 2 ? NULL : by_byte);
        IS(errno, EINVAL);
    }
    IS(strcmp(text, "cab"), 0);
    OWN(void, qsort, void *, size_t, size_t, order)(text, 3, 1, by_byte);
    IS(strcmp(text, "abc"), 0);
}

static void safe_text(void)
{
    char text[8] = "ab", *at = NULL, list[] = "x,,y";
    wchar_t wide[8] = L"ab";
    IS(OWN(errno_t, strncat_s, char *, size_t, const char *, size_t)(text, 8, "cdef", 2), 0);
    TEXT_IS(text, "abcd");
    IS(OWN(errno_t, strncat_s, char *, size_t, const char *, size_t)(text, 8, "efgh", 4), ERANGE);
    IS(text[0], 0);
    IS(OWN(errno_t, wcsncat_s, wchar_t *, size_t, const wchar_t *, size_t)(wide, 5, L"cdef",
                                                                           _TRUNCATE),
       STRUNCATE);
    WIDE_IS(wide, L"abcd");
    IS(OWN(errno_t, wcsncpy_s, wchar_t *, size_t, const wchar_t *, size_t)(wide, 8, L"xyz", 2), 0);
    WIDE_IS(wide, L"xy");
    IS(OWN(errno_t, wcsncpy_s, wchar_t *, size_t, const wchar_t *, size_t)(NULL, 8, L"x", 1),
       EINVAL);
    TEXT_IS(OWN(char *, strtok_s, char *, const char *, char **)(list, ",", &at), "x");
    TEXT_IS(OWN(char *, strtok_s, char *, const char *, char **)(NULL, ",", &at), "y");
    IS(OWN(char *, strtok_s, char *, const char *, char **)(NULL, ",", &at) == NULL, 1);
    IS(OWN(size_t, strnlen, const char *, size_t)("abc", 2), 2);
    IS(OWN(size_t, wcsnlen, const wchar_t *, size_t)(L"abc", 9), 3);
    strcpy(text, "Mixed");
    IS(OWN(errno_t, _strupr_s, char *, size_t)(text, 6), 0);
    TEXT_IS(text, "MIXED");
    IS(OWN(errno_t, _strlwr_s, char *, size_t)(text, 5), EINVAL); /* no NUL in it */
    IS(text[0], 0);
    wcscpy(wide, L"Mixed");
    IS(OWN(errno_t, _wcslwr_s, wchar_t *, size_t)(wide, 6), 0);
    WIDE_IS(wide, L"mixed");
    IS(OWN(errno_t, _wcsupr_s, wchar_t *, size_t)(wide, 6) || wcscmp(wide, L"MIXED"), 0);
    strcpy(text, "12345");
    TEXT_IS(OWN(char *, _strnset, char *, int, size_t)(text, 'x', 2), "xx345");
    TEXT_IS(OWN(char *, _strset, char *, int)(text, 'y'), "yyyyy");
}

static volatile LONG begun;

static void begin(void *argument)
{
    begun += *(int *)argument;
    OWN(void, _endthread, void)();
    begun = 99;
}

static unsigned __stdcall begin_ex(void *argument)
{
    begun += *(int *)argument;
    OWN(void, _endthreadex, unsigned)(5);
    return 6;
}

static void threads_and_input(void)
{
    FILE *streams = OWN(FILE *, __iob_func, void)();
    char text[8], buffer[64];
    int number = 3;
    HANDLE thread =
        (HANDLE)OWN(uintptr_t, _beginthread, void (*)(void *), unsigned, void *)(begin, 0, &number);
    IS(end_of(thread), 0);
    thread = (HANDLE)OWN(uintptr_t, _beginthreadex, void *, unsigned, unsigned(__stdcall *)(void *),
                         void *, unsigned, unsigned *)(NULL, 0, begin_ex, &number, 0, NULL);
    IS(end_of(thread), 5);
    IS(begun, 6);
    IS(OWN(uintptr_t, _beginthread, void (*)(void *), unsigned, void *)(NULL, 0, NULL), -1);
    IS(OWN(int, ungetc, int, FILE *)('u', streams), 'u');
    IS(OWN(int, ungetc, int, FILE *)('v', streams), EOF); /* one only */
    IS(OWN(char *, fgets, char *, int, FILE *)(text, 8, streams) == text, 1);
    TEXT_IS(text, "u");
    IS(OWN(int, ungetc, int, FILE *)('w', streams), 'w');
    IS(OWN(size_t, fread, void *, size_t, size_t, FILE *)(text, 1, 0, streams), 0);
    IS(OWN(size_t, fread, void *, size_t, size_t, FILE *)(text, 0, 1, streams), 0);
    IS(OWN(size_t, fread, void *, size_t, size_t, FILE *)(text, 1, 8, streams), 1);
    IS(text[0] == 'w' && OWN(int, feof, FILE *)(streams), 1);
    IS(OWN(char *, fgets, char *, int, FILE *)(text, 0, streams) == NULL && errno == EINVAL, 1);
    IS(OWN(int, fputs, const char *, FILE *)(NULL, streams + 1), EOF);
    IS(OWN(int, setvbuf, FILE *, char *, int, size_t)(streams + 1, buffer, _IOFBF, 64), 0);
    IS(OWN(int, setvbuf, FILE *, char *, int, size_t)(streams + 1, NULL, 77, 64), -1);
    IS(OWN(wint_t, fputwc, wchar_t, FILE *)(0xd83d, streams + 1), 0xd83d); /* half of a pair */
    IS(OWN(wint_t, fputwc, wchar_t, FILE *)(0xde00, streams + 1), 0xde00);
    IS(OWN(int, fputs, const char *, FILE *)("\n", streams + 1), 0);
    IS(memcmp(buffer, "\xf0\x9f\x98\x80\n", 5), 0);
    IS(OWN(int, setvbuf, FILE *, char *, int, size_t)(streams + 1, NULL, _IONBF, 0), 0);
    IS(OWN(int, system, const char *)(NULL), 0);
    IS(OWN(int, system, const char *)("x") == -1 && errno == ENOENT, 1);
}

int main(void)
{
    library = GetModuleHandleA("msvcrt.dll");
    memory();
    sized_text();
    wrong_sorts();
    safe_text();
    threads_and_input();
    return check_result();
}
