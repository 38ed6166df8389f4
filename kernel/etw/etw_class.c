/* SPDX-License-Identifier: MIT */
/* Class 0x1F of NtSetSystemInformation and NtQuerySystemInformation: the sub-classes for
 * sessions and counters. The comment of each function lists its statuses in the order of the
 * checks. Before these come STATUS_INFO_LENGTH_MISMATCH (the length is less than the fixed part,
 * or differs from a fixed length) and STATUS_ACCESS_VIOLATION. A function's name in the list means
 * its statuses. PASSIVE_LEVEL.
 * NT: sub-classes of Windows that do not concern counters return STATUS_NOT_IMPLEMENTED; so does a
 * set of a query sub-class, and a query of a set sub-class.
 * SystemMemoryUsageInformation is a class of its own: what the machine has. The length must be its
 * own, too.
 * Sources: Geoff Chappell's studies; phnt. */
#include "kernel/etw/etw_class.h"
#include "hal/sources.h"
#include "kernel/base/cpu.h"
#include "kernel/base/string.h"
#include "kernel/etw/etw_lbr.h"
#include "kernel/etw/etw_pmc.h"
#include "kernel/etw/etw_session.h"
#include "kernel/ke/caller.h"
#include "kernel/mm/phys.h"
#include "kernel/profiling/profile.h"

#define STACKS_MAX 256
#define LIST_MAX 8 /* elements copied at most; every sub-class refuses more */
#define NAME_UNITS (sizeof((HAL_PROFILE_SOURCE_ADD *)0)->Description / sizeof(WCHAR))

struct list {
    TRACEHANDLE trace;
    ULONG count; /* as given */
    ULONG items[LIST_MAX];
};

/* STATUS_INVALID_PARAMETER: the tail is not a whole number of ULONGs. */
static NTSTATUS get_list(const void *buffer, ULONG length, struct list *list)
{
    ULONG fixed = offsetof(EVENT_TRACE_PROFILE_COUNTER_INFORMATION, ProfileSource);
    const EVENT_TRACE_PROFILE_COUNTER_INFORMATION *from = buffer;
    if (length < fixed)
        return STATUS_INFO_LENGTH_MISMATCH;
    if ((length - fixed) % sizeof(ULONG))
        return STATUS_INVALID_PARAMETER;
    list->count = (length - fixed) / sizeof(ULONG);
    ULONG n = list->count < LIST_MAX ? list->count : LIST_MAX;
    NTSTATUS status = caller_get(&list->trace, &from->TraceHandle, sizeof list->trace);
    return NT_SUCCESS(status) ? caller_get(list->items, from->ProfileSource, n * sizeof(ULONG))
                              : status;
}

/* L: guard. STATUS_WMI_INSTANCE_NOT_FOUND; STATUS_ACCESS_DENIED: a restricted caller, which has no
 * TRACELOG_GUID_ENABLE. */
static NTSTATUS find_running(TRACEHANDLE trace, struct etw_logger **logger)
{
    *logger = etw_find(trace);
    if (!*logger)
        return STATUS_WMI_INSTANCE_NOT_FOUND;
    return etw_restricted() ? STATUS_ACCESS_DENIED : STATUS_SUCCESS;
}

/* --- Set. --- */

/* The statuses of get_list, find_running, and the function that takes the list (etw_pmc.h). */
static NTSTATUS set_list_of(const void *buffer, ULONG length,
                            NTSTATUS (*take)(struct etw_logger *, const ULONG *items, ULONG count))
{
    struct etw_logger *logger;
    struct list list;
    NTSTATUS status = get_list(buffer, length, &list);
    if (!NT_SUCCESS(status))
        return status;
    etw_enter();
    status = find_running(list.trace, &logger);
    if (NT_SUCCESS(status))
        status = take(logger, list.items, list.count);
    etw_leave();
    return status;
}

static NTSTATUS set_counter_list(const void *buffer, ULONG length)
{
    return set_list_of(buffer, length, etw_pmc_set_sources);
}

static NTSTATUS set_event_list(const void *buffer, ULONG length)
{
    return set_list_of(buffer, length, etw_pmc_set_hooks);
}

static NTSTATUS set_branch_events(const void *buffer, ULONG length)
{
    return set_list_of(buffer, length, etw_lbr_set_hooks);
}

