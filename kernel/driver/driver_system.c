/* SPDX-License-Identifier: MIT */
/* Times, the system's version, the previous mode. Source: the Windows driver documentation. */
#include "hal/machine/clock.h"
#include "kernel/driver/driver.h"
#include "kernel/ke/thread.h"
#include "kernel/nt/nt_process.h"

/* --- Times, in units of 100 ns since boot. The machine does not sleep. --- */

ULONGLONG KeQueryInterruptTimePrecise(PULONG64 QpcTimeStamp)
{
    return *QpcTimeStamp = clock_ns() / 100;
}

ULONGLONG KeQueryUnbiasedInterruptTime(void) { return clock_ns() / 100; }

/* --- The system. --- */

/* UserMode in a thread of a program, outside services that a driver has called. */
KPROCESSOR_MODE ExGetPreviousMode(void)
{
    const struct thread *me = thread_current();
    return me->process && !me->trusted ? UserMode : KernelMode;
}

/* STATUS_INVALID_PARAMETER: another size. NT: an extended structure is none. */
NTSTATUS RtlGetVersion(PRTL_OSVERSIONINFOW VersionInformation)
{
    if (VersionInformation->dwOSVersionInfoSize != sizeof *VersionInformation)
        return STATUS_INVALID_PARAMETER;
    *VersionInformation = (RTL_OSVERSIONINFOW){ .dwOSVersionInfoSize = sizeof *VersionInformation,
                                                .dwMajorVersion = WINDOWS_MAJOR,
                                                .dwBuildNumber = WINDOWS_BUILD,
                                                .dwPlatformId = WINDOWS_PLATFORM };
    return STATUS_SUCCESS;
}
