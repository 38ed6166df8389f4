/* SPDX-License-Identifier: MIT */
/* Threads, handles, system calls and registers as ring 3 sees them. */
#include "tests/ring3/work.h"
#include "tests/ring3/helpers.h"
#include "tests/ring3/services.h"

static DWORD return_argument(PVOID argument) { return (DWORD)(uint64_t)argument; }

TEST_USER(ring3, threads, "threads start with their argument and end with their exit code")
{
    for (DWORD i = 0; i < 20; i++) {
        DWORD code = 0, id = 0;
        HANDLE thread =
            CreateThread(NULL, 0, return_argument, (PVOID)(uint64_t)(i * 3 + 1), 0, &id);
        CHECK_EQ(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
        CHECK(GetExitCodeThread(thread, &code));
        CHECK_EQ(code, i * 3 + 1);
        CHECK(id != 0 && id != GetCurrentThreadId());
        CHECK(CloseHandle(thread));
        CHECK(!CloseHandle(thread));
        CHECK_EQ(GetLastError(), ERROR_INVALID_HANDLE);
    }
}

static DWORD sleep_long(PVOID milliseconds)
{
    Sleep((DWORD)(uint64_t)milliseconds);
    return 7;
}

TEST_USER(ring3, waits, "a wait times out, and a terminated thread ends it")
{
    HANDLE thread = ring3_start(sleep_long, (PVOID)100000);
    CHECK_EQ(WaitForSingleObject(thread, 5), WAIT_TIMEOUT);
    CHECK_STATUS(ZwTerminateThread(thread, 99), STATUS_SUCCESS);
    CHECK_EQ(ring3_end(thread), 99);
}

static DWORD keep_registers(PVOID seed)
{
    uint64_t first = work_sse((uint64_t)seed, 20000), again = 0;
    for (unsigned i = 0; i < 20; i++) {
        again = work_sse((uint64_t)seed, 20000);
        if (again != first)
            return 1;
    }
    return 0;
}

TEST_USER(ring3, sse_survives,
          "four threads that fill the XMM registers never see each other's, while pre-empted")
{
    HANDLE threads[4];
    for (unsigned i = 0; i < 4; i++)
        threads[i] = ring3_start(keep_registers, (PVOID)(uint64_t)(i * 0x1111 + 5));
    for (unsigned i = 0; i < 4; i++)
        CHECK_EQ(ring3_end(threads[i]), 0);
}

TEST_USER(ring3, affinity, "a thread that sets its affinity runs there")
{
    THREAD_BASIC_INFORMATION info;
    REQUIRE_OK(ZwQueryInformationThread(NtCurrentThread(), ThreadBasicInformation, &info,
                                        sizeof info, NULL));
    PVOID teb = NULL;
    __asm__("mov %%gs:0x30, %0" : "=r"(teb));
    CHECK(info.TebBaseAddress == teb);
    CHECK_EQ((uint64_t)info.ClientId.UniqueThread, GetCurrentThreadId());
    CHECK_STATUS(info.ExitStatus, STATUS_PENDING);
    for (unsigned cpu = 0; cpu < 64; cpu++) {
        KAFFINITY one = 1ull << cpu;
        if (!SetThreadAffinityMask(NtCurrentThread(), one)) {
            CHECK(cpu > 0); /* there is at least one */
            break;
        }
        Sleep(1); /* the move is made at the next switch */
        CHECK_EQ(GetCurrentProcessorNumber(), cpu);
    }
    KAFFINITY none = 0;
    CHECK_STATUS(ZwSetInformationThread(NtCurrentThread(), ThreadAffinityMask, &none, sizeof none),
                 STATUS_INVALID_PARAMETER);
}

TEST_USER(ring3, memory, "memory can be had, protected and given back")
{
    PVOID base = NULL;
    SIZE_T size = 3 * 4096 - 5, none = 0;
    ULONG old = 0;
    REQUIRE_OK(ZwAllocateVirtualMemory(NtCurrentProcess(), &base, 0, &size,
                                       MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE));
    CHECK_EQ(size, 3 * 4096);
    for (unsigned i = 0; i < size; i += 512) {
        CHECK_EQ(((uint8_t *)base)[i], 0);
        ((uint8_t *)base)[i] = (uint8_t)i;
    }
    size = 4096;
    CHECK_OK(ZwProtectVirtualMemory(NtCurrentProcess(), &base, &size, PAGE_READONLY, &old));
    CHECK_EQ(old, PAGE_READWRITE);
    CHECK_STATUS(ZwQueryPerformanceCounter(base, NULL), STATUS_ACCESS_VIOLATION);
    CHECK_OK(ZwFreeVirtualMemory(NtCurrentProcess(), &base, &none, MEM_RELEASE));
    none = 0;
    CHECK_STATUS(ZwFreeVirtualMemory(NtCurrentProcess(), &base, &none, MEM_RELEASE),
                 STATUS_MEMORY_NOT_ALLOCATED);
    CHECK_STATUS(ZwQueryPerformanceCounter(base, NULL), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(ZwFreeVirtualMemory(NtCurrentProcess(), NULL, &none, MEM_RELEASE),
                 STATUS_ACCESS_VIOLATION);
}

static volatile int resumed;

static ULONG note_resumed(PVOID argument)
{
    resumed = 1;
    return (ULONG)(ULONG_PTR)argument;
}

static HANDLE create_suspended(void)
{
    HANDLE thread = NULL;
    CHECK_OK(ZwCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(),
                              (PVOID)note_resumed, (PVOID)7, THREAD_CREATE_FLAGS_CREATE_SUSPENDED,
                              0, 0, 0, NULL));
    return thread;
}

TEST_USER(ring3, suspended,
          "a thread created suspended runs when it is resumed, once; each status of these calls")
{
    HANDLE thread = create_suspended();
    ULONG count = 99;
    resumed = 0;
    Sleep(2);
    CHECK(!resumed);
    CHECK_STATUS(ZwResumeThread(thread, (PULONG)UNMAPPED), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(ZwResumeThread((HANDLE)0x123450, &count), STATUS_INVALID_HANDLE);
    CHECK_STATUS(ZwResumeThread(NtCurrentProcess(), &count), STATUS_OBJECT_TYPE_MISMATCH);
    HANDLE other = ring3_limited(thread, SYNCHRONIZE);
    CHECK_STATUS(ZwResumeThread(other, &count), STATUS_ACCESS_DENIED);
    CHECK(!resumed);
    CHECK_STATUS(ZwResumeThread(thread, &count), STATUS_SUCCESS);
    CHECK_EQ(count, 1);
    CHECK_STATUS(ZwWaitForSingleObject(thread, FALSE, NULL), STATUS_WAIT_0);
    CHECK(resumed);
    CHECK_STATUS(ZwResumeThread(thread, &count), STATUS_SUCCESS);
    CHECK_EQ(count, 0);
    CHECK_STATUS(ZwResumeThread(thread, NULL), STATUS_SUCCESS);
    ZwClose(other);
    ZwClose(thread);
}

TEST_USER(ring3, base_priority,
          "a thread's priority is its process' 8 plus what is set; each status of that call")
{
    static const LONG legal[][2] = { { 2, 10 },  { 1, 9 },   { -1, 7 }, { -2, 6 },
                                     { 15, 15 }, { -15, 1 }, { 0, 8 } };
    THREAD_BASIC_INFORMATION info;
    LONG wrong = 3;
    for (unsigned i = 0; i < ARRAY_SIZE(legal); i++) {
        LONG above = legal[i][0];
        CHECK_OK(
            ZwSetInformationThread(NtCurrentThread(), ThreadBasePriority, &above, sizeof above));
        CHECK_OK(ZwQueryInformationThread(NtCurrentThread(), ThreadBasicInformation, &info,
                                          sizeof info, NULL));
        CHECK_EQ(info.Priority, legal[i][1]);
    }
    CHECK_STATUS(ZwSetInformationThread(NtCurrentThread(), ThreadBasePriority, &wrong,
                                        sizeof wrong),
                 STATUS_INVALID_PARAMETER);
    CHECK_STATUS(ZwSetInformationThread(NtCurrentThread(), ThreadBasePriority, UNMAPPED,
                                        sizeof wrong),
                 STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(ZwSetInformationThread((HANDLE)0x123450, ThreadBasePriority, &(LONG){ 0 },
                                        sizeof wrong),
                 STATUS_INVALID_HANDLE);
}

static MEMORY_BASIC_INFORMATION memory_at(uint64_t address)
{
    MEMORY_BASIC_INFORMATION info = { 0 };
    CHECK_EQ(VirtualQuery((PVOID)address, &info, sizeof info), sizeof info);
    return info;
}

TEST_USER(ring3, stack_limit,
          "the TEB's StackLimit is where the pages of the stack begin, StackBase where they end")
{
    uint64_t limit = 0, base = 0;
    asm volatile("mov %%gs:0x8,%0" : "=r"(base));   /* NT_TIB.StackBase */
    asm volatile("mov %%gs:0x10,%0" : "=r"(limit)); /* NT_TIB.StackLimit */
    CHECK(limit <= (uint64_t)&limit && (uint64_t)&limit - limit < 65536);
    CHECK_EQ(memory_at(limit).Protect, PAGE_READWRITE);
    CHECK_EQ(memory_at(limit - 1).Protect, PAGE_READWRITE | PAGE_GUARD);
    MEMORY_BASIC_INFORMATION info = memory_at(limit);
    CHECK_EQ((uint64_t)info.BaseAddress + info.RegionSize, base);
}
