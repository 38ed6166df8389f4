/* SPDX-License-Identifier: MIT */
/* What benchmarks ask of the machine: processors and caches, cycles and times of threads, the
 * console, hints. The first line says how long after power-on a program of 250 KB comes to it. */
#include <string.h>
#include <windows.h>
#include <mmsystem.h>
#include <intrin.h>
#include <stdlib.h>
#include "check.h"

#define PROCESSOR_GROUP 64

errno_t rand_s(unsigned *);

static volatile const char padding[0x4000] = { 1 }; /* to 250 KB */

/* --- Processors. --- */

typedef SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX INFORMATION;
static BYTE buffer[0x10000];

static DWORD query(int relation)
{
    DWORD length = 0, all;
    FAILS(GetLogicalProcessorInformationEx(relation, NULL, &length), FALSE,
          ERROR_INSUFFICIENT_BUFFER);
    all = length;
    length--;
    IS(GetLogicalProcessorInformationEx(relation, (INFORMATION *)buffer, &length), FALSE);
    IS(length, all);
    IS(GetLogicalProcessorInformationEx(relation, (INFORMATION *)buffer, &length), TRUE);
    IS(length, all);
    return all;
}

static int count_bits(KAFFINITY mask) { return (int)__popcnt64(mask); }

static void check_relations(DWORD processors)
{
    int seen[5] = { 0 }, cores = 0, in_package = 0, in_groups = 0, in_caches[5][4] = { 0 };
    KAFFINITY masks[4] = { 0 };
    DWORD length = query(RelationAll), at = 0;
    for (const INFORMATION *x; at < length; at += x->Size) {
        x = (const INFORMATION *)(buffer + at);
        if (x->Relationship > RelationGroup || !x->Size || at + x->Size > length) {
            failures++;
            break;
        }
        seen[x->Relationship]++;
        if (x->Relationship == RelationProcessorCore) {
            const GROUP_AFFINITY *a = &x->Processor.GroupMask[0];
            cores += count_bits(a->Mask);
            masks[a->Group] ^= a->Mask;
        } else if (x->Relationship == RelationProcessorPackage) {
            for (WORD g = 0; g < x->Processor.GroupCount; g++)
                in_package += count_bits(x->Processor.GroupMask[g].Mask);
        } else if (x->Relationship == RelationCache) {
            IS(x->Cache.GroupMask.Mask != 0, 1);
            in_caches[x->Cache.Level][x->Cache.Type] += count_bits(x->Cache.GroupMask.Mask);
        } else if (x->Relationship == RelationGroup) {
            IS(x->Group.ActiveGroupCount, GetActiveProcessorGroupCount());
            for (WORD g = 0; g < x->Group.ActiveGroupCount; g++) {
                in_groups += x->Group.GroupInfo[g].ActiveProcessorCount;
                IS(x->Group.GroupInfo[g].ActiveProcessorCount, GetActiveProcessorCount(g));
                IS(masks[g], x->Group.GroupInfo[g].ActiveProcessorMask); /* each core once */
            }
        }
    }
    IS(at, length);
    IS(cores, processors);
    IS(in_package, processors);
    IS(in_groups, processors);
    for (unsigned i = 0; i < 20; i++) /* each processor has one of its kind, or none */
        IS(in_caches[i / 4][i % 4] && in_caches[i / 4][i % 4] != (int)processors, 0);
    IS(seen[RelationProcessorCore], processors);
    IS(seen[RelationNumaNode], 1);
    IS(seen[RelationProcessorPackage], 1);
    IS(seen[RelationGroup], 1);
    IS(query(RelationProcessorCore) / ((INFORMATION *)buffer)->Size, processors);
    length = sizeof buffer;
    FAILS(GetLogicalProcessorInformationEx(77, (INFORMATION *)buffer, &length), FALSE,
          ERROR_INVALID_PARAMETER);
}

static void check_plain(void)
{
    SYSTEM_LOGICAL_PROCESSOR_INFORMATION *x = (void *)buffer;
    SYSTEM_INFO info;
    DWORD length = 0, cores = 0, caches = 0, sizes = 0;
    KAFFINITY package = 0;
    GetSystemInfo(&info);
    FAILS(GetLogicalProcessorInformation(NULL, &length), FALSE, ERROR_INSUFFICIENT_BUFFER);
    IS(GetLogicalProcessorInformation(x, &length), TRUE);
    for (DWORD i = 0; i < length / sizeof *x; i++) {
        cores += x[i].Relationship == RelationProcessorCore;
        if (x[i].Relationship == RelationProcessorPackage)
            package = x[i].ProcessorMask;
        if (x[i].Relationship == RelationCache) {
            caches++;
            sizes += x[i].Cache.Size;
            if (!x[i].ProcessorMask || x[i].Cache.LineSize < 16 || x[i].Cache.Size < 1024 ||
                x[i].Cache.Level < 1 || x[i].Cache.Level > 4)
                failures++;
        }
    }
    IS(cores, info.dwNumberOfProcessors);
    IS(package, info.dwActiveProcessorMask);
    printf("%lu caches, %lu KB\n", caches, sizes / 1024);
    ULONG node = 9;
    IS(GetNumaHighestNodeNumber(&node), TRUE);
    IS(node, 0);
}

