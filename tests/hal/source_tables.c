/* SPDX-License-Identifier: MIT */
/* What KPROFILE_SOURCE numbers mean on this machine: which are supported and what they
 * program.
 *
 * Source: the KP lines of tests/contract.md. */
#include "tests/harness/kernel.h"

#define BOTH_RINGS (PMU_USER | PMU_KERNEL)
#define UNSUPPORTED 0 /* no select is 0 */

static bool is(const char *driver)
{
    return pmu_here()->driver && strcmp(pmu_here()->driver, driver) == 0;
}
static bool is_zen(void) { return is("amd") && pmu_here()->family >= 0x17; }

#define SKIP_UNLESS(condition, reason)                                                             \
    do {                                                                                           \
        SKIP_WITHOUT_PMU();                                                                        \
        if (!(condition))                                                                          \
            SKIP(reason);                                                                          \
    } while (0)

/* What the source programs on CPU 0, without the enable and interrupt bits. */
static uint64_t selected(KPROFILE_SOURCE source)
{
    uint64_t value = UNSUPPORTED;
    test_run_on(0);
    if (!hal_source_supported(source) ||
        !CHECK_STATUS(hal_profile_reserve(source, cpu_set_one(0)), STATUS_SUCCESS))
        return value;
    /* No tick in between: it would be stepped through where the virtual PMU decodes the event, and
     * the next be due. */
    KIRQL old = irql_raise(PROFILE_LEVEL);
    HalStartProfileInterrupt(source);
    for (uint64_t rest = pmu_here()->counters; rest; rest &= rest - 1)
        if (hal_profile_source(bit_lowest(rest), 0) == source)
            value = rdmsr(pmu_select_msr(pmu_here(), bit_lowest(rest)));
    HalStopProfileInterrupt(source);
    irql_lower(old);
    hal_profile_stop(source, cpu_set_one(0));
    test_run_anywhere();
    CHECK(value & PMU_INTERRUPT);
    return value & ~(uint64_t)(PMU_INTERRUPT | PMU_ENABLE);
}

TEST(source_tables, time,
     "ProfileTime is supported everywhere, 18h and numbers beyond the tables nowhere [KP-03 KP-17 "
     "KP-18 KP-19]")
{
    static const uint32_t bad[] = { 0x18,   0xc8,       0xff,       0x100,      0x119,
                                    0xffff, 0x7fffffff, 0x80000000, 0xffffff02, 0xffffffff };
    CHECK_EQ(profile_source(ProfileTime).Supported, TRUE);
    CHECK(hal_source_known(ProfileTime)); /* which profile objects ask */
    CHECK_EQ(profile_source(ProfileTime).Interval, 10000);
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        HAL_PROFILE_SOURCE_INFORMATION info = profile_source((KPROFILE_SOURCE)bad[i]);
        CHECK_EQ(info.Supported, FALSE);
        CHECK_EQ(info.Interval, 0);
        CHECK(hal_source_name((KPROFILE_SOURCE)bad[i]) == NULL);
        CHECK_EQ(hal_source_set_interval((KPROFILE_SOURCE)bad[i], 5000), 0);
    }
}

TEST(source_tables, without_counters,
     "without working counters ProfileTime is the only source [KP-04 KP-30]")
{
    struct pmu_kind none = *pmu_here();
    uint64_t select;
    none.counters = 0; /* as if the self-test had found none that counts */
    for (unsigned id = 0; id < SOURCE_IDS; id++)
        CHECK_EQ(source_counters(&none, (KPROFILE_SOURCE)id, &select), 0);
    CHECK(hal_source_supported(ProfileTime));
    CHECK_EQ(hal_source_next(ProfileTime) != ProfileTime, test_has_pmu());
}

