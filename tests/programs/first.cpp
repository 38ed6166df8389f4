// SPDX-License-Identifier: MIT
// What Windows programmers write first: each line of it once stopped here. Prints what is wrong,
// and how many checks it made.
#include <Windows.h>
#include <evntcons.h>
#include <evntrace.h>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <cwchar>
#include <intrin.h>
#include <winternl.h>
#include "kernel.h"

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
    CHECK(FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, nullptr,
                         ERROR_INVALID_PARAMETER, 0, text, sizeof text, nullptr) == 29 &&
          !std::strcmp(text, "The parameter is incorrect.\r\n"));
    char *allocated = nullptr;
    CHECK(FormatMessageA(FORMAT_MESSAGE_ALLOCATE_BUFFER | FORMAT_MESSAGE_FROM_SYSTEM, nullptr,
                         ERROR_ACCESS_DENIED, 0, (LPSTR)&allocated, 0, nullptr) == 19 &&
          !LocalFree(allocated));
    CHECK(!FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM, nullptr, 0x12345, 0, text, sizeof text,
                          nullptr) &&
          GetLastError() == ERROR_MR_MID_NOT_FOUND);
}

static volatile long hits;

static DWORD WINAPI hit(LPVOID event)
{
    InterlockedIncrement(&hits);
    return SetEvent((HANDLE)event);
}

static void waits()
{
    HANDLE event = CreateEvent(nullptr, FALSE, FALSE, nullptr),
           other = CreateEventW(nullptr, TRUE, TRUE, nullptr);
    HANDLE both[] = { event, other };
    CHECK(event && other);
    HANDLE thread = CreateThread(nullptr, 0, hit, event, CREATE_SUSPENDED, nullptr);
    CHECK(WaitForSingleObject(thread, 5) == WAIT_TIMEOUT && !hits);
    CHECK(SetThreadPriority(thread, THREAD_PRIORITY_HIGHEST) &&
          GetThreadPriority(thread) == THREAD_PRIORITY_HIGHEST);
    CHECK(ResumeThread(thread) == 1);
    CHECK(WaitForMultipleObjects(2, both, TRUE, INFINITE) == WAIT_OBJECT_0 && hits == 1);
    CHECK(WaitForMultipleObjects(2, both, FALSE, 0) == WAIT_OBJECT_0 + 1);
    HANDLE semaphore = CreateSemaphore(nullptr, 1, 2, nullptr),
           mutex = CreateMutex(nullptr, TRUE, nullptr);
    CHECK(ReleaseSemaphore(semaphore, 1, nullptr) && !ReleaseSemaphore(semaphore, 1, nullptr) &&
          GetLastError() == ERROR_TOO_MANY_POSTS);
    CHECK(ReleaseMutex(mutex) && !ReleaseMutex(mutex) && GetLastError() == ERROR_NOT_OWNER);
    CHECK(WaitForSingleObject(nullptr, 0) == WAIT_FAILED && GetLastError() == ERROR_INVALID_HANDLE);
    CHECK(WaitForMultipleObjects(0, both, FALSE, 0) == WAIT_FAILED &&
          GetLastError() == ERROR_INVALID_PARAMETER);
    SRWLOCK lock = SRWLOCK_INIT;
    AcquireSRWLockShared(&lock);
    CHECK(!TryAcquireSRWLockExclusive(&lock) && TryAcquireSRWLockShared(&lock));
    ReleaseSRWLockShared(&lock);
    ReleaseSRWLockShared(&lock);
    AcquireSRWLockExclusive(&lock);
    CONDITION_VARIABLE condition = CONDITION_VARIABLE_INIT;
    CHECK(!SleepConditionVariableSRW(&condition, &lock, 2, 0) && GetLastError() == ERROR_TIMEOUT);
    ReleaseSRWLockExclusive(&lock);
}

static LONG ended;
static VOID WINAPI on_end(PVOID value) { ended += (LONG)(LONG_PTR)value; }
static DWORD slot;
static DWORD WINAPI use_slot(LPVOID value) { return FlsSetValue(slot, value); }
static BOOL CALLBACK once(PINIT_ONCE, PVOID count, PVOID *) { return ++*(int *)count; }

static void memory_and_slots()
{
    DWORD old;
    INIT_ONCE begun = INIT_ONCE_STATIC_INIT;
    int count = 0;
    void *page = VirtualAlloc(nullptr, 4096, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
    CHECK(VirtualProtect(page, 4096, PAGE_READONLY, &old) && old == PAGE_READWRITE &&
          VirtualFree(page, 0, MEM_RELEASE));
    void *block = HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, 100);
    CHECK(block && HeapSize(GetProcessHeap(), 0, block) == 100 &&
          HeapFree(GetProcessHeap(), 0, block));
    slot = FlsAlloc(on_end);
    HANDLE thread = CreateThread(nullptr, 0, use_slot, (LPVOID)7, 0, nullptr);
    WaitForSingleObject(thread, INFINITE);
    CHECK(ended == 7 && FlsFree(slot) && !FlsFree(slot));
    InitOnceExecuteOnce(&begun, once, &count, nullptr);
    CHECK(InitOnceExecuteOnce(&begun, once, &count, nullptr) && count == 1);
    YieldProcessor();
    MemoryBarrier();
    unsigned auxiliary;
    CHECK(__rdtscp(&auxiliary) > 0);
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

static void counters()
{
    HARDWARE_COUNTER two[] = { { PMCCounter, 0, ProfileTotalIssues }, { PMCCounter, 0, 6 } },
                     got[2];
    ULONG count = 0;
    CHECK(set_counters(two, 2) == 0 && query_counters(got, 2, &count) == 0 && count == 2);
    CHECK(set_counters(nullptr, 0) == 0);
    CHECK(set_counters(two, 2) == 0 && set_counters(nullptr, 0) == 0);
    CHECK(RtlNtStatusToDosError((NTSTATUS)0xC0000045) == 87);  /* STATUS_INVALID_PAGE_PROTECTION */
    CHECK(RtlNtStatusToDosError((NTSTATUS)0xC00000B7) == 550); /* STATUS_PROFILING_NOT_STARTED */
    CHECK(RtlNtStatusToDosError((NTSTATUS)0xC00000B8) == 551); /* STATUS_PROFILING_NOT_STOPPED */
}

int main()
{
    State state = Waiting;
    CHECK(state == 2);
    texts();
    waits();
    memory_and_slots();
    traces();
    counters();
    std::printf("%d checks\n", checks);
    return failures;
}
