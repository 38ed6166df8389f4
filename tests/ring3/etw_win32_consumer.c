/* SPDX-License-Identifier: MIT */
/* OpenTrace, ProcessTrace, CloseTrace: what a consumer gets, and every code that they return. */
#include "tests/ring3/etw_win32.h"

#define MODE (PROCESS_TRACE_MODE_REAL_TIME | PROCESS_TRACE_MODE_EVENT_RECORD)
#define WORKERS 4
#define YIELDS 100
#define SLEEPS 3
#define ROUNDS 80
#define ROUND 100 /* calls, then a sleep */
#define DELAY (UINT64_C(1) << DelayExecution)

/* What the callbacks see. */
static struct {
    ULONG events, swaps, calls, wrong, buffers, buffer_answer;
    ULONG sleeper, slept; /* a thread that gives way and sleeps; how often it sleeps */
    uint64_t seen;        /* atomic: some event came */
    LONGLONG last;
    ULONG running[64];
    TRACEHANDLE close;
    ULONG close_error;
} got;

static void look_at_swap(const EVENT_RECORD *event, unsigned cpu)
{
    const WMI_CONTEXTSWAP *swap = event->UserData;
    got.wrong += event->UserDataLength != sizeof *swap;
    got.wrong += got.swaps && got.running[cpu] && swap->OldThreadId != got.running[cpu];
    got.wrong += swap->OldIdealProcessor != cpu;
    got.wrong += (swap->NewWaitTime | swap->OldRemainingQuantum) != 0;
    got.wrong += event->ExtendedDataCount != 0;
    got.running[cpu] = swap->NewThreadId;
    got.swaps++;
    if (swap->OldThreadId != got.sleeper)
        return;
    got.wrong += swap->OldWaitMode != 1;
    got.wrong += swap->OldWaitReason >= (CHAR)WrQuantumEnd && swap->OldState != 1;
    got.wrong += swap->OldWaitReason == DelayExecution && swap->OldState != 5;
    got.slept += swap->OldWaitReason == DelayExecution;
}

static VOID on_event(PEVENT_RECORD event)
{
    unsigned cpu = event->BufferContext.ProcessorIndex & 63;
    bool thread = memcmp(&event->EventHeader.ProviderId, &ThreadGuid, sizeof(GUID)) == 0;
    bool perf = memcmp(&event->EventHeader.ProviderId, &PerfInfoGuid, sizeof(GUID)) == 0;
    UCHAR opcode = event->EventHeader.EventDescriptor.Opcode;
    got.events++;
    got.wrong += event->EventHeader.TimeStamp.QuadPart < got.last || event->UserContext != &got;
    got.last = event->EventHeader.TimeStamp.QuadPart;
    if (thread && opcode == (PERFINFO_LOG_TYPE_CONTEXTSWAP & 0xff))
        look_at_swap(event, cpu);
    else if (perf && opcode == (PERFINFO_LOG_TYPE_SYSCALL_ENTER & 0xff))
        got.calls += event->UserDataLength == sizeof(PERFINFO_SYSCALL_ENTER_DATA) &&
                     event->ExtendedDataCount == 0;
    else
        got.wrong += !perf || opcode != (PERFINFO_LOG_TYPE_SYSCALL_EXIT & 0xff);
    __atomic_store_n(&got.seen, 1, __ATOMIC_RELEASE);
    if (got.close)
        got.close_error = CloseTrace(got.close);
    got.close = 0;
}

static ULONG on_buffer(PEVENT_TRACE_LOGFILEW log)
{
    got.wrong += log->Context != &got || !log->Filled || log->BuffersRead != ++got.buffers;
    return got.buffer_answer;
}

static void describe_log(EVENT_TRACE_LOGFILEW *log)
{
    memset(log, 0, sizeof *log);
    log->LoggerName = (LPWSTR)NAME;
    log->ProcessTraceMode = MODE | PROCESS_TRACE_MODE_RAW_TIMESTAMP;
    log->EventRecordCallback = on_event;
    log->BufferCallback = on_buffer;
    log->Context = &got;
    got.buffer_answer = TRUE;
}

