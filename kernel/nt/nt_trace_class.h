/* SPDX-License-Identifier: MIT */
/* Class 0x1F of NtSetSystemInformation and NtQuerySystemInformation, whose first ULONG picks a
 * sub-class, and ETW_PMC_SUPPORT. Sources: as nt_trace.h. */
#pragma once
#include "kernel/nt/nt_etw.h"

#define SystemPerformanceTraceInformation 0x1F
#define SystemMemoryUsageInformation 182

/* clang-format off */
typedef enum _EVENT_TRACE_INFORMATION_CLASS {
    EventTraceKernelVersionInformation, EventTraceGroupMaskInformation, EventTracePerformanceInformation,
    EventTraceTimeProfileInformation, EventTraceSessionSecurityInformation, EventTraceSpinlockInformation,
    EventTraceStackTracingInformation, EventTraceExecutiveResourceInformation, EventTraceHeapTracingInformation,
    EventTraceHeapSummaryTracingInformation, EventTracePoolTagFilterInformation, EventTracePebsTracingInformation,
    EventTraceProfileConfigInformation, EventTraceProfileSourceListInformation, EventTraceProfileEventListInformation,
    EventTraceProfileCounterListInformation, EventTraceStackCachingInformation,
    EventTraceObjectTypeFilterInformation, EventTraceSoftRestartInformation,
    EventTraceLastBranchConfigurationInformation, EventTraceLastBranchEventListInformation,
    EventTraceProfileSourceAddInformation, EventTraceProfileSourceRemoveInformation,
    EventTraceProcessorTraceConfigurationInformation, EventTraceProcessorTraceEventListInformation,
    EventTraceCoverageSamplerInformation, EventTraceUnifiedStackCachingInformation,
    EventTraceContextRegisterTraceInformation, MaxEventTraceInfoClass
} EVENT_TRACE_INFORMATION_CLASS;
/* clang-format on */
_Static_assert(EventTraceProfileCounterListInformation == 0x0F &&
                   EventTraceProfileSourceAddInformation == 0x15 && MaxEventTraceInfoClass == 0x1C,
               "EVENT_TRACE_INFORMATION_CLASS");

#define ETW_MAX_PROFILING_SOURCES 4
#define ETW_MAX_PMC_EVENTS 4

typedef struct _EVENT_TRACE_PROFILE_COUNTER_INFORMATION {
    EVENT_TRACE_INFORMATION_CLASS EventTraceInformationClass;
    TRACEHANDLE TraceHandle;
    ULONG ProfileSource[1];
} EVENT_TRACE_PROFILE_COUNTER_INFORMATION, EVENT_TRACE_PROFILE_CONFIG_INFORMATION;
ABI_SIZE(EVENT_TRACE_PROFILE_COUNTER_INFORMATION, 0x18);
ABI_FIELD(EVENT_TRACE_PROFILE_COUNTER_INFORMATION, TraceHandle, 8);
ABI_FIELD(EVENT_TRACE_PROFILE_COUNTER_INFORMATION, ProfileSource, 0x10);

typedef struct _EVENT_TRACE_SYSTEM_EVENT_INFORMATION {
    EVENT_TRACE_INFORMATION_CLASS EventTraceInformationClass;
    TRACEHANDLE TraceHandle;
    ULONG HookId[1];
} EVENT_TRACE_SYSTEM_EVENT_INFORMATION, EVENT_TRACE_PROFILE_EVENT_INFORMATION,
    EVENT_TRACE_PEBS_TRACING_INFORMATION, EVENT_TRACE_STACK_TRACING_INFORMATION;
ABI_SIZE(EVENT_TRACE_SYSTEM_EVENT_INFORMATION, 0x18);
ABI_FIELD(EVENT_TRACE_SYSTEM_EVENT_INFORMATION, HookId, 0x10);

