/* SPDX-License-Identifier: MIT */
/* NtTraceControl: start and stop of sessions, their consumers, and every refusal. */
#include "kernel/ke/etw_stream.h"
#include "kernel/ke/object.h"
#include "tests/harness/etw.h"
#include "tests/harness/kernel.h"

static NTSTATUS stop_by_name(const char *name)
{
    struct session_info d;
    session_describe(&d, name);
    return session_control(EtwStopLoggerCode, &d);
}

/* What stands at an offset of a description that could start a session. */
static const struct refusal {
    size_t offset;
    ULONG value;
    NTSTATUS status;
} refusals[] = {
#define AT(field) offsetof(WMI_LOGGER_INFORMATION, field)
#define SWAP EVENT_TRACE_FLAG_CSWITCH
    { AT(Wnode.Flags), 0, STATUS_INVALID_PARAMETER },
    { AT(LogFileMode), EVENT_TRACE_SYSTEM_LOGGER_MODE, STATUS_INVALID_PARAMETER },
    /* EVENT_TRACE_FILE_MODE_SEQUENTIAL */
    { AT(LogFileMode), SESSION_MODE | 1, STATUS_NOT_SUPPORTED },
    /* events that nothing here writes */
    { AT(EnableFlags), SWAP | EVENT_TRACE_FLAG_DISK_IO, STATUS_NOT_SUPPORTED },
    { AT(EnableFlags), SWAP | EVENT_TRACE_FLAG_DISK_FILE_IO, STATUS_NOT_SUPPORTED },
    { AT(EnableFlags), SWAP | EVENT_TRACE_FLAG_VAMAP, STATUS_NOT_SUPPORTED },
    { AT(EnableFlags), SWAP | EVENT_TRACE_FLAG_MEMORY_PAGE_FAULTS, STATUS_NOT_SUPPORTED },
    { AT(EnableFlags), SWAP | EVENT_TRACE_FLAG_MEMORY_HARD_FAULTS, STATUS_NOT_SUPPORTED },
    { AT(EnableFlags), SWAP | EVENT_TRACE_FLAG_NETWORK_TCPIP, STATUS_NOT_SUPPORTED },
    { AT(EnableFlags), SWAP | EVENT_TRACE_FLAG_REGISTRY, STATUS_NOT_SUPPORTED },
};

static const char *const bad_names[] = {
    "", "a name of sixty-four characters, one more than there may be: 123"
};

