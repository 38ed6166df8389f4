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
