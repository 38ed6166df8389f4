/* SPDX-License-Identifier: MIT */
/* TraceSetInformation and TraceQueryInformation: classes that concern counters. */
#include "tests/ring3/etw_win32.h"

#define SOURCE ProfileTotalIssues
#define LIST_BYTES 65536

static const CLASSIC_EVENT_ID switches[] = {
    { { 0x3d6fa8d1, 0xfe05, 0x11d0, { 0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c } },
      36,
      { 0 } },
};

static ULONG most_counters(void)
{
    ULONG most = 99, n = 0;
    CHECK_EQ(TraceQueryInformation(0, TraceMaxPmcCounterQuery, &most, sizeof most, &n),
             ERROR_SUCCESS);
    CHECK_EQ(n, sizeof most);
    return most;
}

static ULONG counter_list(TRACEHANDLE session, const ULONG *sources, ULONG bytes)
{
    return TraceSetInformation(session, TracePmcCounterListInfo, (PVOID)(ULONG_PTR)sources, bytes);
}

static ULONG event_list(TRACEHANDLE session, const CLASSIC_EVENT_ID *events, ULONG bytes)
{
    return TraceSetInformation(session, TracePmcEventListInfo, (PVOID)(ULONG_PTR)events, bytes);
}

TEST_USER(etw_win32, masks, "class 4 sets and returns the groups of a system logger")
{
    PERFINFO_GROUPMASK masks = { { EVENT_TRACE_FLAG_CSWITCH, 4 } }, found = { { 0 } };
    TRACEHANDLE session = 0;
    ULONG n = 0;
    REQUIRE(win32_start(&session));
    CHECK_EQ(TraceSetInformation(session, TraceSystemTraceEnableFlagsInfo, &masks, sizeof masks),
             ERROR_SUCCESS);
    CHECK_EQ(TraceQueryInformation(session, TraceSystemTraceEnableFlagsInfo, &found, sizeof found,
                                   &n),
             ERROR_SUCCESS);
    CHECK_EQ(n, sizeof found);
    CHECK_EQ(memcmp(&masks, &found, sizeof masks), 0);
    CHECK_EQ(TraceQueryInformation(session, TraceSystemTraceEnableFlagsInfo, &found,
                                   sizeof found - 1, NULL),
             ERROR_BAD_LENGTH);
    CHECK_EQ(win32_stop(session), ERROR_SUCCESS);
}

/* Of a source: what class 5 sets it returns. */
static void check_interval(ULONG source, ULONG interval)
{
    TRACE_PROFILE_INTERVAL now = { source, interval }, before = { source, 0 };
    ULONG n = 0;
    CHECK_EQ(TraceQueryInformation(0, TraceSampledProfileIntervalInfo, &before, sizeof before, &n),
             ERROR_SUCCESS);
    CHECK_EQ(n, sizeof before);
    CHECK(before.Interval != 0);
    CHECK_EQ(TraceSetInformation(0, TraceSampledProfileIntervalInfo, &now, sizeof now),
             ERROR_SUCCESS);
    now.Interval = 0;
    CHECK_EQ(TraceQueryInformation(0, TraceSampledProfileIntervalInfo, &now, sizeof now, NULL),
             ERROR_SUCCESS);
    CHECK_EQ(now.Interval, interval);
    CHECK_EQ(TraceSetInformation(0, TraceSampledProfileIntervalInfo, &before, sizeof before),
             ERROR_SUCCESS);
}

TEST_USER(
    etw_win32, intervals,
    "class 5 sets and returns the interval of time and of a source that counts events, class 6 "
    "what is sampled")
{
    TRACE_PROFILE_INTERVAL time = { ProfileTime, 20000 };
    ULONG source = SOURCE;
    CHECK_EQ(TraceSetInformation(0, TraceSampledProfileIntervalInfo, &time, sizeof time),
             ERROR_PRIVILEGE_NOT_HELD);
    win32_privilege(true);
    check_interval(ProfileTime, 20000);
    if (most_counters())
        check_interval(SOURCE, 12345);
    CHECK_EQ(TraceSetInformation(0, TraceProfileSourceConfigInfo, &source, sizeof source),
             most_counters() ? ERROR_SUCCESS : ERROR_NOT_SUPPORTED);
    CHECK_EQ(TraceSetInformation(0, TraceProfileSourceConfigInfo, &source, 3),
             ERROR_INCORRECT_SIZE);
    CHECK_EQ(TraceQueryInformation(1, TraceSampledProfileIntervalInfo, &time, sizeof time, NULL),
             ERROR_INVALID_PARAMETER);
    CHECK_EQ(TraceQueryInformation(0, TraceSampledProfileIntervalInfo, &time, 7, NULL),
             ERROR_BAD_LENGTH);
}

