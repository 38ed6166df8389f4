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
    FAILS(GetStringTypeW(CT_CTYPE1, L"", 0, kinds), FALSE, ERROR_INVALID_PARAMETER);
    IS(LCMapStringEx(L"en-US", LCMAP_UPPERCASE, L"aBc1", -1, NULL, 0, NULL, NULL, 0), 5);
    IS(LCMapStringEx(L"en-US", LCMAP_UPPERCASE, L"aBc1", -1, mapped, 8, NULL, NULL, 0), 5);
    IS(wcscmp(mapped, L"ABC1"), 0);
    IS(LCMapStringW(LOCALE_USER_DEFAULT, LCMAP_LOWERCASE, L"ABC", 3, mapped, 8), 3);
    IS(wcscmp(mapped, L"abc1"), 0);
    FAILS(LCMapStringW(LOCALE_USER_DEFAULT, LCMAP_LOWERCASE, L"ABC", 3, small, 2), 0,
          ERROR_INSUFFICIENT_BUFFER);
    IS(CompareStringEx(L"", NORM_IGNORECASE, L"abc", -1, L"ABC", 3, NULL, NULL, 0), CSTR_EQUAL);
    IS(CompareStringW(LOCALE_INVARIANT, 0, L"ab", 2, L"abc", 3), CSTR_LESS_THAN);
    IS(CompareStringOrdinal(L"b", 1, L"abc", -1, FALSE), CSTR_GREATER_THAN);
    IS(CompareStringOrdinal(L"abc", 3, L"ab", -1, TRUE), CSTR_GREATER_THAN);
    IS(CompareStringW(LOCALE_INVARIANT, 0, L"B", -1, L"a", -1), CSTR_LESS_THAN);
    FAILS(CompareStringOrdinal(NULL, 0, L"a", 1, FALSE), 0, ERROR_INVALID_PARAMETER);
    FAILS(GetStringTypeW(CT_CTYPE2, L"a", 1, kinds), FALSE, ERROR_INVALID_FLAGS);
    IS(GetStringTypeW(CT_CTYPE1, L"fG", 2, kinds), TRUE);
    IS(kinds[0] == (C1_DEFINED | C1_ALPHA | C1_LOWER | C1_XDIGIT) &&
           kinds[1] == (C1_DEFINED | C1_ALPHA | C1_UPPER),
       1);
    IS(LCMapStringW(LOCALE_USER_DEFAULT, LCMAP_UPPERCASE, L"abc", 3, mapped, 3), 3);
    FAILS(LCMapStringW(LOCALE_USER_DEFAULT, 0, L"a", 1, mapped, 8), 0, ERROR_INVALID_FLAGS);
    FAILS(LCMapStringW(LOCALE_USER_DEFAULT, LCMAP_LOWERCASE | LCMAP_UPPERCASE, L"a", 1, mapped, 8),
          0, ERROR_INVALID_FLAGS);
    FAILS(LCMapStringW(LOCALE_USER_DEFAULT, LCMAP_LOWERCASE, L"a", 1, NULL, 8), 0,
          ERROR_INVALID_PARAMETER);
}

static int locales;
static WINBOOL CALLBACK count(LPWSTR name)
{
    locales += wcscmp(name, L"00000409") == 0;
    return TRUE;
}

static WINBOOL CALLBACK count_names(LPWSTR name, DWORD flags, LPARAM by)
{
    locales += wcscmp(name, L"en-US") == 0 && flags & LOCALE_SPECIFICDATA ? (int)by : 0;
    return TRUE;
}

