/* SPDX-License-Identifier: MIT */
/* The service fuzz: handles, profile objects, thread profiling, the configuration. What others do
 * at the same time can take a counter away, never change an answer otherwise. */
#include "tests/ring3/fuzz.h"

#define BUCKETS 64u
#define BLOCKS 3u
#define ALL_RIGHTS 0x1fffffu
#define LOAD_DRIVER 10u /* SE_LOAD_DRIVER_PRIVILEGE, of which programs have the number only */

static ULONG buckets[BUCKETS] __attribute__((aligned(16)));
bool fuzz_privileged;

static void adjust_privilege(void)
{
    ULONG which = fuzz_one_in(4) ? fuzz_below(36) : SE_SYSTEM_PROFILE_PRIVILEGE;
    static bool loads_drivers;
    bool *held = which == SE_SYSTEM_PROFILE_PRIVILEGE ? &fuzz_privileged
                 : which == LOAD_DRIVER               ? &loads_drivers
                                                      : NULL;
    BOOLEAN on = (BOOLEAN)fuzz_below(2), *was = fuzz_out(sizeof *was);
    if (!held)
        fuzz_refuse(STATUS_PRIVILEGE_NOT_HELD);
    if (!FUZZ_ANSWER(RtlAdjustPrivilege(which, on, FALSE, was)))
        return;
    CHECK_EQ(*was, *held);
    *held = on;
}

/* --- Handles. --- */

static bool is_pseudo(HANDLE h) { return h == NtCurrentThread() || h == NtCurrentProcess(); }

static void close_object(void)
{
    HANDLE h;
    struct fuzz_slot *slot = fuzz_handle(FUZZ_NONE, 0, &h);
    if (is_pseudo(h))
        fuzz_refuse(STATUS_INVALID_HANDLE);
    if (FUZZ_ANSWER(NtClose(h)))
        fuzz_taken(slot);
}

static void duplicate(void)
{
    HANDLE h, me = NtCurrentProcess();
    ULONG options = fuzz_below(4);
    ACCESS_MASK access =
        fuzz_one_in(2) ? 0 : (ACCESS_MASK)(fuzz_random() & fuzz_random()) & ALL_RIGHTS;
    if (fuzz_full())
        return;
    struct fuzz_slot *slot =
        fuzz_handle(FUZZ_NONE, options & DUPLICATE_SAME_ACCESS ? 0 : access, &h);
    HANDLE *to = fuzz_out(sizeof *to);
    if (!FUZZ_ANSWER(NtDuplicateObject(me, h, me, to, access, (ULONG)fuzz_random(), options)))
        return;
    fuzz_given(*to, slot->thing, options & DUPLICATE_SAME_ACCESS ? slot->access : access);
    if (options & DUPLICATE_CLOSE_SOURCE && !is_pseudo(h))
        fuzz_taken(slot);
}

/* --- Profile objects. --- */

static KPROFILE_SOURCE some_source(void)
{
    static const KPROFILE_SOURCE some[] = { ProfileTime, ProfileTotalIssues, ProfileTotalCycles };
    return fuzz_one_in(12) ? (KPROFILE_SOURCE)(fuzz_random() >> fuzz_below(53)) : FUZZ_ONE_OF(some);
}

static void expect_region(uint64_t base, uint64_t size, ULONG log2, ULONG length)
{
    if (!length)
        fuzz_refuse(STATUS_INVALID_PARAMETER_7);
    if (log2 < 2 || log2 > 31)
        fuzz_refuse(STATUS_INVALID_PARAMETER);
    else if ((size + (1ull << log2) - 1) >> log2 > length / sizeof(ULONG))
        fuzz_refuse(STATUS_BUFFER_TOO_SMALL);
    if (size && base + size <= base)
        fuzz_refuse(STATUS_BUFFER_OVERFLOW);
}

/* By one of the two services; what is wrong with groups is known then. */
static NTSTATUS create_by(HANDLE *to, HANDLE process, uint64_t base, uint64_t size, ULONG log2,
                          void *buffer, ULONG length, KPROFILE_SOURCE source, KAFFINITY cpu_mask)
{
    if (fuzz_one_in(2))
        return ZwCreateProfile(to, process, (PVOID)base, size, log2, buffer, length, source,
                               cpu_mask);
    GROUP_AFFINITY groups[2] = { { .Mask = cpu_mask }, { .Mask = cpu_mask } };
    USHORT n = cpu_mask == ~0ull ? 0 : (USHORT)(1 + fuzz_below(2));
    if (n && fuzz_one_in(8)) {
        groups[n - 1].Reserved[fuzz_below(3)] = 1;
        fuzz_refuse(STATUS_INVALID_PARAMETER);
    } else if (n && fuzz_one_in(8)) {
        groups[n - 1].Group = (USHORT)(1 + fuzz_below(0xffff));
        fuzz_refuse(STATUS_INVALID_PARAMETER);
    }
    const void *from = n ? fuzz_in(groups, n * sizeof groups[0]) : fuzz_bad_pointer();
    if (n == 2 && fuzz_refused()) /* the first of them may be there, and be anything */
        fuzz_allow(STATUS_INVALID_PARAMETER);
    if (!n && (uint64_t)from % 4 == 0)
        from = (const uint8_t *)from + 1; /* nobody looks at it */
    return ZwCreateProfileEx(to, process, (PVOID)base, size, log2, buffer, length, source, n,
                             (PGROUP_AFFINITY)(uint64_t)from);
}

