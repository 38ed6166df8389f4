/* SPDX-License-Identifier: MIT */
/* TraceSetInformation and TraceQueryInformation: thin over class 0x1F of NtSetSystemInformation and
 * over NtTraceControl. They return a Win32 code and set no last error. Sources: Microsoft's pages;
 * where they are silent (layouts, order of checks), Geoff Chappell's studies of Windows 10. */
#include <string.h>
#include "kernel/user/advapi32/trace.h"

#define STACKS_MAX 256
#define LIST_MAX STACKS_MAX /* entries of a list: those of the longest */

/* The groups of hooks: the high byte of the hooks, and the class GUID of classic events. */
static const struct {
    UCHAR group;
    const GUID *guid;
} groups[] = { { 0x05, &ThreadGuid }, { 0x0F, &PerfInfoGuid }, { 0x18, &StackWalkGuid } };

const GUID *trace_group(USHORT hook)
{
    for (unsigned i = 0; i < ARRAYSIZE(groups); i++)
        if (groups[i].group == hook >> 8)
            return groups[i].guid;
    return NULL;
}

static ULONG set_trace_information(PVOID buffer, size_t length)
{
    return RtlNtStatusToDosError(
        ZwSetSystemInformation(SystemPerformanceTraceInformation, buffer, (ULONG)length));
}

/* Sets a list of class 0x1F; its entries are ULONGs after the handle. */
static ULONG set_event_list(EVENT_TRACE_INFORMATION_CLASS which, TRACEHANDLE session,
                            const ULONG *list, ULONG count)
{
    struct {
        EVENT_TRACE_INFORMATION_CLASS which;
        ULONG reserved;
        TRACEHANDLE session;
        ULONG list[LIST_MAX];
    } info = { .which = which, .session = session };
    memcpy(info.list, list, count * sizeof *list);
    return set_trace_information(&info, offsetof(__typeof__(info), list) + count * sizeof *list);
}

static ULONG most_counters(void)
{
    ULONG most = 0, returned;
    ZwTraceControl(EtwMaxPmcCounterQueryCode, NULL, 0, &most, sizeof most, &returned);
    return most ? most : LIST_MAX;
}

static ULONG set_sources(EVENT_TRACE_INFORMATION_CLASS which, TRACEHANDLE session,
                         const ULONG *sources, ULONG length, ULONG most)
{
    if (length % sizeof *sources || length / sizeof *sources > most)
        return ERROR_INCORRECT_SIZE;
    if (!length || !sources)
        return ERROR_INVALID_PARAMETER;
    return set_event_list(which, session, sources, length / sizeof *sources);
}

/* The hooks of events, and their number. Unknown event classes are left out, as in Windows. */
static ULONG hooks_of(const CLASSIC_EVENT_ID *events, ULONG count, ULONG hooks[STACKS_MAX])
{
    ULONG found = 0;
    for (ULONG i = 0; i < count; i++)
        for (unsigned g = 0; g < ARRAYSIZE(groups); g++)
            if (memcmp(&events[i].EventGuid, groups[g].guid, sizeof(GUID)) == 0)
                hooks[found++] = (ULONG)groups[g].group << 8 | events[i].Type;
    return found;
}

static ULONG set_events(EVENT_TRACE_INFORMATION_CLASS which, TRACEHANDLE session,
                        const CLASSIC_EVENT_ID *events, ULONG length, ULONG most)
{
    ULONG hooks[STACKS_MAX];
    if (length % sizeof *events || length / sizeof *events > most)
        return ERROR_INCORRECT_SIZE;
    if (length ? !events : which != EventTraceStackTracingInformation)
        return ERROR_INVALID_PARAMETER;
    return set_event_list(which, session, hooks, hooks_of(events, length / sizeof *events, hooks));
}

static ULONG set_branch_options(TRACEHANDLE session, const ULONG *options, ULONG length)
{
    if (length != sizeof *options)
        return ERROR_BAD_LENGTH;
    if (!options)
        return ERROR_INVALID_PARAMETER;
    return set_event_list(EventTraceLastBranchConfigurationInformation, session, options, 1);
}

/* ERROR_INVALID_PARAMETER: no events, more than four, none of a known class, or not a system
 * logger; otherwise as TraceSetInformation's classes 20 and 21. Source: Microsoft's page, which
 * says nothing of codes. */
