/* SPDX-License-Identifier: MIT */
/* The service fuzz: profile objects, thread profiling, the configuration, trace sessions. What
 * others do at the same time can take a counter away, never change an answer otherwise. */
#include "tests/ring3/fuzz.h"
#include "kernel/base/string.h"

#define BUCKETS 64u
#define BLOCKS 3u

static ULONG buckets[BUCKETS] __attribute__((aligned(16)));
static bool privileged;
static uint8_t bytes[4096] __attribute__((aligned(16)));

static void adjust_privilege(void)
{
    ULONG which = fuzz_one_in(4) ? fuzz_below(36) : SE_SYSTEM_PROFILE_PRIVILEGE;
    BOOLEAN on = (BOOLEAN)fuzz_below(2), *was = fuzz_out(sizeof *was);
    if (which != SE_SYSTEM_PROFILE_PRIVILEGE)
        fuzz_refuse(STATUS_PRIVILEGE_NOT_HELD);
    if (!FUZZ_ANSWER(RtlAdjustPrivilege(which, on, FALSE, was)))
        return;
    CHECK_EQ(*was, privileged);
    privileged = on;
}

/* --- Profile objects. --- */

static KPROFILE_SOURCE some_source(void)
{
    static const KPROFILE_SOURCE some[] = { ProfileTime, ProfileTotalIssues, ProfileTotalCycles };
    return fuzz_one_in(12) ? (KPROFILE_SOURCE)(fuzz_random() >> fuzz_below(53)) : FUZZ_ONE_OF(some);
}

static void expect_region(uint64_t base, uint64_t size, ULONG log2, ULONG room)
{
    if (!room)
        fuzz_refuse(STATUS_INVALID_PARAMETER_7);
    if (log2 < 2 || log2 > 31)
        fuzz_refuse(STATUS_INVALID_PARAMETER);
    else if ((size + (1ull << log2) - 1) >> log2 > room / sizeof(ULONG))
        fuzz_refuse(STATUS_BUFFER_TOO_SMALL);
    if (size && base + size <= base)
        fuzz_refuse(STATUS_BUFFER_OVERFLOW);
}

static void create_profile(void)
{
    if (fuzz_full())
        return;
    HANDLE process = NULL;
    uint64_t base = 0x400000, size = 4096;
    ULONG log2 = 6, room = sizeof buckets;
    uint8_t *buffer = (uint8_t *)buckets;
    KAFFINITY cpu_mask = ~0ull;
    KPROFILE_SOURCE source = some_source();
    HANDLE *to = fuzz_out(sizeof *to);
    if (fuzz_one_in(4)) {
        if (!privileged)
            fuzz_refuse(STATUS_PRIVILEGE_NOT_HELD);
    } else {
        fuzz_handle(FUZZ_PROCESS, PROCESS_QUERY_INFORMATION, &process);
        process = process ? process : (HANDLE)2; /* NULL would be all of them */
    }
    switch (fuzz_below(16)) {
    case 0: size = fuzz_random() >> fuzz_below(50); break;
    case 1: log2 = fuzz_below(40); break;
    case 2: room = fuzz_below(sizeof buckets + 1) & ~3u; break;
    case 3: base = 0 - 4096 + (fuzz_one_in(2) ? 1 : 0); break;
    case 4:
        buffer += 1 + fuzz_below(3);
        fuzz_refuse(STATUS_DATATYPE_MISALIGNMENT);
        room -= 4;
        break;
    case 5:
        buffer = fuzz_bad_pointer();
        fuzz_refuse(STATUS_ACCESS_VIOLATION);
        break;
    case 6: cpu_mask = 1ull << fuzz_below(fuzz_cpus); break;
    case 7:
        cpu_mask = fuzz_one_in(2) ? 0 : 1ull << fuzz_cpus;
        fuzz_refuse(STATUS_INVALID_PARAMETER);
        break;
    }
    expect_region(base, size, log2, room);
    if (base >= 0x800000000000 && !process) /* kernel addresses need none */
        fuzz_allow(STATUS_SUCCESS);
    if (source != ProfileTime)
        fuzz_allow(STATUS_NOT_SUPPORTED);
    bool kernel = base >= 0x800000000000;
    NTSTATUS status =
        fuzz_create_profile(to, process, base, size, log2, buffer, room, source, cpu_mask);
    if (!FUZZ_ANSWER(status) && !(kernel && NT_SUCCESS(status)))
        return;
    struct fuzz_thing *thing = fuzz_thing(FUZZ_PROFILE);
    if (!CHECK(thing != NULL))
        return;
    thing->limit =
        source != ProfileTime && source != ProfileTotalIssues && source != ProfileTotalCycles;
    fuzz_given(*to, thing, PROFILE_ALL_ACCESS);
}

