/* SPDX-License-Identifier: MIT */
/* Events, semaphores, mutants and waits, from ring 0; what ring 3 adds is in tests/ring3. */
#include "kernel/ke/dispatcher.h"
#include "kernel/base/list.h"
#include "tests/harness/kernel.h"
#include "tests/harness/threads.h"

#define WAITERS 4

static KEVENT event, events[MAXIMUM_WAIT_OBJECTS];
static KSEMAPHORE semaphore;
static KMUTANT mutants[2];
static uint64_t gone;            /* atomic: waiters that were let go */
static uint64_t order[TEAM_MAX]; /* who was let go when */
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

/* Of the threads that wait for the event each call wakes one. */
static void wake_each_by(LONG (*wake)(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait))
{
    struct thread *threads[WAITERS];
    start_waiters(threads, wait_and_count, &event);
    for (unsigned i = 1; i <= WAITERS; i++) {
        CHECK_EQ(wake(&event, 0, FALSE), 0);
        CHECK_EQ(KeReadStateEvent(&event), 0);
        team_until(&gone, i);
        settle();
        CHECK_EQ(gone, i);
    }
    end_all(threads);
}

TEST(dispatcher, notification_events,
     "a notification event wakes all waiters and stays signaled; each routine returns the state "
     "before")
{
    struct thread *threads[WAITERS];
    KeInitializeEvent(&event, NotificationEvent, TRUE);
    CHECK_EQ(KeReadStateEvent(&event), 1);
    CHECK_EQ(KeResetEvent(&event), 1);
    CHECK_EQ(KeResetEvent(&event), 0);
    start_waiters(threads, wait_and_count, &event);
    CHECK_EQ(KeSetEvent(&event, 0, FALSE), 0);
    end_all(threads);
    CHECK_EQ(gone, WAITERS);
    CHECK_EQ(KeSetEvent(&event, 0, FALSE), 1);
    CHECK_STATUS(try_one(&event), STATUS_SUCCESS);
    CHECK_STATUS(try_one(&event), STATUS_SUCCESS);
    KeClearEvent(&event);
    CHECK_EQ(KeReadStateEvent(&event), 0);
    CHECK_STATUS(try_one(&event), STATUS_TIMEOUT);
}

TEST(dispatcher, synchronization_events,
     "a synchronization event wakes one waiter each time it is set, or satisfies the next wait")
{
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    wake_each_by(KeSetEvent);
    CHECK_EQ(KeSetEvent(&event, 0, FALSE), 0);
    CHECK_EQ(KeSetEvent(&event, 0, FALSE), 1);
    CHECK_STATUS(try_one(&event), STATUS_SUCCESS);
    CHECK_STATUS(try_one(&event), STATUS_TIMEOUT);
}

TEST(dispatcher, pulses,
     "a pulse wakes the threads that wait now (one of them, if it is a synchronization event) and "
     "leaves the event not signaled")
{
    struct thread *threads[WAITERS];
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    CHECK_EQ(KePulseEvent(&event, 0, FALSE), 0);
    start_waiters(threads, wait_and_count, &event);
    settle();
    CHECK_EQ(gone, 0);
    CHECK_EQ(KePulseEvent(&event, 0, FALSE), 0);
    end_all(threads);
    CHECK_STATUS(try_one(&event), STATUS_TIMEOUT);
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    wake_each_by(KePulseEvent);
    CHECK_EQ(KeSetEvent(&event, 0, FALSE), 0);
    CHECK_EQ(KePulseEvent(&event, 0, FALSE), 1);
    CHECK_EQ(KeReadStateEvent(&event), 0);
}

