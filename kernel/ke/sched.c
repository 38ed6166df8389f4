/* SPDX-License-Identifier: MIT */
/* The scheduler: queues of 32 priorities per CPU, round robin in each, pre-emption at each timer
 * tick and at once by a thread of higher priority. A CPU with nothing to do takes what waits for
 * another one. One lock, the dispatcher lock, at IPI_LEVEL because the timer takes it and no IPI
 * may see half a switch; it is held across switch_stacks and released by the thread that arrives.
 * Nothing is allocated or freed under it. */
#include "kernel/ke/sched.h"
#include "hal/machine/apic.h"
#include "hal/machine/smp.h"
#include "kernel/base/bits.h"
#include "kernel/base/irql.h"
#include "kernel/base/list.h"
#include "kernel/base/lock.h"
#include "kernel/base/msr.h"
#include "kernel/base/vectors.h"
#include "kernel/ke/etw.h"
#include "kernel/ke/fpu.h"
#include "kernel/ke/process.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"

#define TICK_NS 1000000u
/* The minimum under a hypervisor: an emulator runs the CPUs one after the other. */
#define TICK_NS_PER_CPU 250000u
#define LOOKS 4000u /* between two PAUSEs of an idle CPU that may not halt */

struct queue {
    LIST_ENTRY ready[SCHED_PRIORITIES]; /* of struct thread.ready */
    unsigned count[SCHED_PRIORITIES];
    uint32_t used;           /* bit per priority; atomic: sched_tick reads it without the lock */
    struct thread *previous; /* whom the running thread was switched from */
};

static struct lock dispatcher_lock = LOCK("dispatcher", IPI_LEVEL);
static struct queue queues[MAX_CPUS]; /* L: the dispatcher lock */
static uint64_t tick_ns = TICK_NS;    /* const once timers run */

extern void switch_stacks(struct thread *from, struct thread *to, KWAIT_REASON reason);
extern void thread_trampoline(void);

/* --- The lock. --- */

KIRQL sched_lock(void) { return lock_acquire(&dispatcher_lock); }

static bool must_choose(void)
{
    return __atomic_load_n(&cpu_current()->reschedule, __ATOMIC_RELAXED);
}

void sched_unlock(KIRQL irql)
{
    lock_release(&dispatcher_lock, irql);
    if (must_choose())
        sched_preempt(irql, WrPreempted);
}

/* At DISPATCH_LEVEL the switch must wait: a self-IPI of that level arrives when IRQL falls below
 * it. Above, an interrupt handler runs, and trap.c tests again at its end. */
void sched_preempt(KIRQL irql, KWAIT_REASON reason)
{
    if (irql < DISPATCH_LEVEL)
        sched_switch(reason);
    else if (irql < CLOCK_LEVEL)
        apic_send_self(VECTOR_RESCHEDULE);
}

void sched_reschedule(unsigned cpu)
{
    __atomic_store_n(&cpus[cpu]->reschedule, 1, __ATOMIC_RELAXED);
    if (cpu != cpu_number())
        apic_send(cpus[cpu]->apic_id, VECTOR_RESCHEDULE);
}

/* --- Queues. All under the lock. --- */

static bool allowed(const struct thread *thread, unsigned cpu)
{
    return cpu_set_has(&thread->affinity, cpu);
}
static void set_used(struct queue *q, uint32_t priorities)
{
    __atomic_store_n(&q->used, priorities, __ATOMIC_RELAXED);
}

static void enqueue(struct thread *thread, bool first)
{
    struct queue *q = &queues[thread->cpu];
    unsigned p = (unsigned)thread->priority;
    thread->state = THREAD_READY;
    if (first)
        InsertHeadList(&q->ready[p], &thread->ready);
    else
        InsertTailList(&q->ready[p], &thread->ready);
    q->count[p]++;
    set_used(q, q->used | 1u << p);
}

static void remove_ready(struct thread *thread)
{
    struct queue *q = &queues[thread->cpu];
    unsigned p = (unsigned)thread->priority;
    q->count[p]--;
    if (RemoveEntryList(&thread->ready))
        set_used(q, q->used & ~(1u << p));
}

/* The next one of at least this priority. */
static struct thread *take_ready(unsigned cpu, unsigned least)
{
    struct queue *q = &queues[cpu];
    unsigned highest = q->used ? 31 - (unsigned)__builtin_clz(q->used) : 0;
    if (!q->used || highest < least)
        return NULL;
    struct thread *thread = CONTAINING_RECORD(q->ready[highest].Flink, struct thread, ready);
    remove_ready(thread);
    return thread;
}

/* The best of another CPU's queue that may run here and is better than `best`. */
static struct thread *better_of(const struct queue *q, unsigned cpu, struct thread *best)
{
    for (uint32_t left = q->used; left; left &= ~(1u << (31 - __builtin_clz(left)))) {
        unsigned p = 31 - (unsigned)__builtin_clz(left);
        if (best && best->priority >= (int)p)
            return best;
        for (const LIST_ENTRY *e = q->ready[p].Flink; e != &q->ready[p]; e = e->Flink)
            if (allowed(CONTAINING_RECORD(e, struct thread, ready), cpu))
                return CONTAINING_RECORD(e, struct thread, ready);
    }
    return best;
}

