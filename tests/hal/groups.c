/* SPDX-License-Identifier: MIT */
/* Sets of CPUs, and processor groups: 64 CPUs each, in the order of their numbers. What needs two
 * groups runs on a machine with 65 CPUs. */
#include "tests/harness/etw.h"
#include "tests/harness/peek.h"

#define BASE 0xffffa00000001000 /* kernel space where nothing is */
#define SKIP_WITH_ONE_GROUP() SKIP_BELOW_CPUS(CPU_GROUP_SIZE + 1)

TEST(groups, sets, "sets of CPUs have every number up to the most, and are walked in order")
{
    struct cpu_set all = cpu_set_none(), odd = all;
    for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++) {
        struct cpu_set one = cpu_set_one(cpu);
        CHECK(!cpu_set_has(&all, cpu) && cpu_set_has(&one, cpu));
        CHECK(!cpu_set_meet(all, one) && cpu_set_empty(cpu_set_minus(one, one)));
        CHECK_EQ(cpu_set_next(&one, 0), cpu);
        CHECK_EQ(cpu_set_next(&one, cpu), cpu);
        CHECK_EQ(cpu_set_next(&one, cpu + 1), MAX_CPUS);
        all = cpu_set_or(all, one);
        if (cpu % 2)
            cpu_set_add(&odd, cpu);
    }
    CHECK(cpu_set_subset(odd, all) && !cpu_set_subset(all, odd) && !cpu_set_equal(all, odd));
    struct cpu_set even = cpu_set_minus(all, odd);
    unsigned expected = 0;
    for_each_cpu(cpu, &even) {
        CHECK_EQ(cpu, expected);
        expected += 2;
    }
    CHECK_EQ(expected, MAX_CPUS);
    cpu_set_remove(&even, MAX_CPUS - 2);
    CHECK(!cpu_set_has(&even, MAX_CPUS - 2) && cpu_set_has(&even, MAX_CPUS - 4));
    CHECK(cpu_set_equal(cpu_set_and(odd, all), odd) && !cpu_set_meet(odd, even));
}

TEST(groups, packed, "groups are filled in the order of CPUs: each but the last has 64")
{
    unsigned total = 0;
    for (USHORT group = 0; group < CPU_GROUPS_MAX; group++)
        for (unsigned bit = 0; bit < CPU_GROUP_SIZE; bit++) {
            unsigned cpu = cpu_of_number((PROCESSOR_NUMBER){ group, (UCHAR)bit, 0 });
            bool runs = group * CPU_GROUP_SIZE + bit < cpu_count;
            CHECK_EQ(cpu, runs ? group * CPU_GROUP_SIZE + bit : MAX_CPUS);
            total += runs;
        }
    CHECK_EQ(total, cpu_count);
    CHECK_EQ(cpu_groups(), (cpu_count + CPU_GROUP_SIZE - 1) / CPU_GROUP_SIZE);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        CHECK_EQ(cpu_of_number(cpu_group_number(cpu)), cpu);
        CHECK_EQ(cpus[cpu]->legacy_number, cpu % CPU_GROUP_SIZE);
    }
    CHECK_EQ(cpu_of_number((PROCESSOR_NUMBER){ 0, CPU_GROUP_SIZE, 0 }), MAX_CPUS);
    CHECK_EQ(cpu_of_number((PROCESSOR_NUMBER){ 0xffff, 0, 0 }), MAX_CPUS);
    CHECK_EQ(cpu_of_number((PROCESSOR_NUMBER){ 0, 0, 1 }), MAX_CPUS);
}

static void note_number(void *number) { *(unsigned *)number = cpu_number(); }

TEST(groups, threads, "a thread moves between groups, and is reached there by an IPI")
{
    SKIP_WITH_ONE_GROUP();
    const unsigned stops[] = { 0, 63, 64, cpu_count - 1, 0 };
    for (unsigned i = 0; i < ARRAY_SIZE(stops); i++) {
        unsigned found = MAX_CPUS;
        test_run_on(stops[i]);
        CHECK_EQ(cpu_number(), stops[i]);
        CHECK_EQ(cpu_set_primary(thread_current()->affinity).Group, stops[i] / CPU_GROUP_SIZE);
        smp_call(cpu_set_one(stops[(i + 2) % ARRAY_SIZE(stops)]), note_number, &found);
        CHECK_EQ(found, stops[(i + 2) % ARRAY_SIZE(stops)]);
    }
}

