/* SPDX-License-Identifier: MIT */
/* KUSER_SHARED_DATA, the page that programs read without a call. */
#include "kernel/nt/nt_shared.h"
#include "tests/ring3/helpers.h"

#define SECOND 10000000 /* as late as a tick may be on a busy host */

static const volatile struct shared_data *const shared = (const void *)SHARED_DATA_USER;

static uint64_t time_of(const volatile struct system_time *time)
{
    return (uint64_t)time->high1 << 32 | time->low;
}

TEST_USER(shared_data, values, "its version, features and times are those that services say")
{
    uint64_t before = time_of(&shared->interrupt_time), ticks = time_of(&shared->tick_count);
    LARGE_INTEGER now;
    FILETIME date;
    CHECK_EQ(shared->major, 10);
    CHECK_EQ(shared->qpc_frequency, 10000000);
    CHECK_EQ(shared->active_processors, GetActiveProcessorCount(ALL_PROCESSOR_GROUPS));
    CHECK_EQ(shared->processor_features[PF_XMMI64_INSTRUCTIONS_AVAILABLE], 1);
    CHECK_EQ(shared->enabled_features & 3, 3);
    CHECK_EQ(shared->xstate_features[0].size, 160); /* x87, then XMM0 to XMM15 */
    CHECK_EQ(shared->xstate_features[1].offset, 160);
    CHECK_EQ(shared->xstate_features[1].size, 256);
    for (unsigned i = 2; i < 63; i++)
        if (shared->enabled_features >> i & 1) {
            int area[4];
            __cpuidex(area, 0xd, (int)i);
            CHECK_EQ(shared->xstate_features[i].size, (uint32_t)area[0]);
            CHECK_EQ(shared->xstate_features[i].offset, (uint32_t)area[1]);
        }
    const uint32_t ms = GetTickCount();
    Sleep(50);
    CHECK_RANGE(GetTickCount() - ms, 30, UINT32_MAX / 2); /* ticks, and a host's lateness */
    QueryPerformanceCounter(&now);
    GetSystemTimeAsFileTime(&date);
    uint64_t system = (uint64_t)date.dwHighDateTime << 32 | date.dwLowDateTime;
    uint64_t after = time_of(&shared->interrupt_time);
    CHECK_RANGE(after - before, 300000, ~0ull);
    CHECK_RANGE(((uint64_t)now.QuadPart + SECOND - after), 1, 2 * SECOND);
    CHECK_RANGE((system + SECOND - time_of(&shared->system_time)), 1, 2 * SECOND);
    CHECK_RANGE(time_of(&shared->tick_count), ticks + 1, ~0ull);
    CHECK_EQ(shared->interrupt_time.high1, shared->interrupt_time.high2);
}

TEST_USER(shared_data, read_only,
          "a program cannot write it, change its protection for others, or free it")
{
    PVOID page = (PVOID)SHARED_DATA_USER;
    SIZE_T size = 0;
    DWORD old;
    CHECK_STATUS(NtQueryPerformanceCounter((PLARGE_INTEGER)page, NULL), STATUS_ACCESS_VIOLATION);
    CHECK(!NT_SUCCESS(NtFreeVirtualMemory(NtCurrentProcess(), &page, &size, MEM_RELEASE)));
    if (VirtualProtect(page, 1, PAGE_READWRITE, &old)) { /* as of an image: a copy of its own */
        uint64_t first = time_of(&shared->interrupt_time);
        *(volatile uint32_t *)page = 1;
        Sleep(50);
        CHECK_EQ(time_of(&shared->interrupt_time), first);
    }
}
