/* SPDX-License-Identifier: MIT */
/* OpenTrace, ProcessTrace, CloseTrace: events of a running session, in the order of their time
 * stamps on all processors.
 *
 * A processor's buffers come in order; those of different processors are merged. An event may be
 * delivered only when no processor can have an older unread one. A flush ensures this: afterwards
 * all earlier events can be read. So buffers are gathered as they fill. At each flush, every
 * FlushTimer seconds or when there are many buffers, the events up to then are delivered. */
#include <string.h>
#include <intrin.h>
#include "kernel/user/advapi32/trace.h"

#define CONSUMERS 8
#define PROCESSORS 64
#define NAME_CHARS 64
#define POLL_MS 5

enum state { FREE, OPEN, RUNNING, CLOSING };

/* A buffer that was read, in `area`. */
struct part {
    const uint8_t *at, *end; /* its next record, its end */
    const WMI_BUFFER_HEADER *header;
};

struct consumer {
    uint32_t state; /* atomic: enum state */
    WCHAR name[NAME_CHARS];
    EVENT_TRACE_LOGFILEW log;
    TRACEHANDLE session; /* 0: not connected */
    TRACE_CONSUMER from;
    uint8_t *area; /* buffers read and not yet delivered */
    SIZE_T size, filled;
    ULONG buffer_size;
};

static struct consumer consumers[CONSUMERS];

/* --- One event. --- */

static LONGLONG time_of(const struct consumer *c, const WMI_BUFFER_HEADER *buffer, ULONG64 stamp)
{
    if (c->log.ProcessTraceMode & PROCESS_TRACE_MODE_RAW_TIMESTAMP)
        return (LONGLONG)stamp;
    ULONG64 ticks = stamp - buffer->StartPerfClock, hz = c->from.Frequency;
    return (LONGLONG)(buffer->StartTime + ticks / hz * 10000000 + ticks % hz * 10000000 / hz);
}

#define CLASSIC                                                                                    \
    (EVENT_HEADER_FLAG_64_BIT_HEADER | EVENT_HEADER_FLAG_CLASSIC_HEADER |                          \
     EVENT_HEADER_FLAG_NO_CPUTIME)

static void deliver_event(struct consumer *c, const WMI_BUFFER_HEADER *buffer,
                          const EVENT_TRACE_HEADER *from)
{
    EVENT_RECORD event = {
        .EventHeader = { .Size = sizeof(EVENT_HEADER),
                         .Flags = CLASSIC,
                         .ThreadId = from->ThreadId,
                         .ProcessId = from->ProcessId,
                         .TimeStamp.QuadPart =
                             time_of(c, buffer, (ULONG64)from->TimeStamp.QuadPart),
                         .ProviderId = from->Guid,
                         .EventDescriptor = { .Version = (UCHAR)from->Class.Version,
                                              .Level = from->Class.Level,
                                              .Opcode = from->Class.Type } },
        .BufferContext = buffer->ClientContext,
        .UserDataLength = (USHORT)(from->Size - sizeof *from),
        .UserData = (PVOID)(ULONG_PTR)(from + 1),
        .UserContext = c->log.Context,
    };
    c->log.EventRecordCallback(&event);
}

/* NT: records of these hooks name no thread; ids are then 0xFFFFFFFF, as in Windows. */
static void deliver_record(struct consumer *c, const WMI_BUFFER_HEADER *buffer,
                           const PERFINFO_TRACE_HEADER *record)
{
    ULONG n = record->Marker >> TRACE_HEADER_PMC_COUNTERS_SHIFT &
              TRACE_HEADER_PMC_COUNTERS_MASK >> TRACE_HEADER_PMC_COUNTERS_SHIFT;
    ULONG head = (ULONG)(sizeof *record + n * sizeof(ULONG64));
    EVENT_HEADER_EXTENDED_DATA_ITEM counters = { .ExtType = EVENT_HEADER_EXT_TYPE_PMC_COUNTERS,
                                                 .DataSize = (USHORT)(n * sizeof(ULONG64)),
                                                 .DataPtr = (ULONG_PTR)(record + 1) };
    EVENT_RECORD event = {
        .EventHeader = { .Size = sizeof(EVENT_HEADER),
                         .Flags = CLASSIC | (n ? EVENT_HEADER_FLAG_EXTENDED_INFO : 0),
                         .ThreadId = 0xffffffff,
                         .ProcessId = 0xffffffff,
                         .TimeStamp.QuadPart = time_of(c, buffer, record->TimeStamp),
                         .EventDescriptor = { .Version = (UCHAR)record->Marker,
                                              .Opcode = (UCHAR)record->HookId } },
        .BufferContext = buffer->ClientContext,
        .ExtendedDataCount = n != 0,
        .ExtendedData = n ? &counters : NULL,
        .UserDataLength = (USHORT)(record->Size - head),
        .UserData = (uint8_t *)(ULONG_PTR)record + head,
        .UserContext = c->log.Context,
    };
    const GUID *group = trace_group(record->HookId);
    if (group)
        event.EventHeader.ProviderId = *group;
    c->log.EventRecordCallback(&event);
}

