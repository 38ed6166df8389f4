/* SPDX-License-Identifier: MIT */
#include "tests/harness/kernel.h"
#include "tests/harness/threads.h"

#define LATE 60 /* ticks: one by its granularity, more where each instruction is a step */
#define PATIENCE_NS 2000000000u /* in ticks, which do not come while a host runs others */

static struct {
    void (*function)(void *);
    uint64_t waiting_for; /* atomic */
} team;

static void begin_member(void *argument)
{
    __atomic_fetch_sub(&team.waiting_for, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&team.waiting_for, __ATOMIC_ACQUIRE))
        sched_switch(WrYieldExecution), pause();
    team.function(argument);
}

void team_run(void (*function)(void *), unsigned count)
{
    struct thread *threads[TEAM_MAX] = { NULL };
    team.function = function;
    team.waiting_for = count;
    for (unsigned i = 0; i < count; i++)
        threads[i] =
            thread_create("worker", begin_member, (void *)(uint64_t)i, cpu_set_one(i % cpu_count));
    for (unsigned i = 0; i < count; i++) {
        if (!CHECK(threads[i] != NULL))
            __atomic_fetch_sub(&team.waiting_for, 1, __ATOMIC_ACQ_REL);
        team_end(threads[i]);
    }
}

struct thread *team_start(void (*function)(void *), void *argument, struct cpu_set affinity,
                          int priority)
{
    struct thread *me = thread_current();
    KPRIORITY mine = me->priority;
    sched_set_priority(me, SCHED_PRIORITIES - 1); /* it may not run here before it is as asked */
    struct thread *thread = thread_create("worker", function, argument, affinity);
    if (CHECK(thread != NULL))
        sched_set_priority(thread, priority);
    sched_set_priority(me, mine);
    return thread;
}

void team_end(struct thread *thread)
{
    if (!CHECK(thread != NULL))
        return;
    CHECK_OK(sched_wait(&thread->object, SCHED_FOREVER, Executive));
    object_release(&thread->object);
}

static bool is_waiting(const struct thread *thread)
{
    KIRQL irql = sched_lock();
    bool waits = thread->state == THREAD_WAITING;
    sched_unlock(irql);
    return waits;
}

bool team_until_waits(const struct thread *thread)
{
    while (!is_waiting(thread)) {
        if (object_signaled(&thread->object))
            return false;
        sched_wait(NULL, clock_ns() + sched_tick_ns() / 4, DelayExecution);
    }
    return true;
}

struct lasting lasting_begin(void) { return (struct lasting){ clock_ns(), cpu_current()->ticks }; }

void lasting_check(struct lasting begun, uint64_t wanted_ns)
{
    uint64_t ticks = cpu_current()->ticks - begun.ticks;
    CHECK(clock_ns() - begun.ns >= wanted_ns);
    CHECK_EQ(ticks > wanted_ns / sched_tick_ns() + LATE ? ticks : 0, 0);
}

bool team_until(const uint64_t *where, uint64_t value)
{
    for (uint64_t ticks = PATIENCE_NS / sched_tick_ns();
         ticks && __atomic_load_n(where, __ATOMIC_ACQUIRE) < value; ticks--)
        sched_wait(NULL, clock_ns() + sched_tick_ns() / 4, DelayExecution);
    return CHECK(__atomic_load_n(where, __ATOMIC_ACQUIRE) >= value);
}
