/* SPDX-License-Identifier: MIT */
/* Makes threads. sched.c switches them, ending.c ends them, the last reference frees them. */
#include "kernel/ke/thread.h"
#include "hal/machine/apic.h"
#include "hal/machine/clock.h"
#include "kernel/base/upcalls.h"
#include "kernel/base/irql.h"
#include "kernel/base/print.h"
#include "kernel/base/vectors.h"
#include "kernel/base/x86.h"
#include "kernel/ke/context.h"
#include "kernel/ke/etw.h"
#include "kernel/ke/fpu.h"
#include "kernel/ke/mutex.h"
#include "kernel/ke/process.h"
#include "kernel/ke/sched.h"
#include "kernel/mm/phys.h"
#include "kernel/nt/nt_context.h"

#define STACK_PAGES (KERNEL_STACK_SIZE / PAGE_SIZE)
#define FPU_OFFSET 1024 /* of the area for fpu.c in the thread's page */

extern void trap_return(void);

static uint32_t next_id; /* atomic */

CLIENT_ID thread_client_id(const struct thread *thread)
{
    return (CLIENT_ID){ (HANDLE)(uint64_t)(thread->process ? PROCESS_ID : 0),
                        (HANDLE)(uint64_t)thread->id };
}

/* The first function of every thread; the switch to it holds the dispatcher lock. */
static void begin_thread(void)
{
    sched_begin();
    struct thread *me = thread_current();
    if (me->start)
        me->start(me->argument);
    thread_exit(STATUS_SUCCESS);
}

static void init_fpu(struct thread *thread)
{
    thread->fpu = (uint8_t *)thread + FPU_OFFSET;
    fpu_reset(thread->fpu);
}

static void enter_user(void *)
{
    struct thread *me = thread_current();
    thread_check_terminated();
    cli();
    asm volatile("mov %0,%%rsp\njmp trap_return" : : "r"(context_frame(me)) : "memory");
    __builtin_unreachable();
}

/* As after a CALL, with space for four arguments; above, unwinding may read Windows' CONTEXT. */
static void prepare_user(struct thread *thread, uint64_t start, uint64_t argument)
{
    struct trap_frame *frame = context_frame(thread);
    thread->start = enter_user;
    thread->user_start = start;
    *frame = (struct trap_frame){ .rip = thread->process->thread_entry,
                                  .cs = SEL_USER_CS,
                                  .rflags = RFLAGS_IF | 2,
                                  .rsp = thread->user_stack_top - 40 - sizeof(CONTEXT),
                                  .ss = SEL_USER_SS,
                                  .rcx = start,
                                  .rdx = argument };
    init_fpu(thread);
}

static void destroy_thread(struct object *object)
{
    struct thread *thread = CONTAINING_RECORD(object, struct thread, object);
    struct process *process = thread->process;
    phys_free(thread->stack, STACK_PAGES);
    phys_free(thread, 1);
    if (process)
        object_release(&process->object);
}

const struct object_type thread_type = {
    .name = "Thread",
    .destroy = destroy_thread,
    .all = THREAD_ALL_ACCESS,
    .read = STANDARD_RIGHTS_READ | THREAD_GET_CONTEXT | THREAD_QUERY_INFORMATION,
    .write = STANDARD_RIGHTS_READ | THREAD_TERMINATE | THREAD_SUSPEND_RESUME | THREAD_ALERT |
             THREAD_SET_INFORMATION | THREAD_SET_CONTEXT,
    .execute = STANDARD_RIGHTS_READ | SYNCHRONIZE,
};

