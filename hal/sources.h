/* SPDX-License-Identifier: MIT */
/* Profile sources: source.c, source_added.c, source_assign.c. ProfileTime is always supported. IRQL
 * <= DISPATCH_LEVEL. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/cpu.h"
#include "kernel/nt/nt_profile.h"

#define HAL_SOURCE_NAME_MAX 33 /* with its end */
#define HAL_SOURCE_CODE_MAX 0xfff
/* Its samples are records of the processor (hal/buffers), with the address of the instruction that
 * caused the event: no bit of a select that has another meaning. */
#define SOURCE_PRECISE (1u << 19)

/* Called once, at boot: each gets its default interval. */
void hal_sources_init(void);
/* Whether every processor, or each one in the mask, can sample by the source and counts the same
 * event for it. NT: Windows says nothing of processors that differ. Without a mask the answer is
 * for all processors; a source that only some have can be used on those. */
bool hal_source_supported(KPROFILE_SOURCE source);
bool hal_source_supported_on(KPROFILE_SOURCE source, struct cpu_set among);
/* Whether some processor can sample by it: then it has an interval. */
bool hal_source_known(KPROFILE_SOURCE source);
/* The supported source with the next higher number; ProfileTime: there is none. */
KPROFILE_SOURCE hal_source_next(KPROFILE_SOURCE source);
/* The name that tools print: the symbol without "Profile"; "Timer" for ProfileTime. NULL:
 * unsupported. */
const char *hal_source_name(KPROFILE_SOURCE source);
/* Of a known source: events, or 100 ns of time, between two interrupts. Any IRQL. */
ULONG hal_source_interval(KPROFILE_SOURCE source);
/* Prints the sources that some kind of CPU has, as tools on Windows list them. */
void hal_sources_print(void);
void hal_source_limits(KPROFILE_SOURCE source, ULONG *lowest, ULONG *preset, ULONG *highest);
/* Sets it on all processors, clamped to the limits. Returns the new interval, 0 if the source is
 * unknown. It holds from the next interrupt on. IRQL < DISPATCH_LEVEL. */
ULONG hal_source_set_interval(KPROFILE_SOURCE source, ULONG_PTR interval);
/* hal_source_set_interval for ProfileTime, in 100 ns. */
ULONG_PTR HalSetProfileInterval(ULONG_PTR Interval);
/* Adds a source for an event of the processor; flags as pmu_raw_select has them, and
 * SOURCE_PRECISE; interval 0: the usual one. STATUS_NOT_SUPPORTED: no counters here, or their
 * selects do not take the code or a flag, or write no records; STATUS_INVALID_PARAMETER: name or
 * code; STATUS_INSUFFICIENT_RESOURCES: the name exists, or no place is free. */
NTSTATUS hal_source_add(const char *name, unsigned code, uint8_t umask, uint32_t flags,
                        ULONG interval, KPROFILE_SOURCE *source);
/* Decodes the event bytes of an EVENT_TRACE_PROFILE_ADD_INFORMATION, in the format
 * of this processor's maker. STATUS_INVALID_PARAMETER: version is not 2 or 3; STATUS_NOT_SUPPORTED:
 * family, model or stepping in `hierarchy` (0xFFFFFFFF: any) is not this processor's, or there are
 * no counters. Any IRQL. */
NTSTATUS hal_source_event(UCHAR version, const UCHAR event[8], const ULONG hierarchy[3],
                          HAL_PROFILE_SOURCE_ADD *add);
/* Removes an added source. STATUS_INVALID_PARAMETER: it was not added; STATUS_DEVICE_BUSY:
 * somebody samples or counts by it. */
NTSTATUS hal_source_remove(KPROFILE_SOURCE source);

/* Claims a counter for each KPROFILE_SOURCE, fixed ones first, to count ring
 * 3, without interrupts, on every CPU. selectors: out, for RDPMC. Freed by HalFreeHardwareCounters.
 * STATUS_NOT_SUPPORTED: a source that this processor lacks; STATUS_INSUFFICIENT_RESOURCES: the free
 * counters cannot count all of them; STATUS_INVALID_PARAMETER: none, or more than MAX_HW_COUNTERS.
 * IRQL PASSIVE_LEVEL. */
NTSTATUS hal_count_sources(const char *name, const ULONG *sources, ULONG count, ULONG *selectors,
                           PHANDLE handle);

/* information.c. Query: classes 1, 20, 44, 45, 52, 53; set: 0, 1, 20, 21.
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
