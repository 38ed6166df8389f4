/* SPDX-License-Identifier: MIT */
/* Thread life: made here, switched by sched.c, ended here, freed by the last reference. */
#include "kernel/thread.h"
#include "kernel/etw.h"
#include "kernel/irql.h"
#include "kernel/phys.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "kernel/thread_profiling.h"
#include "kernel/trap.h"
#include "kernel/x86.h"

#define STACK_PAGES (KERNEL_STACK_SIZE / PAGE_SIZE)
#define FPU_OFFSET 1024 /* of the FPU area in the thread's page */
#define MXCSR_DEFAULT 0x1f80
#define FCW_DEFAULT 0x37f

extern void user_thread_start(void), user_process_start(void);
extern void trap_return(void);

static uint32_t count, next_id; /* atomic */

unsigned thread_count(void) { return __atomic_load_n(&count, __ATOMIC_RELAXED); }

/* Where a kernel thread begins, and a ring-3 thread's way down: with sched_lock held by the switch. */
static void begin(void)
{
    sched_begin();
    struct thread *me = thread_current();
    if (me->start)
        me->start(me->argument);
    thread_exit(STATUS_SUCCESS);
}

static void enter_user(void *unused)
{
    struct thread *me = thread_current();
    (void)unused;
    thread_check_terminated();
    cli();
    struct trap_frame *frame = (struct trap_frame *)(me->stack + KERNEL_STACK_SIZE) - 1;
    *frame = (struct trap_frame){ .rip = me->user_entry, .cs = SEL_USER_CS, .rflags = RFLAGS_IF | 2,
                                  .rsp = me->user_rsp, .ss = SEL_USER_SS, .rdi = me->user_start,
                                  .rsi = me->user_argument };
    asm volatile("mov %0,%%rsp\njmp trap_return" : : "r"(frame) : "memory");
    __builtin_unreachable();
}

extern void thread_trampoline(void);

/* The stack as switch_stacks leaves one: r15 r14 r13 r12 rbp rbx rflags, return address. */
static void prepare_stack(struct thread *thread)
{
    uint64_t *sp = (uint64_t *)(thread->stack + KERNEL_STACK_SIZE) - 32;
    *(uint64_t *)thread->stack = SCHED_STACK_MAGIC;
    *--sp = (uint64_t)thread_trampoline;
    *--sp = RFLAGS_IF | 2;
    *--sp = (uint64_t)begin;
    for (unsigned i = 0; i < 5; i++)
        *--sp = 0;
    thread->rsp = (uint64_t)sp;
}

struct thread *thread_allocate(const char *name)
{
    _Static_assert(sizeof(struct thread) <= FPU_OFFSET && FPU_OFFSET + FPU_AREA_SIZE <= PAGE_SIZE, "one page");
    struct thread *thread = phys_alloc(1);
    if (!thread)
        return NULL;
    thread->stack = phys_alloc(STACK_PAGES);
    if (!thread->stack) {
        phys_free(thread, 1);
        return NULL;
    }
    thread->object = (struct object){ .type = OBJECT_THREAD, .refs = 2 }; /* the caller, and its own life */
    thread->name = name;
    thread->id = 4 * (__atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED) + 1);
    thread->priority = THREAD_PRIORITY;
    thread->exit_status = STATUS_PENDING;
    prepare_stack(thread);
    return thread;
}

static struct thread *run(struct thread *thread, uint64_t affinity)
{
    __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    thread->affinity = affinity;
    if (etw_wants(ETW_THREAD_CREATE))
        etw_thread(ETW_THREAD_CREATE, thread);
    sched_add(thread);
    return thread;
}

static bool possible(uint64_t affinity)
{
    return affinity & (cpu_count == 64 ? ~0ul : (1ul << cpu_count) - 1);
}

struct thread *thread_create(const char *name, void (*start)(void *), void *argument, uint64_t affinity)
{
    struct thread *thread = possible(affinity) ? thread_allocate(name) : NULL;
    if (!thread)
        return NULL;
    thread->start = start;
    thread->argument = argument;
    return run(thread, affinity);
}

static void init_fpu(struct thread *thread)
{
    thread->fpu = (uint8_t *)thread + FPU_OFFSET;
    *(uint16_t *)thread->fpu = FCW_DEFAULT;
    *(uint32_t *)((uint8_t *)thread->fpu + 24) = MXCSR_DEFAULT;
}

static struct thread *create_user(const char *name, struct process *process, void (*entry)(void), uint64_t start,
                                  uint64_t argument, uint64_t affinity)
{
    unsigned slot = 0;
    struct thread *thread = possible(affinity) ? thread_allocate(name) : NULL;
    if (!thread)
        return NULL;
    uint64_t top = process_stack(process, &slot);
    thread->stack_slot = slot;
    if (!top || !process_join(process, thread)) {
        if (top)
            __atomic_fetch_and(&process->stacks_used, ~(1ul << slot), __ATOMIC_RELEASE);
        thread->object.refs = 1;
        object_release(&thread->object);
        return NULL;
    }
    object_hold(&process->object);
    thread->process = process;
    thread->start = enter_user;
    thread->user_rsp = top - 8; /* as after a CALL: RSP + 8 is 16-byte aligned */
    thread->user_entry = (uint64_t)entry;
    thread->user_start = start;
    thread->user_argument = argument;
    init_fpu(thread);
    return run(thread, affinity);
}

struct thread *thread_create_user(const char *name, struct process *process, uint64_t start, uint64_t argument,
                                  uint64_t affinity)
{
    return create_user(name, process, user_process_start, start, argument, affinity);
}

/* Not the creator's affinity: a thread that pinned itself must not pin its children. */
struct thread *thread_create_another(struct process *process, uint64_t start, uint64_t argument)
{
    return create_user(thread_current()->name, process, user_thread_start, start, argument, ~0ul);
}

void thread_destroy(struct thread *thread)
{
    struct process *process = thread->process;
    phys_free(thread->stack, STACK_PAGES);
    phys_free(thread, 1);
    if (process)
        object_release(&process->object);
}

void thread_exit(NTSTATUS status)
{
    struct thread *me = thread_current();
    thread_profiling_end(me);
    if (etw_wants(ETW_THREAD_DELETE))
        etw_thread(ETW_THREAD_DELETE, me);
    me->exit_status = status;
    if (me->process)
        process_leave(me->process, me);
    __atomic_fetch_sub(&count, 1, __ATOMIC_RELAXED);
    sched_exit();
}

void thread_terminate(struct thread *thread, NTSTATUS status)
{
    thread->terminate_status = status;
    __atomic_store_n(&thread->terminate, 1, __ATOMIC_RELEASE);
    sched_interrupt(thread);
}

void thread_check_terminated(void)
{
    struct thread *me = thread_current();
    if (!__atomic_load_n(&me->terminate, __ATOMIC_ACQUIRE))
        return;
    sti();
    thread_exit(me->terminate_status);
}

void thread_kill(struct thread *thread)
{
    if (sched_kill(thread))
        __atomic_fetch_sub(&count, 1, __ATOMIC_RELAXED);
}
