/* SPDX-License-Identifier: MIT */
/* A driver that calls another one, device_driver.c: IRPs that it makes in each way, sends, takes
 * back, cancels. */
#include "check_driver.h"
#include "device.h"

#define USER_ADDRESS ((PVOID)0x10000)

static PFILE_OBJECT file;
static PDEVICE_OBJECT device;

static NTSTATUS open_by(PCWSTR Name)
{
    UNICODE_STRING name;
    RtlInitUnicodeString(&name, Name);
    return IoGetDeviceObjectPointer(&name, FILE_READ_DATA, &file, &device);
}

/* --- IRPs that end by themselves. --- */

static NTSTATUS send(PIRP Irp, PKEVENT Event)
{
    NTSTATUS status = IoCallDriver(device, Irp);
    if (status == STATUS_PENDING)
        KeWaitForSingleObject(Event, Executive, KernelMode, FALSE, NULL);
    return status;
}

static NTSTATUS control(ULONG Code, PVOID In, ULONG Input, PVOID Out, ULONG Output,
                        PIO_STATUS_BLOCK Block)
{
    KEVENT event;
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    PIRP irp =
        IoBuildDeviceIoControlRequest(Code, device, In, Input, Out, Output, FALSE, &event, Block);
    if (!irp)
        return STATUS_NO_MEMORY;
    NTSTATUS status = send(irp, &event);
    IS(KeReadStateEvent(&event), TRUE);
    return status;
}

static VOID check_control(VOID)
{
    IO_STATUS_BLOCK block = { .Information = 0 };
    char text[4] = "abc", out[8] = "1234567";
    ULONG value = 0;
    struct end end = { STATUS_DISK_FULL, 8 };
    IS(control(ECHO, text, 3, out, 8, &block), STATUS_SUCCESS);
    IS(block.Status, STATUS_SUCCESS);
    IS(block.Information, 3);
    IS(RtlCompareMemory(out, "cba4567", 8), 8);
    IS(control(LATER, NULL, 0, &value, sizeof value, &block), STATUS_PENDING); /* by a DPC */
    IS(block.Status, STATUS_SUCCESS);
    IS(value, 77);
    IS(control(SUM, text, 2, "\1\2", 2, &block), STATUS_SUCCESS);
    IS(block.Information, 'a' + 'b' + 1 + 2);
    IS(control(FILL, "\5", 1, out, 4, &block), STATUS_SUCCESS);
    IS(RtlCompareMemory(out, "hgf9567", 8), 8);
    IS(control(COPY, "neither", 8, out, 8, &block), STATUS_SUCCESS);
    IS(RtlCompareMemory(out, "neither", 8), 8);
    IS(control(END_WITH, &end, sizeof end, out, 8, &block), STATUS_DISK_FULL);
    IS(block.Status, STATUS_DISK_FULL);
    IS(RtlCompareMemory(out, "neither", 8), 8); /* not after an error */
    IS(control(ECHO, USER_ADDRESS, 1, out, 8, &block), STATUS_NO_MEMORY);
    IS(control(ECHO, text, 1, USER_ADDRESS, 8, &block), STATUS_NO_MEMORY);
}

static NTSTATUS transfer(ULONG Major, PVOID Buffer, ULONG Length, LONGLONG Offset,
                         PIO_STATUS_BLOCK Block)
{
    KEVENT event;
    LARGE_INTEGER at = { .QuadPart = Offset };
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    PIRP irp = IoBuildSynchronousFsdRequest(Major, device, Buffer, Length, &at, &event, Block);
    IS(irp && irp->MdlAddress, irp && Length && device->Flags & DO_DIRECT_IO);
    return irp ? send(irp, &event) : STATUS_NO_MEMORY;
}

