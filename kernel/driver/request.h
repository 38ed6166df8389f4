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
    LIST_ENTRY all;  /* L: requests_lock */
    LIST_ENTRY list; /* L: requests_lock; of those that nobody waits for */
    bool completed;  /* L: requests_lock */
    bool abandoned;  /* L: requests_lock; its thread has ended, and requests_reap frees it */
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

/* Bug check C9h with this violation, if `irp` is no IRP, or one that was freed. */
void irp_check(const IRP *irp, uint64_t violation);
/* io.c: opens a device by its name, with a reference for the caller. NULL: *status, one of
 * NtCreateFile's, says why. */
struct file *file_open(const UNICODE_STRING *name, NTSTATUS *status);

/* A request of the current thread, with a stack location for each device of the file's stack; NULL:
 * no memory. `holds`: it has a reference to the file, and may then outlive its thread. */
struct request *request_make(struct file *file, UCHAR major, bool holds);
/* The stack location of the first driver. */
PIO_STACK_LOCATION request_first(struct request *request);
/* Sends it and waits until a driver has completed it, with *result. A ring-3 thread that must end
 * meanwhile cancels the request and waits CANCEL_WAIT_NS more (NT: five minutes). False: the driver
 * has not completed it even then; the caller must not use `request` any more. */
bool request_send(struct request *request, IO_STATUS_BLOCK *result);
void request_free(struct request *request);
/* Frees the requests that were completed after their threads had ended. */
void requests_reap(void);
/* Whether a wait for this object is one for a request; then `text` names the driver that has it. */
bool request_waited(const void *object, char *text, size_t capacity);
/* Prints a line for each request that the driver has not completed; how many. */
void requests_left(struct driver *driver);

/* What MajorFunction holds before the driver writes there: STATUS_INVALID_DEVICE_REQUEST. */
NTAPI NTSTATUS driver_default_dispatch(PDEVICE_OBJECT DeviceObject, PIRP Irp);
