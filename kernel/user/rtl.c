/* SPDX-License-Identifier: MIT */
/* The Rtl half of thread profiling. Reading is done here, in ring 3: RDPMC against the block that the kernel's
 * context switch keeps, no system call. Sources: Microsoft's pages for the Win32 functions; the order of the checks
 * from published listings of ntdll. */
#include "windows.h"
#include "kernel/string.h"

#define ALL_ELEMENTS ((1u << MAX_HW_COUNTERS) - 1)
#define BLOCKS 64
/* Follows pointers of the caller, which may be NULL or unaligned: a fault is the answer, not what UBSAN makes of it. */
#define FOLLOWS_CALLER __attribute__((no_sanitize("undefined")))
#define FIXED_SELECTOR (1u << 30) /* of RDPMC: Intel's fixed counters */

/* Where the blocks come from: one per thread at most, so a small fixed pool. No block straddles a page. */
static THREAD_PERFORMANCE_DATA blocks[BLOCKS] __attribute__((aligned(512)));
static uint64_t blocks_used; /* atomic */

static PTHREAD_PERFORMANCE_DATA allocate_block(void)
{
    uint64_t used = __atomic_load_n(&blocks_used, __ATOMIC_RELAXED);
    do {
        if (used == ~0ul)
            return NULL;
    } while (!__atomic_compare_exchange_n(&blocks_used, &used, used | (used + 1), false, __ATOMIC_ACQUIRE,
                                          __ATOMIC_RELAXED));
    return &blocks[__builtin_ctzl(~used)];
}

static void free_block(PVOID block)
{
    uint64_t i = (uint64_t)((PTHREAD_PERFORMANCE_DATA)block - blocks);
    if (i < BLOCKS)
        __atomic_fetch_and(&blocks_used, ~(1ul << i), __ATOMIC_RELEASE);
}

/* STATUS_INVALID_PARAMETER_2: Flags. STATUS_INVALID_PARAMETER_3: mask. STATUS_NO_MEMORY. Then
 * NtSetInformationThread's. A failure leaves *PerformanceDataHandle alone (our choice). */
FOLLOWS_CALLER
NTSTATUS RtlEnableThreadProfiling(HANDLE ThreadHandle, ULONG Flags, ULONG64 HardwareCounters,
                                  PVOID *PerformanceDataHandle)
{
    if (Flags & ~THREAD_PROFILING_FLAG_DISPATCH)
        return STATUS_INVALID_PARAMETER_2;
    if (HardwareCounters & ~(ULONG64)ALL_ELEMENTS)
        return STATUS_INVALID_PARAMETER_3;
    PTHREAD_PERFORMANCE_DATA block = allocate_block();
    if (!block)
        return STATUS_NO_MEMORY;
    memset(block, 0, sizeof *block);
    block->Size = sizeof *block;
    block->Version = THREAD_PERFORMANCE_DATA_VERSION;
    block->HardwareCounters = HardwareCounters;
    THREAD_PROFILING_INFORMATION info = { HardwareCounters, Flags, TRUE, block };
    NTSTATUS status = ZwSetInformationThread(ThreadHandle, ThreadCounterProfiling, &info, sizeof info);
    if (NT_SUCCESS(status))
        *PerformanceDataHandle = block;
    else
        free_block(block);
    return status;
}

NTSTATUS RtlDisableThreadProfiling(PVOID PerformanceDataHandle)
{
    THREAD_PROFILING_INFORMATION info = { 0, 0, FALSE, PerformanceDataHandle };
    NTSTATUS status = ZwSetInformationThread(NtCurrentThread(), ThreadCounterProfiling, &info, sizeof info);
    if (NT_SUCCESS(status))
        free_block(PerformanceDataHandle);
    return status;
}

NTSTATUS RtlQueryThreadProfiling(HANDLE ThreadHandle, PBOOLEAN Enabled)
{
    return ZwQueryInformationThread(ThreadHandle, ThreadCounterProfiling, Enabled, sizeof *Enabled, NULL);
}

static inline uint64_t read_tsc(void)
{
    uint32_t low, high;
    asm volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
}

