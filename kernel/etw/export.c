/* SPDX-License-Identifier: MIT */
/* The exported session, and the thread that sends it. The thread is an ordinary consumer and uses
 * the same calls as ring 3. The host (tests/host/Etw.pm) makes files of what it gets.
 *
 * On the wire: chunks, each a struct chunk and `length` bytes. Numbers count from 0, so that the
 * host sees a gap. The first chunk and the last one are text, a fact in each line, its name first.
 * Between them each chunk is a buffer of the session up to SavedOffset, as nt_etw.h describes it.
 * One thread at a time starts and stops the export, at PASSIVE_LEVEL. */
#include "kernel/etw/export.h"
#include "hal/clock.h"
#include "hal/hal.h"
#include "hal/smp.h"
#include "kernel/base/assert.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/crc32.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/console/serial.h"
#include "kernel/ke/etw_session.h"
#include "kernel/ke/object.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"
#include "kernel/nt/nt_process.h"
#include "kernel/nt/nt_time.h"

#define BUFFER_KB 128
#define BUFFERS 64         /* of all processors together: 8 MB, half of what a session may have */
#define FLUSH_SECONDS 3600 /* full buffers only: a flush is an IPI, which would be traced */
#define AREA_PAGES (2 * BUFFER_KB / 4)
#define POLL_NS 2000000u
#define COUNTERS_MAX 7 /* values in a record */
#define NAME_MAX 64
#define SESSION_NAME u"ntpmu export"

#define CHUNK_MAGIC 0x4b48434eu /* "NCHK" */
enum { CHUNK_BEGIN = 1, CHUNK_BUFFER, CHUNK_END };

struct chunk {
    uint32_t magic, number;
    uint32_t kind;
    uint32_t length; /* of what follows */
    uint32_t crc;    /* of the header without `crc`, and of what follows */
};
ABI_SIZE(struct chunk, 20);

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
    { "ipi", PERF_IPI, { PERFINFO_LOG_TYPE_IPI } },
};

/* The values that records carry, and the hooks whose records carry them. */
struct counters {
    unsigned count, hook_count;
    char names[COUNTERS_MAX][NAME_MAX];
    ULONG sources[COUNTERS_MAX];
    ULONG hooks[ETW_MAX_PMC_EVENTS];
};

static struct {
    struct serial port;
    uint32_t chunks;
    uint64_t events;
    TRACEHANDLE session;
    TRACE_CONSUMER consumer;
    struct counters counters;
    struct thread *thread;
    uint8_t *area;
    bool samples;       /* by the counters */
    uint64_t tsc, time; /* one moment before the session: the TSC, 100 ns since 1601 */
    PERFINFO_GROUPMASK masks;
} export;

static char reason[160];

/* --- Sending. --- */

static void send(uint32_t kind, const void *body, size_t size)
{
    struct chunk chunk = { CHUNK_MAGIC, export.chunks++, kind, (uint32_t)size, 0 };
    chunk.crc = crc32(crc32(0, &chunk, offsetof(struct chunk, crc)), body, size);
    serial_write(&export.port, &chunk, sizeof chunk);
    serial_write(&export.port, body, size);
}

struct text {
    char *at;
    size_t left;
};

__attribute__((format(printf, 2, 3))) static void put_text(struct text *text, const char *format,
                                                           ...)
{
    va_list args;
    va_start(args, format);
    size_t n = print_to_va(text->at, text->left, format, args);
    va_end(args);
    text->at += n;
    text->left -= n;
}

/* What is the case now: intervals, living threads. */
static void put_facts(struct text *text)
{
    struct thread *thread;
    put_text(text, "interval %u %u Timer\n", ProfileTime, hal_source_interval(ProfileTime));
    for (unsigned i = 0; export.samples && i < export.counters.count; i++) {
        KPROFILE_SOURCE source = export.counters.sources[i] & ~PROFILE_SOURCE_RING3;
        put_text(text, "interval %u %u %s\n", source, hal_source_interval(source),
                 hal_source_name(source));
    }
    for (unsigned id = 0; (thread = thread_after(id)); object_release(&thread->object)) {
        id = thread->id;
        put_text(text, "thread %u %u %p %p %p %p %u %s\n", thread->process ? PROCESS_ID : 0, id,
                 thread->stack + KERNEL_STACK_SIZE, thread->stack, (void *)thread->user_stack_top,
                 (void *)(thread->process ? thread->user_start : (uint64_t)thread->start),
                 (unsigned)thread->priority, thread->name ? thread->name : "");
    }
}