/* Two references: the caller's, and its own life. */
static struct thread *allocate(const char *name)
{
    _Static_assert(sizeof(struct thread) <= FPU_OFFSET && FPU_OFFSET + FPU_AREA_MAX <= PAGE_SIZE,
                   "one page");
    struct thread *thread = phys_alloc(1);
    if (!thread)
        return NULL;
    thread->stack = phys_alloc(STACK_PAGES);
    if (!thread->stack) {
        phys_free(thread, 1);
        return NULL;
    }
    object_init(&thread->object, &thread_type, ThreadObject, 2);
    InitializeListHead(&thread->mutants);
    thread->name = name;
    thread->id = 4 * (__atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED) + 1);
    thread->priority = THREAD_PRIORITY;
    thread->exit_status = STATUS_PENDING;
    *(uint64_t *)thread->stack = SCHED_STACK_MAGIC;
    sched_prepare_stack(thread, (uint64_t)thread->stack + KERNEL_STACK_SIZE, begin_thread);
    return thread;
}

static struct thread *run_thread(struct thread *thread, struct cpu_set affinity, bool suspended)
{
    if (thread_notify)
        thread_notify(thread, true);
    thread->affinity = affinity;
    thread->created = clock_ns();
    living_add(thread);
    if (etw_wants(ETW_THREAD_CREATE))
        etw_thread(ETW_THREAD_CREATE, thread);
    KIRQL irql = sched_lock();
    thread->cpu = cpu_number();
    thread->suspended = suspended;
    if (suspended && !__atomic_load_n(&thread->terminate, __ATOMIC_ACQUIRE))
        thread->state = THREAD_SUSPENDED;
    else
        sched_make_ready(thread);
    sched_unlock(irql);
    return thread;
}

uint64_t thread_create_idle(struct cpu *cpu)
{
    struct thread *idle = allocate("idle");
    if (!idle)
        panic("no memory for an idle thread");
    idle->id = 0;
    idle->priority = 0;
    idle->state = THREAD_RUNNING;
    idle->cpu = cpu->number;
    idle->affinity = cpu_set_one(cpu->number);
    cpu->idle = idle;
    cpu->thread = idle;
    cpu->kthread = &idle->object.header;
    return (uint64_t)idle->stack + KERNEL_STACK_SIZE;
}

static bool possible(struct cpu_set affinity) { return cpu_set_meet(affinity, cpu_all()); }

static struct thread *create(const char *name, void (*start)(void *), void *argument,
                             struct cpu_set affinity, bool fpu, bool suspended)
{
    struct thread *thread = possible(affinity) ? allocate(name) : NULL;
    if (!thread)
        return NULL;
    thread->start = start;
    thread->argument = argument;
    if (fpu)
        init_fpu(thread);
    return run_thread(thread, affinity, suspended);
}

struct thread *thread_create(const char *name, void (*start)(void *), void *argument,
                             struct cpu_set affinity)
{
    return create(name, start, argument, affinity, false, false);
}

struct thread *thread_create_system(const char *name, void (*start)(void *), void *argument,
                                    struct cpu_set affinity)
{
    return create(name, start, argument, affinity, true, false);
}

struct thread *thread_create_suspended(const char *name, void (*start)(void *), void *argument)
{
    return create(name, start, argument, cpu_all(), true, true);
}

void thread_use_fpu(void)
{
    struct thread *me = thread_current();
    if (!me->fpu)
        init_fpu(me);
}

static struct thread *create_user(const char *name, struct process *process, uint64_t start,
                                  uint64_t argument, struct cpu_set affinity, bool suspended)
{
    struct thread *thread = possible(affinity) ? allocate(name) : NULL;
    if (!thread)
        return NULL;
    /* A process that cannot be joined is ending, and takes its memory with it. */
    if (!process_equip(process, thread) || !process_join(process, thread)) {
        thread->object.refs = 1;
        object_release(&thread->object);
        return NULL;
    }
    object_hold(&process->object);
    thread->process = process;
    prepare_user(thread, start, argument);
    return run_thread(thread, affinity, suspended);
}

struct thread *thread_create_user(const char *name, struct process *process, uint64_t start,
                                  uint64_t argument, struct cpu_set affinity)
{
    return create_user(name, process, start, argument, affinity, false);
}

/* Not the creator's affinity: a thread that pinned itself must not pin its children. */
struct thread *thread_create_another(struct process *process, uint64_t start, uint64_t argument,
                                     bool suspended)
{
    return create_user(thread_current()->name, process, start, argument, cpu_all(), suspended);
}
