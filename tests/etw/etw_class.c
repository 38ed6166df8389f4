/* SPDX-License-Identifier: MIT */
/* Class 0x1F without the lists: its sub-classes, group masks, intervals; sources listed, added
 * and removed. */
#include "kernel/etw/etw_session.h"
#include "tests/harness/etw.h"
#include "tests/harness/lab.h"

#define NO_LOGGER 0x1234
#define ANY                                                                                        \
    {                                                                                              \
        0xffffffff, 0xffffffff, 0xffffffff                                                         \
    }

static NTSTATUS query_class(void *buffer, ULONG length, ULONG *returned)
{
    return NtQuerySystemInformation(SystemPerformanceTraceInformation, buffer, length, returned);
}

TEST(etw_class, sub_classes,
     "sub-classes that cannot be set or queried, unknown ones, and buffers too short for a "
     "sub-class are refused [ET-01 ET-02 ET-03 ET-04]")
{
    static const uint8_t settable[] = { 0x01, 0x03, 0x06, 0x0B, 0x0C, 0x0E,
                                        0x0F, 0x13, 0x14, 0x15, 0x16 },
                         queryable[] = { 0x01, 0x03, 0x06, 0x0D };
    ULONG words[16] = { 0 }, n;
    for (ULONG sub_class = 0; sub_class < 0x40; sub_class++) {
        bool can_set = false, can_query = false;
        for (unsigned i = 0; i < sizeof settable; i++)
            can_set = can_set || settable[i] == sub_class;
        for (unsigned i = 0; i < sizeof queryable; i++)
            can_query = can_query || queryable[i] == sub_class;
        words[0] = sub_class; /* the length of no sub-class */
        CHECK_STATUS(session_set_class(words, 5),
                     can_set ? STATUS_INFO_LENGTH_MISMATCH : STATUS_NOT_IMPLEMENTED);
        CHECK_STATUS(query_class(words, 5, &n),
                     can_query ? STATUS_INFO_LENGTH_MISMATCH : STATUS_NOT_IMPLEMENTED);
        for (unsigned bit = 6; bit < 32; bit++) {
            words[0] = sub_class | 1u << bit;
            CHECK_STATUS(session_set_class(words, 5), STATUS_NOT_IMPLEMENTED);
            CHECK_STATUS(query_class(words, 5, &n), STATUS_NOT_IMPLEMENTED);
        }
    }
    words[0] = 0xffffffff;
    CHECK_STATUS(session_set_class(words, sizeof words), STATUS_NOT_IMPLEMENTED);
    for (ULONG length = 0; length < 4;
         length++) { /* which would be another status, if it were read */
        CHECK_STATUS(session_set_class(words, length), STATUS_INFO_LENGTH_MISMATCH);
        CHECK_STATUS(query_class(words, length, &n), STATUS_INFO_LENGTH_MISMATCH);
    }
    CHECK_STATUS(NtSetSystemInformation(0x1E, words, 8), STATUS_INVALID_INFO_CLASS);
    CHECK_STATUS(NtQuerySystemInformation(0x20, words, 8, &n), STATUS_INVALID_INFO_CLASS);
}

TEST(etw_class, time_profile,
     "the interval of time samples is set and queried with exactly 8 bytes [ET-34]")
{
    EVENT_TRACE_TIME_PROFILE_INFORMATION info[2] = { { EventTraceTimeProfileInformation, 0 } };
    ULONG n = 0, before = hal_source_interval(ProfileTime);
    CHECK_STATUS(query_class(info, 8, &n), STATUS_SUCCESS);
    CHECK_EQ(n, 8);
    CHECK_EQ(info->ProfileInterval, before);
    info->ProfileInterval = 23456;
    CHECK_STATUS(session_set_class(info, 9), STATUS_INFO_LENGTH_MISMATCH);
    CHECK_EQ(hal_source_interval(ProfileTime), before);
    CHECK_STATUS(session_set_class(info, 8), STATUS_SUCCESS);
    CHECK_EQ(hal_source_interval(ProfileTime), 23456);
    info->ProfileInterval = 0;
    CHECK_STATUS(query_class(info, 8, &n), STATUS_SUCCESS);
    CHECK_EQ(info->ProfileInterval, 23456);
    info->ProfileInterval = before;
    CHECK_STATUS(session_set_class(info, 8), STATUS_SUCCESS);
}

