/* SPDX-License-Identifier: MIT */
/* What a thread finds of itself in ring 3. */
#include "tests/ring3/helpers.h"
#include "tests/ring3/services.h"

TEST_USER(ring3, affinity, "a thread that sets its affinity runs there")
{
    THREAD_BASIC_INFORMATION info;
    REQUIRE_OK(NtQueryInformationThread(NtCurrentThread(), ThreadBasicInformation, &info,
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
    CHECK_STATUS(NtSetInformationThread(NtCurrentThread(), ThreadAffinityMask, &none, sizeof none),
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
