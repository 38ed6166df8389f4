/* SPDX-License-Identifier: MIT */
/* Trace sessions as a Win32 program controls and reads them (sechost). Layouts and names:
 * evntrace.h of the Windows SDK. Each function's errors are listed in trace_control.c,
 * trace_consumer.c or trace_information.c. */
#pragma once
#include "windows.h"
#ifdef __cplusplus
#define _Static_assert static_assert
extern "C" {
#endif
#include "kernel/nt/nt_trace.h"

#define WMIAPI
#define ERROR_CANCELLED 1223
#define ERROR_INCORRECT_SIZE 1462
#define ERROR_CTX_CLOSE_PENDING 7007

#define KERNEL_LOGGER_NAMEA "NT Kernel Logger"
#define KERNEL_LOGGER_NAMEW L"NT Kernel Logger"

#define EVENT_TRACE_CONTROL_QUERY 0
#define EVENT_TRACE_CONTROL_STOP 1
#define EVENT_TRACE_CONTROL_UPDATE 2
#define EVENT_TRACE_CONTROL_FLUSH 3

#define INVALID_PROCESSTRACE_HANDLE ((TRACEHANDLE)-1)

static const GUID __attribute__((unused)) SystemTraceControlGuid = SYSTEM_TRACE_CONTROL_GUID;
static const GUID __attribute__((unused))
ThreadGuid = { 0x3d6fa8d1, 0xfe05, 0x11d0, { 0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c } };
static const GUID __attribute__((unused))
PerfInfoGuid = { 0xce1dbfb4, 0x137e, 0x4da6, { 0x87, 0xb0, 0x3f, 0x59, 0xaa, 0x10, 0x2c, 0xbc } };

typedef const WCHAR *LPCWSTR;
typedef WCHAR *LPWSTR;

typedef struct _FILETIME {
    DWORD dwLowDateTime, dwHighDateTime;
} FILETIME, *LPFILETIME;

typedef struct _SYSTEMTIME {
    WORD wYear, wMonth, wDayOfWeek, wDay, wHour, wMinute, wSecond, wMilliseconds;
} SYSTEMTIME;

typedef struct _TIME_ZONE_INFORMATION {
    LONG Bias;
    WCHAR StandardName[32];
    SYSTEMTIME StandardDate;
    LONG StandardBias;
    WCHAR DaylightName[32];
    SYSTEMTIME DaylightDate;
    LONG DaylightBias;
} TIME_ZONE_INFORMATION;
ABI_SIZE(TIME_ZONE_INFORMATION, 0xAC);

typedef struct _EVENT_TRACE_PROPERTIES {
    WNODE_HEADER Wnode;
    ULONG BufferSize; /* KB */
    ULONG MinimumBuffers, MaximumBuffers;
    ULONG MaximumFileSize;
    ULONG LogFileMode;
    ULONG FlushTimer; /* seconds */
    ULONG EnableFlags;
    LONG AgeLimit;
    ULONG NumberOfBuffers, FreeBuffers;
    ULONG EventsLost;
    ULONG BuffersWritten;
    ULONG LogBuffersLost, RealTimeBuffersLost;
    HANDLE LoggerThreadId;
    ULONG LogFileNameOffset, LoggerNameOffset;
} EVENT_TRACE_PROPERTIES, *PEVENT_TRACE_PROPERTIES;
ABI_SIZE(EVENT_TRACE_PROPERTIES, 0x78);
ABI_FIELD(EVENT_TRACE_PROPERTIES, EventsLost, 0x58);
ABI_FIELD(EVENT_TRACE_PROPERTIES, LoggerNameOffset, 0x74);

/* --- Reading. --- */

typedef struct _EVENT_TRACE_HEADER {
    USHORT Size;
    union {
        USHORT FieldTypeFlags;
        struct {
            UCHAR HeaderType, MarkerFlags;
        };
    };
    union {
        ULONG Version;
        struct {
            UCHAR Type, Level;
            USHORT Version;
        } Class;
    };
    ULONG ThreadId, ProcessId;
    LARGE_INTEGER TimeStamp;
    GUID Guid;
    ULONG KernelTime, UserTime;
} EVENT_TRACE_HEADER, *PEVENT_TRACE_HEADER;
ABI_SIZE(EVENT_TRACE_HEADER, 0x30);

typedef struct _EVENT_TRACE {
    EVENT_TRACE_HEADER Header;
    ULONG InstanceId, ParentInstanceId;
    GUID ParentGuid;
    PVOID MofData;
    ULONG MofLength;
    ULONG ClientContext;
} EVENT_TRACE, *PEVENT_TRACE;
ABI_SIZE(EVENT_TRACE, 0x58);

typedef struct _TRACE_LOGFILE_HEADER {
    ULONG BufferSize;
    ULONG Version;
    ULONG ProviderVersion;
    ULONG NumberOfProcessors;
    LARGE_INTEGER EndTime;
    ULONG TimerResolution;
    ULONG MaximumFileSize;
    ULONG LogFileMode;
    ULONG BuffersWritten;
    ULONG StartBuffers, PointerSize, EventsLost, CpuSpeedInMHz;
    LPWSTR LoggerName, LogFileName;
    TIME_ZONE_INFORMATION TimeZone;
    LARGE_INTEGER BootTime;
    LARGE_INTEGER PerfFreq;
    LARGE_INTEGER StartTime;
    ULONG ReservedFlags;
    ULONG BuffersLost;
} TRACE_LOGFILE_HEADER, *PTRACE_LOGFILE_HEADER;
ABI_SIZE(TRACE_LOGFILE_HEADER, 0x118);
ABI_FIELD(TRACE_LOGFILE_HEADER, PerfFreq, 0x100);

struct _EVENT_RECORD;
struct _EVENT_TRACE_LOGFILEW;
struct _EVENT_TRACE_LOGFILEA;
typedef ULONG (*PEVENT_TRACE_BUFFER_CALLBACKW)(struct _EVENT_TRACE_LOGFILEW *Logfile);
typedef ULONG (*PEVENT_TRACE_BUFFER_CALLBACKA)(struct _EVENT_TRACE_LOGFILEA *Logfile);
typedef VOID (*PEVENT_CALLBACK)(PEVENT_TRACE Event);
typedef VOID (*PEVENT_RECORD_CALLBACK)(struct _EVENT_RECORD *EventRecord);

#define EVENT_TRACE_LOGFILE_MEMBERS(STRING, CALLBACK_TYPE)                                         \
    STRING LogFileName;                                                                            \
    STRING LoggerName;                                                                             \
    LONGLONG CurrentTime;                                                                          \
    ULONG BuffersRead;                                                                             \
    union {                                                                                        \
        ULONG LogFileMode;                                                                         \
        ULONG ProcessTraceMode;                                                                    \
    };                                                                                             \
    EVENT_TRACE CurrentEvent;                                                                      \
    TRACE_LOGFILE_HEADER LogfileHeader;                                                            \
    CALLBACK_TYPE BufferCallback;                                                                  \
    ULONG BufferSize;                                                                              \
    ULONG Filled;                                                                                  \
    ULONG EventsLost;                                                                              \
    union {                                                                                        \
        PEVENT_CALLBACK EventCallback;                                                             \
        PEVENT_RECORD_CALLBACK EventRecordCallback;                                                \
    };                                                                                             \
    ULONG IsKernelTrace;                                                                           \
    PVOID Context;

typedef struct _EVENT_TRACE_LOGFILEW {
    EVENT_TRACE_LOGFILE_MEMBERS(LPWSTR, PEVENT_TRACE_BUFFER_CALLBACKW)
} EVENT_TRACE_LOGFILEW, *PEVENT_TRACE_LOGFILEW;
ABI_SIZE(EVENT_TRACE_LOGFILEW, 0x1C0);
ABI_FIELD(EVENT_TRACE_LOGFILEW, LogfileHeader, 0x78);
ABI_FIELD(EVENT_TRACE_LOGFILEW, EventRecordCallback, 0x1A8);

typedef struct _EVENT_TRACE_LOGFILEA {
    EVENT_TRACE_LOGFILE_MEMBERS(LPSTR, PEVENT_TRACE_BUFFER_CALLBACKA)
} EVENT_TRACE_LOGFILEA, *PEVENT_TRACE_LOGFILEA;
ABI_SIZE(EVENT_TRACE_LOGFILEA, 0x1C0);

/* --- TraceSetInformation and TraceQueryInformation. --- */

/* clang-format off */
typedef enum _TRACE_QUERY_INFO_CLASS {
    TraceGuidQueryList, TraceGuidQueryInfo, TraceGuidQueryProcess, TraceStackTracingInfo,
    TraceSystemTraceEnableFlagsInfo, TraceSampledProfileIntervalInfo, TraceProfileSourceConfigInfo,
    TraceProfileSourceListInfo, TracePmcEventListInfo, TracePmcCounterListInfo, TraceSetDisallowList,
    TraceVersionInfo, TraceGroupQueryList, TraceGroupQueryInfo, TraceDisallowListQuery, TraceInfoReserved15,
    TracePeriodicCaptureStateListInfo, TracePeriodicCaptureStateInfo, TraceProviderBinaryTracking,
    TraceMaxLoggersQuery, TraceLbrConfigurationInfo, TraceLbrEventListInfo, TraceMaxPmcCounterQuery,
    TraceStreamCount, TraceStackCachingInfo, TracePmcCounterOwners, TraceUnifiedStackCachingInfo,
    TracePmcSessionInformation, TraceContextRegisterInfo, MaxTraceSetInfoClass
} TRACE_QUERY_INFO_CLASS, TRACE_INFO_CLASS;
/* clang-format on */
_Static_assert(TracePmcCounterListInfo == 9 && MaxTraceSetInfoClass == 29,
               "TRACE_QUERY_INFO_CLASS");

typedef struct _CLASSIC_EVENT_ID {
    GUID EventGuid;
    UCHAR Type;
    UCHAR Reserved[7];
} CLASSIC_EVENT_ID, *PCLASSIC_EVENT_ID;
ABI_SIZE(CLASSIC_EVENT_ID, 0x18);

typedef struct _TRACE_PROFILE_INTERVAL {
    ULONG Source;
    ULONG Interval; /* events; 100 ns for source 0 */
} TRACE_PROFILE_INTERVAL, *PTRACE_PROFILE_INTERVAL;
ABI_SIZE(TRACE_PROFILE_INTERVAL, 8);

ULONG WMIAPI StartTraceW(PTRACEHANDLE TraceHandle, LPCWSTR InstanceName,
                         PEVENT_TRACE_PROPERTIES Properties);
ULONG WMIAPI StartTraceA(PTRACEHANDLE TraceHandle, LPCSTR InstanceName,
                         PEVENT_TRACE_PROPERTIES Properties);
ULONG WMIAPI ControlTraceW(TRACEHANDLE TraceHandle, LPCWSTR InstanceName,
                           PEVENT_TRACE_PROPERTIES Properties, ULONG ControlCode);
ULONG WMIAPI ControlTraceA(TRACEHANDLE TraceHandle, LPCSTR InstanceName,
                           PEVENT_TRACE_PROPERTIES Properties, ULONG ControlCode);
ULONG WMIAPI TraceSetInformation(TRACEHANDLE SessionHandle, TRACE_INFO_CLASS InformationClass,
                                 PVOID TraceInformation, ULONG InformationLength);
ULONG WMIAPI TraceQueryInformation(TRACEHANDLE SessionHandle,
                                   TRACE_QUERY_INFO_CLASS InformationClass, PVOID TraceInformation,
                                   ULONG InformationLength, PULONG ReturnLength);
TRACEHANDLE WMIAPI OpenTraceW(PEVENT_TRACE_LOGFILEW Logfile);
TRACEHANDLE WMIAPI OpenTraceA(PEVENT_TRACE_LOGFILEA Logfile);
ULONG WMIAPI ProcessTrace(PTRACEHANDLE HandleArray, ULONG HandleCount, LPFILETIME StartTime,
                          LPFILETIME EndTime);
ULONG WMIAPI CloseTrace(TRACEHANDLE TraceHandle);

#define StartTrace StartTraceA
#define ControlTrace ControlTraceA
#define OpenTrace OpenTraceA
#define EVENT_TRACE_LOGFILE EVENT_TRACE_LOGFILEA

#ifdef __cplusplus
}
#undef _Static_assert
#endif
