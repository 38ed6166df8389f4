/* SPDX-License-Identifier: MIT */
/* Looking into a ring-3 process from a test. */
#pragma once
#include "tests/harness/kernel.h"
#include "tests/ring3/ring3.h"
#include "tests/harness/user.h"

#define PEEK_TRIES 1000u /* naps of a tick */

static inline uint64_t peek(const struct process *process, const uint64_t *where)
{
    uint64_t value = 0;
    CHECK(user_read(process, &value, (uint64_t)where, sizeof value));
    return value;
}

static inline void nap(void) { sched_wait(NULL, clock_ns() + sched_tick_ns(), DelayExecution); }

/* Waits until *where is at least `value`. */
static inline bool peek_wait(const struct process *process, const uint64_t *where, uint64_t value)
{
    for (unsigned i = 0; i < PEEK_TRIES && peek(process, where) < value; i++)
        nap();
    return CHECK(peek(process, where) >= value);
}

/* Ends a thread that does not end by itself, and fetches its checks. */
static inline void end_by_force(struct process *process, struct thread *thread)
{
    if (thread)
        thread_terminate(thread, STATUS_SUCCESS);
    user_finish(process, thread);
}

/* A ring-3 thread in a process of its own, on these CPUs. */
struct runner {
    struct process *process;
    struct thread *thread;
};

static inline struct runner start_on(void (*function)(uint64_t), uint64_t argument,
                                     struct cpu_set affinity)
{
    struct process *process = user_process();
    struct runner r = { process,
                        user_thread("profiled", process, (uint64_t)function, argument, affinity) };
    CHECK(r.thread != NULL);
    return r;
}

/* As start_on, once the thread says that it is ready. */
static inline struct runner start_ready(void (*function)(uint64_t), uint64_t argument,
                                        struct cpu_set affinity)
{
    struct runner r = start_on(function, argument, affinity);
    if (r.thread)
        peek_wait(r.process, &user_state, 1);
    return r;
}

/* Starts a thread that enables its profiling with that mask and sleeps; it sleeps on return. */
extern void user_cost_idle(uint64_t mask);
extern uint64_t user_cost[];
static inline struct runner start_sleeper(uint64_t mask)
{
    struct runner r = start_on(user_cost_idle, mask, cpu_all());
    if (r.thread && peek_wait(r.process, user_cost, 1))
        for (unsigned i = 0; i < PEEK_TRIES && r.thread->state != THREAD_WAITING; i++)
            nap();
    CHECK(r.thread && r.thread->state == THREAD_WAITING && r.thread->profiling);
    return r;
}
