/* SPDX-License-Identifier: MIT */
/* The two lists of a session: the counters in its records, and the events that carry them. Each
 * refusal, in order, and the state after it. */
#include "kernel/etw/etw_pmc.h"
#include "tests/harness/etw.h"
#include "tests/harness/kernel.h"

#define NO_LOGGER 0x1234
#define INSTRUCTIONS ProfileTotalIssues
#define UNSUPPORTED 0xFE /* no source of any processor */

static const ULONG instructions[] = { INSTRUCTIONS, INSTRUCTIONS, INSTRUCTIONS, INSTRUCTIONS,
                                      INSTRUCTIONS, INSTRUCTIONS, INSTRUCTIONS, INSTRUCTIONS };
static const ULONG swaps[] = { PERFINFO_LOG_TYPE_CONTEXTSWAP, PERFINFO_LOG_TYPE_READY_THREAD,
                               PERFINFO_LOG_TYPE_SYSCALL_ENTER, PERFINFO_LOG_TYPE_SYSCALL_EXIT,
                               PERFINFO_LOG_TYPE_IPI };

static NTSTATUS set_bytes(ULONG sub_class, TRACEHANDLE trace, ULONG length)
{
    struct {
        ULONG sub_class, spare;
        TRACEHANDLE trace;
        ULONG items[4];
    } list = { sub_class, 0, trace, { INSTRUCTIONS } };
    return NtSetSystemInformation(SystemPerformanceTraceInformation, &list, length);
}

TEST(etw_lists, tails,
     "lists that end in a part of an element, or that are shorter than their header, are refused "
     "[ET-05 ET-20]")
{
    struct session s = session_unread(SESSION_NAME, SESSION_MODE);
    static const ULONG classes[] = { EventTraceProfileCounterListInformation,
                                     EventTraceProfileEventListInformation,
                                     EventTraceProfileConfigInformation,
                                     EventTracePebsTracingInformation };
    for (unsigned i = 0; i < ARRAY_SIZE(classes); i++) {
        for (ULONG length = 4; length < 0x10; length++)
            CHECK_STATUS(set_bytes(classes[i], s.trace, length), STATUS_INFO_LENGTH_MISMATCH);
        for (ULONG length = 0x11; length < 0x18; length++)
            if (length % 4)
                CHECK_STATUS(set_bytes(classes[i], s.trace, length), STATUS_INVALID_PARAMETER);
        if (classes[i] != EventTraceProfileConfigInformation) /* the tail comes before the logger */
            CHECK_STATUS(set_bytes(classes[i], NO_LOGGER, 0x13), STATUS_INVALID_PARAMETER);
    }
    session_stop(&s);
}

