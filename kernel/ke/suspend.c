/* SPDX-License-Identifier: MIT */
/* Suspending, and user APCs. The dispatcher lock guards counts and queues. */
#include "kernel/ke/suspend.h"
#include "kernel/base/irql.h"
#include "kernel/base/refuse.h"
#include "kernel/base/string.h"
#include "kernel/base/vectors.h"
#include "kernel/base/x86.h"
#include "kernel/ke/caller.h"
#include "kernel/ke/context.h"
#include "kernel/ke/exception.h"
#include "kernel/ke/process.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/wait.h"
#include "kernel/mm/phys.h"

/* --- Suspending. --- */

bool suspend_too_late(const struct thread *thread)
{
    return thread->state == THREAD_DEAD || thread->exiting ||
           __atomic_load_n(&thread->terminate, __ATOMIC_ACQUIRE);
}

static NTSTATUS suspend(struct thread *thread, ULONG *before)
{
    NTSTATUS status = STATUS_SUCCESS;
    KIRQL irql = sched_lock();
    if (suspend_too_late(thread) || !thread->process)
        status = STATUS_THREAD_IS_TERMINATING;
    else if (thread->suspended == MAXIMUM_SUSPEND_COUNT)
        status = STATUS_SUSPEND_COUNT_EXCEEDED;
    else if (!(*before = __atomic_fetch_add(&thread->suspended, 1, __ATOMIC_RELAXED)))
        wait_notice(thread, STATUS_KERNEL_APC);
    sched_unlock(irql);
    return status;
}

static NTSTATUS resume(struct thread *thread, ULONG *before)
{
    KIRQL irql = sched_lock();
    *before = suspend_too_late(thread) ? 0 : thread->suspended;
    if (thread->suspended && !__atomic_sub_fetch(&thread->suspended, 1, __ATOMIC_RELAXED) &&
        thread->state == THREAD_SUSPENDED)
        sched_make_ready(thread);
    sched_unlock(irql);
    return STATUS_SUCCESS;
}

static NTSTATUS change(HANDLE handle, PULONG previous,
                       NTSTATUS (*function)(struct thread *, ULONG *))
{
    struct object *object;
    ULONG count = 0;
    NTSTATUS status = caller_probe_optional(previous, sizeof count);
    if (NT_SUCCESS(status))
        status = handle_lookup(handle, &thread_type, THREAD_SUSPEND_RESUME, &object);
    if (!NT_SUCCESS(status))
        return status;
    status = function((struct thread *)object, &count);
    object_release(object);
    NTSTATUS put = caller_put_optional(previous, &count, sizeof count); /* 0 if it failed */
    return NT_SUCCESS(status) ? put : status;
}

NTSTATUS NtSuspendThread(HANDLE ThreadHandle, PULONG PreviousSuspendCount)
{
    return change(ThreadHandle, PreviousSuspendCount, suspend);
}

void thread_resume(struct thread *thread)
{
    ULONG before;
    resume(thread, &before);
}

NTSTATUS NtResumeThread(HANDLE ThreadHandle, PULONG PreviousSuspendCount)
{
    return change(ThreadHandle, PreviousSuspendCount, resume);
}

void thread_way_out(void)
{
    thread_check_terminated();
    if (!__atomic_load_n(&thread_current()->suspended, __ATOMIC_RELAXED))
        return;
    wait_while_suspended();
    thread_check_terminated();
}

/* --- APCs. --- */

struct apc {
    PVOID routine, arguments[3];
};

/* One page, which a thread gets with its first call. */
struct apc_queue {
    unsigned first;
    bool timed[THREAD_APCS]; /* of a timer: arguments are its context, the time, and its mark */
    struct apc apcs[THREAD_APCS];
};
_Static_assert(sizeof(struct apc_queue) <= PAGE_SIZE, "one page");

/* What the dispatcher finds on its stack; after the context as an interrupt would have pushed it,
 * for unwinding. */
struct apc_frame {
    CONTEXT context;
    uint64_t rip, cs, eflags, rsp, ss, spare;
};
_Static_assert(offsetof(struct apc_frame, rip) == 0x4d0 && sizeof(struct apc_frame) % 16 == 0,
               "apc.c of ntdll");

static bool put_apc(struct thread *thread, const struct apc *apc, bool timed)
{
    struct apc_queue *q = thread->apcs;
    if (thread->apc_count == THREAD_APCS || claim_fails())
        return false;
    unsigned at = (q->first + thread->apc_count++) % THREAD_APCS;
    q->apcs[at] = *apc;
    q->timed[at] = timed;
    if (thread->state == THREAD_WAITING && thread->wait->mode == UserMode &&
        thread->wait->alertable) {
        thread->apc_due = true;
        wait_end(thread, STATUS_USER_APC);
    }
    return true;
}

/* Gives the thread a queue if it has none. False: no memory. */
static bool have_queue(struct thread *thread)
{
    if (__atomic_load_n(&thread->apcs, __ATOMIC_ACQUIRE))
        return true;
    void *page = phys_alloc(1);
    KIRQL irql = sched_lock();
    bool first = !thread->apcs;
    if (first)
        __atomic_store_n(&thread->apcs, page, __ATOMIC_RELEASE);
    bool any = thread->apcs;
    sched_unlock(irql);
    if (page && !first)
        phys_free(page, 1);
    return any;
}

