/* SPDX-License-Identifier: MIT */
/* Threads: kernel threads, and ring-3 threads, which belong to a process. */
#pragma once
#include "kernel/base/cpu.h"
#include "kernel/ke/object.h"
#include "kernel/nt/nt.h"

struct mutex;
struct process;
struct thread_profiling;
struct wait;

/* The low byte is a KTHREAD_STATE, which trace records have. The last one: stopped because it is
 * suspended; it has no wait. */
enum thread_state {
    THREAD_READY = 1,
    THREAD_RUNNING = 2,
    THREAD_DEAD = 4,
    THREAD_WAITING = 5,
    THREAD_SUSPENDED = 0x100 | THREAD_WAITING
};

#define THREAD_PRIORITY 8
#define PROCESS_ID 4 /* NT: there is one program, with one id */

struct thread {
    struct object object;    /* signaled when the thread is dead */
    uint64_t rsp;            /* saved by switch.asm */
    uint8_t *stack;          /* KERNEL_STACK_SIZE; a magic number at its low end */
    struct process *process; /* NULL: kernel thread */
    const char *name;
    unsigned id;   /* 0: an idle thread */
    CHAR priority; /* L: dispatcher lock to write; 0 of idle threads, 1 to 31 of others */
    void *fpu;     /* an area for fpu.c; ring-3 threads and drivers' */
    struct thread_profiling *profiling; /* NULL: not profiled; set by the thread itself */
    unsigned cpu;                       /* where it runs, or ran last; L: dispatcher lock */

    /* L: dispatcher lock (sched.h), all of these */
    enum thread_state state;
    struct cpu_set affinity; /* CPUs it may run on */
    LIST_ENTRY ready;        /* run queue */
    uint64_t cycles, since;  /* TSC: used until it began to run last, and when that was */
    const struct wait *wait; /* while THREAD_WAITING; on its stack */
    LIST_ENTRY sleep;        /* others with a deadline */
    NTSTATUS wait_status;
    LIST_ENTRY mutants; /* that it owns */
    uint32_t suspended; /* atomic to read: how often */
    bool killed;        /* it ends as soon as it owns no mutex */
    bool forced;        /* it ends even while it owns a mutex */
    struct mutex *held; /* the mutex taken last */

    uint64_t created, ended;      /* clock_ns; ended: L: dispatcher lock, 0: it lives */
    bool exiting;                 /* its own: it is in thread_exit */
    struct thread *older, *newer; /* L: living_lock in living.c */
    uint32_t terminate; /* atomic: end at the next return to ring 3, with terminate_status */
    NTSTATUS terminate_status;
    NTSTATUS exit_status;              /* final once signaled; STATUS_PENDING before */
    uint64_t fault_rip, fault_address; /* of the exception that ended it */
    void (*start)(void *);
    void *argument;
    uint64_t user_start;                 /* of ring 3 */
    uint64_t user_stack, user_stack_top; /* the region, and where it ends */
    uint64_t teb;                        /* where ring 3 had GS first; 0: none */
    uint64_t fs_base, gs_base;           /* ring 3's, which may be anything; saved by sched.c */
    struct thread *sibling;              /* L: process.lock */
    struct cpu_set user_affinity; /* to restore, while a driver has changed it; empty: none has */
    /* Used by the thread itself. Not 0: a driver called this service, and its pointers are the
     * kernel's. */
    unsigned trusted;
    uint64_t driver_caller; /* used by the thread itself: see kernel/driver/driver.h */
};
extern const struct object_type thread_type;
_Static_assert(offsetof(struct thread, rsp) == THREAD_RSP, "layout.h");
_Static_assert(offsetof(struct thread, profiling) == THREAD_PROFILING, "layout.h");
_Static_assert(offsetof(struct thread, cpu) == THREAD_CPU, "layout.h");

/* NT: the kernel's own threads are of process 0, all of ring 3 of process 4. */
CLIENT_ID thread_client_id(const struct thread *thread);

static inline struct thread *thread_current(void) { return CPU_FIELD(thread); }

/* Makes a kernel thread that may run on the CPUs of `affinity`, ready to run, with a reference for
 * the caller; NULL without memory or if no CPU of `affinity` exists. IRQL < DISPATCH_LEVEL. */
struct thread *thread_create(const char *name, void (*start)(void *), void *argument,
                             struct cpu_set affinity);
/* From here on the current thread has SSE registers of its own, as drivers' code needs them. */
void thread_use_fpu(void);
/* Makes a kernel thread for a driver's code. */
struct thread *thread_create_system(const char *name, void (*start)(void *), void *argument,
                                    struct cpu_set affinity);
/* On any CPU; it begins with thread_resume. */
struct thread *thread_create_suspended(const char *name, void (*start)(void *), void *argument);
/* Makes a ring-3 thread: a process's first one runs `void start(argument)` and ends with
 * STATUS_SUCCESS; what start(argument) returns is the exit status of the others. */
struct thread *thread_create_user(const char *name, struct process *process, uint64_t start,
                                  uint64_t argument, struct cpu_set affinity);
struct thread *thread_create_another(struct process *process, uint64_t start, uint64_t argument,
                                     bool suspended);
/* The idle thread of a CPU, which is its current one; returns the top of its stack. Before the CPU
 * starts. */
uint64_t thread_create_idle(struct cpu *cpu);

__attribute__((noreturn)) void thread_exit(NTSTATUS status);
/* Asks a ring-3 thread to end at its next return to ring 3; wakes it from a wait. */
void thread_terminate(struct thread *thread, NTSTATUS status);
/* Ends a kernel thread where it is, or, if it owns a mutex, when it releases that. Only tests and
 * their watchdog call this: other resources of the thread are not released. The thread has ended
 * once its object is signaled. It cannot end at DISPATCH_LEVEL or above. IRQL < DISPATCH_LEVEL.
 * By force: ends any thread, one that owns mutexes too. A kernel thread that runs on another CPU
 * gets an NMI: it ends at any IRQL, with interrupts off too, but not while its CPU holds a spin
 * lock or prints. To be called again until the thread has ended. */
void thread_kill(struct thread *thread, bool by_force);
/* Whether it is to end now. L: dispatcher lock, or the thread itself. */
static inline bool thread_must_end(const struct thread *thread)
{
    return thread->killed && !thread->exiting && (!thread->held || thread->forced);
}

/* On the way to ring 3. */
void thread_check_terminated(void);
/* Ends the current thread if it must end. IRQL < DISPATCH_LEVEL. */
void thread_check_killed(void);
/* For NMI handlers, with what the processor pushed: if the current thread must end by force,
 * makes the handler return to code that ends it. */
struct interrupted {
    uint64_t rip, cs, rflags, rsp, ss;
};
void thread_nmi(struct interrupted *at);
/* For thread.c and ending.c: puts a thread on the list of living ones, and takes it off. */
void living_add(struct thread *thread);
void living_remove(struct thread *thread);
/* TSC cycles that a thread has run so far, in both rings, and when it ended (clock_ns; 0: it
 * lives). IRQL <= DISPATCH_LEVEL. */
uint64_t thread_cycles(const struct thread *thread, uint64_t *ended_ns);
/* The living thread with the smallest id above this one, with a reference; NULL: none. */
struct thread *thread_after(unsigned id);
