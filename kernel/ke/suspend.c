/* SPDX-License-Identifier: MIT */
/* Suspending. The dispatcher lock guards counts. */
#include "kernel/ke/suspend.h"
#include "kernel/ke/caller.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/wait.h"

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
