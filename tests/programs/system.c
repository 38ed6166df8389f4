/* SPDX-License-Identifier: MIT */
/* What a program asks the system beside its work: variables, code pages, dates, privileges, numbers
 * as text, its registers. Prints what is wrong, and how many checks it made. */
#define _WIN32_WINNT 0x0a00
#include <windows.h>
#include <process.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"

static void variables(void)
{
    char text[16];
    WCHAR wide[16];
    FAILS(GetEnvironmentVariableA("NOT_THERE", text, sizeof text), 0, ERROR_ENVVAR_NOT_FOUND);
    IS(SetEnvironmentVariableA("Longer", "first"), 1);
    IS(SetEnvironmentVariableW(L"Long", L"1234"), 1);
    memset(text, '#', sizeof text);
    IS(GetEnvironmentVariableA("LONG", text, 5), 4);
    IS(strcmp(text, "1234"), 0);
    memset(text, '#', sizeof text);
    IS(GetEnvironmentVariableA("long", text, 4), 5); /* the NUL counts too */
    IS(text[4], '#');
    memset(wide, 0xff, sizeof wide);
    IS(GetEnvironmentVariableW(L"Longer", wide, 6), 5);
    IS(wcscmp(wide, L"first"), 0);
    wide[5] = '#';
    IS(GetEnvironmentVariableW(L"Longer", wide, 5), 6);
    IS(wide[5], '#');
    IS(SetEnvironmentVariableA("LONGER", "2"), 1);
    IS(GetEnvironmentVariableA("Longer", text, sizeof text), 1);
    IS(SetEnvironmentVariableA("Longer", NULL), 1);
    FAILS(GetEnvironmentVariableA("Longer", text, sizeof text), 0, ERROR_ENVVAR_NOT_FOUND);
    IS(GetEnvironmentVariableA("Long", text, sizeof text), 4);
    unsigned found = 0;
    WCHAR *all = GetEnvironmentStringsW();
    for (const WCHAR *p = all; *p; p += wcslen(p) + 1)
        found += wcscmp(p, L"Long=1234") == 0;
    IS(found, 1);
    IS(FreeEnvironmentStringsW(all), 1);
}

static void code_pages(void)
{
    static const char utf8[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"; /* 1 to 4 bytes each */
    static const char *const bad[] = {
        "\x80",     "\xc0\x80",        "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
        "\xe2\x82", "\xf8\x88\x80\x80"
    };
    WCHAR wide[16];
    char back[16];
    IS(MultiByteToWideChar(CP_UTF8, 0, utf8, -1, NULL, 0), 6);
    IS(MultiByteToWideChar(CP_UTF8, 0, utf8, -1, wide, 6), 6);
    IS(wcscmp(wide, L"a\xe9\x20ac\xd83d\xde00"), 0);
    FAILS(MultiByteToWideChar(CP_UTF8, 0, utf8, -1, wide, 5), 0, ERROR_INSUFFICIENT_BUFFER);
    FAILS(MultiByteToWideChar(1252, 0, utf8, -1, wide, 16), 0, ERROR_INVALID_PARAMETER);
    IS(WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL), 11);
    IS(WideCharToMultiByte(CP_UTF8, 0, wide, -1, back, 11, NULL, NULL), 11);
    IS(strcmp(back, utf8), 0);
    IS(WideCharToMultiByte(CP_UTF8, 0, wide, 5, back, 10, NULL, NULL), 10);
    FAILS(WideCharToMultiByte(CP_UTF8, 0, wide, 5, back, 9, NULL, NULL), 0,
          ERROR_INSUFFICIENT_BUFFER);
    for (unsigned i = 0; i < ARRAYSIZE(bad); i++) {
        FAILS(MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, bad[i], -1, wide, 16), 0,
              ERROR_NO_UNICODE_TRANSLATION);
        IS(MultiByteToWideChar(CP_UTF8, 0, bad[i], -1, wide, 16) > 1, 1);
        IS(wide[0], 0xfffd);
    }
    IS(WideCharToMultiByte(CP_UTF8, 0, L"\xde00\xd83d", 2, back, 16, NULL, NULL), 6);
    IS(memcmp(back, "\xef\xbf\xbd\xef\xbf\xbd", 6), 0);
    IS(lstrlenA("four") + lstrlenW(L"five!") + lstrlenA(NULL), 9);
    IS(GetACP() == CP_UTF8 && IsValidCodePage(20127) && !IsValidCodePage(1252), 1);
}

