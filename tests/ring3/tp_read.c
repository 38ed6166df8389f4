/* SPDX-License-Identifier: MIT */
/* ReadThreadProfilingData: its refusals, what it writes and what it leaves alone, switches, wait
 * reasons and cycles. Without configured counters. Sources as in tp_enable.c. */
#include "tests/ring3/helpers.h"

#define DISPATCHING READ_THREAD_PROFILING_FLAG_DISPATCHING
#define COUNTERS READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS
#define FILL_32 0xa5a5a5a5u
#define FILL_64 UINT64_C(0xa5a5a5a5a5a5a5a5)
#define BIT(n) (UINT64_C(1) << (n))

static uint64_t cycles(HANDLE profile)
{
    PERFORMANCE_DATA data;
    ring3_read(profile, 0, &data);
    return data.CycleTime;
}

static void refused_read(HANDLE profile, WORD size, BYTE version, ULONG flags, NTSTATUS status)
{
    PERFORMANCE_DATA data, before;
    ring3_data(&data);
    data.Size = size;
    data.Version = version;
    memcpy(&before, &data, sizeof before);
    CHECK_STATUS(RtlReadThreadProfilingData(profile, flags, &data), status);
    CHECK_EQ(ReadThreadProfilingData(profile, flags, &data), RtlNtStatusToDosError(status));
    CHECK(memcmp(&data, &before, sizeof data) == 0);
}

TEST_USER(tp_read, refused,
          "wrong size, version and flags, in that order, write nothing [TP-54 TP-55 TP-56 TP-57]")
{
    HANDLE profile = ring3_enable(1, 1);
    static const WORD sizes[] = { 0, 1, 24, 256, 287, 289, 0x1c0, 0x2001, 0xffff };
    for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
        refused_read(profile, sizes[i], 1, DISPATCHING, STATUS_INVALID_BUFFER_SIZE);
        refused_read(profile, sizes[i], 2, DISPATCHING, STATUS_INVALID_BUFFER_SIZE);
        refused_read(profile, sizes[i], 0, 4, STATUS_INVALID_BUFFER_SIZE);
    }
    for (unsigned version = 0; version < 256; version++)
        if (version != PERFORMANCE_DATA_VERSION) {
            refused_read(profile, sizeof(PERFORMANCE_DATA), (BYTE)version, DISPATCHING,
                         STATUS_INVALID_PARAMETER_3);
            refused_read(profile, sizeof(PERFORMANCE_DATA), (BYTE)version, 4,
                         STATUS_INVALID_PARAMETER_3);
        }
    for (unsigned bit = 2; bit < 32; bit++) {
        refused_read(profile, sizeof(PERFORMANCE_DATA), 1, 1u << bit, STATUS_INVALID_PARAMETER_2);
        refused_read(profile, sizeof(PERFORMANCE_DATA), 1, 1u << bit | 3,
                     STATUS_INVALID_PARAMETER_2);
    }
    CHECK_EQ(RtlNtStatusToDosError(STATUS_INVALID_BUFFER_SIZE), 1784);
    ring3_disable(profile);
}

/* What is asked for is written and nothing else; no element has a counter. */
static void check_written(DWORD flags, DWORD64 mask)
{
    HANDLE profile = ring3_enable(1, mask);
    PERFORMANCE_DATA data;
    ring3_read(profile, flags, &data);
    CHECK_EQ(data.Size, sizeof data);
    CHECK_EQ(data.Version, PERFORMANCE_DATA_VERSION);
    CHECK(data.CycleTime != FILL_64 && data.CycleTime > 0);
    CHECK(data.RetryCount < 1000);
    CHECK_EQ(data.Reserved, 0);
    CHECK(flags & DISPATCHING ? data.ContextSwitchCount < 1000
                              : data.ContextSwitchCount == FILL_32);
    CHECK(flags & DISPATCHING ? data.WaitReasonBitMap >> WAIT_REASONS == 0
                              : data.WaitReasonBitMap == FILL_64);
    CHECK_EQ(data.HwCountersCount, flags & COUNTERS ? 0 : FILL);
    for (unsigned i = 0; i < MAX_HW_COUNTERS; i++)
        CHECK(ring3_all(&data.HwCounters[i], sizeof data.HwCounters[i],
                        flags & COUNTERS && mask >> i & 1 ? 0 : FILL));
    ring3_disable(profile);
}

TEST_USER(
    tp_read, written,
    "cycles and retries are always written, switches and reasons by DISPATCHING, elements "
    "that the mask selects by HARDWARE_COUNTERS: 0 without a counter [TP-43 TP-44 TP-58 TP-59 "
    "TP-60 TP-71 TP-74 TP-75 TP-77 TP-78]")
{
    static const DWORD64 masks[] = { 0, 1, 5, 0x8000, 0xaaaa, 0xffff };
    for (unsigned m = 0; m < ARRAY_SIZE(masks); m++)
        for (DWORD flags = 0; flags < 4; flags++)
            check_written(flags, masks[m]);
}

