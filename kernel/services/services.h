/* SPDX-License-Identifier: MIT */
/* Services that concern threads, handles and time. Pointers come from ring 3 and are not trusted.
 */
#pragma once
#include "kernel/nt/nt.h"
#include "kernel/nt/nt_services.h"

NTSTATUS NtQueryInformationProcess(HANDLE ProcessHandle, PROCESSINFOCLASS ProcessInformationClass,
                                   PVOID ProcessInformation, ULONG ProcessInformationLength,
                                   PULONG ReturnLength);
/* 0 ns: it has not ended. NT: all that was used is user time. */
void usage_times(uint64_t created_ns, uint64_t ended_ns, uint64_t cycles, KERNEL_USER_TIMES *times);
NTSTATUS adjust_privilege(ULONG Privilege, BOOLEAN Enable, BOOLEAN CurrentThread, PBOOLEAN Enabled);
#define WRITE_MAX 256u
/* Ours: text to the console, at most WRITE_MAX characters a call, printable ones and newlines. */
NTSTATUS write_console(const char *text, ULONG length);
