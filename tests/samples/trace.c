/* SPDX-License-Identifier: MIT */
/* What does each thread cost, by the trace of context switches? A session of the kernel's events
 * whose records carry hardware counters, as a program on Windows starts, reads and adds it up. On
 * Windows it needs an administrator. */
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>
#include <evntrace.h>
#include <evntcons.h>

#define THREADS 4
#define SOURCES 2
#define CPUS_MAX 64
#define ROWS_MAX 64
#define CSWITCH 36 /* Thread class, event type: a context switch */

/* Of the documentation; in no header. */
typedef struct {
    ULONG NewThreadId, OldThreadId;
    CHAR NewThreadPriority, OldThreadPriority;
    UCHAR PreviousCState;
    CHAR SpareByte;
    CHAR OldThreadWaitReason, OldThreadWaitMode, OldThreadState, OldThreadWaitIdealProcessor;
    ULONG NewThreadWaitTime, Reserved;
} CSWITCH_EVENT;
#define MAX_PMC_COUNTERS (TRACE_INFO_CLASS)22 /* MAX_PMC_COUNTERS, which not every header has */
#define PMC_COUNTERS 8                        /* EVENT_HEADER_EXT_TYPE_PMC_COUNTERS */

static const WCHAR session_name[] = L"counts per thread";

struct properties {
    EVENT_TRACE_PROPERTIES p;
    WCHAR name[64];
};

struct row {
    ULONG thread, switches;
    ULONG64 counts[SOURCES];
};

struct totals {
    struct row rows[ROWS_MAX];
    unsigned used;
    ULONG64 last[CPUS_MAX][SOURCES]; /* of each processor, at its last switch */
    BOOLEAN seen[CPUS_MAX];
    ULONG events;
};

static struct totals totals;

static struct row *row_of(ULONG thread)
{
    unsigned i = 0;
    while (i < totals.used && totals.rows[i].thread != thread)
        i++;
    if (i == ROWS_MAX)
        return NULL;
    if (i == totals.used)
        totals.rows[totals.used++].thread = thread;
    return &totals.rows[i];
}

/* What a processor's counters grew by since its last switch is the old thread's. */
static VOID WINAPI on_event(PEVENT_RECORD event)
{
    const CSWITCH_EVENT *swap = event->UserData;
    USHORT cpu = event->BufferContext.ProcessorIndex;

    totals.events++;
    if (event->EventHeader.EventDescriptor.Opcode != CSWITCH || event->ExtendedDataCount != 1 ||
        cpu >= CPUS_MAX)
        return;
    const EVENT_HEADER_EXTENDED_DATA_ITEM *item = &event->ExtendedData[0];
    const EVENT_EXTENDED_ITEM_PMC_COUNTERS *now = (void *)(ULONG_PTR)item->DataPtr;
    struct row *row = row_of(swap->OldThreadId);
    if (item->ExtType != PMC_COUNTERS || item->DataSize != SOURCES * sizeof(ULONG64) || !row)
        return;
    row->switches++;
    for (int i = 0; i < SOURCES; i++) {
        row->counts[i] += totals.seen[cpu] ? now->Counter[i] - totals.last[cpu][i] : 0;
        totals.last[cpu][i] = now->Counter[i];
    }
    totals.seen[cpu] = TRUE;
}

/* The number of a source by its name; class 7 lists them. */
static ULONG find_source(const WCHAR *name)
{
    ULONG size = 0, source = 0;
    TraceQueryInformation(0, TraceProfileSourceListInfo, NULL, 0, &size);
    PROFILE_SOURCE_INFO *list = malloc(size), *info = list;
    if (!list ||
        TraceQueryInformation(0, TraceProfileSourceListInfo, list, size, &size) != ERROR_SUCCESS)
        return 0;
    for (;; info = (PROFILE_SOURCE_INFO *)((BYTE *)info + info->NextEntryOffset)) {
        int i = 0;
        while (name[i] && info->Description[i] == name[i])
            i++;
        if (!name[i] && !info->Description[i])
            source = info->Source;
        if (!info->NextEntryOffset)
            break;
    }
    free(list);
    return source;
}