TEST(etw_control, start_refusals, "each reason for which a start is refused leaves the name unused")
{
    struct session_info d;
    ULONG n;
    session_describe(&d, SESSION_NAME);
    for (ULONG less = 0; less < 2; less++) /* either length */
        CHECK_STATUS(NtTraceControl(EtwStartLoggerCode, &d.info, sizeof d.info - less, &d.info,
                                    sizeof d.info - !less, &n),
                     STATUS_INFO_LENGTH_MISMATCH);
    for (unsigned i = 0; i < ARRAY_SIZE(refusals); i++) {
        session_describe(&d, SESSION_NAME);
        memcpy((uint8_t *)&d.info + refusals[i].offset, &refusals[i].value, sizeof(ULONG));
        if (!CHECK_STATUS(session_control(EtwStartLoggerCode, &d), refusals[i].status))
            test_note("row %u", i);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(bad_names); i++) {
        session_describe(&d, bad_names[i]);
        CHECK_STATUS(session_control(EtwStartLoggerCode, &d), STATUS_INVALID_PARAMETER);
    }
    session_describe(&d, SESSION_NAME);
    d.info.LoggerName.Length--;
    CHECK_STATUS(session_control(EtwStartLoggerCode, &d), STATUS_INVALID_PARAMETER);
    session_describe(&d, SESSION_NAME);
    d.name[3] = 0x20ac;
    CHECK_STATUS(session_control(EtwStartLoggerCode, &d), STATUS_INVALID_PARAMETER);
    static const struct {
        ULONG mode;
        NTSTATUS status;
    } of_files[] = { /* a circular one needs a size */
                     { SESSION_MODE, STATUS_NOT_SUPPORTED },
                     { EVENT_TRACE_FILE_MODE_SEQUENTIAL, STATUS_NOT_SUPPORTED },
                     { EVENT_TRACE_FILE_MODE_CIRCULAR, STATUS_INVALID_PARAMETER },
                     { EVENT_TRACE_FILE_MODE_CIRCULAR | EVENT_TRACE_FILE_MODE_SEQUENTIAL,
                       STATUS_INVALID_PARAMETER }
    };
    for (unsigned i = 0; i < ARRAY_SIZE(of_files); i++) {
        session_describe(&d, SESSION_NAME);
        d.info.LogFileName = d.info.LoggerName;
        d.info.LogFileMode = of_files[i].mode;
        CHECK_STATUS(session_control(EtwStartLoggerCode, &d), of_files[i].status);
    }
    session_describe(&d, SESSION_NAME);
    d.info.LogFileMode = EVENT_TRACE_REAL_TIME_MODE; /* of system loggers alone */
    d.info.EnableFlags = SWAP;
    CHECK_STATUS(session_control(EtwStartLoggerCode, &d), STATUS_INVALID_PARAMETER);
    session_describe(&d, SESSION_NAME);
    d.info.BufferSize = 1024;
    d.info.MaximumBuffers = 17 * cpu_count; /* 16 MB may be */
    CHECK_STATUS(session_control(EtwStartLoggerCode, &d), STATUS_NO_MEMORY);
    CHECK_STATUS(stop_by_name(SESSION_NAME), STATUS_WMI_INSTANCE_NOT_FOUND);
}

static void buffers(ULONG each_kb, ULONG count)
{
    struct session_info d;
    session_describe(&d, SESSION_NAME);
    d.info.BufferSize = each_kb;
    d.info.MaximumBuffers = count * cpu_count;
    CHECK_STATUS(session_control(EtwStartLoggerCode, &d), STATUS_SUCCESS);
    CHECK_EQ(d.info.NumberOfBuffers, count * cpu_count);
    CHECK_STATUS(stop_by_name(SESSION_NAME), STATUS_SUCCESS);
}

TEST(etw_control, most,
     "a session may have 16 MB, and as many processors as there are four buffers of 128 KB each "
     "[slow]")
{
    SKIP_IF(phys_free_pages() * PAGE_SIZE < 2 * etw_memory_max(), "the machine has little memory");
    buffers(128, 4);
    if (cpu_count <= 8) /* each has two buffers at least */
        buffers(1024, 16 / cpu_count);
}

TEST(etw_control, many,
     "eight sessions and the kernel logger run at once, each with its own handle; a ninth and a "
     "name in use are refused")
{
    struct session_info d[10];
    char name[] = "session 0";
    for (unsigned i = 0; i < 9; i++) {
        name[8] = (char)('0' + i);
        session_describe(&d[i], name);
        d[i].info.BufferSize = 4;
        CHECK_STATUS(session_control(EtwStartLoggerCode, &d[i]),
                     i < 8 ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES);
        for (unsigned j = 0; i < 8 && j < i; j++)
            CHECK(d[i].info.Wnode.HistoricalContext != d[j].info.Wnode.HistoricalContext);
    }
    session_describe(&d[8], "session 3");
    CHECK_STATUS(session_control(EtwStartLoggerCode, &d[8]), STATUS_OBJECT_NAME_COLLISION);
    session_describe(&d[9], "whatever");
    d[9].info.Wnode.Guid = (GUID)SYSTEM_TRACE_CONTROL_GUID;
    d[9].info.LogFileMode = EVENT_TRACE_REAL_TIME_MODE;
    CHECK_STATUS(session_control(EtwStartLoggerCode, &d[9]), STATUS_SUCCESS);
    CHECK_EQ(d[9].info.Wnode.HistoricalContext, KERNEL_LOGGER_ID);
    CHECK_STATUS(session_control(EtwStartLoggerCode, &d[9]), STATUS_OBJECT_NAME_COLLISION);
    CHECK_STATUS(stop_by_name(KERNEL_LOGGER_NAME), STATUS_SUCCESS);
    for (unsigned i = 0; i < 8; i++) {
        name[8] = (char)('0' + i);
        CHECK_STATUS(stop_by_name(name), STATUS_SUCCESS);
        CHECK_STATUS(stop_by_name(name), STATUS_WMI_INSTANCE_NOT_FOUND);
    }
}

