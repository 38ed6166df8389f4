/* SPDX-License-Identifier: MIT */
/* What a ring-3 program includes: types and constants of nt.h, and the functions of ntdll and kernel32 that there
 * are. NT: services have their Zw names only, because the Nt names are the kernel's own in the same image. */
#pragma once
#include "kernel/nt_profile.h"

#define ERROR_SUCCESS 0
#define ERROR_INVALID_FUNCTION 1
#define ERROR_ACCESS_DENIED 5
#define ERROR_INVALID_HANDLE 6
#define ERROR_NOT_ENOUGH_MEMORY 8
#define ERROR_BAD_LENGTH 24
#define ERROR_GEN_FAILURE 31
#define ERROR_NOT_SUPPORTED 50
#define ERROR_INVALID_PARAMETER 87
#define ERROR_INSUFFICIENT_BUFFER 122
#define ERROR_BUSY 170
#define ERROR_MORE_DATA 234
#define ERROR_MR_MID_NOT_FOUND 317
#define ERROR_NOACCESS 998
#define ERROR_PRIVILEGE_NOT_HELD 1314
#define ERROR_NO_SYSTEM_RESOURCES 1450
#define ERROR_INVALID_USER_BUFFER 1784
#define ERROR_WMI_INSTANCE_NOT_FOUND 4201
#define ERROR_WMI_ALREADY_ENABLED 4206
#define ERROR_WMI_ALREADY_DISABLED 4212
#define INFINITE 0xffffffff
#define WAIT_OBJECT_0 0
#define WAIT_TIMEOUT 258
#define WAIT_FAILED 0xffffffff

typedef DWORD (*LPTHREAD_START_ROUTINE)(PVOID);

/* ntdll */
NTSTATUS ZwClose(HANDLE Handle);
NTSTATUS ZwTerminateThread(HANDLE ThreadHandle, NTSTATUS ExitStatus);
NTSTATUS ZwTerminateProcess(HANDLE ProcessHandle, NTSTATUS ExitStatus);
NTSTATUS ZwDelayExecution(BOOLEAN Alertable, PLARGE_INTEGER DelayInterval);
NTSTATUS ZwWaitForSingleObject(HANDLE Handle, BOOLEAN Alertable, PLARGE_INTEGER Timeout);
NTSTATUS ZwYieldExecution(void);
NTSTATUS ZwCreateThreadEx(PHANDLE ThreadHandle, ACCESS_MASK DesiredAccess, PVOID ObjectAttributes,
                          HANDLE ProcessHandle, PVOID StartRoutine, PVOID Argument, ULONG CreateFlags,
                          SIZE_T ZeroBits, SIZE_T StackSize, SIZE_T MaximumStackSize, PVOID AttributeList);
NTSTATUS ZwSetInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass,
                                PVOID ThreadInformation, ULONG ThreadInformationLength);
NTSTATUS ZwQueryInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass,
                                  PVOID ThreadInformation, ULONG ThreadInformationLength, PULONG ReturnLength);
NTSTATUS ZwAllocateVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, ULONG_PTR ZeroBits, PSIZE_T RegionSize,
                                 ULONG AllocationType, ULONG Protect);
NTSTATUS ZwFreeVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, PSIZE_T RegionSize, ULONG FreeType);
NTSTATUS ZwProtectVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, PSIZE_T RegionSize, ULONG NewProtect,
                                PULONG OldProtect);
NTSTATUS ZwDuplicateObject(HANDLE SourceProcessHandle, HANDLE SourceHandle, HANDLE TargetProcessHandle,
                           PHANDLE TargetHandle, ACCESS_MASK DesiredAccess, ULONG HandleAttributes, ULONG Options);
ULONG ZwGetCurrentProcessorNumber(void);
NTSTATUS ZwQueryPerformanceCounter(PLARGE_INTEGER PerformanceCounter, PLARGE_INTEGER PerformanceFrequency);
NTSTATUS write_console(const char *text, ULONG length);
NTSTATUS no_such_service(void);

NTSTATUS ZwCreateProfile(PHANDLE ProfileHandle, HANDLE Process, PVOID ProfileBase, SIZE_T ProfileSize,
                         ULONG BucketSize, PULONG Buffer, ULONG BufferSize, KPROFILE_SOURCE ProfileSource,
                         KAFFINITY Affinity);
NTSTATUS ZwCreateProfileEx(PHANDLE ProfileHandle, HANDLE Process, PVOID ProfileBase, SIZE_T ProfileSize,
                           ULONG BucketSize, PULONG Buffer, ULONG BufferSize, KPROFILE_SOURCE ProfileSource,
                           USHORT GroupCount, PGROUP_AFFINITY GroupAffinity);
NTSTATUS ZwStartProfile(HANDLE ProfileHandle);
NTSTATUS ZwStopProfile(HANDLE ProfileHandle);
NTSTATUS ZwQueryIntervalProfile(KPROFILE_SOURCE ProfileSource, PULONG Interval);
NTSTATUS ZwSetIntervalProfile(ULONG Interval, KPROFILE_SOURCE Source);
NTSTATUS RtlAdjustPrivilege(ULONG Privilege, BOOLEAN Enable, BOOLEAN CurrentThread, PBOOLEAN Enabled);
NTSTATUS RtlEnableThreadProfiling(HANDLE ThreadHandle, ULONG Flags, ULONG64 HardwareCounters,
                                  PVOID *PerformanceDataHandle);
NTSTATUS RtlDisableThreadProfiling(PVOID PerformanceDataHandle);
NTSTATUS RtlQueryThreadProfiling(HANDLE ThreadHandle, PBOOLEAN Enabled);
NTSTATUS RtlReadThreadProfilingData(HANDLE PerformanceDataHandle, ULONG Flags, PPERFORMANCE_DATA PerformanceData);
ULONG RtlNtStatusToDosError(NTSTATUS Status);

/* kernel32 */
DWORD EnableThreadProfiling(HANDLE ThreadHandle, DWORD Flags, DWORD64 HardwareCounters,
                            HANDLE *PerformanceDataHandle);
DWORD DisableThreadProfiling(HANDLE PerformanceDataHandle);
DWORD QueryThreadProfiling(HANDLE ThreadHandle, PBOOLEAN Enabled);
DWORD ReadThreadProfilingData(HANDLE PerformanceDataHandle, DWORD Flags, PPERFORMANCE_DATA PerformanceData);
HANDLE CreateThread(PVOID ThreadAttributes, SIZE_T StackSize, LPTHREAD_START_ROUTINE StartAddress, PVOID Parameter,
                    DWORD CreationFlags, DWORD *ThreadId);
DWORD WaitForSingleObject(HANDLE Handle, DWORD Milliseconds);
BOOL CloseHandle(HANDLE Object);
void Sleep(DWORD Milliseconds);
HANDLE GetCurrentThread(void);
DWORD GetCurrentThreadId(void);
KAFFINITY SetThreadAffinityMask(HANDLE hThread, KAFFINITY dwThreadAffinityMask);
DWORD GetCurrentProcessorNumber(void);
BOOL GetExitCodeThread(HANDLE Thread, DWORD *ExitCode);
DWORD GetLastError(void);
