/* SPDX-License-Identifier: MIT */
/* Tests that fail, or are ended, and leave something; and after each one that wants
 * everything to be there again. One broken thing must be one failure. */
#include "kernel/base/lock.h"
#include "kernel/driver/pool.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/etw/etw_class.h"
#include "kernel/etw/etw_control.h"
#include "kernel/etw/etw_session.h"
#include "kernel/ke/timer.h"
#include "tests/harness/clean.h"
#include "tests/harness/invariants.h"
#include "tests/harness/etw_session.h"
#include "tests/harness/lab.h"
#include "tests/harness/peek.h"

#define MSR_DEBUGCTL 0x1d9
#define MSR_STATUS_SET 0x391
#define FAIL_ON_PURPOSE() CHECK_EQ(1 + 1, 3)

static ULONG buckets[64];

/* --- What the next test wants. --- */

/* Which kinds of CPUs there are was found out at boot. */
static void check_kinds(void)
{
    static unsigned kinds;
    if (!kinds)
        kinds = pmu_kind_count;
    CHECK_EQ(pmu_kind_count, kinds);
}

static void check_processor(unsigned cpu)
{
    test_run_on(cpu);
    CHECK_EQ(cpu_number(), cpu);
    CHECK_EQ(irql_current(), PASSIVE_LEVEL);
    CHECK(read_flags() & RFLAGS_IF);
    check_kinds();
}

static void check_counters(void)
{
    HANDLE all;
    unsigned ctr;
    CHECK_OK(HalAllocateHardwareCounters(NULL, 0, NULL, &all));
    CHECK_OK(HalFreeHardwareCounters(all));
    if (counting_start(PMU_INSTRUCTIONS, PMU_USER | PMU_KERNEL, &ctr))
        counting_stop();
}

static void check_profile(void)
{
    HANDLE h = profile_made(KERNEL_VMA, 4096, 6, buckets, sizeof buckets, SOURCE, ~0ul);
    profile_start(h);
    profile_stop(h);
    CHECK_OK(handle_close(h));
}

static void check_session(void)
{
    struct session s;
    if (!session_start(&s, 64, 4))
        return;
    CHECK_EQ(session_stop(&s), 0);
    session_close(&s);
}

static void everything_is_there(void)
{
    CHECK_EQ(clean_thread_count(), 2); /* the runner's and this one */
    CHECK_EQ(handle_count(), 0);
    CHECK_EQ(counter_config_users(), 0);
    CHECK_EQ(clean_sources(), 0);
    CHECK(!hal_pmi_has_driver());
    CHECK_EQ(hal_source_interval(SOURCE), 65536);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        check_processor(cpu);
    test_run_anywhere();
    CHECK_EQ(invariants_broken(), 0);
    check_counters();
    check_profile();
    check_session();
}

