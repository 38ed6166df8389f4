/* SPDX-License-Identifier: MIT */
/* The exported session: what the words trace=, pmc=, stacks= and branches= ask for. stream.c sends
 * it. One thread at a time starts and stops the export, at PASSIVE_LEVEL. */
#include "kernel/etw/etw_export.h"
#include "kernel/etw/etw_class.h"
#include "kernel/etw/etw_control.h"
#include "kernel/etw/etw_session.h"
#include "kernel/etw/stream.h"
#include "hal/branch_owner.h"
#include "hal/owners.h"
#include "hal/sources.h"
#include "kernel/base/bits.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"

#define BUFFER_KB 128
#define BUFFERS 64         /* of all processors together: 8 MB, half of what a session may have */
#define FLUSH_SECONDS 3600 /* full buffers only: a flush is an IPI, which would be traced */
#define COUNTERS_MAX ETW_PMC_COUNTERS_MAX
#define LIST_MAX ETW_HOOKS /* of a class 0x1F */
#define NAME_MAX STREAM_NAME_MAX
#define SESSION_NAME u"ntpmu export"

/* The kinds of records, by the word that a user enables them with. */
static const struct {
    const char *word;
    ULONG mask;
    USHORT hooks[2];
} kinds[] = {
    { "thread", PERF_THREAD, { WMI_LOG_TYPE_THREAD_CREATE, WMI_LOG_TYPE_THREAD_DELETE } },
    { "cswitch", PERF_CONTEXT_SWITCH, { PERFINFO_LOG_TYPE_CONTEXTSWAP } },
    { "ready", PERF_DISPATCHER, { PERFINFO_LOG_TYPE_READY_THREAD } },
    { "profile", PERF_PROFILE, { PERFINFO_LOG_TYPE_SAMPLED_PROFILE } },
    { "pmc", PERF_PMC_PROFILE, { PERFINFO_LOG_TYPE_PMC_INTERRUPT } },
    { "syscall",
      PERF_SYSCALL,
      { PERFINFO_LOG_TYPE_SYSCALL_ENTER, PERFINFO_LOG_TYPE_SYSCALL_EXIT } },
    { "interrupt", PERF_INTERRUPT, { PERFINFO_LOG_TYPE_INTERRUPT } },
    { "dpc", PERF_DPC, { PERFINFO_LOG_TYPE_DPC, PERFINFO_LOG_TYPE_TIMERDPC } },
    { "ipi", PERF_IPI, { PERFINFO_LOG_TYPE_IPI } },
};

/* The values that records carry, and the hooks whose records carry them. */
struct counters {
    unsigned count, hook_count;
    char names[COUNTERS_MAX][NAME_MAX];
    ULONG sources[COUNTERS_MAX];
    ULONG hooks[ETW_MAX_PMC_EVENTS];
};

static struct trace_stream export;
static TRACEHANDLE session;
static struct counters chosen;
static struct follow {
    unsigned count;
    ULONG hooks[LIST_MAX];
    ULONG filters;   /* of branches */
} stacks, branches;  /* what follows which records */
static bool samples; /* by the counters */

static char reason[160];

/* --- The request. --- */

/* Copies the next word of a list with commas, at most NAME_MAX - 1 characters; false: none. */
static bool next_word(const char **list, char *word)
{
    unsigned n = 0;
    while (**list == ',')
        ++*list;
    for (; **list && **list != ',' && n < NAME_MAX - 1; ++*list)
        word[n++] = **list;
    word[n] = 0;
    return n > 0;
}

/* ARRAY_SIZE(kinds): there is none; `reason` says so. */
static unsigned find_kind(const char *word)
{
    for (unsigned k = 0; k < ARRAY_SIZE(kinds); k++)
        if (strcmp(kinds[k].word, word) == 0)
            return k;
    print_to(reason, sizeof reason,
             "no event is called %s: thread, cswitch, ready, profile, pmc, syscall, interrupt, "
             "dpc, ipi",
             word);
    return ARRAY_SIZE(kinds);
}

/* The word that chooses what branches leave out. */
static bool take_filter(const char *word, struct follow *follow)
{
    static const struct {
        const char *word;
        ULONG filters;
    } words[] = { { "user", 1 }, { "kernel", 2 }, { "calls", ETW_LBR_CALL_STACK } };
    for_each_in(w, words)
        if (follow == &branches && strcmp(w->word, word) == 0) {
            follow->filters |= w->filters;
            return true;
        }
    return false;
}

/* Stacks and branches follow records that are recorded: of no others. */
static const char *choose_follow(const char *what, const char *events,
                                 const PERFINFO_GROUPMASK *masks, struct follow *follow)
{
    char word[NAME_MAX];
    *follow = (struct follow){ 0 };
    while (next_word(&events, word)) {
        if (take_filter(word, follow))
            continue;
        unsigned k = find_kind(word);
        if (k == ARRAY_SIZE(kinds))
            return reason;
        if (!(masks->Masks[PERF_MASK_INDEX(kinds[k].mask)] & PERF_MASK_BITS(kinds[k].mask))) {
            print_to(reason, sizeof reason, "%s of %s need that event", what, word);
            return reason;
        }
        for (unsigned i = 0; i < ARRAY_SIZE(kinds[k].hooks) && kinds[k].hooks[i]; i++)
            if (follow->count < LIST_MAX)
                follow->hooks[follow->count++] = kinds[k].hooks[i];
    }
    return NULL;
}

