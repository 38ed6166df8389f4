/* SPDX-License-Identifier: MIT */
/* StartTrace and ControlTrace: what they do, and every code that they return. */
#include "tests/ring3/etw_win32.h"

static ULONG start_by(const WCHAR *name, struct properties *q)
{
    TRACEHANDLE session = 0;
    return StartTraceW(&session, name, &q->p);
}

TEST_USER(etw_win32, start_refuses_arguments,
          "StartTrace: no handle, name, properties; sizes; a GUID without its name")
{
    struct properties q;
    TRACEHANDLE session;
    win32_describe(&q);
    CHECK_EQ(StartTraceW(NULL, NAME, &q.p), ERROR_INVALID_PARAMETER);
    CHECK_EQ(StartTraceW(&session, NULL, &q.p), ERROR_INVALID_PARAMETER);
    CHECK_EQ(StartTraceW(&session, NAME, NULL), ERROR_INVALID_PARAMETER);
    CHECK_EQ(StartTraceA(NULL, "a", &q.p), ERROR_INVALID_PARAMETER);
    CHECK_EQ(StartTraceA(&session, NULL, &q.p), ERROR_INVALID_PARAMETER);
    CHECK_EQ(StartTraceA(&session, "a", NULL), ERROR_INVALID_PARAMETER);
    q.p.Wnode.BufferSize = sizeof q.p - 1;
    CHECK_EQ(start_by(NAME, &q), ERROR_BAD_LENGTH);
    q.p.Wnode.BufferSize = sizeof q.p + sizeof NAME - 1; /* one byte less than the name */
    CHECK_EQ(start_by(NAME, &q), ERROR_BAD_LENGTH);
    win32_describe(&q);
    q.p.LoggerNameOffset = sizeof q.p - 1;
    CHECK_EQ(start_by(NAME, &q), ERROR_BAD_LENGTH);
    q.p.LoggerNameOffset = 0xffffffff;
    CHECK_EQ(start_by(NAME, &q), ERROR_BAD_LENGTH);
    win32_describe(&q);
    q.p.Wnode.Guid = SystemTraceControlGuid;
    CHECK_EQ(start_by(NAME, &q), ERROR_INVALID_PARAMETER);
}

TEST_USER(etw_win32, start_refuses_names,
          "StartTrace: a name that is empty or has 64 characters; 63 are allowed")
{
    struct properties q;
    TRACEHANDLE session;
    static WCHAR wide[65];
    static char narrow[65];
    win32_describe(&q);
    CHECK_EQ(start_by(L"", &q), ERROR_INVALID_PARAMETER);
    CHECK_EQ(StartTraceA(&session, "", &q.p), ERROR_INVALID_PARAMETER);
    for (unsigned i = 0; i < 64; i++)
        wide[i] = (WCHAR)(narrow[i] = 'n');
    q.p.Wnode.BufferSize = sizeof q + 64; /* it is not too short */
    CHECK_EQ(start_by(wide, &q), ERROR_INVALID_PARAMETER);
    CHECK_EQ(StartTraceA(&session, narrow, &q.p), ERROR_INVALID_PARAMETER);
    wide[63] = narrow[63] = 0;
    win32_describe(&q);
    CHECK_EQ(StartTraceW(&session, wide, &q.p), ERROR_SUCCESS);
    CHECK_EQ(memcmp(q.name, wide, 64 * sizeof *wide), 0);
    win32_describe(&q);
    CHECK_EQ(ControlTraceA(0, narrow, &q.p, EVENT_TRACE_CONTROL_STOP), ERROR_SUCCESS);
    CHECK_EQ(strcmp((const char *)q.name, narrow), 0);
}

