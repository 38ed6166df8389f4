/* SPDX-License-Identifier: MIT */
/* Files and requests. Each request is its thread's own until the driver completes it. */
#include "kernel/driver/io.h"
#include "kernel/base/assert.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/pool.h"
#include "kernel/ke/caller.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/synchronization.h"
#include "kernel/ke/thread.h"

#define NAME_MAX 255u
#define IO_BUFFER_MAX (16u << 20) /* NT: as much as there is nonpaged pool */
#define FILE_READ_DATA 1u
#define FILE_WRITE_DATA 2u

struct file {
    struct object object;
    FILE_OBJECT file;
    bool opened; /* the driver knows it */
};

struct request {
    KEVENT done;
    uint32_t completed; /* atomic */
    IRP irp;
    IO_STACK_LOCATION stack;
};

/* --- Requests. --- */

static struct request *make_request(struct file *file, UCHAR major)
{
    struct request *r = pool_allocate(sizeof *r);
    if (!r)
        return NULL;
    KeInitializeEvent(&r->done, NotificationEvent, FALSE);
    r->irp = (IRP){ .Type = 6, .Size = sizeof r->irp, .StackCount = 1, .CurrentLocation = 1,
                    .RequestorMode = thread_current()->process && !thread_current()->trusted ? UserMode : KernelMode };
    r->irp.Tail.Overlay.Thread = &thread_current()->object.header;
    r->irp.Tail.Overlay.CurrentStackLocation = &r->stack;
    r->irp.Tail.Overlay.OriginalFileObject = &file->file;
    r->stack = (IO_STACK_LOCATION){ .MajorFunction = major, .DeviceObject = file->file.DeviceObject,
                                    .FileObject = &file->file };
    return r;
}

/* As the driver completes it, at once or later. */
static NTSTATUS send(struct request *r)
{
    PDEVICE_OBJECT device = r->stack.DeviceObject;
    PDRIVER_DISPATCH dispatch = device->DriverObject->MajorFunction[r->stack.MajorFunction];
    struct driver_visit visit;
    driver_enter(&visit, dispatch);
    NTSTATUS status = dispatch(device, &r->irp);
    driver_leave(&visit);
    if (status == STATUS_PENDING)
        KeWaitForSingleObject(&r->done, Executive, KernelMode, FALSE, NULL);
    else if (!__atomic_load_n(&r->completed, __ATOMIC_ACQUIRE))
        bug_check(DRIVER_VERIFIER_IOMANAGER_VIOLATION, (uint64_t[]){ 0x210, (uint64_t)&r->irp, (uint32_t)status, 0 },
                  (uint64_t)dispatch, "it returned a status, not STATUS_PENDING, and did not complete the IRP");
    return r->irp.IoStatus.Status;
}

VOID driver_IofCompleteRequest(uint64_t where, PIRP Irp, CHAR PriorityBoost)
{
    struct request *r = CONTAINING_RECORD(Irp, struct request, irp);
    (void)PriorityBoost;
    if (__atomic_exchange_n(&r->completed, 1, __ATOMIC_ACQ_REL))
        bug_check(MULTIPLE_IRP_COMPLETE_REQUESTS, (uint64_t[]){ (uint64_t)Irp, 0, 0, 0 }, where, "");
    if (Irp->IoStatus.Status == STATUS_PENDING)
        bug_check(DRIVER_VERIFIER_IOMANAGER_VIOLATION, (uint64_t[]){ 0x06, (uint64_t)Irp, 0x103, 0 }, where,
                  "an IRP completed with STATUS_PENDING");
    KeSetEvent(&r->done, 0, FALSE);
}

NTAPI NTSTATUS driver_default_dispatch(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    (void)DeviceObject;
    Irp->IoStatus = (IO_STATUS_BLOCK){ .Status = STATUS_INVALID_DEVICE_REQUEST };
    driver_IofCompleteRequest(0, Irp, 0);
    return STATUS_INVALID_DEVICE_REQUEST;
}

/* --- Files. --- */

static NTSTATUS simple(struct file *file, UCHAR major)
{
    struct request *r = make_request(file, major);
    NTSTATUS status = r ? send(r) : STATUS_INSUFFICIENT_RESOURCES;
    if (r)
        pool_free(r);
    return status;
}

/* NT: cleanup comes with the last handle, close with the last reference; here both with the latter. */
static void destroy(struct object *object)
{
    struct file *file = CONTAINING_RECORD(object, struct file, object);
    if (file->opened) {
        if (file->file.DeviceObject->DriverObject->MajorFunction[IRP_MJ_CLEANUP] != driver_default_dispatch)
            simple(file, IRP_MJ_CLEANUP);
        simple(file, IRP_MJ_CLOSE);
    }
    device_close(file->file.DeviceObject);
    if (file->file.FileName.Buffer)
        pool_free(file->file.FileName.Buffer);
    pool_free(file);
}

