/* SPDX-License-Identifier: MIT */
/* Tests of the runner, on both sides: most fail on purpose, so they run only when asked for by
 * name. */
#include "kernel/base/assert.h"
#include "kernel/base/layout.h"
#include "kernel/base/lock.h"
#include "tests/harness/kernel.h"

TEST(selfcheck, pass, "passes") { CHECK(true); }
TEST(selfcheck, fail, "fails") { CHECK_EQ(1 + 1, 3); }
TEST(selfcheck, skip, "skips for a reason that no list has") { SKIP("no reason"); }
TEST(selfcheck, empty, "checks nothing, which is a failure") {}
TEST(selfcheck, panic, "panics") { panic("selfcheck.panic does this on purpose"); }

static uint32_t lines; /* atomic */

static void print_always(void *)
{
    for (;; __atomic_fetch_add(&lines, 1, __ATOMIC_RELAXED))
        print("# another CPU prints\n");
}

TEST(selfcheck, panic_beside, "panics while another CPU prints, which must end")
{
    SKIP_BELOW_CPUS(2);
    CHECK(thread_create("printer", print_always, NULL, cpu_set_one(1)) != NULL);
    while (__atomic_load_n(&lines, __ATOMIC_RELAXED) < 10)
        sched_wait(NULL, clock_ns() + sched_tick_ns(), DelayExecution);
    panic("selfcheck.panic_beside does this on purpose");
}

TEST(selfcheck, stack, "uses up its kernel stack, which the next switch finds")
{
    *(volatile uint64_t *)(void *)thread_current()->stack = 0;
    sched_wait(NULL, clock_ns() + sched_tick_ns(), DelayExecution);
    CHECK(true);
}

TEST(selfcheck, exception, "writes where nothing is, in ring 0")
{
    *(volatile uint64_t *)(KERNEL_VMA + 16) = 1;
}

TEST(selfcheck, triple_fault, "resets the machine")
{
    struct table_register none = { 0, 0 };
    lidt(&none);
    asm volatile("int3");
}

TEST(selfcheck, hang, "hangs in a loop that the watchdog can end")
{
    for (;;)
        pass_nops();
}

TEST(selfcheck, spin_irqs_off, "hangs with interrupts off: only the host can end it")
{
    cli();
    for (;;)
        pass_nops();
}

static void answer_never(void *)
{
    for (;;)
        pause();
}

TEST(selfcheck, no_answer, "waits for an IPI's function that does not end: who owes whom is named")
{
    SKIP_BELOW_CPUS(2);
    smp_call(cpu_set_one(cpu_number() ^ 1), answer_never, NULL);
}

static struct lock held = LOCK("selfcheck", DISPATCH_LEVEL);

TEST(selfcheck, lock_held, "hangs with a spin lock: nobody can go on")
{
    lock_acquire(&held);
    for (;;)
        pass_nops();
}
