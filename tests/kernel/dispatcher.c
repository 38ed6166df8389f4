/* SPDX-License-Identifier: MIT */
/* Events, semaphores, mutants and waits, from ring 0; what ring 3 adds is in tests/ring3. */
#include "kernel/ke/dispatcher.h"
#include "kernel/base/list.h"
#include "tests/harness/kernel.h"

#define WAITERS 4

static KEVENT event, events[MAXIMUM_WAIT_OBJECTS];
static KMUTANT mutants[2];
static uint64_t gone; /* atomic: waiters that were let go */
static NTSTATUS found;

static NTSTATUS wait_one(PVOID object)
{
    return KeWaitForSingleObject(object, Executive, KernelMode, FALSE, NULL);
}

/* STATUS_TIMEOUT if it is not signaled now. */
static NTSTATUS try_one(PVOID object)
{
    LARGE_INTEGER now = { .QuadPart = 0 };
    return KeWaitForSingleObject(object, Executive, KernelMode, FALSE, &now);
}

static void wait_and_count(void *object)
{
    CHECK_STATUS(wait_one(object), STATUS_SUCCESS);
    __atomic_fetch_add(&gone, 1, __ATOMIC_RELEASE);
}

/* So many threads wait for it. */
static void start_waiters(struct thread **threads, void (*function)(void *), void *argument)
{
    gone = 0;
    for (unsigned i = 0; i < WAITERS; i++) {
        threads[i] = team_start(function, argument, cpu_all(), THREAD_PRIORITY);
        if (threads[i])
            CHECK(team_until_waits(threads[i]));
    }
}

static void end_all(struct thread **threads)
{
    for (unsigned i = 0; i < WAITERS; i++)
        team_end(threads[i]);
}

/* Long enough for one to run who was let go by mistake. */
static void settle(void) { sched_wait(NULL, clock_ns() + 3 * sched_tick_ns(), DelayExecution); }

static void check_events(EVENT_TYPE type)
{
    struct thread *threads[WAITERS];
    const bool one = type == SynchronizationEvent;
    KeInitializeEvent(&event, type, TRUE);
    CHECK_EQ(KeReadStateEvent(&event), 1);
    CHECK_EQ(KeResetEvent(&event), 1);
    CHECK_EQ(KeResetEvent(&event), 0);
    start_waiters(threads, wait_and_count, &event);
    for (unsigned i = one ? 1 : WAITERS; i <= WAITERS; i++) {
        CHECK_EQ(KeSetEvent(&event, 0, FALSE), 0);
        team_until(&gone, i);
        settle();
        CHECK_EQ(gone, i);
    }
    end_all(threads);
    CHECK_EQ(KeSetEvent(&event, 0, FALSE), !one);
    CHECK_EQ(KeSetEvent(&event, 0, FALSE), 1);
    CHECK_STATUS(try_one(&event), STATUS_SUCCESS);
    CHECK_STATUS(try_one(&event), one ? STATUS_TIMEOUT : STATUS_SUCCESS);
    KeClearEvent(&event);
    CHECK_STATUS(try_one(&event), STATUS_TIMEOUT);
}

TEST(dispatcher, events,
     "a notification event wakes all waiters and stays signaled, a synchronization event wakes one "
     "or satisfies the next wait; each routine returns the state before")
{
    check_events(NotificationEvent);
    check_events(SynchronizationEvent);
}

static void own_and_end_later(void *mutant)
{
    CHECK_STATUS(wait_one(mutant), STATUS_SUCCESS);
    CHECK_STATUS(wait_one(mutant), STATUS_SUCCESS); /* once more */
    CHECK_STATUS(wait_one(&event), STATUS_SUCCESS);
}

static void wait_for_abandoned(void *mutant)
{
    LONG before;
    found = wait_one(mutant);
    CHECK_EQ(KeReadStateMutex(mutant), 0);
    CHECK_OK(mutant_release(mutant, &before));
    CHECK_EQ(KeReadStateMutex(mutant), 1);
}

TEST(dispatcher, abandoned_while_awaited,
     "who waits for a mutant whose owner ends gets it, with STATUS_ABANDONED")
{
    KeInitializeMutant(&mutants[0], FALSE);
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    struct thread *owner = team_start(own_and_end_later, &mutants[0], cpu_all(), THREAD_PRIORITY);
    REQUIRE(owner != NULL && team_until_waits(owner));
    struct thread *waiter = team_start(wait_for_abandoned, &mutants[0], cpu_all(), THREAD_PRIORITY);
    CHECK(waiter != NULL && team_until_waits(waiter));
    found = STATUS_PENDING;
    KeSetEvent(&event, 0, FALSE);
    team_end(owner);
    team_end(waiter);
    CHECK_STATUS(found, STATUS_ABANDONED);
}

