/* SPDX-License-Identifier: MIT */
/* NtTraceControl: copies and checks the caller's input; etw_session.c does the work.
 * PASSIVE_LEVEL. */
#include "kernel/etw/etw_control.h"
#include "hal/sources.h"
#include "hal/machine/clock.h"
#include "kernel/base/cpu.h"
#include "kernel/base/string.h"
#include "kernel/ke/caller.h"
#include "kernel/etw/stream.h"
#include "kernel/etw/etw_pmc.h"
#include "kernel/etw/etw_session.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"

#define FILE_MODES (EVENT_TRACE_FILE_MODE_SEQUENTIAL | EVENT_TRACE_FILE_MODE_CIRCULAR)
#define MODES (EVENT_TRACE_USE_PAGED_MEMORY | EVENT_TRACE_SYSTEM_LOGGER_MODE)
#define CLOCK_TSC 3 /* ClientContext */

struct request {
    const void *in;
    void *out;
    ULONG in_length, out_length;
    ULONG returned;
};

/* --- Sessions. --- */

/* Empty: no name was given. Printable ASCII only. */
static NTSTATUS get_name(const UNICODE_STRING *from, char *name)
{
    WCHAR text[ETW_NAME_MAX];
    ULONG n = from->Length / sizeof(WCHAR);
    if (from->Length % sizeof(WCHAR) || n >= ETW_NAME_MAX)
        return STATUS_INVALID_PARAMETER;
    NTSTATUS status = n ? caller_get(text, from->Buffer, from->Length) : STATUS_SUCCESS;
    for (ULONG i = 0; i < n && NT_SUCCESS(status); i++) {
        name[i] = (char)text[i];
        if (text[i] < ' ' || text[i] > '~')
            status = STATUS_INVALID_PARAMETER;
    }
    name[n] = 0;
    return status;
}

static NTSTATUS get_information(const struct request *r, WMI_LOGGER_INFORMATION *info, char *name)
{
    static const GUID kernel_logger = SYSTEM_TRACE_CONTROL_GUID;
    if (r->in_length < sizeof *info || r->out_length < sizeof *info)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = caller_get(info, r->in, sizeof *info);
    if (!NT_SUCCESS(status))
        return status;
    if (info->Wnode.BufferSize < sizeof *info)
        return STATUS_INFO_LENGTH_MISMATCH;
    status = get_name(&info->LoggerName, name);
    if (NT_SUCCESS(status) && memcmp(&info->Wnode.Guid, &kernel_logger, sizeof kernel_logger) == 0)
        memcpy(name, KERNEL_LOGGER_NAME, sizeof KERNEL_LOGGER_NAME);
    return status;
}

static NTSTATUS put_information(struct request *r, const WMI_LOGGER_INFORMATION *asked,
                                const struct etw_logger *logger)
{
    WMI_LOGGER_INFORMATION info = *asked; /* keeps the caller's names */
    const struct etw_stream *first = logger->streams[0];
    info.Wnode.HistoricalContext = logger->id;
    info.Wnode.ClientContext = CLOCK_TSC;
    info.BufferSize = first->size / 1024;
    info.MinimumBuffers = info.MaximumBuffers = info.NumberOfBuffers = first->count * cpu_count;
    info.MaximumFileSize = logger->megabytes;
    info.LogFileMode = logger->mode;
    info.FlushTimer = logger->flush_seconds;
    info.EnableFlags = logger->masks.Masks[0];
    info.EventsLost = (ULONG)etw_lost(logger);
    info.BuffersWritten = logger->read_count;
    info.FreeBuffers = info.NumberOfBuffers;
    for_all_cpus(cpu)
        info.FreeBuffers -= __atomic_load_n(&logger->streams[cpu]->head, __ATOMIC_RELAXED) -
                            logger->streams[cpu]->tail;
    info.LogBuffersLost = info.RealTimeBuffersLost = 0; /* a buffer is never lost, events are */
    info.RealTimeConsumerCount = logger->connected;
    r->returned = sizeof info;
    return caller_put(r->out, &info, sizeof info);
}

/* Whose events nothing here writes. */
#define FLAGS_ABSENT                                                                               \
    (EVENT_TRACE_FLAG_DISK_IO | EVENT_TRACE_FLAG_DISK_FILE_IO |                                    \
     EVENT_TRACE_FLAG_MEMORY_PAGE_FAULTS | EVENT_TRACE_FLAG_MEMORY_HARD_FAULTS |                   \
     EVENT_TRACE_FLAG_VAMAP | EVENT_TRACE_FLAG_NETWORK_TCPIP | EVENT_TRACE_FLAG_REGISTRY)