static void locale(void)
{
    WCHAR name[LOCALE_NAME_MAX_LENGTH];
    char narrow[8] = "#######";
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
    const LCTYPE number = LOCALE_IDEFAULTCODEPAGE | LOCALE_RETURN_NUMBER;
    IS(GetLocaleInfoW(0x409, number, NULL, 0), 2);
    FAILS(GetLocaleInfoW(0x409, number, name, 1), 0, ERROR_INSUFFICIENT_BUFFER);
    FAILS(GetLocaleInfoW(0x409, number, NULL, 2), 0, ERROR_INVALID_PARAMETER);
    FAILS(GetLocaleInfoW(0x409, LOCALE_SDECIMAL | LOCALE_RETURN_NUMBER, name, 8), 0,
          ERROR_INVALID_FLAGS);
    FAILS(GetLocaleInfoW(0x409, LOCALE_SNAME, name, 5), 0, ERROR_INSUFFICIENT_BUFFER);
    IS(LCIDToLocaleName(LOCALE_USER_DEFAULT, name, LOCALE_NAME_MAX_LENGTH, 0), 6);
    IS(LocaleNameToLCID(L"EN-us", 0) == 0x409 && LocaleNameToLCID(L"", 0) == 0x7f, 1);
    FAILS(EnumSystemLocalesW(NULL, LCID_INSTALLED), FALSE, ERROR_INVALID_PARAMETER);
    IS(EnumSystemLocalesEx(count_names, LOCALE_ALL, 10, NULL) && locales == 11, 1);
    FAILS(EnumSystemLocalesEx(NULL, LOCALE_ALL, 0, NULL), FALSE, ERROR_INVALID_PARAMETER);
    IS(GetLocaleInfoA(0x409, LOCALE_SNAME, narrow, 6) == 6 && !strcmp(narrow, "en-US"), 1);
    IS(narrow[6], '#');
    FAILS(GetLocaleInfoA(0x409, LOCALE_SNAME, narrow, 5), 0, ERROR_INSUFFICIENT_BUFFER);
    FAILS(GetLocaleInfoA(0x409, LOCALE_SNAME, NULL, 5), 0, ERROR_INVALID_PARAMETER);
    IS(GetLocaleInfoA(0x409, number, (char *)&page, 4) == 4 && page == CP_UTF8, 1);
    IS(GetLocaleInfoA(0x409, LOCALE_SNAME, NULL, 0), 6);
}

/* --- Libraries. --- */

PVOID WINAPI ResolveDelayLoadedAPI(PVOID, const IMAGE_DELAYLOAD_DESCRIPTOR *, PVOID, PVOID,
                                   IMAGE_THUNK_DATA *, ULONG);

static FARPROC WINAPI lacks(LPCSTR library, LPCSTR function)
{
    return strcmp(library, "kernel32.dll") || strcmp(function, "Slept") ? NULL : (FARPROC)lacks;
}

/* As a linker lays it out: addresses are offsets from the image. */
static void delayed(void)
{
    static struct {
        char library[16], none[16];
        IMAGE_THUNK_DATA names[3], slots[3];
        struct {
            WORD hint;
            char name[8];
        } function[2];
    } image = { .library = "kernel32.dll",
                .none = "nowhere.dll",
                .function = { { 0, "Sleep" }, { 0, "Slept" } } };
    const DWORD slots = (DWORD)((char *)image.slots - (char *)&image),
                names = (DWORD)((char *)image.names - (char *)&image);
    IMAGE_DELAYLOAD_DESCRIPTOR of = { .ImportAddressTableRVA = slots, .ImportNameTableRVA = names };
    for (int i = 0; i < 2; i++)
        image.names[i].u1.AddressOfData = (ULONGLONG)((char *)&image.function[i] - (char *)&image);
    image.names[2].u1.Ordinal = IMAGE_ORDINAL_FLAG64 | 0xffff;
    IS(ResolveDelayLoadedAPI(&image, &of, NULL, lacks, &image.slots[0], 0) == Sleep, 1);
    IS(image.slots[0].u1.Function == (ULONGLONG)Sleep, 1);
    IS(ResolveDelayLoadedAPI(&image, &of, NULL, lacks, &image.slots[1], 0) == lacks, 1);
    IS(ResolveDelayLoadedAPI(&image, &of, NULL, NULL, &image.slots[2], 0) == NULL, 1);
    of.DllNameRVA = sizeof image.library;
    IS(ResolveDelayLoadedAPI(&image, &of, NULL, NULL, &image.slots[0], 0) == NULL, 1);
    IS(image.slots[1].u1.Function | image.slots[2].u1.Function, 0);
    HMODULE ntdll = GetModuleHandleA("ntdll.dll");
    NTSTATUS(NTAPI * hold)(ULONG, PVOID) = (void *)GetProcAddress(ntdll, "LdrAddRefDll");
    IS(hold(0, ntdll) | hold(1, ntdll), 0);
    IS(hold(0, (char *)ntdll + 1), 0xc0000135 - (1ll << 32)); /* STATUS_DLL_NOT_FOUND */
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
    IS(GetFullPathNameW(L"//server/x", MAX_PATH, path, &part), 10);
    IS(wcscmp(path, L"\\\\server\\x") == 0 && part == path + 9, 1);
    static WCHAR name[MAX_PATH + 2];
    wmemset(name, 'n', MAX_PATH + 1);
    FAILS(GetFullPathNameW(name, MAX_PATH, path, NULL), 0, ERROR_INVALID_NAME);
    FAILS(SetEndOfFile(out), FALSE, ERROR_INVALID_FUNCTION);
    FAILS(SetEndOfFile(in), FALSE, ERROR_INVALID_FUNCTION);
    FAILS(SetEndOfFile((HANDLE)0x5000), FALSE, ERROR_INVALID_HANDLE);
    FAILS(CreateDirectoryW(L"d", NULL), FALSE, ERROR_ACCESS_DENIED);
    FAILS(RemoveDirectoryW(L"d"), FALSE, ERROR_FILE_NOT_FOUND);
    FAILS(FindNextFileW(INVALID_HANDLE_VALUE, &found), FALSE, ERROR_INVALID_HANDLE);
    FAILS(FindClose(INVALID_HANDLE_VALUE), FALSE, ERROR_INVALID_HANDLE);
    FAILS(ReadConsoleW(out, path, 8, &n, NULL), FALSE, ERROR_INVALID_HANDLE);
    n = 9;
    IS(GetNumberOfConsoleInputEvents(in, &n) && n == 0, 1);
    FAILS(GetNumberOfConsoleInputEvents(out, &n), FALSE, ERROR_INVALID_HANDLE);
    IS(WriteConsoleW(out, L"wide\n", 5, &n, NULL) && n == 5, 1);
}

