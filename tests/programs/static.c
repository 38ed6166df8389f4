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
    WCHAR mapped[8] = L"";
    IS(GetStringTypeW(CT_CTYPE1, L"aZ5 \t!\x1", 7, kinds), TRUE);
    IS(kinds[0], C1_DEFINED | C1_ALPHA | C1_LOWER | C1_XDIGIT);
    IS(kinds[1], C1_DEFINED | C1_ALPHA | C1_UPPER);
    IS(kinds[2], C1_DEFINED | C1_DIGIT | C1_XDIGIT);
    IS(kinds[4], C1_DEFINED | C1_SPACE | C1_BLANK | C1_CNTRL);
    IS(kinds[5], C1_DEFINED | C1_PUNCT);
    IS(LCMapStringEx(L"en-US", LCMAP_UPPERCASE, L"aBc1", -1, NULL, 0, NULL, NULL, 0), 5);
    IS(LCMapStringW(LOCALE_USER_DEFAULT, LCMAP_LOWERCASE, L"ABC", 3, mapped, 8), 3);
    IS(wcscmp(mapped, L"abc"), 0);
    FAILS(LCMapStringW(LOCALE_USER_DEFAULT, LCMAP_LOWERCASE, L"ABC", 3, mapped, 2), 0,
          ERROR_INSUFFICIENT_BUFFER);
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

static WINBOOL CALLBACK count_names(LPWSTR name, DWORD flags, LPARAM by)
{
    locales += wcscmp(name, L"en-US") == 0 && flags & LOCALE_SPECIFICDATA ? (int)by : 0;
    return TRUE;
}

static void locale(void)
{
    WCHAR name[LOCALE_NAME_MAX_LENGTH];
    char narrow[8] = "";
    DWORD page = 0;
    IS(GetUserDefaultLCID(), 0x409);
    IS(IsValidLocale(GetUserDefaultLCID(), LCID_INSTALLED), TRUE);
    IS(GetUserDefaultLocaleName(name, LOCALE_NAME_MAX_LENGTH), 6);
    IS(LocaleNameToLCID(name, 0), 0x409);
    IS(LCIDToLocaleName(0x7f, name, LOCALE_NAME_MAX_LENGTH, 0), 1);
    IS(EnumSystemLocalesW(count, LCID_INSTALLED) && locales == 1, 1);
    IS(EnumSystemLocalesEx(count_names, LOCALE_ALL, 10, NULL) && locales == 11, 1);
    IS(GetLocaleInfoEx(L"en-US", LOCALE_SDECIMAL, name, 8), 2);
    IS(wcscmp(name, L"."), 0);
    IS(GetLocaleInfoW(0x409, LOCALE_IDEFAULTANSICODEPAGE | LOCALE_RETURN_NUMBER, (LPWSTR)&page, 2),
       2);
    IS(page, CP_UTF8);
    IS(IsValidCodePage(GetACP()), TRUE);
    FAILS(GetLocaleInfoW(0x409, LOCALE_SNAME, name, 5), 0, ERROR_INSUFFICIENT_BUFFER);
    IS(GetLocaleInfoA(0x409, LOCALE_SNAME, narrow, 6) == 6 && !strcmp(narrow, "en-US"), 1);
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
    DWORD n = 9;
    HANDLE out = GetStdHandle(STD_OUTPUT_HANDLE), in = GetStdHandle(STD_INPUT_HANDLE);
    FAILS(FindFirstFileExW(L"*", FindExInfoStandard, &found, FindExSearchNameMatch, NULL, 0),
          (LONG_PTR)INVALID_HANDLE_VALUE, ERROR_FILE_NOT_FOUND);
    IS(GetFileAttributesW(L"x"), INVALID_FILE_ATTRIBUTES);
    IS(DeleteFileW(L"x") || CreateDirectoryW(L"d", NULL) || RemoveDirectoryW(L"d"), FALSE);
    IS(GetCurrentDirectoryW(MAX_PATH, path), 3);
    IS(GetFullPathNameW(L"a/b", MAX_PATH, path, &part), 6);
    IS(wcscmp(path, L"C:\\a\\b") == 0 && part == path + 5, 1);
    IS(GetFullPathNameW(L"D:\\c", 4, path, &part), 5);
    IS(GetFileType(out), FILE_TYPE_CHAR);
    IS(GetFileSizeEx(out, &size) || SetEndOfFile(out), FALSE);
    FAILS(FindNextFileW(INVALID_HANDLE_VALUE, &found), FALSE, ERROR_INVALID_HANDLE);
    FAILS(FindClose(INVALID_HANDLE_VALUE), FALSE, ERROR_INVALID_HANDLE);
    IS(GetConsoleMode(out, &n), TRUE);
    IS(GetNumberOfConsoleInputEvents(in, &n) && n == 0, 1);
    IS(ReadConsoleW(in, path, 8, &n, NULL) && n == 0, 1);
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
    IS(DecodePointer(EncodePointer(&kind)) == &kind && EncodePointer(&kind) != &kind, 1);
    IS(HeapSetInformation(NULL, HeapEnableTerminationOnCorruption, NULL, 0), TRUE);
    IS(HeapQueryInformation(GetProcessHeap(), HeapCompatibilityInformation, &kind, sizeof kind,
                            &length),
       TRUE);
    IS(GetTimeZoneInformation(&zone) == TIME_ZONE_ID_UNKNOWN && zone.Bias == 0, 1);
    FILETIME file = { 1, 2 }, local = { 0 };
    IS(FileTimeToLocalFileTime(&file, &local) && memcmp(&file, &local, sizeof file) == 0, 1);
    SYSTEMTIME time = { .wYear = 2020, .wDay = 3 }, back = { 0 };
    IS(SystemTimeToTzSpecificLocalTime(NULL, &time, &back), TRUE);
    IS(TzSpecificLocalTimeToSystemTime(&zone, &time, &back), TRUE);
    IS(memcmp(&time, &back, sizeof time), 0);
    IS(end_of(CreateThread(NULL, 0, leave, LoadLibraryA("advapi32.dll"), 0, NULL)), 9);
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