TEST_USER(tp_read, reasons_stay, "a read of counters alone leaves reasons for later ones")
{
    HANDLE profile = ring3_enable(1, 0);
    PERFORMANCE_DATA data;
    ring3_reasons(profile);
    Sleep(1);
    ring3_read(profile, COUNTERS, &data);
    CHECK(ring3_reasons(profile) & BIT(DelayExecution));
    ring3_disable(profile);
}

#define MOST_SLEEPS 30u /* of which 20 wait */

TEST_USER(tp_read, switches_counted,
          "each wait counts at least one switch and sets the reason DelayExecution [TP-61 TP-62 "
          "TP-64]")
{
    HANDLE profile = ring3_enable(1, 0);
    ULONG last = 0;
    unsigned sleeps = 0;
    for (unsigned blocked = 1; blocked <= 20; blocked++) {
        PERFORMANCE_DATA data;
        do { /* where a host takes the CPU away the time may be past before the wait begins */
            Sleep(1);
            ring3_read(profile, DISPATCHING, &data);
        } while (++sleeps < MOST_SLEEPS && data.ContextSwitchCount == last);
        CHECK(data.ContextSwitchCount >= blocked);
        CHECK(data.ContextSwitchCount > last);
        CHECK(data.WaitReasonBitMap & BIT(DelayExecution));
        CHECK_EQ(data.WaitReasonBitMap >> WAIT_REASONS, 0);
        last = data.ContextSwitchCount;
    }
    ring3_disable(profile);
}

TEST_USER(tp_read, quiet,
          "two reads without a switch between give the same number, no reason and more cycles "
          "[TP-63 TP-66 TP-67 TP-70]")
{
    HANDLE profile = ring3_enable(1, 0);
    const THREAD_PERFORMANCE_DATA *block = profile;
    unsigned quiet = 0;
    for (unsigned i = 0; i < 100; i++) {
        PERFORMANCE_DATA first, second;
        ring3_data(&first);
        ring3_data(&second);
        Sleep(i % 10 == 0);
        uint64_t updates = __atomic_load_n(&block->UpdateCount, __ATOMIC_ACQUIRE);
        uint64_t start = __atomic_load_n(&block->CycleTime.Start, __ATOMIC_ACQUIRE);
        DWORD one = ReadThreadProfilingData(profile, DISPATCHING, &first);
        DWORD two = ReadThreadProfilingData(profile, DISPATCHING, &second);
        if (__atomic_load_n(&block->UpdateCount, __ATOMIC_ACQUIRE) != updates ||
            __atomic_load_n(&block->CycleTime.Start, __ATOMIC_ACQUIRE) != start)
            continue; /* a switch, or a tick, was between */
        quiet++;
        CHECK_EQ(one, ERROR_SUCCESS);
        CHECK_EQ(two, ERROR_SUCCESS);
        CHECK_EQ(second.ContextSwitchCount, first.ContextSwitchCount);
        CHECK_EQ(second.WaitReasonBitMap, 0);
        CHECK(second.CycleTime > first.CycleTime);
        CHECK_EQ(first.RetryCount, 0);
        CHECK_EQ(second.RetryCount, 0);
    }
    /* A pair takes a few hundred instructions, a tick a million: few pairs meet one. Half is for
     * slow emulators. */
    CHECK_RANGE(quiet, 50, 100);
    ring3_disable(profile);
}

/* At which instructions of a reading it repeats that all the same: tp_torn.ticked. Here chance
 * decides, and nobody knows how long an emulator takes for an instruction. */
TEST_USER(tp_read, ticks_repeat_nothing,
          "a tick without a switch and without instructions of its own changes no UpdateCount, and "
          "counts no switch [TP-63 TP-70 slow]")
{
    PERFORMANCE_DATA data;
    CHECK(SetThreadAffinityMask(GetCurrentThread(), 1) != 0);
    HANDLE profile = ring3_enable(1, 0);
    const THREAD_PERFORMANCE_DATA *block = profile;
    unsigned ticks = 0;
    for (unsigned i = 0; ticks < 30 && i < 20000000; i++) {
        uint64_t updates = __atomic_load_n(&block->UpdateCount, __ATOMIC_ACQUIRE);
        uint64_t start = __atomic_load_n(&block->CycleTime.Start, __ATOMIC_ACQUIRE);
        ULONG switches = block->ContextSwitches;
        ring3_read(profile, DISPATCHING, &data);
        if (__atomic_load_n(&block->CycleTime.Start, __ATOMIC_ACQUIRE) != start &&
            __atomic_load_n(&block->UpdateCount, __ATOMIC_ACQUIRE) == updates)
            ticks += CHECK_EQ(block->ContextSwitches, switches);
        ring3_work(i % 13); /* so that ticks do not always come at the same instruction */
    }
    CHECK_EQ(ticks, 30);
    ring3_disable(profile);
}

static uint64_t stop; /* atomic */

