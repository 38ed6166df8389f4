/* SPDX-License-Identifier: MIT */
/* The way of a request down a stack of devices and back. A request is its thread's. When the thread
 * ends before it, requests_lock guards it, DISPATCH_LEVEL, and requests_reap frees it once it is
 * completed. */
#include "kernel/driver/request.h"
#include "hal/machine/clock.h"
#include "kernel/base/irql.h"
#include "kernel/base/lock.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/io.h"
#include "kernel/driver/pool.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/thread.h"

#define CANCEL_WAIT_NS 200000000u
#define STACK_MAX 32

static struct lock requests_lock = LOCK("requests", DISPATCH_LEVEL);
static LIST_ENTRY abandoned = { &abandoned, &abandoned }; /* L: requests_lock */
static LIST_ENTRY all = { &all, &all };                   /* the same */
static KSPIN_LOCK cancel_lock;                            /* the drivers' own */

static struct request *request_of(PIRP irp) { return CONTAINING_RECORD(irp, struct request, irp); }

/* --- Their life. --- */

static KPROCESSOR_MODE request_mode(const struct thread *me)
{
    return me->process && !me->trusted ? UserMode : KernelMode;
}

struct request *request_make(struct file *file, UCHAR major, bool holds)
{
    if (holds)
        requests_reap();
    PDEVICE_OBJECT device = device_top(file->file.DeviceObject);
    CHAR depth = device->StackSize < 1           ? 1
                 : device->StackSize > STACK_MAX ? STACK_MAX
                                                 : device->StackSize;
    struct request *r = pool_allocate(sizeof *r + (size_t)depth * sizeof r->stack[0]);
    if (!r)
        return NULL;
    KeInitializeEvent(&r->done, NotificationEvent, FALSE);
    r->file = file;
    r->holds = holds;
    if (holds)
        object_hold(&file->object);
    r->irp = (IRP){ .Type = IO_TYPE_IRP,
                    .AllocationFlags = IRP_OF_REQUEST,
                    .Size = (USHORT)(sizeof r->irp + (size_t)depth * sizeof r->stack[0]),
                    .StackCount = depth,
                    .CurrentLocation = (CHAR)(depth + 1),
                    .RequestorMode = (CHAR)request_mode(thread_current()) };
    r->irp.Tail.Overlay.Thread = &thread_current()->object.header;
    r->irp.Tail.Overlay.CurrentStackLocation = r->stack + depth;
    r->irp.Tail.Overlay.OriginalFileObject = &file->file;
    *request_first(r) = (IO_STACK_LOCATION){ .MajorFunction = major,
                                             .DeviceObject = device,
                                             .FileObject = &file->file };
    KIRQL irql = lock_acquire(&requests_lock);
    InsertTailList(&all, &r->all);
    lock_release(&requests_lock, irql);
    return r;
}

PIO_STACK_LOCATION request_first(struct request *request)
{
    return &request->stack[request->irp.StackCount - 1];
}

void request_free(struct request *request)
{
    struct file *file = request->holds ? request->file : NULL;
    KIRQL irql = lock_acquire(&requests_lock);
    RemoveEntryList(&request->all);
    lock_release(&requests_lock, irql);
    if (request->buffer)
        pool_free(request->buffer);
    if (request->direct)
        pool_free(request->direct);
    pool_free(request);
    if (file)
        object_release(&file->object);
}

static struct request *next_completed(void)
{
    for (const LIST_ENTRY *e = abandoned.Flink; e != &abandoned; e = e->Flink)
        if (CONTAINING_RECORD(e, struct request, list)->completed)
            return CONTAINING_RECORD(e, struct request, list);
    return NULL;
}

static struct request *take_completed(void)
{
    KIRQL irql = lock_acquire(&requests_lock);
    struct request *r = next_completed();
    if (r)
        RemoveEntryList(&r->list);
    lock_release(&requests_lock, irql);
    return r;
}

void requests_reap(void)
{
    struct request *r;
    while ((r = take_completed()))
        request_free(r);
}

/* The driver that the request was passed to last. */
static const struct driver *driver_of(const struct request *r)
{
    const IRP *irp = &r->irp;
    const IO_STACK_LOCATION *at = irp->CurrentLocation <= irp->StackCount
                                      ? irp->Tail.Overlay.CurrentStackLocation
                                      : &r->stack[irp->StackCount - 1];
    return CONTAINING_RECORD(at->DeviceObject->DriverObject, struct driver, object);
}

bool request_waited(const void *object, char *text, size_t capacity)
{
    bool found = false;
    KIRQL irql = lock_acquire(&requests_lock);
    for (const LIST_ENTRY *e = all.Flink; e != &all && !found; e = e->Flink) {
        struct request *r = CONTAINING_RECORD(e, struct request, all);
        found = &r->done == object;
        if (found)
            print_to(text, capacity, "a request, IRP_MJ %02x, that %s has not completed",
                     request_first(r)->MajorFunction, driver_of(r)->name);
    }
    lock_release(&requests_lock, irql);
    return found;
}

