/* SPDX-License-Identifier: MIT */
/* For the tests of profile objects in ring 0: frames that never were, and calls made short. */
#pragma once
#include "hal/hal.h"
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

/* A sample at this address, as the interrupt would make it. */
static inline void sample_at(uint64_t address, KPROFILE_SOURCE source)
{
    struct trap_frame frame = { .rip = address, .cs = SEL_KERNEL_CS };
    KIRQL old = irql_raise(PROFILE_LEVEL);
    KeProfileInterruptWithSource(&frame, source);
    irql_lower(old);
}

/* What the HAL says of a source. */
static inline HAL_PROFILE_SOURCE_INFORMATION profile_source(KPROFILE_SOURCE source)
{
    HAL_PROFILE_SOURCE_INFORMATION info = { .Source = source,
                                            .Supported = 0xa5,
                                            .Interval = 0xa5a5a5a5 };
    ULONG returned = 0;
    CHECK_STATUS(HalQuerySystemInformation(HalProfileSourceInformation, sizeof info, &info,
                                           &returned),
                 STATUS_SUCCESS);
    CHECK_EQ(returned, sizeof info);
    CHECK(info.Supported == TRUE || info.Supported == FALSE);
    return info;
}

/* An object for all processes on the processors of the mask; NULL: a check failed. */
static inline HANDLE profile_made(uint64_t base, uint64_t size, ULONG log2, void *buffer,
                                  ULONG buffer_size, KPROFILE_SOURCE source, KAFFINITY cpu_mask)
{
    HANDLE handle = NULL;
    CHECK_STATUS(NtCreateProfile(&handle, NULL, (PVOID)base, size, log2, buffer, buffer_size,
                                 source, cpu_mask),
                 STATUS_SUCCESS);
    return handle;
}

static inline void profile_start(HANDLE handle)
{
    CHECK_STATUS(NtStartProfile(handle), STATUS_SUCCESS);
}
static inline void profile_stop(HANDLE handle)
{
    CHECK_STATUS(NtStopProfile(handle), STATUS_SUCCESS);
}
