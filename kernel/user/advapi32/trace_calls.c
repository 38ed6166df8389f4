/* SPDX-License-Identifier: MIT */
/* ControlTrace, under one name for each of its codes. */
#include "kernel/user/advapi32/trace.h"

#define CALL(name, code)                                                                           \
    ULONG WMIAPI name##W(TRACEHANDLE TraceHandle, LPCWSTR InstanceName,                            \
                         PEVENT_TRACE_PROPERTIES Properties)                                       \
    {                                                                                              \
        return ControlTraceW(TraceHandle, InstanceName, Properties, code);                         \
    }                                                                                              \
    ULONG WMIAPI name##A(TRACEHANDLE TraceHandle, LPCSTR InstanceName,                             \
                         PEVENT_TRACE_PROPERTIES Properties)                                       \
    {                                                                                              \
        return ControlTraceA(TraceHandle, InstanceName, Properties, code);                         \
    }

CALL(QueryTrace, EVENT_TRACE_CONTROL_QUERY)
CALL(StopTrace, EVENT_TRACE_CONTROL_STOP)
CALL(UpdateTrace, EVENT_TRACE_CONTROL_UPDATE)
CALL(FlushTrace, EVENT_TRACE_CONTROL_FLUSH)