void requests_left(struct driver *driver)
{
    KIRQL irql = lock_acquire(&requests_lock);
    for (const LIST_ENTRY *e = abandoned.Flink; e != &abandoned; e = e->Flink) {
        struct request *r = CONTAINING_RECORD(e, struct request, list);
        if (request_first(r)->DeviceObject->DriverObject == &driver->object)
            driver_left(driver, "a request, IRP_MJ %02x, that it never completed",
                        request_first(r)->MajorFunction);
    }
    lock_release(&requests_lock, irql);
}

/* --- Down. --- */

void irp_check(const IRP *irp, uint64_t violation)
{
    if (irp->Type != IO_TYPE_IRP)
        bug_check(DRIVER_VERIFIER_IOMANAGER_VIOLATION,
                  (uint64_t[]){ violation, (uint64_t)irp, 0, 0 },
                  "the argument is no IRP, or one that was freed");
}

NTSTATUS IofCallDriver(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    irp_check(Irp, 0x03);
    if (DeviceObject->Type != IO_TYPE_DEVICE)
        bug_check(DRIVER_VERIFIER_IOMANAGER_VIOLATION,
                  (uint64_t[]){ 0x04, (uint64_t)DeviceObject, 0, 0 },
                  "the first argument is no device object");
    if (Irp->CurrentLocation <= 1)
        bug_check(NO_MORE_IRP_STACK_LOCATIONS, (uint64_t[]){ (uint64_t)Irp, 0, 0, 0 },
                  "IoCallDriver with an IRP that has no stack location left");
    Irp->CurrentLocation--;
    PIO_STACK_LOCATION stack = --Irp->Tail.Overlay.CurrentStackLocation;
    stack->DeviceObject = DeviceObject;
    PDRIVER_DISPATCH dispatch =
        stack->MajorFunction <= IRP_MJ_MAXIMUM_FUNCTION
            ? DeviceObject->DriverObject->MajorFunction[stack->MajorFunction]
            : driver_default_dispatch;
    struct driver_call call;
    driver_enter(&call, dispatch);
    NTSTATUS status = dispatch(DeviceObject, Irp);
    driver_leave(&call);
    return status;
}

/* --- Up. --- */

static bool wants_call(const IO_STACK_LOCATION *stack, const IRP *irp)
{
    UCHAR when = irp->Cancel ? SL_INVOKE_ON_CANCEL : 0;
    when |= NT_SUCCESS(irp->IoStatus.Status) ? SL_INVOKE_ON_SUCCESS : SL_INVOKE_ON_ERROR;
    return stack->CompletionRoutine && (stack->Control & when);
}

/* False: the driver above has taken the request back. */
static bool complete_level(PIRP irp)
{
    const IO_STACK_LOCATION stack = *irp->Tail.Overlay.CurrentStackLocation;
    bool last = irp->CurrentLocation == irp->StackCount;
    PIO_STACK_LOCATION above = ++irp->Tail.Overlay.CurrentStackLocation;
    irp->CurrentLocation++;
    irp->PendingReturned = stack.Control & SL_PENDING_RETURNED;
    if (wants_call(&stack, irp)) {
        struct driver_call call;
        driver_enter(&call, stack.CompletionRoutine);
        NTSTATUS status =
            stack.CompletionRoutine(last ? NULL : above->DeviceObject, irp, stack.Context);
        driver_leave(&call);
        return status != STATUS_MORE_PROCESSING_REQUIRED;
    }
    if (irp->PendingReturned && !last)
        above->Control |= SL_PENDING_RETURNED;
    return true;
}

static void complete_request(struct request *r)
{
    KIRQL irql = lock_acquire(&requests_lock);
    bool twice = r->completed, alone = r->abandoned;
    r->completed = true;
    lock_release(&requests_lock, irql);
    if (twice)
        bug_check(MULTIPLE_IRP_COMPLETE_REQUESTS, (uint64_t[]){ (uint64_t)&r->irp, 0, 0, 0 },
                  "the IRP was completed before");
    if (!alone)
        KeSetEvent(&r->done, 0, FALSE); /* its thread frees it */
}

static void end_built(PIRP irp)
{
    struct built *b = CONTAINING_RECORD(irp, struct built, irp);
    const IO_STATUS_BLOCK block = irp->IoStatus;
    PKEVENT event = irp->UserEvent;
    uint64_t size = block.Information < b->length ? block.Information : b->length;
    if (b->buffer && size && (uint32_t)block.Status < 0xc0000000)
        memcpy(b->output, b->buffer, size);
    if (irp->UserIosb)
        *irp->UserIosb = block;
    if (b->buffer)
        pool_free(b->buffer);
    irp->Type = 0;
    pool_free(b);
    if (event)
        KeSetEvent(event, 0, FALSE);
}

