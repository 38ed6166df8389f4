/* SPDX-License-Identifier: MIT */
/* Requests (IRPs) that drivers make, and devices that they find by name. Source: the Windows driver
 * documentation of each routine; "Bug Check 0xC9".
 *
 * An IRP of IoAllocateIrp is the driver's: its completion routine takes it back, by
 * STATUS_MORE_PROCESSING_REQUIRED, and IoFreeIrp frees it. One that IoBuild... made is the kernel's
 * once it is sent: its end fills the status block, sets the event, and frees it. NT: in its
 * thread's next APC; here where the last driver completes it, at DISPATCH_LEVEL too. */
#include "kernel/base/layout.h"
#include "kernel/base/string.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/io.h"
#include "kernel/driver/pool.h"
#include "kernel/driver/request.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/thread.h"

#define TAG ('p' << 16 | 'r' << 8 | 'I' | ' ' << 24)
#define STACK_MOST 127

/* --- The driver's own. --- */

static USHORT irp_size(CHAR depth)
{
    return (USHORT)(sizeof(IRP) + (size_t)depth * sizeof(IO_STACK_LOCATION));
}

static void init_irp(PIRP irp, USHORT size, CHAR depth)
{
    memset(irp, 0, size);
    irp->Type = IO_TYPE_IRP;
    irp->Size = size;
    irp->StackCount = depth;
    irp->CurrentLocation = (CHAR)(depth + 1);
    irp->Tail.Overlay.CurrentStackLocation = (PIO_STACK_LOCATION)(irp + 1) + depth;
    InitializeListHead(&irp->ThreadListEntry);
}

VOID IoInitializeIrp(PIRP Irp, USHORT PacketSize, CHAR StackSize)
{
    init_irp(Irp, PacketSize, StackSize);
}

/* NULL: no memory, or a StackSize below 1. */
PIRP IoAllocateIrp(CHAR StackSize, BOOLEAN ChargeQuota)
{
    (void)ChargeQuota;
    if (StackSize < 1 || StackSize >= STACK_MOST)
        return NULL;
    PIRP irp = pool_allocate_for(irp_size(StackSize), TAG);
    if (irp)
        init_irp(irp, irp_size(StackSize), StackSize);
    return irp;
}

/* As new, with this status; for one of IoAllocateIrp or IoInitializeIrp. */
VOID IoReuseIrp(PIRP Irp, NTSTATUS Status)
{
    irp_check(Irp, 0x01);
    init_irp(Irp, Irp->Size, Irp->StackCount);
    Irp->IoStatus.Status = Status;
}

VOID IoFreeIrp(PIRP Irp)
{
    irp_check(Irp, 0x01);
    if (Irp->AllocationFlags != IRP_OF_DRIVER)
        bug_check(DRIVER_VERIFIER_IOMANAGER_VIOLATION, (uint64_t[]){ 0x02, (uint64_t)Irp, 0, 0 },
                  "IoFreeIrp of an IRP that the I/O manager frees, a thread's");
    pool_free_for(Irp, TAG);
}

/* --- The kernel's. --- */

struct plan {
    UCHAR major;
    ULONG method;
    PVOID in, out;
    ULONG input, output;
};

static bool is_kernel_buffer(const void *buffer, uint64_t size)
{
    return !size || (uint64_t)buffer >= USER_END;
}

static bool give_buffers(struct built *b, const struct plan *p)
{
    ULONG size = p->method == METHOD_BUFFERED && p->output > p->input ? p->output : p->input;
    bool direct = p->method == METHOD_IN_DIRECT || p->method == METHOD_OUT_DIRECT;
    bool writes = p->major == IRP_MJ_WRITE && direct;
    PVOID described = writes ? p->in : p->out;
    ULONG length = writes ? p->input : p->output;
    b->irp.UserBuffer = p->major == IRP_MJ_WRITE ? p->in : p->out;
    if (p->method == METHOD_BUFFERED)
        b->output = p->out, b->length = p->output;
    if (p->method != METHOD_NEITHER && !writes && size) {
        b->buffer = pool_allocate(size);
        if (!b->buffer)
            return false;
        memcpy(b->buffer, p->in, p->input);
    }
    b->irp.AssociatedIrp.SystemBuffer = b->buffer;
    if (!direct || !length)
        return true;
    b->mdl = (MDL){ .Size = sizeof b->mdl,
                    .MdlFlags = MDL_MAPPED_TO_SYSTEM_VA | MDL_PAGES_LOCKED,
                    .MappedSystemVa = described,
                    .StartVa = (PVOID)((uint64_t)described & ~(uint64_t)(PAGE_SIZE - 1)),
                    .ByteCount = length,
                    .ByteOffset = (ULONG)((uint64_t)described % PAGE_SIZE) };
    b->irp.MdlAddress = &b->mdl;
    return true;
}