static struct thread *take_of_others(unsigned cpu)
{
    struct thread *best = NULL;
    for (unsigned i = 1; i < cpu_count; i++)
        best = better_of(&queues[(cpu + i) % cpu_count], cpu, best);
    if (best)
        remove_ready(best);
    return best;
}

/* Twice the number of threads that would run before a thread of this priority on the CPU, plus 1
 * if the CPU has any thread to run. */
static unsigned load(unsigned cpu, unsigned priority)
{
    const struct queue *q = &queues[cpu];
    unsigned n = (unsigned)cpus[cpu]->thread->priority >= priority;
    for_each_bit(p, q->used >> priority << priority)
        n += q->count[p];
    return 2 * n + (q->used || cpus[cpu]->thread != cpus[cpu]->idle);
}

/* The CPU it was on last, unless another one allowed has less to do. */
static unsigned choose_cpu(const struct thread *thread)
{
    unsigned best = thread->cpu, best_load = ~0u;
    for (unsigned i = 0; i < cpu_count; i++) {
        unsigned c = (thread->cpu + i) % cpu_count;
        unsigned its = allowed(thread, c) ? load(c, (unsigned)thread->priority) : ~0u;
        if (its < best_load) {
            best = c;
            best_load = its;
        }
    }
    return best;
}

/* A ready thread waits for the tick of one of its own priority, and for none of a lower one. */
void sched_make_ready(struct thread *thread)
{
    thread->cpu = choose_cpu(thread);
    enqueue(thread, false);
    if (etw_wants(ETW_READY))
        etw_ready_thread(thread);
    if (cpus[thread->cpu]->thread->priority < thread->priority)
        sched_reschedule(thread->cpu);
}

/* --- The switch. --- */

/* What ring 3 has in registers that ring 0 does not use. */
static void save_user(struct thread *from)
{
    fpu_save(from->fpu);
    if (!fpu_facts.bases)
        return;
    from->fs_base = rdfsbase();
    from->gs_base = rdmsr(MSR_KERNEL_GS_BASE); /* SWAPGS makes it ring 3's */
}

static void load_user(const struct thread *to)
{
    fpu_restore(to->fpu);
    if (fpu_facts.bases)
        wrfsbase(to->fs_base);
    wrmsr(MSR_KERNEL_GS_BASE, to->gs_base);
}

static void switch_to(struct cpu *cpu, struct thread *from, struct thread *to, KWAIT_REASON reason)
{
    if (*(uint64_t *)from->stack != SCHED_STACK_MAGIC)
        panic("thread %s has overflowed its kernel stack", from->name);
    to->state = THREAD_RUNNING;
    to->cpu = cpu->number;
    to->since = rdtsc();
    from->cycles += to->since - from->since;
    queues[cpu->number].previous = from;
    cpu->kernel_rsp = (uint64_t)to->stack + KERNEL_STACK_SIZE;
    cpu->tss.rsp0 = cpu->kernel_rsp;
    /* A kernel thread does not keep the table of the process before it: that may be freed before
     * the next switch. */
    vm_switch(to->process ? to->process->pml4 : vm_kernel_pml4);
    if (from->fpu)
        save_user(from);
    if (to->fpu)
        load_user(to);
    cpu->thread = to;
    cpu->kthread = &to->object.header;
    if (etw_wants(ETW_CSWITCH))
        etw_context_swap(from, to, reason);
    switch_stacks(from, to, reason);
}

/* After a switch, or before a new thread's first instruction: releases the lock, then the reference
 * to a predecessor that has ended. */
static void finish_switch(KIRQL irql)
{
    struct queue *q = &queues[cpu_number()];
    struct thread *dead = q->previous && q->previous->state == THREAD_DEAD ? q->previous : NULL;
    q->previous = NULL;
    lock_release(&dispatcher_lock, irql);
    if (dead)
        object_release(&dead->object);
}

static struct thread *choose(struct cpu *cpu, struct thread *me, KWAIT_REASON reason)
{
    bool runs = me->state == THREAD_RUNNING && me != cpu->idle,
         stays = runs && allowed(me, cpu->number);
    bool forced = reason == WrQuantumEnd || reason == WrPreempted;
    unsigned least = stays && forced ? (unsigned)me->priority : 0;
    struct thread *to = take_ready(cpu->number, least);
    if (!to && !stays)
        to = take_of_others(cpu->number);
    if (!to)
        to = stays ? me : cpu->idle;
    if (runs && to != me) {
        if (stays) /* pre-empted by a better one it keeps its place at the head of its queue */
            enqueue(me, reason == WrPreempted && to->priority > me->priority);
        else
            sched_make_ready(me);
    }
    return to;
}