static const char *choose_events(const char *events, PERFINFO_GROUPMASK *masks,
                                 struct counters *counters)
{
    char word[NAME_MAX];
    while (next_word(&events, word)) {
        unsigned k = find_kind(word);
        if (k == ARRAY_SIZE(kinds))
            return reason;
        masks->Masks[PERF_MASK_INDEX(kinds[k].mask)] |= PERF_MASK_BITS(kinds[k].mask);
        for (unsigned i = 0; i < ARRAY_SIZE(kinds[k].hooks) && kinds[k].hooks[i]; i++)
            if (counters->hook_count++ < ETW_MAX_PMC_EVENTS)
                counters->hooks[counters->hook_count - 1] = kinds[k].hooks[i];
    }
    return counters->hook_count ? NULL : "no events are asked for";
}

/* The source with one of these words or the HAL's name; ProfileTime: there is none. */
static KPROFILE_SOURCE source_of(const char *name)
{
    static const struct {
        const char *name;
        KPROFILE_SOURCE source;
    } words[] = {
        { "instructions", ProfileTotalIssues },    { "cycles", ProfileTotalCycles },
        { "branches", ProfileBranchInstructions }, { "branch_misses", ProfileBranchMispredictions },
        { "cache_misses", ProfileCacheMisses },
    };
    for_each_in(w, words)
        if (string_same(w->name, name))
            return hal_source_supported(w->source) ? w->source : ProfileTime;
    KPROFILE_SOURCE source = ProfileTime;
    while ((source = hal_source_next(source)) != ProfileTime)
        if (string_same(hal_source_name(source), name))
            return source;
    return ProfileTime;
}

static bool is_twice(const struct counters *counters, const char *name)
{
    for (unsigned i = 0; i < counters->count; i++)
        if (string_same(counters->names[i], name))
            return true;
    return false;
}

/* Removes ":u" from the end. Returns whether it was there: count ring 3 alone. */
static bool take_suffix(char *word)
{
    size_t n = strlen(word);
    if (n < 3 || strcmp(word + n - 2, ":u") != 0)
        return false;
    word[n - 2] = 0;
    return true;
}

static const char *choose_counters(const char *names, struct counters *counters)
{
    char word[NAME_MAX];
    ULONG most = 0;
    NtTraceControl(EtwMaxPmcCounterQueryCode, NULL, 0, &most, sizeof most, NULL);
    while (next_word(&names, word)) {
        bool ring3 = take_suffix(word);
        KPROFILE_SOURCE source = source_of(word);
        if (!hal_counter_count())
            return "there is no PMU that could count";
        if (source == ProfileTime) {
            print_to(reason, sizeof reason,
                     "this processor has no counter called %s: instructions, cycles, branches, "
                     "branch_misses, cache_misses, or a profile source's name",
                     word);
            return reason;
        }
        if (counters->count == most || counters->count == COUNTERS_MAX) {
            print_to(reason, sizeof reason, "more counters than there are: %u", most);
            return reason;
        }
        if (ring3)
            memcpy(word + strlen(word), "_u", sizeof "_u");
        if (is_twice(counters, word)) {
            print_to(reason, sizeof reason, "the counter %s is asked for twice", word);
            return reason;
        }
        memcpy(counters->names[counters->count], word, sizeof word);
        counters->sources[counters->count++] = (ULONG)source | (ring3 ? PROFILE_SOURCE_RING3 : 0);
    }
    return NULL;
}

/* --- The session. --- */

static NTSTATUS control(ULONG code, WMI_LOGGER_INFORMATION *info)
{
    static WCHAR name[] = SESSION_NAME;
    ULONG n;
    *info = (WMI_LOGGER_INFORMATION){
        .Wnode = { .BufferSize = sizeof *info,
                   .Flags = WNODE_FLAG_TRACED_GUID,
                   .HistoricalContext = session },
        .BufferSize = BUFFER_KB,
        .MaximumBuffers = BUFFERS,
        .FlushTimer = FLUSH_SECONDS,
        .LogFileMode = EVENT_TRACE_REAL_TIME_MODE | EVENT_TRACE_SYSTEM_LOGGER_MODE,
        .LoggerName = { sizeof name - sizeof name[0], sizeof name, name },
    };
    return NtTraceControl(code, info, sizeof *info, info, sizeof *info, &n);
}

/* One of the lists of class 0x1F whose entries are ULONGs after the handle. */
static NTSTATUS set_own_list(EVENT_TRACE_INFORMATION_CLASS which, const ULONG *list, unsigned count)
{
    struct {
        EVENT_TRACE_INFORMATION_CLASS which;
        ULONG reserved;
        TRACEHANDLE session;
        ULONG list[LIST_MAX];
    } info = { which, 0, session, { 0 } };
    memcpy(info.list, list, count * sizeof list[0]);
    return NtSetSystemInformation(SystemPerformanceTraceInformation, &info,
                                  (ULONG)(offsetof(__typeof__(info), list) +
                                          count * sizeof list[0]));
}

