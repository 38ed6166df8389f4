/* SPDX-License-Identifier: MIT */
/* The smallest driver: it says where it runs, on each processor, and goes. */
#include <ntddk.h>

static VOID NTAPI unload(PDRIVER_OBJECT DriverObject)
{
    DbgPrint("%wZ goes\n", &DriverObject->DriverName);
}

static ULONG_PTR NTAPI here(ULONG_PTR Argument)
{
    InterlockedOr((LONG *)Argument, 1 << KeGetCurrentProcessorNumber());
    return KeGetCurrentIrql();
}

DRIVER_INITIALIZE DriverEntry;

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    LONG seen = 0;
    ULONG_PTR irql;

    DriverObject->DriverUnload = unload;
    DbgPrint("%wZ, IRQL %d, %lu processors\n", RegistryPath, KeGetCurrentIrql(),
             KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS));
    irql = KeIpiGenericCall(here, (ULONG_PTR)&seen);
    DbgPrint("all at IRQL %I64u: 0x%lx\n", irql, seen);
    return STATUS_SUCCESS;
}