bool sched_switch_locked(KIRQL irql, KWAIT_REASON reason)
{
    struct cpu *cpu = cpu_current();
    struct thread *me = cpu->thread;
    __atomic_store_n(&cpu->reschedule, 0, __ATOMIC_RELAXED);
    struct thread *to = choose(cpu, me, reason);
    if (to != me)
        switch_to(cpu, me, to, reason);
    else
        me->state = THREAD_RUNNING;
    finish_switch(irql);
    return to != me;
}

bool sched_switch(KWAIT_REASON reason) { return sched_switch_locked(sched_lock(), reason); }

void sched_begin(void) { finish_switch(PASSIVE_LEVEL); }

/* The stack as switch_stacks leaves one: r15 r14 r13 r12 rbp rbx rflags, return address. */
void sched_prepare_stack(struct thread *thread, uint64_t top, void (*first)(void))
{
    uint64_t *sp = (uint64_t *)top - 32;
    *--sp = (uint64_t)thread_trampoline;
    *--sp = RFLAGS_IF | 2;
    *--sp = (uint64_t)first;
    for (unsigned i = 0; i < 5; i++)
        *--sp = 0;
    thread->rsp = (uint64_t)sp;
}

/* --- What others ask for. --- */

NTSTATUS sched_set_affinity(struct thread *thread, struct cpu_set affinity)
{
    affinity = cpu_set_and(affinity, cpu_all());
    if (cpu_set_empty(affinity))
        return STATUS_INVALID_PARAMETER;
    KIRQL irql = sched_lock();
    thread->affinity = affinity;
    bool wrong = !allowed(thread, thread->cpu);
    if (thread->state == THREAD_READY && wrong) {
        remove_ready(thread);
        sched_make_ready(thread);
    } else if (thread->state == THREAD_RUNNING && wrong) {
        sched_reschedule(thread->cpu);
    }
    sched_unlock(irql);
    return STATUS_SUCCESS;
}

void sched_set_priority(struct thread *thread, KPRIORITY priority)
{
    KIRQL irql = sched_lock();
    bool ready = thread->state == THREAD_READY;
    if (ready)
        remove_ready(thread);
    thread->priority = (CHAR)priority;
    if (ready)
        sched_make_ready(thread);
    else if (thread->state == THREAD_RUNNING && queues[thread->cpu].used >> priority > 1)
        sched_reschedule(thread->cpu);
    sched_unlock(irql);
}

static uint32_t used(unsigned cpu) { return __atomic_load_n(&queues[cpu].used, __ATOMIC_RELAXED); }

/* Whether another thread may run now that the quantum of the running one is over. Read without
 * the lock, because the next tick tests again. */
static bool somebody_waits(const struct cpu *cpu)
{
    if (cpu->thread != cpu->idle)
        return used(cpu->number) >> cpu->thread->priority;
    for (unsigned c = 0; c < cpu_count; c++)
        if (used(c))
            return true;
    return false;
}

void sched_tick(void)
{
    struct cpu *cpu = cpu_current();
    __atomic_store_n(&cpu->ticks, cpu->ticks + 1, __ATOMIC_RELAXED);
    if (somebody_waits(cpu))
        __atomic_store_n(&cpu->reschedule, 1, __ATOMIC_RELAXED);
    /* QEMU with -icount changes the CPU only at PAUSE, HLT or a deadline, and then begins with the
     * first one. So each tick of the first one another CPU comes first, and the others let it
     * pass. */
    if (__atomic_load_n(&cpus[0]->ticks, __ATOMIC_RELAXED) % cpu_count != cpu->number)
        pause();
}

/* --- CPUs. --- */

uint64_t sched_tick_ns(void) { return tick_ns; }

void sched_init(void)
{
    for (unsigned c = 0; c < MAX_CPUS; c++)
        for (unsigned p = 0; p < SCHED_PRIORITIES; p++)
            InitializeListHead(&queues[c].ready[p]);
}

static void restart_timer(void *) { apic_timer_start(VECTOR_TIMER, sched_tick_ns()); }

void sched_start_timers(uint64_t ns)
{
    uint64_t usual = cpu_features.hypervisor ? (uint64_t)cpu_count * TICK_NS_PER_CPU : 0;
    tick_ns = ns ? ns : usual > TICK_NS ? usual : TICK_NS;
    smp_call(SMP_ALL, restart_timer, NULL);
}

/* The idle loop where HLT would stop the timer that must end it. A hypervisor may intercept each
 * PAUSE, which then takes ten thousand times as long as one test; so there are few of them, but
 * some, because other virtual CPUs may need this one. */
static void wait_awake(void)
{
    sti();
    for (unsigned i = 0; i < LOOKS && !must_choose(); i++)
        asm volatile("");
    pause();
}

void sched_idle(void)
{
    for (;;) {
        cli();
        if (must_choose()) {
            sched_switch(WrPreempted);
        } else if (cpu_current()->halt_stops_timer) {
            wait_awake();
        } else {
            sti_hlt();
        }
    }
}