TEST(etw_lists, numbers,
     "lists of no source or too many, of no event, five events or unknown events are refused "
     "[ET-06 ET-07 ET-09 ET-21 ET-22]")
{
    struct session s = session_unread(SESSION_NAME, SESSION_MODE), none = { NO_LOGGER, NULL, 0 };
    ULONG max = hal_counter_count() && hal_counter_count() < 7 ? hal_counter_count() : 7,
          unknown = 0x0525;
    CHECK_STATUS(counter_list(&none, instructions, 1), STATUS_WMI_INSTANCE_NOT_FOUND);
    CHECK_STATUS(counter_list(&none, instructions, 0), STATUS_WMI_INSTANCE_NOT_FOUND);
    CHECK_STATUS(event_list(&none, swaps, 1), STATUS_WMI_INSTANCE_NOT_FOUND);
    CHECK_STATUS(counter_list(&s, instructions, 0), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(counter_list(&s, instructions, max + 1), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(event_list(&s, swaps, 0), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(event_list(&s, swaps, 5), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(event_list(&s, &unknown, 1), STATUS_NOT_SUPPORTED);
    CHECK_STATUS(event_list(&s, swaps, 4), STATUS_SUCCESS);
    CHECK_STATUS(event_list(&s, swaps, 4), STATUS_WMI_ALREADY_ENABLED);
    CHECK_STATUS(event_list(&s, swaps, 5), STATUS_INVALID_PARAMETER);
    session_stop(&s);
    CHECK_STATUS(event_list(&s, swaps, 4), STATUS_WMI_INSTANCE_NOT_FOUND);
}

/* As many sources as the processor counts together, at most `max`: all counters that a source can
 * use. */
static ULONG fill_sources(ULONG *sources, ULONG max)
{
    ULONG n = 0;
    for (KPROFILE_SOURCE s = hal_source_next(ProfileTime); s != ProfileTime; s = hal_source_next(s))
        for (NTSTATUS status = STATUS_SUCCESS; n < max && NT_SUCCESS(status);) {
            PMC_HANDLE set;
            sources[n] = (ULONG)s;
            status = HalAllocatePmcCounterSet(0, (PKPROFILE_SOURCE)sources, n + 1, &set);
            if (NT_SUCCESS(status)) {
                HalFreePmcCounterSet(set);
                n++;
            }
        }
    return n;
}

TEST(etw_lists, maximum,
     "as many sources as the query reports are accepted; without counters none is [ET-08]")
{
    struct session s = session_unread(SESSION_NAME, SESSION_MODE);
    ULONG max = 99, n = 0, most[8];
    CHECK_OK(NtTraceControl(EtwMaxPmcCounterQueryCode, NULL, 0, &max, sizeof max, &n));
    CHECK_EQ(n, sizeof max);
    CHECK_EQ(max, hal_counter_count() < 7 ? hal_counter_count() : 7);
    CHECK_STATUS(NtTraceControl(EtwMaxPmcCounterQueryCode, NULL, 0, &max, sizeof max - 1, &n),
                 STATUS_INFO_LENGTH_MISMATCH);
    ULONG together = fill_sources(most, max);
    test_note("%u of %u counters can be in one record, %u by sources", max, hal_counter_count(),
              together);
    if (max) {
        CHECK_EQ(together, max);
        CHECK_STATUS(counter_list(&s, most, together), STATUS_SUCCESS);
    } else {
        CHECK_STATUS(counter_list(&s, instructions, 1), STATUS_NOT_SUPPORTED);
    }
    CHECK_EQ(hal_counters_owned(), max ? cpu_count : 0);
    session_stop(&s);
}

TEST(etw_lists, once,
     "a second list is refused until the session stops; paged memory is refused; an unsupported "
     "source leaves the session as it was [ET-12 ET-13 ET-14 ET-15 ET-19]")
{
    ULONG odd[] = { INSTRUCTIONS, UNSUPPORTED };
    HANDLE all = NULL;
    SKIP_WITHOUT_PMU();
    for (unsigned i = 0; i < 3; i++) {
        struct session s = session_unread(SESSION_NAME, SESSION_MODE);
        CHECK_STATUS(counter_list(&s, odd, 2), STATUS_NOT_SUPPORTED);
        CHECK_EQ(hal_counters_owned(), 0);
        CHECK_STATUS(counter_list(&s, instructions, 1), STATUS_SUCCESS);
        CHECK_STATUS(counter_list(&s, instructions, 1), STATUS_WMI_ALREADY_ENABLED);
        CHECK_STATUS(counter_list(&s, odd, 2), STATUS_WMI_ALREADY_ENABLED);
        CHECK_STATUS(counter_list(&s, odd, 0), STATUS_INVALID_PARAMETER); /* comes first */
        CHECK_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &all),
                     STATUS_INSUFFICIENT_RESOURCES);
        session_stop(&s);
        REQUIRE_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &all), STATUS_SUCCESS);
        CHECK_STATUS(HalFreeHardwareCounters(all), STATUS_SUCCESS);
    }
    struct session paged =
        session_unread(SESSION_NAME, SESSION_MODE | EVENT_TRACE_USE_PAGED_MEMORY);
    CHECK_STATUS(counter_list(&paged, instructions, 1), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(event_list(&paged, swaps, 1), STATUS_INVALID_PARAMETER);
    session_stop(&paged);
}

TEST(etw_lists, owned,
     "while somebody owns the PMU of one processor, or of all, a list is refused as busy and "
     "nothing stays allocated [ET-16 ET-17]")
{
    SKIP_WITHOUT_PMU();
    struct session s = session_unread(SESSION_NAME, SESSION_MODE);
    for (unsigned cpu = 0; cpu <= cpu_count; cpu++) { /* the last iteration: all */
        bool one = cpu < cpu_count;
        GROUP_AFFINITY where = { one ? 1ul << cpu : 0, 0, { 0, 0, 0 } };
        HANDLE owner = NULL;
        REQUIRE_OK(HalAllocateHardwareCounters(one ? &where : NULL, one, NULL, &owner));
        CHECK_STATUS(counter_list(&s, instructions, 1), STATUS_DEVICE_BUSY);
        CHECK_EQ(hal_counters_owned(), 1);
        CHECK_STATUS(HalFreeHardwareCounters(owner), STATUS_SUCCESS);
    }
    CHECK_STATUS(counter_list(&s, instructions, 1), STATUS_SUCCESS);
    CHECK_EQ(hal_counters_owned(), cpu_count);
    session_stop(&s);
}

TEST(etw_lists, kernel_logger,
     "a handle with 0xFFFF in its low 16 bits means the NT Kernel Logger [ET-10]")
{
    struct session s = { 0xFFFF, NULL, 0 };
    CHECK_STATUS(event_list(&s, swaps, 1), STATUS_WMI_INSTANCE_NOT_FOUND);
    CHECK_EQ(session_unread(KERNEL_LOGGER_NAME, EVENT_TRACE_REAL_TIME_MODE).trace, 0xFFFF);
    s.trace = 0x123456789876FFFF;
    bool counts = hal_counter_count() != 0;
    CHECK_STATUS(counter_list(&s, instructions, 1), counts ? STATUS_SUCCESS : STATUS_NOT_SUPPORTED);
    CHECK_STATUS(event_list(&s, swaps, 1), STATUS_SUCCESS);
    s.trace = 0xFFFF;
    CHECK_STATUS(counter_list(&s, instructions, 1),
                 counts ? STATUS_WMI_ALREADY_ENABLED : STATUS_NOT_SUPPORTED);
    CHECK_STATUS(event_list(&s, swaps, 1), STATUS_WMI_ALREADY_ENABLED);
    s.trace = 0xFFFF0000;
    CHECK_STATUS(counter_list(&s, instructions, 1), STATUS_WMI_INSTANCE_NOT_FOUND);
    CHECK_STATUS(event_list(&s, swaps, 1), STATUS_WMI_INSTANCE_NOT_FOUND);
    s.trace = 0xFFFF;
    session_stop(&s);
}

TEST(etw_lists, pebs,
     "the PEBS list accepts only the context switch, and is then refused because there is no PEBS "
     "[ET-32]")
{
    struct session s = session_unread(SESSION_NAME, SESSION_MODE);
    CHECK_STATUS(session_list(EventTracePebsTracingInformation, s.trace, swaps, 2),
                 STATUS_INVALID_PARAMETER);
    CHECK_STATUS(session_list(EventTracePebsTracingInformation, s.trace, swaps + 1, 1),
                 STATUS_INVALID_PARAMETER);
    CHECK_STATUS(session_list(EventTracePebsTracingInformation, NO_LOGGER, swaps, 2),
                 STATUS_INVALID_PARAMETER);
    CHECK_STATUS(session_list(EventTracePebsTracingInformation, NO_LOGGER, swaps, 1),
                 STATUS_WMI_INSTANCE_NOT_FOUND);
    CHECK_STATUS(session_list(EventTracePebsTracingInformation, s.trace, swaps, 1),
                 STATUS_NOT_SUPPORTED);
    CHECK_STATUS(session_list(EventTracePebsTracingInformation, s.trace, swaps, 0), STATUS_SUCCESS);
    session_stop(&s);
}

TEST(etw_lists, sessions,
     "the query of sessions with lists names them, and reports the length that is needed")
{
    struct session s = session_unread(SESSION_NAME, SESSION_MODE);
    uint64_t space[8] = { 0 };
    ETW_PMC_SESSION_INFO *info = (ETW_PMC_SESSION_INFO *)(void *)space;
    ULONG n = 99;
    CHECK_OK(NtTraceControl(EtwPmcSessionQueryCode, NULL, 0, space, sizeof space, &n));
    CHECK_EQ(n, 0);
    CHECK_STATUS(event_list(&s, swaps, 3), STATUS_SUCCESS);
    CHECK_STATUS(NtTraceControl(EtwPmcSessionQueryCode, NULL, 0, NULL, 0, &n),
                 STATUS_BUFFER_TOO_SMALL);
    CHECK_EQ(n, sizeof *info + 8);
    CHECK_STATUS(NtTraceControl(EtwPmcSessionQueryCode, NULL, 0, space, n, &n), STATUS_SUCCESS);
    CHECK_EQ(info->NextEntryOffset, 0);
    CHECK_EQ(info->LoggerId, s.trace);
    CHECK_EQ(info->ProfileSourceCount, 0);
    CHECK_EQ(info->HookIdCount, 3);
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQ(((USHORT *)(info + 1))[i], swaps[i]);
    struct session other = session_unread("another", SESSION_MODE);
    CHECK_STATUS(event_list(&other, swaps, 2), STATUS_SUCCESS);
    CHECK_OK(NtTraceControl(EtwPmcSessionQueryCode, NULL, 0, space, sizeof space, &n));
    CHECK_EQ(n, 2 * sizeof *info + 8 + 4);
    CHECK_EQ(info->NextEntryOffset, sizeof *info + 8);
    CHECK_EQ(((ETW_PMC_SESSION_INFO *)(void *)((uint8_t *)space + info->NextEntryOffset))->LoggerId,
             other.trace);
    session_stop(&s);
    session_stop(&other);
}
