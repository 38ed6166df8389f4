/* SPDX-License-Identifier: MIT */
/* StartTrace and ControlTrace: what they do, and the codes that they return. */
#include "tests/ring3/etw_win32.h"

static ULONG start_by(const WCHAR *name, struct properties *q)
{
    TRACEHANDLE session = 0;
    return StartTraceW(&session, name, &q->p);
}

/* What stands at an offset of a description that could start a session, and what StartTrace and the
 * kernel's statuses (etw_control.start_refusals, codes.statuses) make of it. */
static const struct refusal {
    size_t offset;
    ULONG value, error;
} refusals[] = {
#define AT(field) offsetof(struct properties, p.field)
    { AT(Wnode.BufferSize), sizeof(EVENT_TRACE_PROPERTIES) - 1, ERROR_BAD_LENGTH },
    /* one byte less than the name */
    { AT(Wnode.BufferSize), sizeof(EVENT_TRACE_PROPERTIES) + sizeof NAME - 1, ERROR_BAD_LENGTH },
    { AT(LoggerNameOffset), sizeof(EVENT_TRACE_PROPERTIES) - 1, ERROR_BAD_LENGTH },
    { AT(LoggerNameOffset), 0xffffffff, ERROR_BAD_LENGTH },
    { AT(LogFileNameOffset), sizeof(EVENT_TRACE_PROPERTIES) - 1, ERROR_INVALID_PARAMETER },
    { AT(LogFileNameOffset), sizeof(struct properties), ERROR_INVALID_PARAMETER },
    { AT(LogFileNameOffset), offsetof(struct properties, name) + 64, ERROR_NOT_SUPPORTED },
    { AT(LogFileMode), EVENT_TRACE_SYSTEM_LOGGER_MODE, ERROR_INVALID_PARAMETER },
    { AT(EnableFlags), EVENT_TRACE_FLAG_PROFILE, ERROR_PRIVILEGE_NOT_HELD },
};

TEST_USER(etw_win32, start_refuses,
          "StartTrace: no handle, name, properties; sizes; files; a GUID without its name; what "
          "the kernel refuses")
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
    for (unsigned i = 0; i < ARRAY_SIZE(refusals); i++) {
        win32_describe(&q);
        q.name[32] = 'f';
        memcpy((uint8_t *)&q + refusals[i].offset, &refusals[i].value, sizeof(ULONG));
        if (!CHECK_EQ(start_by(NAME, &q), refusals[i].error))
            test_note("row %u", i);
    }
    win32_describe(&q);
    q.p.Wnode.Guid = SystemTraceControlGuid;
    CHECK_EQ(start_by(NAME, &q), ERROR_INVALID_PARAMETER);
    win32_describe(&q);
    q.p.LogFileNameOffset = offsetof(struct properties, name); /* an empty name is no file */
    q.p.Wnode.Guid.Data1 = q.p.MaximumBuffers = 50;
    CHECK_EQ(StartTraceW(&session, NAME, &q.p), ERROR_SUCCESS);
    CHECK(q.p.Wnode.Guid.Data1 == 50 && q.p.NumberOfBuffers >= 50);
    win32_describe(&q);
    CHECK_EQ(start_by(NAME, &q), ERROR_ALREADY_EXISTS);
    CHECK_EQ(win32_stop(session), ERROR_SUCCESS);
}

TEST_USER(
    etw_win32, controls,
    "ControlTrace: query, flush, update, stop, by handle and by name; of both the handle decides")
{
    struct properties q;
    TRACEHANDLE session = 0;
    win32_describe(&q);
    q.p.BufferSize = 5; /* whole pages */
    q.p.MinimumBuffers = 8;
    q.p.FlushTimer = 7;
    q.p.Wnode.ClientContext = 1;
    q.p.MaximumFileSize = 3;
    REQUIRE(CHECK_EQ(StartTraceA(&session, "controls", &q.p), ERROR_SUCCESS));
    CHECK_EQ(strcmp((const char *)q.name, "controls"), 0);
    win32_describe(&q);
    q.p.BufferSize = 0;
    CHECK_EQ(ControlTraceW(session | 0xabcd0000, NULL, &q.p, EVENT_TRACE_CONTROL_QUERY),
             ERROR_SUCCESS);
    CHECK_EQ(q.p.BufferSize, 8);
    CHECK_EQ(q.p.Wnode.ClientContext, 3);
    CHECK(q.p.NumberOfBuffers >= 8 && q.p.FreeBuffers == q.p.NumberOfBuffers);
    CHECK_EQ(q.p.FlushTimer, 7);
    CHECK_EQ(q.p.MaximumFileSize, 3);
    CHECK_EQ(q.p.LogFileMode, SYSTEM_MODE);
    CHECK_EQ(q.p.Wnode.HistoricalContext, session);
    CHECK_EQ(q.p.Wnode.BufferSize, sizeof q);
    CHECK_EQ(q.p.EventsLost + q.p.BuffersWritten, 0);
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
    q.p.EnableFlags = 0;
    CHECK_EQ(ControlTraceW(0, L"controls", &q.p, EVENT_TRACE_CONTROL_UPDATE), ERROR_SUCCESS);
    CHECK_EQ(q.p.EnableFlags, 0);
    win32_describe(&q);
    CHECK_EQ(ControlTraceW(session, L"another", &q.p, EVENT_TRACE_CONTROL_STOP),
             ERROR_WMI_INSTANCE_NOT_FOUND);
    q.p.LoggerNameOffset = 0; /* the name is not wanted back */
    CHECK_EQ(ControlTraceW(0, L"controls", &q.p, EVENT_TRACE_CONTROL_STOP), ERROR_SUCCESS);
    CHECK(q.p.EventsLost >= 1); /* nobody read the switches */
    CHECK_EQ(win32_stop(session), ERROR_WMI_INSTANCE_NOT_FOUND);
}
