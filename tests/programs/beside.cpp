// SPDX-License-Identifier: MIT
// What a program asks for beside counters: processors, times, variables, texts, dates, privileges,
// the console; what C++ rests on. The first line says how long after power-on it comes.
#include <windows.h>
#include <mmsystem.h>
#include <intrin.h>
#include <cstdlib>
#include <cstring>
#include <future>
#include <random>
#include <stdexcept>
#include <thread>
#include "check.h"

struct traced {
    const char *name;
    explicit traced(const char *n) : name(n) { printf("begin %s\n", name); }
    ~traced() { printf("end %s\n", name); }
};
static traced first("first"), second("second");

using INFORMATION = SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX;
static BYTE buffer[0x10000];

static void machine(DWORD processors)
{
    auto *x = (SYSTEM_LOGICAL_PROCESSOR_INFORMATION *)buffer;
    DWORD length = 0, cores = 0, caches = 0, sizes = 0, all = 0, at = 0, seen[5] = {};
    ULONG node = 9;
    IS(GetLogicalProcessorInformation(nullptr, &length), FALSE);
    IS(GetLogicalProcessorInformation(x, &length), TRUE);
    for (DWORD i = 0; i < length / sizeof *x; i++) {
        cores += x[i].Relationship == RelationProcessorCore;
        caches += x[i].Relationship == RelationCache;
        sizes += x[i].Relationship == RelationCache ? x[i].Cache.Size : 0;
    }
    IS(cores, processors);
    printf("%lu caches, %lu KB\n", caches, sizes / 1024);
    length = sizeof buffer;
    IS(GetLogicalProcessorInformationEx(RelationAll, (INFORMATION *)buffer, &length), TRUE);
    for (INFORMATION *e; at < length; at += e->Size) {
        e = (INFORMATION *)(buffer + at);
        seen[e->Relationship]++;
        if (e->Relationship == RelationProcessorCore || e->Relationship == RelationProcessorPackage)
            all += (DWORD)__popcnt64(e->Processor.GroupMask[0].Mask);
        if (e->Relationship == RelationGroup)
            all += e->Group.GroupInfo[0].ActiveProcessorCount;
    }
    IS(at == length && all == 3 * processors, 1); // each in a core, a package and a group
    IS(seen[RelationProcessorCore] == processors && seen[RelationCache] == caches, 1);
    IS(seen[RelationNumaNode] == 1 && seen[RelationGroup] == 1, 1);
    IS(GetNumaHighestNodeNumber(&node) && node == 0, TRUE);
    IS(SetThreadIdealProcessor(GetCurrentThread(), processors), (DWORD)-1);
    IS(SetThreadPriorityBoost(GetCurrentThread(), TRUE), TRUE);
}

static ULONGLONG number(FILETIME t) { return (ULONGLONG)t.dwHighDateTime << 32 | t.dwLowDateTime; }
static volatile ULONG64 last_look;

static DWORD WINAPI work(LPVOID)
{
    for (volatile int i = 0; i < 100000; i = i + 1)
        ;
    QueryThreadCycleTime(GetCurrentThread(), (PULONG64)&last_look);
    return 0;
}