ULONG TraceConfigureLastBranchRecord(TRACEHANDLE TraceId, TRACE_LBR_CONFIGURATION LbrConfiguration,
                                     const CLASSIC_EVENT_ID *Events, ULONG EventCount)
{
    ULONG hooks[STACKS_MAX], count;
    if (!Events || !EventCount || EventCount > ETW_MAX_LBR_EVENTS)
        return ERROR_INVALID_PARAMETER;
    count = hooks_of(Events, EventCount, hooks);
    if (!count)
        return ERROR_INVALID_PARAMETER;
    ULONG error = set_branch_options(TraceId, &LbrConfiguration, sizeof LbrConfiguration);
    return error ? error
                 : set_event_list(EventTraceLastBranchEventListInformation, TraceId, hooks, count);
}

static ULONG set_group_masks(TRACEHANDLE session, const PERFINFO_GROUPMASK *masks, ULONG length)
{
    if (length != sizeof *masks)
        return ERROR_BAD_LENGTH;
    EVENT_TRACE_GROUPMASK_INFORMATION info = { EventTraceGroupMaskInformation, session, *masks };
    return set_trace_information(&info, sizeof info);
}

static ULONG set_profile_interval(TRACEHANDLE session, const TRACE_PROFILE_INTERVAL *interval,
                                  ULONG length)
{
    if (session)
        return ERROR_INVALID_PARAMETER;
    if (length != sizeof *interval)
        return ERROR_BAD_LENGTH;
    if (interval->Source != ProfileTime)
        return RtlNtStatusToDosError(
            ZwSetIntervalProfile(interval->Interval, (KPROFILE_SOURCE)interval->Source));
    EVENT_TRACE_TIME_PROFILE_INFORMATION info = { EventTraceTimeProfileInformation,
                                                  interval->Interval };
    return set_trace_information(&info, sizeof info);
}

/* Classes 3, 4, 5, 6, 8, 9, 20, 21. NT: others, as 10 (a list of providers), 15, 16, 17, 18, 24
 * (compression, captures of state, tracking of binaries, smaller stacks): ERROR_NOT_SUPPORTED.
 * 3  ERROR_INCORRECT_SIZE: not whole CLASSIC_EVENT_IDs, or more than 256; none: no more stacks;
 *    ERROR_WMI_INSTANCE_NOT_FOUND; ERROR_INVALID_PARAMETER: not a system logger;
 *    ERROR_NOT_SUPPORTED: an event of a known class that is not recorded here
 * 4  Flags of StartTrace in the first word mean what they mean there (our choice).
 *    ERROR_BAD_LENGTH: not a PERFINFO_GROUPMASK; ERROR_WMI_INSTANCE_NOT_FOUND;
 *    ERROR_INVALID_PARAMETER: not a system logger; ERROR_PRIVILEGE_NOT_HELD: samples without
 *    SeSystemProfilePrivilege; ERROR_BUSY: no counter to sample by
 * 5  ERROR_INVALID_PARAMETER: a handle; ERROR_BAD_LENGTH; ERROR_PRIVILEGE_NOT_HELD
 * 6  ERROR_INVALID_PARAMETER: a handle, or no source; ERROR_INCORRECT_SIZE: not whole ULONGs, or
 *    more than four; ERROR_NOT_SUPPORTED: there is no such source; ERROR_BUSY: no counter is free;
 *    ERROR_PRIVILEGE_NOT_HELD
 * 8  ERROR_INCORRECT_SIZE: not whole CLASSIC_EVENT_IDs, or more than four; ERROR_INVALID_PARAMETER:
 *    none, or none known; ERROR_WMI_INSTANCE_NOT_FOUND; ERROR_WMI_ALREADY_ENABLED: a second time
 * 9  ERROR_INCORRECT_SIZE: not whole ULONGs, or more than TraceMaxPmcCounterQuery allows;
 *    ERROR_INVALID_PARAMETER: none; the others as for 6 and 8
 * 20 ERROR_BAD_LENGTH; ERROR_INVALID_PARAMETER: no flags, unknown ones, a call stack without calls
 *    or returns, or not a system logger; ERROR_WMI_INSTANCE_NOT_FOUND; ERROR_PRIVILEGE_NOT_HELD: no
 *    SeSystemProfilePrivilege; ERROR_NOT_SUPPORTED: a processor without a list, or whose list
 *    cannot do that; ERROR_BUSY: another session has the lists; ERROR_WMI_ALREADY_ENABLED: they run
 * 21 ERROR_INCORRECT_SIZE: not whole ULONGs, hooks, or more than four;
 *    ERROR_INVALID_PARAMETER: none; the others as for 20
 * All: ERROR_ACCESS_DENIED; ERROR_NOACCESS: the kernel cannot read TraceInformation. */
