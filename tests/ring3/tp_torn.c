/* SPDX-License-Identifier: MIT */
/* RtlReadThreadProfilingData when a switch or a tick comes between two of its instructions,
 * whichever they are. The block is the test's own; an exception handler does what the kernel does
 * at a switch, or at a tick without one. */
#include "tests/ring3/helpers.h"

#define DISPATCHING READ_THREAD_PROFILING_FLAG_DISPATCHING
#define COUNTERS READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS
#define TRAP_FLAG 0x100u
#define BEFORE 1u /* switches */
#define AFTER 2u
#define CYCLES(switches) ((ULONG64)(switches) << 60) /* far more than the time stamp counter has */
#define REASON(switches) ((ULONG64)1 << (switches))
#define MOST 300u /* instructions of a reading that is repeated once, and more */

static THREAD_PERFORMANCE_DATA block __attribute__((aligned(8)));
static volatile unsigned left; /* instructions until the switch; 0: it was there */
static volatile bool over;     /* the reading */
static unsigned repeated;      /* readings */
static bool ticks;             /* no switch comes, but a tick */

static void make_switch(void)
{
    if (ticks) {
        block.CycleTime.Start -= CYCLES(AFTER - BEFORE);
        return;
    }
    block.ContextSwitches = AFTER;
    block.CycleTime.Total = CYCLES(AFTER);
    block.WaitReasonBitMap |= REASON(AFTER);
    block.UpdateCount++;
}

static LONG step(PEXCEPTION_POINTERS e)
{
    if (e->ExceptionRecord->ExceptionCode != (DWORD)STATUS_SINGLE_STEP)
        return EXCEPTION_CONTINUE_SEARCH;
    if (!over && --left)
        e->ContextRecord->EFlags |= TRAP_FLAG;
    else if (!over)
        make_switch();
    return EXCEPTION_CONTINUE_EXECUTION;
}

static void begin_to_step(void)
{
    asm volatile("pushfq\n\torq %0, (%%rsp)\n\tpopfq" : : "i"(TRAP_FLAG) : "memory", "cc");
}

/* Whether the switch came before the reading was over. */
static bool read_until(unsigned instructions, ULONG flags)
{
    PERFORMANCE_DATA data;
    ring3_data(&data);
    memset(&block, 0, sizeof block);
    block.UpdateCount = 10;
    block.ContextSwitches = BEFORE;
    block.CycleTime.Total = CYCLES(BEFORE);
    block.WaitReasonBitMap = REASON(BEFORE);
    left = instructions;
    over = false;
    begin_to_step();
    NTSTATUS status = RtlReadThreadProfilingData(&block, flags, &data);
    over = true; /* the step after this is the last */
    CHECK_STATUS(status, STATUS_SUCCESS);
    CHECK_EQ(data.CycleTime >> 60, data.ContextSwitchCount); /* both of one attempt */
    CHECK_EQ(data.WaitReasonBitMap & block.WaitReasonBitMap, 0);
    CHECK_EQ(data.WaitReasonBitMap | block.WaitReasonBitMap,
             REASON(BEFORE) | (left ? 0 : REASON(AFTER)));
    CHECK(data.WaitReasonBitMap & REASON(data.ContextSwitchCount));
    CHECK(data.RetryCount <= 1 && (!data.RetryCount || data.ContextSwitchCount == AFTER));
    repeated += data.RetryCount;
    return !left;
}

static void check_torn(ULONG flags)
{
    PVOID handler = AddVectoredExceptionHandler(1, step);
    unsigned n = 1;
    repeated = 0;
    REQUIRE(handler != NULL);
    while (n < MOST && read_until(n, flags))
        n++;
    CHECK_RANGE(n, 20, MOST - 1); /* it has some twenty loads and stores */
    CHECK(repeated >= 5);         /* so much is between the two looks at UpdateCount */
    CHECK_EQ(RemoveVectoredExceptionHandler(handler), 1);
}

TEST_USER(tp_torn, plain,
          "a switch at any instruction of a reading leaves no mixture, and no reason is lost "
          "[TP-66 TP-70]")
{
    check_torn(DISPATCHING);
}

/* Few instructions before the look at UpdateCount: the time stamp and what it belongs to. */
#define TIMED_MOST 12u

static void read_ticked(unsigned instructions, bool *came)
{
    PERFORMANCE_DATA data;
    ring3_data(&data);
    memset(&block, 0, sizeof block);
    block.CycleTime.Total = CYCLES(BEFORE);
    left = instructions;
    over = false;
    begin_to_step();
    NTSTATUS status = RtlReadThreadProfilingData(&block, COUNTERS, &data);
    over = true;
    CHECK_STATUS(status, STATUS_SUCCESS);
    CHECK(data.RetryCount <= 1);
    if (data.RetryCount)
        CHECK_EQ(data.CycleTime >> 60, AFTER);
    repeated += data.RetryCount;
    *came = !left;
}

TEST_USER(tp_torn, ticked,
          "a tick repeats a reading only where it comes between the time and its beginning [TP-70 "
          "slow]")
{
    PVOID handler = AddVectoredExceptionHandler(1, step);
    bool came = true;
    repeated = 0;
    ticks = true;
    REQUIRE(handler != NULL);
    for (unsigned n = 1; came && n < MOST; n++)
        read_ticked(n, &came);
    CHECK(!came);
    CHECK_RANGE(repeated, 2, TIMED_MOST);
    ticks = false;
    CHECK_EQ(RemoveVectoredExceptionHandler(handler), 1);
}

TEST_USER(tp_torn, general,
          "a switch at any instruction of a reading of counters leaves no mixture [TP-66 TP-70 "
          "slow]")
{
    check_torn(DISPATCHING | COUNTERS);
}