/* While a thread begins, nobody else changes or looks at the libraries: the calls wait. */
static volatile LONG slowly, begun;
static HANDLE begins;
static void NTAPI on_thread(PVOID image, DWORD reason, PVOID unused)
{
    if (reason != DLL_THREAD_ATTACH || !slowly)
        return;
    begun = 0;
    SetEvent(begins);
    Sleep(5);
    begun = 1;
}
static PIMAGE_TLS_CALLBACK callback __attribute__((section(".CRT$XLM"), used)) = on_thread;

static DWORD WINAPI nothing(LPVOID unused) { return 0; }

static void loader_waits(void)
{
    HMODULE library = NULL;
    begins = CreateEventA(NULL, FALSE, FALSE, NULL);
    for (unsigned call = 0; call < 4; call++) {
        slowly = 1;
        HANDLE thread = CreateThread(NULL, 0, nothing, NULL, 0, NULL);
        IS(WaitForSingleObject(begins, 60000), WAIT_OBJECT_0);
        slowly = 0;
        switch (call) {
        case 0: library = LoadLibraryA("advapi32.dll"); break;
        case 1: IS(GetModuleHandleA("advapi32.dll") == library, 1); break;
        case 2: IS(GetProcAddress(library, "StartTraceW") != NULL, 1); break;
        default: IS(FreeLibrary(library), TRUE);
        }
        IS(begun, 1);
        IS(end_of(thread), 0);
    }
    CloseHandle(begins);
}

static DWORD WINAPI leave(LPVOID library) { FreeLibraryAndExitThread(library, 9); }

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
    FAILS(HeapQueryInformation(NULL, HeapCompatibilityInformation, &kind, 3, &length), FALSE,
          ERROR_INSUFFICIENT_BUFFER);
    FAILS(HeapSetInformation(NULL, 99, NULL, 0), FALSE, ERROR_INVALID_PARAMETER);
    FILETIME file = { 1, 2 }, local = { 0 };
    IS(FileTimeToLocalFileTime(&file, &local) && memcmp(&file, &local, sizeof file) == 0, 1);
    SYSTEMTIME time = { .wYear = 2020, .wDay = 3 }, back = { 0 };
    IS(SystemTimeToTzSpecificLocalTime(NULL, &time, &back), TRUE);
    IS(TzSpecificLocalTimeToSystemTime(&zone, &time, &back), TRUE);
    IS(memcmp(&time, &back, sizeof time), 0);
    zone.Bias = 60;
    FAILS(SystemTimeToTzSpecificLocalTime(&zone, &time, &back), FALSE, ERROR_NOT_SUPPORTED);
    DWORD code = 0;
    HANDLE thread = CreateThread(NULL, 0, leave, LoadLibraryA("advapi32.dll"), 0, NULL);
    WaitForSingleObject(thread, INFINITE);
    IS(GetExitCodeThread(thread, &code) && code == 9, 1);
    IS(IsWow64Process(GetCurrentProcess(), &wow) && !wow, 1);
}

int main(void)
{
    text();
    locale();
    delayed();
    files();
    rest();
    loader_waits();
    return check_result();
}
