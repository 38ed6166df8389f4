/* SPDX-License-Identifier: MIT */
/* The services and routines of ntdll that neither mingw-w64's headers nor nt_services.h declare. */
#pragma once
#include "kernel/nt/nt_profile.h"
#include "kernel/nt/nt_services.h"
#include "kernel/nt/ntddk.h"

NTSTATUS ZwDelayExecution(BOOLEAN Alertable, PLARGE_INTEGER DelayInterval);
NTSTATUS ZwWaitForSingleObject(HANDLE Handle, BOOLEAN Alertable, PLARGE_INTEGER Timeout);
NTSTATUS ZwYieldExecution(void);
NTSTATUS ZwWaitForMultipleObjects(ULONG Count, const HANDLE Handles[], WAIT_TYPE WaitType,
                                  BOOLEAN Alertable, PLARGE_INTEGER Timeout);
NTSTATUS ZwCreateEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess,
                       POBJECT_ATTRIBUTES ObjectAttributes, EVENT_TYPE EventType,
                       BOOLEAN InitialState);
NTSTATUS ZwSetEvent(HANDLE EventHandle, PLONG PreviousState);
NTSTATUS ZwResetEvent(HANDLE EventHandle, PLONG PreviousState);
NTSTATUS ZwReleaseSemaphore(HANDLE SemaphoreHandle, LONG ReleaseCount, PLONG PreviousCount);
NTSTATUS ZwReleaseMutant(HANDLE MutantHandle, PLONG PreviousCount);
NTSTATUS ZwResumeThread(HANDLE ThreadHandle, PULONG PreviousSuspendCount);
NTSTATUS ZwSetTimer(HANDLE TimerHandle, PLARGE_INTEGER DueTime, PVOID TimerApcRoutine,
                    PVOID TimerContext, BOOLEAN ResumeTimer, LONG Period, PBOOLEAN PreviousState);
NTSTATUS ZwCancelTimer(HANDLE TimerHandle, PBOOLEAN CurrentState);
NTSTATUS ZwSuspendThread(HANDLE ThreadHandle, PULONG PreviousSuspendCount);
/* Ours: RtlReadThreadProfilingData in the kernel, for the calling thread; needs no RDPMC. */
NTSTATUS ZwReadThreadProfilingData(HANDLE PerformanceDataHandle, ULONG Flags,
                                   PPERFORMANCE_DATA PerformanceData);
NTSTATUS write_console(const char *text, ULONG length);
NTSTATUS no_such_service(void);

NTSTATUS ZwCreateProfile(PHANDLE ProfileHandle, HANDLE Process, PVOID ProfileBase,
                         SIZE_T ProfileSize, ULONG BucketSize, PULONG Buffer, ULONG BufferSize,
                         KPROFILE_SOURCE ProfileSource, KAFFINITY Affinity);
NTSTATUS ZwCreateProfileEx(PHANDLE ProfileHandle, HANDLE Process, PVOID ProfileBase,
                           SIZE_T ProfileSize, ULONG BucketSize, PULONG Buffer, ULONG BufferSize,
                           KPROFILE_SOURCE ProfileSource, USHORT GroupCount,
                           PGROUP_AFFINITY GroupAffinity);
NTSTATUS ZwStartProfile(HANDLE ProfileHandle);
NTSTATUS ZwStopProfile(HANDLE ProfileHandle);
NTSTATUS ZwQueryIntervalProfile(KPROFILE_SOURCE ProfileSource, PULONG Interval);
NTSTATUS ZwSetIntervalProfile(ULONG Interval, KPROFILE_SOURCE Source);
NTSTATUS ZwTraceControl(ULONG FunctionCode, PVOID InBuffer, ULONG InBufferLen, PVOID OutBuffer,
                        ULONG OutBufferLen,
                        PULONG ReturnLength); /* codes and structures: kernel/nt/nt_trace.h */
NTSTATUS ZwSetSystemInformation(ULONG SystemInformationClass, PVOID SystemInformation,
                                ULONG SystemInformationLength);
NTSTATUS ZwQuerySystemInformation(ULONG SystemInformationClass, PVOID SystemInformation,
                                  ULONG SystemInformationLength, PULONG ReturnLength);
NTSTATUS RtlAdjustPrivilege(ULONG Privilege, BOOLEAN Enable, BOOLEAN CurrentThread,
                            PBOOLEAN Enabled);
NTSTATUS RtlEnableThreadProfiling(HANDLE ThreadHandle, ULONG Flags, ULONG64 HardwareCounters,
                                  PVOID *PerformanceDataHandle);
NTSTATUS RtlDisableThreadProfiling(PVOID PerformanceDataHandle);
NTSTATUS RtlQueryThreadProfiling(HANDLE ThreadHandle, PBOOLEAN Enabled);
NTSTATUS RtlReadThreadProfilingData(HANDLE PerformanceDataHandle, ULONG Flags,
                                    PPERFORMANCE_DATA PerformanceData);

NTSTATUS ZwRaiseException(PEXCEPTION_RECORD ExceptionRecord, PCONTEXT ContextRecord,
                          BOOLEAN FirstChance);
NTSTATUS ZwContinue(PCONTEXT ContextRecord, BOOLEAN TestAlert);
NTSTATUS NtGetContextThread(HANDLE ThreadHandle, PCONTEXT ThreadContext);
NTSTATUS KeSetHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray, ULONG Count);
NTSTATUS KeQueryHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray, ULONG MaximumCount,
                                             PULONG Count);
