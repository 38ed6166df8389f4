/* SPDX-License-Identifier: MIT */
/* A program marks regions of its own by TraceEvent in a session that counts at system calls and
 * thread switches, as pmctrace does (github.com/cmuratori/pmctrace): a region begins at the return
 * of the call that marks its begin, and ends at the entry of the call that marks its end. */
#include "session.h"

#define REGIONS 4
#define CPUS 2
enum { SWITCH = 36, ENTER = 51, EXIT = 52, BEGIN = 1, END = 2 };

static const GUID thread_events = {
    0x3d6fa8d1, 0xfe05, 0x11d0, { 0x9d, 0xda, 0, 0xc0, 0x4f, 0xd7, 0xba, 0x7c }
};
static const GUID own = {
    0x5c96d7f7, 0xb1ea, 0x4fbe, { 0x86, 0x55, 0xe0, 0x43, 0x1e, 0x23, 0x2e, 0x53 }
};

/* What TraceProfileSourceConfigInfo's system call takes: an event of AMD's, by its number. */
#pragma pack(push, 1)
struct add_source {
    ULONG operation, version;
    ULONG64 event;
    ULONG hierarchy[3], interval;
    BYTE persist, unused;
    WCHAR name[127];
    BYTE more;
};
#pragma pack(pop)

struct mark {
    EVENT_TRACE_HEADER header;
    ULONG64 owner;
    ULONG region, unused;
};

static struct {
    LONG64 count, ended;
    ULONG thread, switches, order;
    LONGLONG begun;
} regions[REGIONS];
static struct {
    LONG64 entered;
    int waits, runs; /* a region's number and 1 */
} cpus[CPUS];
static ULONG strangers, order;

static LONG64 counter(const EVENT_RECORD *e)
{
    const EVENT_HEADER_EXTENDED_DATA_ITEM *item = e->ExtendedData;
    return e->ExtendedDataCount == 1 && item->ExtType == EVENT_HEADER_EXT_TYPE_PMC_COUNTERS &&
                   item->DataSize == 8
               ? *(LONG64 *)(ULONG_PTR)item->DataPtr
               : -1;
}

static void on_mark(const EVENT_RECORD *e, unsigned cpu)
{
    const BYTE opcode = e->EventHeader.EventDescriptor.Opcode;
    const ULONG64 *data = e->UserData;
    IS(e->UserDataLength, sizeof(struct mark) - sizeof(EVENT_TRACE_HEADER));
    IS(data[0], 0x123456789);
    IS(e->EventHeader.ProcessId, GetCurrentProcessId());
    const ULONG r = (ULONG)data[1];
    if (opcode == BEGIN) {
        regions[r].thread = e->EventHeader.ThreadId;
        regions[r].begun = e->EventHeader.TimeStamp.QuadPart;
        cpus[cpu].waits = cpus[cpu].runs = (int)r + 1;
    } else {
        IS(e->EventHeader.ThreadId, regions[r].thread);
        IS(e->EventHeader.TimeStamp.QuadPart > regions[r].begun, 1);
        regions[r].count += cpus[cpu].entered;
        regions[r].order = ++order;
        cpus[cpu].runs = 0;
    }
}

static void on_switch(const EVENT_RECORD *e, unsigned cpu)
{
    const ULONG *ids = e->UserData;
    const int running = cpus[cpu].runs;
    if (running) {
        regions[running - 1].count += counter(e);
        regions[running - 1].switches++;
        cpus[cpu].runs = 0;
    }
    for (int r = 0; r < REGIONS; r++)
        if (regions[r].thread == ids[0] && regions[r].count > 0 && !regions[r].order) {
            regions[r].count -= counter(e);
            cpus[cpu].runs = r + 1;
        }
}

static VOID WINAPI on_event(PEVENT_RECORD e)
{
    const unsigned cpu = e->BufferContext.ProcessorIndex;
    const GUID *id = &e->EventHeader.ProviderId;
    const BYTE opcode = e->EventHeader.EventDescriptor.Opcode;
    if (!memcmp(id, &own, sizeof own))
        on_mark(e, cpu);
    else if (!memcmp(id, &thread_events, sizeof own) && opcode == SWITCH)
        on_switch(e, cpu);
    else if (!memcmp(id, &call_events, sizeof own) && opcode == ENTER)
        cpus[cpu].entered = counter(e);
    else if (!memcmp(id, &call_events, sizeof own) && opcode == EXIT) {
        if (cpus[cpu].waits)
            regions[cpus[cpu].waits - 1].count -= counter(e);
        cpus[cpu].waits = 0;
    } else
        strangers++;
}

static ULONG source_by_name(const WCHAR *name)
{
    static BYTE list[65536];
    ULONG size = 0;
    IS(TraceQueryInformation(0, TraceProfileSourceListInfo, list, sizeof list, &size), 0);
    for (PROFILE_SOURCE_INFO *info = (PROFILE_SOURCE_INFO *)list;;
         info = (PROFILE_SOURCE_INFO *)((BYTE *)info + info->NextEntryOffset)) {
        if (!wcscmp(info->Description, name))
            return info->Source;
        if (!info->NextEntryOffset)
            return 0;
    }
}

