/* SPDX-License-Identifier: MIT */
/* A session in real time, and a thread that takes all its events until it ends. */
#pragma once
#include <windows.h>
#include <evntrace.h>
#include <evntcons.h>
#include "check.h"

static const GUID call_events = {
    0xce1dbfb4, 0x137e, 0x4da6, { 0x87, 0xb0, 0x3f, 0x59, 0xaa, 0x10, 0x2c, 0xbc }
};

struct session {
    EVENT_TRACE_PROPERTIES p;
    WCHAR more[64], name[64];
    TRACEHANDLE events;
};

#define SESSION                                                                                    \
    {                                                                                              \
        .p = {                                                                                     \
            .Wnode = { .BufferSize = sizeof(struct session),                                       \
                       .ClientContext = 3,                                                         \
                       .Flags = WNODE_FLAG_TRACED_GUID },                                          \
            .LogFileMode = EVENT_TRACE_REAL_TIME_MODE | EVENT_TRACE_SYSTEM_LOGGER_MODE,            \
            .LoggerNameOffset = offsetof(struct session, name)                                     \
        }                                                                                          \
    }

static DWORD WINAPI read_events(PVOID trace) { return ProcessTrace(trace, 1, NULL, NULL); }

static HANDLE start_reader(struct session *s, PEVENT_RECORD_CALLBACK callback)
{
    EVENT_TRACE_LOGFILEW log = { .LoggerName = s->name,
                                 .EventRecordCallback = callback,
                                 .ProcessTraceMode = PROCESS_TRACE_MODE_REAL_TIME |
                                                     PROCESS_TRACE_MODE_EVENT_RECORD |
                                                     PROCESS_TRACE_MODE_RAW_TIMESTAMP };
    s->events = OpenTraceW(&log);
    IS(s->events != INVALID_PROCESSTRACE_HANDLE, 1);
    return CreateThread(NULL, 0, read_events, &s->events, 0, NULL);
}

static void end_session(TRACEHANDLE session, struct session *s, HANDLE reader)
{
    IS(ControlTraceW(session, NULL, &s->p, EVENT_TRACE_CONTROL_STOP), 0);
    IS(s->p.EventsLost, 0);
    WaitForSingleObject(reader, INFINITE);
    CloseTrace(s->events);
}