TEST(etw_control, consumers,
     "a read needs space for a buffer, and a consumer's handle; a stopped session can still be "
     "read")
{
    struct session s;
    struct session_info d;
    ULONG n;
    HANDLE thread = NtCurrentThread();
    uint8_t *bytes = phys_alloc(SESSION_PAGES);
    REQUIRE(bytes && session_start(&s, 8, 8));
    TRACE_CONSUMER consumer;
    CHECK_STATUS(NtTraceControl(EtwRealtimeConnectCode, &s.trace, 7, &consumer, 16, &n),
                 STATUS_INFO_LENGTH_MISMATCH);
    CHECK_STATUS(NtTraceControl(EtwRealtimeConnectCode, &s.trace, 8, &consumer, 15, &n),
                 STATUS_INFO_LENGTH_MISMATCH);
    CHECK_STATUS(NtTraceControl(EtwRealtimeReadCode, &s.consumer, 7, bytes, 8192, &n),
                 STATUS_INFO_LENGTH_MISMATCH);
    CHECK_STATUS(session_read(&s, bytes, 8191, &n), STATUS_BUFFER_TOO_SMALL);
    CHECK_STATUS(session_read(&s, bytes, 8192, &n), STATUS_SUCCESS);
    CHECK_EQ(n, 0);
    CHECK_STATUS(NtTraceControl(EtwRealtimeReadCode, &thread, 8, bytes, 8192, &n),
                 STATUS_OBJECT_TYPE_MISMATCH);
    CHECK_STATUS(NtTraceControl(EtwRealtimeDisconnectCode, &thread, 8, NULL, 0, NULL),
                 STATUS_OBJECT_TYPE_MISMATCH);
    session_close(&s);
    CHECK(session_connect(&s));
    CHECK_EQ(s.frequency, clock_tsc_hz);
    CHECK_STATUS(session_mask(&s, PERF_THREAD, 0), STATUS_SUCCESS);
    etw_thread(ETW_THREAD_CREATE, thread_current());
    session_stop(&s);
    /* The name is free, the old session still exists for its consumer. */
    session_describe(&d, SESSION_NAME);
    CHECK_STATUS(session_control(EtwStartLoggerCode, &d), STATUS_SUCCESS);
    CHECK_STATUS(session_read(&s, bytes, SESSION_BYTES, &n), STATUS_SUCCESS);
    struct records all = records_of(bytes, n);
    CHECK(next_record(&all).header != NULL);
    CHECK_STATUS(session_read(&s, bytes, SESSION_BYTES, &n), STATUS_WMI_INSTANCE_NOT_FOUND);
    session_close(&s);
    CHECK_STATUS(stop_by_name(SESSION_NAME), STATUS_SUCCESS);
    phys_free(bytes, SESSION_PAGES);
}