static void create_profile(void)
{
    if (fuzz_full())
        return;
    HANDLE process = NULL;
    uint64_t base = 0x400000, size = 4096;
    ULONG log2 = 6, length = sizeof buckets;
    uint8_t *buffer = (uint8_t *)buckets;
    KAFFINITY cpu_mask = ~0ull;
    KPROFILE_SOURCE source = some_source();
    HANDLE *to = fuzz_out(sizeof *to);
    if (fuzz_one_in(4)) {
        if (!fuzz_privileged)
            fuzz_refuse(STATUS_PRIVILEGE_NOT_HELD);
    } else {
        fuzz_handle(FUZZ_PROCESS, PROCESS_QUERY_INFORMATION, &process);
        process = process ? process : (HANDLE)2; /* NULL would be all of them */
    }
    switch (fuzz_below(16)) {
    case 0: size = fuzz_random() >> fuzz_below(50); break;
    case 1: log2 = fuzz_below(40); break;
    case 2: length = fuzz_below(sizeof buckets + 1) & ~3u; break;
    case 3: base = 0 - 4096 + (fuzz_one_in(2) ? 1 : 0); break;
    case 4:
        buffer += 1 + fuzz_below(3);
        fuzz_refuse(STATUS_DATATYPE_MISALIGNMENT);
        length -= 4;
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
    expect_region(base, size, log2, length);
    if (base >= 0x800000000000 && !process) /* kernel addresses need none */
        fuzz_allow(STATUS_SUCCESS);
    if (source != ProfileTime)
        fuzz_allow(STATUS_NOT_SUPPORTED);
    bool kernel = base >= 0x800000000000;
    NTSTATUS status = create_by(to, process, base, size, log2, buffer, length, source, cpu_mask);
    if (!FUZZ_ANSWER(status) && !(kernel && NT_SUCCESS(status)))
        return;
    struct fuzz_thing *thing = fuzz_thing(FUZZ_PROFILE);
    if (!CHECK(thing != NULL))
        return;
    thing->slow =
        source != ProfileTime && source != ProfileTotalIssues && source != ProfileTotalCycles;
    fuzz_given(*to, thing, PROFILE_ALL_ACCESS);
}

static void start_profile(void)
{
    HANDLE h;
    bool start = fuzz_one_in(2);
    struct fuzz_slot *slot = fuzz_handle(FUZZ_PROFILE, PROFILE_CONTROL, &h);
    if (start && slot && slot->thing->slow) { /* the virtual PMU steps for it, which takes long */
        h = fuzz_no_handle();
        fuzz_refuse(STATUS_INVALID_HANDLE);
    }
    if (slot && slot->thing->started == start)
        fuzz_refuse(start ? STATUS_PROFILING_NOT_STOPPED : STATUS_PROFILING_NOT_STARTED);
    if (start) {
        fuzz_allow(STATUS_PROFILING_AT_LIMIT);
        fuzz_allow(STATUS_DEVICE_BUSY);
        fuzz_allow(STATUS_INSUFFICIENT_RESOURCES);
    }
    if (FUZZ_ANSWER(start ? ZwStartProfile(h) : ZwStopProfile(h)) && slot)
        slot->thing->started = start;
}

static void interval(void)
{
    KPROFILE_SOURCE source = some_source();
    if (fuzz_one_in(3)) {
        if (!fuzz_privileged)
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
            NtSetInformationThread(h, ThreadCounterProfiling, (PVOID)(uint64_t)from, length)))
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
    if (FUZZ_ANSWER(NtQueryInformationThread(h, ThreadCounterProfiling, to, length, returned)))
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
    ULONG *count = fuzz_out(sizeof *count), most = fuzz_below(3);
    if (!most)
        fuzz_refuse(STATUS_BUFFER_TOO_SMALL);
    if (FUZZ_ANSWER(KeQueryHardwareCounterConfiguration(array, most, count)))
        CHECK_EQ(*count, 1);
}

const struct fuzz_op fuzz_counter_ops[] = {
    { close_object, 10 },  { duplicate, 8 }, { adjust_privilege, 2 },    { create_profile, 5 },
    { start_profile, 6 },  { interval, 4 },  { set_profiling, 6 },       { query_profiling, 3 },
    { read_profiling, 6 }, { configure, 3 }, { query_configuration, 2 }, { NULL, 0 },
};
