/* SPDX-License-Identifier: MIT */
#include "tests/harness/kernel.h"
#include "tests/harness/watchdog.h"

/* Of a test, unless the machine is slow. */
#define LIMIT_NS (SANITIZED ? UINT64_C(30000000000) : UINT64_C(2000000000))
#define LOOPS 4000000u /* or the time for so many iterations of a loop, whatever is more */
/* By the clock on the wall: an emulator's time may creep in a wait loop. A host that is busy with
 * others gives a machine a thirtieth of its time: half a second then takes a minute. */
#define SECONDS_MAX 600
#define WATCH_NS 10000000u /* from look to look */
#define LIMIT_TICKS 1000u  /* or the time for so many: with many CPUs ticks are long (sched.c) */
#define CPU_NS 20000000ul  /* more for each CPU: some tests wait on one after the other */
/* The host's clock goes on while it runs others, and one CPU of four may have all of its time. */
#define SHARED_NS UINT64_C(60000000000)

static uint64_t limit_ns = LIMIT_NS;
static uint64_t ticks_before[MAX_CPUS];

/* Two instructions each time: a compiler's own loop may do two iterations in three. */
static uint64_t loop_ticks(unsigned loops)
{
    uint64_t flags = read_flags();
    cli();
    uint64_t start = rdtsc();
    asm volatile("1: dec %0\njnz 1b" : "+r"(loops) : : "cc");
    uint64_t ticks = rdtsc() - start;
    write_flags(flags);
    return ticks;
}

/* A hypervisor has other work, unless time is a count of instructions: then 1,000 iterations more
 * take a multiple of 1,000 ticks more. By chance it may be so, but not four times. */
static bool host_is_shared(void)
{
    unsigned exact = 0;
    for (unsigned i = 0; i < 64 && exact < 4; i++)
        exact = (loop_ticks(2000) - loop_ticks(1000)) % 1000 == 0 ? exact + 1 : 0;
    return cpu_features.hypervisor && exact < 4;
}

/* The word watchdog=MS: for tests of the watchdog itself, which would wait long. */
static uint64_t asked_ns(void)
{
    uint64_t ms = test_word("watchdog"), ticks_ns = LIMIT_TICKS * sched_tick_ns();
    if (ms)
        return ms * 1000000;
    if (host_is_shared()) {
        print("# watchdog: the host may run others: a test may take a minute\n");
        return SHARED_NS;
    }
    return (ticks_ns > LIMIT_NS ? ticks_ns : LIMIT_NS) + cpu_count * CPU_NS;
}

uint64_t watchdog_calibrate(void)
{
    uint64_t ns = loop_ticks(LOOPS / 200) * 1000000 / (clock_tsc_hz / 1000) * 200;
    limit_ns = ns <= LIMIT_NS ? asked_ns() : ns;
    if (ns <= LIMIT_NS)
        return 0;
    return ns / 1000000;
}

/* Since boot, without what went into printing. */
static uint64_t working_ns(void)
{
    return clock_ns() - print_ticks() * 1000000 / (clock_tsc_hz / 1000);
}

/* Ticks of the CPU that has had most of them. A host that runs others stops us, and then one tick
 * comes for many: unlike the clock they show how long the machine ran. */
static uint64_t ticks_since(const uint64_t before[MAX_CPUS])
{
    uint64_t most = 0;
    for (unsigned c = 0; c < cpu_count; c++) {
        uint64_t ticks = __atomic_load_n(&cpus[c]->ticks, __ATOMIC_RELAXED) - before[c];
        if (ticks > most)
            most = ticks;
    }
    return most;
}

bool watchdog_wait(struct thread *thread, void (*each_second)(void), struct watchdog_took *took)
{
    uint64_t start = working_ns(), limit_ticks = limit_ns / sched_tick_ns();
    unsigned last = clock_wall_second();
    *took = (struct watchdog_took){ 0 };
    for (unsigned c = 0; c < cpu_count; c++)
        ticks_before[c] = __atomic_load_n(&cpus[c]->ticks, __ATOMIC_RELAXED);
    while (sched_wait(&thread->object, clock_ns() + WATCH_NS, Executive) == STATUS_TIMEOUT) {
        unsigned now = clock_wall_second();
        took->wall_seconds += (now + 60 - last) % 60;
        took->ns = working_ns() - start;
        if (now != last)
            each_second();
        last = now;
        if ((took->ns > limit_ns && ticks_since(ticks_before) >= limit_ticks) ||
            took->wall_seconds > SECONDS_MAX)
            return false;
    }
    return true;
}
