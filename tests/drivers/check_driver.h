/* SPDX-License-Identifier: MIT */
/* Checks of a driver, which prints those that fail. */
#pragma once
#include <ntddk.h>

static ULONG checks, wrong;

static void check(ULONG line, PCSTR what, long long found, long long wanted)
{
    checks++;
    if (found == wanted)
        return;
    wrong++;
    DbgPrint("line %lu: %s: 0x%llx, want 0x%llx\n", line, what, found, wanted);
}
#define IS(found, wanted) check(__LINE__, #found, (long long)(found), (long long)(wanted))
#define CHECK(condition) check(__LINE__, #condition, !!(condition), TRUE)
#define SUCCEEDS(call) IS(call, STATUS_SUCCESS)

static inline VOID NTAPI unload(PDRIVER_OBJECT DriverObject) {}

/* What DriverEntry ends with: the last line, and its status. */
static NTSTATUS check_result(void)
{
    DbgPrint("%lu checks, %lu wrong\n", checks, wrong);
    return wrong ? STATUS_UNSUCCESSFUL : STATUS_SUCCESS;
}