/* NT: Windows has the events of FLAGS_ABSENT; a trace without them would say that nothing happened.
 */
static NTSTATUS check_flags(ULONG flags, ULONG mode)
{
    if (flags && !(mode & EVENT_TRACE_SYSTEM_LOGGER_MODE))
        return STATUS_INVALID_PARAMETER;
    if (flags & FLAGS_ABSENT)
        return STATUS_NOT_SUPPORTED;
    return flags & EVENT_TRACE_FLAG_PROFILE && !etw_privileged() ? STATUS_PRIVILEGE_NOT_HELD
                                                                 : STATUS_SUCCESS;
}

static NTSTATUS check_start(const WMI_LOGGER_INFORMATION *info, const char *name)
{
    bool kernel = strcmp(name, KERNEL_LOGGER_NAME) == 0;
    if (!(info->Wnode.Flags & WNODE_FLAG_TRACED_GUID) || !name[0])
        return STATUS_INVALID_PARAMETER;
    const ULONG mode = info->LogFileMode, kind = mode & FILE_MODES;
    const bool file = info->LogFileName.Length;
    if (mode & ~(ULONG)(MODES | (file ? FILE_MODES : EVENT_TRACE_REAL_TIME_MODE)))
        return STATUS_NOT_SUPPORTED;
    if (file &&
        (kind == FILE_MODES || (kind == EVENT_TRACE_FILE_MODE_CIRCULAR && !info->MaximumFileSize)))
        return STATUS_INVALID_PARAMETER;
    if (file && !stream_opened())
        return STATUS_NOT_SUPPORTED;
    if (!file && !(mode & EVENT_TRACE_REAL_TIME_MODE))
        return STATUS_INVALID_PARAMETER;
    return check_flags(info->EnableFlags,
                       kernel ? EVENT_TRACE_SYSTEM_LOGGER_MODE : info->LogFileMode);
}

/* Writes the output once before, so that no session starts whose handle cannot be returned. */
static NTSTATUS start(struct request *r)
{
    WMI_LOGGER_INFORMATION info;
    char name[ETW_NAME_MAX], file[ETW_NAME_MAX] = "";
    struct etw_logger *logger = NULL;
    NTSTATUS status = get_information(r, &info, name);
    if (NT_SUCCESS(status))
        status = check_start(&info, name);
    if (NT_SUCCESS(status))
        status = get_name(&info.LogFileName, file);
    if (NT_SUCCESS(status))
        status = caller_put(r->out, &info, sizeof info);
    if (!NT_SUCCESS(status))
        return status;
    etw_enter();
    status = etw_start(name, &info, &logger);
    if (NT_SUCCESS(status)) {
        status = put_information(r, &info, logger);
        if (NT_SUCCESS(status) && *file)
            status = log_file_start(logger, file, &info);
        if (!NT_SUCCESS(status)) {
            etw_stop(logger);
            etw_free(logger);
        }
    }
    etw_leave();
    return status;
}

/* L: guard */
static struct etw_logger *find_logger(const WMI_LOGGER_INFORMATION *info, const char *name)
{
    return (USHORT)info->Wnode.HistoricalContext ? etw_find(info->Wnode.HistoricalContext)
                                                 : etw_find_name(name);
}

/* L: guard, these four: the requests to a running session. */
static NTSTATUS query_logger(struct etw_logger *logger, const WMI_LOGGER_INFORMATION *info)
{
    (void)logger, (void)info; /* every code returns the session's information */
    return STATUS_SUCCESS;
}

static NTSTATUS update(struct etw_logger *logger, const WMI_LOGGER_INFORMATION *info)
{
    PERFINFO_GROUPMASK masks = etw_masks_of_flags(info->EnableFlags);
    NTSTATUS status = check_flags(info->EnableFlags, logger->mode);
    return NT_SUCCESS(status) ? etw_set_masks(logger, &masks) : status;
}

static NTSTATUS flush(struct etw_logger *logger, const WMI_LOGGER_INFORMATION *)
{
    etw_flush(logger);
    return STATUS_SUCCESS;
}

static NTSTATUS stop(struct etw_logger *logger, const WMI_LOGGER_INFORMATION *)
{
    etw_stop(logger);
    return STATUS_SUCCESS;
}

