/* SPDX-License-Identifier: MIT */
/* The Rtl half of thread profiling. Reading needs no system call: RDPMC in ring 3, and the block
 * that the kernel's context switch updates. Sources: Microsoft's pages for the Win32
 * functions; the order of the checks from published listings of ntdll. */
#include "ntdll.h"
#include <x86intrin.h>
#define ABI_SIZE(type, size) C_ASSERT(sizeof(type) == (size))
#define ABI_FIELD(type, field, offset) C_ASSERT(offsetof(type, field) == (offset))
#include "kernel/base/rdpmc.h"
#include "kernel/nt/nt_thread_profiling.h"

NTSTATUS NTAPI NtReadThreadProfilingData(HANDLE, ULONG, PPERFORMANCE_DATA); /* a service of ours */

#define THREAD_COUNTER_PROFILING (THREADINFOCLASS)32

/* The blocks are in pages of eight, so that none crosses a page; the kernel references a block's
 * page. */
#define PER_PAGE 8u
#define PAGES 128u

union room {
    THREAD_PERFORMANCE_DATA block;
    struct {
        uint8_t padding[504];
        LONG used;
    } mark;
};
C_ASSERT(sizeof(union room) * PER_PAGE == 4096);

static union room *volatile pages[PAGES];

static union room *reading_page(unsigned i)
{
    PVOID page = NULL;
    SIZE_T size = 4096;
    if (!pages[i] &&
        NT_SUCCESS(NtAllocateVirtualMemory(CURRENT_PROCESS, &page, 0, &size,
                                           MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE)) &&
        InterlockedCompareExchangePointer((PVOID volatile *)&pages[i], page, NULL)) {
        size = 0;
        NtFreeVirtualMemory(CURRENT_PROCESS, &page, &size, MEM_RELEASE);
    }
    return pages[i];
}

static PTHREAD_PERFORMANCE_DATA allocate_block(void)
{
    for (unsigned i = 0; i < PAGES && reading_page(i); i++)
        for (union room *r = pages[i]; r < pages[i] + PER_PAGE; r++)
            if (!InterlockedExchange(&r->mark.used, 1))
                return &r->block;
    return NULL;
}

/* Ignores other blocks: a program may have its own. */
static void free_block(PVOID block)
{
    for (unsigned i = 0; i < PAGES && pages[i]; i++)
        if ((ULONG_PTR)block - (ULONG_PTR)pages[i] < 4096)
            InterlockedExchange(&((union room *)block)->mark.used, 0);
}

/* STATUS_INVALID_PARAMETER_2: Flags. STATUS_INVALID_PARAMETER_3: mask. STATUS_NO_MEMORY. Then
 * NtSetInformationThread's. A failure does not change *PerformanceDataHandle (our choice). */
NTSTATUS RtlEnableThreadProfiling(HANDLE ThreadHandle, ULONG Flags, ULONG64 HardwareCounters,
                                  PVOID *PerformanceDataHandle)
{
    if (Flags & ~THREAD_PROFILING_FLAG_DISPATCH)
        return STATUS_INVALID_PARAMETER_2;
    if (HardwareCounters & ~ALL_ELEMENTS)
        return STATUS_INVALID_PARAMETER_3;
    PTHREAD_PERFORMANCE_DATA block = allocate_block();
    if (!block)
        return STATUS_NO_MEMORY;
    memset(block, 0, sizeof *block);
    block->Size = sizeof *block;
    block->Version = THREAD_PERFORMANCE_DATA_VERSION;
    block->HardwareCounters = HardwareCounters;
    THREAD_PROFILING_INFORMATION info = { HardwareCounters, Flags, TRUE, block };
    NTSTATUS status =
        NtSetInformationThread(ThreadHandle, THREAD_COUNTER_PROFILING, &info, sizeof info);
    if (NT_SUCCESS(status))
        *PerformanceDataHandle = block;
    else
        free_block(block);
    return status;
}

NTSTATUS RtlDisableThreadProfiling(PVOID PerformanceDataHandle)
{
    THREAD_PROFILING_INFORMATION info = { 0, 0, FALSE, PerformanceDataHandle };
    NTSTATUS status =
        NtSetInformationThread(CURRENT_THREAD, THREAD_COUNTER_PROFILING, &info, sizeof info);
    if (NT_SUCCESS(status))
        free_block(PerformanceDataHandle);
    return status;
}

NTSTATUS RtlQueryThreadProfiling(HANDLE ThreadHandle, PBOOLEAN Enabled)
{
    return NtQueryInformationThread(ThreadHandle, THREAD_COUNTER_PROFILING, Enabled,
                                    sizeof *Enabled, NULL);
}