TEST_USER(etw_win32, start_refuses_modes,
          "StartTrace: not real-time, a log file, other modes, flags without system mode "
          "or whose events nothing here writes")
{
    struct properties q;
    win32_describe(&q);
    q.p.LogFileMode = EVENT_TRACE_SYSTEM_LOGGER_MODE;
    CHECK_EQ(start_by(NAME, &q), ERROR_INVALID_PARAMETER);
    q.p.LogFileMode = SYSTEM_MODE | 1; /* EVENT_TRACE_FILE_MODE_SEQUENTIAL */
    CHECK_EQ(start_by(NAME, &q), ERROR_NOT_SUPPORTED);
    static const ULONG absent[] = {
        EVENT_TRACE_FLAG_DISK_IO,       EVENT_TRACE_FLAG_DISK_FILE_IO,
        EVENT_TRACE_FLAG_VAMAP,         EVENT_TRACE_FLAG_MEMORY_PAGE_FAULTS,
        EVENT_TRACE_FLAG_NETWORK_TCPIP, EVENT_TRACE_FLAG_MEMORY_HARD_FAULTS,
        EVENT_TRACE_FLAG_REGISTRY
    };
    win32_describe(&q);
    for (unsigned i = 0; i < ARRAY_SIZE(absent); i++) {
        q.p.EnableFlags = EVENT_TRACE_FLAG_CSWITCH | absent[i];
        CHECK_EQ(start_by(NAME, &q), ERROR_NOT_SUPPORTED);
    }
    q.p.LogFileMode = EVENT_TRACE_REAL_TIME_MODE;
    q.p.EnableFlags = EVENT_TRACE_FLAG_CSWITCH;
    CHECK_EQ(start_by(NAME, &q), ERROR_INVALID_PARAMETER);
    win32_describe(&q);
    q.p.LogFileNameOffset = offsetof(struct properties, name) + 32;
    q.name[16] = 'f';
    CHECK_EQ(start_by(NAME, &q), ERROR_NOT_SUPPORTED);
    q.p.LogFileNameOffset = sizeof q.p - 1;
    CHECK_EQ(start_by(NAME, &q), ERROR_INVALID_PARAMETER);
    q.p.LogFileNameOffset = sizeof q;
    CHECK_EQ(start_by(NAME, &q), ERROR_INVALID_PARAMETER);
    win32_describe(&q);
    q.p.EnableFlags = EVENT_TRACE_FLAG_PROFILE;
    CHECK_EQ(start_by(NAME, &q), ERROR_PRIVILEGE_NOT_HELD);
    win32_describe(&q);
    q.p.BufferSize = 1024;
    q.p.MaximumBuffers = 64 * 64;
    CHECK_EQ(start_by(NAME, &q), ERROR_NOT_ENOUGH_MEMORY);
    q.p.LogFileNameOffset = offsetof(struct properties, name); /* an empty name is no file */
    q.p.BufferSize = 16;
    q.p.MaximumBuffers = 0;
    CHECK_EQ(start_by(NAME, &q), ERROR_SUCCESS);
    CHECK_EQ(win32_stop(q.p.Wnode.HistoricalContext), ERROR_SUCCESS);
}

TEST_USER(etw_win32, eight_sessions,
          "StartTrace: a name once, eight sessions at a time, and the kernel's own beside them")
{
    TRACEHANDLE sessions[8], one;
    struct properties q;
    WCHAR name[] = L"session 0";
    for (unsigned i = 0; i < 8; i++, name[8]++) {
        win32_describe(&q);
        CHECK_EQ(StartTraceW(&sessions[i], name, &q.p), ERROR_SUCCESS);
        CHECK_EQ(q.p.Wnode.HistoricalContext, sessions[i]);
        win32_describe(&q);
        CHECK_EQ(start_by(name, &q), ERROR_ALREADY_EXISTS);
    }
    CHECK_EQ(start_by(name, &q), ERROR_NO_SYSTEM_RESOURCES);
    win32_describe(&q);
    q.p.Wnode.Guid = SystemTraceControlGuid;
    CHECK_EQ(StartTraceW(&one, KERNEL_LOGGER_NAMEW, &q.p), ERROR_SUCCESS);
    CHECK_EQ(one & 0xffff, KERNEL_LOGGER_ID);
    win32_describe(&q);
    CHECK_EQ(StartTraceA(&one, KERNEL_LOGGER_NAMEA, &q.p), ERROR_ALREADY_EXISTS);
    CHECK_EQ(win32_stop(one), ERROR_SUCCESS);
    for (unsigned i = 0; i < 8; i++)
        CHECK_EQ(win32_stop(sessions[i]), ERROR_SUCCESS);
}