static NTSTATUS with_session(struct request *r, NTSTATUS (*action)(struct etw_logger *,
                                                                   const WMI_LOGGER_INFORMATION *))
{
    WMI_LOGGER_INFORMATION info;
    char name[ETW_NAME_MAX];
    NTSTATUS status = get_information(r, &info, name);
    if (!NT_SUCCESS(status))
        return status;
    etw_enter();
    struct etw_logger *logger = find_logger(&info, name);
    status = logger ? action(logger, &info) : STATUS_WMI_INSTANCE_NOT_FOUND;
    if (NT_SUCCESS(status))
        status = put_information(r, &info, logger);
    if (logger && logger->stopped && !logger->connected)
        etw_free(logger);
    etw_leave();
    return status;
}

/* --- The consumer. --- */

/* L: guard */
static NTSTATUS make_consumer(struct etw_logger *logger, HANDLE *handle)
{
    if (logger->connected)
        return STATUS_DEVICE_BUSY;
    object_init(&logger->object, &trace_type, EventNotificationObject, 1);
    NTSTATUS status = handle_create(&logger->object, TRACELOG_GUID_ENABLE, handle);
    logger->connected = NT_SUCCESS(status);
    return status;
}

static NTSTATUS connect(struct request *r)
{
    TRACEHANDLE trace;
    TRACE_CONSUMER consumer = { NULL, clock_tsc_hz };
    if (r->in_length < sizeof trace || r->out_length < sizeof consumer)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = caller_get(&trace, r->in, sizeof trace);
    if (!NT_SUCCESS(status))
        return status;
    etw_enter();
    struct etw_logger *logger = etw_find(trace);
    status = logger ? make_consumer(logger, &consumer.Handle) : STATUS_WMI_INSTANCE_NOT_FOUND;
    etw_leave();
    if (!NT_SUCCESS(status))
        return status;
    r->returned = sizeof consumer;
    status = caller_put(r->out, &consumer, sizeof consumer);
    if (!NT_SUCCESS(status))
        handle_close(consumer.Handle);
    object_release(&logger->object); /* the handle has its own reference */
    return status;
}

static NTSTATUS lookup(const struct request *r, HANDLE *handle, struct object **object)
{
    if (r->in_length < sizeof *handle)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = caller_get(handle, r->in, sizeof *handle);
    return NT_SUCCESS(status) ? handle_lookup(*handle, &trace_type, 0, object) : status;
}

static NTSTATUS disconnect(const struct request *r)
{
    HANDLE handle;
    struct object *object;
    NTSTATUS status = lookup(r, &handle, &object);
    if (!NT_SUCCESS(status))
        return status;
    status = handle_close(handle);
    object_release(object);
    return status;
}

static NTSTATUS read(struct request *r)
{
    HANDLE handle;
    struct object *object;
    NTSTATUS status = lookup(r, &handle, &object);
    if (!NT_SUCCESS(status))
        return status;
    etw_enter();
    status = etw_read((struct etw_logger *)object, r->out, r->out_length, &r->returned);
    etw_leave();
    object_release(object);
    return status;
}

/* --- Counters. --- */

static NTSTATUS max_counters(struct request *r)
{
    ULONG n = etw_pmc_max();
    r->returned = sizeof n;
    return r->out_length < sizeof n ? STATUS_INFO_LENGTH_MISMATCH
                                    : caller_put(r->out, &n, sizeof n);
}

static NTSTATUS owners(struct request *r)
{
    /* Room for the owners of 64 counters, the most there can be. */
    uint32_t space[(sizeof(ETW_PMC_COUNTER_OWNERSHIP_STATUS) + 63 * sizeof(ETW_PMC_COUNTER_OWNER)) /
                   sizeof(uint32_t)];
    ETW_PMC_COUNTER_OWNERSHIP_STATUS *found = (ETW_PMC_COUNTER_OWNERSHIP_STATUS *)(void *)space;
    if (r->in_length < sizeof found->ProcessorNumber)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = caller_get(&found->ProcessorNumber, r->in, sizeof found->ProcessorNumber);
    if (NT_SUCCESS(status))
        status = HalQuerySystemInformation(HalQueryProfileCounterOwnership, sizeof space, found,
                                           &r->returned);
    if (NT_SUCCESS(status) && r->out_length < r->returned)
        status = STATUS_BUFFER_TOO_SMALL;
    return NT_SUCCESS(status) ? caller_put(r->out, found, r->returned) : status;
}

