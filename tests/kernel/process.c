/* SPDX-License-Identifier: MIT */
/* How processes and threads end, with kernel threads that join a process of their own; and the
 * places of a thread's APCs. */
#include "kernel/base/upcalls.h"
#include "kernel/ke/dispatcher.h"
#include "tests/harness/peek.h"

#define ITS_OWN ((NTSTATUS)9)
#define OF_ALL ((NTSTATUS)5)

static KEVENT gate;
static struct process *process;
static struct thread *late; /* atomic; the thread whose end waits for the gate */
static void (*notify_before)(struct thread *thread, bool create);
static NTSTATUS found;

static void join(void)
{
    struct thread *me = thread_current();
    object_hold(&process->object);
    me->process = process;
    CHECK(process_join(process, me));
}

static void notify(struct thread *thread, bool create)
{
    if (!create && thread == __atomic_load_n(&late, __ATOMIC_ACQUIRE))
        KeWaitForSingleObject(&gate, Executive, KernelMode, FALSE, NULL);
    if (notify_before)
        notify_before(thread, create);
}

static void end_late(void *)
{
    join();
    __atomic_store_n(&late, thread_current(), __ATOMIC_RELEASE);
    thread_exit(ITS_OWN);
}

static void end_all(void *)
{
    join();
    process_end(OF_ALL);
}

/* A process, and a thread of it whose end waits for the gate. */
static struct thread *start_late(void)
{
    process = process_create();
    KeInitializeEvent(&gate, NotificationEvent, FALSE);
    late = NULL;
    notify_before = thread_notify;
    thread_notify = notify;
    struct thread *thread = process ? team_start(end_late, NULL, cpu_all(), THREAD_PRIORITY) : NULL;
    CHECK(thread && team_until_waits(thread));
    return thread;
}

static void let_end(struct thread *thread)
{
    KeSetEvent(&gate, 0, FALSE);
    if (thread)
        team_end(thread);
    thread_notify = notify_before;
}

TEST(process, exit_status,
     "a process that is ended has the status given for that, though one of its threads ends later "
     "with another; else it has its last thread's")
{
    struct thread *last = start_late();
    if (last) {
        team_end(team_start(end_all, NULL, cpu_all(), THREAD_PRIORITY));
        CHECK_EQ(process->threads, 1);
        CHECK(!process->object.header.SignalState);
    }
    let_end(last);
    CHECK(process->object.header.SignalState);
    CHECK_STATUS(process->exit_status, OF_ALL);
    object_release(&process->object);
    process = process_create();
    REQUIRE(process != NULL);
    team_end(team_start(end_late, NULL, cpu_all(), THREAD_PRIORITY)); /* the gate is open */
    CHECK_STATUS(process->exit_status, ITS_OWN);
    object_release(&process->object);
}

static void end_others(void *)
{
    join();
    process_end_others(OF_ALL);
    __atomic_store_n(&found, STATUS_SUCCESS, __ATOMIC_RELEASE);
}

TEST(process, others_end, "who ends a process's other threads goes on when they have ended")
{
    found = STATUS_PENDING;
    struct thread *other = start_late();
    if (other) {
        struct thread *ender = team_start(end_others, NULL, cpu_all(), THREAD_PRIORITY);
        sched_wait(NULL, clock_ns() + 3 * sched_tick_ns(), DelayExecution);
        CHECK_STATUS(__atomic_load_n(&found, __ATOMIC_ACQUIRE), STATUS_PENDING);
        KeSetEvent(&gate, 0, FALSE);
        if (ender)
            team_end(ender);
    }
    let_end(other);
    CHECK_STATUS(found, STATUS_SUCCESS);
    object_release(&process->object);
}

static void wait_though_asked(void *)
{
    LARGE_INTEGER time = { .QuadPart = -100000 }; /* 10 ms */
    thread_terminate(thread_current(), STATUS_SUCCESS);
    found = KeWaitForSingleObject(&gate, UserRequest, UserMode, FALSE, &time);
}

TEST(process, asked_to_end, "a thread that was asked to end does not begin to wait for ring 3")
{
    KeInitializeEvent(&gate, NotificationEvent, FALSE);
    found = STATUS_PENDING;
    struct thread *thread = team_start(wait_though_asked, NULL, cpu_all(), THREAD_PRIORITY);
    REQUIRE(thread != NULL);
    team_end(thread);
    CHECK_STATUS(found, STATUS_THREAD_IS_TERMINATING);
}
