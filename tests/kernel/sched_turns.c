/* SPDX-License-Identifier: MIT */
/* Who runs when priorities change, and when a thread may no longer run on its CPU. */
#include "hal/machine/apic.h"
#include "tests/harness/kernel.h"
#include "tests/harness/threads.h"

#define LONG_TICK_NS 4000000000u /* the patience of team_until is shorter */

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

/* --- Several CPUs. --- */

static uint64_t over; /* atomic */

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
