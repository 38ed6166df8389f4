/* SPDX-License-Identifier: MIT */
/* Trace sessions as hostile programs ask for them: privileges, pointers, lengths, noise. */
#include "tests/ring3/etw.h"

static void set_privilege(BOOLEAN on)
{
    BOOLEAN was;
    CHECK_STATUS(RtlAdjustPrivilege(SE_SYSTEM_PROFILE_PRIVILEGE, on, FALSE, &was), STATUS_SUCCESS);
}

static void check_privileged(const struct session *s, bool held)
{
    static const ULONG swap = PERFINFO_LOG_TYPE_CONTEXTSWAP, no_source = 0xFE;
    NTSTATUS wanted = held ? STATUS_SUCCESS : STATUS_PRIVILEGE_NOT_HELD;
    EVENT_TRACE_TIME_PROFILE_INFORMATION time = { EventTraceTimeProfileInformation, 10000 };
    EVENT_TRACE_PROFILE_REMOVE_INFORMATION remove = { EventTraceProfileSourceRemoveInformation,
                                                      ProfileTotalIssues,
                                                      { 0, 0, 0 } };
    uint8_t add[0x40];
    struct session_info d;
    for (unsigned i = 0; i < sizeof add; i++)
        add[i] = i ? 0xff : EventTraceProfileSourceAddInformation;
    add[1] = add[2] = add[3] = 0;
    CHECK_STATUS(session_list(EventTracePebsTracingInformation, s->trace, &swap, 1),
                 held ? STATUS_NOT_SUPPORTED : wanted);
    CHECK_STATUS(session_list(EventTracePebsTracingInformation, s->trace, &swap, 0), wanted);
    CHECK_STATUS(session_list(EventTraceProfileConfigInformation, 0, &swap, 0), wanted);
    CHECK_STATUS(session_list(EventTraceProfileConfigInformation, 0, &no_source, 1),
                 held ? STATUS_NOT_SUPPORTED : wanted);
    CHECK_STATUS(session_set_class(&time, sizeof time), wanted);
    CHECK_STATUS(session_set_class(add, sizeof add), held ? STATUS_INVALID_PARAMETER : wanted);
    CHECK_STATUS(session_set_class(&remove, sizeof remove),
                 held ? STATUS_INVALID_PARAMETER : wanted);
    CHECK_STATUS(session_mask(s, PERF_PROFILE, 0), wanted);
    CHECK_STATUS(session_mask(s, EVENT_TRACE_FLAG_PROFILE, 0), wanted);
    CHECK_STATUS(session_mask(s, PERF_PMC_PROFILE, 0), wanted);
    CHECK_STATUS(session_mask(s, PERF_PROFILING, 0), wanted);
    CHECK_STATUS(session_mask(s, PERF_CONTEXT_SWITCH, PERF_SYSCALL), STATUS_SUCCESS);
    session_describe(&d, SESSION_NAME);
    d.info.EnableFlags = EVENT_TRACE_FLAG_PROFILE;
    CHECK_STATUS(session_control(EtwUpdateLoggerCode, &d), wanted);
    session_describe(&d, "sampler");
    d.info.EnableFlags = EVENT_TRACE_FLAG_PROFILE;
    CHECK_STATUS(session_control(EtwStartLoggerCode, &d), wanted);
    if (held)
        CHECK_STATUS(session_control(EtwStopLoggerCode, &d), STATUS_SUCCESS);
    CHECK_STATUS(session_mask(s, 0, 0), STATUS_SUCCESS);
}

TEST_USER(etw_input, privilege,
          "samples, PEBS, sources and intervals need SeSystemProfilePrivilege [ET-33 ET-44 ET-50]")
{
    struct session s;
    REQUIRE(session_start(&s, 64, 16));
    check_privileged(&s, false);
    set_privilege(TRUE);
    check_privileged(&s, true);
    set_privilege(FALSE);
    session_stop(&s);
    session_close(&s);
}

void user_trace_denied(uint64_t trace)
{
    static const ULONG one = 2, swap = PERFINFO_LOG_TYPE_CONTEXTSWAP;
    struct session s = { trace, NULL, 0 };
    static uint64_t buffer[64];
    static EVENT_TRACE_HEADER event = { .Size = sizeof event, .Flags = WNODE_FLAG_TRACED_GUID };
    ULONG n;
    for (ULONG code = 1; code <= EtwRealtimeReadCode; code++)
        CHECK_STATUS(ZwTraceControl(code, buffer, sizeof buffer, buffer, sizeof buffer, &n),
                     STATUS_ACCESS_DENIED);
    CHECK_EQ(TraceEvent(trace, &event), ERROR_ACCESS_DENIED);
    CHECK_STATUS(session_list(EventTraceProfileCounterListInformation, trace, &one, 1),
                 STATUS_ACCESS_DENIED);
    CHECK_STATUS(session_list(EventTraceProfileEventListInformation, trace, &swap, 1),
                 STATUS_ACCESS_DENIED);
    CHECK_STATUS(session_list(EventTraceProfileCounterListInformation, 0x777, &one, 1),
                 STATUS_WMI_INSTANCE_NOT_FOUND);
    CHECK_STATUS(session_mask(&s, PERF_CONTEXT_SWITCH, 0), STATUS_ACCESS_DENIED);
    CHECK_STATUS(session_list(EventTraceProfileConfigInformation, 0, &one, 1),
                 STATUS_PRIVILEGE_NOT_HELD);
}

void user_trace_left(uint64_t trace)
{
    struct session s = { trace, NULL, 0 };
    static const TRACE_CONSUMER unwritable = { NULL, 1 };
    ULONG n;
    if (trace) { /* whom the handle does not reach is not connected */
        CHECK_STATUS(ZwTraceControl(EtwRealtimeConnectCode, &trace, sizeof trace,
                                    (PVOID)(uint64_t)&unwritable, sizeof unwritable, &n),
                     STATUS_ACCESS_VIOLATION);
        CHECK(session_connect(&s));
        return;
    }
    REQUIRE(session_start(&s, 4, 4));
    CHECK_STATUS(session_mask(&s, PERF_SYSCALL, 0), STATUS_SUCCESS);
    session_stop(&s);
}
