/* SPDX-License-Identifier: MIT */
/* HalAllocateHardwareCounters and HalFreeHardwareCounters: ownership of counters. Refused
 * parameters are in hal_refusals.c, overflow is in hal_overflow.c, requests at random in
 * hal_random.c.
 *
 * Source: ntddk.h and its pages; what they leave open is as in the HC lines of tests/contract.md.
 */
#include "tests/harness/kernel.h"

static void no_handler(ULONGLONG bits, HANDLE handle) { (void)bits, (void)handle; }

TEST(hal_counters, free_refused,
     "a free of what is no handle, was freed, or differs from one in a bit is refused without "
     "access to memory; a handle does not come again [HC-05 HC-06 HC-07]")
{
    static const uint64_t values[] = { 0x0000000000000000, 0x0000000000000001, 0x0000000000000004,
                                       0x0000000000000400, 0x0000000000000404, 0x0000000000001000,
                                       0xfffffffffffffffc, 0x8000000000000000, 0xffffffff80000000,
                                       0x00000000dead0000 };
    HANDLE old = NULL, next = NULL;
    for (unsigned i = 0; i < ARRAY_SIZE(values); i++)
        CHECK_STATUS(HalFreeHardwareCounters((HANDLE)values[i]), STATUS_INVALID_PARAMETER);
    SKIP_WITHOUT_PMU();
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &old), STATUS_SUCCESS);
    free_and_check(old);
    CHECK_STATUS(HalFreeHardwareCounters(old), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &next), STATUS_SUCCESS);
    CHECK(next != old);
    CHECK_STATUS(HalFreeHardwareCounters(old), STATUS_INVALID_PARAMETER);
    for (unsigned bit = 0; bit < 64; bit++)
        CHECK_STATUS(HalFreeHardwareCounters((HANDLE)((uint64_t)next ^ PMU_BIT(bit))),
                     STATUS_INVALID_PARAMETER);
    CHECK_EQ(hal_counters_owned(), 1);
    free_and_check(next);
}

TEST(hal_counters, fixed_by_selector, "a fixed counter has the index 32 + n, or its RDPMC selector")
{
    SKIP_WITHOUT_PMU();
    SKIP_IF(!(common_counters() >> PMU_FIXED), "no fixed counters");
    for_each_bit(ctr, common_counters() & ~PMU_ANY_GP) {
        HANDLE handle = NULL, other = NULL;
        CHECK_STATUS(take_one(BY_NULL, pmu_rdpmc_index(ctr), &handle), STATUS_SUCCESS);
        CHECK_STATUS(take_one(BY_NULL, ctr, &other), STATUS_INSUFFICIENT_RESOURCES);
        free_and_check(handle);
    }
}

TEST(hal_counters, tag, "an owner's tag can be queried until its counters are freed")
{
    SKIP_WITHOUT_PMU();
    unsigned ctr = nth_counter(0);
    HANDLE handle = NULL;
    struct list list = { 3, { tag(0x6c616d41), single(ctr), overflow(no_handler) } };
    CHECK_STATUS(take_on(BY_NULL, &list, &handle), STATUS_SUCCESS);
    CHECK_EQ(hal_counter_owner_tag(ctr, 0), 0x6c616d41);
    free_and_check(handle);
    CHECK_EQ(hal_counter_owner_tag(ctr, 0), 0);
}

TEST(hal_counters, claim,
     "parts of the kernel own counters by name, and exclude exclusive owners [HC-45]")
{
    SKIP_WITHOUT_PMU();
    unsigned ctr = nth_counter(0);
    HANDLE claimed = NULL, handle = NO_HANDLE;
    CHECK_OK(hal_counters_claim("a test", cpu_set_one(0), PMU_BIT(ctr), NULL, &claimed));
    CHECK(is_owned_by(ctr, 0, "a test"));
    CHECK_STATUS(take_on(BY_NULL, NULL, &handle), STATUS_INSUFFICIENT_RESOURCES);
    CHECK(handle == NULL);
    CHECK_STATUS(hal_counters_claim("another", cpu_set_one(0), PMU_BIT(ctr), NULL, &handle),
                 STATUS_INSUFFICIENT_RESOURCES);
    free_and_check(claimed);
    CHECK(hal_counter_owner_name(ctr, 0) == NULL);
    CHECK_STATUS(hal_counters_claim("no CPU", cpu_set_none(), PMU_BIT(ctr), NULL, &handle),
                 STATUS_INVALID_PARAMETER);
    CHECK_STATUS(hal_counters_claim("no counter", cpu_set_one(0), 0, NULL, &handle),
                 STATUS_INVALID_PARAMETER);
    CHECK_STATUS(hal_counters_claim("absent", cpu_set_one(0), PMU_BIT(63), NULL, &handle),
                 STATUS_INVALID_PARAMETER);
}

