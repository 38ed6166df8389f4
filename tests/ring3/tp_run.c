/* SPDX-License-Identifier: MIT */
/* Profiled threads for tests/profiling/tp_*.c, which configures counters in ring 0. */
#include "kernel/base/rdpmc.h"
#include "tests/ring3/helpers.h"

#define BOTH (READ_THREAD_PROFILING_FLAG_DISPATCHING | READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS)

uint64_t user_state, user_reads, user_handle, user_values[4];
PERFORMANCE_DATA user_data;

static HANDLE enable_profiling(uint64_t mask) { return ring3_enable(1, mask); }

static uint64_t first_element(HANDLE profile)
{
    PERFORMANCE_DATA data;
    ring3_read(profile, BOTH, &data);
    return data.HwCounters[0].Value;
}

static uint64_t cycles(HANDLE profile)
{
    PERFORMANCE_DATA data;
    ring3_read(profile, BOTH, &data);
    return data.CycleTime;
}

static void set_state(uint64_t state) { __atomic_store_n(&user_state, state, __ATOMIC_RELEASE); }

static void check_lost(HANDLE profile)
{
    PERFORMANCE_DATA data;
    ring3_data(&data);
    CHECK_EQ(ReadThreadProfilingData(profile, BOTH, &data), ERROR_CRC);
    CHECK_STATUS(RtlReadThreadProfilingData(profile, BOTH, &data), STATUS_DATA_ERROR);
}

void user_lose(uint64_t naps)
{
    HANDLE profile = enable_profiling(1);
    PERFORMANCE_DATA data;
    uint64_t last = first_element(profile), start = GetTickCount64();
    for (set_state(1); GetTickCount64() - start < 1000; last = data.HwCounters[0].Value) {
        if (naps)
            Sleep(1);
        ring3_data(&data);
        if (ReadThreadProfilingData(profile, BOTH, &data) != ERROR_SUCCESS)
            break;
        CHECK(data.HwCounters[0].Value > last);
        CHECK(data.HwCounters[0].Value - last < UINT64_C(1) << 32);
    }
    check_lost(profile);
    ring3_disable(profile);
    profile = enable_profiling(1); /* nobody has configured them anew */
    check_lost(profile);
    ring3_disable(profile);
}

/* Twice: what the first enable counted must not be in the second one's counts. */
void user_measure(uint64_t mask)
{
    for (unsigned i = 0; i < 2; i++) {
        HANDLE profile = enable_profiling(mask);
        ring3_work(100000);
        ring3_read(profile, BOTH, &user_data);
        ring3_disable(profile);
    }
}

void user_run_until_emptied(uint64_t mask)
{
    HANDLE profile = enable_profiling(mask);
    PERFORMANCE_DATA now;
    uint64_t last = 0;
    bool read = ring3_read(profile, BOTH, &now);
    set_state(1);
    while (read && now.HwCountersCount) {
        ring3_work(1000);
        read = ring3_read(profile, BOTH, &now);
        CHECK(now.HwCountersCount == 0 || now.HwCounters[0].Value > last);
        last = now.HwCounters[0].Value;
        __atomic_fetch_add(&user_reads, 1, __ATOMIC_RELEASE);
    }
    for (unsigned i = 0; i < MAX_HW_COUNTERS; i++)
        CHECK(ring3_all(&now.HwCounters[i], sizeof now.HwCounters[i], mask >> i & 1 ? 0 : FILL));
    for (unsigned i = 0; i < 5; i++) { /* it stays so */
        Sleep(1);
        ring3_read(profile, BOTH, &now);
        CHECK_EQ(now.HwCountersCount, 0);
        CHECK_EQ(now.HwCounters[0].Value, 0);
    }
    ring3_disable(profile);
}

void user_sleep_profiled(uint64_t mask)
{
    enable_profiling(mask);
    set_state(1);
    for (;;)
        Sleep(20); /* 256 such threads leave time for others */
}

void user_spin_profiled(uint64_t mask)
{
    enable_profiling(mask);
    set_state(1);
    for (;;)
        ring3_work(1000);
}

void user_spin(uint64_t gs_base)
{
    set_state(1);
    if (gs_base)
        RING3_WRITE_BASE(gs, gs_base);
    for (;;)
        ring3_work(1000);
}

void user_end_profiled(uint64_t mask) { enable_profiling(mask); }

void user_fault_profiled(uint64_t mask)
{
    enable_profiling(mask);
    asm volatile("movl $0,0" : : : "memory");
}

/* Ring 0 interrupts us; all that it does while user_state is 1 lies between the readings. */
void user_interrupted(uint64_t ticks)
{
    HANDLE profile = enable_profiling(0);
    uint64_t start = __rdtsc(), before = cycles(profile);
    set_state(1);
    while (__rdtsc() - start < ticks || __atomic_load_n(&user_state, __ATOMIC_ACQUIRE) == 1)
        ;
    user_values[1] = cycles(profile) - before;
    user_values[0] = __rdtsc() - start;
    ring3_disable(profile);
}

void user_each_cpu(uint64_t selector)
{
    HANDLE profile = enable_profiling(1);
    uint64_t value = first_element(profile), cpus = ring3_cpus();
    for (; user_values[0] < USER_ROUNDS * cpus; user_values[0]++) {
        uint64_t cpu = user_values[0] % cpus;
        CHECK(SetThreadAffinityMask(GetCurrentThread(), UINT64_C(1) << cpu) != 0);
        Sleep(1); /* the move; on one CPU, too, others run meanwhile */
        CHECK_EQ(GetCurrentProcessorNumber(), cpu);
        uint64_t before = __readpmc((uint32_t)selector);
        ring3_work(30000); /* nearly a count of 16 bits */
        CHECK(__readpmc((uint32_t)selector) > before);
        uint64_t now = first_element(profile);
        CHECK(now > value);
        value = now;
    }
    ring3_disable(profile);
}

static LONG refuse(PEXCEPTION_POINTERS e)
{
    if (e->ExceptionRecord->ExceptionCode != (DWORD)STATUS_PRIVILEGED_INSTRUCTION)
        return EXCEPTION_CONTINUE_SEARCH;
    user_values[0]++;
    e->ContextRecord->Rip += 2; /* RDPMC */
    return EXCEPTION_CONTINUE_EXECUTION;
}

void user_rdpmc_each(uint64_t unused)
{
    static const uint32_t selectors[] = { 0, 1, RDPMC_FIXED, 0x3f, 0xffffffff };
    _Static_assert(3 * ARRAY_SIZE(selectors) == USER_RDPMC_REFUSED, "all are refused");
    CHECK(AddVectoredExceptionHandler(1, refuse) != NULL);
    for (unsigned state = 0; state < 3; state++) { /* never profiled, without counters, not now */
        HANDLE profile = state ? enable_profiling(state - 1) : NULL;
        if (state == 2)
            ring3_disable(profile);
        for (unsigned i = 0; i < ARRAY_SIZE(selectors); i++)
            __readpmc(selectors[i]);
        if (state == 1)
            ring3_disable(profile);
    }
}