/* find_running; etw_lbr_set_options. */
static NTSTATUS set_branch_options(const void *buffer, ULONG length)
{
    struct etw_logger *logger;
    EVENT_TRACE_LAST_BRANCH_CONFIGURATION_INFORMATION info;
    ULONG whole = offsetof(EVENT_TRACE_LAST_BRANCH_CONFIGURATION_INFORMATION, LbrOptions) +
                  sizeof info.LbrOptions;
    if (length != whole)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = caller_get(&info, buffer, whole);
    if (!NT_SUCCESS(status))
        return status;
    etw_enter();
    status = find_running(info.TraceHandle, &logger);
    if (NT_SUCCESS(status))
        status = etw_lbr_set_options(logger, info.LbrOptions);
    etw_leave();
    return status;
}

/* In place of the hooks set before; none: no more stacks. find_running; STATUS_INVALID_PARAMETER:
 * not whole ULONGs, more than STACKS_MAX, or not a system logger; STATUS_NOT_SUPPORTED: a hook that
 * has no records here (our choice). */
static NTSTATUS set_stacks(const void *buffer, ULONG length)
{
    struct etw_logger *logger;
    uint32_t hooks = 0;
    EVENT_TRACE_STACK_TRACING_INFORMATION info;
    ULONG fixed = offsetof(EVENT_TRACE_STACK_TRACING_INFORMATION, HookId);
    if (length < fixed)
        return STATUS_INFO_LENGTH_MISMATCH;
    if ((length - fixed) % sizeof(ULONG) || (length - fixed) / sizeof(ULONG) > STACKS_MAX)
        return STATUS_INVALID_PARAMETER;
    NTSTATUS status = caller_get(&info, buffer, fixed);
    bool known = true;
    for (ULONG at = fixed; at < length && NT_SUCCESS(status); at += sizeof(ULONG)) {
        ULONG id = 0;
        status = caller_get(&id, (const uint8_t *)buffer + at, sizeof id);
        known = known && etw_hooks_of_id(id);
        hooks |= etw_hooks_of_id(id);
    }
    if (!NT_SUCCESS(status))
        return status;
    etw_enter();
    status = find_running(info.TraceHandle, &logger);
    if (NT_SUCCESS(status)) {
        bool system = logger->mode & EVENT_TRACE_SYSTEM_LOGGER_MODE;
        status = !system ? STATUS_INVALID_PARAMETER : known ? status : STATUS_NOT_SUPPORTED;
    }
    if (NT_SUCCESS(status)) {
        logger->stacks = hooks;
        etw_tell_followed(logger);
    }
    etw_leave();
    return status;
}

/* The trace handle is ignored: the sources to sample are system-wide. STATUS_PRIVILEGE_NOT_HELD;
 * etw_sampling_configure. */
static NTSTATUS set_config(const void *buffer, ULONG length)
{
    struct list list;
    NTSTATUS status = get_list(buffer, length, &list);
    if (!NT_SUCCESS(status))
        return status;
    if (!etw_privileged())
        return STATUS_PRIVILEGE_NOT_HELD;
    etw_enter();
    status = etw_sampling_configure(list.items, list.count);
    etw_leave();
    return status;
}

/* STATUS_INVALID_PARAMETER: two hooks, or one that is not the context switch's;
 * STATUS_PRIVILEGE_NOT_HELD; find; STATUS_NOT_SUPPORTED. NT: what a switch's record has of the
 * processor's event buffer (TRACE_HEADER_PEBS_INDEX_FLAG) is not public. */
static NTSTATUS set_pebs(const void *buffer, ULONG length)
{
    struct etw_logger *logger;
    struct list list;
    NTSTATUS status = get_list(buffer, length, &list);
    if (!NT_SUCCESS(status))
        return status;
    if (list.count > 1 || (list.count && list.items[0] != PERFINFO_LOG_TYPE_CONTEXTSWAP))
        return STATUS_INVALID_PARAMETER;
    if (!etw_privileged())
        return STATUS_PRIVILEGE_NOT_HELD;
    etw_enter();
    status = find_running(list.trace, &logger);
    etw_leave();
    return NT_SUCCESS(status) && list.count ? STATUS_NOT_SUPPORTED : status;
}

/* find; STATUS_INVALID_PARAMETER: not a system logger; STATUS_PRIVILEGE_NOT_HELD: samples;
 * etw_set_masks. */
