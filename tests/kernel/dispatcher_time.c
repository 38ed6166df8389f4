/* SPDX-License-Identifier: MIT */
/* Waits: how long they last, at which IRQL what happens, and processors that collide. */
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/mutex.h"
#include "kernel/nt/nt_time.h"
#include "kernel/trap.h"
#include "tests/harness/kernel.h"
#include "tests/harness/threads.h"

#define TEAM 8
#define ITERATIONS 300
#define TRIES 20u
#define WAITS_NS 300000000u /* for iterations that each wait for a tick */
#define PLACES 16u          /* between two ticks */

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
    test_run_anywhere();
}

static void run_and_count(void *unused)
{
    (void)unused;
    __atomic_fetch_add(&gone, 1, __ATOMIC_RELEASE);
}

TEST(dispatcher_time, past_gives_nothing_away,
     "a wait until a time that is past does not let a thread of lower priority run")
{
    test_run_on(0);
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    gone = 0;
    LARGE_INTEGER past = { .QuadPart = SYSTEM_TIME_AT_BOOT + 1 };
    struct thread *worse = team_start(run_and_count, NULL, cpu_set_one(0), THREAD_PRIORITY - 1);
    REQUIRE(worse != NULL);
    for (unsigned i = 0; i < 10; i++) {
        CHECK_STATUS(wait_for_event(past.QuadPart), STATUS_TIMEOUT);
        CHECK_STATUS(KeDelayExecutionThread(KernelMode, FALSE, &past), STATUS_SUCCESS);
        CHECK_EQ(gone, 0);
    }
    team_end(worse);
    CHECK_EQ(gone, 1);
    test_run_anywhere();
}

/* All on CPU 0, until `base` and some ticks more. */
static const uint64_t naps[] = { 9, 3, 12, 1, 6, 1, 3 };
static struct {
    uint64_t base, woken;
    unsigned order[ARRAY_SIZE(naps)];
    bool late; /* a tick came before one was asleep, or had noted that it woke */
} nap;

static void sleep_for(void *number)
{
    unsigned n = (unsigned)(uint64_t)number;
    uint64_t wake = nap.base + naps[n] * sched_tick_ns();
    nap.late |= clock_ns() >= nap.base;
    CHECK_STATUS(sched_wait(NULL, wake, DelayExecution), STATUS_SUCCESS);
    uint64_t now = clock_ns();
    CHECK(now >= wake);
    nap.late |= now >= wake + sched_tick_ns();
    nap.order[nap.woken++] = n;
}

static void sleep_all(void)
{
    struct thread *threads[ARRAY_SIZE(naps)];
    memset(&nap, 0, sizeof nap);
    sched_wait(NULL, clock_ns() + 1, DelayExecution); /* a tick has just come */
    nap.base = clock_ns() + 5 * sched_tick_ns() / 2;
    for (unsigned i = 0; i < ARRAY_SIZE(naps); i++)
        threads[i] = team_start(sleep_for, (void *)(uint64_t)i, cpu_set_one(0), THREAD_PRIORITY);
    for (unsigned i = 0; i < ARRAY_SIZE(naps); i++)
        team_end(threads[i]);
}

TEST(dispatcher_time, many_sleepers,
     "sleeping threads wake, on one CPU in the order of their wake-up times, and of the order in "
     "which they began where these are the same")
{
    static const unsigned order[] = { 3, 5, 1, 6, 4, 0, 2 };
    unsigned tries = 0;
    test_run_on(0);
    do
        sleep_all();
    while (cpu_count == 1 && nap.late && ++tries < TRIES);
    CHECK_EQ(nap.woken, ARRAY_SIZE(naps));
    if (tries == TRIES)
        test_note("a busy host: ticks came between those that woke, and their order means nothing");
    /* The tick of another CPU may wake them just before a tick here, which lets the next one run.
     */
    for (unsigned i = 0; i < ARRAY_SIZE(naps) && cpu_count == 1 && tries < TRIES; i++)
        CHECK_EQ(nap.order[i], order[i]);
    test_run_anywhere();
}

/* --- IRQL. --- */

