/* SPDX-License-Identifier: MIT */
/* The scheduler: a run queue per CPU, round robin, pre-emption at each timer tick. One lock, sched_lock, at
 * IPI_LEVEL because the timer takes it and no IPI may see half a switch; it is held across switch_stacks and released by the thread that
 * arrives. Nothing is allocated or freed under it. */
#include "kernel/sched.h"
#include "hal/apic.h"
#include "kernel/etw.h"
#include "kernel/irql.h"
#include "kernel/lock.h"
#include "kernel/phys.h"
#include "kernel/process.h"
#include "kernel/smp.h"
#include "kernel/thread.h"
#include "kernel/trap.h"
#include "kernel/vm.h"

#define TICK_NS_MIN 1000000u    /* one CPU to four */
#define TICK_NS_PER_CPU 250000u /* more: an emulator runs the CPUs one after the other */

struct queue {
    struct thread *head, *tail;
    unsigned length;
    struct thread *previous; /* whom the running thread was switched from */
};

static struct lock sched_lock = LOCK("sched", IPI_LEVEL);
static struct queue queues[MAX_CPUS]; /* L: sched_lock */
static struct thread *sleepers;       /* L: sched_lock; by sleep_next, unsorted */

uint64_t sched_tsc_hz;
static uint64_t timer_hz, boot_tsc;
static uint64_t ns_per_tick; /* fixed point, 32 bits behind */

extern void switch_stacks(struct thread *from, struct thread *to, KWAIT_REASON reason);

uint64_t sched_time_ns(void)
{
    return (uint64_t)((unsigned __int128)(rdtsc() - boot_tsc) * ns_per_tick >> 32);
}

/* --- Queues. All under sched_lock. --- */

static void enqueue(struct thread *thread)
{
    struct queue *q = &queues[thread->cpu];
    thread->state = THREAD_READY;
    thread->next = NULL;
    if (q->tail)
        q->tail->next = thread;
    else
        q->head = thread;
    q->tail = thread;
    q->length++;
}

static struct thread *dequeue(struct queue *q)
{
    struct thread *thread = q->head;
    if (!thread)
        return NULL;
    q->head = thread->next;
    if (!q->head)
        q->tail = NULL;
    q->length--;
    return thread;
}

static void remove_ready(struct thread *thread)
{
    struct queue *q = &queues[thread->cpu];
    struct thread *others = NULL, **end = &others, *t;
    unsigned n = q->length;
    while (n-- && (t = dequeue(q)))
        if (t != thread) {
            *end = t;
            end = &t->next;
        }
    *end = NULL;
    *q = (struct queue){ .previous = q->previous };
    while (others) {
        t = others;
        others = t->next;
        enqueue(t);
    }
}

/* The CPU it was on last, unless another one allowed has less to do. */
static unsigned choose_cpu(const struct thread *thread)
{
    unsigned best = thread->cpu, best_load = ~0u;
    for (unsigned i = 0; i < cpu_count; i++) {
        unsigned c = (thread->cpu + i) % cpu_count;
        if (!(thread->affinity >> c & 1))
            continue;
        unsigned load = queues[c].length + (cpus[c]->thread != cpus[c]->idle);
        if (load < best_load) {
            best = c;
            best_load = load;
        }
    }
    return best;
}

/* A ready thread waits for the running one's tick, but an idle CPU takes it at once. */
static void make_ready(struct thread *thread)
{
    thread->cpu = choose_cpu(thread);
    enqueue(thread);
    if (etw_wants(ETW_READY))
        etw_ready_thread(thread);
    if (cpus[thread->cpu]->thread == cpus[thread->cpu]->idle)
        smp_reschedule(thread->cpu);
}

static void unlink_waiter(struct thread *thread)
{
    if (thread->waiting_for) {
        struct thread **link = &thread->waiting_for->waiters;
        while (*link && *link != thread)
            link = &(*link)->wait_next;
        if (*link)
            *link = thread->wait_next;
        thread->waiting_for = NULL;
    }
    if (thread->wake_ns != SCHED_FOREVER) {
        struct thread **link = &sleepers;
        while (*link && *link != thread)
            link = &(*link)->sleep_next;
        if (*link)
            *link = thread->sleep_next;
    }
}

static void wake(struct thread *thread, NTSTATUS status)
{
    unlink_waiter(thread);
    thread->wait_status = status;
    make_ready(thread);
}