static TRACEHANDLE open_trace(void)
{
    EVENT_TRACE_LOGFILEW log;
    describe_log(&log);
    TRACEHANDLE trace = OpenTraceW(&log);
    CHECK(trace != INVALID_PROCESSTRACE_HANDLE);
    return trace;
}

static void begin_trace(TRACEHANDLE session, ULONG first, ULONG third)
{
    PERFINFO_GROUPMASK masks = { { 0, first, third } };
    CHECK_EQ(TraceSetInformation(session, TraceSystemTraceEnableFlagsInfo, &masks, sizeof masks),
             ERROR_SUCCESS);
}

static DWORD process(PVOID trace) { return ProcessTrace(trace, 1, NULL, NULL); }

static DWORD yield_often(PVOID unused)
{
    for (unsigned i = 0; i < YIELDS; i++)
        ZwYieldExecution();
    return 0;
}

static void work_traced(void)
{
    HANDLE workers[WORKERS];
    got.sleeper = GetCurrentThreadId();
    yield_often(NULL);
    for (unsigned i = 0; i < SLEEPS; i++)
        Sleep(1);
    for (unsigned i = 0; i < WORKERS; i++)
        workers[i] = ring3_start(yield_often, NULL);
    for (unsigned i = 0; i < WORKERS; i++)
        ring3_end(workers[i]);
}

TEST_USER(
    etw_win32, consumes,
    "ProcessTrace hands on every event, in the order of time stamps, until the session stops; "
    "who gave way is ready, who sleeps waits")
{
    TRACEHANDLE session = 0, trace;
    struct properties q;
    REQUIRE(win32_start(&session));
    trace = open_trace();
    begin_trace(session, PERF_MASK_BITS(PERF_CONTEXT_SWITCH), PERF_MASK_BITS(PERF_SYSCALL));
    HANDLE reader = ring3_start(process, &trace);
    work_traced();
    win32_describe(&q);
    CHECK_EQ(ControlTraceW(session, NULL, &q.p, EVENT_TRACE_CONTROL_STOP), ERROR_SUCCESS);
    CHECK_EQ(ring3_end(reader), ERROR_SUCCESS);
    CHECK_EQ(q.p.EventsLost, 0);
    CHECK_EQ(got.wrong, 0);
    CHECK(got.buffers >= 1);
    CHECK_EQ(got.slept, SLEEPS);
    CHECK_RANGE(got.calls, (WORKERS + 1) * YIELDS,
                WORKERS * YIELDS * 2); /* the yields, and what this thread and the reader call */
    CHECK(got.swaps >= WORKERS);       /* to each worker; away from it may be to the next */
    CHECK_EQ(CloseTrace(trace), ERROR_SUCCESS);
    CHECK_EQ(CloseTrace(trace), ERROR_INVALID_HANDLE);
}

static DWORD call_often(PVOID cpu)
{
    SetThreadAffinityMask(GetCurrentThread(), 1ull << (uint64_t)cpu);
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned n = 0; n < ROUND; n++)
            NtGetCurrentProcessorNumber();
        Sleep(1);
    }
    return 0;
}

TEST_USER(etw_win32, in_order,
          "events of all processors come in the order of their time stamps, also while buffers are"
          " being delivered [slow]")
{
    TRACEHANDLE session = 0, trace;
    HANDLE workers[WORKERS];
    struct properties q;
    win32_describe(&q);
    q.p.BufferSize = 4;
    q.p.MinimumBuffers = 4 * ring3_cpus();
    REQUIRE(StartTraceW(&session, NAME, &q.p) == ERROR_SUCCESS);
    trace = open_trace();
    begin_trace(session, 0, PERF_MASK_BITS(PERF_SYSCALL));
    HANDLE reader = ring3_start(process, &trace);
    for (uint64_t i = 0; i < WORKERS; i++)
        workers[i] = ring3_start(call_often, (PVOID)(i % ring3_cpus()));
    for (unsigned i = 0; i < WORKERS; i++)
        ring3_end(workers[i]);
    CHECK_EQ(win32_stop(session), ERROR_SUCCESS);
    CHECK_EQ(ring3_end(reader), ERROR_SUCCESS);
    test_note("%u buffers, %u calls", got.buffers, got.calls);
    CHECK_EQ(got.wrong, 0);
    CHECK(got.calls > ROUNDS * ROUND / 2); /* some may be lost, more of them on one processor */
    CHECK_EQ(CloseTrace(trace), ERROR_SUCCESS);
}

