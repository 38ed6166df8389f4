// SPDX-License-Identifier: MIT
// What Windows programmers write first: each line of it once stopped here. Prints what is wrong,
// and how many checks it made.
#include <Windows.h>
#include <evntcons.h>
#include <evntrace.h>
#include <cstdio>
#include <cstring>
#include <cwchar>
#include <intrin.h>
#include <winternl.h>

enum State { Ready, Running, Waiting };
enum KPROFILE_SOURCE { ProfileTime, ProfileTotalIssues = 2 };
enum EVENT_TRACE_INFORMATION_CLASS { EventTraceProfileSourceAddInformation = 21 };
struct EVENT_TRACE_PROFILE_ADD_INFORMATION {
    EVENT_TRACE_INFORMATION_CLASS Class;
};

static int checks, failures;

static void check(bool holds, const char *what)
{
    checks++;
    failures += !holds;
    if (!holds)
        std::printf("does not hold: %s; last error %lu\n", what, GetLastError());
}
#define CHECK(condition) check(condition, #condition)

static void texts()
{
    char text[40];
    wchar_t wide[40];
    CHECK(std::snprintf(text, sizeof text, "%ls", L"wide") == 4 && !std::strcmp(text, "wide"));
    std::printf("%S %ls\n", L"capital", L"small");
    std::wprintf(L"%ls %d\n", L"wprintf", 7);
    std::swprintf(wide, 40, L"%d-%ls", 12, L"x");
    CHECK(!std::wcscmp(wide, L"12-x"));
    char *allocated = nullptr;
    CHECK(FormatMessageA(FORMAT_MESSAGE_ALLOCATE_BUFFER | FORMAT_MESSAGE_FROM_SYSTEM, nullptr,
                         ERROR_ACCESS_DENIED, 0, (LPSTR)&allocated, 0, nullptr) == 19 &&
          !LocalFree(allocated));
}

static void traces()
{
    struct {
        EVENT_TRACE_PROPERTIES p;
        WCHAR name[32];
    } q = {};
    TRACEHANDLE session = 0;
    q.p.Wnode.BufferSize = sizeof q;
    q.p.Wnode.ClientContext = 1;
    q.p.LogFileMode = EVENT_TRACE_REAL_TIME_MODE | EVENT_TRACE_SYSTEM_LOGGER_MODE;
    q.p.LoggerNameOffset = sizeof q.p;
    CHECK(StartTraceW(&session, L"first", &q.p) == ERROR_SUCCESS);
    CHECK(QueryTraceW(session, nullptr, &q.p) == ERROR_SUCCESS &&
          FlushTraceW(0, L"first", &q.p) == ERROR_SUCCESS);
    CHECK(UpdateTraceW(session, nullptr, &q.p) == ERROR_SUCCESS);
    CHECK(StopTraceW(session, nullptr, &q.p) == ERROR_SUCCESS);
    CHECK(StopTraceA(0, "first", &q.p) == ERROR_WMI_INSTANCE_NOT_FOUND);
    EVENT_RECORD record = {};
    CHECK(&record.EventHeader.ProcessorTime == (ULONG64 *)&record.EventHeader.KernelTime);
    CHECK(!record.BufferContext.ProcessorNumber && !q.p.Wnode.Linkage);
}

// ntddk.h's, which a program cannot include together with windows.h.
struct HARDWARE_COUNTER {
    HARDWARE_COUNTER_TYPE Type;
    ULONG Reserved;
    ULONG64 Index;
};

static void counters()
{
    HMODULE kernel = LoadLibraryA("ntoskrnl.exe");
    auto set_counters = reinterpret_cast<NTSTATUS(NTAPI *)(HARDWARE_COUNTER *, ULONG)>(
        GetProcAddress(kernel, "KeSetHardwareCounterConfiguration"));
    auto query_counters = reinterpret_cast<NTSTATUS(NTAPI *)(HARDWARE_COUNTER *, ULONG, ULONG *)>(
        GetProcAddress(kernel, "KeQueryHardwareCounterConfiguration"));
    HARDWARE_COUNTER two[] = { { PMCCounter, 0, ProfileTotalIssues }, { PMCCounter, 0, 6 } },
                     got[2];
    ULONG count = 0;
    CHECK(set_counters(two, 2) == 0 && query_counters(got, 2, &count) == 0 && count == 2);
    CHECK(set_counters(nullptr, 0) == 0);
    CHECK(RtlNtStatusToDosError((NTSTATUS)0xC00000B7) == 550); /* STATUS_PROFILING_NOT_STARTED */
}

int main()
{
    State state = Waiting;
    CHECK(state == 2);
    texts();
    traces();
    counters();
    std::printf("%d checks\n", checks);
    return failures;
}