static NTSTATUS set_group_mask(const void *buffer, ULONG length)
{
    struct etw_logger *logger;
    EVENT_TRACE_GROUPMASK_INFORMATION info;
    if (length != sizeof info)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = caller_get(&info, buffer, sizeof info);
    if (!NT_SUCCESS(status))
        return status;
    const ULONG *masks = info.EventTraceGroupMasks.Masks;
    bool samples = masks[0] & EVENT_TRACE_FLAG_PROFILE ||
                   masks[PERF_MASK_INDEX(PERF_PROFILING)] & PERF_MASK_BITS(PERF_PROFILING);
    etw_enter();
    status = find_running(info.TraceHandle, &logger);
    if (NT_SUCCESS(status) && !(logger->mode & EVENT_TRACE_SYSTEM_LOGGER_MODE))
        status = STATUS_INVALID_PARAMETER;
    else if (NT_SUCCESS(status) && samples && !etw_privileged())
        status = STATUS_PRIVILEGE_NOT_HELD;
    else if (NT_SUCCESS(status))
        status = etw_set_masks(logger, &info.EventTraceGroupMasks);
    etw_leave();
    return status;
}

/* STATUS_PRIVILEGE_NOT_HELD. */
static NTSTATUS set_time_profile(const void *buffer, ULONG length)
{
    EVENT_TRACE_TIME_PROFILE_INFORMATION info;
    if (length != sizeof info)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = caller_get(&info, buffer, sizeof info);
    return NT_SUCCESS(status) ? NtSetIntervalProfile(info.ProfileInterval, ProfileTime) : status;
}

/* Copies the fixed part of a sub-class that needs the privilege. STATUS_PRIVILEGE_NOT_HELD. */
static NTSTATUS get_privileged(void *info, ULONG size, const void *buffer, ULONG length)
{
    if (length < size)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = caller_get(info, buffer, size);
    return NT_SUCCESS(status) && !etw_privileged() ? STATUS_PRIVILEGE_NOT_HELD : status;
}

/* STATUS_PRIVILEGE_NOT_HELD; STATUS_INVALID_PARAMETER: the version, or a description that is
 * empty, odd, without its NUL or over 32 characters; STATUS_NOT_SUPPORTED: not for this processor,
 * or no counter counts it; STATUS_INSUFFICIENT_RESOURCES: another source has the description, or
 * there are too many. NT: the statuses are our choice. An interval is clamped to the limits.
 * Persist has no effect, because there is no registry. */
static NTSTATUS add_source(const void *buffer, ULONG length)
{
    EVENT_TRACE_PROFILE_ADD_INFORMATION info;
    HAL_PROFILE_SOURCE_ADD add = { 0 };
    ULONG fixed = offsetof(EVENT_TRACE_PROFILE_ADD_INFORMATION, ProfileSourceDescription);
    NTSTATUS status = get_privileged(&info, sizeof info, buffer, length);
    if (!NT_SUCCESS(status))
        return status;
    ULONG units = (length - fixed) / sizeof(WCHAR) < NAME_UNITS ? (length - fixed) / sizeof(WCHAR)
                                                                : NAME_UNITS;
    for (ULONG i = 0; i < NAME_UNITS; i++)
        add.Description[i] = i < units ? 0 : '?'; /* no NUL: refused below */
    status = caller_get(add.Description, (const uint8_t *)buffer + fixed, units * sizeof(WCHAR));
    if (NT_SUCCESS(status))
        status = hal_source_event(info.Version, info.Event, info.CpuInfoHierarchy, &add);
    add.InitialInterval = info.InitialInterval;
    return NT_SUCCESS(status) ? HalSetSystemInformation(HalProfileSourceAdd, sizeof add, &add)
                              : status;
}

/* STATUS_PRIVILEGE_NOT_HELD; STATUS_INVALID_PARAMETER: it was not added; STATUS_DEVICE_BUSY:
 * somebody counts or samples by it. */
static NTSTATUS remove_source(const void *buffer, ULONG length)
{
    EVENT_TRACE_PROFILE_REMOVE_INFORMATION info;
    NTSTATUS status = get_privileged(&info, sizeof info, buffer, length);
    if (!NT_SUCCESS(status))
        return status;
    return HalSetSystemInformation(HalProfileSourceRemove, sizeof info.ProfileSource,
                                   &info.ProfileSource);
}