TEST(dispatcher, semaphores,
     "a semaphore wakes as many threads as it was released for, and counts further releases")
{
    struct thread *threads[WAITERS];
    KeInitializeSemaphore(&semaphore, 0, WAITERS + 1);
    start_waiters(threads, wait_and_count, &semaphore);
    CHECK_EQ(KeReleaseSemaphore(&semaphore, 0, 2, FALSE), 0);
    team_until(&gone, 2);
    settle();
    CHECK_EQ(gone, 2);
    CHECK_EQ(KeReleaseSemaphore(&semaphore, 0, WAITERS + 1, FALSE), 0);
    end_all(threads);
    CHECK_EQ(KeReadStateSemaphore(&semaphore), 3);
    for (unsigned i = 0; i < 3; i++)
        CHECK_STATUS(try_one(&semaphore), STATUS_SUCCESS);
    CHECK_STATUS(try_one(&semaphore), STATUS_TIMEOUT);
    CHECK_EQ(KeReleaseSemaphore(&semaphore, 0, 1, FALSE), 0);
    CHECK_EQ(KeReleaseSemaphore(&semaphore, 0, 1, FALSE), 1);
}

TEST(dispatcher, mutexes,
     "a mutex belongs to its owner until it was released as often as it was acquired")
{
    KeInitializeMutex(&mutants[0], 0);
    CHECK_EQ(KeReadStateMutex(&mutants[0]), 1);
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(wait_one(&mutants[0]), STATUS_SUCCESS);
        CHECK_EQ(KeReadStateMutex(&mutants[0]), -i);
    }
    CHECK(mutants[0].OwnerThread == thread_current());
    gone = 0;
    struct thread *other = team_start(wait_and_count, &mutants[0], cpu_all(), THREAD_PRIORITY);
    REQUIRE(other != NULL && team_until_waits(other));
    for (int i = -2; i < 0; i++) {
        CHECK_EQ(KeReleaseMutex(&mutants[0], FALSE), i);
        settle();
        CHECK_EQ(gone, 0);
    }
    /* The other one may not end while it has it: the kernel's mutexes must be released. */
    KMUTANT *m = &mutants[0];
    m->ApcDisable = 0;
    CHECK_EQ(KeReleaseMutex(m, FALSE), 0);
    team_end(other);
    CHECK_EQ(gone, 1);
}

static void own_and_end(void *mutant)
{
    CHECK_STATUS(wait_one(mutant), STATUS_SUCCESS);
    CHECK_STATUS(wait_one(mutant), STATUS_SUCCESS);
}

static void own_and_end_later(void *mutant)
{
    CHECK_STATUS(wait_one(mutant), STATUS_SUCCESS);
    CHECK_STATUS(wait_one(&event), STATUS_SUCCESS);
}

static void wait_for_abandoned(void *mutant)
{
    found = wait_one(mutant);
    KeReleaseMutex(mutant, FALSE);
}

