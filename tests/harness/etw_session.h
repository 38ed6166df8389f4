/* SPDX-License-Identifier: MIT */
/* A trace session as the tests use it, in both rings: tests/harness/etw.h and tests/ring3/etw.h say
 * which. */
#pragma once
#include "kernel/nt/nt_trace.h"
#include "tests/harness/test.h"

#define SESSION_NAME "test session"
#define SESSION_MODE (EVENT_TRACE_REAL_TIME_MODE | EVENT_TRACE_SYSTEM_LOGGER_MODE)

struct session {
    TRACEHANDLE trace;
    HANDLE consumer;
    ULONG64 frequency;
};

struct session_info {
    WMI_LOGGER_INFORMATION info;
    WCHAR name[80];
};

/* One that could start; BufferSize, flags and so on are the caller's to change. */
static inline void session_describe(struct session_info *d, const char *name)
{
    for (size_t i = 0; i < sizeof *d; i++) /* no REP in ring 3 */
        ((uint8_t *)d)[i] = 0;
    USHORT n = 0;
    for (; name[n]; n++)
        d->name[n] = (WCHAR)name[n];
    d->info.Wnode.BufferSize = sizeof d->info;
    d->info.Wnode.Flags = WNODE_FLAG_TRACED_GUID;
    d->info.LogFileMode = SESSION_MODE;
    d->info.FlushTimer = 1000000; /* buffers come when they are full, or when the test says */
    d->info.LoggerName = (UNICODE_STRING){ (USHORT)(n * 2), (USHORT)(n * 2), d->name };
}

static inline NTSTATUS session_control(ULONG code, struct session_info *d)
{
    ULONG n = 0;
    NTSTATUS status = NtTraceControl(code, &d->info, sizeof d->info, &d->info, sizeof d->info, &n);
    if (NT_SUCCESS(status))
        CHECK_EQ(n, sizeof d->info);
    return status;
}

static inline bool session_connect(struct session *s)
{
    TRACE_CONSUMER consumer = { NULL, 0 };
    ULONG n = 0;
    if (!CHECK_OK(NtTraceControl(EtwRealtimeConnectCode, &s->trace, sizeof s->trace, &consumer,
                                 sizeof consumer, &n)))
        return false;
    s->consumer = consumer.Handle;
    s->frequency = consumer.Frequency;
    return CHECK_EQ(n, sizeof consumer);
}

/* Running, without a consumer. */
static inline struct session session_unread(const char *name, ULONG mode)
{
    struct session_info d;
    session_describe(&d, name);
    d.info.LogFileMode = mode;
    CHECK_OK(session_control(EtwStartLoggerCode, &d));
    return (struct session){ d.info.Wnode.HistoricalContext, NULL, 0 };
}

/* Running, with a consumer and no events yet; buffers of each of 4 processors. */
static inline bool session_start(struct session *s, ULONG buffer_kb, ULONG buffers)
{
    struct session_info d;
    session_describe(&d, SESSION_NAME);
    d.info.BufferSize = buffer_kb;
    d.info.MaximumBuffers = buffers;
    *s = (struct session){ 0, NULL, 0 };
    if (!CHECK_OK(session_control(EtwStartLoggerCode, &d)))
        return false;
    s->trace = d.info.Wnode.HistoricalContext;
    return session_connect(s);
}

/* Class 0x1F. */
static inline NTSTATUS session_set_class(const void *buffer, ULONG length)
{
    return NtSetSystemInformation(SystemPerformanceTraceInformation, (PVOID)(uint64_t)buffer,
                                  length);
}

static inline NTSTATUS session_by_handle(ULONG code, TRACEHANDLE trace,
                                         WMI_LOGGER_INFORMATION *info)
{
    struct session_info d;
    session_describe(&d, "");
    d.info.Wnode.HistoricalContext = trace;
    NTSTATUS status = session_control(code, &d);
    *info = d.info;
    return status;
}

/* Ends the session; the events that it has lost. Reading goes on until the consumer is closed. */
static inline ULONG session_stop(struct session *s)
{
    WMI_LOGGER_INFORMATION info;
    CHECK_OK(session_by_handle(EtwStopLoggerCode, s->trace, &info));
    return info.EventsLost;
}

static inline void session_close(struct session *s)
{
    CHECK_OK(
        NtTraceControl(EtwRealtimeDisconnectCode, &s->consumer, sizeof s->consumer, NULL, 0, NULL));
}

static inline NTSTATUS session_read(const struct session *s, void *bytes, ULONG size, ULONG *n)
{
    HANDLE consumer = s->consumer;
    return NtTraceControl(EtwRealtimeReadCode, &consumer, sizeof consumer, bytes, size, n);
}

static inline NTSTATUS session_flush(struct session *s)
{
    WMI_LOGGER_INFORMATION info;
    return session_by_handle(EtwFlushLoggerCode, s->trace, &info);
}

/* PERF_ constants with one index, or united below; 0: none. */
static inline NTSTATUS session_mask(const struct session *s, ULONG mask1, ULONG mask2)
{
    EVENT_TRACE_GROUPMASK_INFORMATION info = { EventTraceGroupMaskInformation,
                                               s->trace,
                                               { { 0 } } };
    info.EventTraceGroupMasks.Masks[PERF_MASK_INDEX(mask1)] |= PERF_MASK_BITS(mask1);
    info.EventTraceGroupMasks.Masks[PERF_MASK_INDEX(mask2)] |= PERF_MASK_BITS(mask2);
    return NtSetSystemInformation(SystemPerformanceTraceInformation, &info, sizeof info);
}

