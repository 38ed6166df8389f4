/* SPDX-License-Identifier: MIT */
/* Files: a device that was opened. */
#include "kernel/driver/io.h"
#include "kernel/base/string.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/pool.h"
#include "kernel/driver/request.h"
#include "kernel/ke/caller.h"

#define NAME_MAX 255u

/* --- Files. --- */

/* The requests at the end are there from the beginning: an end cannot be refused. */
static NTSTATUS send_create(struct file *file)
{
    struct request *r = request_make(file, IRP_MJ_CREATE);
    NTSTATUS status = STATUS_INSUFFICIENT_RESOURCES;
    file->cleanup = request_make(file, IRP_MJ_CLEANUP);
    file->close = request_make(file, IRP_MJ_CLOSE);
    if (r && file->cleanup && file->close)
        status = request_send(r).Status;
    if (r)
        request_free(r);
    return status;
}

static void send_end(struct request *r, bool send)
{
    if (r && send)
        request_send(r);
    if (r)
        request_free(r);
}

/* NT: cleanup comes with the last handle, close with the last reference; here both with the latter.
 */
static void destroy_file(struct object *object)
{
    struct file *file = CONTAINING_RECORD(object, struct file, object);
    send_end(file->cleanup,
             file->opened && file->file.DeviceObject->DriverObject->MajorFunction[IRP_MJ_CLEANUP] !=
                                 driver_default_dispatch);
    send_end(file->close, file->opened);
    device_close(file->file.DeviceObject);
    if (file->file.FileName.Buffer)
        pool_free(file->file.FileName.Buffer);
    pool_free(file);
}

const struct object_type file_type = { .name = "File",
                                       .destroy = destroy_file,
                                       .read = 0x120089,
                                       .write = 0x120116,
                                       .execute = 0x1200a0,
                                       .all = 0x1f01ff };

static NTSTATUS get_file_name(POBJECT_ATTRIBUTES attributes, UNICODE_STRING *name, WCHAR *buffer)
{
    OBJECT_ATTRIBUTES a;
    NTSTATUS status = caller_get(&a, attributes, sizeof a);
    if (NT_SUCCESS(status) && a.Length != sizeof a)
        status = STATUS_INVALID_PARAMETER;
    if (NT_SUCCESS(status) && !a.ObjectName)
        status = STATUS_OBJECT_NAME_INVALID;
    if (NT_SUCCESS(status))
        status = caller_get(name, a.ObjectName, sizeof *name);
    if (NT_SUCCESS(status) &&
        (!name->Length || name->Length % 2 || name->Length > NAME_MAX * sizeof(WCHAR)))
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
    file->file =
        (FILE_OBJECT){ .Type = IO_TYPE_FILE, .Size = sizeof file->file, .DeviceObject = device };
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

/* With a reference for the caller. NULL: *status says why. */
static struct file *open_file(const UNICODE_STRING *name, NTSTATUS *status)
{
    UNICODE_STRING rest;
    PDEVICE_OBJECT device = device_open(name, &rest, status);
    if (!device)
        return NULL;
    struct file *file = make_file(device, &rest);
    if (!file) {
        device_close(device);
        *status = STATUS_INSUFFICIENT_RESOURCES;
        return NULL;
    }
    *status = send_create(file);
    file->opened = NT_SUCCESS(*status);
    if (file->opened)
        return file;
    object_release(&file->object);
    return NULL;
}

static NTSTATUS open_handle(const UNICODE_STRING *name, ACCESS_MASK access, PHANDLE result)
{
    HANDLE handle = NULL;
    NTSTATUS status;
    struct file *file = open_file(name, &status);
    if (!file)
        return status;
    status = handle_create(&file->object, access, &handle);
    if (NT_SUCCESS(status)) {
        status = caller_put(result, &handle, sizeof handle);
        if (!NT_SUCCESS(status))
            handle_close(handle);
    }
    object_release(&file->object);
    return status;
}

NTSTATUS NtCreateFile(PHANDLE FileHandle, ACCESS_MASK DesiredAccess,
                      POBJECT_ATTRIBUTES ObjectAttributes, PIO_STATUS_BLOCK IoStatusBlock,
                      PLARGE_INTEGER AllocationSize, ULONG FileAttributes, ULONG ShareAccess,
                      ULONG CreateDisposition, ULONG CreateOptions, PVOID, ULONG)
{
    WCHAR buffer[NAME_MAX];
    UNICODE_STRING name;
    IO_STATUS_BLOCK block = { .Information = 1 }; /* FILE_OPENED */
    (void)AllocationSize, (void)FileAttributes, (void)ShareAccess, (void)CreateDisposition,
        (void)CreateOptions;
    NTSTATUS status = caller_probe(FileHandle, sizeof *FileHandle);
    if (NT_SUCCESS(status))
        status = get_file_name(ObjectAttributes, &name, buffer);
    if (!NT_SUCCESS(status))
        return status;
    status = open_handle(&name, DesiredAccess, FileHandle);
    if (NT_SUCCESS(status))
        caller_put_optional(IoStatusBlock, &block, sizeof block);
    return status;
}
