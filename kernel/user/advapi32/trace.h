/* SPDX-License-Identifier: MIT */
/* What the files of advapi32 share: mingw-w64's headers, and declarations that those lack. */
#pragma once
#define INITGUID
#include <ntstatus.h>
#define WIN32_NO_STATUS
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <evntrace.h>
#include <evntcons.h>
#include <winternl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#define ABI_SIZE(type, size) C_ASSERT(sizeof(type) == (size))
#define ABI_FIELD(type, field, offset) C_ASSERT(offsetof(type, field) == (offset))
typedef ULONG KPROFILE_SOURCE;
#define ProfileTime 0
#include "kernel/nt/nt_pmc_owner.h"
#include "kernel/nt/nt_etw.h"
#include "kernel/nt/nt_trace_class.h"
#include "kernel/user/advapi32/trace_control.h"

/* evntrace.h's list of classes ends too early. */
#define TraceMaxPmcCounterQuery 22
#define TracePmcCounterOwners 25
#define TracePmcSessionInformation 27

/* GUIDs from the documentation of the kernel's events. No header has them. */
static const GUID ThreadGuid __attribute__((
    unused)) = { 0x3d6fa8d1, 0xfe05, 0x11d0, { 0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c } };
static const GUID PerfInfoGuid __attribute__((
    unused)) = { 0xce1dbfb4, 0x137e, 0x4da6, { 0x87, 0xb0, 0x3f, 0x59, 0xaa, 0x10, 0x2c, 0xbc } };

#define NtCurrentProcess() ((HANDLE)(LONG_PTR)-1)
NTSTATUS NTAPI ZwTraceControl(ULONG FunctionCode, PVOID InBuffer, ULONG InBufferLen,
                              PVOID OutBuffer, ULONG OutBufferLen, PULONG ReturnLength);
NTSTATUS NTAPI ZwQuerySystemInformation(ULONG Class, PVOID Information, ULONG Length,
                                        PULONG ReturnLength);
NTSTATUS NTAPI ZwSetSystemInformation(ULONG Class, PVOID Information, ULONG Length);
NTSTATUS NTAPI ZwSetIntervalProfile(ULONG Interval, KPROFILE_SOURCE Source);
NTSTATUS NTAPI ZwQueryIntervalProfile(KPROFILE_SOURCE Source, PULONG Interval);
NTSTATUS NTAPI ZwAllocateVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, ULONG_PTR ZeroBits,
                                       PSIZE_T RegionSize, ULONG AllocationType, ULONG Protect);
NTSTATUS NTAPI ZwFreeVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, PSIZE_T RegionSize,
                                   ULONG FreeType);
NTSTATUS NTAPI ZwClose(HANDLE Handle);
NTSTATUS NTAPI RtlAdjustPrivilege(ULONG Privilege, BOOLEAN Enable, BOOLEAN CurrentThread,
                                  PBOOLEAN Enabled);
