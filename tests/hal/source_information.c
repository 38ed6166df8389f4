/* SPDX-License-Identifier: MIT */
/* The HAL's information classes of profile sources, and their intervals.
 *
 * Source: the KP lines of tests/contract.md. */
#include "hal/owners.h"
#include "hal/source.h"
#include "kernel/base/bits.h"
#include "tests/harness/profile.h"

TEST(source_information, list,
     "the list has each supported source once, in order, with its name [KP-27]")
{
    static HAL_PROFILE_SOURCE_LIST list[1000];
    ULONG size = 0, again = 0;
    CHECK_STATUS(HalQuerySystemInformation(HalQueryProfileSourceList, 0, NULL, &size),
                 STATUS_INFO_LENGTH_MISMATCH);
    REQUIRE(size && size <= sizeof list);
    memset(list, 0xa5, sizeof list);
    CHECK_STATUS(HalQuerySystemInformation(HalQueryProfileSourceList, size - 1, list, &again),
                 STATUS_INFO_LENGTH_MISMATCH);
    CHECK_EQ(again, size);
    CHECK_EQ((uint32_t)list[0].Source, 0xa5a5a5a5);
    CHECK_OK(HalQuerySystemInformation(HalQueryProfileSourceList, size, list, NULL));
    CHECK_EQ(list[0].Source, ProfileTime);
    unsigned n = 0;
    for (unsigned id = 0; id < SOURCE_IDS; id++) {
        if (!profile_source((KPROFILE_SOURCE)id).Supported)
            continue;
        const char *name = hal_source_name((KPROFILE_SOURCE)id);
        if (!CHECK_EQ(list[n].Source, id))
            return;
        for (unsigned i = 0; i <= strlen(name); i++)
            if (list[n].Description[i] != (WCHAR)name[i])
                CHECK_EQ(list[n].Description[i], name[i]);
        n++;
    }
    CHECK((void *)list[0].Description == (void *)(list + n)); /* there is no other entry */
    CHECK_EQ(((uint8_t *)list)[size], 0xa5);
    test_note("%u sources", n);
}

TEST(source_information, information_sizes,
     "a wrong size or class is refused and changes nothing [KP-20]")
{
    HAL_PROFILE_SOURCE_INFORMATION info = { .Source = ProfileTime, .Interval = 0xa5a5a5a5 };
    HAL_PROFILE_SOURCE_INFORMATION_EX ex = { .Source = ProfileTime };
    HAL_PROFILE_SOURCE_INTERVAL set = { ProfileTime, 5000 };
    ULONG returned;
    CHECK_STATUS(HalQuerySystemInformation(HalProfileSourceInformation, sizeof info - 1, &info,
                                           &returned),
                 STATUS_INFO_LENGTH_MISMATCH);
    CHECK_EQ(info.Interval, 0xa5a5a5a5);
    CHECK_STATUS(HalSetSystemInformation(HalProfileSourceInterval, sizeof set - 1, &set),
                 STATUS_INFO_LENGTH_MISMATCH);
    CHECK_OK(HalQuerySystemInformation(HalProfileSourceInformation, sizeof ex, &ex, &returned));
    CHECK_EQ(returned, sizeof ex);
    CHECK(ex.Supported && ex.Interval == 10000 && ex.DefInterval == 10000);
    CHECK(ex.MinInterval == 1221 && ex.MaxInterval == 1000000);
    CHECK_STATUS(HalQuerySystemInformation((HAL_QUERY_INFORMATION_CLASS)999, 100, &info, &returned),
                 STATUS_INVALID_INFO_CLASS);
    CHECK_STATUS(HalSetSystemInformation((HAL_SET_INFORMATION_CLASS)999, 100, &info),
                 STATUS_INVALID_INFO_CLASS);
}

TEST(source_information, counters,
     "the HAL reports the number of counters, and those that somebody else has changed")
{
    HAL_PROFILE_CORRUPTION_STATUS status = { .ProcessorNumber = cpu_count - 1, .Counters = 1 };
    BOOLEAN timer_only = 0xa5;
    ULONG count = ~0u;
    CHECK_OK(HalQuerySystemInformation(HalQueryProfileNumberOfCounters, 4, &count, NULL));
    CHECK_EQ(count, hal_counter_count());
    CHECK_OK(HalQuerySystemInformation(HalQueryProfileIsTimerBasedProfiling, 1, &timer_only, NULL));
    CHECK_EQ(timer_only, !count);
    CHECK_OK(
        HalQuerySystemInformation(HalQueryProfileCorruptionStatus, sizeof status, &status, NULL));
    CHECK_EQ(status.Counters, 0);
}

static NTSTATUS set_class_interval(KPROFILE_SOURCE source, ULONG_PTR interval)
{
    HAL_PROFILE_SOURCE_INTERVAL new = { source, interval };
    return HalSetSystemInformation(HalProfileSourceInterval, sizeof new, &new);
}

TEST(source_information, intervals,
     "intervals have defaults and limits, and each source its own [KP-21 KP-22 KP-23 KP-24 KP-25 "
     "PO-69 PO-70]")
{
    static const struct {
        ULONG_PTR set;
        ULONG found;
        /* clang-format off */
    } rows[] = { { 4095, 4096 }, { 0, 4096 }, { 4096, 4096 }, { 2147483648, 2147483647 }, { 0xffffffff, 2147483647 },
                 { 1ul << 40, 2147483647 }, { 100000, 100000 }, { 65536, 65536 } };
    CHECK_STATUS(set_class_interval(ProfileMaximum, 5000), STATUS_NOT_SUPPORTED);
    CHECK_EQ(HalSetProfileInterval(0), 1221);
    CHECK_EQ(HalSetProfileInterval(5000), 5000);
    CHECK_EQ(profile_source(ProfileTime).Interval, 5000);
    CHECK_EQ(HalSetProfileInterval(~0ul), 1000000);
    CHECK_EQ(HalSetProfileInterval(10000), 10000);
    SKIP_WITHOUT_PMU();
    SKIP_IF(!hal_source_supported(ProfileTotalIssues), "no counter counts instructions");
    KPROFILE_SOURCE alias = (KPROFILE_SOURCE)(strcmp(pmu_here()->driver, "intel") == 0 ? 0x1a : 0x68);
    CHECK_EQ(profile_source(ProfileTotalIssues).Interval, 65536);
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK_STATUS(set_class_interval(ProfileTotalIssues, rows[i].set), STATUS_SUCCESS);
        CHECK_EQ(profile_source(ProfileTotalIssues).Interval, rows[i].found);
        CHECK_EQ(profile_source(alias).Interval, 65536);
    }
    CHECK_STATUS(set_class_interval(alias, 70000), STATUS_SUCCESS);
    CHECK_EQ(profile_source(alias).Interval, 70000);
    CHECK_EQ(profile_source(ProfileTotalIssues).Interval, 65536);
    CHECK_STATUS(set_class_interval(alias, 65536), STATUS_SUCCESS);
}
