/* SPDX-License-Identifier: MIT */
/* StartTrace, ControlTrace, TraceSetInformation, TraceQueryInformation: thin over NtTraceControl
 * and class 0x1F. All return a Win32 code and set no last error. Sources: Microsoft's pages;
 * where they are silent, Geoff Chappell's studies of Windows 10. */
#include <string.h>
#include "kernel/user/advapi32/trace.h"

#define NAME_CHARS 64 /* a session's name with its NUL */

/* --- Sessions. --- */

/* False: too long. */
static bool widen_name(WCHAR *to, const char *from)
{
    for (unsigned i = 0; i < NAME_CHARS; i++)
        if (!(to[i] = (UCHAR)from[i]))
            return true;
    return false;
}

static size_t wide_length(const WCHAR *text)
{
    size_t n = 0;
    while (text[n])
        n++;
    return n;
}

static WMI_LOGGER_INFORMATION logger_information(const EVENT_TRACE_PROPERTIES *p)
{
    WMI_LOGGER_INFORMATION info = {
        .Wnode = p->Wnode,
        .BufferSize = p->BufferSize,
        .MinimumBuffers = p->MinimumBuffers,
        .MaximumBuffers = p->MaximumBuffers,
        .MaximumFileSize = p->MaximumFileSize,
        .LogFileMode = p->LogFileMode,
        .FlushTimer = p->FlushTimer,
        .EnableFlags = p->EnableFlags,
    };
    info.Wnode.BufferSize = sizeof info;
    return info;
}

static void report_properties(EVENT_TRACE_PROPERTIES *p, const WMI_LOGGER_INFORMATION *info)
{
    ULONG size = p->Wnode.BufferSize;
    p->Wnode = info->Wnode;
    p->Wnode.BufferSize = size;
    p->BufferSize = info->BufferSize;
    p->MinimumBuffers = info->MinimumBuffers;
    p->MaximumBuffers = info->MaximumBuffers;
    p->MaximumFileSize = info->MaximumFileSize;
    p->LogFileMode = info->LogFileMode;
    p->FlushTimer = info->FlushTimer;
    p->EnableFlags = info->EnableFlags;
    p->NumberOfBuffers = info->NumberOfBuffers;
    p->FreeBuffers = info->FreeBuffers;
    p->EventsLost = info->EventsLost;
    p->BuffersWritten = info->BuffersWritten;
    p->LogBuffersLost = info->LogBuffersLost;
    p->RealTimeBuffersLost = info->RealTimeBuffersLost;
    p->LoggerThreadId = info->LoggerThreadId;
}

ULONG trace_control(ULONG code, TRACEHANDLE session, const WCHAR *name,
                    WMI_LOGGER_INFORMATION *info)
{
    ULONG returned;
    info->Wnode.HistoricalContext = name ? 0 : session; /* a name takes precedence */
    if (name) {
        size_t bytes = wide_length(name) * sizeof *name;
        if (bytes >= NAME_CHARS * sizeof *name)
            return ERROR_INVALID_PARAMETER;
        info->LoggerName = (UNICODE_STRING){ (USHORT)bytes, (USHORT)bytes, (PWSTR)(ULONG_PTR)name };
    }
    return RtlNtStatusToDosError(
        ZwTraceControl(code, info, sizeof *info, info, sizeof *info, &returned));
}

/* Whether the name, in characters of this size, fits at LoggerNameOffset. 0: it does not. */
static bool has_room(const EVENT_TRACE_PROPERTIES *p, const WCHAR *name, size_t character)
{
    ULONG offset = p->LoggerNameOffset;
    return offset >= sizeof *p && offset <= p->Wnode.BufferSize &&
           (wide_length(name) + 1) * character <= p->Wnode.BufferSize - offset;
}

/* The log file's name, in characters of this size; empty: there is none. */
static ULONG get_file(const EVENT_TRACE_PROPERTIES *p, WCHAR *name, size_t character,
                      UNICODE_STRING *file)
{
    const uint8_t *from = (const uint8_t *)p + p->LogFileNameOffset;
    const ULONG offset = p->LogFileNameOffset, size = p->Wnode.BufferSize;
    *file = (UNICODE_STRING){ 0, 0, name };
    if (!offset)
        return ERROR_SUCCESS;
    if (offset < sizeof *p || offset > size - character)
        return ERROR_INVALID_PARAMETER;
    for (ULONG i = 0;; i++) {
        if (i == NAME_CHARS || offset + (i + 1) * character > size)
            return ERROR_BAD_PATHNAME;
        name[i] = 0;
        memcpy(&name[i], from + i * character, character);
        if (!name[i])
            return ERROR_SUCCESS;
        file->Length = file->MaximumLength = (USHORT)((i + 1) * sizeof *name);
    }
}

static void put_name(EVENT_TRACE_PROPERTIES *p, const WCHAR *name, size_t character)
{
    uint8_t *to = (uint8_t *)p + p->LoggerNameOffset;
    for (size_t i = 0; i <= wide_length(name); i++)
        memcpy(to + i * character, &name[i], character);
}