TEST(etw_class, group_mask,
     "only system loggers accept group masks, and a query returns the masks that were set [ET-45]")
{
    EVENT_TRACE_GROUPMASK_INFORMATION info = { EventTraceGroupMaskInformation,
                                               NO_LOGGER,
                                               { { 0 } } };
    struct session_info plain, kernel;
    ULONG n;
    CHECK_STATUS(session_set_class(&info, sizeof info), STATUS_WMI_INSTANCE_NOT_FOUND);
    CHECK_STATUS(query_class(&info, sizeof info, &n), STATUS_WMI_INSTANCE_NOT_FOUND);
    session_describe(&plain, "plain");
    plain.info.LogFileMode = EVENT_TRACE_REAL_TIME_MODE;
    CHECK_STATUS(session_control(EtwStartLoggerCode, &plain), STATUS_SUCCESS);
    info.TraceHandle = plain.info.Wnode.HistoricalContext;
    CHECK_STATUS(session_set_class(&info, sizeof info), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(session_control(EtwStopLoggerCode, &plain), STATUS_SUCCESS);

    session_describe(&kernel, KERNEL_LOGGER_NAME);
    kernel.info.EnableFlags = EVENT_TRACE_FLAG_CSWITCH;
    CHECK_STATUS(session_control(EtwStartLoggerCode, &kernel), STATUS_SUCCESS);
    info.TraceHandle = 0xFFFF;
    CHECK_STATUS(query_class(&info, sizeof info, &n), STATUS_SUCCESS);
    CHECK_EQ(n, sizeof info);
    CHECK_EQ(info.EventTraceGroupMasks.Masks[0], EVENT_TRACE_FLAG_CSWITCH);
    CHECK_EQ(info.EventTraceGroupMasks.Masks[1], PERF_MASK_BITS(PERF_CONTEXT_SWITCH));
    CHECK(etw_wants(ETW_CSWITCH));
    info.EventTraceGroupMasks = (PERFINFO_GROUPMASK){ { 0, 0, PERF_MASK_BITS(PERF_SYSCALL) } };
    CHECK_STATUS(session_set_class(&info, sizeof info), STATUS_SUCCESS);
    CHECK(!etw_wants(ETW_CSWITCH) && etw_wants(ETW_SYSCALL_ENTER) && etw_wants(ETW_SYSCALL_EXIT));
    info.EventTraceGroupMasks.Masks[2] = 0;
    CHECK_STATUS(query_class(&info, sizeof info, &n), STATUS_SUCCESS);
    CHECK_EQ(info.EventTraceGroupMasks.Masks[1], 0);
    CHECK_EQ(info.EventTraceGroupMasks.Masks[2], PERF_MASK_BITS(PERF_SYSCALL));
    CHECK_STATUS(session_control(EtwStopLoggerCode, &kernel), STATUS_SUCCESS);
    for (unsigned h = 0; h < ETW_HOOKS; h++)
        CHECK(!etw_wants((enum etw_hook)h));
}

/* --- Sources. --- */

static uint64_t list_room[2048];

static ULONG get_list(void)
{
    ULONG n = 0;
    memset(list_room, 0xa5, sizeof list_room);
    *(ULONG *)(void *)list_room = EventTraceProfileSourceListInformation;
    CHECK_STATUS(query_class(list_room, sizeof list_room, &n), STATUS_SUCCESS);
    return n;
}

static bool is_called(const PROFILE_SOURCE_INFO *info, const char *name)
{
    size_t i = 0;
    for (; name[i] && info->Description[i] == (WCHAR)name[i]; i++)
        ;
    return !name[i] && !info->Description[i];
}

/* The source with that description; checks that no other source has its number. 0: none. */
static KPROFILE_SOURCE find_source(const char *name)
{
    KPROFILE_SOURCE found = ProfileTime;
    bool seen[256] = { false };
    get_list();
    const EVENT_TRACE_PROFILE_LIST_INFORMATION *list = (const void *)list_room;
    const PROFILE_SOURCE_INFO *info = list->Profile;
    for (;;) {
        if (!CHECK(info->Source < 256 && !seen[info->Source]))
            return ProfileTime;
        seen[info->Source] = true;
        if (is_called(info, name))
            found = (KPROFILE_SOURCE)info->Source;
        if (!info->NextEntryOffset)
            return found;
        info = (const PROFILE_SOURCE_INFO *)(const void *)((const uint8_t *)info +
                                                           info->NextEntryOffset);
    }
}

/* By what is supported, not by the list's own way from source to source. */
static KPROFILE_SOURCE next_supported(KPROFILE_SOURCE source)
{
    for (unsigned id = (unsigned)source + 1; id < 256; id++)
        if (hal_source_supported((KPROFILE_SOURCE)id))
            return (KPROFILE_SOURCE)id;
    return ProfileTime;
}

TEST(etw_class, source_list,
     "the list has each supported source once, with its limits, a last entry, and the length that "
     "is needed [ET-36 ET-37 ET-38]")
{
    ULONG n = get_list(), needed = 0, at = 8, next;
    KPROFILE_SOURCE source = ProfileTime;
    do {
        const PROFILE_SOURCE_INFO *info = (const void *)((const uint8_t *)list_room + at);
        ULONG units = 0, interval = hal_source_interval(source);
        CHECK_EQ(info->Source, source);
        CHECK(info->MinInterval <= interval && interval <= info->MaxInterval);
        CHECK(is_called(info, hal_source_name(source)));
        while (info->Description[units])
            units++;
        next = info->NextEntryOffset;
        at += next ? next : ((0x18 + 2 * (units + 1) + 7) & ~7u);
        CHECK(!next || 0x18 + 2 * (units + 1) <= next);
        source = next_supported(source);
    } while (next && CHECK(source != ProfileTime));
    CHECK_EQ(source, ProfileTime);
    CHECK_EQ(n, at);
    const ULONG lengths[] = { 4, 7, 8, 0x20, 0x27, 0x28, n / 2, n - 8, n - 1 };
    for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
        needed = 0;
        memset((uint8_t *)list_room + 8, 0xa5, 0x28);
        CHECK_STATUS(query_class(list_room, lengths[i], &needed), STATUS_INFO_LENGTH_MISMATCH);
        CHECK_EQ(needed, n);
        /* The first entry ends at 30h: one that does not fit whole is not begun. */
        CHECK(lengths[i] >= 0x30 || ((const uint8_t *)list_room)[8] == 0xa5);
    }
}