static void start_profile(void)
{
    HANDLE h;
    bool start = fuzz_one_in(2);
    struct fuzz_slot *slot = fuzz_handle(FUZZ_PROFILE, PROFILE_CONTROL, &h);
    if (start && slot && slot->thing->limit) { /* the virtual PMU steps for it, which takes long */
        h = fuzz_no_handle();
        fuzz_refuse(STATUS_INVALID_HANDLE);
    }
    if (slot && slot->thing->state == start)
        fuzz_refuse(start ? STATUS_PROFILING_NOT_STOPPED : STATUS_PROFILING_NOT_STARTED);
    if (start) {
        fuzz_allow(STATUS_PROFILING_AT_LIMIT);
        fuzz_allow(STATUS_DEVICE_BUSY);
        fuzz_allow(STATUS_INSUFFICIENT_RESOURCES);
    }
    if (FUZZ_ANSWER(start ? ZwStartProfile(h) : ZwStopProfile(h)) && slot)
        slot->thing->state = start;
}

static void interval(void)
{
    KPROFILE_SOURCE source = some_source();
    if (fuzz_one_in(3)) {
        if (!privileged)
            fuzz_refuse(STATUS_PRIVILEGE_NOT_HELD);
        FUZZ_ANSWER(ZwSetIntervalProfile(100000 + (ULONG)(fuzz_random() >> 30), source));
        return;
    }
    ULONG *to = fuzz_out(sizeof *to);
    if (fuzz_one_in(8)) {
        to = (ULONG *)(void *)((uint8_t *)to + 1);
        fuzz_refuse(STATUS_DATATYPE_MISALIGNMENT);
    }
    FUZZ_ANSWER(ZwQueryIntervalProfile(source, to));
}

/* --- Thread profiling. --- */

static THREAD_PERFORMANCE_DATA blocks[BLOCKS];
static THREAD_PERFORMANCE_DATA *enabled; /* NULL: not profiled */
static uint64_t enabled_mask, last_value, last_cycles;