static void send_begin(void)
{
    struct text text = { (char *)export.area, AREA_PAGES * PAGE_SIZE };
    put_text(&text, "frequency %lu\ntsc %lu\ntime %lu\nboot %lu\nbuild %u\n",
             export.consumer.Frequency, export.tsc, export.time, SYSTEM_TIME_AT_BOOT,
             WINDOWS_BUILD);
    put_text(&text, "cpus %u\nmegabytes %lu\nprocessor %u %u %u\n", cpu_count,
             phys_total_pages() * PAGE_SIZE >> 20, cpu_features.family, cpu_features.model,
             cpu_features.stepping);
    put_text(&text, "buffer %u\n", BUFFER_KB * 1024);
    for (unsigned i = 0; i < export.counters.count; i++)
        put_text(&text, "counter %s\n", export.counters.names[i]);
    for (unsigned i = 0; i < PERF_NUM_MASKS; i++)
        put_text(&text, "mask %u\n", export.masks.Masks[i]);
    put_facts(&text);
    ASSERT(text.left > 1);
    send(CHUNK_BEGIN, export.area, (size_t)(text.at - (char *)export.area));
}

static void send_end(const char *more, uint64_t lost)
{
    struct text text = { (char *)export.area, AREA_PAGES * PAGE_SIZE };
    put_text(&text, "events %lu\nlost %lu\nexporter %u\nend %lu\n%s", export.events, lost,
             export.thread->id, rdtsc(), more);
    put_facts(&text);
    ASSERT(text.left > 1);
    send(CHUNK_END, export.area, (size_t)(text.at - (char *)export.area));
}

/* Reads until the session has stopped and nothing is left. */
static void export_run(void *unused)
{
    ULONG n;
    (void)unused;
    send_begin();
    while (NT_SUCCESS(NtTraceControl(EtwRealtimeReadCode, &export.consumer.Handle,
                                     sizeof export.consumer.Handle, export.area,
                                     AREA_PAGES * PAGE_SIZE, &n))) {
        if (!n)
            sched_wait(NULL, clock_ns() + POLL_NS, DelayExecution);
        for (const uint8_t *at = export.area; at < export.area + n;) {
            const WMI_BUFFER_HEADER *buffer = (const WMI_BUFFER_HEADER *)(const void *)at;
            export.events += etw_buffer_records(buffer);
            send(CHUNK_BUFFER, buffer, buffer->SavedOffset);
            at += buffer->SavedOffset;
        }
    }
}

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

static const char *choose_events(const char *events, PERFINFO_GROUPMASK *masks,
                                 struct counters *counters)
{
    char word[NAME_MAX];
    while (next_word(&events, word)) {
        unsigned k = 0;
        while (k < ARRAY_SIZE(kinds) && strcmp(kinds[k].word, word) != 0)
            k++;
        if (k == ARRAY_SIZE(kinds)) {
            print_to(reason, sizeof reason,
                     "no event is called %s: thread, cswitch, ready, profile, pmc, syscall, "
                     "interrupt, ipi",
                     word);
            return reason;
        }
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
    for (unsigned i = 0; i < ARRAY_SIZE(words); i++)
        if (string_same(words[i].name, name))
            return hal_source_supported(words[i].source) ? words[i].source : ProfileTime;
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
                   .HistoricalContext = export.session },
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
        ULONG list[COUNTERS_MAX];
    } info = { which, 0, export.session, { 0 } };
    memcpy(info.list, list, count * sizeof list[0]);
    return NtSetSystemInformation(SystemPerformanceTraceInformation, &info,
                                  (ULONG)(offsetof(__typeof__(info), list) +
                                          count * sizeof list[0]));
}

