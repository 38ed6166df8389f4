/* SPDX-License-Identifier: MIT */
/* Which thread runs where, and what the others wait for. */
#pragma once
#include "kernel/nt.h"

struct cpu;
struct object;
struct thread;

#define SCHED_FOREVER (~0ul)
#define SCHED_STACK_MAGIC 0x6e74706d75737461ul

/* Boot CPU: time, and the thread that kernel_main runs in becomes its idle thread. */
void sched_init(uint64_t tsc_hz, uint64_t timer_hz);
/* Another CPU's idle thread, made before it starts; the top of its stack. */
uint64_t sched_create_idle(struct cpu *cpu);
/* Becomes this CPU's idle thread. */
__attribute__((noreturn)) void sched_idle(void);
/* Once all CPUs run: starts every CPU's timer. */
void sched_start_timers(void);

/* Nanoseconds since boot, by the TSC. */
uint64_t sched_time_ns(void);
/* Length of the timer's period, which is a thread's quantum. */
uint64_t sched_tick_ns(void);
extern uint64_t sched_tsc_hz;

/* Lets the next ready thread run; the current one stays ready. Its wait reason becomes `reason`. IRQL < DISPATCH. */
void sched_switch(KWAIT_REASON reason);
/* Waits until the object is signaled or sched_time_ns reaches wake_ns: STATUS_SUCCESS, STATUS_TIMEOUT, or
 * STATUS_THREAD_IS_TERMINATING. NULL: only the time. IRQL < DISPATCH_LEVEL. */
NTSTATUS sched_wait(struct object *object, uint64_t wake_ns, KWAIT_REASON reason);
void sched_signal(struct object *object);
/* Moves a thread: it runs only on CPUs of this mask from the next switch on, which is asked for at once.
 * STATUS_INVALID_PARAMETER if none of them exists. */
NTSTATUS sched_set_affinity(struct thread *thread, uint64_t affinity);

/* For thread.c. */
void sched_add(struct thread *thread);
void sched_begin(void);
__attribute__((noreturn)) void sched_exit(void);
void sched_interrupt(struct thread *thread);
bool sched_kill(struct thread *thread);
/* For trap.c. */
void sched_tick(void);
