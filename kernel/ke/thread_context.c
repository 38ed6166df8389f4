/* SPDX-License-Identifier: MIT */
/* A thread's registers lie on its kernel stack once it runs nowhere; the dispatcher lock keeps it
 * from running. */
#include "kernel/ke/thread_context.h"
#include "hal/machine/clock.h"
#include "kernel/base/vectors.h"
#include "kernel/ke/caller.h"
#include "kernel/ke/context.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/suspend.h"
#include "kernel/ke/thread.h"
#include "kernel/ke/wait.h"

#define TRY_AGAIN_NS 100000u

/* L: dispatcher lock. In a wait for the kernel its registers are those of the service's call. */
static bool runs_nowhere(const struct thread *thread)
{
    return thread->state == THREAD_SUSPENDED ||
           (thread->state == THREAD_WAITING && thread->wait->mode == KernelMode &&
            context_frame(thread)->vector == TRAP_SYSCALL);
}

/* STATUS_PENDING: it still runs, and has been asked to stop. */
static NTSTATUS try(struct thread *thread, CONTEXT *context, bool *stopped)
{
    NTSTATUS status = STATUS_PENDING;
    KIRQL irql = sched_lock();
    if (suspend_too_late(thread)) {
        status = STATUS_UNSUCCESSFUL;
    } else if (runs_nowhere(thread)) {
        context_get_stopped(thread, context);
        status = STATUS_SUCCESS;
    } else if (!thread->suspended) {
        *stopped = true;
        __atomic_store_n(&thread->suspended, 1, __ATOMIC_RELAXED);
        wait_notice(thread, STATUS_KERNEL_APC);
    }
    sched_unlock(irql);
    return status;
}

static NTSTATUS get_other(struct thread *thread, CONTEXT *context)
{
    NTSTATUS status;
    bool stopped = false;
    while ((status = try(thread, context, &stopped)) == STATUS_PENDING) {
        sched_wait(NULL, clock_ns() + TRY_AGAIN_NS, DelayExecution);
        if (__atomic_load_n(&thread_current()->terminate, __ATOMIC_ACQUIRE)) {
            status = STATUS_THREAD_IS_TERMINATING;
            break;
        }
    }
    if (stopped)
        thread_resume(thread);
    return status;
}

NTSTATUS NtGetContextThread(HANDLE ThreadHandle, PCONTEXT ThreadContext)
{
    struct object *object;
    CONTEXT context;
    NTSTATUS status = context_copy_in(&context, ThreadContext);
    if (NT_SUCCESS(status) && !(context.ContextFlags & CONTEXT_AMD64))
        status = STATUS_INVALID_PARAMETER;
    if (NT_SUCCESS(status))
        status = handle_lookup(ThreadHandle, &thread_type, THREAD_GET_CONTEXT, &object);
    if (!NT_SUCCESS(status))
        return status;
    struct thread *thread = (struct thread *)object;
    if (!thread->process)
        status = STATUS_INVALID_HANDLE;
    else if (thread != thread_current())
        status = get_other(thread, &context);
    else
        context_get(context_frame(thread), &context);
    object_release(object);
    return NT_SUCCESS(status) ? caller_put(ThreadContext, &context, sizeof context) : status;
}
