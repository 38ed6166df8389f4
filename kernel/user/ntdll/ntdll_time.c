/* SPDX-License-Identifier: MIT */
/* The system's time. */
#include "kernel/nt/nt_time.h"
#include "ntdll.h"

NTSTATUS NTAPI NtQuerySystemTime(PLARGE_INTEGER SystemTime)
{
    NTSTATUS status = NtQueryPerformanceCounter(SystemTime, NULL); /* 10 MHz */
    if (NT_SUCCESS(status))
        SystemTime->QuadPart += SYSTEM_TIME_AT_BOOT;
    return status;
}

/* FALSE: before 1970, or too late for Seconds. */
BOOLEAN NTAPI RtlTimeToSecondsSince1970(PLARGE_INTEGER Time, PULONG Seconds)
{
    const LONGLONG seconds = Time->QuadPart / 10000000 - 11644473600;
    if (seconds < 0 || seconds > MAXDWORD)
        return FALSE;
    *Seconds = (ULONG)seconds;
    return TRUE;
}
