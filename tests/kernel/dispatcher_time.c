/* SPDX-License-Identifier: MIT */
/* Waits: how long they last, and at which IRQL what happens. */
#include "kernel/ke/dispatcher.h"
#include "kernel/nt/nt_time.h"
#include "tests/harness/kernel.h"

static KEVENT event;
static uint64_t gone; /* atomic */

static NTSTATUS wait_for_event(int64_t interval)
{
    LARGE_INTEGER timeout = { .QuadPart = interval };
    return KeWaitForSingleObject(&event, UserRequest, KernelMode, FALSE, &timeout);
}

TEST(dispatcher_time, timeouts,
     "a wait lasts as long as its timeout says, relative or absolute, and ends at once when that "
     "is past")
{
    int64_t tick = (int64_t)sched_tick_ns() / 100;
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    test_run_on(0);
    for (unsigned ticks = 1; ticks <= 8; ticks *= 2) {
        uint64_t want = ticks * sched_tick_ns();
        struct lasting begun = lasting_begin();
        CHECK_STATUS(wait_for_event(-(int64_t)ticks * tick), STATUS_TIMEOUT);
        lasting_check(begun, want);
        begun = lasting_begin();
        CHECK_STATUS(wait_for_event(SYSTEM_TIME_AT_BOOT + (int64_t)(begun.ns + want) / 100),
                     STATUS_TIMEOUT);
        lasting_check(begun, want - 100); /* -100: units of 100 ns */
    }
    CHECK_STATUS(wait_for_event(0), STATUS_TIMEOUT);
    CHECK_STATUS(wait_for_event(1), STATUS_TIMEOUT);
    CHECK_STATUS(wait_for_event(SYSTEM_TIME_AT_BOOT + 1), STATUS_TIMEOUT);
    KeSetEvent(&event, 0, FALSE);
    CHECK_STATUS(wait_for_event(0), STATUS_SUCCESS);
    CHECK_STATUS(wait_for_event(INT64_MIN), STATUS_SUCCESS);
    LARGE_INTEGER interval = { .QuadPart = -2 * tick };
    struct lasting begun = lasting_begin();
    CHECK_STATUS(KeDelayExecutionThread(KernelMode, FALSE, &interval), STATUS_SUCCESS);
    lasting_check(begun, 2 * sched_tick_ns());
}

/* --- IRQL. --- */

static void wait_and_count(void *)
{
    CHECK_STATUS(wait_for_event(INT64_MIN), STATUS_SUCCESS);
    __atomic_fetch_add(&gone, 1, __ATOMIC_RELEASE);
}

TEST(dispatcher_time, at_dispatch_level,
     "a thread of higher priority that is woken at DISPATCH_LEVEL runs when IRQL falls, on every "
     "CPU")
{
    for (unsigned cpu = 0; test_run_on_each(cpu); cpu++) {
        KeInitializeEvent(&event, SynchronizationEvent, FALSE);
        gone = 0;
        struct thread *better =
            team_start(wait_and_count, NULL, cpu_set_one(cpu), THREAD_PRIORITY + 1);
        REQUIRE(better != NULL && team_until_waits(better));
        KIRQL old = irql_raise(DISPATCH_LEVEL);
        KeSetEvent(&event, 0, FALSE);
        CHECK_STATUS(wait_for_event(0),
                     STATUS_TIMEOUT); /* at this level too, because it need not wait */
        CHECK_EQ(gone, 0);
        irql_lower(old);
        CHECK_EQ(gone, 1);
        team_end(better);
    }
}

TEST(dispatcher_time, idle_cpus_look,
     "an idle CPU runs a thread that becomes ready because of an interrupt, before its next timer "
     "tick")
{
    SKIP_WITH_ONE_CPU();
    test_run_on(0);
    for (unsigned cpu = 1; cpu < cpu_count; cpu++) {
        KeInitializeEvent(&event, SynchronizationEvent, FALSE);
        gone = 0;
        struct thread *other = team_start(wait_and_count, NULL, cpu_set_one(cpu), THREAD_PRIORITY);
        REQUIRE(other != NULL && team_until_waits(other));
        while (cpus[cpu]->thread != cpus[cpu]->idle)
            sched_switch(WrYieldExecution), pause();
        uint64_t before = __atomic_load_n(&trap_counts[VECTOR_RESCHEDULE], __ATOMIC_RELAXED);
        KeSetEvent(&event, 0, FALSE);
        /* Its end, unlike what it counts, lies after the interrupt that a tick may have
         * forestalled; nobody waits for it, which would be an interrupt more. */
        while (!object_signaled(&other->object))
            sched_wait(NULL, clock_ns() + sched_tick_ns() / 4, DelayExecution);
        CHECK(__atomic_load_n(&trap_counts[VECTOR_RESCHEDULE], __ATOMIC_RELAXED) > before);
        CHECK_EQ(gone, 1);
        team_end(other);
    }
}
