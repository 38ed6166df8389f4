/* SPDX-License-Identifier: MIT */
/* A routine of the kernel by its name: what the import library lacks, and what wdm.h has inline. */
#pragma once
#include <ntddk.h>

static inline PVOID routine(PCWSTR Name)
{
    UNICODE_STRING name;
    RtlInitUnicodeString(&name, Name);
    return MmGetSystemRoutineAddress(&name);
}
