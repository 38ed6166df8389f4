/* SPDX-License-Identifier: MIT */
/* What a C library asks of kernel32.dll that is linked into the program, as Visual Studio's is with
 * /MT: each is exported and says something true. */
#define _WIN32_WINNT 0x0a00
#include <windows.h>
#include <string.h>
#include <wchar.h>
#include "check.h"

static void text(void)
{
    WORD kinds[8];
    WCHAR mapped[8] = L"", small[2];
    IS(GetStringTypeW(CT_CTYPE1, L"aZ5 \t!\x1", 7, kinds), TRUE);
    IS(kinds[0], C1_DEFINED | C1_ALPHA | C1_LOWER | C1_XDIGIT);
    IS(kinds[1], C1_DEFINED | C1_ALPHA | C1_UPPER);
    IS(kinds[2], C1_DEFINED | C1_DIGIT | C1_XDIGIT);
    IS(kinds[3], C1_DEFINED | C1_SPACE | C1_BLANK);
    IS(kinds[4], C1_DEFINED | C1_SPACE | C1_BLANK | C1_CNTRL);
    IS(kinds[5], C1_DEFINED | C1_PUNCT);
    IS(kinds[6], C1_DEFINED | C1_CNTRL);
    IS(GetStringTypeW(CT_CTYPE1, L"", 0, kinds), FALSE);
    IS(GetLastError(), ERROR_INVALID_PARAMETER);
    IS(LCMapStringEx(L"en-US", LCMAP_UPPERCASE, L"aBc1", -1, NULL, 0, NULL, NULL, 0), 5);
    IS(LCMapStringEx(L"en-US", LCMAP_UPPERCASE, L"aBc1", -1, mapped, 8, NULL, NULL, 0), 5);
    IS(wcscmp(mapped, L"ABC1"), 0);
    IS(LCMapStringW(LOCALE_USER_DEFAULT, LCMAP_LOWERCASE, L"ABC", 3, mapped, 8), 3);
    IS(wcscmp(mapped, L"abc1"), 0);
    IS(LCMapStringW(LOCALE_USER_DEFAULT, LCMAP_LOWERCASE, L"ABC", 3, small, 2), 0);
    IS(GetLastError(), ERROR_INSUFFICIENT_BUFFER);
    IS(CompareStringEx(L"", NORM_IGNORECASE, L"abc", -1, L"ABC", 3, NULL, NULL, 0), CSTR_EQUAL);
    IS(CompareStringW(LOCALE_INVARIANT, 0, L"ab", 2, L"abc", 3), CSTR_LESS_THAN);
    IS(CompareStringOrdinal(L"b", 1, L"abc", -1, FALSE), CSTR_GREATER_THAN);
}

static int locales;
static WINBOOL CALLBACK count(LPWSTR name)
{
    locales += wcscmp(name, L"00000409") == 0;
    return TRUE;
}

static void locale(void)
{
    WCHAR name[LOCALE_NAME_MAX_LENGTH];
    DWORD page = 0;
    IS(GetUserDefaultLCID(), 0x409);
    IS(IsValidLocale(GetUserDefaultLCID(), LCID_INSTALLED), TRUE);
    IS(IsValidLocale(0x407, LCID_INSTALLED), FALSE);
    IS(GetUserDefaultLocaleName(name, LOCALE_NAME_MAX_LENGTH), 6);
    IS(LocaleNameToLCID(name, 0), 0x409);
    IS(LCIDToLocaleName(0x7f, name, LOCALE_NAME_MAX_LENGTH, 0), 1);
    IS(LocaleNameToLCID(L"xx", 0), 0);
    IS(EnumSystemLocalesW(count, LCID_INSTALLED) && locales == 1, 1);
    IS(GetLocaleInfoEx(L"en-US", LOCALE_SDECIMAL, name, 8), 2);
    IS(wcscmp(name, L"."), 0);
    IS(GetLocaleInfoEx(L"en-US", LOCALE_IDEFAULTANSICODEPAGE | LOCALE_RETURN_NUMBER, (LPWSTR)&page,
                       2),
       2);
    IS(page, CP_UTF8);
    IS(IsValidCodePage(GetACP()), TRUE);
}