static DWORD spin_until_stop(PVOID unused)
{
    SetThreadAffinityMask(GetCurrentThread(), 1);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
        ring3_work(100);
    return 0;
}

TEST_USER(tp_read, quantum_end,
          "the loss of the CPU at the end of a quantum sets a wait reason [TP-65]")
{
    CHECK(SetThreadAffinityMask(GetCurrentThread(), 1) != 0);
    HANDLE profile = ring3_enable(1, 0), other = ring3_start(spin_until_stop, NULL);
    uint64_t seen = 0;
    for (unsigned i = 0; i < 10000 && !(seen & BIT(WrQuantumEnd)); i++) {
        ring3_work(10000);
        seen |= ring3_reasons(profile);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    CHECK(seen & BIT(WrQuantumEnd));
    CHECK(!(seen & BIT(DelayExecution)));
    ring3_end(other);
    ring3_disable(profile);
}

/* Of the thread that runs while another sleeps: that it does, its cycles, ticks of its clock. */
static uint64_t runs /* atomic */, awake, meanwhile;

static DWORD run_meanwhile(PVOID unused)
{
    CHECK(SetThreadAffinityMask(GetCurrentThread(), 1) != 0);
    HANDLE profile = ring3_enable(0, 0);
    uint64_t tsc = __rdtsc(), before = cycles(profile);
    __atomic_store_n(&runs, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
        ring3_work(100);
    awake = cycles(profile) - before;
    meanwhile = __rdtsc() - tsc;
    ring3_disable(profile);
    return 0;
}

TEST_USER(tp_read, cycles_asleep, "sleep is not in the cycles, work is [TP-67 TP-68 slow]")
{
    HANDLE profile = ring3_enable(0, 0);
    CHECK(SetThreadAffinityMask(GetCurrentThread(), 1) != 0);
    Sleep(1);
    __atomic_store_n(&stop, 0, __ATOMIC_RELEASE);
    uint64_t tsc = __rdtsc(), before = cycles(profile);
    HANDLE other = ring3_start(run_meanwhile, NULL);
    while (!__atomic_load_n(&runs, __ATOMIC_ACQUIRE))
        Sleep(1);
    Sleep(20);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    CHECK_EQ(WaitForSingleObject(other, INFINITE), WAIT_OBJECT_0);
    uint64_t asleep = cycles(profile) - before, all = __rdtsc() - tsc;
    CHECK(CloseHandle(other));
    /* They share a processor, so their cycles are not more than passed, whatever a host does. */
    CHECK_RANGE(asleep + awake, awake + 1, all);
    CHECK(awake > meanwhile / 4); /* alone there, but for the runner and interrupts */
    uint64_t after, best = 0;
    /* Running. The most of three: other threads, and interrupts, take the rest. */
    for (unsigned i = 0; i < 3; i++) {
        tsc = __rdtsc();
        before = cycles(profile);
        ring3_work(200000);
        after = cycles(profile);
        uint64_t share = (after - before) * 100 / (__rdtsc() - tsc);
        best = share > best ? share : best;
    }
    CHECK_RANGE(best, 50, 100);
    ring3_disable(profile);
}

TEST_USER(
    tp_read, kernel_clears_reasons,
    "a reading by system call clears the reasons that it gives, as one in ring 3 does, and says "
    "why it is refused")
{
    static THREAD_PERFORMANCE_DATA mine;
    const ULONG flags = READ_THREAD_PROFILING_FLAG_DISPATCHING;
    PERFORMANCE_DATA first, second;
    CHECK_STATUS(ring3_set(0, 1, TRUE, &mine), STATUS_SUCCESS);
    do { /* no switch in between */
        Sleep(1);
        ring3_data(&first);
        ring3_data(&second);
        CHECK_STATUS(ZwReadThreadProfilingData(&mine, flags, &first), STATUS_SUCCESS);
        CHECK_STATUS(ZwReadThreadProfilingData(&mine, flags, &second), STATUS_SUCCESS);
    } while (first.ContextSwitchCount != second.ContextSwitchCount);
    CHECK(first.WaitReasonBitMap & UINT64_C(1) << DelayExecution);
    CHECK_EQ(second.WaitReasonBitMap, 0);
    CHECK_STATUS(ZwReadThreadProfilingData(&first, flags, &second), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(ZwReadThreadProfilingData(&mine, 4, &second), STATUS_INVALID_PARAMETER_2);
    CHECK_STATUS(ZwReadThreadProfilingData(&mine, flags, NULL), STATUS_ACCESS_VIOLATION);
    first.Version++;
    CHECK_STATUS(ZwReadThreadProfilingData(&mine, flags, &first), STATUS_INVALID_PARAMETER_3);
    CHECK_STATUS(ring3_set(0, 0, FALSE, &mine), STATUS_SUCCESS);
    CHECK_STATUS(ZwReadThreadProfilingData(&mine, flags, &second), STATUS_PROFILING_NOT_STARTED);
}