VOID IofCompleteRequest(PIRP Irp, CHAR PriorityBoost)
{
    (void)PriorityBoost;
    bool ended = Irp->CurrentLocation > Irp->StackCount + 1 ||
                 (Irp->AllocationFlags == IRP_OF_DRIVER && Irp->CurrentLocation > Irp->StackCount);
    if (Irp->Type != IO_TYPE_IRP || ended)
        bug_check(MULTIPLE_IRP_COMPLETE_REQUESTS, (uint64_t[]){ (uint64_t)Irp, 0, 0, 0 },
                  "the IRP was completed before");
    if (Irp->IoStatus.Status == STATUS_PENDING)
        bug_check(DRIVER_VERIFIER_IOMANAGER_VIOLATION,
                  (uint64_t[]){ 0x06, (uint64_t)Irp, 0x103, 0 },
                  "an IRP completed with STATUS_PENDING");
    while (Irp->CurrentLocation <= Irp->StackCount)
        if (!complete_level(Irp))
            return;
    switch (Irp->AllocationFlags) {
    case IRP_OF_REQUEST: complete_request(request_of(Irp)); break;
    case IRP_BUILT: end_built(Irp); break;
    default: /* NT: without Driver Verifier something else fails later */
        bug_check(DRIVER_VERIFIER_IOMANAGER_VIOLATION, (uint64_t[]){ 0, (uint64_t)Irp, 0, 0 },
                  "no completion routine took back an IRP that is the driver's own");
    }
}

NTAPI NTSTATUS driver_default_dispatch(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    (void)DeviceObject;
    Irp->IoStatus = (IO_STATUS_BLOCK){ .Status = STATUS_INVALID_DEVICE_REQUEST };
    IofCompleteRequest(Irp, 0);
    return STATUS_INVALID_DEVICE_REQUEST;
}

/* --- Cancelling. --- */

VOID IoAcquireCancelSpinLock(PKIRQL Irql) { *Irql = KeAcquireSpinLockRaiseToDpc(&cancel_lock); }

VOID IoReleaseCancelSpinLock(KIRQL Irql) { KeReleaseSpinLock(&cancel_lock, Irql); }

/* The cancel routine releases the lock, to Irp->CancelIrql. FALSE: there is none. */
BOOLEAN IoCancelIrp(PIRP Irp)
{
    KIRQL irql;
    IoAcquireCancelSpinLock(&irql);
    Irp->Cancel = TRUE;
    PDRIVER_CANCEL routine = __atomic_exchange_n(&Irp->CancelRoutine, NULL, __ATOMIC_ACQ_REL);
    if (!routine) {
        IoReleaseCancelSpinLock(irql);
        return FALSE;
    }
    Irp->CancelIrql = irql;
    struct driver_call call;
    driver_enter(&call, routine);
    call.irql = irql;
    routine(Irp->Tail.Overlay.CurrentStackLocation->DeviceObject, Irp);
    driver_leave(&call);
    return TRUE;
}

/* --- Waiting. --- */

static bool is_completed(struct request *r)
{
    KIRQL irql = lock_acquire(&requests_lock);
    bool is = r->completed;
    lock_release(&requests_lock, irql);
    return is;
}

/* Whether the driver had completed it after all. */
static bool abandon_request(struct request *r)
{
    KIRQL irql = lock_acquire(&requests_lock);
    r->abandoned = !r->completed && r->holds;
    if (r->abandoned)
        InsertTailList(&abandoned, &r->list);
    lock_release(&requests_lock, irql);
    return !r->abandoned;
}

/* False: its thread must not wait any longer. */
static bool await_request(struct request *r)
{
    LARGE_INTEGER limit = { .QuadPart = -(LONGLONG)(CANCEL_WAIT_NS / 100) };
    KPROCESSOR_MODE mode =
        r->holds && !is_completed(r) ? request_mode(thread_current()) : KernelMode;
    if (KeWaitForSingleObject(&r->done, Executive, mode, FALSE, NULL) !=
        STATUS_THREAD_IS_TERMINATING)
        return true;
    IoCancelIrp(&r->irp);
    if (KeWaitForSingleObject(&r->done, Executive, KernelMode, FALSE, &limit) == STATUS_TIMEOUT &&
        !abandon_request(r))
        return false;
    KeWaitForSingleObject(&r->done, Executive, KernelMode, FALSE, NULL);
    return true;
}

bool request_send(struct request *request, IO_STATUS_BLOCK *result)
{
    PDEVICE_OBJECT device = request_first(request)->DeviceObject;
    PDRIVER_DISPATCH dispatch =
        device->DriverObject->MajorFunction[request_first(request)->MajorFunction];
    NTSTATUS status = IofCallDriver(device, &request->irp);
    if (status != STATUS_PENDING && !is_completed(request))
        bug_check_at((uint64_t)dispatch, DRIVER_VERIFIER_IOMANAGER_VIOLATION,
                     (uint64_t[]){ 0x210, (uint64_t)&request->irp, (uint32_t)status, 0 },
                     "it returned a status, not STATUS_PENDING, and did not complete the IRP");
    if (!await_request(request))
        return false;
    *result = request->irp.IoStatus;
    return true;
}
