/* SPDX-License-Identifier: MIT */
/* What KPROFILE_SOURCE numbers mean on this machine: which are supported, what they program, their intervals, and the
 * HAL's information classes.
 *
 * Source: spec/windows-api.md 3. */
#include "kernel/smp.h"
#include "kernel/x86.h"
#include "pmu/pmu.h"
#include "tests/profile.h"

#define BOTH_RINGS (PMU_USER | PMU_KERNEL)
#define UNSUPPORTED 0 /* no select is 0 */

static bool is(const char *driver) { return pmu_caps.driver && strcmp(pmu_caps.driver, driver) == 0; }
static bool is_zen(void) { return is("amd") && pmu_caps.family >= 0x17; }

#define SKIP_UNLESS(condition, reason) \
    do { \
        SKIP_WITHOUT_PMU(); \
        if (!(condition)) \
            SKIP(reason); \
    } while (0)

/* What the source programs on CPU 0, without the enable and interrupt bits. */
static uint64_t selected(KPROFILE_SOURCE source)
{
    uint64_t value = UNSUPPORTED;
    test_run_on(0);
    if (!hal_source_supported(source) || !CHECK_STATUS(hal_profile_reserve(source, 1), STATUS_SUCCESS))
        return value;
    /* No tick in between: it would be stepped through where the virtual PMU decodes the event, and the next be due. */
    KIRQL old = irql_raise(PROFILE_LEVEL);
    HalStartProfileInterrupt(source);
    for (uint64_t rest = pmu_caps.counters; rest; rest &= rest - 1)
        if (hal_profile_source((unsigned)__builtin_ctzll(rest), 0) == source)
            value = rdmsr(pmu_select_msr((unsigned)__builtin_ctzll(rest)));
    HalStopProfileInterrupt(source);
    irql_lower(old);
    hal_profile_stop(source, 1);
    test_run_anywhere();
    CHECK(value & PMU_INTERRUPT);
    return value & ~(uint64_t)(PMU_INTERRUPT | PMU_ENABLE);
}

static HAL_PROFILE_SOURCE_INFORMATION query(KPROFILE_SOURCE source)
{
    HAL_PROFILE_SOURCE_INFORMATION info = { .Source = source, .Supported = 0xa5, .Interval = 0xa5a5a5a5 };
    ULONG returned = 0;
    CHECK_STATUS(HalQuerySystemInformation(HalProfileSourceInformation, sizeof info, &info, &returned), STATUS_SUCCESS);
    CHECK_EQ(returned, sizeof info);
    CHECK(info.Supported == TRUE || info.Supported == FALSE);
    return info;
}

TEST(source_tables, numbers, "the enumeration's numbers and the sizes of its structures [KP-01 KP-02 KP-32]")
{
    static const KPROFILE_SOURCE in_order[] = {
        ProfileTime, ProfileAlignmentFixup, ProfileTotalIssues, ProfilePipelineDry, ProfileLoadInstructions,
        ProfilePipelineFrozen, ProfileBranchInstructions, ProfileTotalNonissues, ProfileDcacheMisses,
        ProfileIcacheMisses, ProfileCacheMisses, ProfileBranchMispredictions, ProfileStoreInstructions,
        ProfileFpInstructions, ProfileIntegerInstructions, Profile2Issue, Profile3Issue, Profile4Issue,
        ProfileSpecialInstructions, ProfileTotalCycles, ProfileIcacheIssues, ProfileDcacheAccesses,
        ProfileMemoryBarrierCycles, ProfileLoadLinkedIssues, ProfileMaximum
    };
    for (unsigned i = 0; i <= ProfileMaximum; i++)
        CHECK_EQ(in_order[i], i);
    CHECK_EQ(ProfileMaximum, 0x18);
    CHECK_EQ(sizeof(HAL_PROFILE_SOURCE_INFORMATION), 0x0c);
    CHECK_EQ(sizeof(HAL_PROFILE_SOURCE_INTERVAL), 0x10);
    CHECK_EQ(sizeof(HAL_PROFILE_SOURCE_INFORMATION_EX), 0x28);
}

TEST(source_tables, time, "ProfileTime is supported everywhere; 0x18 and beyond the tables nothing is [KP-03 KP-17 KP-18 KP-19]")
{
    static const uint32_t bad[] = { 0x18, 0xc8, 0xff, 0x100, 0x119, 0xffff, 0x7fffffff, 0x80000000, 0xffffff02, 0xffffffff };
    CHECK_EQ(query(ProfileTime).Supported, TRUE);
    CHECK_EQ(query(ProfileTime).Interval, 10000);
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        HAL_PROFILE_SOURCE_INFORMATION info = query((KPROFILE_SOURCE)bad[i]);
        CHECK_EQ(info.Supported, FALSE);
        CHECK_EQ(info.Interval, 0);
        CHECK(hal_source_name((KPROFILE_SOURCE)bad[i]) == NULL);
        CHECK_EQ(hal_source_set_interval((KPROFILE_SOURCE)bad[i], 5000), 0);
    }
}

