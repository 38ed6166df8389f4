/* SPDX-License-Identifier: MIT */
/* TraceEvent: a program's own event in the buffers of a session. Source: Microsoft's pages for
 * TraceEvent, EVENT_TRACE_HEADER and MOF_FIELD. */
#include "kernel/user/advapi32/trace.h"

NTSTATUS NTAPI ZwTraceEvent(HANDLE TraceHandle, ULONG Flags, ULONG FieldSize, PVOID Fields);

static ULONG send_event(TRACEHANDLE session, EVENT_TRACE_HEADER *event)
{
    return RtlNtStatusToDosError(
        ZwTraceEvent((HANDLE)(ULONG_PTR)session, ETW_NT_FLAGS_TRACE_HEADER, event->Size, event));
}

/* The bytes that the fields stand for; each is appended to the event, unless that is NULL. */
static SIZE_T gather_fields(const EVENT_TRACE_HEADER *from, EVENT_TRACE_HEADER *event)
{
    const MOF_FIELD *field = (const MOF_FIELD *)(const void *)(from + 1);
    const unsigned count = (unsigned)((from->Size - sizeof *from) / sizeof *field);
    SIZE_T size = sizeof *from;
    for (unsigned i = 0; i < count && i < MAX_MOF_FIELDS; i++, field++) {
        if (event)
            memcpy((uint8_t *)event + size, (const void *)(ULONG_PTR)field->DataPtr, field->Length);
        size += field->Length;
    }
    return size;
}

/* ERROR_INVALID_PARAMETER: no session, no event, or a Size below the header's.
 * ERROR_INVALID_FLAG_NUMBER: no WNODE_FLAG_TRACED_GUID. ERROR_INVALID_HANDLE: the session does not
 * run, or is the NT Kernel Logger. ERROR_MORE_DATA: more than a buffer of the session holds, or
 * 64 KB. ERROR_NOT_ENOUGH_MEMORY: no buffer is free, and the event is lost. ERROR_ACCESS_DENIED.
 * With WNODE_FLAG_USE_MOF_PTR up to 16 MOF_FIELDs follow the header, with WNODE_FLAG_USE_GUID_PTR
 * GuidPtr is the class. */
ULONG TraceEvent(TRACEHANDLE TraceHandle, PEVENT_TRACE_HEADER EventTrace)
{
    if (!TraceHandle || !EventTrace || EventTrace->Size < sizeof *EventTrace)
        return ERROR_INVALID_PARAMETER;
    const bool fields = EventTrace->Flags & WNODE_FLAG_USE_MOF_PTR;
    if (!(EventTrace->Flags & WNODE_FLAG_TRACED_GUID))
        return ERROR_INVALID_FLAG_NUMBER;
    if (!(EventTrace->Flags & (WNODE_FLAG_USE_MOF_PTR | WNODE_FLAG_USE_GUID_PTR)))
        return send_event(TraceHandle, EventTrace);
    const SIZE_T size = fields ? gather_fields(EventTrace, NULL) : EventTrace->Size;
    if (size > UINT16_MAX)
        return ERROR_MORE_DATA;
    EVENT_TRACE_HEADER *event = HeapAlloc(GetProcessHeap(), 0, size);
    if (!event)
        return ERROR_NOT_ENOUGH_MEMORY;
    memcpy(event, EventTrace, fields ? sizeof *event : size);
    if (fields)
        gather_fields(EventTrace, event);
    if (EventTrace->Flags & WNODE_FLAG_USE_GUID_PTR)
        event->Guid = *(const GUID *)(ULONG_PTR)EventTrace->GuidPtr;
    event->Size = (USHORT)size;
    const ULONG error = send_event(TraceHandle, event);
    HeapFree(GetProcessHeap(), 0, event);
    return error;
}