TEST(etw_control, queries, "unknown codes and lengths are refused; each CPU's owners are listed")
{
    uint32_t space[200];
    ULONG n = 0;
    for (ULONG code = 0; code < 0x200; code++)
        if (code > 5 && code != 11 && code != 14 && code != 43 && code != 45 && code != 46 &&
            code != EtwRealtimeReadCode)
            CHECK_STATUS(NtTraceControl(code, space, sizeof space, space, sizeof space, &n),
                         STATUS_NOT_IMPLEMENTED);
    CHECK_STATUS(NtTraceControl(EtwPmcOwnersQueryCode, space, 3, space, sizeof space, &n),
                 STATUS_INFO_LENGTH_MISMATCH);
    for (ULONG cpu = 0; cpu < cpu_count; cpu++) {
        CHECK_OK(NtTraceControl(EtwPmcOwnersQueryCode, &cpu, 4, space, sizeof space, &n));
        CHECK_EQ(space[1], bit_count(pmu_of(cpu)->counters));
    }
}

TEST(etw_control, restricted, "a restricted caller is refused every operation on a session [ET-11]")
{
    struct session s;
    struct process *process = user_process();
    REQUIRE(process && session_start(&s, 4, 4));
    process->restricted = true;
    user_finish(process, user_start(process, user_trace_denied, s.trace));
    CHECK_EQ(session_stop(&s), 0);
    session_close(&s);
}

TEST(etw_control, left,
     "a consumer process that ends leaves its session running, and another process can read it")
{
    struct session s;
    struct session_info d;
    session_describe(&d, SESSION_NAME);
    REQUIRE_STATUS(session_control(EtwStartLoggerCode, &d), STATUS_SUCCESS);
    s.trace = d.info.Wnode.HistoricalContext;
    user_run(user_trace_left, s.trace);
    REQUIRE(session_connect(&s));
    CHECK_EQ(session_stop(&s), 0);
    session_close(&s);
    user_run(user_trace_left, 0); /* its own session: stopped, not closed */
}

/* Interrupts off. How often a record reached beyond its buffer. */
static unsigned fill_buffers(struct etw_stream *stream, enum etw_hook hook)
{
    unsigned beyond = 0;
    while (etw_begin(stream, hook))
        beyond += stream->at > stream->end;
    return beyond;
}

TEST(etw_control, fits, "no record of any kind reaches beyond its buffer")
{
    for (unsigned hook = 0; hook < ETW_HOOKS; hook++) {
        struct etw_stream *stream = etw_stream_create(cpu_number(), 1, 2, PAGE_SIZE);
        REQUIRE(stream != NULL);
        uint64_t flags = read_flags();
        cli();
        unsigned beyond = fill_buffers(stream, (enum etw_hook)hook);
        write_flags(flags);
        CHECK_EQ(beyond, 0);
        CHECK(stream->head > 0);
        etw_stream_free(stream);
    }
}

TEST(etw_control, in_turn,
     "a reader with space for one buffer gets one of each processor before a second one of any")
{
    struct session s;
    struct thread never = { .id = 1 };
    unsigned got[MAX_CPUS] = { 0 };
    ULONG n;
    SKIP_BELOW_CPUS(2);
    uint8_t *bytes = phys_alloc(SESSION_PAGES);
    REQUIRE(bytes && session_start(&s, 4, 4 * cpu_count));
    CHECK_STATUS(session_mask(&s, PERF_THREAD, 0), STATUS_SUCCESS);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        test_run_on(cpu);
        for (unsigned i = 0; i < 150; i++) /* three buffers and more */
            etw_thread(ETW_THREAD_CREATE, &never);
    }
    for (unsigned round = 1; round <= 2; round++) {
        for (unsigned i = 0; i < cpu_count; i++) {
            CHECK_STATUS(session_read(&s, bytes, 4096, &n), STATUS_SUCCESS);
            got[((const WMI_BUFFER_HEADER *)(void *)bytes)->ClientContext.ProcessorIndex]++;
        }
        for (unsigned cpu = 0; cpu < cpu_count; cpu++)
            CHECK_EQ(got[cpu], round);
    }
    const ULONG two = 2 * n; /* which fit exactly */
    CHECK_STATUS(session_read(&s, bytes, two, &n), STATUS_SUCCESS);
    CHECK_EQ(n, two);
    session_stop(&s);
    session_close(&s);
    phys_free(bytes, SESSION_PAGES);
}
