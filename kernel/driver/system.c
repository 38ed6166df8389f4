/* SPDX-License-Identifier: MIT */
/* What drivers ask the system: times, its version, who called; and what they save of the
 * processor. `where` is who called. Source: the Windows driver documentation. */
#include "hal/clock.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/pool.h"
#include "kernel/ke/fpu.h"
#include "kernel/ke/thread.h"
#include "kernel/nt/nt_process.h"

#define TAG ('X' | 's' << 8 | 'a' << 16 | 'v' << 24)
#define AREA_ALIGNMENT 64u

/* --- Times, in units of 100 ns since boot. The machine does not sleep. --- */

ULONGLONG driver_KeQueryInterruptTimePrecise(uint64_t where, PULONG64 QpcTimeStamp)
{
    (void)where;
    return *QpcTimeStamp = clock_ns() / 100;
}

ULONGLONG driver_KeQueryUnbiasedInterruptTime(uint64_t where)
{
    (void)where;
    return clock_ns() / 100;
}

/* --- The system. --- */

/* UserMode: in a thread of a program, which asks the driver for something. */
KPROCESSOR_MODE driver_ExGetPreviousMode(uint64_t where)
{
    const struct thread *me = thread_current();
    (void)where;
    return me->process && !me->trusted ? UserMode : KernelMode;
}

/* STATUS_INVALID_PARAMETER: another size. NT: an extended structure is none. */
NTSTATUS driver_RtlGetVersion(uint64_t where, PRTL_OSVERSIONINFOW VersionInformation)
{
    (void)where;
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
NTSTATUS driver_KeSaveExtendedProcessorState(uint64_t where, ULONG64 Mask, PXSTATE_SAVE XStateSave)
{
    uint64_t buffer = (uint64_t)pool_allocate_for(where, FPU_AREA_MAX + AREA_ALIGNMENT, TAG);
    if (!buffer)
        return STATUS_INSUFFICIENT_RESOURCES;
    XStateSave->Mask = Mask;
    XStateSave->Buffer = (PVOID)buffer;
    XStateSave->Area = (PVOID)((buffer + AREA_ALIGNMENT - 1) & ~(uint64_t)(AREA_ALIGNMENT - 1));
    fpu_save(XStateSave->Area);
    return STATUS_SUCCESS;
}

VOID driver_KeRestoreExtendedProcessorState(uint64_t where, PXSTATE_SAVE XStateSave)
{
    fpu_restore(XStateSave->Area);
    pool_free_for(where, XStateSave->Buffer, TAG);
}
