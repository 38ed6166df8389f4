/* SPDX-License-Identifier: MIT */
/* Threads, locks, IPIs and time, from ring 0. */
#include "kernel/base/upcalls.h"
#include "kernel/base/lock.h"
#include "tests/harness/kernel.h"

#define THREADS 8
#define ITERATIONS 2000

static struct lock shared_lock = LOCK("test", DISPATCH_LEVEL);
static uint64_t shared; /* L: shared_lock */

static void add_under_lock(void *)
{
    for (unsigned i = 0; i < ITERATIONS; i++) {
        KIRQL irql = lock_acquire(&shared_lock);
        CHECK(irql == PASSIVE_LEVEL && irql_current() == DISPATCH_LEVEL);
        uint64_t seen = shared;
        asm volatile("" : : : "memory");
        shared = seen + 1;
        lock_release(&shared_lock, irql);
    }
}

TEST(locks, exclude, "eight threads on all CPUs lose no increment under a lock")
{
    shared = 0;
    team_run(add_under_lock, THREADS);
    CHECK_EQ(shared, THREADS * ITERATIONS);
    CHECK_EQ(shared_lock.owner, 0);
}

TEST(irql, is_cr8, "raising and lowering moves CR8, and a raised IRQL holds back the timer")
{
    uint64_t end = clock_ns() + 3 * sched_tick_ns();
    KIRQL old = irql_raise(CLOCK_LEVEL);
    CHECK_EQ(read_cr8(), CLOCK_LEVEL);
    uint64_t ticks = cpu_current()->ticks;
    while (clock_ns() < end) {
        for (unsigned i = 0; i < 100000; i++) /* an emulator's time creeps from PAUSE to PAUSE */
            asm volatile("");
        pause();
    }
    CHECK_EQ(cpu_current()->ticks, ticks);
    irql_lower(old);
    CHECK_EQ(read_cr8(), PASSIVE_LEVEL);
}

static bool one_is_done; /* atomic: the other has nobody to be pre-empted by any more */

static void spin_until_preempted(void *)
{
    uint64_t *counter = &shared;
    unsigned seen = 0;
    for (uint64_t last = 0; seen < 3 && !__atomic_load_n(&one_is_done, __ATOMIC_ACQUIRE);) {
        uint64_t now = __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
        if (now != last + 1 && last)
            seen++; /* somebody else ran */
        last = now;
    }
    __atomic_store_n(&one_is_done, true, __ATOMIC_RELEASE);
    CHECK_RANGE(seen, 2, 3); /* between the other's three returns this one returned twice */
}

static void share_cpu(int priority)
{
    struct thread *threads[2];
    shared = 1;
    one_is_done = false;
    uint64_t ticks = cpus[0]->ticks;
    for (unsigned i = 0; i < 2; i++) {
        threads[i] = thread_create("spinner", spin_until_preempted, NULL, cpu_set_one(0));
        sched_set_priority(threads[i], priority);
    }
    for (unsigned i = 0; i < 2; i++)
        team_end(threads[i]);
    /* Six switches, a tick each; when the watchdog's thread has run, the other one runs, too. It
     * alone would take more than 60 ticks for six. On a busy host some ticks come late. */
    CHECK_RANGE(cpus[0]->ticks - ticks, 4, 40);
}

TEST(sched, preempts, "threads that do not yield share a CPU, those of high priority, too")
{
    test_run_on(0);
    sched_set_priority(thread_current(), 21); /* until both are there */
    share_cpu(20);
    sched_set_priority(thread_current(), THREAD_PRIORITY);
    share_cpu(THREAD_PRIORITY);
}

/* --- A thread that is ended while one interrupt follows the other. --- */

#define STORM 24u        /* interrupts; what each leaves on the stack must not add up */
#define STORMS 20u       /* a tick in one may let another thread run, and it is over */
#define STORM_DEEP 4000u /* bytes: the way to the end, and an interrupt on it */

static const struct thread *victim;
static uint64_t storm_lowest;
static unsigned storm_met;

static void storm(void)
{
    uint64_t here = (uint64_t)__builtin_frame_address(0);
    if (thread_current() != victim)
        return;
    if (here < storm_lowest)
        storm_lowest = here;
    if (++storm_met < STORM)
        apic_send_self(VECTOR_DPC);
}

static void end_in_storm(void *top)
{
    KIRQL old = irql_raise(DISPATCH_LEVEL);
    victim = thread_current();
    *(uint64_t *)top = storm_lowest = (uint64_t)__builtin_frame_address(0);
    thread_kill(thread_current(), false);
    apic_send_self(VECTOR_DPC);
    irql_lower(old);
    for (;;)
        pause();
}

TEST(sched, ends_in_storm,
     "a thread that is ended while interrupts follow each other runs its end once, not again in "
     "each interrupt, deeper on its stack")
{
    uint64_t top = 0;
    void (*usual)(void) = trap_dpc;
    storm_met = 0;
    __atomic_store_n(&trap_dpc, storm, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < STORMS && storm_met < STORM / 2; i++) {
        storm_met = 0;
        team_end(team_start(end_in_storm, &top, cpu_set_one(0), 8));
        CHECK(top - storm_lowest <= STORM_DEEP);
    }
    __atomic_store_n(&trap_dpc, usual, __ATOMIC_RELEASE);
    CHECK(top - storm_lowest >= 100);
    CHECK_RANGE(storm_met, STORM / 2, STORM); /* fewer where a CPU gets on between two of them */
}

TEST(sched, no_such_cpu, "an affinity without any CPU is refused")
{
    CHECK(thread_create("nowhere", add_under_lock, NULL, cpu_set_none()) == NULL);
    CHECK_STATUS(sched_set_affinity(thread_current(), cpu_set_none()), STATUS_INVALID_PARAMETER);
    if (cpu_count < MAX_CPUS)
        CHECK_STATUS(sched_set_affinity(thread_current(), cpu_set_one(MAX_CPUS - 1)),
                     STATUS_INVALID_PARAMETER);
}

TEST(sched, halts, "idle CPUs halt only if the APIC timer runs in HLT")
{
    CHECK(cpu_halt_is_safe(true, false, 0) && cpu_halt_is_safe(true, true, 3u << 27));
    CHECK(cpu_halt_is_safe(false, true, 0) && cpu_halt_is_safe(false, true, ~(3ul << 27)));
    CHECK(!cpu_halt_is_safe(false, true, 1u << 27) && !cpu_halt_is_safe(false, true, 1u << 28));
    CHECK(!cpu_halt_is_safe(false, false, 0));
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        CHECK(!(cpu_features.arat && cpus[cpu]->halt_stops_timer));
}

/* With a PAUSE at each look it would be a thousand exits in a millisecond, an hour for what a timer
 * lets pass in a minute. */
TEST(sched, idles_cheaply,
     "an idle CPU executes at most 200 instructions in a millisecond that exit to its hypervisor")
{
    SKIP_WITHOUT_VPMU();
    test_run_on(0);
    uint64_t start = clock_ns();
    uint32_t before = cpuid(vpmu_leaf(1), 1).eax;
    sched_wait(NULL, start + 20 * sched_tick_ns(), DelayExecution);
    uint64_t exits = cpuid(vpmu_leaf(1), 1).eax - before, ms = (clock_ns() - start) / 1000000;
    CHECK_BECAUSE(exits, 1, 200 * ms, "this CPUID exits; 4000 looks take 20 us");
}
