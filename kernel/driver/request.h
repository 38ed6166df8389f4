/* SPDX-License-Identifier: MIT */
/* Requests (IRPs): made here for a file, sent down a stack of devices, completed by the driver that
 * has them, freed once. PASSIVE_LEVEL but where said. Source: the Windows driver documentation of
 * IRPs, completion routines and cancellation. */
#pragma once
#include "kernel/driver/nt_driver.h"
#include "kernel/ke/object.h"

struct driver;

struct file {
    struct object object;
    FILE_OBJECT file;
    bool opened; /* the driver knows it */
};

struct request {
    KEVENT done;
    LIST_ENTRY list; /* L: requests_lock; of those that nobody waits for */
    bool completed;  /* L: requests_lock */
    bool abandoned;  /* L: requests_lock; its thread has ended: who completes it leaves it to be
                        freed */
    bool holds;      /* a reference to the file */
    struct file *file;
    PVOID buffer, direct; /* pool, or NULL; freed with it */
    MDL mdl;
    IRP irp;
    IO_STACK_LOCATION stack[];
};

/* Whose an IRP is: its AllocationFlags. */
enum irp_owner { IRP_OF_DRIVER, IRP_OF_REQUEST, IRP_BUILT };
/* What irp.c builds for a driver, IRP_BUILT. */
struct built {
    PVOID buffer; /* pool, or NULL; what was read or answered is copied from there */
    PVOID output;
    ULONG length; /* of output */
    MDL mdl;
    IRP irp;
    IO_STACK_LOCATION stack[];
};

/* Bug check C9h with this violation, if it is no IRP (any more). */
void irp_check(const IRP *irp, uint64_t violation);
/* io.c: opens a device by its name, with a reference for the caller. NULL: *status, one of
 * NtCreateFile's, says why. */
struct file *file_open(const UNICODE_STRING *name, NTSTATUS *status);

/* One with room for each device of the file's stack, for the current thread; NULL: no memory.
 * `holds`: it keeps the file, and may then outlive its thread. */
struct request *request_make(struct file *file, UCHAR major, bool holds);
/* Where what the first driver sees is written. */
PIO_STACK_LOCATION request_first(struct request *request);
/* Sends it and waits for its end; what it was completed with. A ring-3 thread that is to end
 * meanwhile cancels it, waits CANCEL_WAIT_NS more, and then leaves it to the driver (NT: after five
 * minutes). False: so it was, and `request` is gone. */
bool request_send(struct request *request, IO_STATUS_BLOCK *result);
void request_free(struct request *request);
/* Frees those that were completed after their threads had gone. */
void requests_reap(void);
/* A line for each that the driver has not completed. */
unsigned requests_left(const struct driver *driver);

/* What MajorFunction holds before the driver writes there: STATUS_INVALID_DEVICE_REQUEST. */
NTAPI NTSTATUS driver_default_dispatch(PDEVICE_OBJECT DeviceObject, PIRP Irp);
