/* SPDX-License-Identifier: MIT */
/* CPUs of several kinds: each has its own facts, and what is done on several of them is done by
 * each one's own table. What this machine cannot show is asked of invented kinds. */
#include "tests/harness/etw.h"
#include "tests/pmu/fake_pmu.h"
#include "tests/harness/peek.h"

#define FACTS offsetof(struct pmu_kind, counters)

/* --- Facts. --- */

TEST(kinds, own_facts,
     "each CPU has the facts of its own CPUID, and the kinds are those of its CPUs [S-1.3]")
{
    uint32_t used = 0;
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        struct pmu_kind again;
        test_run_on(cpu);
        memset(&again, 0, sizeof again);
        again.family = pmu_here()->family;
        again.model = pmu_here()->model;
        again.stepping = pmu_here()->stepping;
        CHECK_EQ(intel_probe(&again) || amd_probe(&again), pmu_here()->driver != NULL);
        CHECK(memcmp(&again, pmu_here(), FACTS) == 0);
        CHECK(pmu_here() == pmu_of(cpu));
        used |= 1u << pmu_kind_number(pmu_here());
    }
    test_run_anywhere();
    CHECK_EQ(used, (1u << pmu_kind_count) - 1);
    CHECK_EQ(pmu_kinds_of(EVERYWHERE), used);
}

TEST(kinds, places,
     "a CPU whose facts are known joins that kind without a new self-test, or becomes a new kind "
     "if a register does not answer")
{
    static struct pmu_kind list[PMU_KINDS_MAX];
    unsigned count = 0;
    struct pmu_kind mine = fake_facts;
    memset(list, 0, sizeof list);
    mine.counters = 0;
    fake_make(&mine, DEAD, PMU_GP(1));
    struct pmu_kind *first = pmu_place_kind(list, &count, &mine, &fake_access);
    CHECK_EQ(first->counters, FAKE_ALL & ~PMU_GP(1));
    CHECK_EQ(first->verdict, PMU_COUNTERS_DEAD);
    CHECK(pmu_place_kind(list, &count, &mine, &fake_access) == first);
    CHECK_EQ(count, 1);
    fake_make(&mine, FIRMWARE, PMU_GP(2)); /* on another CPU of the same facts */
    struct pmu_kind *second = pmu_place_kind(list, &count, &mine, &fake_access);
    CHECK(second != first && count == 2);
    CHECK_EQ(second->counters, FAKE_ALL & ~PMU_GP(2));
    fake_make(&mine, GOOD, 0);
    for (mine.stepping = 1; mine.stepping < 10; mine.stepping++) {
        struct pmu_kind *kind = pmu_place_kind(list, &count, &mine, &fake_access);
        bool fits = mine.stepping < PMU_KINDS_MAX - 2;
        CHECK_EQ(kind->counters, fits ? FAKE_ALL : 0);
        CHECK_EQ(kind->verdict, fits ? PMU_OK : PMU_TOO_MANY_KINDS);
        CHECK_EQ(count, fits ? mine.stepping + 2 : PMU_KINDS_MAX);
    }
}

static struct pmu_kind of_table(const struct pmu_table *table, unsigned gp)
{
    return (struct pmu_kind){ .driver = "intel",
                              .version = 5,
                              .family = 6,
                              .model = 0x97,
                              .table = table,
                              .events = ~0u,
                              .code_max = 0xff,
                              .select_flags = ~0u,
                              .counters = PMU_FIRST(gp) | PMU_FIRST(3) << PMU_FIXED };
}

TEST(kinds, meaning,
     "two selects mean the same if both tables map them to one event in the same rings; unknown "
     "codes cannot be compared")
{
    const struct pmu_kind large = of_table(intel_table(6, 0x97, INTEL_LARGE_CORE), 8);
    const struct pmu_kind small = of_table(intel_table(6, 0x97, INTEL_SMALL_CORE), 6);
    unsigned other_codes = 0;
    for (unsigned e = 0; e < PMU_EVENT_COUNT; e++) {
        enum pmu_event event = (enum pmu_event)e;
        if (!pmu_row(large.table, event) || !pmu_row(small.table, event))
            continue;
        uint64_t here = pmu_select(&large, event, PMU_USER),
                 there = pmu_select(&small, event, PMU_USER);
        CHECK(pmu_same_meaning(&large, here, &small, there));
        CHECK(pmu_same_meaning(&large, here | PMU_INTERRUPT | PMU_ENABLE, &small, there));
        CHECK(!pmu_same_meaning(&large, here, &small, there | PMU_KERNEL));
        CHECK(!pmu_same_meaning(&large, here, &small, 0));
        other_codes += here != there;
        if (here != there)
            CHECK(!pmu_same_meaning(&large, here, &small, here));
    }
    CHECK(other_codes >= 3);
    uint64_t unknown = pmu_raw_select(0xfe, 0xfe, PMU_USER);
    CHECK(pmu_same_meaning(&large, unknown, &large, unknown));
    CHECK(!pmu_same_meaning(&large, unknown, &small, unknown));
    CHECK(pmu_same_meaning(&large, 0, &small, 0)); /* neither counts */
}