TEST(dispatcher, abandoned,
     "a mutant becomes free when its owner ends; the first wait for it, and no later one, returns "
     "STATUS_ABANDONED")
{
    KeInitializeMutant(&mutants[0], TRUE);
    CHECK_EQ(KeReadStateMutex(&mutants[0]), 0);
    struct thread *waiter = team_start(wait_for_abandoned, &mutants[0], cpu_all(), THREAD_PRIORITY);
    REQUIRE(waiter != NULL && team_until_waits(waiter));
    KeReleaseMutex(&mutants[0], FALSE);
    team_end(waiter);
    CHECK_STATUS(found, STATUS_SUCCESS);

    team_end(team_start(own_and_end, &mutants[0], cpu_all(), THREAD_PRIORITY));
    CHECK_EQ(KeReadStateMutex(&mutants[0]), 1);
    CHECK(mutants[0].OwnerThread == NULL && mutants[0].Abandoned);
    team_end(team_start(wait_for_abandoned, &mutants[0], cpu_all(), THREAD_PRIORITY));
    CHECK_STATUS(found, STATUS_ABANDONED);
    CHECK_STATUS(try_one(&mutants[0]), STATUS_SUCCESS);
    CHECK_EQ(KeReleaseMutex(&mutants[0], FALSE), 0);
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

TEST(dispatcher, mutant_limit,
     "a mutant owned 2^31 + 1 times over is refused with STATUS_MUTANT_LIMIT_EXCEEDED")
{
    KeInitializeMutant(&mutants[0], TRUE);
    mutants[0].Header.SignalState = INT32_MIN + 1;
    CHECK_STATUS(wait_one(&mutants[0]), STATUS_SUCCESS);
    CHECK_STATUS(wait_one(&mutants[0]), STATUS_MUTANT_LIMIT_EXCEEDED);
    CHECK_EQ(mutants[0].Header.SignalState, INT32_MIN);
    mutants[0].Header.SignalState = 0;
    CHECK_EQ(KeReleaseMutex(&mutants[0], FALSE), 0);
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

static void wait_any_of_all(void *unused)
{
    (void)unused;
    found = wait_many(MAXIMUM_WAIT_OBJECTS, WaitAny, NULL);
}

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

static void wait_all_of_three(void *unused)
{
    (void)unused;
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

TEST(dispatcher, all_of_abandoned,
     "a wait for all objects returns STATUS_ABANDONED if one of them is an abandoned mutant")
{
    const int64_t now = 0;
    initialize_events(NotificationEvent, 3);
    KeInitializeMutant(&mutants[0], FALSE);
    team_end(team_start(own_and_end, &mutants[0], cpu_all(), THREAD_PRIORITY));
    objects[1] = &mutants[0];
    KeSetEvent(&events[0], 0, FALSE);
    CHECK_STATUS(wait_many(3, WaitAll, &now), STATUS_TIMEOUT);
    CHECK(mutants[0].Abandoned);
    CHECK_STATUS(wait_many(3, WaitAny, &now), STATUS_WAIT_0);
    KeSetEvent(&events[2], 0, FALSE);
    CHECK_STATUS(wait_many(3, WaitAll, &now), STATUS_ABANDONED);
    KeReleaseMutex(&mutants[0], FALSE);
    team_end(team_start(own_and_end, &mutants[0], cpu_all(), THREAD_PRIORITY));
    KeClearEvent(&events[0]);
    CHECK_STATUS(wait_many(3, WaitAny, &now), STATUS_ABANDONED_WAIT_0 + 1);
    KeReleaseMutex(&mutants[0], FALSE);
}

TEST(dispatcher, counts,
     "a wait for no object, for more than 64, or for more than three without wait blocks is "
     "refused")
{
    LARGE_INTEGER now = { .QuadPart = 0 };
    initialize_events(NotificationEvent, MAXIMUM_WAIT_OBJECTS);
    static const unsigned numbers[] = {
        0, 1, 3, 4, MAXIMUM_WAIT_OBJECTS, MAXIMUM_WAIT_OBJECTS + 1
    };
    for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++) {
        unsigned count = numbers[i];
        bool few = count >= 1 && count <= 3, some = count >= 1 && count <= MAXIMUM_WAIT_OBJECTS;
        CHECK_STATUS(KeWaitForMultipleObjects(count, objects, WaitAny, Executive, KernelMode, FALSE,
                                              &now, NULL),
                     few ? STATUS_TIMEOUT : STATUS_INVALID_PARAMETER_1);
        CHECK_STATUS(KeWaitForMultipleObjects(count, objects, WaitAny, Executive, KernelMode, FALSE,
                                              &now, blocks),
                     some ? STATUS_TIMEOUT : STATUS_INVALID_PARAMETER_1);
    }
    CHECK_STATUS(wait_many(MAXIMUM_WAIT_OBJECTS, WaitAny, &now.QuadPart), STATUS_TIMEOUT);
}

static void wait_any_of_three(void *unused)
{
    (void)unused;
    found = wait_many(3, WaitAny, NULL);
}

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

/* --- Order. --- */

static void note_order(void *number)
{
    wait_one(&event);
    order[__atomic_fetch_add(&gone, 1, __ATOMIC_ACQ_REL)] = (uint64_t)number;
}

TEST(dispatcher, first_come,
     "of the threads that wait for an event, the one that waited first is woken first")
{
    struct thread *threads[8];
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    gone = 0;
    for (uint64_t i = 0; i < 8; i++) {
        threads[i] = team_start(note_order, (void *)i, cpu_all(), THREAD_PRIORITY);
        REQUIRE(threads[i] != NULL && team_until_waits(threads[i]));
    }
    for (uint64_t i = 0; i < 8; i++) {
        KeSetEvent(&event, 0, FALSE);
        team_until(&gone, i + 1);
        CHECK_EQ(order[i], i);
    }
    for (unsigned i = 0; i < 8; i++)
        team_end(threads[i]);
}
