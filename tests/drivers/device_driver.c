/* SPDX-License-Identifier: MIT */
/* Devices for device.c: each way of passing buffers, requests that stay, one driver above another.
 */
#include <ntddk.h>
#include "device.h"

NTSYSAPI NTSTATUS NTAPI ZwCreateEvent(PHANDLE, ACCESS_MASK, POBJECT_ATTRIBUTES, EVENT_TYPE,
                                      BOOLEAN);

#define WAITING 4

static struct report report;
static PDEVICE_OBJECT plain, direct, neither, lower, upper, only;
static PIRP waiting[WAITING];
static KSPIN_LOCK lock;
static KTIMER timer;
static KDPC dpc;
static PIRP later;
static UCHAR store[STORE_SIZE];

static NTSTATUS end(PIRP Irp, NTSTATUS Status, ULONG_PTR Information)
{
    Irp->IoStatus.Status = Status;
    Irp->IoStatus.Information = Information;
    IoCompleteRequest(Irp, IO_NO_INCREMENT);
    return Status;
}

/* --- Requests that stay. --- */

static PIRP take(PIRP Irp)
{
    PIRP found = NULL;
    KIRQL irql;
    KeAcquireSpinLock(&lock, &irql);
    for (ULONG i = 0; i < WAITING && !found; i++)
        if (waiting[i] && (!Irp || waiting[i] == Irp)) {
            found = waiting[i];
            waiting[i] = NULL;
        }
    KeReleaseSpinLock(&lock, irql);
    return found;
}

static VOID NTAPI cancel(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    IoReleaseCancelSpinLock(Irp->CancelIrql);
    report.cancelled += Irp->Cancel;
    if (take(Irp))
        end(Irp, STATUS_CANCELLED, 0);
}

static NTSTATUS pend(PIRP Irp, PDRIVER_CANCEL Routine)
{
    KIRQL irql;
    ULONG i = 0;
    IoMarkIrpPending(Irp);
    if (Routine)
        (void)IoSetCancelRoutine(Irp, Routine);
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
    while ((irp = take(NULL))) {
        (void)IoSetCancelRoutine(irp, NULL);
        end(irp, STATUS_SUCCESS, 0);
        n++;
    }
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
    case COPY:
        RtlCopyMemory(Irp->UserBuffer, Stack->Parameters.DeviceIoControl.Type3InputBuffer, input);
        return end(Irp, STATUS_SUCCESS, input);
    case END_WITH:
        RtlFillMemory((UCHAR *)Irp->AssociatedIrp.SystemBuffer + sizeof *given,
                      output - sizeof *given, 0x5a);
        return end(Irp, given->status, given->information);
    case PEND: return pend(Irp, cancel);
    case PEND_DEAF: return pend(Irp, NULL);
    case FINISH: return end(Irp, STATUS_SUCCESS, finish());
    case LATER: return start_timer(Irp);
    case REPORT:
        *(struct report *)Irp->AssociatedIrp.SystemBuffer = report;
        return end(Irp, STATUS_SUCCESS, sizeof report);
    case PENDS: return end(Irp, STATUS_SUCCESS, count());
    case SERVES: return serve(Irp);
    case VIEW: return map_view(Irp);
    case TWICE:
    case WANTS_READ:
    case WANTS_WRITE: return end(Irp, STATUS_SUCCESS, 0);
    default: return end(Irp, STATUS_INVALID_DEVICE_REQUEST, 0);
    }
}

/* --- Reading and writing a store of 64 bytes. --- */

static UCHAR *memory_of(PDEVICE_OBJECT Device, PIRP Irp)
{
    if (Device == direct)
        return MmGetSystemAddressForMdlSafe(Irp->MdlAddress, NormalPagePriority);
    return Device == neither ? Irp->UserBuffer : Irp->AssociatedIrp.SystemBuffer;
}

static NTSTATUS transfer(PDEVICE_OBJECT Device, PIRP Irp, PIO_STACK_LOCATION Stack)
{
    BOOLEAN reads = Stack->MajorFunction == IRP_MJ_READ;
    LONGLONG at = reads ? Stack->Parameters.Read.ByteOffset.QuadPart
                        : Stack->Parameters.Write.ByteOffset.QuadPart;
    ULONG length = reads ? Stack->Parameters.Read.Length : Stack->Parameters.Write.Length;
    if (ExGetPreviousMode() != Irp->RequestorMode)
        return end(Irp, STATUS_INVALID_DEVICE_STATE, 0);
    if (at < 0)
        at = STORE_SIZE; /* at the end */
    if (at == WARNS && reads)
        return end(Irp, STATUS_BUFFER_OVERFLOW, 0);
    if (at >= STORE_SIZE)
        return end(Irp, reads ? STATUS_END_OF_FILE : STATUS_DISK_FULL, 0);
    if (length > STORE_SIZE - at)
        length = (ULONG)(STORE_SIZE - at);
    if (length && reads)
        RtlCopyMemory(memory_of(Device, Irp), store + at, length);
    else if (length)
        RtlCopyMemory(store + at, memory_of(Device, Irp), length);
    return end(Irp, STATUS_SUCCESS, length);
}

