/* SPDX-License-Identifier: MIT */
/* Devices of drivers: names, and requests of programs. The services are for ring-3 threads through the service table,
 * and for drivers. PASSIVE_LEVEL. */
#pragma once
#include "kernel/driver/nt_driver.h"

struct driver;

/* Opens a device by \Device\NAME, \??\NAME or \DosDevices\NAME; links are followed. Only ObjectAttributes and
 * DesiredAccess say something: a device is opened, whatever the rest asks for. NT: the driver is asked at once, and a
 * request that it keeps is waited for.
 *
 * STATUS_ACCESS_VIOLATION; STATUS_INVALID_PARAMETER: Length is not 48; STATUS_OBJECT_NAME_INVALID: no name, or one of
 * more than 255 characters; STATUS_OBJECT_NAME_NOT_FOUND; STATUS_ACCESS_DENIED: an exclusive device is open;
 * STATUS_INSUFFICIENT_RESOURCES; what the driver says to IRP_MJ_CREATE. */
NTSTATUS NtCreateFile(PHANDLE FileHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                      PIO_STATUS_BLOCK IoStatusBlock, PLARGE_INTEGER AllocationSize, ULONG FileAttributes,
                      ULONG ShareAccess, ULONG CreateDisposition, ULONG CreateOptions, PVOID EaBuffer, ULONG EaLength);

/* Sends IRP_MJ_DEVICE_CONTROL and waits for its end. Buffers by the code's method: buffered, copied in and out; direct,
 * a copy that an MDL describes; neither, the caller's own addresses.
 *
 * STATUS_NOT_SUPPORTED: ApcRoutine; STATUS_INVALID_HANDLE, STATUS_OBJECT_TYPE_MISMATCH, STATUS_ACCESS_DENIED: the access
 * that the code asks for; STATUS_ACCESS_VIOLATION; STATUS_INSUFFICIENT_RESOURCES; what the driver completes with. Event
 * may be NULL. */
NTSTATUS NtDeviceIoControlFile(HANDLE FileHandle, HANDLE Event, PVOID ApcRoutine, PVOID ApcContext,
                               PIO_STATUS_BLOCK IoStatusBlock, ULONG IoControlCode, PVOID InputBuffer,
                               ULONG InputBufferLength, PVOID OutputBuffer, ULONG OutputBufferLength);

/* What MajorFunction holds before the driver writes there: STATUS_INVALID_DEVICE_REQUEST. */
NTAPI NTSTATUS driver_default_dispatch(PDEVICE_OBJECT DeviceObject, PIRP Irp);

/* names.c: the device and, behind its name, the rest; NULL: there is none. A reference to the device comes with it. */
PDEVICE_OBJECT device_open(const UNICODE_STRING *name, UNICODE_STRING *rest, NTSTATUS *status);
void device_close(PDEVICE_OBJECT device);
/* After DriverEntry: its devices can be opened. */
void devices_initialized(struct driver *driver);
unsigned devices_left(const struct driver *driver);

/* text.c */
bool text_equal(const UNICODE_STRING *a, const UNICODE_STRING *b, bool any_case);