/* RDPMC does not wait for the instructions before it, LFENCE does. Each reading has one: the
 * instructions from one reading to the next are the thread's, and counted too. */
static inline uint64_t read_counter(ULONG selector)
{
    uint64_t low, high;
    asm volatile("lfence\nrdpmc" : "=a"(low), "=d"(high) : "c"(selector));
    return low | high << 32;
}

/* The mask of a counter's bits: a wrap must not show. NT: CycleTime.Index, which Windows does not
 * use, holds how many bits they lack to 64: in bits 7:0 for all counters, or, if bits 15:8 are not
 * 0, in 7:0 for general-purpose and in 15:8 for fixed counters; above them
 * THREAD_PROFILING_NO_RDPMC, and the number of elements where they are the usual case. */
static inline uint64_t mask_of(ULONG lack, bool fixed)
{
    return ~UINT64_C(0) >> (lack >> (fixed && lack > 0xff ? 8 : 0) & 63);
}

static inline uint64_t count_since(const COUNTER_READING *c, uint64_t mask)
{
    return (read_counter(c->Index) - c->Start) & mask;
}

/* A count since the last switch with the uppermost bit of its counter: who has run for hours, or
 * whose counter went back, because somebody has reset it. The service knows which. */
static inline bool is_odd(uint64_t since, uint64_t mask) { return 2 * since > mask; }

/* False: a count is odd. */
static bool read_block_counters(PTHREAD_PERFORMANCE_DATA block, PPERFORMANCE_DATA data)
{
    bool odd = false;
    ULONG filled = 0, configured = block->HwCountersCount, lack = block->CycleTime.Index;
    for (uint64_t left = block->HardwareCounters & ALL_ELEMENTS; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzl(left);
        const COUNTER_READING *c = &block->HwCounters[i];
        uint64_t value = 0;
        if (i < configured) {
            uint64_t mask = mask_of(lack, c->Index & RDPMC_FIXED);
            uint64_t since = count_since(c, mask);
            value = c->Total + since;
            odd |= is_odd(since, mask);
            filled++;
        }
        data->HwCounters[i] = (HARDWARE_COUNTER_DATA){ PMCCounter, 0, value };
    }
    data->HwCountersCount = (BYTE)filled;
    return !odd;
}

/* Reads the counters in the usual case, as the kernel says: the first n elements, all configured,
 * as wide. Unrolled: no register points to an element, so fewer are saved. Who resets one counter
 * resets the first. False: it is another case. */
static inline bool read_plain(const THREAD_PERFORMANCE_DATA *block, PPERFORMANCE_DATA data,
                              bool *odd)
{
    ULONG index = block->CycleTime.Index, n = index >> THREAD_PROFILING_USUAL_SHIFT;
    if (!n)
        return false;
    uint64_t mask = ~UINT64_C(0) >> (index & 63);
    data->HwCountersCount = (BYTE)n;
#pragma GCC unroll 16
    for (unsigned i = 0; i < MAX_HW_COUNTERS; i++) {
        uint64_t since = count_since(&block->HwCounters[i], mask);
        data->HwCounters[i] =
            (HARDWARE_COUNTER_DATA){ PMCCounter, 0, block->HwCounters[i].Total + since };
        if (i == 0)
            *odd = is_odd(since, mask);
        if (n == i + 1)
            break;
    }
    return true;
}

/* Reads what is not a counter and ends an attempt. An interrupt without a switch moves
 * CycleTime.Start alone, by its own time, which must not come between that and the time stamp.
 * False: a switch or a migration interrupted it, or an interrupt these two. */
static inline bool finish_attempt(PTHREAD_PERFORMANCE_DATA block, ULONG flags,
                                  PPERFORMANCE_DATA data, uint64_t update)
{
    if (flags & READ_THREAD_PROFILING_FLAG_DISPATCHING) {
        data->ContextSwitchCount = block->ContextSwitches;
        data->WaitReasonBitMap = __atomic_exchange_n(&block->WaitReasonBitMap, 0, __ATOMIC_ACQ_REL);
    }
    uint64_t start = block->CycleTime.Start;
    asm volatile("" : "+r"(start) : : "memory");
    uint64_t since = __rdtsc() - start;
    asm volatile("" : "+r"(since) : : "memory");
    data->CycleTime = block->CycleTime.Total + since;
    return block->CycleTime.Start == start &&
           __atomic_load_n(&block->UpdateCount, __ATOMIC_ACQUIRE) == update;
}

