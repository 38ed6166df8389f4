/* SPDX-License-Identifier: MIT */
/* The counter configuration, which on Windows only drivers can set. In ring 3 Index is a
 * KPROFILE_SOURCE in the set call (kernel/profiling/counter_driver.c) and an RDPMC selector in the
 * query's result. */
#pragma once
#include "windows.h"
#ifdef __cplusplus
#define _Static_assert static_assert
extern "C" {
#endif
#include "kernel/nt/ntddk.h"

NTSTATUS KeSetHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray, ULONG Count);
NTSTATUS KeQueryHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray, ULONG MaximumCount,
                                             PULONG Count);

#ifdef __cplusplus
}
#undef _Static_assert
#endif
