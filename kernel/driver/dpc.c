/* SPDX-License-Identifier: MIT */
/* Deferred procedure calls and timers. A DPC runs from an interrupt of DISPATCH_LEVEL, with
 * interrupts on. queue_lock guards the queues; timers are the dispatcher lock's. Sources: the
 * Windows driver documentation. */
#include "hal/machine/apic.h"
#include "kernel/base/bits.h"
#include "kernel/base/upcalls.h"
#include "kernel/base/assert.h"
#include "kernel/base/cpu.h"
#include "kernel/base/irql.h"
#include "kernel/base/lock.h"
#include "kernel/base/print.h"
#include "kernel/base/x86.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/etw.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/timer.h"
#include "kernel/trap.h"

#define DPC_TYPE 0x13
#define MAXIMUM_PROC 0x500 /* KDPC.Number: this and the processor */
#define HIGH_IMPORTANCE 2
#define BY_TIMER 1u /* beside the queue in DpcData */

static struct lock queue_lock = LOCK("DPCs", PROFILE_LEVEL);
static struct queue {
    LIST_ENTRY list;
    bool runs;      /* one of it */
} queues[MAX_CPUS]; /* L: queue_lock */

/* --- DPCs. --- */

/* *hook: the kind of its record, which says whether a timer queued it. */
static KDPC *take_dpc(enum etw_hook *hook)
{
    KDPC *dpc = NULL;
    KIRQL irql = lock_acquire(&queue_lock);
    struct queue *q = &queues[cpu_number()];
    q->runs = !IsListEmpty(&q->list);
    if (q->runs) {
        dpc = CONTAINING_RECORD(q->list.Flink, KDPC, DpcListEntry);
        RemoveEntryList(&dpc->DpcListEntry);
        *hook = (uint64_t)dpc->DpcData & BY_TIMER ? ETW_TIMER_DPC : ETW_DPC;
        dpc->DpcData = NULL;
    }
    lock_release(&queue_lock, irql);
    return dpc;
}

static void call_dpc(KDPC *dpc, enum etw_hook hook)
{
    const KDPC d = *dpc; /* the driver may free it, or queue it again, while the routine runs */
    struct driver_call call;
    driver_enter(&call, d.DeferredRoutine);
    uint64_t entered = rdtsc();
    CPU_SET_FIELD(in_dpc, true);
    d.DeferredRoutine(dpc, d.DeferredContext, d.SystemArgument1, d.SystemArgument2);
    CPU_SET_FIELD(in_dpc, false);
    if (etw_wants(hook))
        etw_dpc(hook, entered, (uint64_t)d.DeferredRoutine);
    driver_leave(&call);
}

static void run_queue(void)
{
    enum etw_hook hook = ETW_DPC;
    KDPC *dpc;
    sti();
    while ((dpc = take_dpc(&hook)))
        call_dpc(dpc, hook);
    cli();
}

/* L: queue_lock. Before the first DPC. */
static void prepare_queues(void)
{
    for_each_in(q, queues)
        InitializeListHead(&q->list);
    __atomic_store_n(&trap_dpc, run_queue, __ATOMIC_RELEASE);
}

VOID KeInitializeDpc(PRKDPC Dpc, PKDEFERRED_ROUTINE DeferredRoutine, PVOID DeferredContext)
{
    *Dpc = (KDPC){ .Type = DPC_TYPE,
                   .Importance = 1,
                   .DeferredRoutine = DeferredRoutine,
                   .DeferredContext = DeferredContext };
}

/* FALSE: it is queued already. */
static bool queue_dpc(KDPC *dpc, uint64_t by, PVOID argument1, PVOID argument2)
{
    unsigned target = dpc->Number - (unsigned)MAXIMUM_PROC; /* huge if none was set */
    unsigned cpu = target < cpu_count ? target : cpu_number();
    KIRQL irql = lock_acquire(&queue_lock);
    bool done = !dpc->DpcData;
    if (!trap_dpc)
        prepare_queues();
    if (done) {
        dpc->DpcData = (uint8_t *)&queues[cpu] + by;
        dpc->SystemArgument1 = argument1;
        dpc->SystemArgument2 = argument2;
        if (dpc->Importance == HIGH_IMPORTANCE)
            InsertHeadList(&queues[cpu].list, &dpc->DpcListEntry);
        else
            InsertTailList(&queues[cpu].list, &dpc->DpcListEntry);
    }
    lock_release(&queue_lock, irql);
    if (done && cpu == cpu_number())
        apic_send_self(VECTOR_DPC);
    else if (done)
        apic_send(cpus[cpu]->apic_id, VECTOR_DPC);
    return done;
}

