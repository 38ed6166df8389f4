/* SPDX-License-Identifier: MIT */
/* Pairs of calls on one trace session: the second comes at each instruction of the first. */
#include "kernel/etw/etw_session.h"
#include "kernel/ke/etw_stream.h"
#include "tests/harness/etw.h"
#include "tests/harness/kernel.h"

static struct session session;

static NTSTATUS start_it(void)
{
    struct session_info d;
    session_describe(&d, SESSION_NAME);
    d.info.BufferSize = 4;
    d.info.MaximumBuffers = 2 * cpu_count;
    NTSTATUS status = session_control(EtwStartLoggerCode, &d);
    session.trace = NT_SUCCESS(status) ? d.info.Wnode.HistoricalContext : session.trace;
    return status;
}

static NTSTATUS stop_it(void)
{
    WMI_LOGGER_INFORMATION info;
    return session_by_handle(EtwStopLoggerCode, session.trace, &info);
}

static NTSTATUS flush_it(void) { return session_flush(&session); }

static NTSTATUS connect_it(void)
{
    TRACE_CONSUMER consumer = { NULL, 0 };
    ULONG n = 0;
    NTSTATUS status = NtTraceControl(EtwRealtimeConnectCode, &session.trace, sizeof session.trace,
                                     &consumer, sizeof consumer, &n);
    session.consumer = consumer.Handle ? consumer.Handle : session.consumer;
    return status;
}

static NTSTATUS disconnect_it(void)
{
    return NtTraceControl(EtwRealtimeDisconnectCode, &session.consumer, sizeof session.consumer,
                          NULL, 0, NULL);
}

static NTSTATUS read_it(void)
{
    static uint8_t bytes[PAGE_SIZE];
    ULONG n = 0;
    return session_read(&session, bytes, sizeof bytes, &n);
}

static NTSTATUS mask_it(void) { return session_mask(&session, PERF_CONTEXT_SWITCH, 0); }
static NTSTATUS hook_it(void)
{
    const ULONG hook = PERFINFO_LOG_TYPE_CONTEXTSWAP;
    return event_list(&session, &hook, 1);
}
static NTSTATUS log_event(void)
{
    etw_thread(ETW_THREAD_CREATE, thread_current());
    return STATUS_SUCCESS;
}

static bool begin_no_session(void)
{
    session = (struct session){ 0, NULL, 0 };
    return true;
}
static bool collide_begin(void) { return begin_no_session() && CHECK_OK(start_it()); }
static bool begin_connected(void) { return collide_begin() && CHECK_OK(connect_it()); }

static bool begin_logging(void)
{
    return collide_begin() && CHECK_OK(session_mask(&session, PERF_THREAD, 0));
}

static void end_session(void)
{
    NTSTATUS status = stop_it(); /* unless a call has */
    CHECK(status == STATUS_SUCCESS || status == STATUS_WMI_INSTANCE_NOT_FOUND);
    if (session.consumer)
        disconnect_it();
    for (unsigned i = 0; i < ETW_LOGGERS; i++)
        CHECK(!etw_loggers[i]);
}

#define NOT_FOUND STATUS_WMI_INSTANCE_NOT_FOUND

static const struct collision of_sessions[] = {
    COLLISION(NtTraceControl, begin_no_session, start_it, start_it, end_session,
              ONE_WINS(STATUS_OBJECT_NAME_COLLISION)),
    COLLISION(NtTraceControl, collide_begin, stop_it, stop_it, end_session, ONE_WINS(NOT_FOUND)),
    COLLISION(NtTraceControl, collide_begin, stop_it, flush_it, end_session, LOSES(0, NOT_FOUND)),
    COLLISION(NtTraceControl, collide_begin, stop_it, connect_it, end_session, LOSES(0, NOT_FOUND)),
    COLLISION(NtTraceControl, collide_begin, connect_it, stop_it, end_session, LOSES(NOT_FOUND, 0)),
    COLLISION(NtTraceControl, begin_connected, stop_it, read_it, end_session, LOSES(0, NOT_FOUND)),
    COLLISION(NtTraceControl, collide_begin, stop_it, mask_it, end_session, LOSES(0, NOT_FOUND)),
    COLLISION(NtTraceControl, collide_begin, stop_it, hook_it, end_session, LOSES(0, NOT_FOUND)),
    COLLISION(NtTraceControl, begin_logging, stop_it, log_event, end_session, BOTH_WIN),
    COLLISION(NtTraceControl, collide_begin, connect_it, connect_it, end_session,
              ONE_WINS(STATUS_DEVICE_BUSY)),
    COLLISION(NtTraceControl, begin_connected, disconnect_it, disconnect_it, end_session,
              ONE_WINS(STATUS_INVALID_HANDLE)),
    COLLISION(NtTraceControl, begin_connected, disconnect_it, read_it, end_session,
              LOSES(0, STATUS_INVALID_HANDLE)),
    COLLISION(NtTraceControl, begin_connected, disconnect_it, connect_it, end_session,
              LOSES(0, STATUS_DEVICE_BUSY)),
};

TEST(etw_colliders, sessions,
     "a session that is started, stopped, read, connected and used at once is started, stopped and "
     "connected once [slow]")
{
    test_run_on(0);
    STEP_COLLIDE(of_sessions);
}