static ULONG start(TRACEHANDLE *session, const ULONG *sources)
{
    static const CLASSIC_EVENT_ID events[] = {
        { { 0x3d6fa8d1, 0xfe05, 0x11d0, { 0x9d, 0xda, 0, 0xc0, 0x4f, 0xd7, 0xba, 0x7c } },
          CSWITCH,
          { 0 } }
    };
    ULONG masks[8] = { EVENT_TRACE_FLAG_CSWITCH, 4 }; /* the second word's way to say the same */
    struct properties session_properties = { 0 };
    EVENT_TRACE_PROPERTIES *p = &session_properties.p;
    ULONG most = 0;

    TraceQueryInformation(0, MAX_PMC_COUNTERS, &most, sizeof most, NULL);
    printf("%lu counters can be had at once\n", most);
    p->Wnode.BufferSize = sizeof session_properties;
    p->Wnode.Flags = WNODE_FLAG_TRACED_GUID;
    p->Wnode.ClientContext = 3; /* time stamps are the TSC */
    p->BufferSize = 64;
    p->MaximumBuffers = 32;
    p->LogFileMode = EVENT_TRACE_REAL_TIME_MODE | EVENT_TRACE_SYSTEM_LOGGER_MODE;
    p->FlushTimer = 1;
    p->LoggerNameOffset = offsetof(struct properties, name);
    ULONG error = StartTraceW(session, session_name, p);
    if (!error)
        error = TraceSetInformation(*session, TracePmcCounterListInfo, (PVOID)sources,
                                    SOURCES * sizeof *sources);
    if (!error)
        error = TraceSetInformation(*session, TracePmcEventListInfo, (PVOID)events, sizeof events);
    if (!error)
        error = TraceSetInformation(*session, TraceSystemTraceEnableFlagsInfo, masks, sizeof masks);
    return error;
}

static ULONG stop(struct properties *info)
{
    *info = (struct properties){ .p = { .Wnode.BufferSize = sizeof *info,
                                        .LoggerNameOffset = offsetof(struct properties, name) } };
    return ControlTraceW(0, session_name, &info->p, EVENT_TRACE_CONTROL_STOP);
}

static DWORD WINAPI read_events(PVOID trace) { return ProcessTrace(trace, 1, NULL, NULL); }

static DWORD WINAPI work(PVOID iterations)
{
    for (ULONG_PTR n = (ULONG_PTR)iterations; n; n--)
        __asm__ volatile("" : "+r"(n));
    return GetCurrentThreadId();
}

int main(void)
{
    EVENT_TRACE_LOGFILEW log = { .LoggerName = (LPWSTR)session_name,
                                 .EventRecordCallback = on_event,
                                 .ProcessTraceMode = PROCESS_TRACE_MODE_REAL_TIME |
                                                     PROCESS_TRACE_MODE_EVENT_RECORD |
                                                     PROCESS_TRACE_MODE_RAW_TIMESTAMP };
    ULONG sources[SOURCES] = { find_source(L"TotalIssues"), find_source(L"TotalCycles") };
    HANDLE threads[THREADS], reader;
    TRACEHANDLE session, trace;
    struct properties end;
    DWORD id, error = 0;

    if (!sources[0] || !sources[1]) {
        fprintf(stderr, "this processor has no source TotalIssues, or no TotalCycles\n");
        return 1;
    }
    error = start(&session, sources);
    trace = error ? INVALID_PROCESSTRACE_HANDLE : OpenTraceW(&log);
    if (trace == INVALID_PROCESSTRACE_HANDLE) {
        fprintf(stderr, "no session: error %lu\n", error ? error : GetLastError());
        stop(&end);
        return 1;
    }
    reader = CreateThread(NULL, 0, read_events, &trace, 0, NULL);
    for (ULONG_PTR i = 0; i < THREADS; i++)
        threads[i] = CreateThread(NULL, 0, work, (PVOID)(1000000 * (i + 1)), 0, NULL);
    WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);
    stop(&end);
    WaitForSingleObject(reader, INFINITE);
    GetExitCodeThread(reader, &error);
    CloseTrace(trace);
    printf("%lu events, %lu lost, ProcessTrace: %lu\n", totals.events, end.p.EventsLost, error);
    for (int i = 0; i < THREADS; i++) {
        GetExitCodeThread(threads[i], &id);
        const struct row *row = row_of(id);
        if (row)
            printf("thread %d: %llu instructions, %llu cycles, %lu switches\n", i, row->counts[0],
                   row->counts[1], row->switches);
    }
    return (int)error;
}
