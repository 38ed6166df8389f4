/* SPDX-License-Identifier: MIT */
/* One thread takes items in the order in which they were queued. NT: QueueType has no effect, and
 * a routine that does not return holds up the others. Source: the Windows driver documentation. */
#include "kernel/driver/work.h"
#include "hal/machine/clock.h"
#include "kernel/base/irql.h"
#include "kernel/base/list.h"
#include "kernel/base/lock.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/pool.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"

#define TAG ('I' | 'o' << 8 | 'W' << 16 | 'i' << 24)

struct _IO_WORKITEM;
typedef VOID(NTAPI *work_routine)(PDEVICE_OBJECT, PVOID);
typedef VOID(NTAPI *work_routine_ex)(PVOID, PVOID, struct _IO_WORKITEM *);

typedef struct _IO_WORKITEM {
    LIST_ENTRY list;
    PDEVICE_OBJECT device;
    work_routine routine; /* NULL: the other */
    work_routine_ex routine_ex;
    PVOID context;
    bool queued;
} * PIO_WORKITEM;

static struct lock work_lock = LOCK("work items", DISPATCH_LEVEL);
static LIST_ENTRY items = { &items, &items }; /* L: work_lock, and items' members */
static KSEMAPHORE queued;
static uint32_t unfinished; /* atomic: queued, or running */
static struct thread *worker;

static PIO_WORKITEM take_item(void)
{
    KIRQL irql = lock_acquire(&work_lock);
    PIO_WORKITEM item = CONTAINING_RECORD(items.Flink, struct _IO_WORKITEM, list);
    RemoveEntryList(&item->list);
    item->queued = false;
    lock_release(&work_lock, irql);
    return item;
}

/* The routine may queue the item again, or free it. */
static void run_items(void *unused)
{
    (void)unused;
    for (;;) {
        struct driver_call call;
        KeWaitForSingleObject(&queued, WrQueue, KernelMode, FALSE, NULL);
        PIO_WORKITEM item = take_item();
        const struct _IO_WORKITEM w = *item;
        driver_enter(&call, w.routine ? (void *)w.routine : (void *)w.routine_ex);
        if (w.routine)
            w.routine(w.device, w.context);
        else
            w.routine_ex(w.device, w.context, item);
        driver_leave(&call);
        __atomic_fetch_sub(&unfinished, 1, __ATOMIC_RELEASE);
    }
}

bool work_start(void)
{
    if (!worker) {
        KeInitializeSemaphore(&queued, 0, INT32_MAX);
        worker = thread_create_system("work items", run_items, NULL, cpu_all());
    }
    return worker;
}

void work_wait(void)
{
    while (__atomic_load_n(&unfinished, __ATOMIC_ACQUIRE))
        sched_wait(NULL, clock_ns() + sched_tick_ns(), DelayExecution);
}

/* NULL: no memory. */
PIO_WORKITEM IoAllocateWorkItem(PDEVICE_OBJECT DeviceObject)
{
    PIO_WORKITEM item = pool_allocate_for(sizeof *item, TAG);
    if (item)
        item->device = DeviceObject;
    return item;
}

static void refuse_queued(const struct _IO_WORKITEM *item, const char *words)
{
    if (item->queued)
        bug_check(WORKER_INVALID, (uint64_t[]){ 0, (uint64_t)item, 0, 0 }, words);
}

VOID IoFreeWorkItem(PIO_WORKITEM IoWorkItem)
{
    refuse_queued(IoWorkItem, "IoFreeWorkItem of one that is queued");
    pool_free_for(IoWorkItem, TAG);
}

static void queue_item(PIO_WORKITEM item, work_routine routine, work_routine_ex routine_ex,
                       PVOID context)
{
    KIRQL irql = lock_acquire(&work_lock);
    refuse_queued(item, "a work item that is queued already");
    item->routine = routine;
    item->routine_ex = routine_ex;
    item->context = context;
    item->queued = true;
    __atomic_fetch_add(&unfinished, 1, __ATOMIC_RELAXED);
    InsertTailList(&items, &item->list);
    lock_release(&work_lock, irql);
    KeReleaseSemaphore(&queued, 0, 1, FALSE);
}

VOID IoQueueWorkItem(PIO_WORKITEM IoWorkItem, work_routine WorkerRoutine, ULONG QueueType,
                     PVOID Context)
{
    (void)QueueType;
    queue_item(IoWorkItem, WorkerRoutine, NULL, Context);
}

VOID IoQueueWorkItemEx(PIO_WORKITEM IoWorkItem, work_routine_ex WorkerRoutine, ULONG QueueType,
                       PVOID Context)
{
    (void)QueueType;
    queue_item(IoWorkItem, NULL, WorkerRoutine, Context);
}