static void files(void)
{
    WIN32_FIND_DATAW found;
    WCHAR path[MAX_PATH], *part;
    LARGE_INTEGER size;
    DWORD n;
    HANDLE out = GetStdHandle(STD_OUTPUT_HANDLE), in = GetStdHandle(STD_INPUT_HANDLE);
    IS(FindFirstFileExW(L"*", FindExInfoStandard, &found, FindExSearchNameMatch, NULL, 0) ==
           INVALID_HANDLE_VALUE,
       1);
    IS(GetLastError(), ERROR_FILE_NOT_FOUND);
    IS(GetFileAttributesW(L"x"), INVALID_FILE_ATTRIBUTES);
    IS(DeleteFileW(L"x"), FALSE);
    IS(GetCurrentDirectoryW(MAX_PATH, path), 3);
    IS(GetCurrentDirectoryW(3, path), 4);
    IS(GetFullPathNameW(L"a/b", MAX_PATH, path, &part), 6);
    IS(wcscmp(path, L"C:\\a\\b") == 0 && part == path + 5, 1);
    IS(GetFullPathNameW(L"\\a\\", MAX_PATH, path, &part), 5);
    IS(wcscmp(path, L"C:\\a\\") == 0 && part == NULL, 1);
    IS(GetFullPathNameW(L"D:\\c", 4, path, &part), 5);
    IS(GetFullPathNameW(L"", MAX_PATH, path, NULL), 0);
    IS(GetFileType(out), FILE_TYPE_CHAR);
    IS(GetFileSizeEx(out, &size), FALSE);
    IS(GetConsoleMode(out, &n), TRUE);
    IS(ReadConsoleW(in, path, 8, &n, NULL) && n == 0, 1);
    IS(WriteConsoleW(out, L"wide\n", 5, &n, NULL) && n == 5, 1);
}

static struct entry {
    SLIST_ENTRY link;
    int value;
} entries[400] __attribute__((aligned(16)));
static SLIST_HEADER list;

static DWORD WINAPI push(LPVOID argument)
{
    struct entry *from = argument;
    for (int i = 0; i < 100; i++)
        InterlockedPushEntrySList(&list, &from[i].link);
    for (int i = 0; i < 50; i++)
        InterlockedPushEntrySList(&list, InterlockedPopEntrySList(&list));
    return 0;
}

/* Four threads push a hundred entries each, and take some out and put them back. */
static void lists(void)
{
    HANDLE threads[4];
    int n = 0, sum = 0;
    InitializeSListHead(&list);
    IS(InterlockedPopEntrySList(&list) == NULL, 1);
    for (int i = 0; i < 400; i++)
        entries[i].value = i;
    for (int i = 0; i < 4; i++)
        threads[i] = CreateThread(NULL, 0, push, entries + 100 * i, 0, NULL);
    WaitForMultipleObjects(4, threads, TRUE, INFINITE);
    IS(QueryDepthSList(&list), 400);
    for (PSLIST_ENTRY e = InterlockedFlushSList(&list); e; e = e->Next, n++)
        sum += ((struct entry *)e)->value;
    IS(n, 400);
    IS(sum, 399 * 400 / 2);
    IS(QueryDepthSList(&list), 0);
}

static void rest(void)
{
    ULONG kind = 0;
    SIZE_T length;
    TIME_ZONE_INFORMATION zone;
    BOOL wow = TRUE;
    IS(DecodePointer(EncodePointer(&kind)) == &kind, 1);
    IS(EncodePointer(&kind) != &kind, 1);
    IS(HeapSetInformation(NULL, HeapEnableTerminationOnCorruption, NULL, 0), TRUE);
    IS(HeapQueryInformation(GetProcessHeap(), HeapCompatibilityInformation, &kind, sizeof kind,
                            &length),
       TRUE);
    IS(kind == 2 && length == sizeof kind, 1);
    IS(GetTimeZoneInformation(&zone), TIME_ZONE_ID_UNKNOWN);
    IS(zone.Bias, 0);
    IS(IsWow64Process(GetCurrentProcess(), &wow) && !wow, 1);
}

int main(void)
{
    text();
    locale();
    files();
    lists();
    rest();
    printf("%d checks, %d wrong\n", checks, failures);
    return failures != 0;
}