ULONG TraceSetInformation(TRACEHANDLE SessionHandle, TRACE_INFO_CLASS InformationClass,
                          PVOID TraceInformation, ULONG InformationLength)
{
    switch ((int)InformationClass) {
    case TraceSystemTraceEnableFlagsInfo:
        return set_group_masks(SessionHandle, TraceInformation, InformationLength);
    case TraceSampledProfileIntervalInfo:
        return set_profile_interval(SessionHandle, TraceInformation, InformationLength);
    case TraceProfileSourceConfigInfo:
        if (SessionHandle)
            return ERROR_INVALID_PARAMETER;
        return set_sources(EventTraceProfileConfigInformation, 0, TraceInformation,
                           InformationLength, ETW_MAX_PROFILING_SOURCES);
    case TraceStackTracingInfo:
        return set_events(EventTraceStackTracingInformation, SessionHandle, TraceInformation,
                          InformationLength, STACKS_MAX);
    case TracePmcEventListInfo:
        return set_events(EventTraceProfileEventListInformation, SessionHandle, TraceInformation,
                          InformationLength, ETW_MAX_PMC_EVENTS);
    case TracePmcCounterListInfo:
        return set_sources(EventTraceProfileCounterListInformation, SessionHandle, TraceInformation,
                           InformationLength, most_counters());
    case TraceLbrConfigurationInfo:
        return set_branch_options(SessionHandle, TraceInformation, InformationLength);
    case TraceLbrEventListInfo:
        return set_sources(EventTraceLastBranchEventListInformation, SessionHandle,
                           TraceInformation, InformationLength, ETW_MAX_LBR_EVENTS);
    default: return ERROR_NOT_SUPPORTED;
    }
}

/* --- Queries. --- */

static ULONG query_masks(TRACEHANDLE session, PERFINFO_GROUPMASK *masks, ULONG length,
                         PULONG returned)
{
    ULONG n;
    if (length < sizeof *masks)
        return ERROR_BAD_LENGTH;
    EVENT_TRACE_GROUPMASK_INFORMATION info = { EventTraceGroupMaskInformation, session, { { 0 } } };
    NTSTATUS status =
        ZwQuerySystemInformation(SystemPerformanceTraceInformation, &info, sizeof info, &n);
    if (NT_SUCCESS(status)) {
        *masks = info.EventTraceGroupMasks;
        *returned = sizeof *masks;
    }
    return RtlNtStatusToDosError(status);
}

/* The events whose stacks are recorded. */
static ULONG query_stacks(TRACEHANDLE session, CLASSIC_EVENT_ID *events, ULONG length,
                          PULONG returned)
{
    ULONG hooks[4 + STACKS_MAX], n = 0; /* EVENT_TRACE_STACK_TRACING_INFORMATION */
    EVENT_TRACE_STACK_TRACING_INFORMATION *info = (void *)hooks;
    ULONG fixed = offsetof(EVENT_TRACE_STACK_TRACING_INFORMATION, HookId);
    info->EventTraceInformationClass = EventTraceStackTracingInformation;
    info->TraceHandle = session;
    NTSTATUS status =
        ZwQuerySystemInformation(SystemPerformanceTraceInformation, info, sizeof hooks, &n);
    if (!NT_SUCCESS(status))
        return RtlNtStatusToDosError(status);
    n = (n - fixed) / sizeof info->HookId[0];
    *returned = n * sizeof *events;
    if (length < *returned)
        return ERROR_BAD_LENGTH;
    for (ULONG i = 0; i < n; i++)
        events[i] = (CLASSIC_EVENT_ID){ *trace_group((USHORT)info->HookId[i]),
                                        (UCHAR)info->HookId[i],
                                        { 0 } };
    return ERROR_SUCCESS;
}

static ULONG query_interval(TRACEHANDLE session, TRACE_PROFILE_INTERVAL *interval, ULONG length,
                            PULONG returned)
{
    ULONG n;
    NTSTATUS status;
    if (session)
        return ERROR_INVALID_PARAMETER;
    if (length != sizeof *interval)
        return ERROR_BAD_LENGTH;
    if (interval->Source == ProfileTime) {
        EVENT_TRACE_TIME_PROFILE_INFORMATION info = { EventTraceTimeProfileInformation, 0 };
        status =
            ZwQuerySystemInformation(SystemPerformanceTraceInformation, &info, sizeof info, &n);
        interval->Interval = info.ProfileInterval;
    } else {
        status = ZwQueryIntervalProfile((KPROFILE_SOURCE)interval->Source, &interval->Interval);
    }
    *returned = sizeof *interval;
    return RtlNtStatusToDosError(status);
}