static const struct object_type file_type = {
    .name = "File", .destroy = destroy, .read = 0x120089, .write = 0x120116, .execute = 0x1200a0, .all = 0x1f01ff
};

static NTSTATUS get_name(POBJECT_ATTRIBUTES attributes, UNICODE_STRING *name, WCHAR *buffer)
{
    OBJECT_ATTRIBUTES a;
    NTSTATUS status = caller_get(&a, attributes, sizeof a);
    if (NT_SUCCESS(status) && a.Length != sizeof a)
        status = STATUS_INVALID_PARAMETER;
    if (NT_SUCCESS(status) && !a.ObjectName)
        status = STATUS_OBJECT_NAME_INVALID;
    if (NT_SUCCESS(status))
        status = caller_get(name, a.ObjectName, sizeof *name);
    if (NT_SUCCESS(status) && (!name->Length || name->Length % 2 || name->Length > NAME_MAX * sizeof(WCHAR)))
        status = STATUS_OBJECT_NAME_INVALID;
    if (NT_SUCCESS(status))
        status = caller_get(buffer, name->Buffer, name->Length);
    name->Buffer = buffer;
    return status;
}

static struct file *make_file(PDEVICE_OBJECT device, const UNICODE_STRING *rest)
{
    struct file *file = pool_allocate(sizeof *file);
    if (!file)
        return NULL;
    object_init(&file->object, &file_type, EventNotificationObject, 1);
    file->file = (FILE_OBJECT){ .Type = 5, .Size = sizeof file->file, .DeviceObject = device };
    if (rest->Length) {
        WCHAR *copy = pool_allocate(rest->Length);
        if (!copy) {
            pool_free(file);
            return NULL;
        }
        memcpy(copy, rest->Buffer, rest->Length);
        file->file.FileName = (UNICODE_STRING){ rest->Length, rest->Length, copy };
    }
    return file;
}