/* Sub-classes 0x0C, 0x0E, 0x0F and 0x0B. */
static inline NTSTATUS session_list(ULONG sub_class, TRACEHANDLE trace, const ULONG *items,
                                    ULONG count)
{
    struct {
        ULONG sub_class, spare;
        TRACEHANDLE trace;
        ULONG items[16];
    } list = { sub_class, 0, trace, { 0 } };
    for (ULONG i = 0; i < count; i++)
        list.items[i] = items[i];
    return NtSetSystemInformation(SystemPerformanceTraceInformation, &list,
                                  0x10 + count * (ULONG)sizeof *items);
}

/* Sub-class 0x13; 0x14 is a session_list. */
static inline NTSTATUS session_branches(const struct session *s, ULONG options)
{
    return session_list(EventTraceLastBranchConfigurationInformation, s->trace, &options, 1);
}

/* --- What was read. --- */

struct record {
    const PERFINFO_TRACE_HEADER *header; /* NULL: no more; of events an EVENT_TRACE_HEADER */
    const WMI_BUFFER_HEADER *buffer;
    const ULONG64 *counters;
    const void *payload;
    ULONG count, size; /* counters; bytes of the payload */
};

struct records {
    const uint8_t *at, *end, *buffer_end;
    const WMI_BUFFER_HEADER *buffer;
    ULONG64 time; /* of the last record */
};

static inline struct records records_of(const void *bytes, ULONG size)
{
    return (struct records){ bytes, (const uint8_t *)bytes + size, bytes, NULL, 0 };
}

/* The version of a hook's payload, as Windows 10 has it. */
static inline UCHAR version_of(USHORT hook)
{
    return hook == PERFINFO_LOG_TYPE_CONTEXTSWAP                                      ? 4
           : hook == WMI_LOG_TYPE_THREAD_CREATE || hook == WMI_LOG_TYPE_THREAD_DELETE ? 3
                                                                                      : 2;
}

/* Checks each header; a record that is torn ends the walk with a failed check. */
static inline struct record next_record(struct records *r)
{
    struct record none = { NULL, NULL, NULL, NULL, 0, 0 };
    while (r->at == r->buffer_end) {
        if (r->at == r->end)
            return none;
        r->buffer = (const WMI_BUFFER_HEADER *)(const void *)r->at;
        r->buffer_end = r->at + r->buffer->SavedOffset;
        r->at += sizeof *r->buffer;
        r->time = 0;
        if (!CHECK(r->buffer_end <= r->end && r->at <= r->buffer_end))
            return none;
    }
    const PERFINFO_TRACE_HEADER *h = (const PERFINFO_TRACE_HEADER *)(const void *)r->at;
    if (trace_record_is_event(h)) {
        r->time = trace_record_time(h);
        r->at += (trace_record_size(h) + 7u) & ~7u;
        return (struct record){ h,    r->buffer,
                                NULL, (const EVENT_TRACE_HEADER *)(const void *)h + 1,
                                0,    trace_record_size(h) - (ULONG)sizeof(EVENT_TRACE_HEADER) };
    }
    ULONG n = (h->Marker & TRACE_HEADER_PMC_COUNTERS_MASK) >> TRACE_HEADER_PMC_COUNTERS_SHIFT;
    ULONG head = (ULONG)sizeof *h + n * (ULONG)sizeof(ULONG64);
    if ((h->Marker & ~TRACE_HEADER_PMC_COUNTERS_MASK) !=
            (PERFINFO_MARKER | version_of(h->HookId)) ||
        h->Size < head || r->at + ((h->Size + 7u) & ~7u) > r->buffer_end) {
        CHECK(!"a whole record");
        return none;
    }
    if (h->TimeStamp < r->time)
        CHECK(!"a record no earlier than the one before");
    r->time = h->TimeStamp;
    const ULONG64 *counters = (const ULONG64 *)(const void *)(h + 1);
    r->at += (h->Size + 7u) & ~7u;
    return (struct record){ h, r->buffer, counters, counters + n, n, h->Size - head };
}

/* The next record of branches after one of the hook, with its entries and their number; NULL: no
 * more. It follows at once, and says that record's time and thread. */
static inline const ETW_LAST_BRANCH *next_branches(struct records *all, USHORT hook,
                                                   struct record *event, ULONG *count)
{
    static const GUID guid = LAST_BRANCH_GUID;
    while ((*event = next_record(all)).header) {
        if (trace_record_is_event(event->header) || event->header->HookId != hook)
            continue;
        struct record r = next_record(all);
        if (!CHECK(r.header && trace_record_is_event(r.header)))
            return NULL;
        const EVENT_TRACE_HEADER *h = (const EVENT_TRACE_HEADER *)(const void *)r.header;
        const ETW_LAST_BRANCH_RECORD *record = r.payload;
        for (unsigned i = 0; i < sizeof guid; i++)
            CHECK_EQ(((const UCHAR *)&h->Guid)[i], ((const UCHAR *)&guid)[i]);
        CHECK_EQ(h->Class.Type, LAST_BRANCH_TYPE);
        CHECK_EQ(h->Class.Version, LAST_BRANCH_VERSION);
        CHECK_EQ(record->EventTimeStamp, event->header->TimeStamp);
        CHECK_EQ(record->ThreadId, h->ThreadId);
        CHECK_EQ(record->ProcessId, h->ProcessId);
        CHECK_EQ((r.size - sizeof *record) % sizeof(ETW_LAST_BRANCH), 0);
        *count = (ULONG)((r.size - sizeof *record) / sizeof(ETW_LAST_BRANCH));
        return (const ETW_LAST_BRANCH *)(const void *)(record + 1);
    }
    return NULL;
}