/* The kernel's list has 8 bytes before the entries, the caller's does not: a copy is needed. */
static ULONG query_sources(TRACEHANDLE session, PVOID list, ULONG length, PULONG returned)
{
    ULONG head = offsetof(EVENT_TRACE_PROFILE_LIST_INFORMATION, Profile), needed = 0;
    if (session)
        return ERROR_INVALID_PARAMETER;
    EVENT_TRACE_PROFILE_LIST_INFORMATION first = { .EventTraceInformationClass =
                                                       EventTraceProfileSourceListInformation };
    ZwQuerySystemInformation(SystemPerformanceTraceInformation, &first, head, &needed);
    *returned = needed > head ? needed - head : 0;
    if (!list || length < *returned)
        return ERROR_BAD_LENGTH;
    SIZE_T size = needed;
    PVOID copy = NULL;
    NTSTATUS status = NtAllocateVirtualMemory(NtCurrentProcess(), &copy, 0, &size,
                                              MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
    if (!NT_SUCCESS(status))
        return RtlNtStatusToDosError(status);
    memcpy(copy, &first, head);
    status = ZwQuerySystemInformation(SystemPerformanceTraceInformation, copy, needed, &needed);
    if (NT_SUCCESS(status))
        memcpy(list, (const uint8_t *)copy + head, *returned);
    size = 0;
    NtFreeVirtualMemory(NtCurrentProcess(), &copy, &size, MEM_RELEASE);
    return RtlNtStatusToDosError(status);
}

static ULONG query_owners(TRACEHANDLE session, PVOID status, ULONG length, PULONG returned)
{
    if (session)
        return ERROR_INVALID_PARAMETER;
    if (length < offsetof(ETW_PMC_COUNTER_OWNERSHIP_STATUS, CounterOwners))
        return ERROR_BAD_LENGTH;
    return RtlNtStatusToDosError(
        ZwTraceControl(EtwPmcOwnersQueryCode, status, sizeof(ULONG), status, length, returned));
}

/* Classes 3, 4, 5, 7, 22, 25, 27. NT: others, as 11, 19 and 23 (a version, the most sessions, the
 * streams of a session): ERROR_NOT_SUPPORTED. ReturnLength may be NULL. If the buffer is too small,
 * classes 3, 7, 25, 27 store the length needed there. All:
 * ERROR_ACCESS_DENIED.
 * 3  ERROR_WMI_INSTANCE_NOT_FOUND; ERROR_BAD_LENGTH. Each event stands once
 * 4  ERROR_BAD_LENGTH; ERROR_WMI_INSTANCE_NOT_FOUND
 * 5  ERROR_INVALID_PARAMETER: a handle; ERROR_BAD_LENGTH. The caller sets Source
 * 7  ERROR_INVALID_PARAMETER: a handle; ERROR_BAD_LENGTH: NULL or too small
 * 22 ERROR_BAD_LENGTH
 * 25 ERROR_INVALID_PARAMETER: a handle, or no such processor; ERROR_BAD_LENGTH: less than a header;
 *    ERROR_INSUFFICIENT_BUFFER. The caller sets ProcessorNumber
 * 27 ERROR_INSUFFICIENT_BUFFER */
ULONG TraceQueryInformation(TRACEHANDLE SessionHandle, TRACE_QUERY_INFO_CLASS InformationClass,
                            PVOID TraceInformation, ULONG InformationLength, PULONG ReturnLength)
{
    ULONG ignored = 0;
    PULONG returned = ReturnLength ? ReturnLength : &ignored;
    *returned = 0;
    switch ((int)InformationClass) {
    case TraceStackTracingInfo:
        return query_stacks(SessionHandle, TraceInformation, InformationLength, returned);
    case TraceSystemTraceEnableFlagsInfo:
        return query_masks(SessionHandle, TraceInformation, InformationLength, returned);
    case TraceSampledProfileIntervalInfo:
        return query_interval(SessionHandle, TraceInformation, InformationLength, returned);
    case TraceProfileSourceListInfo:
        return query_sources(SessionHandle, TraceInformation, InformationLength, returned);
    case TraceMaxPmcCounterQuery:
        return RtlNtStatusToDosError(ZwTraceControl(EtwMaxPmcCounterQueryCode, NULL, 0,
                                                    TraceInformation, InformationLength, returned));
    case TracePmcCounterOwners:
        return query_owners(SessionHandle, TraceInformation, InformationLength, returned);
    case TracePmcSessionInformation:
        return RtlNtStatusToDosError(ZwTraceControl(EtwPmcSessionQueryCode, NULL, 0,
                                                    TraceInformation, InformationLength, returned));
    default: return ERROR_NOT_SUPPORTED;
    }
}