TEST(source_tables, intel,
     "Intel's sources have their selects, for both rings; the others are unsupported [KP-05 KP-08 "
     "KP-09 KP-10 KP-11 KP-29]")
{
    static const struct {
        uint8_t id, event;
        uint32_t select;
        /* clang-format off */
    } rows[] = {
        { 0x02, PMU_INSTRUCTIONS, 0x00c0 }, { 0x06, PMU_BRANCHES, 0x00c4 }, { 0x0a, PMU_LLC_MISSES, 0x412e },
        { 0x0b, PMU_BRANCH_MISSES, 0x00c5 }, { 0x13, PMU_CYCLES, 0x003c }, { 0x19, PMU_CYCLES, 0x003c },
        { 0x1a, PMU_INSTRUCTIONS, 0x00c0 }, { 0x1b, PMU_BUS_CYCLES, 0x013c }, { 0x1c, PMU_LLC_REFERENCES, 0x4f2e },
        { 0x1d, PMU_LLC_MISSES, 0x412e }, { 0x1e, PMU_BRANCHES, 0x00c4 }, { 0x1f, PMU_BRANCH_MISSES, 0x00c5 },
    };
    /* clang-format on */
    static const uint8_t lacking[] = { 0x08, 0x09, 0x0d, 0x0e, 0x14, 0x15, 0x16, 0x24 };
    SKIP_UNLESS(is("intel") && (pmu_here()->events & PMU_BIT(PMU_CYCLES)), "not an Intel PMU");
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        bool has = pmu_here()->events >> rows[i].event & 1;
        CHECK_EQ(profile_source((KPROFILE_SOURCE)rows[i].id).Supported, has);
        CHECK_EQ(selected((KPROFILE_SOURCE)rows[i].id),
                 has ? rows[i].select | BOTH_RINGS : UNSUPPORTED);
    }
    for (unsigned i = 0; i < sizeof lacking; i++)
        CHECK(!hal_source_supported((KPROFILE_SOURCE)lacking[i]));
    bool everywhere = true;
    for (unsigned i = 0; i < pmu_kind_count; i++)
        everywhere &= pmu_counters_for(&pmu_kinds[i], PMU_BRANCH_RECORDS) != 0;
    CHECK_EQ(selected((KPROFILE_SOURCE)0x20), /* its code is the family's */
             everywhere ? pmu_select(pmu_here(), PMU_BRANCH_RECORDS, BOTH_RINGS) : UNSUPPORTED);
}

/* As on a processor of another model than CPU 0's. */
static void check_general(const struct pmu_table *table)
{
    struct pmu_kind kind = *pmu_of(0);
    uint64_t select = UNSUPPORTED;
    static const struct {
        uint8_t id, event;
        /* clang-format off */
    } rows[] = {
        { 0x03, PMU_PIPELINE_DRY }, { 0x04, PMU_LOADS }, { 0x05, PMU_PIPELINE_FROZEN }, { 0x07, PMU_NONISSUES },
        { 0x0a, PMU_LLC_MISSES }, { 0x0c, PMU_STORES }, { 0x0f, PMU_ISSUE_2 }, { 0x10, PMU_ISSUE_3 }, { 0x11, PMU_ISSUE_4 },
        { 0x13, PMU_CYCLES }, { 0x17, PMU_LOCKED },
    };
    /* clang-format on */
    kind.table = table;
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct pmu_event_row *row = pmu_row(table, (enum pmu_event)rows[i].event);
        uint64_t counters = row && (kind.events >> rows[i].event & 1)
                                ? pmu_row_counters(table, row) & kind.counters
                                : 0;
        CHECK_EQ(source_counters(&kind, (KPROFILE_SOURCE)rows[i].id, &select),
                 counters & PMU_ANY_GP);
        if (!(counters & PMU_ANY_GP))
            continue;
        CHECK_EQ(select,
                 pmu_raw_select(row->code, row->umask, row->flags) | BOTH_RINGS | PMU_INTERRUPT);
        /* With another kind of CPU beside it a source of this one may be none of the machine's. */
        bool offered = pmu_kind_count == 1 || hal_source_supported((KPROFILE_SOURCE)rows[i].id);
        if (table == pmu_of(0)->table && offered)
            CHECK_EQ(selected((KPROFILE_SOURCE)rows[i].id) | PMU_INTERRUPT, select);
    }
}

TEST(source_tables, general,
     "general sources are the events of the family's table, and unsupported where it has none "
     "[S-4.4 S-4.5]")
{
    SKIP_UNLESS(hal_counter_count() && (!is("intel") || (pmu_of(0)->events & PMU_BIT(PMU_CYCLES))),
                "no PMU");
    check_general(pmu_of(0)->table);
    if (is("amd")) {
        check_general(amd_table(0x0f, 5));
        check_general(amd_table(0x15, 2));
        check_general(amd_table(0x1a, 2));
        CHECK(!hal_source_supported((KPROFILE_SOURCE)0x16) &&
              !hal_source_supported((KPROFILE_SOURCE)0x0e));
    } else {
        check_general(intel_table(6, 0x1a, INTEL_LARGE_CORE));
        check_general(intel_table(6, 0x8f, INTEL_LARGE_CORE));
        check_general(intel_table(6, 0xbe, INTEL_SMALL_CORE));
    }
}