static VOID check_transfer(PCWSTR Name)
{
    IO_STATUS_BLOCK block = { .Information = 0 };
    char back[6] = "";
    IS(open_by(Name), STATUS_SUCCESS);
    IS(transfer(IRP_MJ_WRITE, "01234", 5, 7, &block), STATUS_SUCCESS);
    IS(block.Information, 5);
    IS(transfer(IRP_MJ_READ, back, 3, 8, &block), STATUS_SUCCESS);
    IS(RtlCompareMemory(back, "123\0", 5), 5);
    IS(transfer(IRP_MJ_READ, back, 3, STORE_SIZE, &block), STATUS_END_OF_FILE);
    IS(transfer(IRP_MJ_FLUSH_BUFFERS, NULL, 0, 0, &block), STATUS_SUCCESS);
    IS(transfer(IRP_MJ_CREATE, NULL, 0, 0, &block), STATUS_NO_MEMORY);
    IS(transfer(IRP_MJ_WRITE, USER_ADDRESS, 5, 7, &block), STATUS_NO_MEMORY);
    ObDereferenceObject(file);
}

/* --- IRPs of its own. --- */

static struct {
    KEVENT ended;
    PDEVICE_OBJECT device;
    PVOID context;
    NTSTATUS status;
    ULONG_PTR information;
    BOOLEAN pending;
} seen;

static NTSTATUS NTAPI on_end(PDEVICE_OBJECT DeviceObject, PIRP Irp, PVOID Context)
{
    seen.device = DeviceObject;
    seen.context = Context;
    seen.status = Irp->IoStatus.Status;
    seen.information = Irp->IoStatus.Information;
    seen.pending = Irp->PendingReturned;
    KeSetEvent(&seen.ended, IO_NO_INCREMENT, FALSE);
    return STATUS_MORE_PROCESSING_REQUIRED;
}

static NTSTATUS call(PIRP Irp, ULONG Code, PVOID Buffer, ULONG Length)
{
    PIO_STACK_LOCATION next = IoGetNextIrpStackLocation(Irp);
    next->MajorFunction = IRP_MJ_DEVICE_CONTROL;
    next->Parameters.DeviceIoControl.IoControlCode = Code;
    next->Parameters.DeviceIoControl.InputBufferLength = Length;
    next->Parameters.DeviceIoControl.OutputBufferLength = Length;
    Irp->AssociatedIrp.SystemBuffer = Buffer;
    KeInitializeEvent(&seen.ended, NotificationEvent, FALSE);
    seen.device = device;
    IoSetCompletionRoutine(Irp, on_end, &seen, TRUE, TRUE, TRUE);
    return IoCallDriver(device, Irp);
}

static VOID check_own(VOID)
{
    char text[5] = "wxyz";
    ULONG value = 0;
    IS(IoAllocateIrp(0, FALSE), NULL);
    PIRP irp = IoAllocateIrp(device->StackSize, FALSE);
    IS(irp->StackCount, device->StackSize);
    IS(irp->CurrentLocation, device->StackSize + 1);
    IS(call(irp, ECHO, text, 4), STATUS_SUCCESS);
    IS(KeReadStateEvent(&seen.ended), TRUE);
    IS(seen.device, NULL); /* it has no place in the IRP */
    IS(seen.context, &seen);
    IS(seen.information, 4);
    IS(RtlCompareMemory(text, "zyxw", 5), 5);
    for (ULONG i = 0; i < 2; i++) { /* again and again */
        IoReuseIrp(irp, STATUS_UNSUCCESSFUL);
        IS(irp->IoStatus.Status, STATUS_UNSUCCESSFUL);
        IS(irp->CurrentLocation, device->StackSize + 1);
        IS(call(irp, LATER, &value, sizeof value), STATUS_PENDING);
        KeWaitForSingleObject(&seen.ended, Executive, KernelMode, FALSE, NULL);
        IS(seen.pending, TRUE);
        IS(value, 77);
        value = 0;
    }
    IoReuseIrp(irp, STATUS_SUCCESS);
    IS(call(irp, PEND, NULL, 0), STATUS_PENDING);
    IS(KeReadStateEvent(&seen.ended), FALSE);
    IS(IoCancelIrp(irp), TRUE);
    KeWaitForSingleObject(&seen.ended, Executive, KernelMode, FALSE, NULL);
    IS(seen.status, STATUS_CANCELLED);
    IS(IoCancelIrp(irp), FALSE);
    IoFreeIrp(irp);
}