#define THEN(name)                                                                                 \
    TEST(selfcheck_leaves, name##_then, "after it everything is there again")                      \
    {                                                                                              \
        everything_is_there();                                                                     \
    }
#define LEAVES(name, meaning)                                                                      \
    THEN(name)                                                                                     \
    TEST(selfcheck_leaves, name, meaning)

TEST(selfcheck_leaves, a_first, "everything is there at the beginning") { everything_is_there(); }

THEN(ring3_hang)
THEN(ring3_threads)
THEN(ring3_wait)
THEN(ring3_flood)

/* --- What is left. --- */

static void hang(void)
{
    for (;;)
        pass_nops();
}

static void hang_in_thread(void *) { hang(); }

static void wait_for_ever(void *)
{
    for (;;)
        sched_wait(NULL, SCHED_FOREVER, Executive);
}

static struct lock often = LOCK("selfcheck", DISPATCH_LEVEL);

static void lock_often(void *)
{
    for (;;) {
        KIRQL irql = lock_acquire(&often);
        for (unsigned i = 0; i < 1000; i++)
            asm volatile("");
        lock_release(&often, irql);
    }
}

static struct thread *worker(void (*function)(void *), void *argument)
{
    struct thread *thread = thread_create("worker", function, argument, SMP_ALL);
    CHECK(thread != NULL);
    return thread;
}

LEAVES(counters, "leaves counters owned")
{
    HANDLE all;
    CHECK_OK(HalAllocateHardwareCounters(NULL, 0, NULL, &all));
    FAIL_ON_PURPOSE();
}

LEAVES(counting, "is ended while its counters count and are configured")
{
    unsigned ctr;
    if (counting_start(PMU_INSTRUCTIONS, PMU_USER | PMU_KERNEL, &ctr))
        hang();
}

static bool ring3_was_ended; /* while the test could still use it */

TEST(selfcheck_leaves, watches_ring3_then, "nothing of ring 3 ended before the test that used it")
{
    CHECK(!ring3_was_ended);
    everything_is_there();
}

TEST(selfcheck_leaves, watches_ring3, "is ended at DISPATCH_LEVEL while it uses a thread in ring 3")
{
    SKIP_BELOW_CPUS(2);
    struct runner sleeper = start_sleeper(0);
    REQUIRE(sleeper.thread != NULL);
    irql_raise(DISPATCH_LEVEL);
    while (!object_signaled(&sleeper.thread->object))
        pass_nops();
    ring3_was_ended = true;
    irql_lower(PASSIVE_LEVEL);
    FAIL_ON_PURPOSE();
}

LEAVES(flags, "returns with interrupts off")
{
    CHECK(true);
    cli();
}

LEAVES(flood, "fails a thousand times, and prints few lines of it")
{
    for (unsigned i = 0; i < 1000; i++)
        CHECK_EQ(i, 1000);
}

LEAVES(irql, "returns at DISPATCH_LEVEL")
{
    CHECK(true);
    irql_raise(DISPATCH_LEVEL);
}

LEAVES(irqs_off, "hangs with interrupts off while another processor runs: an NMI ends it")
{
    SKIP_WITH_ONE_CPU();
    cli();
    hang();
}

LEAVES(
    laboratory,
    "hangs with interrupt handlers and a counter of its own; with two processors also above IPIs")
{
    lab_catch();
    KIRQL old = cpu_count > 1 ? irql_raise(IPI_LEVEL) : PASSIVE_LEVEL;
    unsigned ctr = bit_lowest(pmu_here()->counters);
    pmu_program(ctr, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_USER | PMU_KERNEL), 0);
    pmu_start(PMU_BIT(ctr));
    hang();
    irql_lower(old);
}

LEAVES(guard, "hangs with the guard of the trace sessions")
{
    etw_enter();
    hang();
}

LEAVES(kernel_mutex,
       "hangs with a mutex of KeInitializeMutex, which a thread may not take to its end")
{
    static KMUTEX mutex;
    KeInitializeMutex(&mutex, 0);
    CHECK_OK(KeWaitForSingleObject(&mutex, Executive, KernelMode, FALSE, NULL));
    hang();
}

LEAVES(kept, "returns with the guard of the trace sessions")
{
    CHECK(true);
    etw_enter();
}

static void handle_pmi(PKTRAP_FRAME frame) { (void)frame; }

LEAVES(process,
       "leaves a process that counts, with its counters configured, and one that is profiled")
{
    struct process *one = user_process(), *two = user_process();
    REQUIRE(one != NULL && two != NULL);
    struct thread *holder = user_start(one, user_driver_hold, 0);
    struct thread *sleeper = user_start(two, user_spin_profiled, 1);
    REQUIRE(holder != NULL && sleeper != NULL);
    sched_wait(NULL, clock_ns() + 20 * sched_tick_ns(), DelayExecution);
    FAIL_ON_PURPOSE();
}

LEAVES(registers, "leaves a counter running that nobody owns")
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    unsigned ctr = bit_lowest(pmu_here()->counters);
    pmu_program(ctr, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_USER | PMU_KERNEL), 0);
    pmu_start(PMU_BIT(ctr));
    irql_lower(old);
    FAIL_ON_PURPOSE();
}

LEAVES(threads,
       "leaves a thread that runs, one that waits, and one that has a spin lock most of the time")
{
    worker(hang_in_thread, NULL);
    worker(wait_for_ever, NULL);
    worker(lock_often, NULL);
}

static void write_there(void *where)
{
    for (;;)
        __atomic_fetch_add((uint64_t *)where, 1, __ATOMIC_RELAXED);
}

