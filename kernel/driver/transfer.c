/* SPDX-License-Identifier: MIT */
/* Device control, whose buffers are copied; what else programs may ask of a device is refused, by
 * the driver's name. */
#include "kernel/base/print.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/io.h"
#include "kernel/driver/pool.h"
#include "kernel/driver/request.h"
#include "kernel/ke/caller.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/synchronization.h"
#include "kernel/nt/nt_process.h"
#include "kernel/services/services.h"

#define IO_BUFFER_MAX (16u << 20) /* NT: as much as there is nonpaged pool */
#define FILE_READ_DATA 1u
#define FILE_WRITE_DATA 2u

/* A caller's arguments, and what they refer to. */
struct transfer {
    struct file *file;
    struct object *event; /* or NULL */
    ULONG code, method, input, output;
    PVOID in, out;
    PIO_STATUS_BLOCK result;
};

/* --- The caller's memory. --- */

/* Whether the memory can be written: writes back a byte of each page. */
static NTSTATUS probe_buffer(PVOID to, uint64_t size)
{
    UCHAR byte;
    NTSTATUS status = STATUS_SUCCESS;
    for (uint64_t at = 0; at < size && NT_SUCCESS(status);
         at = ((uint64_t)to + at) / PAGE_SIZE * PAGE_SIZE + PAGE_SIZE - (uint64_t)to) {
        status = caller_get(&byte, (UCHAR *)to + at, 1);
        if (NT_SUCCESS(status))
            status = caller_put((UCHAR *)to + at, &byte, 1);
    }
    return status;
}

static NTSTATUS copy_buffer(PVOID *to, const void *from, uint64_t size, uint64_t capacity)
{
    *to = capacity ? pool_allocate(capacity) : NULL;
    if (capacity && !*to)
        return STATUS_INSUFFICIENT_RESOURCES;
    return size ? caller_get(*to, from, size) : STATUS_SUCCESS;
}

/* NT: an MDL describes the caller's own pages; here a copy of them, which goes back at the end. */
static NTSTATUS describe_buffer(struct request *r, const void *from, ULONG size)
{
    NTSTATUS status = copy_buffer(&r->direct, from, size, size);
    uint64_t at = (uint64_t)r->direct;
    r->mdl = (MDL){ .Size = sizeof r->mdl,
                    .MdlFlags = MDL_MAPPED_TO_SYSTEM_VA | MDL_PAGES_LOCKED,
                    .MappedSystemVa = r->direct,
                    .StartVa = (PVOID)(at & ~(uint64_t)(PAGE_SIZE - 1)),
                    .ByteCount = size,
                    .ByteOffset = (ULONG)(at % PAGE_SIZE) };
    r->irp.MdlAddress = size ? &r->mdl : NULL;
    return status;
}

static NTSTATUS get_buffers(const struct transfer *t, struct request *r)
{
    const bool buffered = t->method == METHOD_BUFFERED;
    NTSTATUS status = STATUS_SUCCESS;
    if (t->method != METHOD_IN_DIRECT)
        status = probe_buffer(t->out, t->output);
    if (NT_SUCCESS(status))
        status = copy_buffer(&r->buffer, t->in, t->input,
                             buffered && t->output > t->input ? t->output : t->input);
    r->irp.AssociatedIrp.SystemBuffer = r->buffer;
    if (NT_SUCCESS(status) && !buffered)
        status = describe_buffer(r, t->out, t->output);
    return status;
}

static NTSTATUS put_buffers(const struct transfer *t, const struct request *r,
                            const IO_STATUS_BLOCK *block)
{
    uint64_t size = block->Information < t->output ? block->Information : t->output;
    if (t->method == METHOD_OUT_DIRECT && r->direct)
        return caller_put(t->out, r->direct, t->output);
    if (t->method == METHOD_BUFFERED && size && (uint32_t)block->Status < 0xc0000000)
        return caller_put(t->out, r->buffer, size);
    return STATUS_SUCCESS;
}

/* --- The request. --- */

static void fill_request(const struct transfer *t, struct request *r)
{
    r->irp.UserBuffer = t->out;
    r->stack.Parameters.DeviceIoControl.IoControlCode = t->code;
    r->stack.Parameters.DeviceIoControl.InputBufferLength = t->input;
    r->stack.Parameters.DeviceIoControl.OutputBufferLength = t->output;
}

static NTSTATUS finish_transfer(const struct transfer *t, const struct request *r,
                                const IO_STATUS_BLOCK *block)
{
    NTSTATUS status = put_buffers(t, r, block);
    if (NT_SUCCESS(status))
        status = caller_put(t->result, block, sizeof *block);
    if (!NT_SUCCESS(status))
        return status;
    if (t->event)
        KeSetEvent((PRKEVENT)&t->event->header, 0, FALSE);
    return block->Status;
}

static NTSTATUS make_transfer(const struct transfer *t)
{
    if (t->input > IO_BUFFER_MAX || t->output > IO_BUFFER_MAX)
        return STATUS_INSUFFICIENT_RESOURCES;
    struct request *r = request_make(t->file, IRP_MJ_DEVICE_CONTROL);
    if (!r)
        return STATUS_INSUFFICIENT_RESOURCES;
    if (t->event)
        KeResetEvent((PRKEVENT)&t->event->header);
    fill_request(t, r);
    NTSTATUS status = get_buffers(t, r);
    if (NT_SUCCESS(status)) {
        const IO_STATUS_BLOCK block = request_send(r);
        status = finish_transfer(t, r, &block);
    }
    request_free(r);
    return status;
}