struct add {
    EVENT_TRACE_PROFILE_ADD_INFORMATION info;
    WCHAR more[40];
};
#define ADD_HEAD offsetof(EVENT_TRACE_PROFILE_ADD_INFORMATION, ProfileSourceDescription)

/* Retired instructions of the processor at hand: by Intel's code, or by AMD's. */
static struct add describe_event(const char *name, UCHAR version)
{
    struct add add = { .info = { .EventTraceInformationClass =
                                     EventTraceProfileSourceAddInformation,
                                 .Version = version,
                                 .Event = { 0xC0, 0 },
                                 .CpuInfoHierarchy = ANY,
                                 .InitialInterval = 100000 } };
    uint8_t *text = (uint8_t *)&add + ADD_HEAD;
    for (size_t i = 0; name[i]; i++)
        text[2 * i] = (uint8_t)name[i];
    return add;
}

/* Checks the counts of a set of one source for 1,000 and 3,000 iterations of two instructions. */
static void check_counts_instructions(PMC_HANDLE set_of_one)
{
    static const uint64_t iterations[4] = { 1000, 1000, 1000,
                                            3000 }; /* the first for a real machine's caches */
    ULONG64 values[4];
    KIRQL old = irql_raise(PROFILE_LEVEL);
    for (unsigned i = 0; i < 4; i++) {
        lab_loop(iterations[i]);
        HalCollectPmcCounters(set_of_one, &values[i]);
    }
    irql_lower(old);
    LAB_CHECK_COUNT((values[3] - values[2]) - (values[2] - values[1]), 4000);
}