static void wait_and_count(void *unused)
{
    (void)unused;
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

/* What may end the quantum of the thread that runs here. */
static uint64_t interruptions(void)
{
    return cpu_current()->ticks +
           __atomic_load_n(&trap_counts[VECTOR_RESCHEDULE], __ATOMIC_RELAXED);
}

/* Wakes a thread here that has this much more priority. True: it has run when KeSetEvent returned,
 * or not, because of that alone. */
static bool wakes(unsigned cpu, int more)
{
    gone = 0;
    struct thread *other =
        team_start(wait_and_count, NULL, cpu_set_one(cpu), THREAD_PRIORITY + more);
    if (!CHECK(other != NULL && team_until_waits(other)))
        return true;
    sched_wait(NULL, clock_ns() + sched_tick_ns(), DelayExecution); /* a fresh quantum */
    uint64_t before = interruptions();
    KeSetEvent(&event, 0, FALSE);
    int64_t ran = (int64_t)__atomic_load_n(&gone, __ATOMIC_ACQUIRE);
    bool alone = interruptions() == before;
    if (more || alone)
        CHECK_EQ(ran, more);
    team_end(other);
    return more || alone;
}

TEST(dispatcher_time, at_passive_level,
     "a thread of higher priority that is woken runs at once, one of the same priority later")
{
    for (unsigned cpu = 0; test_run_on_each(cpu); cpu++) {
        KeInitializeEvent(&event, SynchronizationEvent, FALSE);
        for (int more = 0; more < 2; more++) {
            unsigned tries = 0;
            while (tries < TRIES && !wakes(cpu, more))
                tries++;
            CHECK(tries < TRIES);
        }
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
    test_run_anywhere();
}

/* --- Collisions. --- */

static KMUTANT locks[3];
static KSEMAPHORE seats;
static struct mutex plain = MUTEX("test");
static uint64_t shared, sitting; /* `sitting` atomic */
static uint64_t signals;         /* atomic; of events that were not signaled */

static void add_one(void)
{
    uint64_t seen = shared;
    for (unsigned i = 0; i < 20; i++)
        asm volatile("" : : : "memory");
    shared = seen + 1;
}

/* Two of three mutants, in an order that would deadlock if they were taken one by one. */
static void take_two(void *number)
{
    uint64_t n = (uint64_t)number;
    PVOID two[2] = { &locks[n % 3], &locks[(n + 1) % 3] };
    for (unsigned i = 0; i < ITERATIONS; i++) {
        CHECK_OK(
            KeWaitForMultipleObjects(2, two, WaitAll, Executive, KernelMode, FALSE, NULL, NULL));
        add_one(); /* any two of three sets of two have one in common */
        KeReleaseMutex(two[i % 2], FALSE);
        KeReleaseMutex(two[1 - i % 2], FALSE);
    }
}

TEST(dispatcher_time, mutants_collide,
     "eight threads on all CPUs that each wait for two of three mutants lose no increment and do "
     "not deadlock")
{
    for (unsigned i = 0; i < 3; i++)
        KeInitializeMutant(&locks[i], FALSE);
    shared = 0;
    team_run(take_two, TEAM);
    CHECK_EQ(shared, TEAM * ITERATIONS);
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQ(KeReadStateMutex(&locks[i]), 1);
}

static void sit_down(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < ITERATIONS; i++) {
        CHECK_OK(KeWaitForSingleObject(&seats, Executive, KernelMode, FALSE, NULL));
        CHECK(__atomic_add_fetch(&sitting, 1, __ATOMIC_ACQ_REL) <= 3);
        if (i % 16 == 0)
            sched_switch(WrYieldExecution);
        __atomic_sub_fetch(&sitting, 1, __ATOMIC_ACQ_REL);
        KeReleaseSemaphore(&seats, 0, 1, FALSE);
    }
}

TEST(dispatcher_time, semaphores_collide,
     "a semaphore with a count of three never admits four threads, whatever the CPUs do")
{
    KeInitializeSemaphore(&seats, 3, 3);
    team_run(sit_down, TEAM);
    CHECK_EQ(KeReadStateSemaphore(&seats), 3);
    CHECK_EQ(sitting, 0);
}

/* At another time between two ticks in each iteration, while waits whose time is over stand until
 * the tick. */
static void set_later(unsigned iteration)
{
    uint64_t until = clock_ns() + sched_tick_ns() * (iteration % PLACES) / 8;
    while (clock_ns() < until) {
        sched_switch(WrYieldExecution);
        if (cpu_count > 1)
            pause(); /* a PAUSE leaves a virtual machine, and one CPU has nobody to wait for */
    }
    __atomic_fetch_add(&signals, !KeSetEvent(&event, 0, FALSE), __ATOMIC_RELAXED);
}

static void hand_over(void *number)
{
    uint64_t iterations = test_long() ? WAITS_NS / sched_tick_ns() : PLACES;
    bool sets = (uint64_t)number % 2;
    /* The last event that is set is there for who waits then: he goes on until one was. */
    for (unsigned i = 0;
         (i < iterations && i < ITERATIONS) || (!sets && !__atomic_load_n(&gone, __ATOMIC_RELAXED));
         i++) {
        if (sets)
            set_later(i);
        else if (wait_for_event(i % 3 ? -(int64_t)sched_tick_ns() / 100 : 0) == STATUS_SUCCESS)
            __atomic_fetch_add(&gone, 1, __ATOMIC_RELAXED);
    }
}

TEST(dispatcher_time, timeouts_collide,
     "when events are set while waits for them time out on all CPUs, no thread waits for ever, and "
     "each event that becomes signaled wakes one thread, unless it is signaled at the end [slow]")
{
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    gone = signals = 0;
    team_run(hand_over, TEAM);
    CHECK(gone > 0);
    CHECK_EQ(gone + (uint64_t)KeReadStateEvent(&event), signals);
    CHECK(event.Header.WaitListHead.Flink == &event.Header.WaitListHead);
}

static void enter_and_leave(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < ITERATIONS; i++) {
        mutex_acquire(&plain);
        add_one();
        if (i % 32 == 0)
            sched_switch(WrYieldExecution);
        mutex_release(&plain);
    }
}

TEST(dispatcher_time, mutex,
     "a struct mutex excludes threads on all CPUs, also while its owner does not run")
{
    shared = 0;
    team_run(enter_and_leave, TEAM);
    CHECK_EQ(shared, TEAM * ITERATIONS);
    CHECK(plain.owner == NULL);
}
