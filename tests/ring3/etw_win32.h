/* SPDX-License-Identifier: MIT */
/* Trace sessions by the Win32 functions, as tests use them. */
#pragma once
#include "kernel/nt/nt_trace.h"
#include "kernel/base/string.h"
#include "tests/ring3/helpers.h"

#define SYSTEM_MODE (EVENT_TRACE_REAL_TIME_MODE | EVENT_TRACE_SYSTEM_LOGGER_MODE)
#define NAME L"win32 test"

struct properties {
    EVENT_TRACE_PROPERTIES p;
    WCHAR name[64];
};

/* What could start, or control, a session. */
static inline void win32_describe(struct properties *q)
{
    memset(q, 0, sizeof *q);
    q->p.Wnode.BufferSize = sizeof *q;
    q->p.Wnode.Flags = WNODE_FLAG_TRACED_GUID;
    q->p.LogFileMode = SYSTEM_MODE;
    q->p.BufferSize = 16;
    q->p.LoggerNameOffset = offsetof(struct properties, name);
}

static inline bool win32_start(TRACEHANDLE *session)
{
    struct properties q;
    win32_describe(&q);
    q.p.MaximumBuffers = 32;
    return CHECK_EQ(StartTraceW(session, NAME, &q.p), ERROR_SUCCESS);
}

static inline ULONG win32_stop(TRACEHANDLE session)
{
    struct properties q;
    win32_describe(&q);
    return ControlTraceW(session, NULL, &q.p, EVENT_TRACE_CONTROL_STOP);
}

static inline void win32_privilege(bool on)
{
    BOOLEAN was;
    CHECK_STATUS(RtlAdjustPrivilege(SE_SYSTEM_PROFILE_PRIVILEGE, on, FALSE, &was), STATUS_SUCCESS);
}
