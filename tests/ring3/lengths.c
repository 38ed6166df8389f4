/* SPDX-License-Identifier: MIT */
/* Services that take or answer a structure: every length but its own, and every byte of the answer.
 * Structures that say their own size: each size against each length that is given. */
#include "tests/ring3/etw.h"

#define MOST 256u /* bytes of a structure */
#define NONE 0x80000000u
#define ME NtCurrentThread()
#define US NtCurrentProcess()
/* That mingw-w64 does not name. */
#define CYCLES 23
#define GROUP_INFORMATION 30

NTSTATUS ZwQueryInformationProcess(HANDLE, ULONG, PVOID, ULONG, PULONG);
NTSTATUS ZwTraceEvent(HANDLE, ULONG, ULONG, PVOID);

static HANDLE an_event;
static struct session session;
static THREAD_PERFORMANCE_DATA block;
static uint8_t *end; /* of memory: no byte follows */

/* --- Queries. --- */

typedef NTSTATUS service(HANDLE of, ULONG class, PVOID to, ULONG length, PULONG n);

#define SERVICE(name, ...)                                                                         \
    static NTSTATUS name(HANDLE of, ULONG class, PVOID to, ULONG length, PULONG n)                 \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }

SERVICE(of_thread, NtQueryInformationThread(of, (THREADINFOCLASS) class, to, length, n))
SERVICE(of_system, ZwQuerySystemInformation(class, to, length, n))
SERVICE(of_traces, ZwTraceControl(class, NULL, 0, to, length, n))

static NTSTATUS of_memory(HANDLE of, ULONG class, PVOID to, ULONG length, PULONG n)
{
    SIZE_T size = *n;
    NTSTATUS status = NtQueryVirtualMemory(of, &block, class, to, length, &size);
    *n = (ULONG)size;
    return status;
}

/* What so many first bytes say is asked for. */
static NTSTATUS of_class(HANDLE of, ULONG sub_class, PVOID to, ULONG length, PULONG n)
{
    const ULONG first = sub_class == EventTraceGroupMaskInformation ? 16 : 4;
    const struct {
        ULONG sub_class, spare;
        TRACEHANDLE trace;
    } head = { sub_class, 0, session.trace };
    memcpy(to, &head, length < first ? length : first);
    return ZwQuerySystemInformation(SystemPerformanceTraceInformation, to, length, n);
}

static const HANDLE me = ME, us = US;

static const struct query {
    const char *name;
    service *ask;
    ULONG class, size;
    const HANDLE *of;  /* NULL: of no object */
    bool longer;       /* is taken too */
    ULONG from, until; /* no field: 0 */
} queries[] = {
    { "thread basic", of_thread, ThreadBasicInformation, sizeof(THREAD_BASIC_INFORMATION), &me,
      false, 4, 8 },
    { "thread times", of_thread, ThreadTimes, sizeof(KERNEL_USER_TIMES), &me, false, 0, 0 },
    { "thread cycles", of_thread, CYCLES, 16, &me, false, 0, 0 },
    { "thread group", of_thread, GROUP_INFORMATION, sizeof(GROUP_AFFINITY), &me, false, 10, 16 },
    { "thread profiled", of_thread, ThreadCounterProfiling, 1, &me, false, 0, 0 },
    { "process basic", ZwQueryInformationProcess, 0, 0x30, &us, false, 4, 8 },
    { "process times", ZwQueryInformationProcess, 4, sizeof(KERNEL_USER_TIMES), &us, false, 0, 0 },
    { "process cycles", ZwQueryInformationProcess, 38, 16, &us, false, 0, 0 },
    { "memory usage", of_system, SystemMemoryUsageInformation, 0x38, NULL, false, 0, 0 },
    { "most counters", of_traces, EtwMaxPmcCounterQueryCode, 4, NULL, true, 0, 0 },
    { "memory basic", of_memory, 0, sizeof(MEMORY_BASIC_INFORMATION), &us, true, 44, 48 },
    { "group mask", of_class, EventTraceGroupMaskInformation,
      sizeof(EVENT_TRACE_GROUPMASK_INFORMATION), NULL, false, 4, 8 },
    { "time profile", of_class, EventTraceTimeProfileInformation, 8, NULL, false, 0, 0 },
};

static NTSTATUS asked(const struct query *q, PVOID to, ULONG length, PULONG n)
{
    return q->ask(q->of ? *q->of : NULL, q->class, to, length, n);
}

