/* SPDX-License-Identifier: MIT */
/* What NtTraceControl and class 0x1F of NtSetSystemInformation take, and what a session's buffers
 * hold. No header of Windows has it. Shared by the kernel and ring 3. Include nt_trace.h, or
 * Windows' own headers, first.
 *
 * How ring 3 runs a session:
 *   1. ZwTraceControl(EtwStartLoggerCode, info, sizeof *info, info, sizeof *info, &n) with a
 * WMI_LOGGER_INFORMATION: Wnode.BufferSize its size, LoggerName, LogFileMode
 * EVENT_TRACE_REAL_TIME_MODE | EVENT_TRACE_SYSTEM_LOGGER_MODE, BufferSize in KB and MaximumBuffers
 * of all processors together (0: 64 KB, 4 each), EnableFlags. Wnode.HistoricalContext then is the
 * TRACEHANDLE; for the NT Kernel Logger (its GUID or name) it is 0xFFFF.
 *   2. ZwTraceControl(EtwRealtimeConnectCode, &trace_handle, 8, &consumer, sizeof consumer, &n): a
 * TRACE_CONSUMER.
 *   3. Class 0x1F sets the counters, the hooks that carry them, and the group mask, which
 * starts the events.
 *   4. ZwTraceControl(EtwRealtimeReadCode, &consumer.Handle, 8, bytes, size, &n), size at least the
 * session's buffer: n bytes of full buffers, packed, those of one processor in order: a
 * WMI_BUFFER_HEADER, then records from its end to SavedOffset, where the next header is. A record
 * is a PERFINFO_TRACE_HEADER, its counters, its payload, or a program's EVENT_TRACE_HEADER and its
 * data (trace_record_size, trace_record_time); the next one begins at its Size rounded up to 8.
 * n = 0: nothing yet: sleep, or use EtwFlushLoggerCode, which closes buffers not yet full.
 * Time stamps are the TSC; consumer.Frequency in Hz.
 *   5. EtwStopLoggerCode; read on until STATUS_WMI_INSTANCE_NOT_FOUND. EventsLost is
 * exact.
 *
 * Sources: Geoff Chappell's studies of the early Windows 10 kits' ntetw.h and ntwmi.h; the
 * community's phnt headers; evntrace.h. */
#pragma once

#define KERNEL_LOGGER_ID 0xFFFF /* low half of its TRACEHANDLE */

/* Group masks: the top three bits choose one of PERF_NUM_MASKS words. EnableFlags are word 0. */
#define PERF_NUM_MASKS 8
#define PERF_MASK_INDEX(mask) ((ULONG)(mask) >> 29)
#define PERF_MASK_BITS(mask) ((ULONG)(mask)&0x1fffffff)
#define PERF_THREAD 0x00000002
#define PERF_PROFILE 0x20000002
#define PERF_CONTEXT_SWITCH 0x20000004
#define PERF_DPC 0x20000080
#define PERF_DISPATCHER 0x20000200
#define PERF_PMC_PROFILE 0x20000400
#define PERF_PROFILING 0x20000402
#define PERF_INTERRUPT 0x20004000
#define PERF_SYSCALL 0x40000040
#define PERF_IPI 0x40400000

typedef struct _PERFINFO_GROUPMASK {
    ULONG Masks[PERF_NUM_MASKS];
} PERFINFO_GROUPMASK, *PPERFINFO_GROUPMASK;

/* --- NtTraceControl. --- */

typedef enum _ETWTRACECONTROLCODE {
    EtwStartLoggerCode = 1, /* 1 to 5: a WMI_LOGGER_INFORMATION in and out */
    EtwStopLoggerCode = 2,
    EtwQueryLoggerCode = 3,
    EtwUpdateLoggerCode = 4, /* EnableFlags */
    EtwFlushLoggerCode = 5,
    EtwRealtimeConnectCode = 11,    /* NT: in TRACEHANDLE, out TRACE_CONSUMER */
    EtwRealtimeDisconnectCode = 14, /* in HANDLE */
    EtwMaxPmcCounterQueryCode = 43, /* out ULONG */
    EtwPmcOwnersQueryCode = 45, /* in ULONG ProcessorNumber, out ETW_PMC_COUNTER_OWNERSHIP_STATUS */
    EtwPmcSessionQueryCode = 46, /* out ETW_PMC_SESSION_INFO list */
    EtwRealtimeReadCode = 0x100, /* ours: Windows maps the buffers into the consumer */
} ETWTRACECONTROLCODE;