static struct built *build_irp(PDEVICE_OBJECT device, const struct plan *p, PKEVENT event,
                               PIO_STATUS_BLOCK block)
{
    const CHAR depth = device->StackSize;
    if (depth < 1 || depth >= STACK_MOST || !is_kernel_buffer(p->in, p->input) ||
        !is_kernel_buffer(p->out, p->output))
        return NULL;
    struct built *b = pool_allocate(sizeof *b - sizeof b->irp + irp_size(depth));
    if (!b)
        return NULL;
    init_irp(&b->irp, irp_size(depth), depth);
    b->irp.AllocationFlags = IRP_BUILT;
    b->irp.UserEvent = event;
    b->irp.UserIosb = block;
    b->irp.Tail.Overlay.Thread = &thread_current()->object.header;
    b->stack[depth - 1].MajorFunction = p->major;
    if (give_buffers(b, p))
        return b;
    pool_free(b);
    return NULL;
}

/* NULL: no memory, or buffers that are not the kernel's (NT: the caller's process' may be). */
PIRP IoBuildDeviceIoControlRequest(ULONG IoControlCode, PDEVICE_OBJECT DeviceObject,
                                   PVOID InputBuffer, ULONG InputBufferLength, PVOID OutputBuffer,
                                   ULONG OutputBufferLength, BOOLEAN InternalDeviceIoControl,
                                   PKEVENT Event, PIO_STATUS_BLOCK IoStatusBlock)
{
    const struct plan plan = { .major = InternalDeviceIoControl ? IRP_MJ_INTERNAL_DEVICE_CONTROL
                                                                : IRP_MJ_DEVICE_CONTROL,
                               .method = IoControlCode & 3,
                               .in = InputBuffer,
                               .out = OutputBuffer,
                               .input = InputBufferLength,
                               .output = OutputBufferLength };
    struct built *b = build_irp(DeviceObject, &plan, Event, IoStatusBlock);
    if (!b)
        return NULL;
    PIO_STACK_LOCATION stack = &b->stack[b->irp.StackCount - 1];
    stack->Parameters.DeviceIoControl.IoControlCode = IoControlCode;
    stack->Parameters.DeviceIoControl.InputBufferLength = InputBufferLength;
    stack->Parameters.DeviceIoControl.OutputBufferLength = OutputBufferLength;
    if (plan.method == METHOD_NEITHER)
        stack->Parameters.DeviceIoControl.Type3InputBuffer = InputBuffer;
    return &b->irp;
}

/* IRP_MJ_READ, IRP_MJ_WRITE, IRP_MJ_FLUSH_BUFFERS and IRP_MJ_SHUTDOWN; NULL: others, no memory, or
 * a buffer that is not the kernel's. StartingOffset may be NULL but for the first two. */
PIRP IoBuildSynchronousFsdRequest(ULONG MajorFunction, PDEVICE_OBJECT DeviceObject, PVOID Buffer,
                                  ULONG Length, PLARGE_INTEGER StartingOffset, PKEVENT Event,
                                  PIO_STATUS_BLOCK IoStatusBlock)
{
    const bool reads = MajorFunction == IRP_MJ_READ, writes = MajorFunction == IRP_MJ_WRITE;
    const ULONG flags = DeviceObject->Flags;
    const struct plan plan = { .major = (UCHAR)MajorFunction,
                               .method = flags & DO_BUFFERED_IO    ? METHOD_BUFFERED
                                         : !(flags & DO_DIRECT_IO) ? METHOD_NEITHER
                                         : reads                   ? METHOD_OUT_DIRECT
                                                                   : METHOD_IN_DIRECT,
                               .in = writes ? Buffer : NULL,
                               .out = reads ? Buffer : NULL,
                               .input = writes ? Length : 0,
                               .output = reads ? Length : 0 };
    if (!reads && !writes && MajorFunction != IRP_MJ_FLUSH_BUFFERS &&
        MajorFunction != IRP_MJ_SHUTDOWN)
        return NULL;
    struct built *b = build_irp(DeviceObject, &plan, Event, IoStatusBlock);
    if (!b)
        return NULL;
    PIO_STACK_LOCATION stack = &b->stack[b->irp.StackCount - 1];
    if (reads || writes) {
        stack->Parameters.Read.Length = Length;
        stack->Parameters.Read.ByteOffset = *StartingOffset;
    }
    return &b->irp;
}

/* --- Devices. --- */

/* Opens a device. *DeviceObject is the highest of its stack; ObDereferenceObject of *FileObject
 * closes it. Statuses of NtCreateFile. */
NTSTATUS IoGetDeviceObjectPointer(PUNICODE_STRING ObjectName, ACCESS_MASK DesiredAccess,
                                  PFILE_OBJECT *FileObject, PDEVICE_OBJECT *DeviceObject)
{
    struct thread *me = thread_current();
    NTSTATUS status;
    (void)DesiredAccess;
    me->trusted++;
    struct file *file = file_open(ObjectName, &status);
    me->trusted--;
    if (!file)
        return status;
    *FileObject = &file->file;
    *DeviceObject = device_top(file->file.DeviceObject);
    return STATUS_SUCCESS;
}

PDEVICE_OBJECT IoGetRelatedDeviceObject(PFILE_OBJECT FileObject)
{
    return device_top(FileObject->DeviceObject);
}