/* What an allocation must not change, by CPU: each counter's select and value, and which
 * counters run. */
static struct registers {
    uint64_t selects[64], values[64], running;
} registers[2][MAX_CPUS];

/* Half of the counters run, the others are stopped, each with a different value. */
static void disturb(void *)
{
    uint64_t counters = pmu_counters_for(pmu_here(), PMU_INSTRUCTIONS);
    KIRQL old = irql_raise(PROFILE_LEVEL);
    for_each_bit(ctr, counters) {
        pmu_program(ctr, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL), 1000000 + ctr);
    }
    pmu_start(counters & UINT64_C(0x5555555555555555));
    irql_lower(old);
}

static void read_on_cpu(void *where)
{
    struct registers *r = &((struct registers *)where)[cpu_number()];
    r->running = pmu_running() & ~pmu_rewritten();
    for_each_bit(ctr, pmu_here()->counters) {
        r->selects[ctr] = pmu_selected(ctr);
        r->values[ctr] = pmu_read(ctr);
    }
}

TEST(hal_counters, programs_nothing,
     "an allocation does not start, stop or program a counter [HC-43]")
{
    SKIP_WITHOUT_PMU();
    SKIP_IF(!common_instructions(), "no counter counts instructions");
    HANDLE handle = NULL;
    smp_call(EVERYWHERE, disturb, NULL);
    smp_call(EVERYWHERE, read_on_cpu, registers[0]);
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &handle), STATUS_SUCCESS);
    smp_call(EVERYWHERE, read_on_cpu, registers[1]);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        const struct registers *before = &registers[0][cpu], *after = &registers[1][cpu];
        CHECK(before->running != 0);
        CHECK_EQ(after->running, before->running);
        for_each_bit(ctr, pmu_of(cpu)->counters) {
            CHECK_EQ(after->selects[ctr], before->selects[ctr]);
            if (before->running >> ctr & 1)
                CHECK(after->values[ctr] > before->values[ctr]);
            else
                CHECK_EQ(after->values[ctr], before->values[ctr]);
        }
    }
    free_and_check(handle); /* stops and clears */
}

TEST(hal_counters, written,
     "a value that is written into a counter is what it has then: bits that it does not take are "
     "left out")
{
    SKIP_WITHOUT_PMU();
    HANDLE handle = NULL;
    REQUIRE_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &handle), STATUS_SUCCESS);
    test_run_on(0);
    for_each_bit(ctr, pmu_here()->counters) {
        for (unsigned bit = 30; bit < 64; bit++) {
            uint64_t value = 1ul << bit | 5, written = hal_counter_write(PMU_BIT(ctr), value);
            CHECK_EQ(written, value & pmu_max_period(pmu_here(), ctr));
            CHECK_EQ(pmu_read(ctr), written);
        }
    }
    test_run_anywhere();
    free_and_check(handle);
}

static void check_lent(void *wrong)
{
    if (pmu_this_cpu()->lent != pmu_here()->counters)
        __atomic_fetch_add((unsigned *)wrong, 1, __ATOMIC_RELAXED);
}

TEST(hal_counters, lent,
     "who has everything is lent the counters that each processor has, and no others [HC-01]")
{
    HANDLE all;
    unsigned wrong = 0;
    SKIP_WITHOUT_PMU();
    REQUIRE_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &all), STATUS_SUCCESS);
    CHECK_STATUS(hal_counters_lend(all), STATUS_SUCCESS);
    smp_call(SMP_ALL, check_lent, &wrong);
    CHECK_EQ(wrong, 0);
    CHECK_STATUS(HalFreeHardwareCounters(all), STATUS_SUCCESS);
}
