/* SPDX-License-Identifier: MIT */
/* Devices for device.c: each way of passing buffers, requests that stay. */
#include <ntddk.h>
#include "device.h"

NTSYSAPI NTSTATUS NTAPI ZwCreateEvent(PHANDLE, ACCESS_MASK, POBJECT_ATTRIBUTES, EVENT_TYPE,
                                      BOOLEAN);

#define WAITING 4

static struct report report;
static PDEVICE_OBJECT plain, only;
static PIRP waiting[WAITING];
static KSPIN_LOCK lock;
static KTIMER timer;
static KDPC dpc;
static PIRP later;

static NTSTATUS end(PIRP Irp, NTSTATUS Status, ULONG_PTR Information)
{
    Irp->IoStatus.Status = Status;
    Irp->IoStatus.Information = Information;
    IoCompleteRequest(Irp, IO_NO_INCREMENT);
    return Status;
}

/* --- Requests that stay. --- */

static PIRP take(VOID)
{
    PIRP found = NULL;
    KIRQL irql;
    KeAcquireSpinLock(&lock, &irql);
    for (ULONG i = 0; i < WAITING && !found; i++) {
        found = waiting[i];
        waiting[i] = NULL;
    }
    KeReleaseSpinLock(&lock, irql);
    return found;
}

static NTSTATUS pend(PIRP Irp)
{
    KIRQL irql;
    ULONG i = 0;
    IoMarkIrpPending(Irp);
    KeAcquireSpinLock(&lock, &irql);
    while (waiting[i])
        i++;
    waiting[i] = Irp;
    KeReleaseSpinLock(&lock, irql);
    return STATUS_PENDING;
}

static ULONG finish(VOID)
{
    PIRP irp;
    ULONG n = 0;
    for (; (irp = take()); n++)
        end(irp, STATUS_SUCCESS, 0);
    return n;
}

static ULONG count(VOID)
{
    ULONG n = 0;
    for (ULONG i = 0; i < WAITING; i++)
        n += waiting[i] != NULL;
    return n;
}

static VOID NTAPI on_timer(PKDPC Dpc, PVOID Context, PVOID Argument1, PVOID Argument2)
{
    *(ULONG *)later->AssociatedIrp.SystemBuffer = 77;
    end(later, STATUS_SUCCESS, sizeof(ULONG));
}

static NTSTATUS start_timer(PIRP Irp)
{
    LARGE_INTEGER soon;
    soon.QuadPart = -20000;
    later = Irp;
    IoMarkIrpPending(Irp);
    KeSetTimer(&timer, soon, &dpc);
    return STATUS_PENDING;
}

/* --- Device control. --- */

/* A service takes a driver's pointers in a program's thread, too, which is no system thread. */
static NTSTATUS serve(PIRP Irp)
{
    HANDLE event;
    NTSTATUS status = ZwCreateEvent(&event, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE);
    if (NT_SUCCESS(status))
        status = ZwClose(event);
    if (PsTerminateSystemThread(STATUS_SUCCESS) != STATUS_INVALID_PARAMETER)
        status = STATUS_UNSUCCESSFUL;
    return end(Irp, Irp->RequestorMode == UserMode ? status : STATUS_PRIVILEGE_NOT_HELD, 0);
}

static NTSTATUS echo(PIRP Irp, ULONG Input, ULONG Output)
{
    UCHAR *bytes = Irp->AssociatedIrp.SystemBuffer, byte;
    for (ULONG i = 0; i < Input / 2; i++) {
        byte = bytes[i];
        bytes[i] = bytes[Input - 1 - i];
        bytes[Input - 1 - i] = byte;
    }
    return end(Irp, Input > Output ? STATUS_BUFFER_OVERFLOW : STATUS_SUCCESS, Input);
}

static NTSTATUS sum(PIRP Irp, ULONG Input)
{
    UCHAR *in = Irp->AssociatedIrp.SystemBuffer, *mapped;
    ULONG_PTR total = 0;
    for (ULONG i = 0; i < Input; i++)
        total += in[i];
    if (Irp->MdlAddress) {
        mapped = MmGetSystemAddressForMdlSafe(Irp->MdlAddress, NormalPagePriority);
        for (ULONG i = 0; i < MmGetMdlByteCount(Irp->MdlAddress); i++)
            total += mapped[i];
    }
    return end(Irp, STATUS_SUCCESS, total);
}

static NTSTATUS fill(PIRP Irp, ULONG Output)
{
    UCHAR *mapped = MmGetSystemAddressForMdlSafe(Irp->MdlAddress, NormalPagePriority);
    for (ULONG i = 0; i < Output; i++)
        mapped[i] = (UCHAR)(mapped[i] + *(UCHAR *)Irp->AssociatedIrp.SystemBuffer);
    return end(Irp, STATUS_SUCCESS, Output);
}

static volatile ULONG number;

