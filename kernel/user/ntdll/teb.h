/* SPDX-License-Identifier: MIT */
/* What files of ntdll and kernel32 begin with: mingw-w64's headers, the thread's block, and the
 * services that both call (kernel/nt/service_list.h). */
#pragma once
#include <ntstatus.h>
#define WIN32_NO_STATUS
#include <windows.h>
#include <winternl.h>
#include <stdbool.h>
#include "kernel/nt/nt_process.h"

#define CURRENT_PROCESS ((HANDLE)(LONG_PTR)-1)
#define CURRENT_THREAD ((HANDLE)(LONG_PTR)-2)

static inline struct teb *teb(void)
{
    struct teb *self;
    asm("mov %%gs:0x30, %0" : "=r"(self));
    return self;
}

NTSTATUS NTAPI NtYieldExecution(void);
NTSTATUS NTAPI NtTerminateProcess(HANDLE ProcessHandle, NTSTATUS ExitStatus);
NTSTATUS NTAPI NtTerminateThread(HANDLE ThreadHandle, NTSTATUS ExitStatus);
NTSTATUS NTAPI NtAllocateVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, ULONG_PTR ZeroBits,
                                       PSIZE_T RegionSize, ULONG AllocationType, ULONG Protect);
NTSTATUS NTAPI NtFreeVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, PSIZE_T RegionSize,
                                   ULONG FreeType);
NTSTATUS NTAPI NtProtectVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, PSIZE_T RegionSize,
                                      ULONG NewProtect, PULONG OldProtect);
NTSTATUS NTAPI NtSetInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass,
                                      PVOID ThreadInformation, ULONG ThreadInformationLength);
NTSTATUS write_console(const char *text, ULONG length);