/* Its select has the threshold and the unit mask, bits 31:24 and 15:8 with both vendors. 2Eh with
 * 41h, the misses of the last cache, means the same on each kind of core; with a threshold tables
 * do not know it. */
static void check_unit_mask(void)
{
    uint64_t select = 0;
    const unsigned threshold = pmu_kind_count == 1;
    struct add add = describe_event("TestMasked", 3);
    const bool amd = strcmp(pmu_here()->driver, "amd") == 0;
    add.info.Event[0] = 0x2e;
    const bool wide = amd && pmu_here()->code_max > 0xff;
    add.info.Event[1] = wide; /* bits 11:8 of the event, 35:32 of the select */
    add.info.Event[amd ? 2 : 1] = 0x41;
    add.info.Event[amd ? 3 : 2] = (UCHAR)threshold;
    CHECK_STATUS(session_set_class(&add, sizeof add), STATUS_SUCCESS);
    KPROFILE_SOURCE id = find_source("TestMasked");
    CHECK(source_counters(pmu_here(), id, &select) != 0);
    CHECK_EQ(select & 0xfff00ffff, (uint64_t)wide << 32 | threshold << 24 | 0x412e);
    CHECK_STATUS(hal_source_remove(id), STATUS_SUCCESS);
}

TEST(etw_class, add_source,
     "an added source is listed, has a number of its own, counts its event, and can be removed "
     "when it is not in use [ET-47 ET-48 ET-51 ET-53]")
{
    HANDLE profile;
    PMC_HANDLE set_of_one;
    ULONG bucket[4];
    unsigned last = (cpu_count < 64 ? cpu_count : 64) - 1; /* in use on one processor: in use */
    SKIP_WITHOUT_PMU();
    test_run_on(0);
    for (UCHAR version = 2; version <= 3; version++) {
        struct add add = describe_event("TestRetired", version);
        CHECK_STATUS(session_set_class(&add, sizeof add), STATUS_SUCCESS);
        KPROFILE_SOURCE id = find_source("TestRetired");
        CHECK_RANGE((unsigned)id, 0x19, 0xff);
        CHECK_EQ(hal_source_interval(id), 100000);
        CHECK_STATUS(session_set_class(&add, sizeof add), STATUS_INSUFFICIENT_RESOURCES);
        REQUIRE_OK(NtCreateProfile(&profile, NULL, NULL, 64, 4, bucket, sizeof bucket, id,
                                   UINT64_C(1) << last));
        REQUIRE_STATUS(NtStartProfile(profile), STATUS_SUCCESS);
        EVENT_TRACE_PROFILE_REMOVE_INFORMATION remove = { EventTraceProfileSourceRemoveInformation,
                                                          id, ANY };
        CHECK_STATUS(session_set_class(&remove, sizeof remove), STATUS_DEVICE_BUSY);
        CHECK_STATUS(NtStopProfile(profile), STATUS_SUCCESS);
        handle_close(profile);
        REQUIRE_STATUS(HalAllocatePmcCounterSet(0, &id, 1, &set_of_one), STATUS_SUCCESS);
        CHECK_STATUS(session_set_class(&remove, sizeof remove), STATUS_DEVICE_BUSY);
        check_counts_instructions(set_of_one);
        HalFreePmcCounterSet(set_of_one);
        CHECK_STATUS(session_set_class(&remove, sizeof remove - 1), STATUS_INFO_LENGTH_MISMATCH);
        CHECK_STATUS(session_set_class(&remove, sizeof remove), STATUS_SUCCESS);
        CHECK_STATUS(session_set_class(&remove, sizeof remove), STATUS_INVALID_PARAMETER);
        CHECK_EQ(find_source("TestRetired"), ProfileTime);
        CHECK_STATUS(NtCreateProfile(&profile, NULL, NULL, 64, 4, bucket, sizeof bucket, id, ~0ul),
                     STATUS_NOT_SUPPORTED);
    }
    check_unit_mask();
}