TEST(source_tables, without_counters, "where no counter works only ProfileTime is a source [KP-04 KP-30]")
{
    uint64_t counters = pmu_caps.counters;
    pmu_caps.counters = 0; /* as if the probe had found none that counts */
    CHECK_EQ(hal_source_next(ProfileTime), ProfileTime);
    CHECK(hal_source_supported(ProfileTime) && !hal_source_supported(ProfileTotalIssues));
    pmu_caps.counters = counters;
}

TEST(source_tables, intel, "Intel's sources and their selects, for both rings; what Intel lacks [KP-05 KP-08 KP-09 KP-10 KP-11 KP-29 KP-31]")
{
    static const struct {
        uint8_t id, event;
        uint32_t select;
    } rows[] = {
        { 0x02, PMU_INSTRUCTIONS, 0x00c0 }, { 0x06, PMU_BRANCHES, 0x00c4 }, { 0x0a, PMU_LLC_MISSES, 0x412e },
        { 0x0b, PMU_BRANCH_MISSES, 0x00c5 }, { 0x13, PMU_CYCLES, 0x003c }, { 0x19, PMU_CYCLES, 0x003c },
        { 0x1a, PMU_INSTRUCTIONS, 0x00c0 }, { 0x1b, PMU_BUS_CYCLES, 0x013c }, { 0x1c, PMU_LLC_REFERENCES, 0x4f2e },
        { 0x1d, PMU_LLC_MISSES, 0x412e }, { 0x1e, PMU_BRANCHES, 0x00c4 }, { 0x1f, PMU_BRANCH_MISSES, 0x00c5 },
    };
    static const uint8_t lacking[] = { 0x08, 0x09, 0x0d, 0x0e, 0x14, 0x15, 0x16, 0x20, 0x24 };
    SKIP_UNLESS(is("intel") && (pmu_caps.events & PMU_BIT(PMU_CYCLES)), "not an Intel PMU");
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool has = pmu_caps.events >> rows[i].event & 1;
        CHECK_EQ(query((KPROFILE_SOURCE)rows[i].id).Supported, has);
        CHECK_EQ(selected((KPROFILE_SOURCE)rows[i].id), has ? rows[i].select | BOTH_RINGS : UNSUPPORTED);
    }
    for (unsigned i = 0; i < sizeof lacking; i++)
        CHECK(!hal_source_supported((KPROFILE_SOURCE)lacking[i]));
}

/* As on a processor of another model. */
static void check_general(const struct pmu_table *table)
{
    static const struct {
        uint8_t id, event;
    } rows[] = {
        { 0x03, PMU_PIPELINE_DRY }, { 0x04, PMU_LOADS }, { 0x05, PMU_PIPELINE_FROZEN }, { 0x07, PMU_NONISSUES },
        { 0x0a, PMU_LLC_MISSES }, { 0x0c, PMU_STORES }, { 0x0f, PMU_ISSUE_2 }, { 0x10, PMU_ISSUE_3 }, { 0x11, PMU_ISSUE_4 },
        { 0x13, PMU_CYCLES }, { 0x17, PMU_LOCKED },
    };
    const struct pmu_table *own = pmu_caps.table;
    pmu_caps.table = table;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct pmu_event_row *row = pmu_row(table, (enum pmu_event)rows[i].event);
        bool counts = row && (pmu_caps.events >> rows[i].event & 1) && (pmu_counters_for(row->event) & PMU_ANY_GP);
        CHECK_EQ(hal_source_supported((KPROFILE_SOURCE)rows[i].id), counts);
        if (counts)
            CHECK_EQ(selected((KPROFILE_SOURCE)rows[i].id), pmu_raw_select(row->code, row->umask, row->flags) | BOTH_RINGS);
    }
    pmu_caps.table = own;
}

