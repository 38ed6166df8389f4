/* SPDX-License-Identifier: MIT */
/* Blocks that lie across two pages, and that go away while the kernel writes them. Ring 0 runs the
 * user_* ones with counters that count. */
#include "tests/ring3/helpers.h"

#define BLOCK_SIZE sizeof(THREAD_PERFORMANCE_DATA)
#define BOTH (READ_THREAD_PROFILING_FLAG_DISPATCHING | READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS)

/* Enables with this block by the system call, as the Rtl function would. */
static void enable_with(void *address, ULONG64 mask)
{
    THREAD_PERFORMANCE_DATA block;
    memset(&block, 0, sizeof block);
    block.Size = BLOCK_SIZE;
    block.Version = THREAD_PERFORMANCE_DATA_VERSION;
    block.HardwareCounters = mask;
    memcpy(address, &block, sizeof block);
    CHECK_STATUS(ring3_set(mask, 1, TRUE, address), STATUS_SUCCESS);
}

static void check_straddling(uint8_t *address, ULONG64 mask)
{
    PERFORMANCE_DATA data, later;
    memset(address - 8, FILL, BLOCK_SIZE + 16);
    enable_with(address, mask);
    Sleep(1);
    ring3_read(address, BOTH, &data);
    CHECK(data.ContextSwitchCount > 0);
    CHECK(data.WaitReasonBitMap & UINT64_C(1) << DelayExecution);
    CHECK(data.CycleTime > 0);
    ring3_read(address, BOTH, &later);
    CHECK(later.CycleTime > data.CycleTime);
    for (unsigned i = 0; i < data.HwCountersCount; i++) {
        CHECK(data.HwCounters[i].Value > 0);
        CHECK(later.HwCounters[i].Value > data.HwCounters[i].Value);
    }
    CHECK_STATUS(ring3_set(0, 0, FALSE, address), STATUS_SUCCESS);
    Sleep(0);
    CHECK(ring3_all(address - 8, 8, FILL) && ring3_all(address + BLOCK_SIZE, 8, FILL));
}

void user_block_straddles(uint64_t mask)
{
    uint8_t *pages = ring3_pages(2);
    REQUIRE(pages != NULL);
    unsigned step = test_long() ? 8 : 40;
    for (unsigned inside = 8; inside < BLOCK_SIZE; inside += step)
        check_straddling(pages + RING3_PAGE - inside, mask);
    for (unsigned inside = 4; inside < BLOCK_SIZE;
         inside += step) /* fields across the two pages, too */
        check_straddling(pages + RING3_PAGE - inside, mask);
}

/* The region stays mapped as long as it likes: the kernel must hold the page, or let go of the
 * thread. */
static void go_on_without(uint64_t mask, unsigned pages, unsigned offset)
{
    uint8_t *region = ring3_pages(pages);
    REQUIRE(region != NULL);
    enable_with(region + offset, mask);
    Sleep(1);
    ring3_free(region);
    uint8_t *reused = ring3_pages(pages); /* who gets the page now must keep it */
    REQUIRE(reused != NULL);
    memset(reused, FILL, pages * RING3_PAGE);
    for (unsigned i = 0; i < 10; i++) {
        Sleep(1);
        ring3_work(10000);
    }
    CHECK(ring3_all(reused, pages * RING3_PAGE, FILL));
    ring3_free(reused);
}

static DWORD freed_one(PVOID mask)
{
    go_on_without((uint64_t)mask, 1, 64);
    return 0;
}

static DWORD freed_two(PVOID mask)
{
    go_on_without((uint64_t)mask, 2, RING3_PAGE - 64);
    return 0;
}

static DWORD freed_and_disabled(PVOID mask)
{
    uint8_t *region = ring3_pages(1);
    THREAD_PERFORMANCE_DATA block;
    if (!region)
        return (DWORD)STATUS_NO_MEMORY;
    enable_with(region, (uint64_t)mask);
    ring3_free(region);
    Sleep(1);
    /* The address is no good any more; a good one is not the one of the enable. Only the thread's
     * end disables. */
    CHECK_STATUS(ring3_set(0, 0, FALSE, region), STATUS_ACCESS_VIOLATION);
    NTSTATUS status = ring3_set(0, 0, FALSE, &block);
    CHECK(status == STATUS_INVALID_PARAMETER || status == STATUS_WMI_ALREADY_DISABLED);
    Sleep(1);
    return 0;
}

/* Read-only now: the reader faults in ring 3, the kernel writes on through its own mapping, or
 * disables. */
static DWORD made_read_only(PVOID mask)
{
    uint8_t *region = ring3_pages(1);
    if (!region)
        return (DWORD)STATUS_NO_MEMORY;
    enable_with(region, (uint64_t)mask);
    ring3_protect(region, PAGE_READONLY);
    for (unsigned i = 0; i < 5; i++)
        Sleep(1);
    ring3_protect(region, PAGE_READWRITE);
    Sleep(1);
    return 0;
}

