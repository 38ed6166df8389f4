/* SPDX-License-Identifier: MIT */
/* What the files of kernel32 share, and functions of ntdll that mingw-w64 does not declare. */
#pragma once
#include "kernel/user/ntdll/teb.h"

static inline PRTL_USER_PROCESS_PARAMETERS parameters(void) { return teb()->peb->parameters; }

/* If the status is a failure: false, and sets the last error. */
static inline BOOL succeeded(NTSTATUS status)
{
    if (!NT_SUCCESS(status))
        teb()->last_error = RtlNtStatusToDosError(status);
    return NT_SUCCESS(status);
}

static inline BOOL fail(DWORD error)
{
    teb()->last_error = error;
    return FALSE;
}

/* text.c: a name of at most MAX_PATH characters, widened; false with the last error if it is
 * longer. `string` points into `buffer`. */
bool widen(const char *text, UNICODE_STRING *string, WCHAR *buffer);
/* Copies text as Get...A functions do: its length, or the length needed with the NUL. */
DWORD give_narrow(const WCHAR *text, DWORD length, char *buffer, DWORD room);

/* ntdll */
NTSTATUS NTAPI LdrLoadDll(PWSTR SearchPath, PULONG Flags, PUNICODE_STRING Name, PVOID *BaseAddress);
NTSTATUS NTAPI LdrUnloadDll(PVOID BaseAddress);
NTSTATUS NTAPI LdrGetDllHandle(PWSTR Path, PULONG Flags, PUNICODE_STRING Name, PVOID *BaseAddress);
NTSTATUS NTAPI LdrGetProcedureAddress(PVOID BaseAddress, PANSI_STRING Name, ULONG Ordinal,
                                      PVOID *Address);
NTSTATUS NTAPI LdrDisableThreadCalloutsForDll(PVOID BaseAddress);
NTSTATUS NTAPI LdrGetDllFullName(PVOID BaseAddress, PUNICODE_STRING Name);
DECLSPEC_NORETURN VOID NTAPI RtlExitUserProcess(NTSTATUS ExitStatus);
DECLSPEC_NORETURN VOID NTAPI RtlExitUserThread(NTSTATUS ExitStatus);
NTSTATUS NTAPI RtlEnableThreadProfiling(HANDLE ThreadHandle, ULONG Flags, ULONG64 HardwareCounters,
                                        PVOID *PerformanceDataHandle);
NTSTATUS NTAPI RtlDisableThreadProfiling(PVOID PerformanceDataHandle);
NTSTATUS NTAPI RtlQueryThreadProfiling(HANDLE ThreadHandle, PBOOLEAN Enabled);
NTSTATUS NTAPI RtlReadThreadProfilingData(HANDLE PerformanceDataHandle, ULONG Flags,
                                          PPERFORMANCE_DATA PerformanceData);
PVOID NTAPI RtlAllocateHeap(HANDLE HeapHandle, ULONG Flags, SIZE_T Size);
BOOLEAN NTAPI RtlFreeHeap(HANDLE HeapHandle, ULONG Flags, PVOID BaseAddress);
PVOID NTAPI RtlReAllocateHeap(HANDLE HeapHandle, ULONG Flags, PVOID BaseAddress, SIZE_T Size);
SIZE_T NTAPI RtlSizeHeap(HANDLE HeapHandle, ULONG Flags, PVOID BaseAddress);
NTSTATUS NTAPI NtDelayExecution(BOOLEAN Alertable, PLARGE_INTEGER DelayInterval);

/* ThreadBasicInformation; winternl.h does not declare it. */
struct thread_information {
    NTSTATUS exit_status;
    PVOID teb;
    CLIENT_ID id;
    ULONG_PTR affinity;
    LONG priority, base_priority;
};
