/* SPDX-License-Identifier: MIT */
/* Exactness where ring 3 is left by other traps than ticks: page faults, and NMIs. */
#include "tests/harness/exactness.h"
#include "tests/harness/kernel.h"

#define STACK_RESERVE 0x200000u

TEST(exact, page_faults,
     "instructions that fault and are resumed count once, as if they had not faulted [TP-80]")
{
    unsigned ctr;
    SKIP_WITHOUT_PMU();
    SKIP_IF_STEPPED();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    struct process *process = user_process();
    if (CHECK(process != NULL)) {
        process->stack_reserve = STACK_RESERVE;
        process->stack_commit = PAGE_SIZE;
        uint64_t before = trap_counts[EXC_PAGE_FAULT];
        struct thread *thread = user_start(process, user_exact_faults, exactness());
        exactness_finish(process, thread);
        CHECK(trap_counts[EXC_PAGE_FAULT] - before >= USER_EXACT_TOUCHES * USER_EXACT_PAGES);
    }
    counting_stop();
}

struct sender {
    uint32_t stop; /* atomic */
    unsigned sent;
};

#define TICKS_MAX 50

/* NMIs to all CPUs but this one, each tick. */
static void send_nmis(void *argument)
{
    struct sender *s = argument;
    for (; !__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE); s->sent++) {
        apic_nmi_others();
        sched_wait(NULL, clock_ns() + sched_tick_ns(), DelayExecution);
    }
}

TEST(exact, nmis, "regions are counted exactly while NMIs fall into them [TP-79 TP-80]")
{
    unsigned ctr;
    struct sender s = { 0 };
    SKIP_WITHOUT_PMU();
    SKIP_IF_STEPPED();
    SKIP_BELOW_CPUS(2);
    SKIP_IF(boot_safe(), "safe: no NMI");
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    struct process *process = user_process();
    struct thread *sender = thread_create("sender", send_nmis, &s, cpu_set_one(1));
    struct thread *thread = NULL;
    uint64_t before = trap_counts[EXC_NMI];
    uint64_t end = clock_ns() + TICKS_MAX * sched_tick_ns();
    do { /* on many processors a tick is long */
        if (thread)
            object_release(&thread->object);
        thread = user_thread("measured", process, (uint64_t)user_exact_known, exactness(),
                             cpu_set_one(0));
        user_wait(thread);
    } while (thread && clock_ns() < end && __atomic_load_n(&s.sent, __ATOMIC_RELAXED) < 2);
    CHECK(trap_counts[EXC_NMI] - before >= 2);
    __atomic_store_n(&s.stop, 1, __ATOMIC_RELEASE);
    team_end(sender);
    CHECK(s.sent >= 2);
    exactness_finish(process, thread);
    counting_stop();
}