TEST(source_tables, intel_events_denied,
     "a CPUID bit against an event makes its sources unsupported, the first bit all sources "
     "[KP-06 KP-07]")
{
    struct pmu_kind kind = *pmu_here();
    uint64_t select;
    SKIP_UNLESS(is("intel"), "not an Intel PMU");
    kind.events = pmu_here()->events & ~(uint32_t)PMU_BIT(PMU_INSTRUCTIONS);
    CHECK_EQ(source_counters(&kind, ProfileTotalIssues, &select), 0);
    CHECK_EQ(source_counters(&kind, (KPROFILE_SOURCE)0x1a, &select), 0);
    CHECK_EQ(source_counters(&kind, ProfileTotalCycles, &select) != 0,
             kind.events >> PMU_CYCLES & 1);
    kind.events = pmu_here()->events & ~(uint32_t)PMU_BIT(PMU_CYCLES);
    for (unsigned id = 0; id < SOURCE_IDS; id++)
        CHECK_EQ(source_counters(&kind, (KPROFILE_SOURCE)id, &select), 0);
}

TEST(source_tables, amd,
     "AMD's common sources have their selects, later families their own codes [KP-12 KP-15 KP-16]")
{
    SKIP_UNLESS(is("amd"), "not an AMD PMU");
    CHECK_EQ(selected(ProfileTotalIssues), 0xc0 | BOTH_RINGS);
    CHECK_EQ(selected(ProfileBranchInstructions), 0xc2 | BOTH_RINGS);
    CHECK_EQ(selected(ProfileBranchMispredictions), 0xc3 | BOTH_RINGS);
    CHECK_EQ(selected(ProfileTotalCycles), 0x76 | BOTH_RINGS);
    if (pmu_here()->family <= 0x17)
        CHECK_EQ(selected(ProfileIcacheMisses), 0x81 | BOTH_RINGS);
    CHECK(!is_zen() == (selected(ProfileDcacheMisses) == (0x41 | BOTH_RINGS)));
    CHECK(hal_source_supported((KPROFILE_SOURCE)0x6c));
}

/* clang-format off */
static const char *const source_names[] = {
    "Timer", NULL, "TotalIssues", "PipelineDry", "LoadInstructions", "PipelineFrozen", "BranchInstructions",
    "TotalNonissues", "DcacheMisses", "IcacheMisses", "CacheMisses", "BranchMispredictions", "StoreInstructions",
    "FpInstructions", NULL, "2Issue", "3Issue", "4Issue", NULL, "TotalCycles", "IcacheIssues", "DcacheAccesses",
    NULL, "LoadLinkedIssues", NULL, "UnhaltedCoreCycles", "InstructionRetired", "UnhaltedReferenceCycles",
    "LLCReference", "LLCMisses", "BranchInstructionRetired", "BranchMispredictsRetired", "LbrInserts",
    "InstructionsRetiredFixed", "UnhaltedCoreCyclesFixed", "UnhaltedReferenceCyclesFixed",
};
/* clang-format on */
#define SOURCE_NAMES ARRAY_SIZE(source_names)

static bool named(KPROFILE_SOURCE source, const char *name)
{
    return (unsigned)source < SOURCE_NAMES && source_names[source] &&
           strcmp(name, source_names[source]) == 0;
}

TEST(source_tables, names,
     "sources have the names that tools print, by their numbers [KP-01 KP-02 KP-26]")
{
    for (const struct source_set *set = source_sets; set->driver; set++)
        for (const struct source_row *row = set->rows; row->name; row++)
            CHECK((row->id > 0x18 && set->rows == amd_sources) ||
                  named((KPROFILE_SOURCE)row->id, row->name));
    CHECK(named(ProfileTime, hal_source_name(ProfileTime)));
    for (KPROFILE_SOURCE source = hal_source_next(ProfileTime); source && source <= ProfileMaximum;
         source = hal_source_next(source))
        CHECK(named(source, hal_source_name(source)));
}