/* --- One above another. --- */

static NTSTATUS NTAPI on_completion(PDEVICE_OBJECT DeviceObject, PIRP Irp, PVOID Context)
{
    if (DeviceObject == upper && Context == &report)
        report.above++;
    if (Irp->PendingReturned) {
        report.pending++;
        IoMarkIrpPending(Irp);
    }
    return STATUS_SUCCESS;
}

static NTSTATUS NTAPI take_back(PDEVICE_OBJECT DeviceObject, PIRP Irp, PVOID Context)
{
    KeSetEvent(Context, IO_NO_INCREMENT, FALSE);
    return STATUS_MORE_PROCESSING_REQUIRED;
}

static NTSTATUS pass(PIRP Irp, PIO_STACK_LOCATION Stack)
{
    KEVENT event;
    if (Stack->MajorFunction != IRP_MJ_DEVICE_CONTROL) {
        IoSkipCurrentIrpStackLocation(Irp);
        return IoCallDriver(lower, Irp);
    }
    IoCopyCurrentIrpStackLocationToNext(Irp);
    if (Stack->Parameters.DeviceIoControl.IoControlCode != TWICE) {
        IoSetCompletionRoutine(Irp, on_completion, &report, TRUE, TRUE, TRUE);
        return IoCallDriver(lower, Irp);
    }
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    IoSetCompletionRoutine(Irp, take_back, &event, TRUE, TRUE, TRUE);
    IoCallDriver(lower, Irp);
    KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL);
    return end(Irp, STATUS_SUCCESS, Irp->IoStatus.Information + 5);
}

/* --- The driver. --- */

static NTSTATUS NTAPI dispatch(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    PIO_STACK_LOCATION stack = IoGetCurrentIrpStackLocation(Irp);
    if (DeviceObject == upper)
        return pass(Irp, stack);
    switch (stack->MajorFunction) {
    case IRP_MJ_CREATE:
        if (stack->FileObject->FileName.Length == 2 * sizeof(WCHAR)) /* \x */
            return end(Irp, STATUS_DEVICE_BUSY, 0);
        report.opened++;
        return end(Irp, STATUS_SUCCESS, 0);
    case IRP_MJ_CLEANUP: report.cleaned++; return end(Irp, STATUS_SUCCESS, 0);
    case IRP_MJ_CLOSE: report.closed++; return end(Irp, STATUS_SUCCESS, 0);
    case IRP_MJ_DEVICE_CONTROL: return control(Irp, stack);
    default: return transfer(DeviceObject, Irp, stack);
    }
}

static const struct {
    const WCHAR *Name, *Link;
    PDEVICE_OBJECT *Device;
    ULONG Flags;
    BOOLEAN Exclusive;
} devices[] = {
    { L"\\Device\\Plain", L"\\??\\Plain", &plain, DO_BUFFERED_IO, FALSE },
    { L"\\Device\\Direct", L"\\??\\Direct", &direct, DO_DIRECT_IO, FALSE },
    { L"\\Device\\Neither", L"\\??\\Neither", &neither, 0, FALSE },
    { L"\\Device\\Lower", L"\\??\\Lower", &lower, 0, FALSE },
    { L"\\Device\\Upper", NULL, &upper, 0, FALSE },
    { L"\\Device\\Only", L"\\??\\Only", &only, 0, TRUE },
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
    IoDetachDevice(lower);
    for (ULONG i = 0; i < DEVICES; i++) {
        if (devices[i].Link) {
            RtlInitUnicodeString(&link, devices[i].Link);
            IoDeleteSymbolicLink(&link);
        }
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
        (*devices[i].Device)->Flags |= devices[i].Flags;
        if (!devices[i].Link)
            continue;
        RtlInitUnicodeString(&link, devices[i].Link);
        IoCreateSymbolicLink(&link, &name);
    }
    return IoAttachDeviceToDeviceStack(upper, lower) == lower && upper->StackSize == 2
               ? STATUS_SUCCESS
               : STATUS_UNSUCCESSFUL;
}