static void set_profiling(void)
{
    HANDLE h = NtCurrentThread();
    struct fuzz_slot *slot = NULL;
    THREAD_PERFORMANCE_DATA *block =
        enabled && !fuzz_one_in(4) ? enabled : &blocks[fuzz_below(BLOCKS)];
    THREAD_PROFILING_INFORMATION info = { fuzz_below(4), fuzz_below(2), fuzz_below(2), block };
    ULONG length = sizeof info - (fuzz_one_in(16) ? 1 + fuzz_below(8) : 0);
    if (fuzz_one_in(8) && (slot = fuzz_handle(FUZZ_THREAD, THREAD_SET_INFORMATION, &h)) != NULL &&
        slot->thing != &fuzz_me)
        fuzz_refuse(STATUS_NOT_SUPPORTED);
    if (length != sizeof info)
        fuzz_refuse(STATUS_INFO_LENGTH_MISMATCH);
    if (fuzz_one_in(16)) {
        info.PerformanceData =
            (PTHREAD_PERFORMANCE_DATA)(void *)((uint8_t *)block + 1 + fuzz_below(3));
        fuzz_refuse(STATUS_DATATYPE_MISALIGNMENT);
    } else if (fuzz_one_in(16)) {
        info.PerformanceData = fuzz_bad_pointer();
        fuzz_refuse(STATUS_ACCESS_VIOLATION);
    }
    if (info.Enable && fuzz_one_in(12)) {
        info.Flags |= 1u << (1 + fuzz_below(31));
        fuzz_refuse(STATUS_INVALID_PARAMETER);
    } else if (info.Enable && fuzz_one_in(12)) {
        info.HardwareCounters |= 1ull << (MAX_HW_COUNTERS + fuzz_below(64 - MAX_HW_COUNTERS));
        fuzz_refuse(STATUS_INVALID_PARAMETER);
    }
    if (info.Enable && enabled)
        fuzz_refuse(STATUS_WMI_ALREADY_ENABLED);
    if (!info.Enable && block != enabled)
        fuzz_refuse(enabled ? STATUS_INVALID_PARAMETER : STATUS_WMI_ALREADY_DISABLED);
    if (info.Enable) { /* kinds of CPUs; counters=isolate */
        fuzz_allow(STATUS_DEVICE_CONFIGURATION_ERROR);
        fuzz_allow(STATUS_INSUFFICIENT_RESOURCES);
    }
    const void *from = fuzz_in(&info, sizeof info);
    if (!FUZZ_ANSWER(
            ZwSetInformationThread(h, ThreadCounterProfiling, (PVOID)(uint64_t)from, length)))
        return;
    enabled = info.Enable ? block : NULL;
    enabled_mask = info.HardwareCounters;
    last_value = last_cycles = 0;
}

static void query_profiling(void)
{
    HANDLE h;
    ULONG length = 1 + fuzz_one_in(8), *returned;
    struct fuzz_slot *slot = fuzz_handle(FUZZ_THREAD, THREAD_QUERY_INFORMATION, &h);
    BOOLEAN *to = fuzz_out(sizeof *to);
    returned = fuzz_out_optional(sizeof *returned);
    if (length != 1)
        fuzz_refuse(STATUS_INFO_LENGTH_MISMATCH);
    if (FUZZ_ANSWER(ZwQueryInformationThread(h, ThreadCounterProfiling, to, length, returned)))
        CHECK_EQ(*to, slot->thing == &fuzz_me && enabled ? TRUE : FALSE);
}

static void read_profiling(void)
{
    PERFORMANCE_DATA *data = fuzz_out(sizeof *data);
    ULONG flags = 3 | (fuzz_one_in(8) ? (ULONG)fuzz_random() << 2 : 0);
    HANDLE block = fuzz_one_in(8) ? (HANDLE)fuzz_random() : enabled;
    if (!fuzz_refused()) {
        data->Size = sizeof *data;
        data->Version = PERFORMANCE_DATA_VERSION;
        if (fuzz_one_in(8))
            data->Size++, fuzz_refuse(STATUS_INVALID_BUFFER_SIZE);
        else if (fuzz_one_in(8))
            data->Version++, fuzz_refuse(STATUS_INVALID_PARAMETER_3);
    } else { /* bytes of a page that cannot be written can be read */
        fuzz_refuse(STATUS_INVALID_BUFFER_SIZE);
    }
    if (flags != 3)
        fuzz_refuse(STATUS_INVALID_PARAMETER_2);
    if (enabled && block != enabled)
        fuzz_refuse(STATUS_INVALID_PARAMETER);
    if (!enabled)
        fuzz_refuse(STATUS_PROFILING_NOT_STARTED);
    if (!FUZZ_ANSWER(ZwReadThreadProfilingData(block, flags, data)))
        return;
    CHECK(data->CycleTime > last_cycles);
    last_cycles = data->CycleTime;
    if (!(enabled_mask & 1) || !data->HwCountersCount)
        return;
    CHECK(data->HwCounters[0].Value > last_value);
    last_value = data->HwCounters[0].Value;
}