/* Right but for one cause. */
static void refused_by(const struct query *q, HANDLE of, ULONG class, NTSTATUS status)
{
    ULONG n = NONE;
    uint8_t *to = end - q->size;
    memset(to, FILL, q->size);
    if (!CHECK_STATUS(q->ask(of, class, to, q->size, &n), status) |
        !CHECK(ring3_all(to, q->size, FILL) && n == NONE))
        test_note("%s, class %u", q->name, class);
}

static void refused_causes(const struct query *q)
{
    static const ULONG classes[] = { 0x40, 0x1000, 0x80000000, 0xffffffff };
    for (unsigned i = 0; i < ARRAYSIZE(classes) && q->ask != of_traces && q->ask != of_class; i++) {
        refused_by(q, q->of ? *q->of : NULL, classes[i], STATUS_INVALID_INFO_CLASS);
        CHECK_STATUS(NtSetInformationThread(ME, (THREADINFOCLASS)classes[i], end, 0),
                     STATUS_INVALID_INFO_CLASS);
    }
    if (!q->of)
        return;
    HANDLE poor = ring3_limited(*q->of, SYNCHRONIZE);
    refused_by(q, NULL, q->class, STATUS_INVALID_HANDLE);
    refused_by(q, (HANDLE)0x7777, q->class, STATUS_INVALID_HANDLE);
    refused_by(q, an_event, q->class, STATUS_OBJECT_TYPE_MISMATCH);
    refused_by(q, poor, q->class, STATUS_ACCESS_DENIED);
    CHECK(CloseHandle(poor));
}

static const uint8_t fills[] = { 0x5a, 0xa5 };

/* Bytes of the structure that are what they were, and of what is no field that are not 0. */
static void check_answer(const struct query *q, uint8_t answers[2][MOST])
{
    unsigned kept = 0, left = 0;
    for (ULONG i = 0; i < q->size; i++)
        if (i >= q->from && i < q->until)
            left += answers[0][i] || answers[1][i];
        else
            kept += answers[0][i] == fills[0] && answers[1][i] == fills[1];
    if (!CHECK_EQ(kept, 0) || !CHECK_EQ(left, 0))
        test_note("%s: %u bytes are not written, %u are something", q->name, kept, left);
}

static bool refused_lengths(const struct query *q)
{
    const ULONG lengths[] = { 0, 1, q->size - 1, q->size + 1, 0x7fffffff, 0xffffffff };
    bool ok = true;
    for (unsigned i = 0; i < ARRAYSIZE(lengths); i++) {
        ULONG n = NONE;
        uint8_t *to = end - MOST;
        bool right = lengths[i] == q->size || (q->longer && lengths[i] > q->size);
        memset(to, FILL, MOST);
        ok &= CHECK_STATUS(asked(q, to, lengths[i], &n),
                           right ? STATUS_SUCCESS : STATUS_INFO_LENGTH_MISMATCH);
        ok &= CHECK(right || n == NONE || n == 0 || n == q->size);
        ok &= CHECK(ring3_all(to + q->size, MOST - q->size, FILL));
    }
    return ok;
}

/* Those that read nothing of the caller's, answered into memory that is none, or is read-only. */
static bool refused_places(const struct query *q)
{
    static const ULONG read_only = 0;
    bool ok = true, reads = q->ask == of_memory || q->ask == of_class;
    for (unsigned i = 0; i < RING3_BAD_ADDRESSES && !reads; i++) {
        PVOID bad = i ? (PVOID)ring3_bad_addresses[i] : (PVOID)(uint64_t)&read_only;
        ok &= CHECK_STATUS(asked(q, bad, q->size, NULL), STATUS_ACCESS_VIOLATION);
        ok &= CHECK_STATUS(asked(q, end - q->size, q->size, bad), STATUS_ACCESS_VIOLATION);
    }
    return ok;
}

static void check_query(const struct query *q)
{
    uint8_t answers[2][MOST];
    bool ok = refused_lengths(q) & refused_places(q);
    for (unsigned i = 0; i < 2; i++) {
        ULONG n = NONE;
        uint8_t *to = end - q->size; /* no byte more is there */
        memset(end - MOST, fills[i], MOST);
        ok &= CHECK_OK(asked(q, to, q->size, &n));
        ok &= CHECK_EQ(n, q->size);
        ok &= CHECK(ring3_all(end - MOST, MOST - q->size, fills[i]));
        memcpy(answers[i], to, q->size);
    }
    if (!ok)
        test_note("%s", q->name);
    check_answer(q, answers);
    refused_causes(q);
}

