/* SPDX-License-Identifier: MIT */
/* What the HAL tells by class. */
#pragma once
#include "kernel/nt/nt_profile.h"

/* Query: classes 1, 20, 44, 45, 52, 53; set: 0, 1, 20, 21.
 * STATUS_INVALID_INFO_CLASS; STATUS_INFO_LENGTH_MISMATCH: the buffer is too small and unchanged;
 * *ReturnedLength (may be NULL) is the size needed, where that varies; else the status of the
 * class's function. PASSIVE_LEVEL. */
NTSTATUS HalQuerySystemInformation(HAL_QUERY_INFORMATION_CLASS InformationClass, ULONG BufferSize,
                                   PVOID Buffer, PULONG ReturnedLength);
NTSTATUS HalSetSystemInformation(HAL_SET_INFORMATION_CLASS InformationClass, ULONG BufferSize,
                                 PVOID Buffer);

/* The source that the counter samples by or counts for a set; ProfileTime: neither.
 * IRQL <= DISPATCH_LEVEL. */
KPROFILE_SOURCE hal_counter_source(unsigned ctr, unsigned cpu);