TEST_USER(
    etw_win32, controls,
    "ControlTrace: query, flush, update, stop, by handle and by name; of both the handle decides")
{
    struct properties q;
    TRACEHANDLE session = 0;
    win32_describe(&q);
    q.p.MinimumBuffers = 8;
    q.p.FlushTimer = 7;
    q.p.MaximumFileSize = 3;
    REQUIRE(CHECK_EQ(StartTraceA(&session, "controls", &q.p), ERROR_SUCCESS));
    CHECK_EQ(strcmp((const char *)q.name, "controls"), 0);
    win32_describe(&q);
    q.p.BufferSize = 0;
    CHECK_EQ(ControlTraceW(session, NULL, &q.p, EVENT_TRACE_CONTROL_QUERY), ERROR_SUCCESS);
    CHECK_EQ(q.p.BufferSize, 16);
    CHECK(q.p.NumberOfBuffers >= 8 && q.p.FreeBuffers == q.p.NumberOfBuffers);
    CHECK_EQ(q.p.FlushTimer, 7);
    CHECK_EQ(q.p.MaximumFileSize, 3);
    CHECK_EQ(q.p.LogFileMode, SYSTEM_MODE);
    CHECK_EQ(q.p.Wnode.HistoricalContext, session);
    CHECK_EQ(q.p.Wnode.BufferSize, sizeof q);
    CHECK_EQ(q.p.EventsLost, 0);
    win32_describe(&q);
    q.p.EnableFlags = EVENT_TRACE_FLAG_CSWITCH;
    CHECK_EQ(ControlTraceW(0, L"controls", &q.p, EVENT_TRACE_CONTROL_UPDATE), ERROR_SUCCESS);
    CHECK_EQ(memcmp(q.name, L"controls", sizeof L"controls"), 0);
    /* A time that is past, because a host runs others, lets nobody else run. */
    unsigned tries = 0;
    do {
        Sleep(2);
        win32_describe(&q);
        CHECK_EQ(ControlTraceA(999, "controls", &q.p, EVENT_TRACE_CONTROL_FLUSH), ERROR_SUCCESS);
    } while (q.p.FreeBuffers == q.p.NumberOfBuffers && ++tries < 50);
    CHECK_EQ(q.p.EnableFlags, EVENT_TRACE_FLAG_CSWITCH);
    CHECK(q.p.FreeBuffers < q.p.NumberOfBuffers);
    win32_describe(&q);
    CHECK_EQ(ControlTraceW(session, L"another", &q.p, EVENT_TRACE_CONTROL_STOP),
             ERROR_WMI_INSTANCE_NOT_FOUND);
    q.p.LoggerNameOffset = 0; /* the name is not wanted back */
    CHECK_EQ(ControlTraceW(0, L"controls", &q.p, EVENT_TRACE_CONTROL_STOP), ERROR_SUCCESS);
    CHECK(q.p.EventsLost >= 1); /* nobody read the switches */
    CHECK_EQ(win32_stop(session), ERROR_WMI_INSTANCE_NOT_FOUND);
}