/* --- Query. --- */

/* find. The buffer holds the handle and receives the masks. */
static NTSTATUS query_group_mask(void *buffer, ULONG length, ULONG *returned)
{
    EVENT_TRACE_GROUPMASK_INFORMATION info;
    struct etw_logger *logger;
    if (length != sizeof info)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = caller_get(&info, buffer, sizeof info);
    if (!NT_SUCCESS(status))
        return status;
    etw_enter();
    status = find_running(info.TraceHandle, &logger);
    if (NT_SUCCESS(status))
        info.EventTraceGroupMasks = logger->masks;
    etw_leave();
    *returned = sizeof info;
    return NT_SUCCESS(status) ? caller_put(buffer, &info, sizeof info) : status;
}

/* find_running; STATUS_INFO_LENGTH_MISMATCH: *returned is the length needed. Each hook stands once,
 * in our order. */
static NTSTATUS query_stacks(void *buffer, ULONG length, ULONG *returned)
{
    struct etw_logger *logger;
    EVENT_TRACE_STACK_TRACING_INFORMATION info;
    ULONG fixed = offsetof(EVENT_TRACE_STACK_TRACING_INFORMATION, HookId), count = 0;
    ULONG ids[ETW_HOOKS];
    if (length < fixed)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = caller_get(&info, buffer, fixed);
    if (!NT_SUCCESS(status))
        return status;
    etw_enter();
    status = find_running(info.TraceHandle, &logger);
    for (unsigned h = 0; h < ETW_HOOKS && NT_SUCCESS(status); h++)
        if (logger->stacks >> h & 1)
            ids[count++] = etw_id_of_hook(h);
    etw_leave();
    *returned = fixed + count * (ULONG)sizeof ids[0];
    if (NT_SUCCESS(status) && length < *returned)
        return STATUS_INFO_LENGTH_MISMATCH;
    return NT_SUCCESS(status) ? caller_put((uint8_t *)buffer + fixed, ids, count * sizeof ids[0])
                              : status;
}

static NTSTATUS query_time_profile(void *buffer, ULONG length, ULONG *returned)
{
    EVENT_TRACE_TIME_PROFILE_INFORMATION info = { EventTraceTimeProfileInformation,
                                                  hal_source_interval(ProfileTime) };
    if (length != sizeof info)
        return STATUS_INFO_LENGTH_MISMATCH;
    *returned = sizeof info;
    return caller_put(buffer, &info, sizeof info);
}

/* Writes one entry if it fits; returns its size, a multiple of 8. */
static NTSTATUS put_source(KPROFILE_SOURCE source, bool last, uint8_t *out, ULONG capacity,
                           ULONG *size)
{
    ULONG preset, text = offsetof(PROFILE_SOURCE_INFO, Description);
    PROFILE_SOURCE_INFO info = { .Source = (ULONG)source };
    const char *name = hal_source_name(source);
    size_t units = (name ? strlen(name) : 0) + 1; /* NULL: removed meanwhile */
    *size = (text + (ULONG)(units * sizeof(WCHAR)) + 7) & ~7u;
    info.NextEntryOffset = last ? 0 : *size;
    hal_source_limits(source, &info.MinInterval, &preset, &info.MaxInterval);
    NTSTATUS status = *size <= capacity ? caller_put(out, &info, text) : STATUS_SUCCESS;
    for (size_t i = 0; i < units && *size <= capacity && NT_SUCCESS(status); i++) {
        WCHAR unit = i + 1 < units ? (WCHAR)name[i] : 0;
        status = caller_put(out + text + i * sizeof unit, &unit, sizeof unit);
    }
    return status;
}

/* STATUS_INFO_LENGTH_MISMATCH: *returned is the length needed. */
static NTSTATUS query_source_list(void *buffer, ULONG length, ULONG *returned)
{
    NTSTATUS status = STATUS_SUCCESS;
    KPROFILE_SOURCE source = ProfileTime, next;
    *returned = offsetof(EVENT_TRACE_PROFILE_LIST_INFORMATION, Profile);
    do {
        ULONG size;
        next = hal_source_next(source);
        status = put_source(source, next == ProfileTime, (uint8_t *)buffer + *returned,
                            length > *returned ? length - *returned : 0, &size);
        *returned += size;
        source = next;
    } while (next != ProfileTime && NT_SUCCESS(status));
    return NT_SUCCESS(status) && length < *returned ? STATUS_INFO_LENGTH_MISMATCH : status;
}