static void times()
{
    HANDLE worker = CreateThread(nullptr, 0, work, nullptr, 0, nullptr);
    ULONG64 begin = __rdtsc(), mine = 0, all = 0, later = 0, cycles = 0;
    FILETIME created, ended, kernel, user;
    IS(WaitForSingleObject(worker, INFINITE), WAIT_OBJECT_0);
    IS(QueryThreadCycleTime(GetCurrentThread(), &mine), TRUE);
    IS(QueryProcessCycleTime(GetCurrentProcess(), &all), TRUE);
    IS(QueryThreadCycleTime(GetCurrentThread(), &later), TRUE);
    IS(QueryThreadCycleTime(worker, &cycles), TRUE);
    IS(later > mine && later - mine <= __rdtsc() - begin, TRUE);
    IS(all >= mine + last_look && all <= later + cycles, TRUE);
    IS(GetThreadTimes(worker, &created, &ended, &kernel, &user), TRUE);
    IS(number(user) + number(kernel) <= number(ended) - number(created), TRUE);
    IS(GetProcessTimes(GetCurrentProcess(), &created, &ended, &kernel, &user), TRUE);
    IS(number(kernel) + number(user) > 0 && number(ended) == 0, TRUE);
    CloseHandle(worker);
    LARGE_INTEGER frequency;
    IS(QueryUnbiasedInterruptTime(&begin) && begin > 0, TRUE);
    IS(QueryPerformanceFrequency(&frequency) && frequency.QuadPart == 10000000, TRUE);
    IS(timeBeginPeriod(1) | timeEndPeriod(1), TIMERR_NOERROR);
    IS(timeBeginPeriod(0) & timeEndPeriod(0), TIMERR_NOCANDO);
    DWORD code = 0;
    IS(GetProcessId(GetCurrentProcess()), GetCurrentProcessId());
    IS(GetExitCodeProcess(GetCurrentProcess(), &code) && code == STILL_ACTIVE, TRUE);
}

static void memory()
{
    auto *block = (BYTE *)LocalAlloc(LPTR, 100);
    IS(block && !block[0] && !block[99] && !LocalFree(block), 1);
}

static void texts()
{
    const char utf8[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"; // 1 to 4 bytes each
    char back[16], text[16];
    WCHAR wide[16], *all = GetEnvironmentStringsW();
    IS(MultiByteToWideChar(CP_UTF8, 0, utf8, -1, nullptr, 0), 6);
    FAILS(MultiByteToWideChar(CP_UTF8, 0, utf8, -1, wide, 5), 0, ERROR_INSUFFICIENT_BUFFER);
    FAILS(MultiByteToWideChar(1252, 0, utf8, -1, wide, 16), 0, ERROR_INVALID_PARAMETER);
    IS(MultiByteToWideChar(CP_UTF8, 0, utf8, -1, wide, 6), 6);
    IS(std::wcscmp(wide, L"a\xe9\x20ac\xd83d\xde00"), 0);
    IS(WideCharToMultiByte(CP_UTF8, 0, wide, -1, back, 10, nullptr, nullptr), 0);
    IS(WideCharToMultiByte(CP_UTF8, 0, wide, -1, back, 11, nullptr, nullptr), 11);
    IS(std::strcmp(back, utf8), 0);
    for (const char *bad : { "\x80", "\xc0\x80", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                             "\xe2\x82", "\xf8\x88\x80\x80" }) {
        IS(MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, bad, -1, wide, 16), 0);
        IS(MultiByteToWideChar(CP_UTF8, 0, bad, -1, wide, 16) > 1 && wide[0] == 0xfffd, 1);
    }
    IS(lstrlenA("four") + lstrlenW(L"five!") + lstrlenA(nullptr), 9);
    IS(SetEnvironmentVariableA("Longer", "first") && SetEnvironmentVariableA("Long", "1234"), 1);
    IS(GetEnvironmentVariableA("LONG", text, 5) == 4 && !std::strcmp(text, "1234"), 1);
    IS(GetEnvironmentVariableA("long", text, 4), 5); // the NUL counts too
    wide[5] = 'x';
    IS(GetEnvironmentVariableW(L"Longer", wide, 6) == 5 && !std::wcscmp(wide, L"first"), 1);
    IS(SetEnvironmentVariableA("Longer", nullptr), 1);
    FAILS(GetEnvironmentVariableA("Longer", text, sizeof text), 0, ERROR_ENVVAR_NOT_FOUND);
    IS(FreeEnvironmentStringsW(all), 1);
}

static ULONGLONG file_time(WORD year, WORD month, WORD day, WORD hour)
{
    SYSTEMTIME time = { year, month, 0, day, hour, 59, 58, 999 }, back;
    FILETIME file;
    IS(SystemTimeToFileTime(&time, &file) && FileTimeToSystemTime(&file, &back), 1);
    time.wDayOfWeek = (WORD)((number(file) / 864000000000 + 1) % 7); // 1601-01-01 was a Monday
    IS(std::memcmp(&time, &back, sizeof time), 0);
    return number(file);
}

