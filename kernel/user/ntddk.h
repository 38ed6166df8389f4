/* SPDX-License-Identifier: MIT */
/* What a program may include, too, where a driver on Windows would: the counter configuration. In
 * ring 3 Index is a KPROFILE_SOURCE for the set (kernel/profiling/counter_driver.c) and an RDPMC
 * selector in what the query returns. */
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