/* --- Entry points. --- */

static NTSTATUS get_sub_class(const void *buffer, ULONG length, ULONG *sub_class)
{
    if (length < sizeof *sub_class)
        return STATUS_INFO_LENGTH_MISMATCH;
    return caller_get(sub_class, buffer, sizeof *sub_class);
}

NTSTATUS NtSetSystemInformation(ULONG SystemInformationClass, PVOID SystemInformation,
                                ULONG SystemInformationLength)
{
    static NTSTATUS (*const setters[MaxEventTraceInfoClass])(const void *, ULONG) = {
        [EventTraceGroupMaskInformation] = set_group_mask,
        [EventTraceTimeProfileInformation] = set_time_profile,
        [EventTraceStackTracingInformation] = set_stacks,
        [EventTracePebsTracingInformation] = set_pebs,
        [EventTraceProfileConfigInformation] = set_config,
        [EventTraceProfileEventListInformation] = set_event_list,
        [EventTraceProfileCounterListInformation] = set_counter_list,
        [EventTraceLastBranchConfigurationInformation] = set_branch_options,
        [EventTraceLastBranchEventListInformation] = set_branch_events,
        [EventTraceProfileSourceAddInformation] = add_source,
        [EventTraceProfileSourceRemoveInformation] = remove_source,
    };
    ULONG sub_class;
    if (SystemInformationClass != SystemPerformanceTraceInformation)
        return STATUS_INVALID_INFO_CLASS;
    NTSTATUS status = get_sub_class(SystemInformation, SystemInformationLength, &sub_class);
    if (!NT_SUCCESS(status))
        return status;
    if (sub_class >= MaxEventTraceInfoClass || !setters[sub_class])
        return STATUS_NOT_IMPLEMENTED;
    return setters[sub_class](SystemInformation, SystemInformationLength);
}

/* NT: what is committed is in memory; nobody notes what it was at its peak. */
static NTSTATUS query_memory(void *to, ULONG length, PULONG returned)
{
    const uint64_t all = phys_total_pages() * PAGE_SIZE, left = phys_free_pages() * PAGE_SIZE;
    const SYSTEM_MEMORY_USAGE_INFORMATION info = { .TotalPhysicalBytes = all,
                                                   .AvailableBytes = left,
                                                   .ResidentAvailableBytes = (LONGLONG)left,
                                                   .CommittedBytes = all - left,
                                                   .CommitLimitBytes = all,
                                                   .PeakCommitmentBytes = all - left };
    if (length != sizeof info)
        return STATUS_INFO_LENGTH_MISMATCH;
    return caller_answer(to, &info, sizeof info, returned);
}

NTSTATUS NtQuerySystemInformation(ULONG SystemInformationClass, PVOID SystemInformation,
                                  ULONG SystemInformationLength, PULONG ReturnLength)
{
    static NTSTATUS (*const getters[MaxEventTraceInfoClass])(void *, ULONG, ULONG *) = {
        [EventTraceGroupMaskInformation] = query_group_mask,
        [EventTraceTimeProfileInformation] = query_time_profile,
        [EventTraceStackTracingInformation] = query_stacks,
        [EventTraceProfileSourceListInformation] = query_source_list,
    };
    ULONG sub_class, returned = 0;
    if (SystemInformationClass == SystemMemoryUsageInformation)
        return query_memory(SystemInformation, SystemInformationLength, ReturnLength);
    if (SystemInformationClass != SystemPerformanceTraceInformation)
        return STATUS_INVALID_INFO_CLASS;
    NTSTATUS status = get_sub_class(SystemInformation, SystemInformationLength, &sub_class);
    if (!NT_SUCCESS(status))
        return status;
    if (sub_class >= MaxEventTraceInfoClass || !getters[sub_class])
        return STATUS_NOT_IMPLEMENTED;
    status = getters[sub_class](SystemInformation, SystemInformationLength, &returned);
    if (!ReturnLength)
        return status;
    NTSTATUS put = caller_put(ReturnLength, &returned, sizeof returned);
    return NT_SUCCESS(status) ? put : status;
}