static NTSTATUS open_device(PDEVICE_OBJECT device, const UNICODE_STRING *rest, ACCESS_MASK access, PHANDLE result)
{
    HANDLE handle = NULL;
    struct file *file = make_file(device, rest);
    if (!file) {
        device_close(device);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    NTSTATUS status = simple(file, IRP_MJ_CREATE);
    file->opened = NT_SUCCESS(status);
    if (NT_SUCCESS(status))
        status = handle_create(&file->object, access, &handle);
    if (NT_SUCCESS(status)) {
        status = caller_put(result, &handle, sizeof handle);
        if (!NT_SUCCESS(status))
            handle_close(handle);
    }
    object_release(&file->object);
    return status;
}

NTSTATUS NtCreateFile(PHANDLE FileHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                      PIO_STATUS_BLOCK IoStatusBlock, PLARGE_INTEGER AllocationSize, ULONG FileAttributes,
                      ULONG ShareAccess, ULONG CreateDisposition, ULONG CreateOptions, PVOID EaBuffer, ULONG EaLength)
{
    WCHAR buffer[NAME_MAX];
    UNICODE_STRING name, rest;
    IO_STATUS_BLOCK block = { .Information = 1 }; /* FILE_OPENED */
    (void)AllocationSize, (void)FileAttributes, (void)ShareAccess, (void)CreateDisposition, (void)CreateOptions;
    (void)EaBuffer, (void)EaLength;
    NTSTATUS status = caller_probe_handle(FileHandle);
    if (NT_SUCCESS(status))
        status = get_name(ObjectAttributes, &name, buffer);
    if (!NT_SUCCESS(status))
        return status;
    PDEVICE_OBJECT device = device_open(&name, &rest, &status);
    if (!device)
        return status;
    status = open_device(device, &rest, DesiredAccess, FileHandle);
    if (NT_SUCCESS(status))
        caller_put_optional(IoStatusBlock, &block, sizeof block);
    return status;
}

/* --- Device control. --- */

struct control {
    ULONG code, input, output;
    PVOID in, out;
    PVOID buffer, direct; /* pool, or NULL */
    MDL mdl;
};

static NTSTATUS get_buffered(struct control *c)
{
    ULONG size = c->input > c->output ? c->input : c->output;
    if (!size)
        return STATUS_SUCCESS;
    c->buffer = pool_allocate(size);
    return c->buffer ? caller_get(c->buffer, c->in, c->input) : STATUS_INSUFFICIENT_RESOURCES;
}

static NTSTATUS get_direct(struct control *c)
{
    NTSTATUS status = STATUS_SUCCESS;
    if (c->input) {
        c->buffer = pool_allocate(c->input);
        status = c->buffer ? caller_get(c->buffer, c->in, c->input) : STATUS_INSUFFICIENT_RESOURCES;
    }
    if (!NT_SUCCESS(status) || !c->output)
        return status;
    c->direct = pool_allocate(c->output);
    if (!c->direct)
        return STATUS_INSUFFICIENT_RESOURCES;
    uint64_t at = (uint64_t)c->direct;
    c->mdl = (MDL){ .Size = sizeof c->mdl, .MdlFlags = MDL_MAPPED_TO_SYSTEM_VA | MDL_PAGES_LOCKED,
                    .MappedSystemVa = c->direct, .StartVa = (PVOID)(at & ~(uint64_t)(PAGE_SIZE - 1)),
                    .ByteCount = c->output, .ByteOffset = (ULONG)(at % PAGE_SIZE) };
    return caller_get(c->direct, c->out, c->output);
}

static NTSTATUS put_result(const struct control *c, const IO_STATUS_BLOCK *block)
{
    ULONG method = c->code & 3;
    uint64_t size = block->Information < c->output ? block->Information : c->output;
    if ((uint32_t)block->Status >= 0xc0000000)
        return STATUS_SUCCESS;
    if (method == METHOD_BUFFERED && size)
        return caller_put(c->out, c->buffer, size);
    if (method == METHOD_OUT_DIRECT && c->direct)
        return caller_put(c->out, c->direct, c->output);
    return STATUS_SUCCESS;
}

static NTSTATUS control(struct file *file, struct control *c, PIO_STATUS_BLOCK result)
{
    struct request *r = make_request(file, IRP_MJ_DEVICE_CONTROL);
    if (!r)
        return STATUS_INSUFFICIENT_RESOURCES;
    r->irp.AssociatedIrp.SystemBuffer = c->buffer;
    r->irp.MdlAddress = c->direct ? &c->mdl : NULL;
    r->irp.UserBuffer = c->out;
    r->stack.Parameters.DeviceIoControl.IoControlCode = c->code;
    r->stack.Parameters.DeviceIoControl.InputBufferLength = c->input;
    r->stack.Parameters.DeviceIoControl.OutputBufferLength = c->output;
    r->stack.Parameters.DeviceIoControl.Type3InputBuffer = c->in;
    uint64_t flags = read_flags();
    if ((c->code & 3) == METHOD_NEITHER && cpu_features.smap)
        write_flags(flags | RFLAGS_AC); /* the driver reads ring 3's memory itself */
    NTSTATUS status = send(r);
    write_flags(flags);
    IO_STATUS_BLOCK block = r->irp.IoStatus;
    pool_free(r);
    NTSTATUS copied = put_result(c, &block);
    if (NT_SUCCESS(copied) && result)
        copied = caller_put(result, &block, sizeof block);
    return NT_SUCCESS(copied) ? status : copied;
}

static NTSTATUS with_buffers(struct file *file, struct control *c, PIO_STATUS_BLOCK result)
{
    ULONG method = c->code & 3;
    NTSTATUS status = method == METHOD_BUFFERED ? get_buffered(c) : method == METHOD_NEITHER ? STATUS_SUCCESS
                                                                                              : get_direct(c);
    if (NT_SUCCESS(status))
        status = control(file, c, result);
    if (c->buffer)
        pool_free(c->buffer);
    if (c->direct)
        pool_free(c->direct);
    return status;
}

NTSTATUS NtDeviceIoControlFile(HANDLE FileHandle, HANDLE Event, PVOID ApcRoutine, PVOID ApcContext,
                               PIO_STATUS_BLOCK IoStatusBlock, ULONG IoControlCode, PVOID InputBuffer,
                               ULONG InputBufferLength, PVOID OutputBuffer, ULONG OutputBufferLength)
{
    struct object *object;
    struct control c = { .code = IoControlCode, .input = InputBufferLength, .output = OutputBufferLength,
                         .in = InputBuffer, .out = OutputBuffer };
    const ACCESS_MASK wanted = (IoControlCode >> 14 & 1 ? FILE_READ_DATA : 0) |
                               (IoControlCode >> 15 & 1 ? FILE_WRITE_DATA : 0);
    (void)ApcContext;
    if (ApcRoutine)
        return STATUS_NOT_SUPPORTED;
    if (InputBufferLength > IO_BUFFER_MAX || OutputBufferLength > IO_BUFFER_MAX)
        return STATUS_INSUFFICIENT_RESOURCES;
    NTSTATUS status = handle_lookup(FileHandle, &file_type, wanted, &object);
    if (!NT_SUCCESS(status))
        return status;
    status = with_buffers(CONTAINING_RECORD(object, struct file, object), &c, IoStatusBlock);
    object_release(object);
    if (Event && status != STATUS_ACCESS_VIOLATION)
        NtSetEvent(Event, NULL);
    return status;
}