/* --- The switch. --- */

static void switch_to(struct cpu *cpu, struct thread *from, struct thread *to, KWAIT_REASON reason)
{
    ASSERT(*(uint64_t *)from->stack == SCHED_STACK_MAGIC);
    to->state = THREAD_RUNNING;
    to->cpu = cpu->number;
    queues[cpu->number].previous = from;
    cpu->kernel_rsp = (uint64_t)to->stack + KERNEL_STACK_SIZE;
    cpu->tss.rsp0 = cpu->kernel_rsp;
    /* Never a borrowed table: the process may be gone before the next switch. */
    vm_switch(to->process ? to->process->pml4 : vm_kernel_pml4);
    if (from->fpu)
        fxsave(from->fpu);
    if (to->fpu)
        fxrstor(to->fpu);
    cpu->thread = to;
    if (etw_wants(ETW_CSWITCH))
        etw_context_swap(from, to, reason);
    switch_stacks(from, to, reason);
}

/* After a switch, or before a new thread's first instruction: lets go of the lock, then of a dead predecessor. */
static void finish_switch(KIRQL irql)
{
    struct queue *q = &queues[cpu_number()];
    struct thread *dead = q->previous && q->previous->state == THREAD_DEAD ? q->previous : NULL;
    q->previous = NULL;
    lock_release(&sched_lock, irql);
    if (dead)
        object_release(&dead->object);
}

static void mark_dead(struct thread *thread)
{
    thread->state = THREAD_DEAD;
    thread->object.signaled = true;
    while (thread->object.waiters)
        wake(thread->object.waiters, STATUS_SUCCESS);
}

/* Under sched_lock, which is released on return. */
static void switch_away(KIRQL irql, KWAIT_REASON reason)
{
    struct cpu *cpu = cpu_current();
    struct thread *me = cpu->thread;
    __atomic_store_n(&cpu->reschedule, 0, __ATOMIC_RELAXED);
    if (me->killed && me->state != THREAD_DEAD)
        mark_dead(me);
    if (me->state == THREAD_RUNNING && me != cpu->idle) {
        if (!(me->affinity >> cpu->number & 1))
            make_ready(me);
        else
            enqueue(me);
    }
    struct thread *to = dequeue(&queues[cpu->number]);
    if (!to)
        to = cpu->idle;
    if (to != me)
        switch_to(cpu, me, to, reason);
    else
        me->state = THREAD_RUNNING;
    finish_switch(irql);
}

void sched_switch(KWAIT_REASON reason)
{
    KIRQL irql = lock_acquire(&sched_lock);
    switch_away(irql, reason);
}

void sched_begin(void)
{
    finish_switch(PASSIVE_LEVEL);
}

void sched_exit(void)
{
    KIRQL irql = lock_acquire(&sched_lock);
    mark_dead(thread_current());
    switch_away(irql, WrTerminated);
    __builtin_unreachable();
}

NTSTATUS sched_wait(struct object *object, uint64_t wake_ns, KWAIT_REASON reason)
{
    KIRQL irql = lock_acquire(&sched_lock);
    struct thread *me = thread_current();
    if ((object && object->signaled) || me->terminate) {
        lock_release(&sched_lock, irql);
        return me->terminate ? STATUS_THREAD_IS_TERMINATING : STATUS_SUCCESS;
    }
    me->state = THREAD_WAITING;
    me->wake_ns = wake_ns;
    me->waiting_for = object;
    if (object) {
        me->wait_next = object->waiters;
        object->waiters = me;
    }
    if (wake_ns != SCHED_FOREVER) {
        me->sleep_next = sleepers;
        sleepers = me;
    }
    switch_away(irql, reason);
    return me->wait_status;
}

void sched_signal(struct object *object)
{
    KIRQL irql = lock_acquire(&sched_lock);
    object->signaled = true;
    while (object->waiters)
        wake(object->waiters, STATUS_SUCCESS);
    lock_release(&sched_lock, irql);
}

NTSTATUS sched_set_affinity(struct thread *thread, uint64_t affinity)
{
    affinity &= cpu_count == 64 ? ~0ul : (1ul << cpu_count) - 1;
    if (!affinity)
        return STATUS_INVALID_PARAMETER;
    KIRQL irql = lock_acquire(&sched_lock);
    thread->affinity = affinity;
    bool wrong = !(affinity >> thread->cpu & 1);
    if (thread->state == THREAD_READY && wrong) {
        remove_ready(thread);
        make_ready(thread);
    } else if (thread->state == THREAD_RUNNING && wrong) {
        smp_reschedule(thread->cpu);
    }
    lock_release(&sched_lock, irql);
    return STATUS_SUCCESS;
}