LEAVES(waiting, "is ended while it waits for a thread that writes into its stack")
{
    uint64_t here[64] = { 0 };
    CHECK(true);
    struct thread *thread = worker(write_there, here);
    user_wait(thread);
}

/* One of each kind that needs no other test's end. */
LEAVES(
    one_of_each,
    "leaves a handle, another interval, a source, memory, a handler of the counters' interrupt, a "
    "counter set, a started profile object, its interrupt's counters, a trace session that "
    "records, a timer, a block of pool and a reference to an older thread")
{
    static KTIMER timer;
    struct session s;
    HANDLE handle;
    PMC_HANDLE set;
    KPROFILE_SOURCE source = SOURCE;
    CHECK_OK(handle_create(&thread_current()->object, THREAD_ALL_ACCESS, &handle));
    CHECK(phys_alloc(3) != NULL && pool_allocate(16) != NULL && thread_after(0) != NULL);
    CHECK_OK(hal_pmi_set_driver(handle_pmi));
    CHECK_OK(HalAllocatePmcCounterSet(0, &source, 1, &set));
    profile_start(profile_made(KERNEL_VMA, 4096, 6, buckets, sizeof buckets, SOURCE, ~0ul));
    CHECK_OK(hal_profile_reserve(ProfileTime, cpu_set_one(0)));
    REQUIRE(session_start(&s, 64, 4));
    CHECK_OK(session_mask(&s, PERF_PROFILE | PERF_CONTEXT_SWITCH, 0));
    CHECK_EQ(hal_source_set_interval(SOURCE, 5000), 5000);
    CHECK_OK(hal_source_add("Left", 0xc0, 0, 0, 5000, &source));
    KIRQL irql = sched_lock();
    CHECK(!timer_set(&timer, ~0ul, 0));
    sched_unlock(irql);
}

/* --- A row for each invariant: what breaks it, on the last CPU. --- */

static void write_gates(void)
{
    static struct gate copy[256];
    struct table_register idt;
    sidt(&idt);
    memcpy(copy, (const void *)idt.base, sizeof copy);
    idt.base = (uint64_t)copy;
    lidt(&idt);
}

static void enable_first(void) { wrmsr(pmu_select_msr(pmu_here(), 0), PMU_ENABLE); }

#define BREAKS(name, meaning, statement)                                                           \
    static void break_##name(void *unused)                                                         \
    {                                                                                              \
        (void)unused;                                                                              \
        statement;                                                                                 \
    }                                                                                              \
    LEAVES(name, "breaks an invariant: " meaning)                                                  \
    {                                                                                              \
        CHECK_EQ(invariants_broken(), 0);                                                          \
        smp_call(cpu_set_one(cpu_count - 1), break_##name, NULL);                                  \
    }

BREAKS(broken_cr0, "CR0", write_cr0(read_cr0() & ~(uint64_t)CR0_AM))
BREAKS(broken_cr4, "CR4", write_cr4(read_cr4() | CR4_PCE))
BREAKS(broken_efer, "EFER", wrmsr(MSR_EFER, rdmsr(MSR_EFER) & ~(uint64_t)EFER_SCE))
BREAKS(broken_pat, "PAT", wrmsr(MSR_PAT, PAT_OURS ^ 0x0500))
BREAKS(broken_dr7, "DR7", write_dr7(0x700))
BREAKS(broken_gates, "the interrupt table", write_gates())
BREAKS(broken_debugctl, "DEBUGCTL", wrmsr(MSR_DEBUGCTL, 2))
BREAKS(broken_entry, "the counters' LVT entry", apic_write_pmi_lvt(APIC_LVT_MASKED))
BREAKS(broken_control, "the global control", wrmsr(pmu_here()->msr.global_control, 1))
BREAKS(broken_status, "the overflow status", wrmsr(MSR_STATUS_SET, 1))
BREAKS(broken_selects, "enabled counters", enable_first())
BREAKS(broken_running, "running counters", pmu_start(PMU_BIT(0)))
BREAKS(broken_lent, "lent counters", pmu_lend(PMU_BIT(0)))
BREAKS(broken_lost, "lost interrupts of counters", hal_profile_lost[cpu_number()]++)
BREAKS(broken_calls, "calls run and not made", cpu_current()->calls_run++)