static NTSTATUS set_counters(void)
{
    const struct counters *counters = &chosen;
    ULONG by[COUNTERS_MAX];
    NTSTATUS status = STATUS_SUCCESS;
    if (counters->count)
        status = set_own_list(EventTraceProfileEventListInformation, counters->hooks,
                              counters->hook_count);
    if (counters->count && NT_SUCCESS(status))
        status = set_own_list(EventTraceProfileCounterListInformation, counters->sources,
                              counters->count);
    if (!samples || !NT_SUCCESS(status))
        return status;
    for (unsigned i = 0; i < counters->count; i++)
        by[i] = counters->sources[i] & ~PROFILE_SOURCE_RING3;
    return set_own_list(EventTraceProfileConfigInformation, by, counters->count);
}

static NTSTATUS set_branches(void)
{
    const ULONG options[] = { branches.filters };
    NTSTATUS status = set_own_list(EventTraceLastBranchConfigurationInformation, options, 1);
    return NT_SUCCESS(status) ? set_own_list(EventTraceLastBranchEventListInformation,
                                             branches.hooks, branches.count)
                              : status;
}

static NTSTATUS set_masks(void)
{
    EVENT_TRACE_GROUPMASK_INFORMATION info = { EventTraceGroupMaskInformation, session,
                                               export.masks };
    return NtSetSystemInformation(SystemPerformanceTraceInformation, &info, sizeof info);
}

/* Nothing is sent before everything else is in place. */
static NTSTATUS start_session(void)
{
    WMI_LOGGER_INFORMATION info;
    NTSTATUS status = control(EtwStartLoggerCode, &info);
    if (!NT_SUCCESS(status))
        return status;
    session = info.Wnode.HistoricalContext;
    status = set_counters();
    if (NT_SUCCESS(status) && stacks.count)
        status = set_own_list(EventTraceStackTracingInformation, stacks.hooks, stacks.count);
    if (NT_SUCCESS(status) && branches.count)
        status = set_branches();
    if (NT_SUCCESS(status))
        status = set_masks();
    if (!NT_SUCCESS(status)) {
        control(EtwStopLoggerCode, &info);
        return status;
    }
    etw_enter();
    export.logger = etw_find(session);
    bool started = stream_start(&export);
    etw_leave();
    if (!started)
        control(EtwStopLoggerCode, &info);
    return started ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

const char *trace_export_start(const char *events, const char *names, const char *stacks_of,
                               const char *branches_of)
{
    PERFINFO_GROUPMASK masks = { { 0 } };
    struct counters counters = { 0 };
    session = 0;
    if (strcmp(events, "none") == 0)
        return stream_open() ? NULL : "there is no second serial port";
    const char *wrong = choose_events(events, &masks, &counters);
    if (!wrong)
        wrong = choose_counters(names, &counters);
    if (!wrong)
        wrong = choose_follow("stacks", stacks_of, &masks, &stacks);
    if (!wrong)
        wrong = choose_follow("branches", branches_of, &masks, &branches);
    if (wrong)
        return wrong;
    samples = masks.Masks[PERF_MASK_INDEX(PERF_PMC_PROFILE)] & PERF_MASK_BITS(PERF_PMC_PROFILE);
    if (samples && (!counters.count || counters.count > ETW_MAX_PROFILING_SOURCES))
        return "pmc samples by the counters: one to four of them";
    if (branches.count > ETW_MAX_LBR_EVENTS)
        return "these are more than four kinds of records, and branches go with four";
    if (branches.count && !hal_branches_can(branches.filters))
        return branches.filters && hal_branches_can(0)
                   ? "this processor's list of branches leaves nothing out like that"
                   : "a processor has no list of last branches";
    if (branches.filters && !branches.count)
        return "branches need an event";
    if (counters.count && counters.hook_count > ETW_MAX_PMC_EVENTS)
        return "these are more than four kinds of records, and counters go with four";
    if (!counters.count)
        counters.hook_count = 0;
    if (!stream_open())
        return "there is no second serial port";
    export = (struct trace_stream){ .counters = counters.count, .masks = masks };
    memcpy(export.names, counters.names, sizeof export.names);
    chosen = counters;
    NTSTATUS status = start_session();
    if (NT_SUCCESS(status))
        return NULL;
    session = 0;
    print_to(reason, sizeof reason,
             status == STATUS_DEVICE_BUSY ? "the counters that are free cannot count all of these "
                                            "at once"
                                          : "the session was refused: 0x%08x",
             status);
    return reason;
}

bool trace_export_stop(const char *facts)
{
    WMI_LOGGER_INFORMATION info;
    log_files_finish(facts);
    if (session) {
        control(EtwStopLoggerCode, &info);
        stream_finish(&export, facts);
    }
    return stream_alive();
}
