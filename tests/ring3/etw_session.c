/* SPDX-License-Identifier: MIT */
/* Trace sessions from ring 3: starting, reading what happens, ending. */
#include "tests/ring3/etw.h"

#define BYTES (16 * RING3_PAGE)

/* Context switches between two threads that give way to each other. */
static void yield_often(uint64_t times)
{
    for (; times; times--)
        ZwYieldExecution();
}

/* Moves to processor 0 by itself, and says so: the processor that it begins on might run it to its
 * end. */
static DWORD partner(PVOID here)
{
    SetThreadAffinityMask(GetCurrentThread(), 1);
    *(volatile BOOL *)here = TRUE;
    yield_often(50);
    return 0;
}

TEST_USER(etw_session, context_swaps,
          "ring 3 starts a session and reads complete records of context switches, each from the "
          "thread before to the next; one that gave way is ready, one that sleeps is waiting")
{
    struct session s;
    uint8_t *bytes = ring3_pages(BYTES / RING3_PAGE);
    ULONG n = 0, swaps = 0, mine = 0, slept = 0, me = GetCurrentThreadId(), running = 0;
    volatile BOOL partner_here = FALSE;
    REQUIRE(bytes && session_start(&s, 16, 16));
    SetThreadAffinityMask(GetCurrentThread(), 1);
    CHECK_STATUS(session_mask(&s, PERF_CONTEXT_SWITCH, 0), STATUS_SUCCESS);
    HANDLE other = ring3_start(partner, (PVOID)&partner_here);
    while (!partner_here)
        ZwYieldExecution();
    yield_often(50);
    WaitForSingleObject(other, INFINITE);
    for (unsigned i = 0; i < 3; i++)
        Sleep(1);
    CHECK_STATUS(session_mask(&s, 0, 0), STATUS_SUCCESS);
    CHECK_STATUS(session_flush(&s), STATUS_SUCCESS);
    CHECK_STATUS(session_read(&s, bytes, BYTES, &n), STATUS_SUCCESS);
    struct records all = records_of(bytes, n);
    for (struct record r; (r = next_record(&all)).header;) {
        const WMI_CONTEXTSWAP *swap = r.payload;
        CHECK_EQ(r.header->HookId, PERFINFO_LOG_TYPE_CONTEXTSWAP);
        CHECK_EQ(r.size, sizeof *swap);
        CHECK_EQ(swap->OldIdealProcessor, r.buffer->ClientContext.ProcessorIndex);
        CHECK_EQ(swap->NewWaitTime | swap->OldRemainingQuantum, 0);
        if (swap->OldThreadId == me)
            CHECK_EQ(swap->OldWaitMode, 1);
        if (r.buffer->ClientContext.ProcessorIndex != 0)
            continue;
        if (swaps++)
            CHECK_EQ(swap->OldThreadId, running);
        if (swap->OldThreadId == me && swap->OldWaitReason == DelayExecution)
            slept += CHECK_EQ(swap->OldState, 5);
        if (swap->OldThreadId == me && swap->OldWaitReason >= (CHAR)WrQuantumEnd)
            CHECK_EQ(swap->OldState, 1);
        running = swap->NewThreadId;
        mine += running == me;
    }
    CHECK_RANGE(mine, 25,
                200); /* 50 yields; timer ticks and the partner's start add or take some */
    CHECK_EQ(slept, 3);
    CHECK_EQ(session_stop(&s), 0);
    CHECK_STATUS(session_read(&s, bytes, BYTES, &n), STATUS_WMI_INSTANCE_NOT_FOUND);
    session_close(&s);
    CloseHandle(other);
}
