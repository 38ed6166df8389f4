/* SPDX-License-Identifier: MIT */
/* Trace sessions (ETW). Hooks elsewhere in the kernel test one variable (etw_wants) and then call
 * one of the functions here, which writes a record into the buffers of each session that has
 * enabled it. */
#pragma once
#include "kernel/nt/nt_trace.h"

struct object;
struct thread;

enum etw_hook {
    ETW_THREAD_CREATE,
    ETW_THREAD_DELETE,
    ETW_CSWITCH,
    ETW_READY,
    ETW_PROFILE,
    ETW_PMC,
    ETW_SYSCALL_ENTER,
    ETW_SYSCALL_EXIT,
    ETW_INTERRUPT,
    ETW_DPC,
    ETW_TIMER_DPC,
    ETW_SET_INTERVAL,
    ETW_IPI,
    ETW_SAMPLES, /* one of ETW_PROFILE and ETW_PMC; has no records */
    ETW_EVENT,   /* programs' events, of any size: every session takes them until it stops */
    ETW_HOOKS
};

/* A bit for each session that has enabled the hook. Atomic; written by etw_session.c. */
extern uint16_t etw_wanted[ETW_HOOKS];

/* The slot of the session that alone wants context switches, if nothing follows their records; -1:
 * there is none. Atomic. */
extern int8_t etw_swaps;

/* The whole cost of a hook that no session has enabled. Any IRQL. */
static inline bool etw_wants(enum etw_hook hook)
{
    return __builtin_expect(__atomic_load_n(&etw_wanted[hook], __ATOMIC_RELAXED) != 0, 0);
}

/* The hooks, in etw_hooks.c. Any IRQL, but not in an NMI handler, because the NMI may have
 * interrupted the writing of a record: samples by NMI are recorded by the self-IPI that the NMI
 * requests (hal_pmi_noted). */
void etw_thread(enum etw_hook hook, const struct thread *thread);
void etw_context_swap(const struct thread *from, const struct thread *to, KWAIT_REASON reason);
void etw_ready_thread(const struct thread *thread);
void etw_profile(PKTRAP_FRAME frame, KPROFILE_SOURCE source);
void etw_syscall_enter(uint64_t address);
void etw_syscall_exit(NTSTATUS status);
void etw_interrupt(uint64_t entered, unsigned vector, uint64_t routine);
void etw_dpc(enum etw_hook hook, uint64_t entered, uint64_t routine);
void etw_ipi(uint64_t entered, void (*routine)(void *));
void etw_set_interval(KPROFILE_SOURCE source, ULONG now, ULONG before);

/* NtTraceControl (etw_control.c). nt_trace.h has the codes; STATUS_NOT_IMPLEMENTED: another one.
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

/* TraceEvent. Fields: an EVENT_TRACE_HEADER of Size bytes with its data. The event gets the thread,
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

/* Class 0x1F only; others STATUS_INVALID_INFO_CLASS (etw_class.c). PASSIVE_LEVEL. */
NTSTATUS NtSetSystemInformation(ULONG SystemInformationClass, PVOID SystemInformation,
                                ULONG SystemInformationLength);
NTSTATUS NtQuerySystemInformation(ULONG SystemInformationClass, PVOID SystemInformation,
                                  ULONG SystemInformationLength, PULONG ReturnLength);