static ULONGLONG file_time(WORD year, WORD month, WORD day, WORD hour)
{
    SYSTEMTIME time = { year, month, 0, day, hour, 59, 58, 999 }, back;
    FILETIME file;
    IS(SystemTimeToFileTime(&time, &file), 1);
    IS(FileTimeToSystemTime(&file, &back), 1);
    time.wDayOfWeek = back.wDayOfWeek;
    IS(memcmp(&time, &back, sizeof time), 0);
    IS(back.wDayOfWeek,
       (((ULONGLONG)file.dwHighDateTime << 32 | file.dwLowDateTime) / 864000000000 + 1) %
           7); /* 1601-01-01 was a Monday */
    return (ULONGLONG)file.dwHighDateTime << 32 | file.dwLowDateTime;
}

static void dates(void)
{
    static const SYSTEMTIME wrong[] = {
        { 1600, 12, 0, 31, 0, 0, 0, 0 }, { 2020, 0, 0, 1, 0, 0, 0, 0 },
        { 2020, 13, 0, 1, 0, 0, 0, 0 },  { 2020, 1, 0, 0, 0, 0, 0, 0 },
        { 2020, 1, 0, 32, 0, 0, 0, 0 },  { 2020, 1, 0, 1, 24, 0, 0, 0 },
        { 2020, 1, 0, 1, 0, 60, 0, 0 },  { 2020, 1, 0, 1, 0, 0, 60, 0 },
        { 2020, 1, 0, 1, 0, 0, 0, 1000 }
    };
    const ULONGLONG hour = 36000000000, day = 24 * hour;
    FILETIME file;
    IS(file_time(2000, 3, 1, 0) - file_time(2000, 2, 28, 23), day + hour); /* a leap year */
    IS(file_time(1900, 3, 1, 0) - file_time(1900, 2, 28, 23), hour);       /* none */
    IS(file_time(2024, 12, 31, 5) - file_time(2023, 12, 31, 5), 366 * day);
    IS(file_time(1970, 1, 1, 0), 116444736000000000 + hour - 10000 - 10000000);
    IS(file_time(1601, 1, 1, 0), hour - 10000 - 10000000);
    for (unsigned i = 0; i < ARRAYSIZE(wrong); i++) {
        FAILS(SystemTimeToFileTime(&wrong[i], &file), 0, ERROR_INVALID_PARAMETER);
    }
    SYSTEMTIME now, local;
    GetSystemTime(&now);
    GetLocalTime(&local);
    IS(now.wYear == 2020 && local.wYear == 2020 && now.wMonth == 1, 1);
    IS(GetTickCount64() / 60000, GetTickCount() / 60000);
}

/* --- Privileges. --- */

static void privileges(void)
{
    HANDLE token;
    LUID luid;
    TOKEN_PRIVILEGES one = { 1, { { { 0, 0 }, SE_PRIVILEGE_ENABLED } } }, old;
    DWORD length = 0;
    FAILS(LookupPrivilegeValueA(NULL, "SeDebug", &luid), 0, ERROR_NO_SUCH_PRIVILEGE);
    FAILS(LookupPrivilegeValueW(NULL, L"SeDebugPrivileges", &luid), 0, ERROR_NO_SUCH_PRIVILEGE);
    IS(LookupPrivilegeValueW(NULL, L"SeSystemProfilePrivilege", &one.Privileges[0].Luid), 1);
    IS(one.Privileges[0].Luid.LowPart, 11);
    IS(OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY, &token), 1);
    for (int i = 0; i < 4; i++) { /* on, off, on, off */
        one.Privileges[0].Attributes = i % 2 ? 0 : SE_PRIVILEGE_ENABLED;
        IS(AdjustTokenPrivileges(token, FALSE, &one, sizeof old, &old, &length), 1);
        IS(GetLastError(), ERROR_SUCCESS);
        IS(length, sizeof old);
        if (i)
            IS(old.Privileges[0].Attributes, i % 2 ? SE_PRIVILEGE_ENABLED : 0);
    }
    FAILS(AdjustTokenPrivileges(token, FALSE, &one, sizeof old - 1, &old, &length), 0,
          ERROR_INSUFFICIENT_BUFFER);
    FAILS(AdjustTokenPrivileges(token, FALSE, NULL, 0, NULL, NULL), 0, ERROR_INVALID_PARAMETER);
    one.Privileges[0].Luid.LowPart = 99;
    IS(AdjustTokenPrivileges(token, FALSE, &one, 0, NULL, NULL), 1);
    IS(GetLastError(), ERROR_NOT_ALL_ASSIGNED);
    IS(CloseHandle(token), 1);
    FAILS(OpenThreadToken(GetCurrentThread(), TOKEN_QUERY, TRUE, &token), 0, ERROR_NO_TOKEN);
}

