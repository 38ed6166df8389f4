/* SPDX-License-Identifier: MIT */
/* Services that concern threads, handles and time. Pointers come from ring 3 and are not trusted.
 */
#pragma once
#include "kernel/nt/nt.h"

NTSTATUS NtClose(HANDLE Handle);
NTSTATUS NtDuplicateObject(HANDLE SourceProcessHandle, HANDLE SourceHandle,
                           HANDLE TargetProcessHandle, PHANDLE TargetHandle,
                           ACCESS_MASK DesiredAccess, ULONG HandleAttributes, ULONG Options);
NTSTATUS NtTerminateThread(HANDLE ThreadHandle, NTSTATUS ExitStatus);
NTSTATUS NtTerminateProcess(HANDLE ProcessHandle, NTSTATUS ExitStatus);
NTSTATUS NtCreateThreadEx(PHANDLE ThreadHandle, ACCESS_MASK DesiredAccess, PVOID ObjectAttributes,
                          HANDLE ProcessHandle, PVOID StartRoutine, PVOID Argument,
                          ULONG CreateFlags, SIZE_T ZeroBits, SIZE_T StackSize,
                          SIZE_T MaximumStackSize, PVOID AttributeList);
NTSTATUS NtSetInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass,
                                PVOID ThreadInformation, ULONG ThreadInformationLength);
NTSTATUS NtQueryInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass,
                                  PVOID ThreadInformation, ULONG ThreadInformationLength,
                                  PULONG ReturnLength);
NTSTATUS NtQueryInformationProcess(HANDLE ProcessHandle, PROCESSINFOCLASS ProcessInformationClass,
                                   PVOID ProcessInformation, ULONG ProcessInformationLength,
                                   PULONG ReturnLength);
/* 0 ns: it has not ended. NT: all that was used is user time. */
void usage_times(uint64_t created_ns, uint64_t ended_ns, uint64_t cycles, KERNEL_USER_TIMES *times);
ULONG NtGetCurrentProcessorNumber(void);
NTSTATUS NtGetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber);
NTSTATUS NtQueryPerformanceCounter(PLARGE_INTEGER PerformanceCounter,
                                   PLARGE_INTEGER PerformanceFrequency);
NTSTATUS adjust_privilege(ULONG Privilege, BOOLEAN Enable, BOOLEAN CurrentThread, PBOOLEAN Enabled);
/* Ours: text to the console, at most 256 characters a call, printable ones and newlines only. */
NTSTATUS write_console(const char *text, ULONG length);