static NTSTATUS queue(struct thread *thread, const struct apc *apc)
{
    NTSTATUS status = STATUS_SUCCESS;
    bool any = have_queue(thread);
    KIRQL irql = sched_lock();
    if (suspend_too_late(thread))
        status = STATUS_UNSUCCESSFUL;
    else if (!any || !put_apc(thread, apc, false))
        status = STATUS_NO_MEMORY;
    sched_unlock(irql);
    return status;
}

bool apc_queue(struct thread *thread, PVOID routine, PVOID argument1, PVOID argument2,
               PVOID argument3)
{
    const struct apc apc = { routine, { argument1, argument2, argument3 } };
    return thread->process && thread->process->apc_entry && NT_SUCCESS(queue(thread, &apc));
}

/* --- Of timers. --- */

static bool is_windows(const struct thread *me)
{
    return me->process && !me->trusted && me->process->apc_entry;
}

NTSTATUS apc_have_queue(void)
{
    struct thread *me = thread_current();
    if (!is_windows(me))
        return STATUS_NOT_SUPPORTED;
    return have_queue(me) ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
}

void apc_put_timed(struct thread *thread, PVOID routine, PVOID context, uint64_t time, bool *mark)
{
    const struct apc apc = { routine, { context, (PVOID)time, mark } };
    *mark = put_apc(thread, &apc, true);
}

void apc_take_back(struct thread *thread, bool *mark)
{
    struct apc_queue *q = thread->apcs;
    unsigned to = q->first, left = 0;
    for (unsigned i = 0; i < thread->apc_count; i++) {
        unsigned from = (q->first + i) % THREAD_APCS;
        if (q->timed[from] && q->apcs[from].arguments[2] == mark)
            continue;
        q->apcs[to] = q->apcs[from];
        q->timed[to] = q->timed[from];
        to = (to + 1) % THREAD_APCS;
        left++;
    }
    thread->apc_count = left;
    *mark = false;
}

NTSTATUS NtQueueApcThread(HANDLE ThreadHandle, PVOID ApcRoutine, PVOID ApcArgument1,
                          PVOID ApcArgument2, PVOID ApcArgument3)
{
    const struct apc apc = { ApcRoutine, { ApcArgument1, ApcArgument2, ApcArgument3 } };
    struct object *object;
    NTSTATUS status = handle_lookup(ThreadHandle, &thread_type, THREAD_SET_CONTEXT, &object);
    if (!NT_SUCCESS(status))
        return status;
    struct thread *thread = (struct thread *)object;
    status =
        thread->process && thread->process->apc_entry ? queue(thread, &apc) : STATUS_INVALID_HANDLE;
    object_release(object);
    return status;
}

NTSTATUS NtTestAlert(void)
{
    struct thread *me = thread_current();
    KIRQL irql = sched_lock();
    me->apc_due |= me->apc_count > 0;
    sched_unlock(irql);
    return STATUS_SUCCESS;
}

static bool take_apc(struct thread *me, struct apc *apc)
{
    KIRQL irql = sched_lock();
    bool any = me->apc_count;
    if (any) {
        *apc = me->apcs->apcs[me->apcs->first];
        if (me->apcs->timed[me->apcs->first]) {
            uint64_t time = (uint64_t)apc->arguments[1];
            *(bool *)apc->arguments[2] = false;
            apc->arguments[1] = (PVOID)(time & 0xffffffff);
            apc->arguments[2] = (PVOID)(time >> 32);
        }
        me->apcs->first = (me->apcs->first + 1) % THREAD_APCS;
        me->apc_count--;
    }
    me->apc_due = false;
    sched_unlock(irql);
    return any;
}

static void fill_apc_frame(struct apc_frame *a, const struct trap_frame *f, const struct apc *apc)
{
    memset(a, 0, sizeof *a);
    a->context.ContextFlags = CONTEXT_ALL;
    context_get(f, &a->context);
    a->context.P1Home = (ULONG64)apc->arguments[0];
    a->context.P2Home = (ULONG64)apc->arguments[1];
    a->context.P3Home = (ULONG64)apc->arguments[2];
    a->context.P4Home = (ULONG64)apc->routine;
    a->rip = f->rip, a->cs = f->cs, a->eflags = f->rflags, a->rsp = f->rsp, a->ss = f->ss;
}

void apc_deliver(struct trap_frame *frame)
{
    struct apc_frame a __attribute__((aligned(16)));
    struct apc apc;
    uint64_t rsp = (frame->rsp & ~15ul) - sizeof a;
    if (!take_apc(thread_current(), &apc))
        return;
    fill_apc_frame(&a, frame, &apc);
    if (!NT_SUCCESS(copy_out((void *)rsp, &a, sizeof a))) {
        const EXCEPTION_RECORD record = { .ExceptionCode = STATUS_STACK_OVERFLOW,
                                          .ExceptionAddress = (PVOID)frame->rip };
        exception_deliver(frame, &record);
        return;
    }
    frame->rip = thread_current()->process->apc_entry;
    frame->rsp = rsp;
    frame->rflags = RFLAGS_IF | 2;
    frame->vector = TRAP_RESTORE;
}