typedef struct _WMI_LOGGER_INFORMATION {
    WNODE_HEADER Wnode;
    ULONG BufferSize; /* KB */
    ULONG MinimumBuffers, MaximumBuffers;
    ULONG MaximumFileSize;
    ULONG LogFileMode;
    ULONG FlushTimer; /* seconds */
    ULONG EnableFlags;
    LONG AgeLimit;
    ULONG64 V2Options;
    HANDLE LogFileHandle;
    ULONG NumberOfBuffers, FreeBuffers;
    ULONG EventsLost;
    ULONG BuffersWritten;
    ULONG LogBuffersLost, RealTimeBuffersLost;
    HANDLE LoggerThreadId;
    UNICODE_STRING LogFileName;
    UNICODE_STRING LoggerName;
    ULONG RealTimeConsumerCount;
    ULONG SpareUlong;
    PVOID LoggerExtension;
} WMI_LOGGER_INFORMATION, *PWMI_LOGGER_INFORMATION;
ABI_SIZE(WMI_LOGGER_INFORMATION, 0xB0);
ABI_FIELD(WMI_LOGGER_INFORMATION, LogFileMode, 0x40);
ABI_FIELD(WMI_LOGGER_INFORMATION, EventsLost, 0x68);
ABI_FIELD(WMI_LOGGER_INFORMATION, LoggerName, 0x90);

/* Ours: the reader of one session. Closing the handle disconnects. */
typedef struct _TRACE_CONSUMER {
    HANDLE Handle;
    ULONG64 Frequency; /* of time stamps, Hz */
} TRACE_CONSUMER, *PTRACE_CONSUMER;

typedef struct _ETW_PMC_SESSION_INFO {
    ULONG NextEntryOffset; /* 0: the last one */
    USHORT LoggerId;
    USHORT Reserved;
    ULONG ProfileSourceCount;
    ULONG HookIdCount;
    /* ULONG sources[], USHORT hooks[] */
} ETW_PMC_SESSION_INFO, *PETW_PMC_SESSION_INFO;
ABI_SIZE(ETW_PMC_SESSION_INFO, 0x10);

/* --- Buffers and records. --- */

#define ETW_BUFFER_FLAG_EVENTS_LOST 0x0002 /* some were lost before this buffer */
#define ETW_BUFFER_FLAG_PROC_INDEX 0x0020

typedef struct _WMI_BUFFER_HEADER {
    ULONG BufferSize;
    ULONG SavedOffset; /* end of the last record */
    ULONG CurrentOffset;
    LONG ReferenceCount;
    LARGE_INTEGER TimeStamp; /* when the buffer began */
    LONGLONG SequenceNumber; /* of the processor's buffers, from 0 on */
    PVOID NextBuffer;        /* NT: events of the processor lost until the buffer was closed */
    ETW_BUFFER_CONTEXT ClientContext;
    ULONG State;
    ULONG Offset; /* as SavedOffset */
    USHORT BufferFlag;
    USHORT BufferType;
    ULONG64 StartTime,
        StartPerfClock; /* 100 ns since boot, and the TSC, when the session started */
} WMI_BUFFER_HEADER, *PWMI_BUFFER_HEADER;
ABI_SIZE(WMI_BUFFER_HEADER, 0x48);
ABI_FIELD(WMI_BUFFER_HEADER, ClientContext, 0x28);
ABI_FIELD(WMI_BUFFER_HEADER, BufferFlag, 0x34);

#define ETW_NT_FLAGS_TRACE_HEADER 1          /* NtTraceEvent: an EVENT_TRACE_HEADER and its data */
#define TRACE_HEADER_TYPE_FULL_HEADER64 0x14 /* bits 23:16 of the first word of such a record */
#define TRACE_HEADER_FLAGS 0xC0              /* and bits 31:24 */
#define PERFINFO_MARKER 0xC0110000 /* x64; the low byte is the version of the hook's record */
#define TRACE_HEADER_PMC_COUNTERS_MASK 0x0700
#define TRACE_HEADER_PMC_COUNTERS_SHIFT 8
#define TRACE_HEADER_PEBS_INDEX_FLAG 0x8000

