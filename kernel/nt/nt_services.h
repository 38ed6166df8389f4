/* SPDX-License-Identifier: MIT */
/* Services of threads, handles, time and memory, which the kernel has and ring 3 calls: mingw-w64's
 * headers lack most of them. Include nt.h or winternl.h first. */
#pragma once

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
ULONG NtGetCurrentProcessorNumber(void);
NTSTATUS NtGetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber);
NTSTATUS NtQueryPerformanceCounter(PLARGE_INTEGER PerformanceCounter,
                                   PLARGE_INTEGER PerformanceFrequency);

NTSTATUS NtAllocateVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, ULONG_PTR ZeroBits,
                                 PSIZE_T RegionSize, ULONG AllocationType, ULONG Protect);
NTSTATUS NtFreeVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, PSIZE_T RegionSize,
                             ULONG FreeType);
NTSTATUS NtProtectVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, PSIZE_T RegionSize,
                                ULONG NewProtect, PULONG OldProtect);
NTSTATUS NtQueryVirtualMemory(HANDLE ProcessHandle, PVOID BaseAddress, ULONG MemoryInformationClass,
                              PVOID MemoryInformation, SIZE_T MemoryInformationLength,
                              PSIZE_T ReturnLength);