/* --- Merging. --- */

/* Begin and end of the buffer at `from` in the area; returns the place of the next one. */
static SIZE_T part_at(const struct consumer *c, SIZE_T from, struct part *part)
{
    part->header = (const WMI_BUFFER_HEADER *)(const void *)(c->area + from);
    part->at = (const uint8_t *)part->header + part->header->Offset;
    part->end = (const uint8_t *)part->header + part->header->SavedOffset;
    return from + part->header->SavedOffset;
}

/* Finds the first buffer from `from` on that has records of this processor left. */
static bool next_part(const struct consumer *c, SIZE_T from, unsigned cpu, struct part *part)
{
    while (from < c->filled) {
        from = part_at(c, from, part);
        if (part->header->ClientContext.ProcessorIndex == cpu && part->at < part->end)
            return true;
    }
    return false;
}

static void write_offset(const struct part *part)
{
    ((WMI_BUFFER_HEADER *)(ULONG_PTR)part->header)->Offset =
        (ULONG)(part->at - (const uint8_t *)part->header);
}

/* Delivers the events up to `until`. False: the consumer wants no more. */
static bool merge(struct consumer *c, ULONG64 until)
{
    struct part parts[PROCESSORS];
    uint64_t left = 0; /* processors with records */
    for (unsigned cpu = 0; cpu < PROCESSORS; cpu++)
        left |= (uint64_t)next_part(c, 0, cpu, &parts[cpu]) << cpu;
    while (left && __atomic_load_n(&c->state, __ATOMIC_ACQUIRE) == RUNNING) {
        unsigned first = (unsigned)__builtin_ctzll(left);
        for (uint64_t rest = left & (left - 1); rest; rest &= rest - 1) {
            unsigned cpu = (unsigned)__builtin_ctzll(rest);
            if (trace_record_time(parts[cpu].at) < trace_record_time(parts[first].at))
                first = cpu;
        }
        struct part *part = &parts[first];
        const void *record = part->at;
        if (trace_record_time(record) > until)
            break;
        part->at += (trace_record_size(record) + 7u) & ~7u;
        write_offset(part);
        if (trace_record_is_event(record))
            deliver_event(c, part->header, record);
        else
            deliver_record(c, part->header, record);
        if (part->at == part->end && !next_part(c, (SIZE_T)(part->end - c->area), first, part))
            left &= ~(1ull << first);
    }
    return __atomic_load_n(&c->state, __ATOMIC_ACQUIRE) == RUNNING;
}

/* Drops the finished buffers, with a callback for each. False: the consumer wants no more. */
static bool drop_done(struct consumer *c)
{
    struct part part;
    SIZE_T kept = 0;
    bool more = true;
    for (SIZE_T at = 0, next; at < c->filled; at = next) {
        next = part_at(c, at, &part);
        if (part.at < part.end) {
            memmove(c->area + kept, c->area + at, next - at);
            kept += next - at;
            continue;
        }
        c->log.BuffersRead++;
        c->log.Filled = (ULONG)(next - at);
        if (c->log.BufferCallback && more)
            more = c->log.BufferCallback(&c->log);
    }
    c->filled = kept;
    return more;
}

/* --- Reading. --- */

static ULONG control_session(const struct consumer *c, ULONG code, WMI_LOGGER_INFORMATION *info)
{
    memset(info, 0, sizeof *info);
    info->Wnode.BufferSize = sizeof *info;
    return trace_control(code, c->session, c->session ? NULL : c->name, info);
}

static void free_area(PVOID area)
{
    SIZE_T size = 0;
    if (area)
        NtFreeVirtualMemory(NtCurrentProcess(), &area, &size, MEM_RELEASE);
}