TEST(source_tables, general, "general sources mean what the family's event table says, and where it says nothing are unsupported [S-4.4 S-4.5]")
{
    SKIP_UNLESS(hal_counter_count() && (!is("intel") || (pmu_caps.events & PMU_BIT(PMU_CYCLES))), "no PMU");
    check_general(pmu_caps.table);
    if (is("amd")) {
        check_general(amd_table(0x0f, 5));
        check_general(amd_table(0x15, 2));
        check_general(amd_table(0x1a, 2));
        CHECK(!hal_source_supported((KPROFILE_SOURCE)0x16) && !hal_source_supported((KPROFILE_SOURCE)0x0e));
    } else {
        check_general(intel_table(6, 0x1a, false));
        check_general(intel_table(6, 0x8f, false));
        check_general(intel_table(6, 0xbe, true));
    }
}

TEST(source_tables, intel_events_denied, "a CPUID bit against an event takes its sources away, the first bit all [KP-06 KP-07]")
{
    uint32_t events = pmu_caps.events;
    SKIP_UNLESS(is("intel"), "not an Intel PMU");
    pmu_caps.events = events & ~(uint32_t)PMU_BIT(PMU_INSTRUCTIONS);
    CHECK(!hal_source_supported(ProfileTotalIssues) && !hal_source_supported((KPROFILE_SOURCE)0x1a));
    CHECK(hal_source_supported(ProfileTotalCycles) == (events >> PMU_CYCLES & 1));
    pmu_caps.events = events & ~(uint32_t)PMU_BIT(PMU_CYCLES);
    CHECK_EQ(hal_source_next(ProfileTime), ProfileTime);
    pmu_caps.events = events;
}

TEST(source_tables, amd, "AMD's common sources and their selects; a later family's own codes [KP-12 KP-14 KP-15 KP-16]")
{
    SKIP_UNLESS(is("amd"), "not an AMD PMU");
    CHECK_EQ(selected(ProfileTotalIssues), 0xc0 | BOTH_RINGS);
    CHECK_EQ(selected(ProfileBranchInstructions), 0xc2 | BOTH_RINGS);
    CHECK_EQ(selected(ProfileBranchMispredictions), 0xc3 | BOTH_RINGS);
    CHECK_EQ(selected(ProfileTotalCycles), 0x76 | BOTH_RINGS);
    if (pmu_caps.family <= 0x17)
        CHECK_EQ(selected(ProfileIcacheMisses), 0x81 | BOTH_RINGS);
    CHECK(!is_zen() == (selected(ProfileDcacheMisses) == (0x41 | BOTH_RINGS)));
    CHECK(!is_zen() == hal_source_supported((KPROFILE_SOURCE)0x93)); /* northbridge */
    CHECK(!is_zen() == hal_source_supported((KPROFILE_SOURCE)0x19)); /* the FPU's old codes */
    CHECK(hal_source_supported((KPROFILE_SOURCE)0x6c));
}

static bool named(KPROFILE_SOURCE source, const char *name)
{
    const char *found = hal_source_name(source);
    return found && strcmp(found, name) == 0;
}

TEST(source_tables, names, "names as tools print them, slips included [KP-13 KP-26]")
{
    CHECK(named(ProfileTime, "Timer"));
    SKIP_WITHOUT_PMU();
    CHECK(named(ProfileTotalIssues, "TotalIssues"));
    if (is("intel"))
        CHECK(named((KPROFILE_SOURCE)0x1a, "InstructionRetired") && named((KPROFILE_SOURCE)0x19, "UnhaltedCoreCycles"));
    else
        CHECK(named((KPROFILE_SOURCE)0x68, "FRRetiredx86Instructions") && named((KPROFILE_SOURCE)0x6c, "FRRetiredTakenBranches"));
    if (is("amd") && !is_zen())
        CHECK(named((KPROFILE_SOURCE)0x8b, "FRFPUExcpetionsx87ReclassMicroFaults") &&
              named((KPROFILE_SOURCE)0xbf, "BUSharedToDirty") && named((KPROFILE_SOURCE)0x19, "FPDispatchedFPUOps"));
}

TEST(source_tables, list, "the list has each supported source once, in order, with its text [KP-27]")
{
    static HAL_PROFILE_SOURCE_LIST list[1000];
    ULONG size = 0, again = 0;
    CHECK_STATUS(HalQuerySystemInformation(HalQueryProfileSourceList, 0, NULL, &size), STATUS_INFO_LENGTH_MISMATCH);
    REQUIRE(size && size <= sizeof list);
    memset(list, 0xa5, sizeof list);
    CHECK_STATUS(HalQuerySystemInformation(HalQueryProfileSourceList, size - 1, list, &again), STATUS_INFO_LENGTH_MISMATCH);
    CHECK_EQ(again, size);
    CHECK_EQ((uint32_t)list[0].Source, 0xa5a5a5a5);
    CHECK_STATUS(HalQuerySystemInformation(HalQueryProfileSourceList, size, list, NULL), STATUS_SUCCESS);
    CHECK_EQ(list[0].Source, ProfileTime);
    KPROFILE_SOURCE source = ProfileTime;
    unsigned n = 0;
    do {
        const char *name = hal_source_name(source);
        CHECK_EQ(list[n].Source, source);
        CHECK_EQ(query(source).Supported, TRUE);
        for (unsigned i = 0; i <= strlen(name); i++)
            if (list[n].Description[i] != (WCHAR)name[i])
                CHECK_EQ(list[n].Description[i], name[i]);
        n++;
        source = hal_source_next(source);
    } while (source != ProfileTime);
    CHECK_EQ(((uint8_t *)list)[size], 0xa5);
    test_note("%u sources", n);
}