/* --- The configuration: a driver's, which no program changes. --- */

static void configure(void)
{
    if (!fuzz_pmu)
        return;
    HARDWARE_COUNTER array[2] = { { PMCCounter, 0, ProfileTotalIssues },
                                  { PMCCounter, 0, ProfileTotalIssues } };
    ULONG count = fuzz_one_in(8) ? (ULONG)fuzz_random() | 1u << 31 : fuzz_below(3);
    fuzz_refuse(STATUS_WMI_ALREADY_ENABLED);
    fuzz_allow(STATUS_NOT_IMPLEMENTED);
    switch (fuzz_below(8)) {
    case 0:
        array[0].Index |= fuzz_random() << 32;
        fuzz_refuse(STATUS_INVALID_PARAMETER);
        break;
    case 1:
        array[0].Reserved = 1;
        fuzz_refuse(STATUS_INVALID_PARAMETER);
        break;
    case 2:
        array[0].Type = (HARDWARE_COUNTER_TYPE)fuzz_below(9);
        fuzz_refuse(STATUS_INVALID_PARAMETER);
        break;
    }
    if (count > MAX_HW_COUNTERS)
        fuzz_refuse(STATUS_INVALID_PARAMETER);
    const void *from = fuzz_in(array, sizeof array[0] * (count == 1 ? 1 : 2));
    FUZZ_ANSWER(KeSetHardwareCounterConfiguration((PHARDWARE_COUNTER)(uint64_t)from, count));
}

static void query_configuration(void)
{
    if (!fuzz_pmu)
        return;
    HARDWARE_COUNTER *array = fuzz_out(sizeof *array);
    ULONG *count = fuzz_out(sizeof *count), room = fuzz_below(3);
    if (!room)
        fuzz_refuse(STATUS_BUFFER_TOO_SMALL);
    if (FUZZ_ANSWER(KeQueryHardwareCounterConfiguration(array, room, count)))
        CHECK_EQ(*count, 1);
}

/* --- A trace session of this process. --- */

static bool running;
static TRACEHANDLE trace;
static LONG session_number;
static struct fuzz_thing *consumer;

static bool connected(void)
{
    return consumer && consumer->handles && consumer->kind == FUZZ_CONSUMER &&
           consumer->limit == session_number;
}

static void describe(struct session_info *d)
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
    describe(&d);
    d.info.EnableFlags =
        fuzz_one_in(2) ? 0 : EVENT_TRACE_FLAG_CSWITCH | EVENT_TRACE_FLAG_SYSTEMCALL;
    if (fuzz_one_in(8)) {
        d.info.EnableFlags |= EVENT_TRACE_FLAG_PROFILE;
        if (!privileged && (code == EtwStartLoggerCode || code == EtwUpdateLoggerCode))
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
    /* An answer that cannot be written is told when all is done, but of a start at first. */
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
            consumer->limit = session_number;
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
    describe(&d);
    CHECK_STATUS(session_control(EtwStopLoggerCode, &d),
                 running ? STATUS_SUCCESS : STATUS_WMI_INSTANCE_NOT_FOUND);
}

/* Any code, class and bytes; nothing may come of it without the privilege. */
static void noise(void)
{
    uint32_t words[64];
    ULONG n;
    if (privileged)
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

const struct fuzz_op fuzz_counter_ops[] = {
    { adjust_privilege, 2 },
    { create_profile, 5 },
    { start_profile, 6 },
    { interval, 4 },
    { set_profiling, 6 },
    { query_profiling, 3 },
    { read_profiling, 6 },
    { configure, 3 },
    { query_configuration, 2 },
    { control_session, 4 },
    { consume, 5 },
    { noise, 4 },
    { NULL, 0 },
};