/* --- The services. --- */

/* Says what of which driver. */
static NTSTATUS refuse_of(const struct file *file, const char *what)
{
    const DRIVER_OBJECT *driver = file->file.DeviceObject->DriverObject;
    print("# %s: %s is not supported\n", CONTAINING_RECORD(driver, struct driver, object)->name,
          what);
    return STATUS_NOT_SUPPORTED;
}

/* The file, then the event. */
static NTSTATUS look_up_file(HANDLE handle, ACCESS_MASK access, HANDLE event, struct transfer *t)
{
    struct object *object;
    IO_STATUS_BLOCK probed;
    NTSTATUS status = caller_get(&probed, t->result, sizeof probed);
    if (NT_SUCCESS(status))
        status = caller_put(t->result, &probed, sizeof probed);
    if (NT_SUCCESS(status))
        status = handle_lookup(handle, &file_type, access, &object);
    if (!NT_SUCCESS(status))
        return status;
    t->file = CONTAINING_RECORD(object, struct file, object);
    if (event)
        status = handle_lookup(event, &event_type, EVENT_MODIFY_STATE, &t->event);
    if (!NT_SUCCESS(status))
        object_release(object);
    return status;
}

NTSTATUS NtDeviceIoControlFile(HANDLE FileHandle, HANDLE Event, PVOID ApcRoutine, PVOID,
                               PIO_STATUS_BLOCK IoStatusBlock, ULONG IoControlCode,
                               PVOID InputBuffer, ULONG InputBufferLength, PVOID OutputBuffer,
                               ULONG OutputBufferLength)
{
    struct transfer t = { .code = IoControlCode,
                          .method = IoControlCode & 3,
                          .input = InputBufferLength,
                          .output = OutputBufferLength,
                          .in = InputBuffer,
                          .out = OutputBuffer,
                          .result = IoStatusBlock };
    const ACCESS_MASK wanted = (IoControlCode >> 14 & 1 ? FILE_READ_DATA : 0) |
                               (IoControlCode >> 15 & 1 ? FILE_WRITE_DATA : 0);
    NTSTATUS status = look_up_file(FileHandle, wanted, Event, &t);
    if (!NT_SUCCESS(status))
        return status;
    if (ApcRoutine)
        status = refuse_of(t.file, "device control that calls a routine");
    else if (t.method == METHOD_NEITHER)
        status = refuse_of(t.file, "METHOD_NEITHER");
    else
        status = make_transfer(&t);
    if (t.event)
        object_release(t.event);
    object_release(&t.file->object);
    return status;
}

static NTSTATUS refuse_file(HANDLE handle, const char *what)
{
    struct object *object;
    NTSTATUS status = handle_lookup(handle, &file_type, 0, &object);
    if (!NT_SUCCESS(status))
        return status;
    status = refuse_of(CONTAINING_RECORD(object, struct file, object), what);
    object_release(object);
    return status;
}

NTSTATUS NtReadFile(HANDLE FileHandle) { return refuse_file(FileHandle, "IRP_MJ_READ"); }

/* Parts of what write_console takes. */
static NTSTATUS write_parts(const char *text, ULONG length, ULONG_PTR *done)
{
    while (*done < length) {
        const ULONG left = length - (ULONG)*done;
        NTSTATUS status = write_console(text + *done, left < WRITE_MAX ? left : WRITE_MAX);
        if (!NT_SUCCESS(status))
            return status;
        *done += left < WRITE_MAX ? left : WRITE_MAX;
    }
    return STATUS_SUCCESS;
}

static NTSTATUS write_to_console(HANDLE event, PIO_STATUS_BLOCK result, const char *text,
                                 ULONG length)
{
    IO_STATUS_BLOCK block = { 0 };
    NTSTATUS status = caller_put(result, &block, sizeof block);
    if (NT_SUCCESS(status) && event)
        status = NtResetEvent(event, NULL);
    if (NT_SUCCESS(status))
        status = write_parts(text, length, &block.Information);
    if (NT_SUCCESS(status))
        status = caller_put(result, &block, sizeof block);
    if (NT_SUCCESS(status) && event)
        status = NtSetEvent(event, NULL);
    return status;
}

NTSTATUS NtWriteFile(HANDLE FileHandle, HANDLE Event, PVOID ApcRoutine, PVOID,
                     PIO_STATUS_BLOCK IoStatusBlock, PVOID Buffer, ULONG Length, PLARGE_INTEGER,
                     PULONG)
{
    NTSTATUS status = STATUS_NOT_SUPPORTED;
    if (!is_output(FileHandle))
        status = refuse_file(FileHandle, "IRP_MJ_WRITE");
    else if (!ApcRoutine)
        status = write_to_console(Event, IoStatusBlock, Buffer, Length);
    if (!NT_SUCCESS(status))
        print("# a write to handle 0x%lx was refused: status 0x%x\n", (ULONG_PTR)FileHandle,
              status);
    return status;
}