/* In the program's half of the address space, for it to read and write. */
static NTSTATUS map_view(PIRP Irp)
{
    struct view *v = Irp->AssociatedIrp.SystemBuffer;
    UNICODE_STRING name = RTL_CONSTANT_STRING(L"\\Device\\PhysicalMemory");
    OBJECT_ATTRIBUTES attributes;
    PHYSICAL_ADDRESS at = MmGetPhysicalAddress((PVOID)&number), from = at;
    PVOID base = (PVOID)(ULONG_PTR)v->base;
    SIZE_T size = v->size;
    HANDLE section;
    InitializeObjectAttributes(&attributes, &name, OBJ_CASE_INSENSITIVE, NULL, NULL);
    if (v->unmap) {
        v->status = ZwUnmapViewOfSection(NtCurrentProcess(), base);
    } else {
        ZwOpenSection(&section, SECTION_MAP_READ | SECTION_MAP_WRITE, &attributes);
        v->status = ZwMapViewOfSection(section, NtCurrentProcess(), &base, 0, size, &from, &size,
                                       ViewUnmap, 0, PAGE_READWRITE);
        ZwClose(section);
    }
    v->base = (ULONG_PTR)base, v->size = size, v->at = at.QuadPart - from.QuadPart;
    v->number = number;
    return end(Irp, STATUS_SUCCESS, sizeof *v);
}

static NTSTATUS control(PIRP Irp, PIO_STACK_LOCATION Stack)
{
    ULONG input = Stack->Parameters.DeviceIoControl.InputBufferLength;
    ULONG output = Stack->Parameters.DeviceIoControl.OutputBufferLength;
    const struct end *given = Irp->AssociatedIrp.SystemBuffer;
    switch (Stack->Parameters.DeviceIoControl.IoControlCode) {
    case ECHO: return echo(Irp, input, output);
    case SUM: return sum(Irp, input);
    case FILL: return fill(Irp, output);
    case END_WITH:
        RtlFillMemory((UCHAR *)Irp->AssociatedIrp.SystemBuffer + sizeof *given,
                      output - sizeof *given, 0x5a);
        return end(Irp, given->status, given->information);
    case PEND: return pend(Irp);
    case FINISH: return end(Irp, STATUS_SUCCESS, finish());
    case LATER: return start_timer(Irp);
    case REPORT:
        *(struct report *)Irp->AssociatedIrp.SystemBuffer = report;
        return end(Irp, STATUS_SUCCESS, sizeof report);
    case PENDS: return end(Irp, STATUS_SUCCESS, count());
    case SERVES: return serve(Irp);
    case VIEW: return map_view(Irp);
    case WANTS_READ:
    case WANTS_WRITE: return end(Irp, STATUS_SUCCESS, 0);
    default: return end(Irp, STATUS_INVALID_DEVICE_REQUEST, 0);
    }
}

/* --- The driver. --- */

static NTSTATUS NTAPI dispatch(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    PIO_STACK_LOCATION stack = IoGetCurrentIrpStackLocation(Irp);
    switch (stack->MajorFunction) {
    case IRP_MJ_CREATE:
        if (stack->FileObject->FileName.Length == 2 * sizeof(WCHAR)) /* \x */
            return end(Irp, STATUS_DEVICE_BUSY, 0);
        report.opened++;
        return end(Irp, STATUS_SUCCESS, 0);
    case IRP_MJ_CLEANUP: report.cleaned++; return end(Irp, STATUS_SUCCESS, 0);
    case IRP_MJ_CLOSE: report.closed++; return end(Irp, STATUS_SUCCESS, 0);
    case IRP_MJ_DEVICE_CONTROL: return control(Irp, stack);
    default: return end(Irp, STATUS_SUCCESS, 0); /* nobody asks */
    }
}

static const struct {
    const WCHAR *Name, *Link;
    PDEVICE_OBJECT *Device;
    BOOLEAN Exclusive;
} devices[] = {
    { L"\\Device\\Plain", L"\\??\\Plain", &plain, FALSE },
    { L"\\Device\\Only", L"\\??\\Only", &only, TRUE },
};
#define DEVICES (sizeof devices / sizeof devices[0])

static VOID NTAPI on_process(HANDLE ParentId, HANDLE ProcessId, BOOLEAN Create)
{
    report.processes += Create && ProcessId;
}

static VOID NTAPI on_thread(HANDLE ProcessId, HANDLE ThreadId, BOOLEAN Create)
{
    report.threads += Create && ProcessId && ThreadId;
}

static VOID NTAPI unload(PDRIVER_OBJECT DriverObject)
{
    UNICODE_STRING link;
    PsSetCreateProcessNotifyRoutine(on_process, TRUE);
    PsRemoveCreateThreadNotifyRoutine(on_thread);
    DbgPrint("%lu still waited\n", finish());
    for (ULONG i = 0; i < DEVICES; i++) {
        RtlInitUnicodeString(&link, devices[i].Link);
        IoDeleteSymbolicLink(&link);
        IoDeleteDevice(*devices[i].Device);
    }
}

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    UNICODE_STRING name, link;
    DriverObject->DriverUnload = unload;
    KeInitializeSpinLock(&lock);
    KeInitializeDpc(&dpc, on_timer, NULL);
    KeInitializeTimer(&timer);
    PsSetCreateProcessNotifyRoutine(on_process, FALSE);
    PsSetCreateThreadNotifyRoutine(on_thread);
    for (ULONG i = 0; i <= IRP_MJ_MAXIMUM_FUNCTION; i++)
        DriverObject->MajorFunction[i] = dispatch;
    for (ULONG i = 0; i < DEVICES; i++) {
        RtlInitUnicodeString(&name, devices[i].Name);
        NTSTATUS status = IoCreateDevice(DriverObject, 0, &name, FILE_DEVICE_UNKNOWN, 0,
                                         devices[i].Exclusive, devices[i].Device);
        if (!NT_SUCCESS(status))
            return status;
        RtlInitUnicodeString(&link, devices[i].Link);
        IoCreateSymbolicLink(&link, &name);
    }
    return STATUS_SUCCESS;
}
