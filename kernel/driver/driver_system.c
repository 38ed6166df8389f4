/* SPDX-License-Identifier: MIT */
/* Times, the system's version, the previous mode, the processor's extended state. Source: the
 * Windows driver documentation. */
#include "hal/machine/clock.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/pool.h"
#include "kernel/ke/fpu.h"
#include "kernel/ke/thread.h"
#include "kernel/nt/nt_process.h"

#define TAG ('X' | 's' << 8 | 'a' << 16 | 'v' << 24)
#define AREA_ALIGNMENT 64u

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

/* --- Registers of x87, SSE, AVX and AVX-512. --- */

/* STATUS_INSUFFICIENT_RESOURCES. NT: Mask has no effect: all are saved. */
NTSTATUS KeSaveExtendedProcessorState(ULONG64 Mask, PXSTATE_SAVE XStateSave)
{
    uint64_t buffer = (uint64_t)pool_allocate_for(FPU_AREA_MAX + AREA_ALIGNMENT, TAG);
    if (!buffer)
        return STATUS_INSUFFICIENT_RESOURCES;
    XStateSave->Mask = Mask;
    XStateSave->Buffer = (PVOID)buffer;
    XStateSave->Area = (PVOID)((buffer + AREA_ALIGNMENT - 1) & ~(uint64_t)(AREA_ALIGNMENT - 1));
    fpu_save(XStateSave->Area);
    return STATUS_SUCCESS;
}

VOID KeRestoreExtendedProcessorState(PXSTATE_SAVE XStateSave)
{
    fpu_restore(XStateSave->Area);
    pool_free_for(XStateSave->Buffer, TAG);
}
