/* SPDX-License-Identifier: MIT */
#pragma once
#include "kernel/nt/nt_trace.h"

/* nt_trace.h has the codes; STATUS_NOT_IMPLEMENTED: another one.
 * InBuffer, OutBuffer and ReturnLength are in the caller's memory; ReturnLength may be NULL.
 *
 * Every code:
 * STATUS_ACCESS_VIOLATION         InBuffer, OutBuffer or ReturnLength is not the caller's
 * STATUS_ACCESS_DENIED            a restricted caller
 * STATUS_INFO_LENGTH_MISMATCH     InLength, OutLength or Wnode.BufferSize is too small
 * Start:
 * STATUS_INVALID_PARAMETER        no WNODE_FLAG_TRACED_GUID, neither EVENT_TRACE_REAL_TIME_MODE
 *                                 nor a log file, both file modes, a circular file without
 *                                 MaximumFileSize, a MaximumFileSize of a few buffers, a name
 *                                 that is empty, odd, or over 63 characters, EnableFlags without
 *                                 EVENT_TRACE_SYSTEM_LOGGER_MODE
 * STATUS_NOT_SUPPORTED            other modes; NT: a log file beside real-time mode, or where no
 *                                 host receives it
 * STATUS_OBJECT_PATH_SYNTAX_BAD   the log file's name: see log_file.c
 * STATUS_PRIVILEGE_NOT_HELD       EVENT_TRACE_FLAG_PROFILE without SeSystemProfilePrivilege
 * STATUS_OBJECT_NAME_COLLISION    the session runs
 * STATUS_INSUFFICIENT_RESOURCES   eight other sessions run
 * STATUS_NO_MEMORY                no memory, or the buffers are over 16 MB
 * Stop, query, update, flush, connect; by HistoricalContext, or if that is 0 by GUID or name:
 * STATUS_WMI_INSTANCE_NOT_FOUND   no such session
 * Update:                         for EnableFlags as start
 * Connect:
 * STATUS_DEVICE_BUSY              the session has a consumer
 * STATUS_INSUFFICIENT_RESOURCES   no handle
 * Disconnect, read:               the errors of a handle
 * Read:
 * STATUS_BUFFER_TOO_SMALL         OutLength is less than a buffer of the session
 * STATUS_WMI_INSTANCE_NOT_FOUND   the session has stopped and all was read
 * EtwMaxPmcCounterQueryCode: how many counters a record can have.
 * EtwPmcOwnersQueryCode, EtwPmcSessionQueryCode; *ReturnLength is what is needed:
 * STATUS_BUFFER_TOO_SMALL         OutLength is less
 * STATUS_INVALID_PARAMETER        owners: no such processor
 *
 * PASSIVE_LEVEL. Sources: as nt_trace.h; EVENT_TRACE_PROPERTIES; the status of a wrong length is
 * our choice. */
NTSTATUS NtTraceControl(ULONG FunctionCode, PVOID InBuffer, ULONG InBufferLen, PVOID OutBuffer,
                        ULONG OutBufferLen, PULONG ReturnLength);

/* Fields: an EVENT_TRACE_HEADER of Size bytes with its data. The event gets the thread,
 * the time stamp and its place among the processor's records. NT: Flags is
 * ETW_NT_FLAGS_TRACE_HEADER alone; pointers to data (WNODE_FLAG_USE_MOF_PTR) are ring 3's part.
 *
 * STATUS_ACCESS_DENIED            a restricted caller
 * STATUS_INVALID_PARAMETER        Flags, FieldSize, Size
 * STATUS_ACCESS_VIOLATION         Fields
 * STATUS_INVALID_HANDLE           no such session, or the NT Kernel Logger
 * STATUS_BUFFER_OVERFLOW          the event is larger than the session's buffers
 * STATUS_NO_MEMORY                all buffers are full, or no memory: the event is lost
 *
 * PASSIVE_LEVEL. Source: Microsoft's page for TraceEvent. */
NTSTATUS NtTraceEvent(HANDLE TraceHandle, ULONG Flags, ULONG FieldSize, PVOID Fields);