/* --- This machine. --- */

#define SKIP_UNLESS_SEVERAL()                                                                      \
    do {                                                                                           \
        SKIP_WITHOUT_PMU();                                                                        \
        if (pmu_kind_count == 1)                                                                   \
            SKIP("all CPUs are of one kind");                                                      \
    } while (0)

static struct cpu_set cpus_with(unsigned ctr)
{
    struct cpu_set found = cpu_set_none();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        if (pmu_of(cpu)->counters >> ctr & 1)
            cpu_set_add(&found, cpu);
    return found;
}

TEST(kinds, allocate,
     "an index must exist on every processor of the affinity; NULL takes what each has")
{
    HANDLE handle;
    SKIP_UNLESS_SEVERAL();
    for (uint64_t rest = pmu_some_counters(EVERYWHERE) & ~common_counters(); rest;
         rest &= rest - 1) {
        unsigned ctr = (unsigned)__builtin_ctzll(rest);
        struct cpu_set with = cpus_with(ctr);
        CHECK_STATUS(take_one(BY_NULL, ctr, &handle), STATUS_INVALID_PARAMETER);
        for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
            bool has = cpu_set_has(&with, cpu);
            CHECK_STATUS(take_one(cpu_set_one(cpu), ctr, &handle),
                         has ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER);
            if (has)
                free_and_check(handle);
            CHECK_STATUS(take_one(cpu_set_or(with, cpu_set_one(cpu)), ctr, &handle),
                         has ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER);
            if (has)
                free_and_check(handle);
        }
    }
    CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &handle), STATUS_SUCCESS);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        CHECK_EQ(hal_counters_available(cpu_set_one(cpu)), 0);
    free_and_check(handle);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        CHECK_EQ(hal_counters_available(cpu_set_one(cpu)), pmu_of(cpu)->counters);
}

TEST(kinds, configuration,
     "a selector that some processor has no counter for cannot be configured [TP-26]")
{
    SKIP_UNLESS_SEVERAL();
    for_each_bit(ctr, pmu_some_counters(EVERYWHERE)) {
        HARDWARE_COUNTER c = { PMCCounter, 0, pmu_rdpmc_index(ctr) };
        bool common = common_counters() >> ctr & 1;
        CHECK_STATUS(KeSetHardwareCounterConfiguration(&c, 1),
                     common ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER);
        CHECK_STATUS(KeSetHardwareCounterConfiguration(NULL, 0), STATUS_SUCCESS);
    }
}

/* A source that some kinds have and others lack; ProfileTime: there is none. */
static KPROFILE_SOURCE uncommon_source(void)
{
    for (unsigned id = 1; id < SOURCE_IDS; id++)
        if (hal_source_known((KPROFILE_SOURCE)id) && !hal_source_supported((KPROFILE_SOURCE)id))
            return (KPROFILE_SOURCE)id;
    return ProfileTime;
}

static void sample_on(KPROFILE_SOURCE source, struct cpu_set where, bool supported)
{
    GROUP_AFFINITY groups[CPU_GROUPS_MAX];
    USHORT group_count = groups_of(where, groups);
    static ULONG bucket;
    HANDLE profile = NULL;
    CHECK_EQ(hal_source_supported_on(source, where), supported);
    CHECK_STATUS(NtCreateProfileEx(&profile, NULL, (PVOID)0x1000, 0x1000, 12, &bucket,
                                   sizeof bucket, source, group_count, groups),
                 supported ? STATUS_SUCCESS : STATUS_NOT_SUPPORTED);
    CHECK_STATUS(hal_profile_reserve(source, where),
                 supported ? STATUS_SUCCESS : STATUS_NOT_SUPPORTED);
    if (!supported)
        return;
    hal_profile_stop(source, where);
    profile_start(profile);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        CHECK_EQ(profile_samples(cpu, source), cpu_set_has(&where, cpu));
    profile_stop(profile);
    handle_close(profile);
}

