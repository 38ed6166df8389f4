/* SPDX-License-Identifier: MIT */
/* Trace sessions: refuse.h's table of what they claim. Beside each call runs a session that was
 * there before, which gets its events afterwards, too. */
#include "hal/branch_owner.h"
#include "tests/harness/etw.h"
#include "tests/harness/kernel.h"
#include "tests/harness/refuse.h"

#define BUFFER_KB 4u
#define READ_PAGES 8u
#define OTHER_NAME "other session"

static struct session first, second;
static uint8_t *bytes;

/* --- The first session. --- */

static void begin_first(void)
{
    bytes = phys_alloc(READ_PAGES);
    CHECK(bytes != NULL);
    test_run_on(0);
    session_start(&first, BUFFER_KB, 4 * cpu_count);
}

static void end_first(void)
{
    CHECK_EQ(session_stop(&first), 0);
    session_close(&first);
    phys_free(bytes, READ_PAGES);
    test_run_anywhere();
}

static NTSTATUS send_to(const struct session *s)
{
    struct {
        EVENT_TRACE_HEADER header;
        uint64_t data;
    } event = { { .Size = sizeof event }, 0x5eed };
    return NtTraceEvent((HANDLE)s->trace, ETW_NT_FLAGS_TRACE_HEADER, sizeof event, &event);
}

static void take_events(struct session *s)
{
    ULONG n;
    CHECK_OK(session_flush(s));
    CHECK_OK(session_read(s, bytes, READ_PAGES * PAGE_SIZE, &n));
}

/* What was sent to it comes, once. */
static void receive(struct session *s)
{
    struct record r;
    unsigned events = 0;
    ULONG n = 0;
    take_events(s);
    CHECK_OK(send_to(s));
    CHECK_OK(session_flush(s));
    CHECK_OK(session_read(s, bytes, READ_PAGES * PAGE_SIZE, &n));
    for (struct records all = records_of(bytes, n); (r = next_record(&all)).header;)
        events += trace_record_is_event(r.header) && *(const uint64_t *)r.payload == 0x5eed;
    CHECK_EQ(events, 1);
}

static void use_first_session(void) { receive(&first); }

/* --- Another session. --- */

static NTSTATUS start_with(const char *name, ULONG mode)
{
    struct session_info d;
    session_describe(&d, name);
    d.info.BufferSize = BUFFER_KB;
    d.info.MaximumBuffers = 2 * cpu_count;
    d.info.LogFileMode = mode;
    NTSTATUS status = session_control(EtwStartLoggerCode, &d);
    if (NT_SUCCESS(status))
        second = (struct session){ .trace = d.info.Wnode.HistoricalContext };
    return status;
}

static NTSTATUS start_second(void) { return start_with(OTHER_NAME, SESSION_MODE); }
static NTSTATUS start_first_again(void) { return start_with(SESSION_NAME, SESSION_MODE); }
static NTSTATUS start_without_mode(void) { return start_with("third", 0); }
static NTSTATUS start_unnamed(void) { return start_with("", SESSION_MODE); }

static void stop_second(void) { session_stop(&second); }

/* --- A consumer. --- */

static void make_unread(void)
{
    begin_first();
    CHECK_OK(start_second());
}

static void end_unread(void)
{
    stop_second();
    end_first();
}

static NTSTATUS connect_to(const struct session *s)
{
    TRACE_CONSUMER consumer = { NULL, 0 };
    ULONG n = 0;
    NTSTATUS status = NtTraceControl(EtwRealtimeConnectCode, (PVOID)&s->trace, sizeof s->trace,
                                     &consumer, sizeof consumer, &n);
    if (NT_SUCCESS(status))
        second.consumer = consumer.Handle;
    return status;
}

static NTSTATUS connect_second(void) { return connect_to(&second); }
static NTSTATUS connect_first(void) { return connect_to(&first); }
static NTSTATUS connect_none(void) { return connect_to(&(struct session){ .trace = 0x3f }); }

static void disconnect_second(void)
{
    receive(&second);
    session_close(&second);
}

/* --- Counters, branches, samples of the first. --- */

static const ULONG source = ProfileTotalIssues, hook = PERFINFO_LOG_TYPE_CONTEXTSWAP;

static NTSTATUS count_first(void) { return counter_list(&first, &source, 1); }

static NTSTATUS count_none(void)
{
    const ULONG bad[] = { source, ProfileTime };
    return counter_list(&first, bad, 2);
}

static NTSTATUS hook_first(void) { return event_list(&first, &hook, 1); }

static NTSTATUS hook_none(void)
{
    const ULONG bad = 0xfff;
    return event_list(&first, &bad, 1);
}

/* A list stays until its session ends. */
static void restart_first(void)
{
    end_first();
    begin_first();
}

static NTSTATUS branch_first(void) { return session_branches(&first, 0); }
static NTSTATUS branch_wrongly(void) { return session_branches(&first, 0x8000); }

static NTSTATUS configure_samples(const ULONG *sources, ULONG count)
{
    return session_list(EventTraceProfileConfigInformation, first.trace, sources, count);
}

static const ULONG sampled[] = { ProfileTotalIssues, ProfileBranchInstructions },
                   sampled_next[] = { ProfileBranchInstructions, ProfileTotalIssues };
static unsigned sampled_count; /* sources that a counter samples by now */

static NTSTATUS sample_first(void)
{
    NTSTATUS status = session_mask(&first, PERF_PMC_PROFILE, 0);
    sampled_count = NT_SUCCESS(status) ? 2 : sampled_count;
    return status;
}