TEST(etw_class, add_refusals,
     "adding a source is refused for wrong versions, processors, descriptions and events; a "
     "built-in source cannot be removed [ET-49 ET-52]")
{
    EVENT_TRACE_PROFILE_REMOVE_INFORMATION remove = { EventTraceProfileSourceRemoveInformation,
                                                      ProfileTotalIssues, ANY };
    ULONG before = get_list();
    SKIP_WITHOUT_PMU();
    for (unsigned version = 0; version < 256; version++)
        if (version != 2 && version != 3) {
            struct add odd = describe_event("Odd", (UCHAR)version);
            CHECK_STATUS(session_set_class(&odd, sizeof odd), STATUS_INVALID_PARAMETER);
        }
    struct add add = describe_event("TestRetired", 2);
    CHECK_STATUS(session_set_class(&add, sizeof add.info - 1), STATUS_INFO_LENGTH_MISMATCH);
    CHECK_STATUS(session_set_class(&add, sizeof add.info),
                 STATUS_INVALID_PARAMETER); /* no end within the length */
    CHECK_STATUS(session_set_class(&add, ADD_HEAD + 2 * 11), STATUS_INVALID_PARAMETER);
    for (unsigned i = 0; i < 3; i++) {
        add = describe_event("TestRetired", 2);
        add.info.CpuInfoHierarchy[i] = 0x5a5a;
        CHECK_STATUS(session_set_class(&add, sizeof add), STATUS_NOT_SUPPORTED);
    }
    add = describe_event("", 2);
    CHECK_STATUS(session_set_class(&add, sizeof add), STATUS_INVALID_PARAMETER);
    add = describe_event("tab\tinside", 2);
    CHECK_STATUS(session_set_class(&add, sizeof add), STATUS_INVALID_PARAMETER);
    add = describe_event("of more than thirty-two characters", 2);
    CHECK_STATUS(session_set_class(&add, sizeof add), STATUS_INVALID_PARAMETER);
    static struct {
        struct add add;
        uint8_t more[4 * PAGE_SIZE];
    } big;
    memset(&big, 'x', sizeof big);
    big.add = describe_event("of more than thirty-two characters", 2);
    CHECK_STATUS(session_set_class(&big, sizeof big), STATUS_INVALID_PARAMETER);
    add = describe_event("Timer", 2);
    CHECK_STATUS(session_set_class(&add, sizeof add), STATUS_INSUFFICIENT_RESOURCES);
    CHECK_STATUS(session_set_class(&remove, sizeof remove), STATUS_INVALID_PARAMETER);
    CHECK_EQ(get_list(), before);
}

TEST(etw_class, without_pmu, "without counters time is the only source, and none can be added")
{
    struct add add = describe_event("TestRetired", 2);
    SKIP_WITH_PMU();
    CHECK_STATUS(session_set_class(&add, sizeof add), STATUS_NOT_SUPPORTED);
    CHECK_EQ(get_list(), 8 + 0x18 + 16);
}

TEST(etw_class, old_flags, "each bit of EnableFlags turns on its group and no other [ET-45]")
{
    /* Group masks 1 and 2. */
    static const ULONG rows[][3] = {
        { 0x10, 0x04, 0 },   { 0x20, 0x80, 0 },   /* context switches, DPCs */
        { 0x40, 0x4000, 0 }, { 0x80, 0, 0x40 },   /* interrupts, system calls */
        { 0x800, 0x200, 0 }, { 0x1000000, 2, 0 }, /* ready threads, samples */
        { 0x02, 0, 0 },      { 0x100, 0, 0 },     /* threads, and one without a group here */
    };
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        PERFINFO_GROUPMASK masks = etw_masks_of_flags(rows[i][0]);
        CHECK_EQ(masks.Masks[0], rows[i][0]);
        CHECK_EQ(masks.Masks[1], rows[i][1]);
        CHECK_EQ(masks.Masks[2], rows[i][2]);
    }
}