static bool make_objects(void)
{
    end = ring3_pages(1);
    return CHECK(end) && (end += RING3_PAGE) &&
           CHECK_OK(ZwCreateEvent(&an_event, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE)) &&
           session_start(&session, 4, 16);
}

static void close_objects(void)
{
    session_stop(&session);
    session_close(&session);
    CHECK(CloseHandle(an_event));
}

TEST_USER(
    lengths, answers,
    "each query takes the length of its structure and writes all of it and nothing else; what "
    "is no field is 0; an answer without a place, another class, handle, type of object or right "
    "is refused as what it is [TP-92 TP-93 ET-35]")
{
    REQUIRE(make_objects());
    for (const struct query *q = queries; q < queries + ARRAYSIZE(queries); q++)
        check_query(q);
    close_objects();
}

/* --- A structure that says its size, and the length that is given with it. --- */

static struct session_info started;

static NTSTATUS start_sized(ULONG given, ULONG says)
{
    session_describe(&started, "sized");
    started.info.Wnode.BufferSize = says;
    uint8_t *in = end - sizeof started.info;
    memcpy(in, &started.info, sizeof started.info);
    ULONG n = 0;
    return ZwTraceControl(EtwStartLoggerCode, in, given, &started.info, sizeof started.info, &n);
}

static NTSTATUS start_says(ULONG given, ULONG says)
{
    const ULONG least = sizeof(WMI_LOGGER_INFORMATION);
    return given < least || says < least ? STATUS_INFO_LENGTH_MISMATCH : STATUS_SUCCESS;
}

static void stop_sized(void)
{
    session_describe(&started, "sized");
    CHECK_OK(session_control(EtwStopLoggerCode, &started));
}

#define EVENT_SIZE (sizeof(EVENT_TRACE_HEADER) + 40)

static NTSTATUS send_sized(ULONG given, ULONG says)
{
    EVENT_TRACE_HEADER event = { .Size = (USHORT)says, .Flags = WNODE_FLAG_TRACED_GUID };
    memset(end - EVENT_SIZE, 0, EVENT_SIZE);
    memcpy(end - EVENT_SIZE, &event, sizeof event);
    return ZwTraceEvent((HANDLE)session.trace, ETW_NT_FLAGS_TRACE_HEADER, given, end - EVENT_SIZE);
}

static NTSTATUS send_says(ULONG given, ULONG says)
{
    if (given < sizeof(EVENT_TRACE_HEADER) || given > 0xffff)
        return STATUS_INVALID_PARAMETER;
    if (given > EVENT_SIZE)
        return STATUS_ACCESS_VIOLATION;
    return given == says ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}

static NTSTATUS read_sized(ULONG given, ULONG says)
{
    PERFORMANCE_DATA *data = (PERFORMANCE_DATA *)(void *)(end - sizeof *data);
    ring3_data(data);
    data->Size = (USHORT)says;
    return given == sizeof *data ? ZwReadThreadProfilingData(&block, 0, data)
                                 : RtlReadThreadProfilingData(&block, 0, data);
}

static NTSTATUS read_says(ULONG given, ULONG says)
{
    return says == sizeof(PERFORMANCE_DATA) ? STATUS_SUCCESS : STATUS_INVALID_BUFFER_SIZE;
}

static NTSTATUS create_sized(ULONG given, ULONG says)
{
    OBJECT_ATTRIBUTES a = { .Length = says };
    HANDLE made = NULL;
    NTSTATUS status = ZwCreateEvent(&made, EVENT_ALL_ACCESS, &a, NotificationEvent, FALSE);
    return made ? NtClose(made) : status;
}

static NTSTATUS create_says(ULONG given, ULONG says)
{
    return says == sizeof(OBJECT_ATTRIBUTES) ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}

static NTSTATUS set_thread(ULONG class, const void *info, ULONG size, ULONG given)
{
    memcpy(end - size, info, size);
    return NtSetInformationThread(ME, (THREADINFOCLASS) class, end - size, given);
}

#define SET(name, class, ...)                                                                      \
    static NTSTATUS name(ULONG given, ULONG unused)                                                \
    {                                                                                              \
        return set_thread(class, &(__VA_ARGS__), sizeof(__VA_ARGS__), given);                      \
    }

SET(set_priority, ThreadBasePriority, (LONG){ 0 })
SET(set_affinity, ThreadAffinityMask, (KAFFINITY){ 1 })
SET(set_group, GROUP_INFORMATION, (GROUP_AFFINITY){ .Mask = 1 })
SET(set_profiling, ThreadCounterProfiling, (THREAD_PROFILING_INFORMATION){ 0, 0, FALSE, &block })

