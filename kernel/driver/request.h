/* SPDX-License-Identifier: MIT */
/* Requests (IRPs): made here for a file, sent to its device's driver, completed by it, freed once.
 * PASSIVE_LEVEL but where said. Source: the Windows driver documentation of IRPs. */
#pragma once
#include "kernel/driver/nt_driver.h"
#include "kernel/ke/object.h"

struct file {
    struct object object;
    FILE_OBJECT file;
    struct request *cleanup, *close; /* for its end */
    bool opened;                     /* the driver knows it */
};

struct request {
    KEVENT done;
    LIST_ENTRY all;       /* L: requests_lock */
    bool completed;       /* atomic */
    PVOID buffer, direct; /* pool, or NULL; freed with it */
    MDL mdl;
    IRP irp;
    IO_STACK_LOCATION stack;
};

/* A request of the current thread, whose caller keeps a reference to the file; NULL: no memory. */
struct request *request_make(struct file *file, UCHAR major);
/* Sends it and waits until the driver has completed it; what it was completed with. */
IO_STATUS_BLOCK request_send(struct request *request);
void request_free(struct request *request);
/* Whether a wait for this object is one for a request; then `text` names the driver that has it. */
bool request_waited(const void *object, char *text, size_t capacity);

/* What MajorFunction holds before the driver writes there: STATUS_INVALID_DEVICE_REQUEST. */
NTAPI NTSTATUS driver_default_dispatch(PDEVICE_OBJECT DeviceObject, PIRP Irp);
