/* SPDX-License-Identifier: MIT */
/* The owners of a processor's counters, as NtTraceControl reports them. Shared by the kernel and
 * ring 3; include Windows' types first. Source: the community's phnt headers. */
#pragma once

typedef enum _ETW_PMC_COUNTER_OWNER_TYPE {
    EtwPmcOwnerFree,
    EtwPmcOwnerUntagged,
    EtwPmcOwnerTagged,
    EtwPmcOwnerTaggedWithSource
} ETW_PMC_COUNTER_OWNER_TYPE;

typedef struct _ETW_PMC_COUNTER_OWNER {
    ETW_PMC_COUNTER_OWNER_TYPE OwnerType;
    ULONG ProfileSource;
    ULONG OwnerTag;
} ETW_PMC_COUNTER_OWNER, *PETW_PMC_COUNTER_OWNER;
ABI_SIZE(ETW_PMC_COUNTER_OWNER, 0x0C);

typedef struct _ETW_PMC_COUNTER_OWNERSHIP_STATUS {
    ULONG ProcessorNumber;
    ULONG NumberOfCounters;
    ETW_PMC_COUNTER_OWNER CounterOwners[1];
} ETW_PMC_COUNTER_OWNERSHIP_STATUS, *PETW_PMC_COUNTER_OWNERSHIP_STATUS;
ABI_FIELD(ETW_PMC_COUNTER_OWNERSHIP_STATUS, CounterOwners, 8);