TEST(kinds, source_of_some,
     "a source that some processors lack is supported where the affinity names the others, and "
     "refused where it names none")
{
    ULONG selector, as_number;
    HANDLE handle;
    PMC_HANDLE set;
    SKIP_UNLESS_SEVERAL();
    KPROFILE_SOURCE source = uncommon_source();
    SKIP_IF(source == ProfileTime, "all kinds have the same sources");
    CHECK(!hal_source_supported(source) && !hal_source_name(source));
    CHECK_EQ(hal_source_set_interval(source, 100000), 100000);
    CHECK_EQ(hal_source_set_interval(source, 65536), 65536);
    struct cpu_set with = cpu_set_none();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        uint64_t select;
        bool has = source_counters(pmu_of(cpu), source, &select);
        if (has)
            cpu_set_add(&with, cpu);
        sample_on(source, cpu_set_one(cpu), has);
        CHECK_STATUS(HalAllocatePmcCounterSet(cpu, &source, 1, &set),
                     has ? STATUS_SUCCESS : STATUS_NOT_SUPPORTED);
        if (has)
            HalFreePmcCounterSet(set);
    }
    sample_on(source, with, true);
    sample_on(source, cpu_all(), false);
    as_number = (ULONG)source;
    CHECK_STATUS(hal_count_sources("kinds", &as_number, 1, &selector, &handle),
                 STATUS_NOT_SUPPORTED);
}

TEST(kinds, session,
     "a session's counters are those that every processor has; others are refused and nothing is "
     "kept [ET-55]")
{
    struct session s;
    SKIP_UNLESS_SEVERAL();
    const ULONG uncommon = (ULONG)uncommon_source(), common = ProfileTotalIssues;
    REQUIRE(session_start(&s, 16, 4));
    if (uncommon != ProfileTime) {
        CHECK_STATUS(counter_list(&s, &uncommon, 1), STATUS_NOT_SUPPORTED);
        CHECK_EQ(hal_counters_owned(), 0);
    }
    CHECK_STATUS(counter_list(&s, &common, 1), STATUS_SUCCESS);
    CHECK_EQ(hal_counters_owned(), cpu_count);
    CHECK_EQ(session_stop(&s), 0);
    session_close(&s);
}

/* --- Threads. --- */

static void run_there(void (*function)(uint64_t), uint64_t argument, struct cpu_set affinity)
{
    struct runner r = start_on(function, argument, affinity);
    user_finish(r.process, r.thread);
}

static void program_instructions(void *ctr)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_program(*(const unsigned *)ctr, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_USER), 0);
    pmu_start(PMU_BIT(*(const unsigned *)ctr));
    irql_lower(old);
}

TEST(kinds, mixed,
     "a counter that a driver programmed on one kind of CPU only is not used for a thread that may"
     " run on another kind; when the configuration is emptied, the thread may run there")
{
    HANDLE handle;
    struct cpu_set of_first = cpu_set_none();
    SKIP_UNLESS_SEVERAL();
    unsigned ctr = (unsigned)__builtin_ctzll(common_instructions());
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        if (pmu_of(cpu) == pmu_kinds)
            cpu_set_add(&of_first, cpu);
    REQUIRE_STATUS(take_one(BY_NULL, ctr, &handle), STATUS_SUCCESS);
    smp_call(of_first, program_instructions, &ctr);
    REQUIRE(counting_configure(&ctr, 1));
    run_there(user_kinds_refused, (uint64_t)(uint32_t)STATUS_DEVICE_CONFIGURATION_ERROR << 32,
              cpu_all());
    run_there(user_kinds_refused, (uint64_t)STATUS_SUCCESS << 32 | cpu_all().bits[0], of_first);
    CHECK_EQ(counter_config_users(), 0);
    struct runner r = start_on(user_kinds_emptied, cpu_all().bits[0], of_first);
    if (r.thread && peek_wait(r.process, &user_state, 1)) {
        CHECK_STATUS(KeSetHardwareCounterConfiguration(NULL, 0), STATUS_SUCCESS);
        sched_wait(&r.thread->object, SCHED_FOREVER, Executive);
    }
    end_by_force(r.process, r.thread);
    REQUIRE(counting_configure(&ctr, 1));
    smp_call(cpu_set_minus(cpu_all(), of_first), program_instructions, &ctr);
    run_there(user_kinds_journey, cpu_count, cpu_all());
    CHECK_STATUS(KeSetHardwareCounterConfiguration(NULL, 0), STATUS_SUCCESS);
    free_and_check(handle);
}

static void journey(bool uneven)
{
    unsigned ctr;
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    CHECK(!counter_config_uneven);
    counter_config_uneven = uneven;
    run_there(user_kinds_journey, cpu_count, EVERYWHERE);
    counting_stop();
}

TEST(kinds, journey,
     "a thread that moves between CPUs of all kinds gets the same counts as one that stays, also "
     "where widths differ")
{
    SKIP_WITHOUT_PMU();
    SKIP_IF(!pmu_kinds->exact, "counts are not exact here");
    journey(false);
    journey(true); /* as if they did */
}