static void sample_no_more(void)
{
    CHECK_OK(session_mask(&first, 0, 0));
    sampled_count = 0;
}

static void make_sampled(void)
{
    begin_first();
    CHECK_OK(configure_samples(sampled, 2));
}

static void end_sampled(void)
{
    CHECK_OK(configure_samples(NULL, 0));
    end_first();
}

static void make_sampling(void)
{
    begin_first();
    CHECK_OK(configure_samples(sampled, 1));
    CHECK_OK(sample_first());
    sampled_count = 1;
}

static void end_sampling(void)
{
    sample_no_more();
    end_sampled();
}

static NTSTATUS sample_next(void)
{
    NTSTATUS status = configure_samples(sampled_next, 2);
    sampled_count = NT_SUCCESS(status) ? 2 : sampled_count;
    return status;
}

static void sample_as_before(void)
{
    CHECK_OK(configure_samples(sampled, 1));
    sampled_count = 1;
}

static NTSTATUS sample_none(void) { return configure_samples(&(const ULONG){ ProfileTime }, 1); }

static bool is_sampled(ULONG by)
{
    for (unsigned ctr = 0; ctr < 64; ctr++)
        if (hal_counter_source(ctr, 0) == (KPROFILE_SOURCE)by)
            return true;
    return false;
}

/* Events, and samples by these sources alone, also when another session begins and ends. */
static void use_sampling(void)
{
    for (unsigned turn = 0; turn < 2; turn++) {
        for (unsigned i = 0; i < 2; i++)
            CHECK_EQ(is_sampled(sampled[i]), i < sampled_count);
        if (!turn)
            CHECK_OK(start_second());
    }
    stop_second();
    use_first_session();
}

/* --- Events. --- */

static NTSTATUS send_first(void) { return send_to(&first); }

static void take_event(void) { take_events(&first); }

static NTSTATUS send_nobody(void) { return send_to(&(struct session){ .trace = 0x3f }); }

#define FIRST .make = begin_first, .unmake = end_first, .use = use_first_session
#define NO_MEMORY .may = { STATUS_NO_MEMORY }
#define FULL .may = { STATUS_INSUFFICIENT_RESOURCES }
static const struct refusal_row sessions[] = {
    { "EtwStartLoggerCode", start_second, stop_second, .least = 5,
      .may = { STATUS_NO_MEMORY, STATUS_INSUFFICIENT_RESOURCES }, FIRST,
      .others = { { start_second, STATUS_OBJECT_NAME_COLLISION },
                  { start_first_again, STATUS_OBJECT_NAME_COLLISION },
                  { start_without_mode, STATUS_INVALID_PARAMETER },
                  { start_unnamed, STATUS_INVALID_PARAMETER } } },
    { "EtwRealtimeConnectCode", connect_second, disconnect_second, .least = 1, FULL,
      .make = make_unread, .unmake = end_unread, .use = use_first_session,
      .others = { { connect_second, STATUS_DEVICE_BUSY },
                  { connect_first, STATUS_DEVICE_BUSY },
                  { connect_none, STATUS_WMI_INSTANCE_NOT_FOUND } } },
    { "NtTraceEvent", send_first, take_event, .least = 1, NO_MEMORY, FIRST,
      .others = { { send_nobody, STATUS_INVALID_HANDLE } } },
};

TEST(etw_refused, sessions,
     "whatever a session, its consumer or an event lacks, it is refused, keeps nothing, and the "
     "first session gets its events as before [ET-69]")
{
    refuse_each(sessions, ARRAY_SIZE(sessions));
}

static const struct refusal_row lists[] = {
    { "a list of events", hook_first, restart_first, .least = 1, NO_MEMORY, FIRST,
      .others = { { hook_first, STATUS_WMI_ALREADY_ENABLED },
                  { hook_none, STATUS_NOT_SUPPORTED },
                  { count_none, STATUS_NOT_SUPPORTED } } },
    { "a list of counters", count_first, restart_first, .least = 2,
      .may = { STATUS_NO_MEMORY, STATUS_INSUFFICIENT_RESOURCES }, FIRST,
      .others = { { count_first, STATUS_WMI_ALREADY_ENABLED } } },
    { "samples by counters", sample_first, sample_no_more, .least = 4,
      .may = { STATUS_DEVICE_BUSY }, .make = make_sampled, .unmake = end_sampled,
      .use = use_sampling },
    { "samples by other counters", sample_next, sample_as_before, .least = 4,
      .may = { STATUS_DEVICE_BUSY }, .make = make_sampling, .unmake = end_sampling,
      .use = use_sampling, .others = { { sample_none, STATUS_NOT_SUPPORTED } } },
};

TEST(etw_refused, counters,
     "whatever a session's counters or samples lack, they are refused, keep nothing, and the "
     "session goes on as before [slow]")
{
    SKIP_WITHOUT_PMU();
    if (!hal_source_supported(ProfileTotalIssues) ||
        !hal_source_supported(ProfileBranchInstructions))
        SKIP("no counter counts instructions");
    refuse_each(lists, ARRAY_SIZE(lists));
}

static const struct refusal_row branches[] = {
    { "last branches", branch_first, restart_first, .least = 1, .may = { STATUS_DEVICE_BUSY },
      FIRST, .others = { { branch_wrongly, STATUS_INVALID_PARAMETER } } },
};

TEST(etw_refused, branches,
     "without the processor's list of branches a session is refused it, and has its events")
{
    SKIP_IF(!hal_branches_can(0), "no last-branch records");
    refuse_each(branches, ARRAY_SIZE(branches));
}