/* NT: Windows' layout is not known; only that the flags are a ULONG. */
typedef struct _EVENT_TRACE_LAST_BRANCH_CONFIGURATION_INFORMATION {
    EVENT_TRACE_INFORMATION_CLASS EventTraceInformationClass;
    TRACEHANDLE TraceHandle;
    ULONG LbrOptions; /* EVNTRACE_LBR_FLAGS */
} EVENT_TRACE_LAST_BRANCH_CONFIGURATION_INFORMATION;
ABI_SIZE(EVENT_TRACE_LAST_BRANCH_CONFIGURATION_INFORMATION, 0x18);
ABI_FIELD(EVENT_TRACE_LAST_BRANCH_CONFIGURATION_INFORMATION, LbrOptions, 0x10);

#define ETW_LBR_FILTERS 0x1ff /* what is left out; the flags' names are evntrace.h's */
#define ETW_LBR_CALL_STACK 0x200
#define ETW_LBR_SAMPLED 0x400 /* ARM64's */
#define ETW_MAX_LBR_EVENTS 4

typedef struct _EVENT_TRACE_TIME_PROFILE_INFORMATION {
    EVENT_TRACE_INFORMATION_CLASS EventTraceInformationClass;
    ULONG ProfileInterval; /* 100 ns */
} EVENT_TRACE_TIME_PROFILE_INFORMATION;
ABI_SIZE(EVENT_TRACE_TIME_PROFILE_INFORMATION, 8);

typedef struct _EVENT_TRACE_PROFILE_LIST_INFORMATION {
    EVENT_TRACE_INFORMATION_CLASS EventTraceInformationClass;
    ULONG Spare;
    PROFILE_SOURCE_INFO Profile[1];
} EVENT_TRACE_PROFILE_LIST_INFORMATION;
ABI_FIELD(EVENT_TRACE_PROFILE_LIST_INFORMATION, Profile, 8);

typedef struct _EVENT_TRACE_GROUPMASK_INFORMATION {
    EVENT_TRACE_INFORMATION_CLASS EventTraceInformationClass;
    TRACEHANDLE TraceHandle;
    PERFINFO_GROUPMASK EventTraceGroupMasks;
} EVENT_TRACE_GROUPMASK_INFORMATION;
ABI_SIZE(EVENT_TRACE_GROUPMASK_INFORMATION, 0x30);
ABI_FIELD(EVENT_TRACE_GROUPMASK_INFORMATION, EventTraceGroupMasks, 0x10);

/* The bytes at 8 depend on the vendor. Intel: EventSelect, UnitSelect, CMask, CInv, AnyThread,
 * EdgeDetect. AMD, version 2: EventSelect, UnitSelect; version 3: a USHORT EventSelect, UnitSelect,
 * CMask, CInv, EdgeDetect, HostGuest, PmuType. */
typedef struct __attribute__((packed, aligned(4))) _EVENT_TRACE_PROFILE_ADD_INFORMATION {
    EVENT_TRACE_INFORMATION_CLASS EventTraceInformationClass;
    UCHAR Version;
    UCHAR Reserved[3];
    UCHAR Event[8];
    ULONG CpuInfoHierarchy[3]; /* 0xFFFFFFFF: any */
    ULONG InitialInterval;
    BOOLEAN Persist;
    UCHAR Reserved2;
    WCHAR ProfileSourceDescription[1];
} EVENT_TRACE_PROFILE_ADD_INFORMATION;
ABI_SIZE(EVENT_TRACE_PROFILE_ADD_INFORMATION, 0x24);
ABI_FIELD(EVENT_TRACE_PROFILE_ADD_INFORMATION, Event, 8);
ABI_FIELD(EVENT_TRACE_PROFILE_ADD_INFORMATION, InitialInterval, 0x1C);
ABI_FIELD(EVENT_TRACE_PROFILE_ADD_INFORMATION, ProfileSourceDescription, 0x22);

typedef struct _EVENT_TRACE_PROFILE_REMOVE_INFORMATION {
    EVENT_TRACE_INFORMATION_CLASS EventTraceInformationClass;
    KPROFILE_SOURCE ProfileSource;
    ULONG CpuInfoHierarchy[3];
} EVENT_TRACE_PROFILE_REMOVE_INFORMATION;
ABI_SIZE(EVENT_TRACE_PROFILE_REMOVE_INFORMATION, 0x14);
