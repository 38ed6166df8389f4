/* SPDX-License-Identifier: MIT */
/* A driver for hardware counters, for Intel and AMD processors: takes four counters, programs them
 * itself on every processor while a program has the device open, and tells the kernel that threads
 * which are profiled shall have them. client.cpp uses it. */
#include <ntddk.h>
#include <intrin.h>
#include <x86intrin.h>
#include "counters.h"

/* As ntddk.h has them since Windows 10 1903; mingw-w64's are those of Windows 7. */
typedef struct {
    ULONG Type, Flags; /* Type 1: a range */
    ULONG Begin, End;
    ULONG64 Unused;
} COUNTER_RESOURCE;
typedef struct {
    ULONG Count;
    COUNTER_RESOURCE Descriptors[1];
} COUNTER_RESOURCES;

#define SELECT_USER (1u << 16)
#define SELECT_ENABLE (1u << 22)
#define INTEL_SELECT 0x186
#define INTEL_GLOBAL_CONTROL 0x38f
#define AMD_SELECT 0xc0010200 /* each with its counter after it */
#define AMD_GLOBAL_CONTROL 0xc0000301

static const struct {
    ULONG Intel, Amd;
    const char *Name;
} events[COUNTERS_MAX] = {
    { 0x00c0, 0x00c0, "instructions" },
    { 0x003c, 0x0076, "cycles" },
    { 0x00c4, 0x00c2, "branches" },
    { 0x00c5, 0x00c3, "mispredicted branches" },
};

static BOOLEAN amd;
static ULONG global_control; /* its MSR; 0: there is none */
static HANDLE counter_set;

static VOID find_processor(VOID)
{
    int leaf[4];
    __cpuid(leaf, 0);
    amd = leaf[1] == 'htuA'; /* "Auth" of AuthenticAMD, "Genu" of GenuineIntel */
    __cpuid(leaf, amd ? 0x80000000 : 0);
    if (amd && (ULONG)leaf[0] >= 0x80000022) {
        __cpuid(leaf, 0x80000022);
        global_control = leaf[0] & 1 ? AMD_GLOBAL_CONTROL : 0;
    } else if (!amd && leaf[0] >= 10) {
        __cpuid(leaf, 10);
        global_control = (leaf[0] & 0xff) >= 2 ? INTEL_GLOBAL_CONTROL : 0;
    }
}

static ULONG select_msr(ULONG Counter)
{
    return amd ? AMD_SELECT + 2 * Counter : INTEL_SELECT + Counter;
}

/* On each processor at once, at IPI_LEVEL: nothing else touches the registers. */
static ULONG_PTR NTAPI program(ULONG_PTR On)
{
    const ULONG64 mask = (1 << COUNTERS_MAX) - 1;
    for (ULONG i = 0; i < COUNTERS_MAX; i++)
        __writemsr(select_msr(i),
                   On ? (amd ? events[i].Amd : events[i].Intel) | SELECT_USER | SELECT_ENABLE : 0);
    if (global_control) {
        ULONG64 now = __readmsr(global_control);
        __writemsr(global_control, On ? now | mask : now & ~mask);
    }
    return 0;
}

static NTSTATUS configure(VOID)
{
    HARDWARE_COUNTER counters[COUNTERS_MAX] = { { PMCCounter, 0, 0 } };
    for (ULONG i = 0; i < COUNTERS_MAX; i++)
        counters[i].Index = i;
    return KeSetHardwareCounterConfiguration(counters, COUNTERS_MAX);
}

static NTSTATUS take_counters(VOID)
{
    COUNTER_RESOURCES resources = { 1, { { 1, 0, 0, COUNTERS_MAX - 1, 0 } } };
    return HalAllocateHardwareCounters(NULL, 0, (PPHYSICAL_COUNTER_RESOURCE_LIST)&resources,
                                       &counter_set);
}

/* --- Requests. --- */

static NTSTATUS complete(PIRP Irp, NTSTATUS Status, ULONG_PTR Information)
{
    Irp->IoStatus.Status = Status;
    Irp->IoStatus.Information = Information;
    IoCompleteRequest(Irp, IO_NO_INCREMENT);
    return Status;
}

/* The counters run while somebody has the device, which is exclusive. */
static NTSTATUS NTAPI open_or_close(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    UNREFERENCED_PARAMETER(DeviceObject);
    KeIpiGenericCall(program, IoGetCurrentIrpStackLocation(Irp)->MajorFunction == IRP_MJ_CREATE);
    return complete(Irp, STATUS_SUCCESS, 0);
}