/* L: guard. Writes one entry of the output; `next` is its NextEntryOffset. */
static NTSTATUS put_session(const struct etw_logger *logger, uint8_t *out, ULONG next)
{
    const ETW_PMC_SUPPORT *pmc = logger->pmc;
    ETW_PMC_SESSION_INFO info = { next, logger->id, 0, pmc->CountersCount, pmc->HookIdCount };
    size_t sources = pmc->CountersCount * sizeof(ULONG), hooks = pmc->HookIdCount * sizeof(USHORT);
    NTSTATUS status = caller_put(out, &info, sizeof info);
    if (NT_SUCCESS(status))
        status = caller_put(out + sizeof info, pmc->Source, sources);
    return NT_SUCCESS(status) ? caller_put(out + sizeof info + sources, pmc->HookId, hooks)
                              : status;
}

static ULONG session_size(const struct etw_logger *logger)
{
    if (!logger || !logger->pmc)
        return 0;
    return (ULONG)(sizeof(ETW_PMC_SESSION_INFO) + logger->pmc->CountersCount * sizeof(ULONG) +
                   logger->pmc->HookIdCount * sizeof(USHORT) + 3) &
           ~3u;
}

static NTSTATUS sessions(struct request *r)
{
    NTSTATUS status = STATUS_SUCCESS;
    ULONG at = 0;
    etw_enter();
    for (unsigned i = 0; i < ETW_LOGGERS; i++)
        r->returned += session_size(etw_loggers[i]);
    if (r->out_length < r->returned)
        status = STATUS_BUFFER_TOO_SMALL;
    for (unsigned i = 0; i < ETW_LOGGERS && NT_SUCCESS(status); i++) {
        ULONG size = session_size(etw_loggers[i]);
        if (size)
            status = put_session(etw_loggers[i], (uint8_t *)r->out + at,
                                 at + size < r->returned ? size : 0);
        at += size;
    }
    etw_leave();
    return status;
}

/* --- A program's event. --- */

NTSTATUS NtTraceEvent(HANDLE TraceHandle, ULONG Flags, ULONG FieldSize, PVOID Fields)
{
    const unsigned pages = FieldSize / PAGE_SIZE + 1;
    if (etw_restricted())
        return STATUS_ACCESS_DENIED;
    if (Flags != ETW_NT_FLAGS_TRACE_HEADER || FieldSize < sizeof(EVENT_TRACE_HEADER) ||
        FieldSize > UINT16_MAX)
        return STATUS_INVALID_PARAMETER;
    EVENT_TRACE_HEADER *event = phys_alloc(pages);
    if (!event)
        return STATUS_NO_MEMORY;
    NTSTATUS status = caller_get(event, Fields, FieldSize);
    if (NT_SUCCESS(status) && event->Size != FieldSize)
        status = STATUS_INVALID_PARAMETER;
    if (NT_SUCCESS(status)) {
        event->HeaderType = TRACE_HEADER_TYPE_FULL_HEADER64;
        event->MarkerFlags = TRACE_HEADER_FLAGS;
        event->ThreadId = thread_current()->id;
        event->ProcessId = PROCESS_ID;
        event->ClientContext = event->Flags = 0; /* processor time, which is not filled in */
        status = etw_event((TRACEHANDLE)TraceHandle, event);
    }
    phys_free(event, pages);
    return status;
}

/* --- Entry point. --- */

static NTSTATUS dispatch(ULONG code, struct request *r)
{
    if (etw_restricted())
        return STATUS_ACCESS_DENIED;
    switch (code) {
    case EtwStartLoggerCode: return start(r);
    case EtwStopLoggerCode: return with_session(r, stop);
    case EtwQueryLoggerCode: return with_session(r, query_logger);
    case EtwUpdateLoggerCode: return with_session(r, update);
    case EtwFlushLoggerCode: return with_session(r, flush);
    case EtwRealtimeConnectCode: return connect(r);
    case EtwRealtimeDisconnectCode: return disconnect(r);
    case EtwRealtimeReadCode: return read(r);
    case EtwMaxPmcCounterQueryCode: return max_counters(r);
    case EtwPmcOwnersQueryCode: return owners(r);
    case EtwPmcSessionQueryCode: return sessions(r);
    default: return STATUS_NOT_IMPLEMENTED;
    }
}

NTSTATUS NtTraceControl(ULONG FunctionCode, PVOID InBuffer, ULONG InBufferLen, PVOID OutBuffer,
                        ULONG OutBufferLen, PULONG ReturnLength)
{
    struct request r = { InBuffer, OutBuffer, InBufferLen, OutBufferLen, 0 };
    NTSTATUS status = dispatch(FunctionCode, &r);
    if (!ReturnLength)
        return status;
    NTSTATUS put = caller_put(ReturnLength, &r.returned, sizeof r.returned);
    return NT_SUCCESS(status) ? put : status;
}
