/* SPDX-License-Identifier: MIT */
/* Who runs when priorities change, when a CPU is asked to choose again, and when several
 * CPUs could run a thread. */
#include "hal/machine/apic.h"
#include "kernel/ke/dispatcher.h"
#include "tests/harness/kernel.h"
#include "tests/harness/threads.h"

#define TRIES 20u
#define LONG_TICK_NS 4000000000u /* the patience of team_until is shorter */
#define ROUNDS 20u
#define MOST 12u /* of them */

static uint64_t ran; /* atomic */

static uint64_t have_run(void) { return __atomic_load_n(&ran, __ATOMIC_ACQUIRE); }

static void note_run(void *unused)
{
    (void)unused;
    __atomic_fetch_add(&ran, 1, __ATOMIC_RELEASE);
}

static struct thread *other(int more)
{
    return team_start(note_run, NULL, cpu_set_one(0), THREAD_PRIORITY + more);
}

TEST(sched_turns, raised,
     "a ready thread whose priority is raised above the running thread's runs at once")
{
    test_run_on(0);
    ran = 0;
    struct thread *thread = other(-1);
    CHECK_EQ(have_run(), 0);
    sched_set_priority(thread, THREAD_PRIORITY + 1);
    CHECK_EQ(have_run(), 1);
    team_end(thread);
    test_run_anywhere();
}

TEST(sched_turns, lowers_itself,
     "a thread that lowers its priority by two, below that of a ready thread, gives way at once")
{
    test_run_on(0);
    ran = 0;
    sched_set_priority(thread_current(), THREAD_PRIORITY + 2);
    struct thread *thread = other(1);
    CHECK_EQ(have_run(), 0);
    sched_set_priority(thread_current(), THREAD_PRIORITY);
    CHECK_EQ(have_run(), 1);
    team_end(thread);
    test_run_anywhere();
}

/* Asks the CPU to choose again, as one does who interrupts a thread that is not waiting. */
static void ask_again(void) { wait_interrupt(thread_current()); }

TEST(sched_turns, not_for_less,
     "a CPU that is asked to choose again lets no thread of lower priority run")
{
    test_run_on(0);
    ran = 0;
    struct thread *thread = other(-1);
    for (unsigned i = 0; i < 10; i++)
        ask_again();
    CHECK_EQ(have_run(), 0);
    team_end(thread);
    CHECK_EQ(have_run(), 1);
    test_run_anywhere();
}

/* How many of two ready threads of this priority ran when the CPU was asked to choose again. False:
 * a tick came, and might have let them run. */
static bool asked_before_two(uint64_t *both)
{
    ran = 0;
    struct thread *first = other(0), *second = other(0);
    uint64_t ticks = cpu_current()->ticks;
    ask_again();
    *both = have_run();
    bool alone = cpu_current()->ticks == ticks;
    team_end(first);
    team_end(second);
    return alone;
}

TEST(sched_turns, after_the_same,
     "a CPU that is asked to choose again lets all ready threads of the same priority run before "
     "it comes back")
{
    uint64_t both = 0;
    unsigned tries = 0;
    test_run_on(0);
    while (tries < TRIES && !asked_before_two(&both))
        tries++;
    CHECK(tries < TRIES);
    CHECK_EQ(both, 2);
    test_run_anywhere();
}

/* --- Several CPUs. --- */

static uint64_t over; /* atomic */
static uint64_t elsewhere;

static void spin_elsewhere(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
        asm volatile("");
}

static KEVENT event;

/* Goes to CPU 0, may then run anywhere, and waits. */
static void wait_and_look(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < ROUNDS; i++) {
        test_run_on(0);
        test_run_anywhere();
        KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL);
        elsewhere += cpu_number() != 0;
        __atomic_fetch_add(&ran, 1, __ATOMIC_RELEASE);
    }
}

TEST(sched_turns, idle_first,
     "a thread that is woken runs on an idle CPU rather than in place of a thread of lower "
     "priority on its last CPU")
{
    SKIP_BELOW_CPUS(3);
    over = ran = elsewhere = 0;
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    test_run_on(1);
    struct thread *worse = team_start(spin_elsewhere, NULL, cpu_set_one(0), THREAD_PRIORITY);
    struct thread *thread = team_start(wait_and_look, NULL, cpu_set_one(0), THREAD_PRIORITY + 1);
    for (unsigned i = 0; i < ROUNDS && team_until_waits(thread); i++) {
        KeSetEvent(&event, 0, FALSE);
        while (have_run() <= i) /* if we slept this CPU would be idle, and take it */
            pause();
    }
    team_end(thread);
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    team_end(worse);
    CHECK_BECAUSE(elsewhere, MOST, ROUNDS, "the runner wakes now and then, and may be there");
    test_run_anywhere();
}

/* On CPU 0, which has no tick meanwhile. Counts once it runs on CPU 1. */
static void spin_until_moved(void *unused)
{
    (void)unused;
    apic_timer_change(LONG_TICK_NS);
    __atomic_store_n(&ran, 1, __ATOMIC_RELEASE);
    while (cpu_number() == 0 && !__atomic_load_n(&over, __ATOMIC_ACQUIRE))
        pause();
    __atomic_fetch_add(&ran, cpu_number(), __ATOMIC_RELEASE);
    test_run_on(0);
    apic_timer_change(apic_timer_period());
}

TEST(sched_turns, moved_away,
     "a running thread that may no longer run on its CPU leaves it without a tick, though none "
     "waits for that CPU")
{
    SKIP_WITH_ONE_CPU();
    over = ran = 0;
    test_run_on(1);
    /* Of the highest priority: nor does a thread that is woken there make the CPU choose again. */
    struct thread *thread =
        team_start(spin_until_moved, NULL, cpu_set_one(0), SCHED_PRIORITIES - 1);
    if (thread && team_until(&ran, 1)) {
        CHECK_STATUS(sched_set_affinity(thread, cpu_set_one(1)), STATUS_SUCCESS);
        team_until(&ran, 2);
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    team_end(thread);
    test_run_anywhere();
}

/* Whether another CPU takes a thread that waits for CPU 0, soon after it may run there too. */
static bool is_fetched(void)
{
    ran = 0;
    struct thread *thread = other(0);
    uint64_t before = cpu_current()->ticks;
    CHECK_STATUS(sched_set_affinity(thread, cpu_all()), STATUS_SUCCESS);
    /* A sleep of ours would let this CPU take it. */
    while (!have_run() && cpu_current()->ticks - before <= 2)
        pause();
    bool soon = have_run();
    team_end(thread);
    return soon;
}

TEST(sched_turns, fetched,
     "an idle CPU takes at its next tick a ready thread that waits for another CPU and may run "
     "here from now on")
{
    SKIP_BELOW_CPUS(3);
    uint64_t times = 0;
    over = 0;
    test_run_on(1);
    struct thread *better = team_start(spin_elsewhere, NULL, cpu_set_one(0), THREAD_PRIORITY + 1);
    for (unsigned i = 0; i < ROUNDS; i++)
        times += is_fetched();
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    team_end(better);
    CHECK_BECAUSE(times, MOST, ROUNDS, "with -icount a CPU may not run within two ticks");
    test_run_anywhere();
}