/* --- Several at once. --- */

static KWAIT_BLOCK blocks[MAXIMUM_WAIT_OBJECTS];
static PVOID objects[MAXIMUM_WAIT_OBJECTS];

static void initialize_events(EVENT_TYPE type, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        KeInitializeEvent(&events[i], type, FALSE);
        objects[i] = &events[i];
    }
}

static NTSTATUS wait_many(unsigned count, WAIT_TYPE type, const int64_t *interval)
{
    LARGE_INTEGER timeout = { .QuadPart = interval ? *interval : 0 };
    return KeWaitForMultipleObjects(count, objects, type, Executive, KernelMode, FALSE,
                                    interval ? &timeout : NULL, blocks);
}

static void wait_any_of_all(void *) { found = wait_many(MAXIMUM_WAIT_OBJECTS, WaitAny, NULL); }

TEST(dispatcher, any_of_64,
     "a wait for any of 64 objects returns the number of the one that was signaled, and takes no "
     "other")
{
    const int64_t now = 0;
    initialize_events(SynchronizationEvent, MAXIMUM_WAIT_OBJECTS);
    for (unsigned i = 0; i < MAXIMUM_WAIT_OBJECTS; i++) {
        struct thread *waiter = team_start(wait_any_of_all, NULL, cpu_all(), THREAD_PRIORITY);
        REQUIRE(waiter != NULL && team_until_waits(waiter));
        KeSetEvent(&events[i], 0, FALSE);
        team_end(waiter);
        CHECK_STATUS(found, STATUS_WAIT_0 + (NTSTATUS)i);
    }
    KeSetEvent(&events[9], 0, FALSE);
    KeSetEvent(&events[40], 0, FALSE);
    CHECK_STATUS(wait_many(MAXIMUM_WAIT_OBJECTS, WaitAny, &now), 9);
    CHECK_STATUS(wait_many(MAXIMUM_WAIT_OBJECTS, WaitAny, &now), 40);
    CHECK_STATUS(wait_many(MAXIMUM_WAIT_OBJECTS, WaitAny, &now), STATUS_TIMEOUT);
}

static void wait_all_of_three(void *)
{
    found = wait_many(3, WaitAll, NULL);
    __atomic_fetch_add(&gone, 1, __ATOMIC_RELEASE);
}

TEST(dispatcher, all_or_none, "a wait for all objects takes none of them before it can take all")
{
    initialize_events(SynchronizationEvent, 3);
    gone = 0;
    struct thread *waiter = team_start(wait_all_of_three, NULL, cpu_all(), THREAD_PRIORITY);
    REQUIRE(waiter != NULL && team_until_waits(waiter));
    KeSetEvent(&events[0], 0, FALSE);
    KeSetEvent(&events[2], 0, FALSE);
    settle();
    CHECK_EQ(gone, 0);
    CHECK_STATUS(try_one(&events[0]), STATUS_SUCCESS); /* so it had not been taken */
    KeSetEvent(&events[1], 0, FALSE);
    settle();
    CHECK_EQ(gone, 0);
    KeSetEvent(&events[0], 0, FALSE);
    team_end(waiter);
    CHECK_STATUS(found, STATUS_SUCCESS);
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQ(KeReadStateEvent(&events[i]), 0);
}

static void wait_any_of_three(void *) { found = wait_many(3, WaitAny, NULL); }

TEST(dispatcher, twice_the_same,
     "a wait for any that names an event twice ends once, and takes no signal from other waiters")
{
    initialize_events(SynchronizationEvent, 2);
    objects[2] = &events[0];
    gone = 0;
    struct thread *twice = team_start(wait_any_of_three, NULL, cpu_all(), THREAD_PRIORITY);
    REQUIRE(twice != NULL && team_until_waits(twice));
    struct thread *once = team_start(wait_and_count, &events[0], cpu_all(), THREAD_PRIORITY);
    REQUIRE(once != NULL && team_until_waits(once));
    KeSetEvent(&events[0], 0, FALSE);
    team_end(twice);
    CHECK_STATUS(found, STATUS_WAIT_0);
    settle();
    CHECK_EQ(gone, 0);
    KeSetEvent(&events[0], 0, FALSE);
    team_end(once);
    CHECK(IsListEmpty(&events[0].Header.WaitListHead));
    CHECK(IsListEmpty(&events[1].Header.WaitListHead));
}