/* --- Time. --- */

static volatile LONG stop;
static DWORD WINAPI sleep_long(LPVOID unused)
{
    while (!stop)
        Sleep(5);
    return 0;
}

static ULONGLONG number(FILETIME t) { return (ULONGLONG)t.dwHighDateTime << 32 | t.dwLowDateTime; }

static void check_cycles(void)
{
    HANDLE sleeper = CreateThread(NULL, 0, sleep_long, NULL, 0, NULL), weak;
    ULONG64 one, two, begin = __rdtsc(), others, end;
    FILETIME created, ended, kernel, user, before, now;
    IS(QueryThreadCycleTime(GetCurrentThread(), &one), TRUE);
    for (volatile int i = 0; i < 100000; i++)
        ;
    IS(QueryThreadCycleTime(GetCurrentThread(), &two), TRUE);
    end = __rdtsc();
    IS(two > one && two - one <= end - begin, TRUE); /* no more than passed */
    Sleep(50);
    IS(QueryThreadCycleTime(sleeper, &others), TRUE);
    IS(others > 0 && others < __rdtsc() - begin, TRUE);
    GetSystemTimeAsFileTime(&before);
    IS(GetThreadTimes(sleeper, &created, &ended, &kernel, &user), TRUE);
    IS(number(created) <= number(before), TRUE);
    IS(number(ended), 0);
    stop = 1;
    IS(WaitForSingleObject(sleeper, 60000), WAIT_OBJECT_0);
    IS(GetThreadTimes(sleeper, &created, &ended, &kernel, &user), TRUE);
    GetSystemTimeAsFileTime(&now);
    IS(number(ended) >= number(before) && number(ended) <= number(now), TRUE);
    IS(number(user) + number(kernel) <= number(ended) - number(created), TRUE);
    weak = limited(sleeper, SYNCHRONIZE);
    FAILS(QueryThreadCycleTime(weak, &one), FALSE, ERROR_ACCESS_DENIED);
    IS(timeBeginPeriod(1), TIMERR_NOERROR);
    DWORD start = timeGetTime();
    Sleep(20);
    IS(timeGetTime() - start >= 19, TRUE); /* Sleep begins within a millisecond that is counted */
    IS(timeEndPeriod(1), TIMERR_NOERROR);
    IS(timeBeginPeriod(0), TIMERR_NOCANDO);
    IS(timeEndPeriod(0), TIMERR_NOCANDO);
    CloseHandle(weak);
    CloseHandle(sleeper);
}

/* --- The console, hints. --- */

static void check_console(void)
{
    HANDLE out = CreateFileA("CONOUT$", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_WRITE, NULL,
                             OPEN_EXISTING, 0, NULL);
    HANDLE in = CreateFileW(L"conin$", GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, 0, NULL);
    CONSOLE_SCREEN_BUFFER_INFO info;
    DWORD n = 0;
    char byte;
    IS(WriteConsoleA(out, "to the console\n", 15, &n, NULL), TRUE);
    IS(n, 15);
    IS(ReadFile(in, &byte, 1, &n, NULL), TRUE);
    IS(n, 0);
    IS(GetConsoleScreenBufferInfo(out, &info), TRUE);
    IS(info.dwSize.X, 80);
    IS(info.wAttributes, FOREGROUND_RED | FOREGROUND_GREEN | FOREGROUND_BLUE);
    IS(GetConsoleScreenBufferInfo(in, &info), FALSE);
    IS(SetConsoleTextAttribute(out, FOREGROUND_RED), TRUE);
    IS(SetConsoleTitleA("title") && SetConsoleCtrlHandler(NULL, TRUE), TRUE);
    IS(CloseHandle(out) && CloseHandle(in), TRUE);
    IS(CreateFileA("CONOUT", GENERIC_READ, 0, NULL, OPEN_EXISTING, 0, NULL) == INVALID_HANDLE_VALUE,
       TRUE);
}

static void check_hints(DWORD processors)
{
    DWORD code = 0;
    unsigned one = 0, two = 0, three = 0;
    IS(SetThreadIdealProcessor(GetCurrentThread(), 0), 0);
    IS(SetThreadIdealProcessor(GetCurrentThread(), processors), (DWORD)-1);
    IS(SetThreadPriorityBoost(GetCurrentThread(), TRUE), TRUE);
    IS(GetProcessId(GetCurrentProcess()), GetCurrentProcessId());
    IS(GetExitCodeProcess(GetCurrentProcess(), &code), TRUE);
    IS(code, STILL_ACTIVE);
    IS(rand_s(&one) || rand_s(&two) || rand_s(&three), 0);
    IS(one != two || two != three, TRUE);
    IS(padding[0], 1);
}

int main(void)
{
    printf("first line after %llu\n", __rdtsc());
    DWORD processors = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    check_relations(processors);
    check_plain();
    check_cycles();
    check_console();
    check_hints(processors);
    printf("%lu processors, %d checks, %d wrong\n", processors, checks, failures);
    return failures;
}
