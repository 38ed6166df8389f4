/* SPDX-License-Identifier: MIT */
/* How threads and processes end. PASSIVE_LEVEL, unless thread.h says otherwise. */
#include "hal/machine/apic.h"
#include "hal/machine/clock.h"
#include "kernel/base/upcalls.h"
#include "kernel/base/irql.h"
#include "kernel/base/print.h"
#include "kernel/base/x86.h"
#include "kernel/ke/etw.h"
#include "kernel/ke/mutex.h"
#include "kernel/ke/process.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"

#define STACK_TO_END 6144 /* bytes that the end of a thread may need */

void thread_exit(NTSTATUS status)
{
    struct thread *me = thread_current();
    me->exiting = true;
    if (thread_notify)
        thread_notify(me, false);
    mutex_abandon();
    if (thread_ended)
        thread_ended(me);
    if (etw_wants(ETW_THREAD_DELETE))
        etw_thread(ETW_THREAD_DELETE, me);
    me->exit_status = status;
    if (me->process)
        process_leave(me->process, me);
    living_remove(me);
    wait_die();
}

void thread_terminate(struct thread *thread, NTSTATUS status)
{
    thread->terminate_status = status;
    __atomic_store_n(&thread->terminate, 1, __ATOMIC_RELEASE);
    wait_interrupt(thread);
}

void thread_check_terminated(void)
{
    struct thread *me = thread_current();
    if (!__atomic_load_n(&me->terminate, __ATOMIC_ACQUIRE))
        return;
    sti();
    thread_exit(me->terminate_status);
}

/* L: process.lock */
static void end_others(const struct process *process, const struct thread *me, NTSTATUS status)
{
    for (struct thread *t = process->first; t; t = t->sibling)
        if (t != me)
            thread_terminate(t, status);
}

void process_end(NTSTATUS status)
{
    struct thread *me = thread_current();
    struct process *process = me->process;
    KIRQL irql = lock_acquire(&process->lock);
    if (!process->ending) {
        process->ending = true;
        process->end_status = status;
    }
    end_others(process, me, status);
    lock_release(&process->lock, irql);
    thread_exit(status);
}

/* Two threads may end each other: one that is itself to end stops waiting. */
void process_end_others(NTSTATUS status)
{
    struct thread *me = thread_current();
    struct process *process = me->process;
    bool alone = false;
    while (!alone && !__atomic_load_n(&me->terminate, __ATOMIC_ACQUIRE)) {
        KIRQL irql = lock_acquire(&process->lock);
        end_others(process, me, status);
        alone = process->first == me && !me->sibling;
        lock_release(&process->lock, irql);
        if (!alone)
            sched_wait(NULL, clock_ns() + sched_tick_ns(), DelayExecution);
    }
}

/* --- Ending other threads: a thread that must end does so as soon as it runs. --- */

/* Atomic. While it is false, thread_nmi does not look at its CPU's block. */
static bool any_forced;

__attribute__((noreturn)) static void end_here(void)
{
    struct thread *me = thread_current();
    /* Before IRQL falls: each pending interrupt then ends in thread_check_killed, which must not
     * come here again on a deeper stack. */
    me->exiting = true;
    write_cr8(PASSIVE_LEVEL);
    sti();
    thread_exit(me->terminate ? me->terminate_status : STATUS_TIMEOUT);
}

static void begin_to_end(void)
{
    sched_begin();
    end_here();
}

/* Its CPU may have other interrupt handlers than the kernel's, and be inside one. */
static void end_after_nmi(void)
{
    cpu_load_idt();
    apic_finish_interrupts();
    end_here();
}

void thread_check_killed(void)
{
    if (thread_must_end(thread_current()))
        end_here();
}

/* An address on the stack below the part in use, if there is space: other threads may have
 * pointers into that part. */
static uint64_t free_stack(const struct thread *thread, uint64_t rsp)
{
    uint64_t low = (uint64_t)thread->stack;
    bool fits = rsp > low + STACK_TO_END && rsp <= low + KERNEL_STACK_SIZE;
    return (fits ? rsp : low + KERNEL_STACK_SIZE) & ~15ul;
}

/* A thread that does not run is made to end when it runs next. */
void thread_kill(struct thread *thread, bool by_force)
{
    unsigned cpu = ~0u; /* that it runs on */
    if (by_force)
        __atomic_store_n(&any_forced, true, __ATOMIC_RELEASE);
    KIRQL irql = sched_lock();
    thread->killed = true;
    thread->forced |= by_force;
    if (thread->state == THREAD_RUNNING) {
        cpu = thread->cpu;
        sched_reschedule(cpu);
    } else if (thread->state != THREAD_DEAD && thread_must_end(thread)) {
        if (thread->state == THREAD_WAITING) /* its wait is on its stack */
            wait_end(thread, STATUS_THREAD_IS_TERMINATING);
        else if (thread->state == THREAD_SUSPENDED)
            sched_make_ready(thread);
        sched_prepare_stack(thread, free_stack(thread, thread->rsp), begin_to_end);
    }
    sched_unlock(irql);
    if (by_force && cpu < cpu_count && cpu != cpu_number() && !thread->process)
        apic_send_nmi(cpus[cpu]->apic_id);
}

void thread_nmi(struct interrupted *at)
{
    if (!__atomic_load_n(&any_forced, __ATOMIC_ACQUIRE) || (at->cs & 3))
        return;
    const struct cpu *cpu = cpu_current();
    const struct thread *me = cpu->thread;
    if (!me->forced || me->process || !thread_must_end(me) || cpu->locks || print_busy())
        return;
    at->rip = (uint64_t)end_after_nmi;
    at->rsp = free_stack(me, at->rsp) - 8; /* as after a CALL */
    at->rflags = 2;
}