void user_block_freed(uint64_t mask)
{
    CHECK_STATUS(ring3_run(freed_one, (PVOID)mask), STATUS_SUCCESS);
    CHECK_STATUS(ring3_run(freed_two, (PVOID)mask), STATUS_SUCCESS);
    CHECK_STATUS(ring3_run(freed_and_disabled, (PVOID)mask), STATUS_SUCCESS);
    CHECK_STATUS(ring3_run(made_read_only, (PVOID)mask), STATUS_SUCCESS);
    CHECK(!ring3_profiled());
}

TEST_USER(tp_block, freed,
          "a block that is freed or made read-only while its thread is profiled does no harm, also"
          " when the thread ends [TP-96]")
{
    user_block_freed(0);
    user_block_freed(3);
}

TEST_USER(tp_block, processor,
          "the block names the processor on which the thread runs, wherever it goes")
{
    static THREAD_PERFORMANCE_DATA block;
    enable_with(&block, 0);
    for (unsigned round = 0; round < 2; round++)
        for (unsigned cpu = 0; cpu < ring3_cpus(); cpu++) {
            CHECK(SetThreadAffinityMask(NtCurrentThread(), 1ull << cpu) != 0);
            Sleep(1); /* the move is made at the next switch */
            CHECK_EQ(block.ProcessorNumber.Number, cpu);
            CHECK_EQ(block.ProcessorNumber.Group, 0);
        }
    CHECK_STATUS(ring3_set(0, 0, FALSE, &block), STATUS_SUCCESS);
}

/* --- Blocks that others write. What the kernel itself reads does not come from the block. --- */

static uint8_t *scribbled;  /* a block */
static uint64_t scribbling; /* atomic; 1: go on */

static DWORD scribble(PVOID unused)
{
    uint64_t state = 88172645463325252;
    while (__atomic_load_n(&scribbling, __ATOMIC_ACQUIRE)) {
        uint64_t value = ring3_random(&state);
        memcpy(scribbled + (value >> 8) % (BLOCK_SIZE - 7), &value, 8);
    }
    return 0;
}

/* At least; a sleep whose time has come before it began is none. */
#define SWITCHES 10

/* Profiled with this block, among switches; the kernel's readings grow and are no more than was
 * done. */
static void read_by_kernel(void *block, ULONG64 mask)
{
    PERFORMANCE_DATA both[2], *data = &both[0], *last = &both[1];
    unsigned rounds = test_long() ? 200 : 20;
    enable_with(block, mask);
    last->ContextSwitchCount = 0;
    for (unsigned i = 0; i < rounds || (last->ContextSwitchCount < SWITCHES && i < 10 * rounds);
         i++) {
        ring3_work(1000);
        if (i < rounds && i % (rounds / 10))
            ZwYieldExecution();
        else
            Sleep(1);
        ring3_data(data);
        CHECK_STATUS(ZwReadThreadProfilingData(block, BOTH, data), STATUS_SUCCESS);
        if (i > 0) {
            CHECK(data->CycleTime > last->CycleTime);
            CHECK(data->ContextSwitchCount >= last->ContextSwitchCount &&
                  data->ContextSwitchCount < 10000);
            CHECK_EQ(data->HwCountersCount, last->HwCountersCount);
        }
        if (i > 0 && data->HwCountersCount)
            CHECK(data->HwCounters[0].Value > last->HwCounters[0].Value &&
                  data->HwCounters[0].Value < last->HwCounters[0].Value + 100000);
        PERFORMANCE_DATA *swap = last;
        last = data;
        data = swap;
    }
    CHECK(last->ContextSwitchCount >= SWITCHES);
    CHECK_STATUS(ring3_set(0, 0, FALSE, block), STATUS_SUCCESS);
}

static uint64_t shared_mask; /* of who shares `scribbled` */

static DWORD share(PVOID unused)
{
    read_by_kernel(scribbled, shared_mask);
    return 0;
}

/* One thread's block is overwritten all the time; then several threads have one block. */
void user_block_written(uint64_t mask)
{
    HANDLE writer, sharer;
    REQUIRE((scribbled = ring3_pages(1)) != NULL);
    __atomic_store_n(&scribbling, 1, __ATOMIC_RELEASE);
    writer = ring3_start(scribble, NULL);
    read_by_kernel(scribbled, mask);
    __atomic_store_n(&scribbling, 0, __ATOMIC_RELEASE);
    CHECK_EQ(WaitForSingleObject(writer, INFINITE), WAIT_OBJECT_0);
    shared_mask = mask;
    sharer = ring3_start(share, NULL);
    read_by_kernel(scribbled, mask);
    CHECK_EQ(WaitForSingleObject(sharer, INFINITE), WAIT_OBJECT_0);
    CHECK(CloseHandle(writer) && CloseHandle(sharer));
}

TEST_USER(tp_block, written,
          "a block that other threads write or use does not change what the kernel reads [C-3.29 "
          "slow]")
{
    user_block_written(0);
    user_block_written(3);
}