static inline uint64_t read_pmc(uint32_t selector)
{
    uint32_t low, high;
    asm volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(selector) : "memory");
    return (uint64_t)high << 32 | low;
}

/* A counter is narrower than 64 bits, and its wrap must not show. NT: the kernel leaves the unused bits of both
 * kinds of counters in CycleTime.Index, which Windows does not use. */
FOLLOWS_CALLER static inline uint64_t difference(PTHREAD_PERFORMANCE_DATA block, uint32_t selector, uint64_t start)
{
    unsigned shift = block->CycleTime.Index >> (selector & FIXED_SELECTOR ? 8 : 0) & 63;
    return (read_pmc(selector) - start) << shift >> shift;
}

#define FLAG_MASK (READ_THREAD_PROFILING_FLAG_DISPATCHING | READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS)

FOLLOWS_CALLER static NTSTATUS check_read(ULONG flags, const PERFORMANCE_DATA *data)
{
    if (data->Size != sizeof *data)
        return STATUS_INVALID_BUFFER_SIZE;
    if (data->Version != PERFORMANCE_DATA_VERSION)
        return STATUS_INVALID_PARAMETER_3;
    return flags & ~FLAG_MASK ? STATUS_INVALID_PARAMETER_2 : STATUS_SUCCESS;
}

/* One attempt at everything that a switch could tear. */
FOLLOWS_CALLER static ULONG read_counters(PTHREAD_PERFORMANCE_DATA block, PPERFORMANCE_DATA data)
{
    ULONG filled = 0, configured = block->HwCountersCount;
    uint64_t left = block->HardwareCounters & ALL_ELEMENTS;
    for (; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzl(left);
        const COUNTER_READING *c = &block->HwCounters[i];
        uint64_t value = 0;
        if (i < configured) {
            value = c->Total + difference(block, c->Index, c->Start);
            filled++;
        }
        data->HwCounters[i] = (HARDWARE_COUNTER_DATA){ PMCCounter, 0, value };
    }
    return filled;
}

/* Reads the calling thread's own data. Time stamp and counters lie inside the retry and UpdateCount is compared
 * last, so that a switch or a migration in the middle is seen.
 * STATUS_INVALID_BUFFER_SIZE, STATUS_INVALID_PARAMETER_3 (version), STATUS_INVALID_PARAMETER_2 (flags).
 * NT: Windows takes differences in 32 bits and loses what is more; it reads counters after its last comparison. */
FOLLOWS_CALLER
NTSTATUS RtlReadThreadProfilingData(HANDLE PerformanceDataHandle, ULONG Flags, PPERFORMANCE_DATA PerformanceData)
{
    PTHREAD_PERFORMANCE_DATA block = PerformanceDataHandle;
    NTSTATUS status = check_read(Flags, PerformanceData);
    uint64_t update, reasons = 0, cycles;
    ULONG retries = 0, filled = 0, switches;

    if (!NT_SUCCESS(status))
        return status;
    for (;; retries++) {
        update = __atomic_load_n(&block->UpdateCount, __ATOMIC_ACQUIRE);
        switches = block->ContextSwitches;
        if (Flags & READ_THREAD_PROFILING_FLAG_DISPATCHING)
            reasons |= __atomic_exchange_n(&block->WaitReasonBitMap, 0, __ATOMIC_ACQ_REL);
        if (Flags & READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS)
            filled = read_counters(block, PerformanceData);
        cycles = block->CycleTime.Total + read_tsc() - block->CycleTime.Start;
        if (__atomic_load_n(&block->UpdateCount, __ATOMIC_ACQUIRE) == update)
            break;
    }
    PerformanceData->CycleTime = cycles;
    PerformanceData->RetryCount = retries;
    PerformanceData->Reserved = 0;
    if (Flags & READ_THREAD_PROFILING_FLAG_DISPATCHING) {
        PerformanceData->ContextSwitchCount = switches;
        PerformanceData->WaitReasonBitMap = reasons;
    }
    if (Flags & READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS)
        PerformanceData->HwCountersCount = (BYTE)filled;
    return STATUS_SUCCESS;
}