static NTSTATUS list(PIRP Irp, ULONG Room)
{
    COUNTERS_LIST *answer = Irp->AssociatedIrp.SystemBuffer;
    if (Room < sizeof *answer)
        return complete(Irp, STATUS_BUFFER_TOO_SMALL, 0);
    RtlZeroMemory(answer, sizeof *answer);
    answer->Count = COUNTERS_MAX;
    for (ULONG i = 0; i < COUNTERS_MAX; i++) {
        answer->Counters[i].Selector = i;
        RtlCopyMemory(answer->Counters[i].Name, events[i].Name, strlen(events[i].Name));
    }
    return complete(Irp, STATUS_SUCCESS, sizeof *answer);
}

static NTSTATUS read(PIRP Irp, ULONG Room)
{
    COUNTERS_VALUES *answer;
    KIRQL irql;
    if (Room < sizeof *answer)
        return complete(Irp, STATUS_BUFFER_TOO_SMALL, 0);
    answer = MmGetSystemAddressForMdlSafe(Irp->MdlAddress, NormalPagePriority);
    if (!answer)
        return complete(Irp, STATUS_INSUFFICIENT_RESOURCES, 0);
    KeRaiseIrql(DISPATCH_LEVEL, &irql); /* one processor for all of them */
    answer->Processor = KeGetCurrentProcessorNumber();
    answer->Count = COUNTERS_MAX;
    for (ULONG i = 0; i < COUNTERS_MAX; i++)
        answer->Values[i] = __rdpmc((int)i);
    KeLowerIrql(irql);
    return complete(Irp, STATUS_SUCCESS, sizeof *answer);
}

static NTSTATUS NTAPI control(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    PIO_STACK_LOCATION stack = IoGetCurrentIrpStackLocation(Irp);
    ULONG room = stack->Parameters.DeviceIoControl.OutputBufferLength;
    UNREFERENCED_PARAMETER(DeviceObject);
    switch (stack->Parameters.DeviceIoControl.IoControlCode) {
    case IOCTL_COUNTERS_LIST: return list(Irp, room);
    case IOCTL_COUNTERS_READ: return read(Irp, room);
    default: return complete(Irp, STATUS_INVALID_DEVICE_REQUEST, 0);
    }
}

/* --- The driver. --- */

static UNICODE_STRING device_name = RTL_CONSTANT_STRING(L"\\Device\\Counters");
static UNICODE_STRING link_name = RTL_CONSTANT_STRING(L"\\DosDevices\\Counters");

static VOID NTAPI unload(PDRIVER_OBJECT DriverObject)
{
    KeSetHardwareCounterConfiguration(NULL, 0);
    HalFreeHardwareCounters(counter_set);
    IoDeleteSymbolicLink(&link_name);
    IoDeleteDevice(DriverObject->DeviceObject);
}

static NTSTATUS make_device(PDRIVER_OBJECT DriverObject)
{
    PDEVICE_OBJECT device;
    NTSTATUS status =
        IoCreateDevice(DriverObject, 0, &device_name, FILE_DEVICE_UNKNOWN, 0, TRUE, &device);
    if (!NT_SUCCESS(status))
        return status;
    status = IoCreateSymbolicLink(&link_name, &device_name);
    if (!NT_SUCCESS(status))
        IoDeleteDevice(device);
    return status;
}

DRIVER_INITIALIZE DriverEntry;

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    NTSTATUS status;
    UNREFERENCED_PARAMETER(RegistryPath);
    find_processor();
    status = take_counters();
    if (!NT_SUCCESS(status)) {
        DbgPrint("HalAllocateHardwareCounters: 0x%08lx\n", status);
        return status;
    }
    status = configure();
    if (NT_SUCCESS(status))
        status = make_device(DriverObject);
    if (!NT_SUCCESS(status)) {
        KeSetHardwareCounterConfiguration(NULL, 0);
        HalFreeHardwareCounters(counter_set);
        return status;
    }
    DriverObject->DriverUnload = unload;
    DriverObject->MajorFunction[IRP_MJ_CREATE] = open_or_close;
    DriverObject->MajorFunction[IRP_MJ_CLOSE] = open_or_close;
    DriverObject->MajorFunction[IRP_MJ_DEVICE_CONTROL] = control;
    DbgPrint("%wZ counts on %lu processors\n", &DriverObject->DriverName,
             KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS));
    return STATUS_SUCCESS;
}