static NTSTATUS set_counters(void)
{
    const struct counters *counters = &export.counters;
    ULONG by[COUNTERS_MAX];
    NTSTATUS status = STATUS_SUCCESS;
    if (counters->count)
        status = set_own_list(EventTraceProfileEventListInformation, counters->hooks,
                              counters->hook_count);
    if (counters->count && NT_SUCCESS(status))
        status = set_own_list(EventTraceProfileCounterListInformation, counters->sources,
                              counters->count);
    if (!export.samples || !NT_SUCCESS(status))
        return status;
    for (unsigned i = 0; i < counters->count; i++)
        by[i] = counters->sources[i] & ~PROFILE_SOURCE_RING3;
    return set_own_list(EventTraceProfileConfigInformation, by, counters->count);
}

static NTSTATUS set_masks(void)
{
    EVENT_TRACE_GROUPMASK_INFORMATION info = { EventTraceGroupMaskInformation, export.session,
                                               export.masks };
    return NtSetSystemInformation(SystemPerformanceTraceInformation, &info, sizeof info);
}

/* Gives back what a failed start acquired. */
static void undo(void)
{
    WMI_LOGGER_INFORMATION info;
    if (export.consumer.Handle)
        handle_close(export.consumer.Handle);
    if (export.session)
        control(EtwStopLoggerCode, &info);
    phys_free(export.area, AREA_PAGES);
}

/* Nothing is sent before everything else is in place. */
static NTSTATUS start_session(void)
{
    WMI_LOGGER_INFORMATION info;
    ULONG n;
    NTSTATUS status = control(EtwStartLoggerCode, &info);
    if (!NT_SUCCESS(status))
        return status;
    export.session = info.Wnode.HistoricalContext;
    status = set_counters();
    if (NT_SUCCESS(status))
        status = NtTraceControl(EtwRealtimeConnectCode, &export.session, sizeof export.session,
                                &export.consumer, sizeof export.consumer, &n);
    if (NT_SUCCESS(status))
        status = set_masks();
    if (!NT_SUCCESS(status))
        return status;
    export.thread = thread_create("trace export", export_run, NULL, SMP_ALL);
    if (!export.thread)
        return STATUS_NO_MEMORY;
    return STATUS_SUCCESS;
}

const char *trace_export_start(const char *events, const char *names)
{
    PERFINFO_GROUPMASK masks = { { 0 } };
    struct counters counters = { 0 };
    const char *wrong = choose_events(events, &masks, &counters);
    if (!wrong)
        wrong = choose_counters(names, &counters);
    if (wrong)
        return wrong;
    bool samples =
        masks.Masks[PERF_MASK_INDEX(PERF_PMC_PROFILE)] & PERF_MASK_BITS(PERF_PMC_PROFILE);
    if (samples && (!counters.count || counters.count > ETW_MAX_PROFILING_SOURCES))
        return "pmc samples by the counters: one to four of them";
    if (counters.count && counters.hook_count > ETW_MAX_PMC_EVENTS)
        return "these are more than four kinds of records, and counters go with four";
    if (!counters.count)
        counters.hook_count = 0;
    memset(&export, 0, sizeof export);
    if (!serial_open(&export.port, COM2))
        return "there is no second serial port";
    export.area = phys_alloc(AREA_PAGES);
    if (!export.area)
        return "no memory";
    export.counters = counters;
    export.samples = samples;
    export.masks = masks;
    export.tsc = rdtsc();
    export.time = SYSTEM_TIME_AT_BOOT + clock_ns() / 100;
    NTSTATUS status = start_session();
    if (NT_SUCCESS(status))
        return NULL;
    undo();
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
    control(EtwStopLoggerCode, &info);
    sched_wait(&export.thread->object, SCHED_FOREVER, Executive);
    handle_close(export.consumer.Handle);
    send_end(facts, info.EventsLost);
    object_release(&export.thread->object);
    phys_free(export.area, AREA_PAGES);
    return export.port.present;
}
