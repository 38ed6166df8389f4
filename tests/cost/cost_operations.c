/* SPDX-License-Identifier: MIT */
/* The cost of operations that no other test measures: counters allocated and freed, a system
 * call. */
#include "tests/harness/kernel.h"

extern void user_cost_call(uint64_t cycles);
extern uint64_t user_call_cost[];

static bool begin_counting(uint32_t flags)
{
    unsigned ctr;
    test_run_on(0);
    if (!counting_start(PMU_INSTRUCTIONS, flags, &ctr))
        return false;
    cost_begin(ctr);
    return true;
}

static void end_counting(void)
{
    cost_end();
    counting_stop();
    test_run_anywhere();
}

/* --- One counter. --- */

struct allocation {
    PHYSICAL_COUNTER_RESOURCE_LIST list;
    HANDLE handle;
    NTSTATUS status;
};

static void allocate_counter(void *argument)
{
    struct allocation *a = argument;
    a->status = HalAllocateHardwareCounters(NULL, 0, &a->list, &a->handle);
}

static void release_counter(void *argument)
{
    struct allocation *a = argument;
    a->status = HalFreeHardwareCounters(a->handle);
}

TEST(cost, allocation,
     "a counter is allocated by at most 3000 instructions on one CPU, and freed by at most 3000 "
     "[slow]")
{
    struct cost taken = { 0 }, freed = { 0 };
    struct allocation a = { .list = { .Count = 1 } };
    SKIP_WITHOUT_PMU();
    SKIP_IF_STEPPED();
    REQUIRE(begin_counting(PMU_KERNEL));
    uint64_t free = hal_counters_available(SMP_ALL);
    if (!free) {
        end_counting();
        SKIP("no counter is free");
    }
    a.list.Descriptors[0].Type = ResourceTypeSingle;
    a.list.Descriptors[0].u.CounterIndex = (unsigned)__builtin_ctzll(free);
    for (unsigned i = 0; i < COST_RUNS; i++) {
        cost_run(&taken, allocate_counter, NULL, &a);
        if (!CHECK_OK(a.status))
            break;
        cost_run(&freed, release_counter, NULL, &a);
        CHECK_OK(a.status);
    }
    cost_print(&taken, true, "a counter allocated");
    cost_print(&freed, true, "a counter freed");
    /* Below: a CALL to each CPU's PMU. Above: with others their answers are waited for, as long as
     * that takes. */
    CHECK_RANGE(cost_least(&taken), 50, cpu_count > 1 ? ~0u : 3000);
    CHECK_RANGE(cost_least(&freed), 50, cpu_count > 1 ? ~0u : 3000);
    end_counting();
}

/* --- As ring 3 sees it: counters of both rings. --- */

static const char *const calls[] = { "a system call that does next to nothing",
                                     "reading 1 counters by the service, with rdpmc=off",
                                     "reading 1 counters", "one raw read" };
#define CALLS 4u

static void keep_least(uint64_t *least, uint64_t value)
{
    if (value < *least)
        *least = value;
}

TEST(cost, system_call,
     "a system call that does next to nothing takes at most 250 instructions, both rings', and one "
     "that reads a counter at most 1000")
{
    static uint64_t found[1 + CALLS][2][COST_RUNS]; /* of nothing first */
    SKIP_WITHOUT_RDPMC();
    if (isolate_on)
        SKIP("the policy is isolate"); /* it gives threads no counter of both rings */
    SKIP_IF_STEPPED();
    REQUIRE(begin_counting(PMU_USER | PMU_KERNEL));
    struct process *process = user_process();
    struct thread *thread = user_start(process, user_cost_call, cost_cycles());
    user_wait(thread);
    bool read = CHECK(thread && user_read(process, found, (uint64_t)user_call_cost, sizeof found));
    for (unsigned i = 0; read && i < CALLS; i++) {
        struct cost cost = { .runs = COST_RUNS,
                             .accesses.rdpmc = i > 0,
                             .nothing = found[0][0][0],
                             .nothing_cycles = found[0][1][0] };
        for (unsigned run = 0; run < COST_RUNS; run++) {
            keep_least(&cost.nothing, found[0][0][run]);
            keep_least(&cost.nothing_cycles, found[0][1][run]);
        }
        memcpy(cost.instructions, found[1 + i][0], sizeof cost.instructions);
        memcpy(cost.cycles, found[1 + i][1], sizeof cost.cycles);
        if (i <= 1 || !vpmu_present()) /* there tp_cost.read reports the others */
            cost_print(&cost, true, "%s", calls[i]);
        if (i == 0) /* below: 15 registers saved and restored in ring 0, twice as many moved */
            CHECK_RANGE(cost_least(&cost), 80, 250);
        if (i == 1) /* PERFORMANCE_DATA is copied twice */
            CHECK_RANGE(cost_least(&cost), 200, 1000);
    }
    user_finish(process, thread);
    end_counting();
}