static void start(TRACEHANDLE *session, struct session *s)
{
    struct add_source add = { .operation = 0x15,
                              .version = 2,
                              .event = 0xc0,
                              .hierarchy = { -1u, -1u, -1u },
                              .interval = 0x2000003,
                              .name = L"PMCTraceServerCounter0" };
    CLASSIC_EVENT_ID events[] = { { thread_events, SWITCH, { 0 } },
                                  { call_events, ENTER, { 0 } },
                                  { call_events, EXIT, { 0 } } };
    IS(ControlTraceW(0, L"Win32PMCTrace", &s->p, EVENT_TRACE_CONTROL_STOP),
       ERROR_WMI_INSTANCE_NOT_FOUND);
    s->p.Wnode.Flags |= 0x00800000; /* WNODE_FLAG_VERSIONED_PROPERTIES */
    s->p.EnableFlags =
        EVENT_TRACE_FLAG_CSWITCH | EVENT_TRACE_FLAG_NO_SYSCONFIG | EVENT_TRACE_FLAG_SYSTEMCALL;
    IS(StartTraceW(session, L"Win32PMCTrace", &s->p), 0);
    NTSTATUS(NTAPI * set)
    (ULONG, PVOID, ULONG) =
        (void *)GetProcAddress(GetModuleHandleA("ntdll.dll"), "NtSetSystemInformation");
    NTSTATUS(NTAPI * adjust)
    (ULONG, BOOLEAN, BOOLEAN, BOOLEAN *) =
        (void *)GetProcAddress(GetModuleHandleA("ntdll.dll"), "RtlAdjustPrivilege");
    BOOLEAN was;
    IS(adjust(11, TRUE, FALSE, &was), 0);
    IS(set(31, &add, sizeof add), 0);
    ULONG source = source_by_name(add.name);
    IS(source != 0, 1);
    IS(TraceSetInformation(*session, TracePmcCounterListInfo, &source, sizeof source), 0);
    IS(TraceSetInformation(*session, TracePmcEventListInfo, events, sizeof events), 0);
}

static ULONG mark(TRACEHANDLE session, BYTE type, ULONG region)
{
    struct mark m = { .header = { .Size = sizeof m, .Guid = own, .Flags = WNODE_FLAG_TRACED_GUID },
                      .owner = 0x123456789,
                      .region = region };
    m.header.Class.Type = type;
    return TraceEvent(session, &m.header);
}

static void refusals(TRACEHANDLE session)
{
    static struct {
        EVENT_TRACE_HEADER header;
        BYTE data[0xfff0];
    } large = { .header = { .Flags = WNODE_FLAG_TRACED_GUID } };
    IS(TraceEvent(0, &large.header), ERROR_INVALID_PARAMETER);
    IS(TraceEvent(session, NULL), ERROR_INVALID_PARAMETER);
    large.header.Size = sizeof large.header - 1;
    IS(TraceEvent(session, &large.header), ERROR_INVALID_PARAMETER);
    large.header.Size = 0xff00;
    IS(TraceEvent(session, &large.header), 0);
    large.header.Size = 0xfff0;
    IS(TraceEvent(session, &large.header), ERROR_MORE_DATA);
    large.header.Size = 64;
    IS(TraceEvent(0xffff, &large.header), ERROR_INVALID_HANDLE);
    IS(TraceEvent(session + 1, &large.header), ERROR_INVALID_HANDLE);
    large.header.Flags = 0;
    IS(TraceEvent(session, &large.header), 186 /* ERROR_INVALID_FLAG_NUMBER */);
}

int main(void)
{
    static struct session s = SESSION;
    TRACEHANDLE session = 0;
    start(&session, &s);
    HANDLE reader = start_reader(&s, on_event);
    for (ULONG r = 0; r < REGIONS; r++) {
        IS(mark(session, BEGIN, r), 0);
        for (ULONG_PTR n = 100000 * (r + 1); n; n--)
            __asm__ volatile("" : "+r"(n));
        IS(mark(session, END, r), 0);
    }
    end_session(session, &s, reader);
    IS(mark(session, BEGIN, 0), ERROR_INVALID_HANDLE);
    for (LONG64 r = 0; r < REGIONS; r++) {
        const LONG64 more = regions[r].count - 200000 * (r + 1);
        printf("region %lld: %lld instructions, %lu switches\n", r, regions[r].count,
               regions[r].switches);
        IS(more >= 0 && more < 50000, 1);
        IS(regions[r].order, r + 1);
    }
    IS(strangers, 0);
    s.p.Wnode.Flags = WNODE_FLAG_TRACED_GUID;
    s.p.LogFileMode = EVENT_TRACE_REAL_TIME_MODE;
    s.p.EnableFlags = 0;
    IS(StartTraceW(&session, L"Own", &s.p), 0); /* with programs' events alone */
    refusals(session);
    IS(ControlTraceW(session, NULL, &s.p, EVENT_TRACE_CONTROL_STOP), 0);
    return check_result();
}