TEST_USER(etw_win32, times,
          "time stamps are the TSC if asked for, else 100 ns since boot; OpenTraceA opens by a "
          "narrow name")
{
    EVENT_TRACE_LOGFILEA log;
    TRACEHANDLE session = 0, trace;
    LARGE_INTEGER before, after;
    REQUIRE(win32_start(&session));
    describe_log((EVENT_TRACE_LOGFILEW *)(void *)&log);
    log.LoggerName = (char[]){ "win32 test" };
    log.ProcessTraceMode = MODE;
    trace = OpenTraceA(&log);
    REQUIRE(CHECK(trace != INVALID_PROCESSTRACE_HANDLE));
    CHECK(log.LogfileHeader.PerfFreq.QuadPart > 1000000);
    CHECK_EQ(log.BufferSize, 16384);
    CHECK_RANGE(log.LogfileHeader.NumberOfProcessors, 1, 64); /* what the kernel takes */
    QueryPerformanceCounter(&before);
    begin_trace(session, 0, PERF_MASK_BITS(PERF_SYSCALL));
    Sleep(1);
    CHECK_EQ(win32_stop(session), ERROR_SUCCESS);
    QueryPerformanceCounter(&after);
    CHECK_EQ(ProcessTrace(&trace, 1, NULL, NULL), ERROR_SUCCESS);
    CHECK(got.last >= before.QuadPart && got.last <= after.QuadPart);
    CHECK_EQ(got.wrong, 0);
    CHECK_EQ(CloseTrace(trace), ERROR_SUCCESS);
    got.last = 0;
    REQUIRE(win32_start(&session));
    trace = open_trace();
    uint64_t tsc = __rdtsc();
    begin_trace(session, 0, PERF_MASK_BITS(PERF_SYSCALL));
    CHECK_EQ(win32_stop(session), ERROR_SUCCESS);
    CHECK_EQ(ProcessTrace(&trace, 1, NULL, NULL), ERROR_SUCCESS);
    CHECK((uint64_t)got.last > tsc && (uint64_t)got.last < __rdtsc());
    CHECK_EQ(CloseTrace(trace), ERROR_SUCCESS);
}

TEST_USER(etw_win32, closes,
          "CloseTrace ends ProcessTrace, from a callback and from elsewhere; twice at a time it is "
          "busy")
{
    TRACEHANDLE session = 0, trace;
    REQUIRE(win32_start(&session));
    trace = open_trace();
    begin_trace(session, 0, PERF_MASK_BITS(PERF_SYSCALL));
    got.close = trace;
    got.close_error = 99;
    CHECK_EQ(ProcessTrace(&trace, 1, NULL, NULL), ERROR_SUCCESS);
    CHECK_EQ(got.close_error, ERROR_CTX_CLOSE_PENDING);
    CHECK_EQ(got.events, 1);
    CHECK_EQ(ProcessTrace(&trace, 1, NULL, NULL), ERROR_INVALID_HANDLE);
    trace = open_trace();
    got.seen = 0;
    HANDLE reader = ring3_start(process, &trace);
    ring3_wait(&got.seen, 1);
    CHECK_EQ(ProcessTrace(&trace, 1, NULL, NULL), ERROR_BUSY);
    CHECK_EQ(CloseTrace(trace), ERROR_CTX_CLOSE_PENDING);
    CHECK_EQ(ring3_end(reader), ERROR_SUCCESS);
    CHECK_EQ(CloseTrace(trace), ERROR_INVALID_HANDLE);
    CHECK_EQ(win32_stop(session), ERROR_SUCCESS);
}

