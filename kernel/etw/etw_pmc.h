/* SPDX-License-Identifier: MIT */
/* For kernel/etw only: counters at events (ETW_PMC_SUPPORT), and sampling
 * by counters. */
#pragma once
#include "kernel/ke/etw_stream.h"

#define ETW_PMC_COUNTERS_MAX 7 /* of TRACE_HEADER_PMC_COUNTERS_MASK, three bits */

/* As Windows 10 1903 has it; ProcessorCtrs has an element for each processor. Made by the first of
 * the two lists. */
typedef struct _ETW_PMC_SUPPORT {
    PKPROFILE_SOURCE Source;
    ULONG HookIdCount; /* 0: not given yet */
    USHORT HookId[ETW_MAX_PMC_EVENTS];
    ULONG CountersCount; /* the same */
    PMC_HANDLE ProcessorCtrs[1];
} ETW_PMC_SUPPORT, *PETW_PMC_SUPPORT;
ABI_SIZE(ETW_PMC_SUPPORT, 0x20);
ABI_FIELD(ETW_PMC_SUPPORT, HookIdCount, 8);
ABI_FIELD(ETW_PMC_SUPPORT, HookId, 0x0C);
ABI_FIELD(ETW_PMC_SUPPORT, CountersCount, 0x14);
ABI_FIELD(ETW_PMC_SUPPORT, ProcessorCtrs, 0x18);

/* Windows 8 to 10 1607, and 1703 to 1809. */
typedef struct _ETW_PMC_SUPPORT_1607 {
    KPROFILE_SOURCE Source[4];
    ULONG HookIdCount;
    USHORT HookId[ETW_MAX_PMC_EVENTS];
    ULONG CountersCount;
    PMC_HANDLE ProcessorCtrs[1];
} ETW_PMC_SUPPORT_1607;
ABI_SIZE(ETW_PMC_SUPPORT_1607, 0x28);
ABI_FIELD(ETW_PMC_SUPPORT_1607, HookId, 0x14);
ABI_FIELD(ETW_PMC_SUPPORT_1607, CountersCount, 0x1C);

typedef struct _ETW_PMC_SUPPORT_1809 {
    KPROFILE_SOURCE Source[8];
    ULONG HookIdCount;
    USHORT HookId[ETW_MAX_PMC_EVENTS];
    ULONG CountersCount;
    PMC_HANDLE ProcessorCtrs[1];
} ETW_PMC_SUPPORT_1809;
ABI_SIZE(ETW_PMC_SUPPORT_1809, 0x38);
ABI_FIELD(ETW_PMC_SUPPORT_1809, HookId, 0x24);
ABI_FIELD(ETW_PMC_SUPPORT_1809, CountersCount, 0x2C);

/* Counters that a record can have on this machine, 0 without a PMU. */
ULONG etw_pmc_max(void);
/* L: guard, these. The two lists, each once a session. STATUS_INVALID_PARAMETER: none, too many
 * (counters: more than etw_pmc_max), paged memory; STATUS_NO_MEMORY; STATUS_WMI_ALREADY_ENABLED;
 * what the HAL refuses a source with: STATUS_NOT_SUPPORTED, STATUS_DEVICE_BUSY: the counters that
 * are free cannot count them all, on some processor. */
NTSTATUS etw_pmc_set_sources(struct etw_logger *logger, const ULONG *sources, ULONG count);
NTSTATUS etw_pmc_set_hooks(struct etw_logger *logger, const ULONG *hooks, ULONG count);
/* Ends the counters in the session's records, on every processor. L: guard */
void etw_pmc_free(struct etw_logger *logger);

/* Sets the sources that sample for ETW_PMC, system-wide, in place of the earlier ones.
 * STATUS_INVALID_PARAMETER: more than ETW_MAX_PROFILING_SOURCES; STATUS_NOT_SUPPORTED;
 * STATUS_DEVICE_BUSY. L: guard */
NTSTATUS etw_sampling_configure(const ULONG *sources, ULONG count);
/* Starts and stops sampling for the hooks that some session has enabled. STATUS_DEVICE_BUSY:
 * nothing has changed. */
NTSTATUS etw_sampling_update(uint32_t hooks);