void sched_add(struct thread *thread)
{
    KIRQL irql = lock_acquire(&sched_lock);
    thread->wake_ns = SCHED_FOREVER;
    thread->cpu = cpu_number();
    make_ready(thread);
    lock_release(&sched_lock, irql);
}

void sched_interrupt(struct thread *thread)
{
    KIRQL irql = lock_acquire(&sched_lock);
    if (thread->state == THREAD_WAITING)
        wake(thread, STATUS_THREAD_IS_TERMINATING);
    else if (thread->state == THREAD_RUNNING)
        smp_reschedule(thread->cpu);
    lock_release(&sched_lock, irql);
}

/* True if the thread ended by this; one that runs elsewhere ends at its next tick. */
bool sched_kill(struct thread *thread)
{
    bool dead_now = false, was_alive;
    KIRQL irql = lock_acquire(&sched_lock);
    was_alive = thread->state != THREAD_DEAD && !thread->killed;
    thread->killed = true;
    if (thread->state == THREAD_READY) {
        remove_ready(thread);
        dead_now = true;
    } else if (thread->state == THREAD_WAITING) {
        unlink_waiter(thread);
        dead_now = true;
    } else if (thread->state == THREAD_RUNNING) {
        smp_reschedule(thread->cpu);
    }
    if (dead_now)
        mark_dead(thread);
    lock_release(&sched_lock, irql);
    if (dead_now)
        object_release(&thread->object);
    return was_alive;
}

void sched_tick(void)
{
    struct cpu *cpu = cpu_current();
    uint64_t now = sched_time_ns();
    cpu->ticks++;
    KIRQL irql = lock_acquire(&sched_lock);
    for (struct thread *t = sleepers, *next; t; t = next) {
        next = t->sleep_next;
        if (t->wake_ns <= now)
            wake(t, t->waiting_for ? STATUS_TIMEOUT : STATUS_SUCCESS);
    }
    if (queues[cpu->number].head)
        __atomic_store_n(&cpu->reschedule, 1, __ATOMIC_RELAXED);
    lock_release(&sched_lock, irql);
    /* QEMU with -icount changes the CPU only at PAUSE, HLT or a deadline, and then begins with the first one. So
     * each tick of the first one it is another CPU's turn, and the others let it pass. */
    if (cpus[0]->ticks % cpu_count != cpu->number)
        pause();
}

/* --- CPUs. --- */

uint64_t sched_tick_ns(void)
{
    uint64_t ns = (uint64_t)cpu_count * TICK_NS_PER_CPU;
    return ns > TICK_NS_MIN ? ns : TICK_NS_MIN;
}

uint64_t sched_create_idle(struct cpu *cpu)
{
    struct thread *idle = thread_allocate("idle");
    if (!idle)
        panic("no memory for an idle thread");
    idle->id = 0;
    idle->priority = 0;
    idle->state = THREAD_RUNNING;
    idle->cpu = cpu->number;
    idle->affinity = 1ul << cpu->number;
    idle->wake_ns = SCHED_FOREVER;
    cpu->idle = idle;
    cpu->thread = idle;
    return (uint64_t)idle->stack + KERNEL_STACK_SIZE;
}

void sched_init(uint64_t tsc_hz, uint64_t apic_timer_hz)
{
    sched_tsc_hz = tsc_hz;
    ns_per_tick = (1000000000ul << 32) / tsc_hz;
    timer_hz = apic_timer_hz;
    boot_tsc = rdtsc();
    sched_create_idle(cpu_current()); /* its stack stays unused: the boot stack is this thread's */
}

static void restart_timer(void *unused)
{
    (void)unused;
    apic_timer_start(VECTOR_TIMER, sched_tick_ns(), timer_hz);
}

void sched_start_timers(void)
{
    smp_call(SMP_ALL, restart_timer, NULL);
}

void sched_idle(void)
{
    for (;;) {
        cli();
        if (__atomic_load_n(&cpu_current()->reschedule, __ATOMIC_RELAXED))
            sched_switch(WrPreempted);
        else
            sti_hlt();
    }
}