TEST_USER(etw_win32, cancels,
          "a buffer callback's FALSE ends ProcessTrace, which flushes at once and can go on")
{
    TRACEHANDLE session = 0, trace;
    HANDLE profile = NULL;
    REQUIRE(win32_start(&session));
    trace = open_trace();
    begin_trace(session, 0, PERF_MASK_BITS(PERF_SYSCALL));
    for (unsigned i = 0; i < 4 * YIELDS; i++) /* 16 KB: a buffer that a flush closes has more */
        ZwYieldExecution();
    got.buffer_answer = FALSE;
    REQUIRE(CHECK_EQ(EnableThreadProfiling(GetCurrentThread(), 1, 0, &profile), ERROR_SUCCESS));
    Sleep(1);
    CHECK(ring3_reasons(profile) & DELAY);
    CHECK_EQ(ProcessTrace(&trace, 1, NULL, NULL), ERROR_CANCELLED);
    CHECK_EQ(got.buffers, 1);
    CHECK(!(ring3_reasons(profile) & DELAY)); /* nor has it waited for the session's FlushTimer */
    CHECK_EQ(win32_stop(session), ERROR_SUCCESS);
    CHECK_EQ(ProcessTrace(&trace, 1, NULL, NULL), ERROR_CANCELLED);
    CHECK(!(ring3_reasons(profile) & DELAY));
    ring3_disable(profile);
    CHECK_EQ(CloseTrace(trace), ERROR_SUCCESS);
}

static void refused_log(EVENT_TRACE_LOGFILEW *log, ULONG error)
{
    SetLastError(0);
    CHECK_EQ(OpenTraceW(log), INVALID_PROCESSTRACE_HANDLE);
    CHECK_EQ(GetLastError(), error);
}

static WCHAR name[65];

/* What stands at an offset of a description of a session that could be opened. */
static const struct log_refusal {
    size_t offset, size;
    uint64_t value;
    ULONG error;
} log_refusals[] = {
#define FIELD(field) offsetof(EVENT_TRACE_LOGFILEW, field), sizeof((EVENT_TRACE_LOGFILEW *)0)->field
    { FIELD(LoggerName), 0, ERROR_INVALID_PARAMETER },
    { FIELD(LoggerName), (uint64_t)name, ERROR_INVALID_PARAMETER },
    { FIELD(EventRecordCallback), 0, ERROR_INVALID_PARAMETER },
    { FIELD(LogFileName), (uint64_t)name, ERROR_NOT_SUPPORTED },
    { FIELD(ProcessTraceMode), PROCESS_TRACE_MODE_REAL_TIME, ERROR_NOT_SUPPORTED },
    { FIELD(ProcessTraceMode), PROCESS_TRACE_MODE_EVENT_RECORD, ERROR_NOT_SUPPORTED },
};

TEST_USER(etw_win32, open_refuses,
          "OpenTrace: no structure, name or callback; files and other modes; a second consumer; a "
          "ninth")
{
    EVENT_TRACE_LOGFILEW log;
    TRACEHANDLE session = 0, traces[8];
    refused_log(NULL, ERROR_INVALID_PARAMETER);
    for (unsigned i = 0; i < 64; i++)
        name[i] = 'n';
    for (unsigned i = 0; i < ARRAY_SIZE(log_refusals); i++) {
        describe_log(&log);
        memcpy((uint8_t *)&log + log_refusals[i].offset, &log_refusals[i].value,
               log_refusals[i].size);
        refused_log(&log, log_refusals[i].error);
    }
    REQUIRE(win32_start(&session));
    traces[0] = open_trace();
    describe_log(&log);
    refused_log(&log, ERROR_BUSY);
    CHECK_EQ(CloseTrace(traces[0]), ERROR_SUCCESS);
    CHECK_EQ(win32_stop(session), ERROR_SUCCESS);
    for (unsigned i = 0; i < 8; i++)
        traces[i] = open_trace(); /* of a session that does not run yet */
    refused_log(&log, ERROR_NO_SYSTEM_RESOURCES);
    for (unsigned i = 0; i < 8; i++)
        CHECK_EQ(CloseTrace(traces[i]), ERROR_SUCCESS);
}