/* The next attempt must find the wait reasons that this one has taken. */
static inline void undo_attempt(PTHREAD_PERFORMANCE_DATA block, ULONG flags, PPERFORMANCE_DATA data)
{
    if (flags & READ_THREAD_PROFILING_FLAG_DISPATCHING)
        __atomic_fetch_or(&block->WaitReasonBitMap, data->WaitReasonBitMap, __ATOMIC_ACQ_REL);
    data->RetryCount++;
}

static __attribute__((noinline)) NTSTATUS ask_service(PTHREAD_PERFORMANCE_DATA block, ULONG flags,
                                                      PPERFORMANCE_DATA data)
{
    undo_attempt(block, flags, data);
    return NtReadThreadProfilingData(block, flags, data);
}

/* The general case: any elements of any width, no RDPMC in ring 3, or an odd count. */
static __attribute__((noinline)) NTSTATUS read_general(PTHREAD_PERFORMANCE_DATA block, ULONG flags,
                                                       PPERFORMANCE_DATA data)
{
    if (block->CycleTime.Index & THREAD_PROFILING_NO_RDPMC)
        return NtReadThreadProfilingData(block, flags, data);
    for (;; undo_attempt(block, flags, data)) {
        uint64_t update = __atomic_load_n(&block->UpdateCount, __ATOMIC_ACQUIRE);
        bool odd = !read_block_counters(block, data);
        if (finish_attempt(block, flags, data, update))
            return odd ? ask_service(block, flags, data) : STATUS_SUCCESS;
    }
}

static __attribute__((noinline)) NTSTATUS read_no_counters(PTHREAD_PERFORMANCE_DATA block,
                                                           ULONG flags, PPERFORMANCE_DATA data)
{
    if (flags & ~READ_THREAD_PROFILING_FLAG_DISPATCHING)
        return STATUS_INVALID_PARAMETER_2;
    data->RetryCount = data->Reserved = 0;
    for (;; undo_attempt(block, flags, data)) {
        uint64_t update = __atomic_load_n(&block->UpdateCount, __ATOMIC_ACQUIRE);
        if (finish_attempt(block, flags, data, update))
            return STATUS_SUCCESS;
    }
}

static NTSTATUS repeat_usual(PTHREAD_PERFORMANCE_DATA block, ULONG flags, PPERFORMANCE_DATA data);

/* Every attempt must be the same code, because a program subtracts what a reading executes after
 * RDPMC. A loop would make the compiler keep more registers, which costs the first attempt, nearly
 * always the only one. */
static __attribute__((noinline)) NTSTATUS read_usual(PTHREAD_PERFORMANCE_DATA block, ULONG flags,
                                                     PPERFORMANCE_DATA data)
{
    uint64_t update = __atomic_load_n(&block->UpdateCount, __ATOMIC_ACQUIRE);
    bool odd;
    if (!read_plain(block, data, &odd))
        return read_general(block, flags, data);
    if (!finish_attempt(block, flags, data, update))
        return repeat_usual(block, flags, data);
    return odd ? ask_service(block, flags, data) : STATUS_SUCCESS;
}

static __attribute__((noinline)) NTSTATUS repeat_usual(PTHREAD_PERFORMANCE_DATA block, ULONG flags,
                                                       PPERFORMANCE_DATA data)
{
    undo_attempt(block, flags, data);
    return read_usual(block, flags, data);
}

/* Reads the calling thread's own data. Time stamp and counters are read inside the attempt;
 * UpdateCount is compared last. STATUS_INVALID_BUFFER_SIZE, STATUS_INVALID_PARAMETER_3 (version),
 * STATUS_INVALID_PARAMETER_2 (flags), STATUS_DATA_ERROR (the counters were reset).
 * NT: Windows takes differences in 32 bits and loses the rest; it reads counters after its last
 * comparison. */
NTSTATUS RtlReadThreadProfilingData(HANDLE PerformanceDataHandle, ULONG Flags,
                                    PPERFORMANCE_DATA PerformanceData)
{
    if (PerformanceData->Size != sizeof *PerformanceData)
        return STATUS_INVALID_BUFFER_SIZE;
    if (PerformanceData->Version != PERFORMANCE_DATA_VERSION)
        return STATUS_INVALID_PARAMETER_3;
    if (Flags - READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS > 1) /* of two flags, not this one */
        return read_no_counters(PerformanceDataHandle, Flags, PerformanceData);
    PerformanceData->RetryCount = PerformanceData->Reserved = 0;
    return read_usual(PerformanceDataHandle, Flags, PerformanceData);
}