/* --- The rest. --- */

static unsigned __stdcall own_code(void *code) { return (unsigned)(ULONG_PTR)code; }

static void library(void)
{
    char text[70];
    DWORD code;
    IS(rand(), 41); /* Microsoft's, which begin as with 1 */
    srand(1);
    IS(rand(), 41);
    IS(rand(), 18467);
    srand(5);
    IS(rand(), 54);
    IS(strcmp(_itoa(-255, text, 16), "ffffff01"), 0);
    IS(strcmp(_itoa(-255, text, 10), "-255"), 0);
    IS(strcmp(_i64toa(INT64_MIN, text, 10), "-9223372036854775808"), 0);
    IS(strcmp(_ui64toa(UINT64_MAX, text, 2) + 60, "1111"), 0);
    IS(strcmp(_ultoa(35, text, 36), "z"), 0);
    HANDLE thread = (HANDLE)_beginthreadex(NULL, 0, own_code, (void *)123, 0, NULL);
    IS(WaitForSingleObject(thread, INFINITE), 0);
    IS(GetExitCodeThread(thread, &code) && code == 123, 1);
    IS(CloseHandle(thread), 1);
    unsigned char *block = LocalAlloc(0, 100);
    memset(block, 0xee, 100);
    LocalFree(block);
    block = LocalAlloc(LPTR, 100);
    IS(block[0] | block[99], 0);
    IS((LONG_PTR)LocalFree(block), 0);
}

static void contexts(void)
{
    CONTEXT c;
    ULONG64 rbx, r12, r13, r15;
    RtlCaptureContext(&c);
    asm volatile("movabs $0x1212, %%r12\nmovabs $0x1313, %%r13\n"
                 "movabs $0x1515, %%r15\nmov $0xbb, %%ebx\nmov %4, %%rcx\nsub $32, %%rsp\n"
                 "call *%5\nadd $32, %%rsp\n"
                 "mov %%rbx, %0\nmov %%r12, %1\nmov %%r13, %2\nmov %%r15, %3"
                 : "=r"(rbx), "=r"(r12), "=r"(r13), "=r"(r15)
                 : "r"(&c), "r"(RtlCaptureContext)
                 : "rax", "rcx", "rdx", "rbx", "r12", "r13", "r15", "memory", "cc");
    IS(c.Rbx, 0xbb);
    IS(c.R12, 0x1212);
    IS(c.R13, 0x1313);
    IS(c.R15, 0x1515);
    IS(rbx + r12 + r13 + r15, 0xbb + 0x1212 + 0x1313 + 0x1515);
    IS(c.SegCs & 3, 3);
    IS(c.ContextFlags & CONTEXT_FULL, CONTEXT_FULL);
}

/* __try { function(argument); return 0; } __except (filter(GetExceptionInformation(), frame)) {
 * return GetExceptionCode(); } */
DWORD filtered(void (*function)(ULONG_PTR), ULONG_PTR argument);
asm(".text\n"
    ".globl filtered\n"
    ".seh_proc filtered\n"
    "filtered:\n"
    "    sub $0x28, %rsp\n"
    "    .seh_stackalloc 0x28\n"
    "    .seh_endprologue\n"
    "    mov %rcx, %rax\n"
    "    mov %rdx, %rcx\n"
    "1:  call *%rax\n"
    "    xor %eax, %eax\n"
    "2:  add $0x28, %rsp\n"
    "    ret\n"
    "    .seh_handler __C_specific_handler, @except, @unwind\n"
    "    .seh_handlerdata\n"
    "    .long 1\n"
    "    .rva 1b, 2b, filter, 2b\n"
    "    .text\n"
    "    .seh_endproc\n");

