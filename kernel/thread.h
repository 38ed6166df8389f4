/* SPDX-License-Identifier: MIT */
/* Threads: kernel threads, and ring-3 threads, which belong to a process. */
#pragma once
#include "kernel/cpu.h"
#include "kernel/nt.h"
#include "kernel/object.h"

struct process;
struct thread_profiling;

enum thread_state { THREAD_READY = 1, THREAD_RUNNING = 2, THREAD_DEAD = 4, THREAD_WAITING = 5 }; /* a KTHREAD_STATE */

#define THREAD_PRIORITY 8

struct thread {
    struct object object; /* signaled when the thread is dead */
    uint64_t rsp;         /* saved by switch.asm */
    uint8_t *stack;       /* KERNEL_STACK_SIZE; a magic number at its low end */
    struct process *process; /* NULL: kernel thread */
    const char *name;
    unsigned id;          /* 0: an idle thread */
    CHAR priority;        /* NT: 0 of idle threads, THREAD_PRIORITY of all others; the scheduler does not look at it */
    void *fpu;            /* FPU_AREA_SIZE, ring-3 threads only */
    struct thread_profiling *profiling; /* NULL: not profiled; set by the thread itself */

    /* L: sched_lock, all of these */
    enum thread_state state;
    uint64_t affinity;    /* CPUs it may run on */
    unsigned cpu;         /* where it runs, or ran last */
    struct thread *next;  /* run queue */
    struct object *waiting_for;
    struct thread *wait_next;  /* others that wait for the same object */
    struct thread *sleep_next; /* others with a deadline */
    uint64_t wake_ns;     /* deadline of a wait; SCHED_FOREVER: none */
    NTSTATUS wait_status;
    bool killed;          /* leave it off the CPU for good at the next switch */

    uint32_t terminate;   /* atomic: end at the next return to ring 3, with terminate_status */
    NTSTATUS terminate_status;
    NTSTATUS exit_status; /* final once signaled; STATUS_PENDING before */
    uint64_t fault_rip, fault_address; /* of the exception that ended it */
    void (*start)(void *);
    void *argument;
    uint64_t user_rsp, user_entry, user_start, user_argument;
    unsigned stack_slot; /* of the process */
};
_Static_assert(offsetof(struct thread, rsp) == THREAD_RSP, "layout.h");
_Static_assert(offsetof(struct thread, profiling) == THREAD_PROFILING, "layout.h");

/* NT: ring 3 has x87 and SSE; CR4.OSXSAVE stays off, so AVX instructions are illegal. */
#define FPU_AREA_SIZE 512 /* FXSAVE */

static inline struct thread *thread_current(void) { return cpu_current()->thread; }

/* Makes a kernel thread that may run on the CPUs of `affinity`, ready to run, with a reference for the caller;
 * NULL without memory or if no CPU of `affinity` exists. IRQL < DISPATCH_LEVEL. */
struct thread *thread_create(const char *name, void (*start)(void *), void *argument, uint64_t affinity);
/* The same in ring 3: a process's first thread runs `void start(argument)` and ends with STATUS_SUCCESS; what
 * start(argument) returns is the exit status of the others. */
struct thread *thread_create_user(const char *name, struct process *process, uint64_t start, uint64_t argument,
                                  uint64_t affinity);
struct thread *thread_create_another(struct process *process, uint64_t start, uint64_t argument);
/* Only for sched.c: a thread that no queue knows. */
struct thread *thread_allocate(const char *name);
void thread_destroy(struct thread *thread);

__attribute__((noreturn)) void thread_exit(NTSTATUS status);
/* Asks a ring-3 thread to end at its next return to ring 3; wakes it from a wait. */
void thread_terminate(struct thread *thread, NTSTATUS status);
/* Ends a kernel thread where it stands. Only the test watchdog does this: what the thread owned stays owned. */
void thread_kill(struct thread *thread);
/* On the way to ring 3. */
void thread_check_terminated(void);
/* Threads that exist, idle threads excluded. */
unsigned thread_count(void);