TEST_USER(etw_win32, control_refuses,
          "ControlTrace: no properties, neither name nor handle, codes, sizes, names, privilege")
{
    struct properties q;
    TRACEHANDLE session = 0;
    static WCHAR name[65];
    REQUIRE(win32_start(&session));
    win32_describe(&q);
    CHECK_EQ(ControlTraceW(session, NULL, NULL, EVENT_TRACE_CONTROL_QUERY),
             ERROR_INVALID_PARAMETER);
    CHECK_EQ(ControlTraceW(0, NULL, &q.p, EVENT_TRACE_CONTROL_QUERY), ERROR_INVALID_PARAMETER);
    CHECK_EQ(ControlTraceA(0, NULL, &q.p, EVENT_TRACE_CONTROL_QUERY), ERROR_INVALID_PARAMETER);
    CHECK_EQ(ControlTraceW(session, NULL, &q.p, 4), ERROR_INVALID_PARAMETER);
    CHECK_EQ(ControlTraceW(session, NULL, &q.p, 0xffffffff), ERROR_INVALID_PARAMETER);
    for (unsigned i = 0; i < 64; i++)
        name[i] = 'n';
    q.p.LoggerNameOffset = 0;
    CHECK_EQ(ControlTraceW(0, name, &q.p, EVENT_TRACE_CONTROL_QUERY), ERROR_INVALID_PARAMETER);
    q.p.LoggerNameOffset = sizeof q.p;
    q.p.Wnode.BufferSize = sizeof q.p - 1;
    CHECK_EQ(ControlTraceW(session, NULL, &q.p, EVENT_TRACE_CONTROL_QUERY), ERROR_BAD_LENGTH);
    q.p.Wnode.BufferSize = sizeof q.p + sizeof NAME - 1;
    CHECK_EQ(ControlTraceW(0, NAME, &q.p, EVENT_TRACE_CONTROL_QUERY), ERROR_MORE_DATA);
    q.p.LoggerNameOffset = 0;
    CHECK_EQ(ControlTraceW(0, NAME, &q.p, EVENT_TRACE_CONTROL_QUERY), ERROR_SUCCESS);
    win32_describe(&q);
    q.p.EnableFlags = EVENT_TRACE_FLAG_PROFILE;
    CHECK_EQ(ControlTraceW(session, NULL, &q.p, EVENT_TRACE_CONTROL_UPDATE),
             ERROR_PRIVILEGE_NOT_HELD);
    CHECK_EQ(win32_stop(session), ERROR_SUCCESS);
    CHECK_EQ(win32_stop(session), ERROR_WMI_INSTANCE_NOT_FOUND);
}

TEST_USER(etw_win32, by_name,
          "programs find the functions in advapi32 and sechost, NtTraceControl in ntdll")
{
    CHECK_EQ((uint64_t)GetProcAddress(LoadLibraryA("advapi32.dll"), "StartTraceW"),
             (uint64_t)StartTraceW);
    CHECK_EQ((uint64_t)GetProcAddress(LoadLibraryA("sechost"), "ProcessTrace"),
             (uint64_t)ProcessTrace);
    CHECK_EQ((uint64_t)GetProcAddress(LoadLibraryA("ntdll"), "NtTraceControl"),
             (uint64_t)GetProcAddress(GetModuleHandleA("ntdll"), "ZwTraceControl"));
    CHECK(GetProcAddress(LoadLibraryA("ntdll"), "NtTraceControl") != NULL);
}

void user_trace_restricted(uint64_t unused)
{
    EVENT_TRACE_LOGFILEW log;
    struct properties q;
    ULONG most, source = ProfileTotalIssues;
    EVENT_TRACE_HEADER event = { .Size = sizeof event, .Flags = WNODE_FLAG_TRACED_GUID };
    (void)unused;
    win32_describe(&q);
    CHECK_EQ(start_by(NAME, &q), ERROR_ACCESS_DENIED);
    CHECK_EQ(ControlTraceW(KERNEL_LOGGER_ID, NULL, &q.p, EVENT_TRACE_CONTROL_QUERY),
             ERROR_ACCESS_DENIED);
    CHECK_EQ(TraceQueryInformation(0, TraceMaxPmcCounterQuery, &most, sizeof most, NULL),
             ERROR_ACCESS_DENIED);
    CHECK_EQ(TraceSetInformation(0, TraceProfileSourceConfigInfo, &source, sizeof source),
             ERROR_PRIVILEGE_NOT_HELD);
    CHECK_EQ(TraceEvent(KERNEL_LOGGER_ID, &event), ERROR_ACCESS_DENIED);
    memset(&log, 0, sizeof log);
    log.LoggerName = (LPWSTR)NAME;
    log.EventRecordCallback = (PEVENT_RECORD_CALLBACK)(ULONG_PTR)user_trace_restricted;
    log.ProcessTraceMode = PROCESS_TRACE_MODE_REAL_TIME | PROCESS_TRACE_MODE_EVENT_RECORD;
    CHECK_EQ(OpenTraceW(&log), INVALID_PROCESSTRACE_HANDLE);
    CHECK_EQ(GetLastError(), ERROR_ACCESS_DENIED);
}