static bool refused(WORD year, WORD month, WORD day, WORD hour)
{
    SYSTEMTIME time = { year, month, 0, day, hour };
    FILETIME file;
    return !SystemTimeToFileTime(&time, &file) && GetLastError() == ERROR_INVALID_PARAMETER;
}

static void dates()
{
    const ULONGLONG hour = 36000000000, day = 24 * hour;
    IS(file_time(2000, 3, 1, 0) - file_time(2000, 2, 28, 23), day + hour); // a leap year
    IS(file_time(1900, 3, 1, 0) - file_time(1900, 2, 28, 23), hour);       // none
    IS(file_time(1970, 1, 1, 0), 116444736000000000 + hour - 10000 - 10000000);
    IS(refused(1600, 12, 31, 0) && refused(2020, 13, 1, 0) && refused(2020, 1, 32, 0), 1);
    IS(refused(2020, 1, 0, 0) && refused(2020, 1, 1, 24), 1);
    SYSTEMTIME local;
    GetLocalTime(&local);
    IS(local.wYear == 2020 && local.wMonth == 1, 1);
}

static void privileges()
{
    HANDLE token;
    TOKEN_PRIVILEGES one = { 1, { { { 0, 0 }, SE_PRIVILEGE_ENABLED } } }, old;
    DWORD length = 0;
    FAILS(LookupPrivilegeValueA(nullptr, "SeDebug", &one.Privileges[0].Luid), 0,
          ERROR_NO_SUCH_PRIVILEGE);
    IS(LookupPrivilegeValueW(nullptr, L"SeSystemProfilePrivilege", &one.Privileges[0].Luid), 1);
    IS(OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY, &token), 1);
    IS(AdjustTokenPrivileges(token, FALSE, &one, 0, nullptr, nullptr), 1);
    IS(AdjustTokenPrivileges(token, FALSE, &one, sizeof old, &old, &length), 1);
    IS(old.Privileges[0].Attributes, SE_PRIVILEGE_ENABLED);
    one.Privileges[0].Luid.LowPart = 99;
    FAILS(AdjustTokenPrivileges(token, FALSE, &one, 0, nullptr, nullptr), TRUE,
          ERROR_NOT_ALL_ASSIGNED);
    CloseHandle(token);
    FAILS(OpenThreadToken(GetCurrentThread(), TOKEN_QUERY, TRUE, &token), 0, ERROR_NO_TOKEN);
}

static void console()
{
    HANDLE out = CreateFileA("CONOUT$", GENERIC_WRITE, 0, nullptr, OPEN_EXISTING, 0, nullptr),
           in = CreateFileW(L"conin$", GENERIC_READ, 0, nullptr, OPEN_EXISTING, 0, nullptr);
    CONSOLE_SCREEN_BUFFER_INFO info;
    DWORD n = 0;
    IS(WriteConsoleA(out, "to the console\n", 15, &n, nullptr) && n == 15, TRUE);
    IS(ReadFile(in, buffer, 1, &n, nullptr) && n == 0, TRUE);
    IS(GetConsoleScreenBufferInfo(out, &info) && info.dwSize.X == 80, TRUE);
    IS(GetConsoleScreenBufferInfo(in, &info), FALSE);
    IS(SetConsoleTextAttribute(out, FOREGROUND_RED) && SetConsoleTitleA("title"), TRUE);
    IS(SetConsoleCtrlHandler(nullptr, TRUE) && CloseHandle(out) && CloseHandle(in), TRUE);
}

static void exceptions()
{
    auto thrown = std::async(std::launch::async, [] { throw std::runtime_error("thrown"); });
    bool caught = false;
    try {
        thrown.get();
    } catch (const std::exception &e) {
        caught = std::strcmp(e.what(), "thrown") == 0;
    }
    IS(caught, 1);
    std::random_device one, two;
    IS(one() != two() || one() != two(), 1);
}

int main()
{
    printf("first line after %llu\n", __rdtsc());
    const DWORD processors = std::thread::hardware_concurrency();
    machine(processors);
    times();
    memory();
    texts();
    dates();
    privileges();
    console();
    exceptions();
    return check_result();
}