static void profile_again(void) { CHECK_OK(ring3_set(0, 0, TRUE, &block)); }

static NTSTATUS set_mask(ULONG given, ULONG unused)
{
    const EVENT_TRACE_GROUPMASK_INFORMATION info = { EventTraceGroupMaskInformation,
                                                     session.trace,
                                                     { { 0 } } };
    memcpy(end - sizeof info, &info, sizeof info);
    return ZwSetSystemInformation(SystemPerformanceTraceInformation, end - sizeof info, given);
}

static const struct sized {
    const char *name;
    ULONG size, most; /* what the field can say; 0: there is none */
    NTSTATUS (*call)(ULONG given, ULONG says);
    NTSTATUS (*wanted)(ULONG given, ULONG says); /* NULL: it has one length */
    void (*undo)(void);
} structures[] = {
    { "WMI_LOGGER_INFORMATION", sizeof(WMI_LOGGER_INFORMATION), ~0u, start_sized, start_says,
      stop_sized },
    { "EVENT_TRACE_HEADER", EVENT_SIZE, 0xffff, send_sized, send_says, NULL },
    { "PERFORMANCE_DATA", sizeof(PERFORMANCE_DATA), 0xffff, read_sized, read_says, NULL },
    { "OBJECT_ATTRIBUTES", sizeof(OBJECT_ATTRIBUTES), ~0u, create_sized, create_says, NULL },
    { "THREAD_PROFILING_INFORMATION", sizeof(THREAD_PROFILING_INFORMATION), 0, set_profiling, NULL,
      profile_again },
    { "a priority", sizeof(LONG), 0, set_priority, NULL, NULL },
    { "KAFFINITY", sizeof(KAFFINITY), 0, set_affinity, NULL, NULL },
    { "GROUP_AFFINITY", sizeof(GROUP_AFFINITY), 0, set_group, NULL, NULL },
    { "EVENT_TRACE_GROUPMASK_INFORMATION", sizeof(EVENT_TRACE_GROUPMASK_INFORMATION), 0, set_mask,
      NULL, NULL },
};

static NTSTATUS wanted_of(const struct sized *s, ULONG given, ULONG says)
{
    if (s->wanted)
        return s->wanted(given, says);
    return given == s->size ? STATUS_SUCCESS : STATUS_INFO_LENGTH_MISMATCH;
}

static void check_sized(const struct sized *s)
{
    const ULONG sizes[] = { 0,           1,           s->size / 2, s->size - 1, s->size,
                            s->size + 1, s->size + 8, 0xffff,      0xffffffff };
    for (unsigned i = 0; i < ARRAYSIZE(sizes); i++)
        for (unsigned j = 0; j < (s->most ? ARRAYSIZE(sizes) : 1); j++) {
            ULONG given = sizes[i], says = sizes[j] & s->most;
            NTSTATUS status = s->call(given, says);
            if (!CHECK_STATUS(status, wanted_of(s, given, says)))
                test_note("%s: %u bytes, which say %u", s->name, given, says);
            if (NT_SUCCESS(status) && s->undo)
                s->undo();
        }
}

TEST_USER(lengths, sizes,
          "a structure that says its size is taken if that is right and so many bytes are given; "
          "each other pair has the status of its cause, and no event has bytes that were not given "
          "[TP-86]")
{
    ULONG n = 0;
    REQUIRE(make_objects());
    CHECK_OK(ring3_set(0, 0, TRUE, &block));
    for (const struct sized *s = structures; s < structures + ARRAYSIZE(structures); s++)
        check_sized(s);
    CHECK_OK(ring3_set(0, 0, FALSE, &block));
    CHECK_OK(session_flush(&session));
    CHECK_OK(session_read(&session, end - RING3_PAGE, RING3_PAGE, &n));
    struct records all = records_of(end - RING3_PAGE, n);
    for (ULONG size = EVENT_SIZE - 1; size <= EVENT_SIZE; size++) { /* both that are right */
        struct record event = next_record(&all);
        REQUIRE(event.header != NULL);
        CHECK_EQ(trace_record_size(event.header), size);
        CHECK(ring3_all(event.payload, event.size, 0));
    }
    CHECK(!next_record(&all).header);
    close_objects();
}

/* --- Fields that stand elsewhere: the lengths of all, and how many the size says there are. --- */

#define FIELDS 17u                                          /* one more than is looked at */
#define MOST_BYTES (4096 - 72 - sizeof(EVENT_TRACE_HEADER)) /* of a session's buffer of 4 KB */

