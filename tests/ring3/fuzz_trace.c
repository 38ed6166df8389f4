/* SPDX-License-Identifier: MIT */
/* The service fuzz: a trace session of this process. */
#include "tests/ring3/fuzz.h"

static uint8_t bytes[4096] __attribute__((aligned(16)));
static bool running;
static TRACEHANDLE trace;
static LONG session_number;
static struct fuzz_thing *consumer;

static bool connected(void)
{
    return consumer && consumer->handles && consumer->kind == FUZZ_CONSUMER &&
           consumer->session == session_number;
}

static void describe_session(struct session_info *d)
{
    char name[] = "fuzz 0";
    name[5] = (char)('0' + fuzz_number);
    session_describe(d, name);
    d->info.BufferSize = 4;
    d->info.MaximumBuffers = 2 * fuzz_cpus;
}

static void control_session(void)
{
    static struct session_info d;
    ULONG code = EtwStartLoggerCode + fuzz_below(5),
          length = sizeof d.info - (fuzz_one_in(12) ? fuzz_below(100) + 1 : 0), n;
    bool bad;
    describe_session(&d);
    d.info.EnableFlags =
        fuzz_one_in(2) ? 0 : EVENT_TRACE_FLAG_CSWITCH | EVENT_TRACE_FLAG_SYSTEMCALL;
    if (fuzz_one_in(8)) {
        d.info.EnableFlags |= EVENT_TRACE_FLAG_PROFILE;
        if (!fuzz_privileged && (code == EtwStartLoggerCode || code == EtwUpdateLoggerCode))
            fuzz_refuse(STATUS_PRIVILEGE_NOT_HELD);
    }
    if (length != sizeof d.info)
        fuzz_refuse(STATUS_INFO_LENGTH_MISMATCH);
    if (code == EtwStartLoggerCode ? running : !running)
        fuzz_refuse(code == EtwStartLoggerCode ? STATUS_OBJECT_NAME_COLLISION
                                               : STATUS_WMI_INSTANCE_NOT_FOUND);
    if (code == EtwStartLoggerCode ||
        code == EtwUpdateLoggerCode) { /* sessions, memory and counters may be others' */
        fuzz_allow(STATUS_INSUFFICIENT_RESOURCES);
        fuzz_allow(STATUS_NO_MEMORY);
    }
    const WMI_LOGGER_INFORMATION *in = fuzz_in(&d.info, sizeof d.info);
    WMI_LOGGER_INFORMATION *out = fuzz_late(sizeof d.info, &bad);
    /* An answer that cannot be written is reported when all is done, but of a start at first. */
    if (bad && (fuzz_refused() || code == EtwStartLoggerCode))
        fuzz_refuse(STATUS_ACCESS_VIOLATION);
    else if (bad)
        fuzz_expect(STATUS_ACCESS_VIOLATION);
    if (!FUZZ_ANSWER(ZwTraceControl(code, (PVOID)(uint64_t)in, length, out, length,
                                    fuzz_one_in(2) ? &n : NULL)))
        return;
    running = code != EtwStopLoggerCode;
    if (bad)
        return;
    if (code == EtwStartLoggerCode) {
        trace = out->Wnode.HistoricalContext;
        session_number++;
    }
    CHECK_EQ(out->Wnode.HistoricalContext, trace);
}

static void consume(void)
{
    HANDLE h;
    ULONG n = 0;
    if (fuzz_one_in(2)) {
        if (fuzz_full())
            return;
        /* No number of before, which may be another's session by now. */
        TRACEHANDLE which = !running || fuzz_one_in(8) ? (fuzz_random() | 0x8000) & ~1ull : trace;
        TRACE_CONSUMER *to = fuzz_out(sizeof *to);
        if (!running || which != trace)
            fuzz_refuse(STATUS_WMI_INSTANCE_NOT_FOUND);
        else if (connected())
            fuzz_refuse(STATUS_DEVICE_BUSY);
        const void *from = fuzz_in(&which, sizeof which);
        if (!FUZZ_ANSWER(ZwTraceControl(EtwRealtimeConnectCode, (PVOID)(uint64_t)from, sizeof which,
                                        to, sizeof *to, &n)))
            return;
        if (CHECK((consumer = fuzz_thing(FUZZ_CONSUMER)) != NULL)) {
            consumer->session = session_number;
            fuzz_given(to->Handle, consumer, TRACELOG_GUID_ENABLE);
        }
        return;
    }
    bool read = !fuzz_one_in(3);
    struct fuzz_slot *slot = fuzz_handle(FUZZ_CONSUMER, 0, &h);
    const void *from = fuzz_in(&h, sizeof h);
    if (!read && (h == NtCurrentProcess() || h == NtCurrentThread()))
        fuzz_refuse(STATUS_INVALID_HANDLE);
    if (read)
        fuzz_allow(STATUS_WMI_INSTANCE_NOT_FOUND); /* the session ended, and all was read */
    bool did =
        FUZZ_ANSWER(ZwTraceControl(read ? EtwRealtimeReadCode : EtwRealtimeDisconnectCode,
                                   (PVOID)(uint64_t)from, sizeof h, bytes, sizeof bytes, &n));
    if (did && !read)
        fuzz_taken(slot);
    CHECK(n <= sizeof bytes);
}

/* A session outlives its process. */
void fuzz_end_session(void)
{
    struct session_info d;
    describe_session(&d);
    CHECK_STATUS(session_control(EtwStopLoggerCode, &d),
                 running ? STATUS_SUCCESS : STATUS_WMI_INSTANCE_NOT_FOUND);
}

/* Any code, class and bytes; nothing may come of it without the privilege. */
static void noise(void)
{
    uint32_t words[64];
    ULONG n;
    if (fuzz_privileged)
        return;
    for (unsigned i = 0; i < ARRAYSIZE(words); i++)
        words[i] = (uint32_t)fuzz_random() >> (i % 5 * 6);
    ULONG in = fuzz_below(sizeof words + 1), out = fuzz_below(sizeof words + 1);
    PVOID at = fuzz_one_in(4) ? fuzz_bad_pointer() : words;
    switch (fuzz_below(3)) {
    case 0: ZwTraceControl(12 + fuzz_below(0x100), at, in, words, out, &n); break;
    case 1:
        words[0] = fuzz_below(0x20);
        ZwSetSystemInformation(SystemPerformanceTraceInformation, at, in);
        break;
    default:
        words[0] = fuzz_below(0x20);
        ZwQuerySystemInformation(SystemPerformanceTraceInformation, at, out, &n);
    }
}

const struct fuzz_op fuzz_trace_ops[] = {
    { control_session, 4 },
    { consume, 5 },
    { noise, 4 },
    { NULL, 0 },
};