typedef struct _PERFINFO_TRACE_HEADER {
    ULONG Marker;
    USHORT Size; /* of the whole event */
    USHORT HookId;
    ULONG64 TimeStamp;
    /* ULONG64 counters[], payload */
} PERFINFO_TRACE_HEADER, *PPERFINFO_TRACE_HEADER;
ABI_SIZE(PERFINFO_TRACE_HEADER, 0x10);

/* Of either kind of record: it is a program's event; its size; its time. */
static inline _Bool trace_record_is_event(const void *record)
{
    return ((const EVENT_TRACE_HEADER *)record)->HeaderType == TRACE_HEADER_TYPE_FULL_HEADER64;
}

static inline USHORT trace_record_size(const void *record)
{
    return trace_record_is_event(record) ? ((const EVENT_TRACE_HEADER *)record)->Size
                                         : ((const PERFINFO_TRACE_HEADER *)record)->Size;
}

static inline ULONG64 trace_record_time(const void *record)
{
    return trace_record_is_event(record)
               ? (ULONG64)((const EVENT_TRACE_HEADER *)record)->TimeStamp.QuadPart
               : ((const PERFINFO_TRACE_HEADER *)record)->TimeStamp;
}

#define WMI_LOG_TYPE_THREAD_CREATE 0x0501
#define WMI_LOG_TYPE_THREAD_DELETE 0x0502
#define PERFINFO_LOG_TYPE_CONTEXTSWAP 0x0524
#define PERFINFO_LOG_TYPE_READY_THREAD 0x0532
#define PERFINFO_LOG_TYPE_SAMPLED_PROFILE 0x0F2E
#define PERFINFO_LOG_TYPE_PMC_INTERRUPT 0x0F2F
#define PERFINFO_LOG_TYPE_SYSCALL_ENTER 0x0F33
#define PERFINFO_LOG_TYPE_SYSCALL_EXIT 0x0F34
#define PERFINFO_LOG_TYPE_INTERRUPT 0x0F43
#define PERFINFO_LOG_TYPE_DPC 0x0F44
#define PERFINFO_LOG_TYPE_TIMERDPC 0x0F45
#define PERFINFO_LOG_TYPE_SAMPLED_PROFILE_SET_INTERVAL 0x0F48
#define PERFINFO_LOG_TYPE_IPI 0x0F5B
#define PERFINFO_LOG_TYPE_STACKWALK 0x1820

typedef struct _WMI_EXTENDED_THREAD_INFORMATION {
    ULONG ProcessId, ThreadId;
    PVOID StackBase, StackLimit, UserStackBase, UserStackLimit;
    KAFFINITY Affinity;
    PVOID Win32StartAddr, TebBase;
    ULONG SubProcessTag;
    UCHAR BasePriority, PagePriority, IoPriority, Flags;
} WMI_EXTENDED_THREAD_INFORMATION;
ABI_SIZE(WMI_EXTENDED_THREAD_INFORMATION, 0x48);

typedef struct _WMI_CONTEXTSWAP {
    ULONG NewThreadId, OldThreadId; /* 0: an idle thread */
    CHAR NewPriority, OldPriority;
    UCHAR PreviousCState;
    CHAR NewThreadPriorityDecrement;
    CHAR OldWaitReason, OldWaitMode, OldState; /* KWAIT_REASON; 0 kernel, 1 user; a KTHREAD_STATE */
    UCHAR OldIdealProcessor;
    ULONG NewWaitTime, OldRemainingQuantum;
} WMI_CONTEXTSWAP, *PWMI_CONTEXTSWAP;
ABI_SIZE(WMI_CONTEXTSWAP, 0x18);
ABI_FIELD(WMI_CONTEXTSWAP, OldWaitReason, 0x0C);
ABI_FIELD(WMI_CONTEXTSWAP, OldState, 0x0E);

typedef struct _ETW_READY_THREAD_EVENT {
    ULONG ThreadId;
    CHAR AdjustReason, AdjustIncrement;
    UCHAR Flags, Reserved;
} ETW_READY_THREAD_EVENT;
ABI_SIZE(ETW_READY_THREAD_EVENT, 8);

