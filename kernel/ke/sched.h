/* SPDX-License-Identifier: MIT */
/* The scheduler: which thread runs on which CPU. Waits are in wait.h. */
#pragma once
#include "kernel/base/cpu_set.h"
#include "kernel/nt/nt_dispatcher.h"
#include "kernel/ke/wait.h"

struct cpu;
struct thread;

#define SCHED_FOREVER WAIT_FOREVER
#define SCHED_STACK_MAGIC 0x6e74706d75737461ul
#define SCHED_PRIORITIES 32

/* Boot CPU: empty queues. */
void sched_init(void);
/* Becomes this CPU's idle thread. */
__attribute__((noreturn)) void sched_idle(void);
/* Called when all CPUs run: starts the timer of every CPU with this period; 0: the default. */
void sched_start_timers(uint64_t tick_ns);

/* Length of the timer's period, which is a thread's quantum. */
uint64_t sched_tick_ns(void);

/* Lets another ready thread run; the current one stays ready. WrQuantumEnd and WrPreempted: one of
 * at least the same priority, else any, until the next tick. False: there was none. IRQL <
 * DISPATCH_LEVEL. */
bool sched_switch(KWAIT_REASON reason);
/* Sets the CPUs that a thread may run on, from the next switch on, which is requested at once.
 * STATUS_INVALID_PARAMETER if none of them exists. */
NTSTATUS sched_set_affinity(struct thread *thread, struct cpu_set affinity);
/* From 1 to 31. A thread runs before all of lower priority, and alternates with those of its own.
 * NT: nothing raises the priority of one that waited or starves. */
void sched_set_priority(struct thread *thread, KPRIORITY priority);

/* The dispatcher lock, at IPI_LEVEL; its release may switch threads. This and what follows is
 * for the files of kernel/ke that change thread states. */
KIRQL sched_lock(void);
void sched_unlock(KIRQL irql);

/* L: dispatcher lock, these. */
void sched_make_ready(struct thread *thread);
/* Asks a CPU to choose again. */
void sched_reschedule(unsigned cpu);
/* The current thread, unless it still is THREAD_RUNNING, is not chosen again before it is made
 * ready. True: another one ran. The lock is free on return. */
bool sched_switch_locked(KIRQL irql, KWAIT_REASON reason);

/* Prepares the stack of a thread that does not run: when it is chosen it begins at `first`, which
 * calls sched_begin. */
void sched_prepare_stack(struct thread *thread, uint64_t top, void (*first)(void));
/* A new thread's first call. */
void sched_begin(void);
/* For trap.c, from the timer interrupt. */
void sched_tick(void);
/* For trap.c: cpu.reschedule was found set on the way back to `irql`. */
void sched_preempt(KIRQL irql, KWAIT_REASON reason);