static uint8_t pattern[0x10000 + 3 * FIELDS];

static const GUID class_of_fields = { 1, 2, 3, { 4, 5, 6, 7, 8, 9, 10, 11 } };

static const struct fields {
    ULONG size; /* behind the header */
    ULONG lengths[FIELDS];
    ULONG error, taken; /* fields */
} fields[] = {
    { 0, { 5 }, ERROR_SUCCESS, 0 },
    { 15, { 5 }, ERROR_SUCCESS, 0 },
    { 16, { 5 }, ERROR_SUCCESS, 1 },
    { 31, { 5, 1 }, ERROR_SUCCESS, 1 },
    { 16 * 4, { 0, 3, 0, 8 }, ERROR_SUCCESS, 4 },
    { 16 * 16, { [0 ... 15] = 7, 0 }, ERROR_SUCCESS, 16 },
    { 16 * 17, { [0 ... 15] = 7, 9 }, ERROR_SUCCESS, 16 },
    { 32, { 1, MOST_BYTES - 1 }, ERROR_SUCCESS, 2 },
    { 32, { 2, MOST_BYTES - 1 }, ERROR_MORE_DATA, 0 },
    { 16, { 0xffff - sizeof(EVENT_TRACE_HEADER) }, ERROR_MORE_DATA, 0 },
    { 16, { 0x10000 - sizeof(EVENT_TRACE_HEADER) }, ERROR_MORE_DATA, 0 },
    { 16, { 0xffffffff }, ERROR_MORE_DATA, 0 },
    { 16 * 16, { [0 ... 15] = 0xffffffff }, ERROR_MORE_DATA, 0 },
    { 16 * 2, { 0xffffffff, 1 }, ERROR_MORE_DATA, 0 },
};

static ULONG send_fields(const struct fields *f)
{
    struct {
        EVENT_TRACE_HEADER header;
        MOF_FIELD fields[FIELDS];
    } m = { .header = { .Size = (USHORT)(sizeof m.header + f->size),
                        .Class = { .Type = 3, .Level = 4, .Version = 5 },
                        .GuidPtr = (ULONG_PTR)&class_of_fields,
                        .Flags = WNODE_FLAG_TRACED_GUID | WNODE_FLAG_USE_MOF_PTR |
                                 WNODE_FLAG_USE_GUID_PTR } };
    for (unsigned i = 0; i < FIELDS; i++)
        m.fields[i] = (MOF_FIELD){ (ULONG_PTR)pattern + 3 * i, f->lengths[i], 0 };
    return TraceEvent(session.trace, &m.header);
}

/* The event that came, if one has, is the fields' bytes, one behind the other. */
static bool check_fields(const struct fields *f)
{
    ULONG n = 0, at = 0;
    CHECK_OK(session_flush(&session));
    CHECK_OK(session_read(&session, end - RING3_PAGE, RING3_PAGE, &n));
    struct records all = records_of(end - RING3_PAGE, n);
    struct record event = next_record(&all);
    if (!CHECK_EQ(event.header != NULL, f->error == ERROR_SUCCESS) || !event.header)
        return !event.header;
    const EVENT_TRACE_HEADER *got = (const void *)event.header;
    bool same = !next_record(&all).header && got->Class.Type == 3 && got->Class.Level == 4 &&
                got->Class.Version == 5 &&
                memcmp(&got->Guid, &class_of_fields, sizeof class_of_fields) == 0;
    for (unsigned i = 0; i < f->taken; at += f->lengths[i++])
        same = same && at + f->lengths[i] <= event.size &&
               memcmp((const uint8_t *)event.payload + at, pattern + 3 * i, f->lengths[i]) == 0;
    return CHECK(same) & CHECK_EQ(trace_record_size(event.header), sizeof(EVENT_TRACE_HEADER) + at);
}

TEST_USER(lengths, fields,
          "TraceEvent gathers the bytes of up to 16 fields, as many as the size says and whole; "
          "more than a buffer or 64 KB is refused and sends nothing")
{
    for (unsigned i = 0; i < sizeof pattern; i++)
        pattern[i] = (uint8_t)(i ^ i >> 8);
    REQUIRE(make_objects());
    for (const struct fields *f = fields; f < fields + ARRAYSIZE(fields); f++)
        if (!CHECK_EQ(send_fields(f), f->error) | !check_fields(f))
            test_note("fields %u", (unsigned)(f - fields));
    close_objects();
}