/* ERROR_WMI_INSTANCE_NOT_FOUND; ERROR_BUSY: the session has a consumer; ERROR_NOT_ENOUGH_MEMORY. */
static ULONG connect_session(struct consumer *c)
{
    ULONG returned;
    WMI_LOGGER_INFORMATION info;
    ULONG error = control_session(c, EtwQueryLoggerCode, &info);
    if (error)
        return error;
    c->buffer_size = info.BufferSize * 1024;
    /* Room for buffers that waited, that filled while this thread slept, that a flush closes, and
     * that fill meanwhile. Events from before a flush that found no room would be delivered after
     * later ones. */
    c->size = (SIZE_T)4 * info.NumberOfBuffers * c->buffer_size;
    c->session = info.Wnode.HistoricalContext;
    PVOID area = NULL;
    NTSTATUS status = NtAllocateVirtualMemory(NtCurrentProcess(), &area, 0, &c->size,
                                              MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
    if (NT_SUCCESS(status))
        status = ZwTraceControl(EtwRealtimeConnectCode, &c->session, sizeof c->session, &c->from,
                                sizeof c->from, &returned);
    if (NT_SUCCESS(status)) {
        SYSTEM_INFO system;
        GetSystemInfo(&system);
        c->area = area;
        c->log.LogfileHeader.NumberOfProcessors = system.dwNumberOfProcessors;
        c->log.LogfileHeader.BufferSize = c->log.BufferSize = c->buffer_size;
        c->log.LogfileHeader.PerfFreq.QuadPart = (LONGLONG)c->from.Frequency;
        c->log.LogfileHeader.PointerSize = sizeof(PVOID);
        c->log.LogfileHeader.LogFileMode = info.LogFileMode;
    } else {
        c->session = 0;
        free_area(area);
    }
    return RtlNtStatusToDosError(status);
}

/* Appends the session's full buffers, as far as there is room. */
static NTSTATUS gather(struct consumer *c)
{
    NTSTATUS status = STATUS_SUCCESS;
    ULONG n = 1;
    while (n && NT_SUCCESS(status) && c->size - c->filled >= c->buffer_size) {
        SIZE_T room = c->size - c->filled;
        SIZE_T before = c->filled;
        status = ZwTraceControl(EtwRealtimeReadCode, &c->from.Handle, sizeof c->from.Handle,
                                c->area + before, (ULONG)(room < 1u << 30 ? room : 1u << 30), &n);
        c->filled += NT_SUCCESS(status) ? n : 0;
        while (before < c->filled) { /* from here on Offset is the next record to deliver */
            WMI_BUFFER_HEADER *header = (WMI_BUFFER_HEADER *)(void *)(c->area + before);
            header->Offset = sizeof *header;
            before += header->SavedOffset;
        }
    }
    return status;
}

static void flush_session(struct consumer *c)
{
    WMI_LOGGER_INFORMATION info;
    if (control_session(c, EtwFlushLoggerCode, &info) == ERROR_SUCCESS)
        c->log.EventsLost = info.EventsLost;
}

/* Runs until the session has stopped or the consumer wants no more. Flushes at once, because there
 * may be events already. */
static ULONG run_consumer(struct consumer *c)
{
    WMI_LOGGER_INFORMATION info;
    ULONG error = control_session(c, EtwQueryLoggerCode, &info);
    ULONG64 period = (error ? 1 : info.FlushTimer) * c->from.Frequency, next = 0;
    for (;;) {
        NTSTATUS status = gather(c);
        ULONG64 until = __rdtsc();
        bool all = status == STATUS_WMI_INSTANCE_NOT_FOUND;
        if (!NT_SUCCESS(status) && !all)
            return RtlNtStatusToDosError(status);
        if (!all && until < next && c->filled < c->size / 4) {
            Sleep(POLL_MS);
            if (__atomic_load_n(&c->state, __ATOMIC_ACQUIRE) != RUNNING)
                return ERROR_SUCCESS;
            continue;
        }
        if (!all) {
            until = __rdtsc();
            next = until + period;
            flush_session(c);
            gather(c);
        }
        if (!merge(c, all ? ~0ull : until))
            return ERROR_SUCCESS;
        if (!drop_done(c))
            return ERROR_CANCELLED;
        if (all)
            return ERROR_SUCCESS;
    }
}

/* --- Handles: the consumer's number plus 1. --- */

static struct consumer *consumer_of(TRACEHANDLE handle)
{
    return handle - 1 < CONSUMERS && consumers[handle - 1].state != FREE ? &consumers[handle - 1]
                                                                         : NULL;
}

static struct consumer *take_consumer(void)
{
    for (unsigned i = 0; i < CONSUMERS; i++) {
        uint32_t free = FREE;
        if (__atomic_compare_exchange_n(&consumers[i].state, &free, OPEN, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return &consumers[i];
    }
    return NULL;
}

static void free_consumer(struct consumer *c)
{
    if (c->session)
        NtClose(c->from.Handle);
    free_area(c->area);
    memset((uint8_t *)c + sizeof c->state, 0, sizeof *c - sizeof c->state);
    __atomic_store_n(&c->state, FREE, __ATOMIC_RELEASE);
}

static TRACEHANDLE refuse(ULONG error)
{
    SetLastError(error);
    return INVALID_PROCESSTRACE_HANDLE;
}

/* The A and W structures differ only in the type of pointers. */
static TRACEHANDLE open(PEVENT_TRACE_LOGFILEW log, bool narrow)
{
    ULONG mode = PROCESS_TRACE_MODE_REAL_TIME | PROCESS_TRACE_MODE_EVENT_RECORD;
    if (!log || !log->LoggerName || !log->EventRecordCallback)
        return refuse(ERROR_INVALID_PARAMETER);
    if (log->LogFileName || (log->ProcessTraceMode & mode) != mode)
        return refuse(ERROR_NOT_SUPPORTED);
    struct consumer *c = take_consumer();
    if (!c)
        return refuse(ERROR_NO_SYSTEM_RESOURCES);
    bool ended = false;
    for (unsigned i = 0; i < NAME_CHARS && !ended; i++) {
        c->name[i] = narrow ? (UCHAR)((const char *)log->LoggerName)[i] : log->LoggerName[i];
        ended = !c->name[i];
    }
    memcpy(&c->log, log, sizeof *log);
    ULONG error = ended ? connect_session(c) : ERROR_INVALID_PARAMETER;
    if (error && error != ERROR_WMI_INSTANCE_NOT_FOUND) {
        free_consumer(c);
        return refuse(error);
    }
    memcpy(&log->LogfileHeader, &c->log.LogfileHeader, sizeof log->LogfileHeader);
    log->BufferSize = c->log.BufferSize;
    return (TRACEHANDLE)(c - consumers) + 1;
}

/* INVALID_PROCESSTRACE_HANDLE and the last error: ERROR_INVALID_PARAMETER: no structure, name or
 * callback, a name over 63 characters; ERROR_NOT_SUPPORTED: NT: a file, or a mode other than
 * real-time and event record; ERROR_BUSY: NT: the session has a consumer;
 * ERROR_NO_SYSTEM_RESOURCES: eight are open; ERROR_NOT_ENOUGH_MEMORY; ERROR_ACCESS_DENIED. From
 * here on a running session keeps its events. */
TRACEHANDLE OpenTraceW(PEVENT_TRACE_LOGFILEW Logfile) { return open(Logfile, false); }
TRACEHANDLE OpenTraceA(PEVENT_TRACE_LOGFILEA Logfile)
{
    return open((PEVENT_TRACE_LOGFILEW)(void *)Logfile, true);
}

/* Calls back for each event until the session stops, the trace is closed, or a buffer callback
 * returns FALSE. ERROR_BAD_LENGTH: no handle, or over 64; ERROR_INVALID_PARAMETER: HandleArray
 * NULL; ERROR_NOT_SUPPORTED: NT: more than one handle, or times; ERROR_INVALID_HANDLE; ERROR_BUSY:
 * it is being processed; ERROR_WMI_INSTANCE_NOT_FOUND: the session does not run; ERROR_CANCELLED: a
 * buffer callback returned FALSE. */
ULONG ProcessTrace(PTRACEHANDLE HandleArray, ULONG HandleCount, LPFILETIME StartTime,
                   LPFILETIME EndTime)
{
    if (!HandleCount || HandleCount > 64)
        return ERROR_BAD_LENGTH;
    if (!HandleArray)
        return ERROR_INVALID_PARAMETER;
    if (HandleCount > 1 || StartTime || EndTime)
        return ERROR_NOT_SUPPORTED;
    struct consumer *c = consumer_of(HandleArray[0]);
    uint32_t state = OPEN;
    if (!c)
        return ERROR_INVALID_HANDLE;
    if (!__atomic_compare_exchange_n(&c->state, &state, RUNNING, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return ERROR_BUSY;
    ULONG error = c->session ? ERROR_SUCCESS : connect_session(c);
    if (!error)
        error = run_consumer(c);
    state = RUNNING;
    if (!__atomic_compare_exchange_n(&c->state, &state, OPEN, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        free_consumer(c); /* it was closed meanwhile */
    return error;
}

/* ERROR_INVALID_HANDLE; ERROR_CTX_CLOSE_PENDING: it is being processed, and closes afterwards. */
ULONG CloseTrace(TRACEHANDLE TraceHandle)
{
    struct consumer *c = consumer_of(TraceHandle);
    uint32_t open = OPEN, running = RUNNING;
    if (!c)
        return ERROR_INVALID_HANDLE;
    if (__atomic_compare_exchange_n(&c->state, &running, CLOSING, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
        return ERROR_CTX_CLOSE_PENDING;
    if (!__atomic_compare_exchange_n(&c->state, &open, CLOSING, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return ERROR_INVALID_HANDLE;
    free_consumer(c);
    return ERROR_SUCCESS;
}
