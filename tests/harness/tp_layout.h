/* SPDX-License-Identifier: MIT */
/* For who has included the types of thread profiling: the kernel's own, or those that programs
 * have. */
#pragma once
#include <stddef.h>
#include "tests/harness/test.h"

/* Sizes and offsets as on Windows. */
static inline void tp_layout_check(void)
{
    CHECK_EQ(sizeof(HARDWARE_COUNTER), 0x10);
    CHECK_EQ(sizeof(HARDWARE_COUNTER_DATA), 0x10);
    CHECK_EQ(sizeof(PERFORMANCE_DATA), 0x120);
    CHECK_EQ(sizeof(THREAD_PERFORMANCE_DATA), 0x1c0);
    CHECK_EQ(sizeof(THREAD_PROFILING_INFORMATION), 0x18);
    CHECK_EQ(offsetof(PERFORMANCE_DATA, HwCountersCount), 3);
    CHECK_EQ(offsetof(PERFORMANCE_DATA, ContextSwitchCount), 4);
    CHECK_EQ(offsetof(PERFORMANCE_DATA, WaitReasonBitMap), 8);
    CHECK_EQ(offsetof(PERFORMANCE_DATA, CycleTime), 0x10);
    CHECK_EQ(offsetof(PERFORMANCE_DATA, RetryCount), 0x18);
    CHECK_EQ(offsetof(PERFORMANCE_DATA, HwCounters), 0x20);
}
