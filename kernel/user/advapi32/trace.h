/* SPDX-License-Identifier: MIT */
/* What the files of advapi32 share: mingw-w64's headers, and declarations that those lack. */
#pragma once
#define INITGUID
#include <ntstatus.h>
#define WIN32_NO_STATUS
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
#include "kernel/nt/nt_services.h"
#include "kernel/nt/nt_trace_class.h"
#include "kernel/user/advapi32/evntrace_newer.h"
#include "kernel/user/advapi32/trace_control.h"

#define NtCurrentProcess() ((HANDLE)(LONG_PTR)-1)
NTSTATUS NTAPI ZwTraceControl(ULONG FunctionCode, PVOID InBuffer, ULONG InBufferLen,
                              PVOID OutBuffer, ULONG OutBufferLen, PULONG ReturnLength);
NTSTATUS NTAPI ZwQuerySystemInformation(ULONG Class, PVOID Information, ULONG Length,
                                        PULONG ReturnLength);
NTSTATUS NTAPI ZwSetSystemInformation(ULONG Class, PVOID Information, ULONG Length);
NTSTATUS NTAPI ZwSetIntervalProfile(ULONG Interval, KPROFILE_SOURCE Source);
NTSTATUS NTAPI ZwQueryIntervalProfile(KPROFILE_SOURCE Source, PULONG Interval);
NTSTATUS NTAPI RtlAdjustPrivilege(ULONG Privilege, BOOLEAN Enable, BOOLEAN CurrentThread,
                                  PBOOLEAN Enabled);
