/* SPDX-License-Identifier: MIT */
/* For the tests of profile objects in ring 0: frames that never were, and calls made short. */
#pragma once
#include "hal/sources.h"
#include "hal/interrupt.h"
#include "hal/profile_interrupt.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/irql.h"
#include "kernel/base/string.h"
#include "kernel/profiling/profile.h"
#include "kernel/trap.h"
#include "tests/harness/test.h"

/* What most of them sample by. */
#define SOURCE ProfileTotalIssues
#define SKIP_WITHOUT_SOURCE()                                                                      \
    do {                                                                                           \
        SKIP_WITHOUT_PMU();                                                                        \
        if (!hal_source_supported(SOURCE))                                                         \
            SKIP("no counter counts instructions");                                                \
    } while (0)

/* profile_loop.asm: 10 instructions an iteration, at addresses from profile_loop_start up to
 * profile_loop_end. */
extern void profile_loop(uint64_t iterations);
extern const uint8_t profile_loop_start[], profile_loop_end[];

/* The loop with no other thread in between: all that is sampled here meanwhile is in it. Interrupt
 * handlers run with interrupts off, so a sample that is due there comes in the loop, too. NMIs
 * sample handlers: where samples are NMIs, other interrupts wait. */
static inline void profile_loop_alone(uint64_t iterations)
{
    KIRQL old = irql_raise(hal_pmi_is_nmi() ? IPI_LEVEL : DISPATCH_LEVEL);
    profile_loop(iterations);
    irql_lower(old);
}

/* A sample at this address, as the interrupt would make it. */
static inline void sample_at(uint64_t address, KPROFILE_SOURCE source)
{
    struct trap_frame frame = { .rip = address, .cs = SEL_KERNEL_CS };
    KIRQL old = irql_raise(PROFILE_LEVEL);
    KeProfileInterruptWithSource(&frame, source);
    irql_lower(old);
}

/* Processors of the first group: those that an affinity of -1 means here. */
static inline unsigned cpus_of_group(void) { return bit_count(cpu_all().bits[0]); }

/* What the HAL says of a source. */
static inline HAL_PROFILE_SOURCE_INFORMATION profile_source(KPROFILE_SOURCE source)
{
    HAL_PROFILE_SOURCE_INFORMATION info = { .Source = source,
                                            .Supported = 0xa5,
                                            .Interval = 0xa5a5a5a5 };
    ULONG returned = 0;
    CHECK_OK(HalQuerySystemInformation(HalProfileSourceInformation, sizeof info, &info, &returned));
    CHECK_EQ(returned, sizeof info);
    CHECK(info.Supported == TRUE || info.Supported == FALSE);
    return info;
}

/* An object for all processes on the processors of the mask; NULL: a check failed. */
static inline HANDLE profile_made(uint64_t base, uint64_t size, ULONG log2, void *buffer,
                                  ULONG buffer_size, KPROFILE_SOURCE source, KAFFINITY cpu_mask)
{
    HANDLE handle = NULL;
    CHECK_OK(NtCreateProfile(&handle, NULL, (PVOID)base, size, log2, buffer, buffer_size, source,
                             cpu_mask));
    return handle;
}

/* Of profile_loop, in one bucket. */
static inline HANDLE profile_of_loop(ULONG *counts, KPROFILE_SOURCE source, KAFFINITY cpu_mask)
{
    return profile_made((uint64_t)profile_loop_start, 64, 6, counts, sizeof *counts, source,
                        cpu_mask);
}

/* Whether a counter of that processor samples by the source. */
static inline bool profile_samples(unsigned cpu, KPROFILE_SOURCE source)
{
    for (unsigned ctr = 0; ctr < 64; ctr++)
        if (hal_profile_source(ctr, cpu) == source)
            return true;
    return false;
}

static inline void profile_start(HANDLE handle) { CHECK_OK(NtStartProfile(handle)); }
static inline void profile_stop(HANDLE handle) { CHECK_OK(NtStopProfile(handle)); }
