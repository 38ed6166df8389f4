/* SPDX-License-Identifier: MIT */
/* Devices of drivers: names, and requests of programs. The services are for ring-3 threads through
 * the service table, and for drivers. PASSIVE_LEVEL. */
#pragma once
#include "kernel/driver/nt_driver.h"

struct driver;

/* Opens a device by its full name, or that of a link to it. Only
 * ObjectAttributes and DesiredAccess have an effect: an existing device is opened, whatever the
 * other arguments ask for. NT: the service waits until the driver has completed the request.
 *
 * STATUS_ACCESS_VIOLATION; STATUS_INVALID_PARAMETER: Length is not 48; STATUS_OBJECT_NAME_INVALID:
 * no name, or one of more than 255 characters; STATUS_OBJECT_NAME_NOT_FOUND; STATUS_ACCESS_DENIED:
 * an exclusive device is open; STATUS_INSUFFICIENT_RESOURCES; the status with which the driver
 * completes IRP_MJ_CREATE. */
NTSTATUS NtCreateFile(PHANDLE FileHandle, ACCESS_MASK DesiredAccess,
                      POBJECT_ATTRIBUTES ObjectAttributes, PIO_STATUS_BLOCK IoStatusBlock,
                      PLARGE_INTEGER AllocationSize, ULONG FileAttributes, ULONG ShareAccess,
                      ULONG CreateDisposition, ULONG CreateOptions, PVOID EaBuffer, ULONG EaLength);

/* transfer.c. Sends a request and waits for its end. NT: every handle is synchronous. Buffers by
 * the code's method: buffered, copied in and out; direct, a copy that an MDL describes.
 *
 * STATUS_ACCESS_VIOLATION: IoStatusBlock; STATUS_INVALID_HANDLE, STATUS_OBJECT_TYPE_MISMATCH,
 * STATUS_ACCESS_DENIED: of the file (the access that the code asks for), then of the event;
 * STATUS_NOT_SUPPORTED: an ApcRoutine, METHOD_NEITHER; STATUS_INSUFFICIENT_RESOURCES, also for a
 * buffer above 16 MiB; STATUS_ACCESS_VIOLATION: a buffer, before the driver is asked; else what the
 * driver completes with. Event may be NULL; it is reset first and set at the end. */
NTSTATUS NtDeviceIoControlFile(HANDLE FileHandle, HANDLE Event, PVOID ApcRoutine, PVOID ApcContext,
                               PIO_STATUS_BLOCK IoStatusBlock, ULONG IoControlCode,
                               PVOID InputBuffer, ULONG InputBufferLength, PVOID OutputBuffer,
                               ULONG OutputBufferLength);
/* NT: devices are not read or written: STATUS_NOT_SUPPORTED, and a line that names the driver; or
 * what is wrong with the handle. Nothing looks at the other arguments, unless NtWriteFile writes to
 * the console: STATUS_NOT_SUPPORTED: an ApcRoutine; STATUS_ACCESS_VIOLATION: IoStatusBlock, or the
 * rest of the buffer; of the event as above. A line says which write was refused. */
NTSTATUS NtReadFile(HANDLE FileHandle);
NTSTATUS NtWriteFile(HANDLE FileHandle, HANDLE Event, PVOID ApcRoutine, PVOID ApcContext,
                     PIO_STATUS_BLOCK IoStatusBlock, PVOID Buffer, ULONG Length,
                     PLARGE_INTEGER ByteOffset, PULONG Key);

/* driver.c. NT: there is no registry; the last part of the name is the file's, without .sys.
 * Drivers are loaded before the program: STATUS_IMAGE_ALREADY_LOADED, or
 * STATUS_OBJECT_NAME_NOT_FOUND. STATUS_PRIVILEGE_NOT_HELD: ring 3 has not enabled
 * SeLoadDriverPrivilege; STATUS_ACCESS_VIOLATION; STATUS_OBJECT_NAME_INVALID. */
NTSTATUS NtLoadDriver(PUNICODE_STRING DriverServiceName);

extern const struct object_type file_type;

/* driver_names.c: finds the device with this name and stores what follows the name in `rest`. Takes
 * a reference to the device. NULL: there is none. */
PDEVICE_OBJECT device_open(const UNICODE_STRING *name, UNICODE_STRING *rest, NTSTATUS *status);
void device_close(PDEVICE_OBJECT device);
/* After DriverEntry: its devices can be opened. */
void devices_initialized(struct driver *driver);
void devices_left(struct driver *driver);

/* driver_strings.c */
bool text_equal(const UNICODE_STRING *a, const UNICODE_STRING *b, bool any_case);