static ULONG start_session(PTRACEHANDLE handle, const WCHAR *name, PEVENT_TRACE_PROPERTIES p,
                           size_t character)
{
    static const WCHAR kernel_logger[] = KERNEL_LOGGER_NAMEW;
    if (!handle || !name || !p)
        return ERROR_INVALID_PARAMETER;
    if (p->Wnode.BufferSize < sizeof *p || !has_room(p, name, character))
        return ERROR_BAD_LENGTH;
    bool by_name = memcmp(name, kernel_logger, sizeof kernel_logger) == 0;
    bool by_guid = memcmp(&p->Wnode.Guid, &SystemTraceControlGuid, sizeof(GUID)) == 0;
    if (by_guid && !by_name)
        return ERROR_INVALID_PARAMETER;
    WCHAR file[NAME_CHARS];
    WMI_LOGGER_INFORMATION info = logger_information(p);
    ULONG error = get_file(p, file, character, &info.LogFileName);
    if (error)
        return error;
    info.Wnode.Flags |= WNODE_FLAG_TRACED_GUID;
    error = trace_control(EtwStartLoggerCode, 0, name, &info);
    if (error)
        return error;
    report_properties(p, &info);
    put_name(p, name, character);
    *handle = info.Wnode.HistoricalContext;
    return ERROR_SUCCESS;
}

/* Starts a real-time session, or one with a log file, which is made on the host where `make trace`
 * runs the machine; NT: not both. ERROR_INVALID_PARAMETER: no handle, name or properties; the
 * kernel logger's GUID without its name; no real-time mode; EnableFlags without system mode; a name
 * that is empty or over 63 characters; LogFileNameOffset; both file modes, a circular file without
 * MaximumFileSize, a MaximumFileSize of a few buffers. ERROR_BAD_LENGTH: Wnode.BufferSize is too
 * small for the structure and the name at LoggerNameOffset. ERROR_ALREADY_EXISTS: it runs.
 * ERROR_NO_SYSTEM_RESOURCES: eight others run. ERROR_NOT_ENOUGH_MEMORY. ERROR_PRIVILEGE_NOT_HELD:
 * EVENT_TRACE_FLAG_PROFILE without SeSystemProfilePrivilege. ERROR_ACCESS_DENIED.
 * ERROR_BAD_PATHNAME: the file's name has other characters than letters, digits, dot, dash and
 * underscore behind its folders, or over 63, or is another session's. ERROR_NOT_SUPPORTED: NT: a
 * log file where nobody receives it, real-time mode beside it, other modes than sequential and
 * circular. */
ULONG StartTraceW(PTRACEHANDLE TraceHandle, LPCWSTR InstanceName,
                  PEVENT_TRACE_PROPERTIES Properties)
{
    return start_session(TraceHandle, InstanceName, Properties, sizeof(WCHAR));
}

ULONG StartTraceA(PTRACEHANDLE TraceHandle, LPCSTR InstanceName, PEVENT_TRACE_PROPERTIES Properties)
{
    WCHAR name[NAME_CHARS];
    if (!InstanceName || !widen_name(name, InstanceName))
        return ERROR_INVALID_PARAMETER;
    return start_session(TraceHandle, name, Properties, sizeof(CHAR));
}

static ULONG control_trace(TRACEHANDLE session, const WCHAR *name, PEVENT_TRACE_PROPERTIES p,
                           ULONG code, size_t character)
{
    static const ULONG codes[] = { EtwQueryLoggerCode, EtwStopLoggerCode, EtwUpdateLoggerCode,
                                   EtwFlushLoggerCode };
    if (!p || code >= ARRAYSIZE(codes) || (!name && !session))
        return ERROR_INVALID_PARAMETER;
    if (p->Wnode.BufferSize < sizeof *p)
        return ERROR_BAD_LENGTH;
    if (name && p->LoggerNameOffset && !has_room(p, name, character))
        return ERROR_MORE_DATA;
    WMI_LOGGER_INFORMATION info = logger_information(p);
    ULONG error = trace_control(codes[code], session, name, &info);
    if (error)
        return error;
    report_properties(p, &info);
    if (name && p->LoggerNameOffset)
        put_name(p, name, character);
    return ERROR_SUCCESS;
}

/* Queries, stops or flushes a session, or changes its EnableFlags. A name takes precedence over a
 * handle. NT: the name is returned only if it was given. ERROR_INVALID_PARAMETER: no properties,
 * neither name nor handle, an unknown code, a name over 63 characters. ERROR_BAD_LENGTH:
 * Wnode.BufferSize. ERROR_MORE_DATA: no room for the name at LoggerNameOffset, unless that is 0.
 * ERROR_WMI_INSTANCE_NOT_FOUND: it does not run. ERROR_ACCESS_DENIED; update as StartTrace. */
ULONG ControlTraceW(TRACEHANDLE TraceHandle, LPCWSTR InstanceName,
                    PEVENT_TRACE_PROPERTIES Properties, ULONG ControlCode)
{
    return control_trace(TraceHandle, InstanceName, Properties, ControlCode, sizeof(WCHAR));
}

ULONG ControlTraceA(TRACEHANDLE TraceHandle, LPCSTR InstanceName,
                    PEVENT_TRACE_PROPERTIES Properties, ULONG ControlCode)
{
    WCHAR name[NAME_CHARS];
    if (InstanceName && !widen_name(name, InstanceName))
        return ERROR_INVALID_PARAMETER;
    return control_trace(TraceHandle, InstanceName ? name : NULL, Properties, ControlCode,
                         sizeof(CHAR));
}
