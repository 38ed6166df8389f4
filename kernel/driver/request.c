/* SPDX-License-Identifier: MIT */
/* A request's way to the driver of its device and back. NT: there are no stacks of devices, and
 * nothing is cancelled: a thread waits for its request until the driver has completed it, also when
 * it must end. */
#include "kernel/driver/request.h"
#include "kernel/base/lock.h"
#include "kernel/base/print.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/pool.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/thread.h"

static struct lock requests_lock = LOCK("requests", DISPATCH_LEVEL);
static LIST_ENTRY all = { &all, &all }; /* L: requests_lock */

struct request *request_make(struct file *file, UCHAR major)
{
    struct thread *me = thread_current();
    struct request *r = pool_allocate(sizeof *r);
    if (!r)
        return NULL;
    *r = (struct request){ .irp = { .Type = IO_TYPE_IRP,
                                    .Size = (USHORT)(sizeof r->irp + sizeof r->stack),
                                    .StackCount = 1,
                                    .CurrentLocation = 1,
                                    .RequestorMode =
                                        me->process && !me->trusted ? UserMode : KernelMode },
                           .stack = { .MajorFunction = major,
                                      .DeviceObject = file->file.DeviceObject,
                                      .FileObject = &file->file } };
    r->irp.Tail.Overlay.CurrentStackLocation = &r->stack;
    r->irp.Tail.Overlay.OriginalFileObject = &file->file;
    KeInitializeEvent(&r->done, NotificationEvent, FALSE);
    KIRQL irql = lock_acquire(&requests_lock);
    InsertTailList(&all, &r->all);
    lock_release(&requests_lock, irql);
    return r;
}

void request_free(struct request *request)
{
    KIRQL irql = lock_acquire(&requests_lock);
    RemoveEntryList(&request->all);
    lock_release(&requests_lock, irql);
    if (request->buffer)
        pool_free(request->buffer);
    if (request->direct)
        pool_free(request->direct);
    request->irp.Type = 0;
    pool_free(request);
}

bool request_waited(const void *object, char *text, size_t capacity)
{
    bool found = false;
    KIRQL irql = lock_acquire(&requests_lock);
    for (const LIST_ENTRY *e = all.Flink; e != &all && !found; e = e->Flink) {
        const struct request *r = CONTAINING_RECORD(e, struct request, all);
        const DRIVER_OBJECT *driver = r->stack.FileObject->DeviceObject->DriverObject;
        found = &r->done == object;
        if (found)
            print_to(text, capacity, "a request, IRP_MJ %02x, that %s has not completed",
                     r->stack.MajorFunction,
                     CONTAINING_RECORD(driver, struct driver, object)->name);
    }
    lock_release(&requests_lock, irql);
    return found;
}

VOID IofCompleteRequest(PIRP Irp, CHAR)
{
    struct request *r = CONTAINING_RECORD(Irp, struct request, irp);
    if (Irp->Type == IO_TYPE_IRP && Irp->IoStatus.Status == STATUS_PENDING)
        bug_check(DRIVER_VERIFIER_IOMANAGER_VIOLATION,
                  (uint64_t[]){ 0x06, (uint64_t)Irp, 0x103, 0 },
                  "an IRP completed with STATUS_PENDING");
    if (Irp->Type != IO_TYPE_IRP || __atomic_exchange_n(&r->completed, true, __ATOMIC_ACQ_REL))
        bug_check(MULTIPLE_IRP_COMPLETE_REQUESTS, (uint64_t[]){ (uint64_t)Irp, 0, 0, 0 },
                  "the IRP was completed before");
    KeSetEvent(&r->done, 0, FALSE); /* its thread frees it */
}

NTAPI NTSTATUS driver_default_dispatch(PDEVICE_OBJECT, PIRP Irp)
{
    Irp->IoStatus = (IO_STATUS_BLOCK){ .Status = STATUS_INVALID_DEVICE_REQUEST };
    IofCompleteRequest(Irp, 0);
    return STATUS_INVALID_DEVICE_REQUEST;
}

IO_STATUS_BLOCK request_send(struct request *request)
{
    PDEVICE_OBJECT device = request->stack.DeviceObject;
    PDRIVER_DISPATCH dispatch = device->DriverObject->MajorFunction[request->stack.MajorFunction];
    struct driver_call call;
    request->irp.Tail.Overlay.Thread = &thread_current()->object.header;
    driver_enter(&call, dispatch);
    NTSTATUS status = dispatch(device, &request->irp);
    driver_leave(&call);
    if (status != STATUS_PENDING && !__atomic_load_n(&request->completed, __ATOMIC_ACQUIRE))
        bug_check_at((uint64_t)dispatch, DRIVER_VERIFIER_IOMANAGER_VIOLATION,
                     (uint64_t[]){ 0x210, (uint64_t)&request->irp, (uint32_t)status, 0 },
                     "it returned a status, not STATUS_PENDING, and did not complete the IRP");
    KeWaitForSingleObject(&request->done, Executive, KernelMode, FALSE, NULL);
    return request->irp.IoStatus;
}