TEST_USER(
    etw_win32, source_list,
    "class 7 lists the sources, that of time first; for a buffer that is too small it returns the "
    "size")
{
    uint8_t *bytes = ring3_pages(LIST_BYTES / RING3_PAGE);
    const PROFILE_SOURCE_INFO *info = (const PROFILE_SOURCE_INFO *)(const void *)bytes;
    ULONG needed = 0, n = 0, entries = 1;
    REQUIRE(bytes);
    CHECK_EQ(TraceQueryInformation(1, TraceProfileSourceListInfo, bytes, LIST_BYTES, &n),
             ERROR_INVALID_PARAMETER);
    CHECK_EQ(TraceQueryInformation(0, TraceProfileSourceListInfo, NULL, LIST_BYTES, &needed),
             ERROR_BAD_LENGTH);
    CHECK_RANGE(needed, sizeof *info, LIST_BYTES); /* one entry; the whole area */
    CHECK_EQ(TraceQueryInformation(0, TraceProfileSourceListInfo, bytes, needed - 1, &n),
             ERROR_BAD_LENGTH);
    CHECK_EQ(n, needed);
    CHECK_EQ(TraceQueryInformation(0, TraceProfileSourceListInfo, bytes, needed, &n),
             ERROR_SUCCESS);
    CHECK_EQ(n, needed);
    CHECK_EQ(info->Source, ProfileTime);
    for (; info->NextEntryOffset; entries++)
        info = (const PROFILE_SOURCE_INFO *)(const void *)((const uint8_t *)info +
                                                           info->NextEntryOffset);
    CHECK((const uint8_t *)info->Description < bytes + needed);
    CHECK(most_counters() ? entries > 1 : entries == 1);
}

TEST_USER(etw_win32, owners,
          "classes 22, 25 and 27 return the number of counters, their owners and the sessions that"
          " use them")
{
    static uint32_t words[512];
    ETW_PMC_COUNTER_OWNERSHIP_STATUS *status = (ETW_PMC_COUNTER_OWNERSHIP_STATUS *)(void *)words;
    const ETW_PMC_SESSION_INFO *info = (const ETW_PMC_SESSION_INFO *)(const void *)words;
    ULONG n = 0, source = SOURCE, tagged = 0, most = most_counters();
    TRACEHANDLE session = 0;
    CHECK_EQ(TraceQueryInformation(0, TraceMaxPmcCounterQuery, words, 3, NULL), ERROR_BAD_LENGTH);
    CHECK_EQ(TraceQueryInformation(0, TracePmcSessionInformation, words, 0, &n), ERROR_SUCCESS);
    CHECK_EQ(n, 0);
    REQUIRE(win32_start(&session));
    CHECK_EQ(event_list(session, switches, sizeof switches), ERROR_SUCCESS);
    if (most)
        CHECK_EQ(counter_list(session, &source, sizeof source), ERROR_SUCCESS);
    CHECK_EQ(TraceQueryInformation(0, TracePmcSessionInformation, words, sizeof *info, &n),
             ERROR_INSUFFICIENT_BUFFER);
    CHECK_EQ(TraceQueryInformation(0, TracePmcSessionInformation, words, sizeof words, &n),
             ERROR_SUCCESS);
    CHECK_EQ(info->NextEntryOffset, 0);
    CHECK_EQ(info->LoggerId, session & 0xffff);
    CHECK_EQ(info->HookIdCount, 1);
    CHECK_EQ(info->ProfileSourceCount, most != 0);
    if (most)
        CHECK_EQ(words[4], SOURCE);
    CHECK_EQ(*(const USHORT *)&words[4 + (most != 0)], PERFINFO_LOG_TYPE_CONTEXTSWAP);
    status->ProcessorNumber = 0;
    CHECK_EQ(TraceQueryInformation(1, TracePmcCounterOwners, words, sizeof words, &n),
             ERROR_INVALID_PARAMETER);
    CHECK_EQ(TraceQueryInformation(0, TracePmcCounterOwners, words, 7, &n), ERROR_BAD_LENGTH);
    CHECK_EQ(TraceQueryInformation(0, TracePmcCounterOwners, words, sizeof words, &n),
             ERROR_SUCCESS);
    CHECK_EQ(n, 8 + status->NumberOfCounters * sizeof *status->CounterOwners);
    CHECK(status->NumberOfCounters >= most);
    for (ULONG i = 0; i < status->NumberOfCounters; i++)
        tagged += status->CounterOwners[i].OwnerType == EtwPmcOwnerTaggedWithSource &&
                  status->CounterOwners[i].ProfileSource == SOURCE;
    CHECK_EQ(tagged, most != 0);
    if (most)
        CHECK_EQ(TraceQueryInformation(0, TracePmcCounterOwners, words, 8, &n),
                 ERROR_INSUFFICIENT_BUFFER);
    status->ProcessorNumber = 256; /* more do not run */
    CHECK_EQ(TraceQueryInformation(0, TracePmcCounterOwners, words, sizeof words, &n),
             ERROR_INVALID_PARAMETER);
    CHECK_EQ(win32_stop(session), ERROR_SUCCESS);
}