TEST(groups, allocation, "an allocation over two groups takes its counters there and nowhere else")
{
    SKIP_WITHOUT_PMU();
    SKIP_WITH_ONE_GROUP();
    unsigned ctr = nth_counter(0);
    struct cpu_set wanted = cpu_set_or(cpu_set_one(0), cpu_set_one(64));
    HANDLE handle, other;
    REQUIRE_STATUS(take_one(wanted, ctr, &handle), STATUS_SUCCESS);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        CHECK_EQ(hal_counter_owner_name(ctr, cpu) != NULL, cpu_set_has(&wanted, cpu));
    CHECK_STATUS(take_one(cpu_set_one(64), ctr, &other), STATUS_INSUFFICIENT_RESOURCES);
    REQUIRE_STATUS(take_one(cpu_set_one(63), ctr, &other), STATUS_SUCCESS);
    free_and_check(other);
    free_and_check(handle);
    REQUIRE_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &handle), STATUS_SUCCESS);
    CHECK_EQ(hal_counters_available(cpu_set_one(cpu_count - 1)), 0);
    free_and_check(handle);
}

/* Samples on this CPU and looks whether the object counts them. */
static void check_sample(unsigned cpu, const ULONG *counts, bool counted)
{
    ULONG before = *counts;
    test_run_on(cpu);
    sample_at(BASE, ProfileTime);
    CHECK_EQ(*counts, before + counted);
}

TEST(groups, profile, "a profile of two groups samples the CPUs that each of them names")
{
    SKIP_WITH_ONE_GROUP();
    ULONG counts = 0;
    HANDLE profile;
    GROUP_AFFINITY groups[] = { { .Mask = 1ul << 63 }, { .Mask = 1, .Group = 1 } };
    REQUIRE_OK(NtCreateProfileEx(&profile, NULL, (PVOID)BASE, 16, 4, &counts, sizeof counts,
                                 ProfileTime, 2, groups));
    profile_start(profile);
    check_sample(0, &counts, false);
    check_sample(63, &counts, true);
    check_sample(64, &counts, true);
    check_sample(65 % cpu_count, &counts, false);
    CHECK_STATUS(NtClose(profile), STATUS_SUCCESS);
    groups[1].Group = cpu_groups();
    CHECK_STATUS(NtCreateProfileEx(&profile, NULL, (PVOID)BASE, 16, 4, &counts, sizeof counts,
                                   ProfileTime, 2, groups),
                 STATUS_INVALID_PARAMETER);
}

TEST(groups, profile_of_caller,
     "NtCreateProfile's mask is of the caller's group; -1 is all of that group [PO-21]")
{
    SKIP_WITH_ONE_GROUP();
    ULONG counts = 0;
    unsigned last = cpu_count < 128 ? cpu_count - 1 : 127; /* of group 1 */
    test_run_on(64);
    HANDLE one = profile_made(BASE, 16, 4, &counts, sizeof counts, ProfileTime, 1);
    profile_start(one);
    check_sample(64, &counts, true);
    check_sample(0, &counts, false);
    CHECK_STATUS(NtClose(one), STATUS_SUCCESS);
    test_run_on(64);
    HANDLE all = profile_made(BASE, 16, 4, &counts, sizeof counts, ProfileTime, ~0ul);
    profile_start(all);
    check_sample(last, &counts, true);
    check_sample(63, &counts, false);
    CHECK_STATUS(NtClose(all), STATUS_SUCCESS);
}

TEST(groups, session, "a session with counters has buffers and counters on the CPUs of all groups")
{
    SKIP_WITHOUT_PMU();
    SKIP_WITH_ONE_GROUP();
    struct session s;
    const ULONG common = ProfileTotalIssues;
    REQUIRE(session_start(&s, 4, 2));
    CHECK_STATUS(counter_list(&s, &common, 1), STATUS_SUCCESS);
    CHECK_EQ(hal_counters_owned(), cpu_count);
    CHECK_EQ(session_stop(&s), 0);
    session_close(&s);
}