TEST(source_tables, information_sizes, "a wrong size or class is refused and changes nothing [KP-20]")
{
    HAL_PROFILE_SOURCE_INFORMATION info;
    HAL_PROFILE_SOURCE_INFORMATION_EX ex = { .Source = ProfileTime };
    ULONG returned;
    memset(&info, 0xa5, sizeof info);
    info.Source = ProfileTime;
    for (ULONG size = 0; size < sizeof info; size++) {
        CHECK_STATUS(HalQuerySystemInformation(HalProfileSourceInformation, size, &info, &returned),
                     STATUS_INFO_LENGTH_MISMATCH);
        CHECK(info.Supported == 0xa5 && info.Interval == 0xa5a5a5a5);
    }
    CHECK_STATUS(HalQuerySystemInformation(HalProfileSourceInformation, sizeof ex, &ex, &returned), STATUS_SUCCESS);
    CHECK_EQ(returned, sizeof ex);
    CHECK(ex.Supported && ex.Interval == 10000 && ex.DefInterval == 10000);
    CHECK(ex.MinInterval == 1221 && ex.MaxInterval == 1000000);
    CHECK_STATUS(HalQuerySystemInformation((HAL_QUERY_INFORMATION_CLASS)999, 100, &info, &returned),
                 STATUS_INVALID_INFO_CLASS);
    CHECK_STATUS(HalSetSystemInformation((HAL_SET_INFORMATION_CLASS)999, 100, &info), STATUS_INVALID_INFO_CLASS);
    CHECK_STATUS(HalSetSystemInformation(HalProfileSourceInterval, 15, &info), STATUS_INFO_LENGTH_MISMATCH);
    CHECK_STATUS(HalSetSystemInformation(HalProfileSourceAdd, 15, &info), STATUS_INFO_LENGTH_MISMATCH);
    CHECK_STATUS(HalSetSystemInformation(HalProfileSourceRemove, 3, &info), STATUS_INFO_LENGTH_MISMATCH);
}

static NTSTATUS set(KPROFILE_SOURCE source, ULONG_PTR interval)
{
    HAL_PROFILE_SOURCE_INTERVAL new = { source, interval };
    return HalSetSystemInformation(HalProfileSourceInterval, sizeof new, &new);
}

TEST(source_tables, intervals, "defaults and limits; one source's interval is not its alias's [KP-21 KP-22 KP-23 KP-24 KP-25 PO-69 PO-70]")
{
    static const struct {
        ULONG_PTR set;
        ULONG found;
    } rows[] = { { 4095, 4096 }, { 0, 4096 }, { 4096, 4096 }, { 2147483648, 2147483647 }, { 0xffffffff, 2147483647 },
                 { 1ul << 40, 2147483647 }, { 100000, 100000 }, { 65536, 65536 } };
    CHECK_STATUS(set(ProfileMaximum, 5000), STATUS_NOT_SUPPORTED);
    CHECK_EQ(HalSetProfileInterval(0), 1221);
    CHECK_EQ(HalSetProfileInterval(5000), 5000);
    CHECK_EQ(query(ProfileTime).Interval, 5000);
    CHECK_EQ(HalSetProfileInterval(~0ul), 1000000);
    CHECK_EQ(HalSetProfileInterval(10000), 10000);
    SKIP_UNLESS(hal_source_supported(ProfileTotalIssues), "no counter counts instructions");
    KPROFILE_SOURCE alias = (KPROFILE_SOURCE)(is("intel") ? 0x1a : 0x68);
    CHECK_EQ(query(ProfileTotalIssues).Interval, 65536);
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_STATUS(set(ProfileTotalIssues, rows[i].set), STATUS_SUCCESS);
        CHECK_EQ(query(ProfileTotalIssues).Interval, rows[i].found);
        CHECK_EQ(query(alias).Interval, 65536);
    }
}