/* In memory of the driver's own, with a place for itself. */
static VOID check_initialized(VOID)
{
    USHORT size = IoSizeOfIrp(device->StackSize + 1);
    PIRP irp = ExAllocatePoolWithTag(NonPagedPool, size, 'nwoT');
    char text[3] = "pq";
    IoInitializeIrp(irp, size, (CCHAR)(device->StackSize + 1));
    IoSetNextIrpStackLocation(irp);
    IoGetCurrentIrpStackLocation(irp)->DeviceObject = device;
    IS(call(irp, ECHO, text, 2), STATUS_SUCCESS);
    IS(seen.device, device);
    IS(text[0], 'q');
    ExFreePoolWithTag(irp, 'nwoT');
}

/* --- Files. --- */

static VOID check_files(VOID)
{
    struct report before, after;
    IO_STATUS_BLOCK block;
    IS(open_by(L"\\Device\\None"), STATUS_OBJECT_NAME_NOT_FOUND);
    IS(open_by(L"\\Device\\Plain\\x"), STATUS_DEVICE_BUSY);
    IS(open_by(L"\\??\\Lower"), STATUS_SUCCESS);
    IS(device->StackSize, 2); /* the highest of the stack */
    IS(device != file->DeviceObject, TRUE);
    IS(IoGetRelatedDeviceObject(file), device);
    check_own();
    check_initialized();
    ObDereferenceObject(file);
    IS(open_by(L"\\Device\\Plain"), STATUS_SUCCESS);
    IS(device, file->DeviceObject);
    ObReferenceObject(file);
    ObDereferenceObject(file);
    IS(control(REPORT, NULL, 0, &before, sizeof before, &block), STATUS_SUCCESS);
    PFILE_OBJECT first = file;
    IS(open_by(L"\\Device\\Plain"), STATUS_SUCCESS);
    IS(file != first, TRUE);
    ObDereferenceObject(first);
    IS(control(REPORT, NULL, 0, &after, sizeof after, &block), STATUS_SUCCESS);
    IS(after.opened - before.opened, 1);
    IS(after.closed - before.closed, 1);
    check_control();
    check_own();
    ObDereferenceObject(file);
}

static VOID NTAPI nothing(PVOID Context, PIO_STATUS_BLOCK Block, ULONG Reserved) {}

static VOID check_handle(VOID)
{
    UNICODE_STRING name = RTL_CONSTANT_STRING(L"\\Device\\Plain");
    OBJECT_ATTRIBUTES attributes;
    IO_STATUS_BLOCK block;
    LARGE_INTEGER at = { .QuadPart = 0 };
    HANDLE handle;
    char byte;
    InitializeObjectAttributes(&attributes, &name, 0, NULL, NULL);
    IS(ZwCreateFile(&handle, GENERIC_READ, &attributes, &block, NULL, 0, 0, FILE_OPEN, 0, NULL, 0),
       STATUS_SUCCESS);
    IS(ObReferenceObjectByHandle(handle, FILE_READ_DATA, NULL, KernelMode, (PVOID *)&file, NULL),
       STATUS_SUCCESS);
    device = IoGetRelatedDeviceObject(file);
    check_own();
    ObDereferenceObject(file);
    IS(ZwReadFile(handle, NULL, nothing, NULL, &block, &byte, 1, &at, NULL), STATUS_NOT_SUPPORTED);
    ZwClose(handle);
}

static VOID NTAPI unload(PDRIVER_OBJECT DriverObject) {}

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    DriverObject->DriverUnload = unload;
    check_files();
    check_transfer(L"\\Device\\Plain");
    check_transfer(L"\\Device\\Direct");
    check_transfer(L"\\Device\\Neither");
    check_handle();
    return check_result();
}