BOOLEAN KeInsertQueueDpc(PRKDPC Dpc, PVOID SystemArgument1, PVOID SystemArgument2)
{
    if (Dpc->Type != DPC_TYPE)
        bug_check(TIMER_OR_DPC_INVALID, (uint64_t[]){ 0, (uint64_t)Dpc, 0, driver_caller() },
                  "KeInsertQueueDpc of what KeInitializeDpc did not initialize");
    KIRQL old = irql_raise(PROFILE_LEVEL); /* on this processor */
    bool done = queue_dpc(Dpc, 0, SystemArgument1, SystemArgument2);
    irql_lower(old);
    return done;
}

/* FALSE: it was not queued. */
BOOLEAN KeRemoveQueueDpc(PRKDPC Dpc)
{
    KIRQL irql = lock_acquire(&queue_lock);
    bool queued = Dpc->DpcData;
    if (queued) {
        RemoveEntryList(&Dpc->DpcListEntry);
        Dpc->DpcData = NULL;
    }
    lock_release(&queue_lock, irql);
    return queued;
}

VOID KeSetImportanceDpc(PRKDPC Dpc, ULONG Importance) { Dpc->Importance = (UCHAR)Importance; }

VOID KeSetTargetProcessorDpc(PRKDPC Dpc, CHAR Number)
{
    Dpc->Number = (USHORT)(MAXIMUM_PROC + (UCHAR)Number);
}

/* STATUS_INVALID_PARAMETER: there is no such processor. */
NTSTATUS KeSetTargetProcessorDpcEx(PRKDPC Dpc, PPROCESSOR_NUMBER ProcNumber)
{
    unsigned cpu = cpu_of_number(*ProcNumber);
    if (cpu == MAX_CPUS)
        return STATUS_INVALID_PARAMETER;
    Dpc->Number = (USHORT)(MAXIMUM_PROC + cpu);
    return STATUS_SUCCESS;
}

static bool any_queued(void)
{
    bool any = false;
    KIRQL irql = lock_acquire(&queue_lock);
    for (unsigned i = 0; i < cpu_count; i++)
        any |= queues[i].runs || !IsListEmpty(&queues[i].list);
    lock_release(&queue_lock, irql);
    return any;
}

/* Returns when what was queued has run. */
VOID KeFlushQueuedDpcs(void)
{
    while (__atomic_load_n(&trap_dpc, __ATOMIC_ACQUIRE) && any_queued()) {
        sched_switch(WrYieldExecution);
        pause();
    }
}

static void queue_timer_dpc(KDPC *dpc) { queue_dpc(dpc, BY_TIMER, NULL, NULL); }

/* --- Timers. NT: a timer's header is an event's: waits treat it as one. --- */

VOID KeInitializeTimerEx(PKTIMER Timer, EVENT_TYPE Type)
{
    *Timer = (KTIMER){ .Period = 0 };
    KeInitializeEvent((PRKEVENT)&Timer->Header, Type, FALSE);
}

VOID KeInitializeTimer(PKTIMER Timer) { KeInitializeTimerEx(Timer, NotificationEvent); }

/* TRUE: it was set already. */
BOOLEAN KeSetTimerEx(PKTIMER Timer, LARGE_INTEGER DueTime, LONG Period, PKDPC Dpc)
{
    KIRQL irql = sched_lock();
    timer_dpc = queue_timer_dpc;
    Timer->Dpc = Dpc;
    bool was = timer_set(Timer, dispatcher_deadline(&DueTime), (ULONG)Period);
    sched_unlock(irql);
    return was;
}

BOOLEAN KeSetTimer(PKTIMER Timer, LARGE_INTEGER DueTime, PKDPC Dpc)
{
    return KeSetTimerEx(Timer, DueTime, 0, Dpc);
}

/* TRUE: it was set. */
BOOLEAN KeCancelTimer(PKTIMER Timer)
{
    KIRQL irql = sched_lock();
    bool was = timer_cancel(Timer);
    sched_unlock(irql);
    return was;
}

BOOLEAN KeReadStateTimer(PKTIMER Timer) { return Timer->Header.SignalState > 0; }

void timers_left(struct driver *driver)
{
    unsigned count = 0;
    KeFlushQueuedDpcs();
    KIRQL irql = sched_lock();
    for (const KTIMER *timer = NULL; (timer = timer_next(timer));)
        count += driver_at((uint64_t)timer) == driver ||
                 (timer->Dpc && driver_at((uint64_t)timer->Dpc->DeferredRoutine) == driver);
    sched_unlock(irql);
    if (count)
        driver_left(driver, "%u timer%s set", count, count > 1 ? "s" : "");
}
