/* SPDX-License-Identifier: MIT */
/* The part of nt.h about trace sessions (ETW) that evntrace.h, wmistr.h and ntddk.h of Windows have
 * too. The rest is nt_etw.h. */
#pragma once
#include "kernel/nt/nt_profile.h"

typedef struct _GUID {
    ULONG Data1;
    USHORT Data2, Data3;
    UCHAR Data4[8];
} GUID, *LPGUID;
ABI_SIZE(GUID, 0x10);

typedef ULONG64 TRACEHANDLE, *PTRACEHANDLE;

#define STATUS_OBJECT_NAME_COLLISION ((NTSTATUS)0xC0000035)

#define KERNEL_LOGGER_NAME "NT Kernel Logger"
/* SystemTraceControlGuid */
#define SYSTEM_TRACE_CONTROL_GUID                                                                  \
    {                                                                                              \
        0x9e814aad, 0x3204, 0x11d2, { 0x9a, 0x82, 0x00, 0x60, 0x08, 0xa8, 0x69, 0x39 }             \
    }
#define TRACELOG_GUID_ENABLE 0x0080
#define WNODE_FLAG_TRACED_GUID 0x00020000

#define EVENT_TRACE_FILE_MODE_SEQUENTIAL 0x00000001
#define EVENT_TRACE_FILE_MODE_CIRCULAR 0x00000002
#define EVENT_TRACE_REAL_TIME_MODE 0x00000100
#define EVENT_TRACE_USE_PAGED_MEMORY 0x01000000
#define EVENT_TRACE_SYSTEM_LOGGER_MODE 0x02000000

#define EVENT_TRACE_FLAG_CSWITCH 0x00000010
#define EVENT_TRACE_FLAG_DPC 0x00000020
#define EVENT_TRACE_FLAG_INTERRUPT 0x00000040
#define EVENT_TRACE_FLAG_SYSTEMCALL 0x00000080
#define EVENT_TRACE_FLAG_DISK_IO 0x00000100
#define EVENT_TRACE_FLAG_DISK_FILE_IO 0x00000200
#define EVENT_TRACE_FLAG_DISPATCHER 0x00000800
#define EVENT_TRACE_FLAG_MEMORY_PAGE_FAULTS 0x00001000
#define EVENT_TRACE_FLAG_MEMORY_HARD_FAULTS 0x00002000
#define EVENT_TRACE_FLAG_VAMAP 0x00008000
#define EVENT_TRACE_FLAG_NETWORK_TCPIP 0x00010000
#define EVENT_TRACE_FLAG_REGISTRY 0x00020000
#define EVENT_TRACE_FLAG_PROFILE 0x01000000

typedef enum _KTHREAD_STATE {
    Initialized,
    Ready,
    Running,
    Standby,
    Terminated,
    Waiting
} KTHREAD_STATE;

typedef struct _WNODE_HEADER {
    ULONG BufferSize; /* of the whole structure */
    ULONG ProviderId;
    ULONG64 HistoricalContext; /* the TRACEHANDLE */
    LARGE_INTEGER TimeStamp;
    GUID Guid;
    ULONG ClientContext; /* NT: 3, the TSC, whatever was asked for */
    ULONG Flags;
} WNODE_HEADER, *PWNODE_HEADER;
ABI_SIZE(WNODE_HEADER, 0x30);
ABI_FIELD(WNODE_HEADER, Guid, 0x18);

typedef struct _ETW_BUFFER_CONTEXT {
    USHORT ProcessorIndex;
    USHORT LoggerId;
} ETW_BUFFER_CONTEXT;

/* A program's event: what follows the header are its data. */
typedef struct _EVENT_TRACE_HEADER {
    USHORT Size; /* with the data */
    UCHAR HeaderType, MarkerFlags;
    struct {
        UCHAR Type, Level;
        USHORT Version;
    } Class;
    ULONG ThreadId, ProcessId;
    LARGE_INTEGER TimeStamp;
    GUID Guid;
    ULONG ClientContext, Flags;
} EVENT_TRACE_HEADER, *PEVENT_TRACE_HEADER;
ABI_SIZE(EVENT_TRACE_HEADER, 0x30);
ABI_FIELD(EVENT_TRACE_HEADER, TimeStamp, 0x10);
ABI_FIELD(EVENT_TRACE_HEADER, Guid, 0x18);
ABI_FIELD(EVENT_TRACE_HEADER, Flags, 0x2c);

typedef struct _PROFILE_SOURCE_INFO {
    ULONG NextEntryOffset; /* 0: the last one */
    ULONG Source;
    ULONG MinInterval, MaxInterval;
    ULONG64 Reserved;
    WCHAR Description[1];
} PROFILE_SOURCE_INFO, *PPROFILE_SOURCE_INFO;
ABI_SIZE(PROFILE_SOURCE_INFO, 0x20);
ABI_FIELD(PROFILE_SOURCE_INFO, Description, 0x18);

#include "kernel/nt/nt_etw.h"
#include "kernel/nt/nt_trace_class.h"
