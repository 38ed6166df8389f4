/* SPDX-License-Identifier: MIT */
/* Requests with buffers: device control, reading, writing. Each waits for its end. */
#include "kernel/base/cpu.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/io.h"
#include "kernel/driver/pool.h"
#include "kernel/driver/request.h"
#include "kernel/ke/caller.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/suspend.h"
#include "kernel/ke/synchronization.h"

#define IO_BUFFER_MAX (16u << 20) /* NT: as much as there is nonpaged pool */
#define FILE_READ_DATA 1u
#define FILE_WRITE_DATA 2u
#define FILE_APPEND_DATA 4u

/* A caller's arguments, and what they refer to. */
struct transfer {
    struct file *file;
    struct object *event; /* or NULL */
    UCHAR major;
    ULONG method;
    ULONG code, input, output; /* lengths; a read has an output, a write an input */
    PVOID in, out;
    uint64_t offset;
    PIO_STATUS_BLOCK result;
    PVOID apc_routine, apc_context; /* called in an alertable wait, or NULL */
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

static bool writes_back(const struct transfer *t)
{
    return t->method == METHOD_BUFFERED || t->method == METHOD_OUT_DIRECT;
}

/* NT: an MDL describes the caller's own pages; here a copy of them, which goes back at the end. */
static NTSTATUS get_buffers(const struct transfer *t, struct request *r)
{
    NTSTATUS status = writes_back(t) ? probe_buffer(t->out, t->output) : STATUS_SUCCESS;
    if (!NT_SUCCESS(status) || t->method == METHOD_NEITHER)
        return status;
    bool reads = t->major == IRP_MJ_WRITE && t->method == METHOD_IN_DIRECT;
    if (!reads)
        status = copy_buffer(&r->buffer, t->in, t->input,
                             t->method == METHOD_BUFFERED && t->output > t->input ? t->output
                                                                                  : t->input);
    r->irp.AssociatedIrp.SystemBuffer = r->buffer;
    if (NT_SUCCESS(status) && t->method != METHOD_BUFFERED)
        status = describe_buffer(r, reads ? t->in : t->out, reads ? t->input : t->output);
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
    PIO_STACK_LOCATION stack = request_first(r);
    r->irp.UserBuffer = t->major == IRP_MJ_WRITE ? t->in : t->out;
    if (t->major == IRP_MJ_DEVICE_CONTROL) {
        stack->Parameters.DeviceIoControl.IoControlCode = t->code;
        stack->Parameters.DeviceIoControl.InputBufferLength = t->input;
        stack->Parameters.DeviceIoControl.OutputBufferLength = t->output;
        stack->Parameters.DeviceIoControl.Type3InputBuffer = t->in;
    } else {
        stack->Parameters.Read.Length = t->major == IRP_MJ_READ ? t->output : t->input;
        stack->Parameters.Read.ByteOffset.QuadPart = (LONGLONG)t->offset;
    }
}

static bool send_transfer(const struct transfer *t, struct request *r, IO_STATUS_BLOCK *block)
{
    uint64_t flags = read_flags();
    if (t->method == METHOD_NEITHER && cpu_features.smap)
        write_flags(flags | RFLAGS_AC); /* the driver reads ring 3's memory itself */
    bool ended = request_send(r, block);
    write_flags(flags);
    return ended;
}

static NTSTATUS finish_transfer(const struct transfer *t, const struct request *r,
                                const IO_STATUS_BLOCK *block)
{
    NTSTATUS status = put_buffers(t, r, block);
    if (NT_SUCCESS(status))
        status = caller_put(t->result, block, sizeof *block);
    if (!NT_SUCCESS(status))
        return status;
    if (t->major != IRP_MJ_DEVICE_CONTROL && NT_SUCCESS(block->Status))
        t->file->file.CurrentByteOffset.QuadPart = (LONGLONG)(t->offset + block->Information);
    if (t->event)
        KeSetEvent((PRKEVENT)&t->event->header, 0, FALSE);
    if (t->apc_routine && (uint32_t)block->Status < 0xc0000000)
        apc_use_reserved(t->apc_routine, t->apc_context, t->result, NULL);
    return block->Status;
}

static NTSTATUS make_transfer(const struct transfer *t)
{
    IO_STATUS_BLOCK block;
    if (t->input > IO_BUFFER_MAX || t->output > IO_BUFFER_MAX)
        return STATUS_INSUFFICIENT_RESOURCES;
    struct request *r = request_make(t->file, t->major, true);
    if (!r)
        return STATUS_INSUFFICIENT_RESOURCES;
    if (t->event)
        KeResetEvent((PRKEVENT)&t->event->header);
    fill_request(t, r);
    NTSTATUS status = get_buffers(t, r);
    if (NT_SUCCESS(status)) {
        if (!send_transfer(t, r, &block))
            return STATUS_THREAD_IS_TERMINATING;
        status = finish_transfer(t, r, &block);
    }
    request_free(r);
    return status;
}

/* --- What device control, reading and writing begin with. --- */

/* The file, if the handle has one of the rights or none is needed, then the event. */
static NTSTATUS look_up_file(HANDLE handle, ACCESS_MASK all, ACCESS_MASK one, HANDLE event,
                             struct transfer *t)
{
    struct object *object;
    ACCESS_MASK access;
    IO_STATUS_BLOCK probed;
    NTSTATUS status = caller_get(&probed, t->result, sizeof probed);
    if (NT_SUCCESS(status))
        status = caller_put(t->result, &probed, sizeof probed);
    if (NT_SUCCESS(status))
        status = handle_lookup_access(handle, &file_type, all, &object, &access);
    if (!NT_SUCCESS(status))
        return status;
    t->file = CONTAINING_RECORD(object, struct file, object);
    if (one && !(access & one))
        status = STATUS_ACCESS_DENIED;
    else if (event)
        status = handle_lookup(event, &event_type, EVENT_MODIFY_STATE, &t->event);
    if (!NT_SUCCESS(status))
        object_release(object);
    return status;
}

static NTSTATUS run_transfer(struct transfer *t)
{
    NTSTATUS status = t->apc_routine ? apc_reserve() : STATUS_SUCCESS;
    bool kept = t->apc_routine && NT_SUCCESS(status);
    if (NT_SUCCESS(status))
        status = make_transfer(t);
    if (kept)
        apc_use_reserved(NULL, NULL, NULL, NULL); /* what was not used */
    if (t->event)
        object_release(t->event);
    object_release(&t->file->object);
    return status;
}

NTSTATUS NtDeviceIoControlFile(HANDLE FileHandle, HANDLE Event, PVOID ApcRoutine, PVOID ApcContext,
                               PIO_STATUS_BLOCK IoStatusBlock, ULONG IoControlCode,
                               PVOID InputBuffer, ULONG InputBufferLength, PVOID OutputBuffer,
                               ULONG OutputBufferLength)
{
    struct transfer t = { .major = IRP_MJ_DEVICE_CONTROL,
                          .method = IoControlCode & 3,
                          .code = IoControlCode,
                          .input = InputBufferLength,
                          .output = OutputBufferLength,
                          .in = InputBuffer,
                          .out = OutputBuffer,
                          .result = IoStatusBlock,
                          .apc_routine = ApcRoutine,
                          .apc_context = ApcContext };
    const ACCESS_MASK wanted = (IoControlCode >> 14 & 1 ? FILE_READ_DATA : 0) |
                               (IoControlCode >> 15 & 1 ? FILE_WRITE_DATA : 0);
    NTSTATUS status = look_up_file(FileHandle, wanted, 0, Event, &t);
    return NT_SUCCESS(status) ? run_transfer(&t) : status;
}

/* Of the device: buffered, direct or neither. */
static ULONG method_of(const struct transfer *t)
{
    ULONG flags = device_top(t->file->file.DeviceObject)->Flags;
    if (flags & DO_BUFFERED_IO)
        return METHOD_BUFFERED;
    if (!(flags & DO_DIRECT_IO))
        return METHOD_NEITHER;
    return t->major == IRP_MJ_READ ? METHOD_OUT_DIRECT : METHOD_IN_DIRECT;
}

#define AT_END (-1ll)
#define AT_POINTER (-2ll)

/* NULL, or AT_POINTER: where the last one ended. AT_END: the driver knows where. */
static NTSTATUS get_offset(struct transfer *t, const LARGE_INTEGER *offset)
{
    LARGE_INTEGER at = { .QuadPart = AT_POINTER };
    NTSTATUS status = offset ? caller_get(&at, offset, sizeof at) : STATUS_SUCCESS;
    if (!NT_SUCCESS(status))
        return status;
    if (at.QuadPart == AT_POINTER)
        at = t->file->file.CurrentByteOffset;
    t->offset = (uint64_t)at.QuadPart;
    return at.QuadPart >= 0 || (at.QuadPart == AT_END && t->major == IRP_MJ_WRITE)
               ? STATUS_SUCCESS
               : STATUS_INVALID_PARAMETER;
}

static NTSTATUS read_or_write(struct transfer *t, HANDLE handle, HANDLE event,
                              const LARGE_INTEGER *offset, ACCESS_MASK rights)
{
    NTSTATUS status = look_up_file(handle, 0, rights, event, t);
    if (!NT_SUCCESS(status))
        return status;
    status = get_offset(t, offset);
    t->method = method_of(t);
    if (NT_SUCCESS(status))
        return run_transfer(t);
    if (t->event)
        object_release(t->event);
    object_release(&t->file->object);
    return status;
}

NTSTATUS NtReadFile(HANDLE FileHandle, HANDLE Event, PVOID ApcRoutine, PVOID ApcContext,
                    PIO_STATUS_BLOCK IoStatusBlock, PVOID Buffer, ULONG Length,
                    PLARGE_INTEGER ByteOffset, PULONG Key)
{
    struct transfer t = { .major = IRP_MJ_READ,
                          .output = Length,
                          .out = Buffer,
                          .result = IoStatusBlock,
                          .apc_routine = ApcRoutine,
                          .apc_context = ApcContext };
    (void)Key;
    return read_or_write(&t, FileHandle, Event, ByteOffset, FILE_READ_DATA);
}

NTSTATUS NtWriteFile(HANDLE FileHandle, HANDLE Event, PVOID ApcRoutine, PVOID ApcContext,
                     PIO_STATUS_BLOCK IoStatusBlock, PVOID Buffer, ULONG Length,
                     PLARGE_INTEGER ByteOffset, PULONG Key)
{
    struct transfer t = { .major = IRP_MJ_WRITE,
                          .input = Length,
                          .in = Buffer,
                          .result = IoStatusBlock,
                          .apc_routine = ApcRoutine,
                          .apc_context = ApcContext };
    (void)Key;
    return read_or_write(&t, FileHandle, Event, ByteOffset, FILE_WRITE_DATA | FILE_APPEND_DATA);
}
