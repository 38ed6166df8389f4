/* SPDX-License-Identifier: MIT */
/* TraceSetInformation and TraceQueryInformation: every class, and every code that they return. */
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

static ULONG sampled(TRACEHANDLE session, const ULONG *sources, ULONG bytes)
{
    return TraceSetInformation(session, TraceProfileSourceConfigInfo, (PVOID)(ULONG_PTR)sources,
                               bytes);
}

TEST_USER(etw_win32, other_classes,
          "classes that do not concern counters, or the other direction, are not supported")
{
    static const uint32_t set =
        1u << 3 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 8 | 1u << 9 | 3u << 20;
    static const uint32_t query =
        1u << 3 | 1u << 4 | 1u << 5 | 1u << 7 | 1u << 22 | 1u << 25 | 1u << 27;
    ULONG64 bytes[8] = { 0 };
    for (unsigned class = 0; class <= MaxTraceSetInfoClass; class ++) {
        if (!(set >> class & 1))
            CHECK_EQ(TraceSetInformation(0, (TRACE_INFO_CLASS) class, bytes, sizeof bytes),
                     ERROR_NOT_SUPPORTED);
        if (!(query >> class & 1))
            CHECK_EQ(TraceQueryInformation(0, (TRACE_QUERY_INFO_CLASS) class, bytes, sizeof bytes,
                                           NULL),
                     ERROR_NOT_SUPPORTED);
    }
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

TEST_USER(etw_win32, intervals,
          "class 5 sets and returns the interval of time and of a source that counts events")
{
    TRACE_PROFILE_INTERVAL time = { ProfileTime, 20000 };
    CHECK_EQ(TraceSetInformation(0, TraceSampledProfileIntervalInfo, &time, sizeof time),
             ERROR_PRIVILEGE_NOT_HELD);
    win32_privilege(true);
    check_interval(ProfileTime, 20000);
    if (most_counters())
        check_interval(SOURCE, 12345);
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

/* One more than any list has entries. */
static const ULONG sources[257] = { SOURCE, SOURCE, SOURCE, SOURCE, SOURCE };
static const CLASSIC_EVENT_ID no_events[5] = { { .Type = 36 } };
static const PERFINFO_GROUPMASK masks = { { EVENT_TRACE_FLAG_CSWITCH, 4 } };
static const TRACE_PROFILE_INTERVAL interval = { ProfileTime, 20000 };

/* A caller with the privilege sets a class, without a session, with one that runs, or with none
 * that runs. */
static const struct refusal {
    int class;
    enum { NONE, OURS, NO_SESSION } session;
    const void *what;
    ULONG bytes, error;
} refusals[] = {
    { TraceSystemTraceEnableFlagsInfo, OURS, &masks, sizeof masks - 1, ERROR_BAD_LENGTH },
    { TraceSystemTraceEnableFlagsInfo, OURS, &masks, sizeof masks, ERROR_SUCCESS },
    { TraceStackTracingInfo, OURS, switches, sizeof switches - 1, ERROR_INCORRECT_SIZE },
    { TraceStackTracingInfo, OURS, switches, 257 * sizeof *switches, ERROR_INCORRECT_SIZE },
    { TraceStackTracingInfo, OURS, NULL, sizeof switches, ERROR_INVALID_PARAMETER },
    { TraceStackTracingInfo, NO_SESSION, switches, sizeof switches, ERROR_WMI_INSTANCE_NOT_FOUND },
    { TraceSampledProfileIntervalInfo, OURS, &interval, 8, ERROR_INVALID_PARAMETER },
    { TraceSampledProfileIntervalInfo, NONE, &interval, 7, ERROR_BAD_LENGTH },
    { TraceSampledProfileIntervalInfo, NONE, &interval, 9, ERROR_BAD_LENGTH },
    { TraceProfileSourceConfigInfo, OURS, sources, 4, ERROR_INVALID_PARAMETER },
    { TraceProfileSourceConfigInfo, NONE, sources, 3, ERROR_INCORRECT_SIZE },
    { TraceProfileSourceConfigInfo, NONE, sources, 20, ERROR_INCORRECT_SIZE },
    { TraceProfileSourceConfigInfo, NONE, sources, 0, ERROR_INVALID_PARAMETER },
    { TraceProfileSourceConfigInfo, NONE, NULL, 4, ERROR_INVALID_PARAMETER },
    { TracePmcCounterListInfo, OURS, sources, sizeof sources, ERROR_INCORRECT_SIZE },
    { TracePmcEventListInfo, OURS, no_events, sizeof *no_events - 1, ERROR_INCORRECT_SIZE },
    { TracePmcEventListInfo, OURS, no_events, sizeof no_events, ERROR_INCORRECT_SIZE },
    { TracePmcEventListInfo, OURS, no_events, 0, ERROR_INVALID_PARAMETER },
    { TracePmcEventListInfo, OURS, NULL, sizeof *no_events, ERROR_INVALID_PARAMETER },
    /* an unknown class is left out */
    { TracePmcEventListInfo, OURS, no_events, sizeof *no_events, ERROR_INVALID_PARAMETER },
    { TracePmcEventListInfo, NO_SESSION, switches, sizeof switches, ERROR_WMI_INSTANCE_NOT_FOUND },
    { TracePmcEventListInfo, OURS, switches, sizeof switches, ERROR_SUCCESS },
    { TracePmcEventListInfo, OURS, switches, sizeof switches, ERROR_WMI_ALREADY_ENABLED },
};

TEST_USER(etw_win32, set_refuses,
          "TraceSetInformation: lengths, not whole entries, too many, none; a handle where none "
          "belongs; the masks that were set are returned")
{
    PERFINFO_GROUPMASK found = { { 0 } };
    TRACEHANDLE session = 0;
    ULONG n = 0;
    REQUIRE(win32_start(&session));
    CHECK_EQ(sampled(0, sources, sizeof *sources), ERROR_PRIVILEGE_NOT_HELD);
    win32_privilege(true);
    CHECK_EQ(sampled(0, sources, sizeof *sources),
             most_counters() ? ERROR_SUCCESS : ERROR_NOT_SUPPORTED);
    for (unsigned i = 0; i < ARRAY_SIZE(refusals); i++) {
        const struct refusal *r = &refusals[i];
        TRACEHANDLE handle = r->session == NONE ? 0 : session + (r->session == NO_SESSION);
        ULONG error = TraceSetInformation(handle, (TRACE_INFO_CLASS)r->class,
                                          (PVOID)(ULONG_PTR)r->what, r->bytes);
        if (!CHECK_EQ(error, r->error))
            test_note("row %u", i);
    }
    CHECK_EQ(TraceQueryInformation(session, TraceSystemTraceEnableFlagsInfo, &found, sizeof found,
                                   &n),
             ERROR_SUCCESS);
    CHECK_EQ(n, sizeof found);
    CHECK_EQ(memcmp(&masks, &found, sizeof masks), 0);
    CHECK_EQ(TraceQueryInformation(session, TraceSystemTraceEnableFlagsInfo, &found, n - 1, NULL),
             ERROR_BAD_LENGTH);
    CHECK_EQ(win32_stop(session), ERROR_SUCCESS);
}

TEST_USER(etw_win32, owners,
          "classes 22, 25 and 27 return the number of counters, their owners and the sessions that"
          " use them")
{
    static uint32_t words[512];
    ETW_PMC_COUNTER_OWNERSHIP_STATUS *status = (ETW_PMC_COUNTER_OWNERSHIP_STATUS *)(void *)words;
    const ETW_PMC_SESSION_INFO *info = (const ETW_PMC_SESSION_INFO *)(const void *)words;
    ULONG n = 0, source = SOURCE, most = most_counters();
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
    CHECK_EQ(info->LoggerId, session & 0xffff);
    CHECK_EQ(info->ProfileSourceCount, most != 0);
    if (most)
        CHECK_EQ(words[4], SOURCE);
    status->ProcessorNumber = 0;
    CHECK_EQ(TraceQueryInformation(1, TracePmcCounterOwners, words, sizeof words, &n),
             ERROR_INVALID_PARAMETER);
    CHECK_EQ(TraceQueryInformation(0, TracePmcCounterOwners, words, 7, &n), ERROR_BAD_LENGTH);
    CHECK_EQ(TraceQueryInformation(0, TracePmcCounterOwners, words, sizeof words, &n),
             ERROR_SUCCESS);
    CHECK_EQ(n, 8 + status->NumberOfCounters * sizeof *status->CounterOwners);
    CHECK(status->NumberOfCounters >= most);
    if (most)
        CHECK_EQ(TraceQueryInformation(0, TracePmcCounterOwners, words, 8, &n),
                 ERROR_INSUFFICIENT_BUFFER);
    status->ProcessorNumber = 256; /* more do not run */
    CHECK_EQ(TraceQueryInformation(0, TracePmcCounterOwners, words, sizeof words, &n),
             ERROR_INVALID_PARAMETER);
    CHECK_EQ(win32_stop(session), ERROR_SUCCESS);
}
