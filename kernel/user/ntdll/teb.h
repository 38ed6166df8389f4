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
#include "kernel/nt/nt_services.h"

#define CURRENT_PROCESS ((HANDLE)(LONG_PTR)-1)
#define CURRENT_THREAD ((HANDLE)(LONG_PTR)-2)

static inline struct teb *teb(void)
{
    struct teb *self;
    asm("mov %%gs:0x30, %0" : "=r"(self));
    return self;
}

NTSTATUS NTAPI NtYieldExecution(void);
NTSTATUS write_console(const char *text, ULONG length);