typedef struct _PERFINFO_SAMPLED_PROFILE_INFORMATION {
    PVOID InstructionPointer;
    ULONG ThreadId;
    USHORT Count;
    UCHAR Flags; /* PROFILE_IN_DPC, PROFILE_IN_ISR; bits 3 to 7: priority */
    UCHAR Rank;
} PERFINFO_SAMPLED_PROFILE_INFORMATION;
ABI_SIZE(PERFINFO_SAMPLED_PROFILE_INFORMATION, 0x10);
ABI_FIELD(PERFINFO_SAMPLED_PROFILE_INFORMATION, Flags, 0x0E);
#define PROFILE_IN_DPC 0x01
#define PROFILE_IN_ISR 0x02
#define PROFILE_PRIORITY_SHIFT 3

typedef struct _PERFINFO_PMC_SAMPLE_INFORMATION {
    PVOID InstructionPointer;
    ULONG ThreadId;
    USHORT ProfileSource, Reserved;
} PERFINFO_PMC_SAMPLE_INFORMATION;
ABI_SIZE(PERFINFO_PMC_SAMPLE_INFORMATION, 0x10);

typedef struct _PERFINFO_SAMPLED_PROFILE_CONFIG {
    ULONG Source, NewInterval, OldInterval;
} PERFINFO_SAMPLED_PROFILE_CONFIG;
ABI_SIZE(PERFINFO_SAMPLED_PROFILE_CONFIG, 0x0C);

/* The stack of the record with that time stamp; the addresses follow, the innermost first. */
typedef struct _ETW_STACK_WALK {
    ULONG64 EventTimeStamp;
    ULONG StackProcess, StackThread;
} ETW_STACK_WALK; /* our name: Windows' MOF calls it StackWalk_Event */
ABI_SIZE(ETW_STACK_WALK, 0x10);

/* The branches before the event with that time stamp. The record is an EVENT_TRACE_HEADER with this
 * GUID, its type and version, and follows the event on its processor; entries follow, the newest
 * first. */
#define LAST_BRANCH_GUID                                                                           \
    {                                                                                              \
        0x99134383, 0x5248, 0x43fc, { 0x83, 0x4b, 0x52, 0x94, 0x54, 0xe7, 0x5d, 0xf3 }             \
    }
#define LAST_BRANCH_TYPE 32
#define LAST_BRANCH_VERSION 2

typedef struct _ETW_LAST_BRANCH_RECORD {
    ULONG64 EventTimeStamp;
    ULONG ProcessId, ThreadId; /* whose branches they are */
    ULONG Filters;             /* EVNTRACE_LBR_FLAGS */
    ULONG Reserved;
} ETW_LAST_BRANCH_RECORD; /* our names: Windows' are not known */
ABI_SIZE(ETW_LAST_BRANCH_RECORD, 0x18);
typedef struct _ETW_LAST_BRANCH {
    ULONG64 From, To, Reserved;
} ETW_LAST_BRANCH;
ABI_SIZE(ETW_LAST_BRANCH, 0x18);

typedef struct _PERFINFO_DPC_INFORMATION {
    ULONG64 InitialTime;
    PVOID DpcRoutine;
} PERFINFO_DPC_INFORMATION; /* NT: for IPIs too; their layout is not known */
ABI_SIZE(PERFINFO_DPC_INFORMATION, 0x10);

typedef struct __attribute__((packed)) _PERFINFO_INTERRUPT_INFORMATION {
    ULONG64 InitialTime;
    PVOID ServiceRoutine;
    UCHAR ReturnValue;
    USHORT Vector;
    UCHAR Reserved;
} PERFINFO_INTERRUPT_INFORMATION;
ABI_SIZE(PERFINFO_INTERRUPT_INFORMATION, 0x14);
ABI_FIELD(PERFINFO_INTERRUPT_INFORMATION, Vector, 0x11);

typedef struct _PERFINFO_SYSCALL_ENTER_DATA {
    PVOID SysCallAddr;
} PERFINFO_SYSCALL_ENTER_DATA;

typedef struct _PERFINFO_SYSCALL_EXIT_DATA {
    NTSTATUS ReturnValue;
} PERFINFO_SYSCALL_EXIT_DATA;