static unsigned filters;
static DWORD seen[3];

LONG filter(PEXCEPTION_POINTERS pointers, PVOID frame);
LONG filter(PEXCEPTION_POINTERS pointers, PVOID frame)
{
    seen[filters++] = pointers->ExceptionRecord->ExceptionCode;
    return filters == 1 ? EXCEPTION_CONTINUE_EXECUTION : EXCEPTION_EXECUTE_HANDLER;
}

static void raise_flags(ULONG_PTR flags) { RaiseException(0xe0000001, (DWORD)flags, 0, NULL); }

static void exceptions(void)
{
    IS(filtered(raise_flags, 0), 0); /* goes on after it */
    IS(filters, 1);
    filters = 0;
    IS(filtered(raise_flags, EXCEPTION_NONCONTINUABLE), EXCEPTION_NONCONTINUABLE_EXCEPTION);
    IS(filters, 2);
    IS(seen[0], 0xe0000001);
    IS(seen[1], EXCEPTION_NONCONTINUABLE_EXCEPTION);
}

/* %1!s! is %1; numbers from 1 on, of two digits at most. */
static void messages(void)
{
    const char *words[] = { "one", "two" };
    char text[40] = "";
    IS(FormatMessageA(FORMAT_MESSAGE_FROM_STRING | FORMAT_MESSAGE_ARGUMENT_ARRAY,
                      "%2!s!, %1!s %%%1.%0 not", 0, 0, text, sizeof text, (va_list *)words),
       16);
    IS(strcmp(text, "two, one!s %one."), 0);
}

/* kernel32.dll has none of these. */
typedef struct {
    ULONG size;
    ULONG *bits;
} BITS;
static void *ntdll(const char *name)
{
    return (void *)GetProcAddress(GetModuleHandleA("ntdll.dll"), name);
}

static void bits(void)
{
    ULONG words[3] = { 0, 0, 0xffffffff };
    BITS map;
    VOID(NTAPI * initialize)(BITS *, ULONG *, ULONG) = ntdll("RtlInitializeBitMap");
    VOID(NTAPI * set)(BITS *, ULONG, ULONG) = ntdll("RtlSetBits");
    BOOLEAN(NTAPI * are_set)(BITS *, ULONG, ULONG) = ntdll("RtlAreBitsSet");
    BOOLEAN(NTAPI * are_clear)(BITS *, ULONG, ULONG) = ntdll("RtlAreBitsClear");
    initialize(&map, words, 60);
    IS(map.bits == words && map.size == 60, 1);
    set(&map, 30, 30);
    IS(words[0], 0xc0000000);
    IS(words[1], 0x0fffffff);
    IS(are_set(&map, 30, 30), TRUE);
    IS(are_set(&map, 29, 31), FALSE);
    IS(are_set(&map, 30, 31), FALSE); /* beyond the map nothing is */
    IS(are_set(&map, 30, 0), FALSE);
    IS(are_set(&map, 60, 1), FALSE);
    IS(are_set(&map, 64, 1), FALSE);
    IS(are_set(&map, 32, 0xffffffff), FALSE);
    IS(are_clear(&map, 0, 30), TRUE);
    IS(are_clear(&map, 0, 31), FALSE);
    ULONG *last = (ULONG *)((char *)VirtualAlloc(NULL, 4096, MEM_COMMIT, PAGE_READWRITE) + 4088);
    last[0] = last[1] = 0xffffffff;
    BITS whole = { 64, last };
    IS(are_set(&whole, 32, 0xffffffff), FALSE); /* it does not read beyond the page */
    set(&map, 0, 1);
    IS(are_clear(&map, 0, 1) || !are_set(&map, 0, 1) || are_set(&map, 0, 2), FALSE);
}

int main(void)
{
    variables();
    code_pages();
    dates();
    privileges();
    library();
    contexts();
    exceptions();
    messages();
    bits();
    return check_result();
}
