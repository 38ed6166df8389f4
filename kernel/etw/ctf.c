/* SPDX-License-Identifier: MIT */
/* The exported session, and the thread that sends it. The thread is an ordinary consumer and uses
 * the same calls as ring 3.
 *
 * On the wire: chunks, each a struct chunk and `length` bytes. Numbers count from 0, so that the
 * host sees a gap. The first chunk is the metadata; the last holds the totals. One thread at a time
 * starts and stops the export, at PASSIVE_LEVEL. Source: Common Trace Format 1.8.3. */
#include "kernel/etw/ctf.h"
#include "hal/clock.h"
#include "hal/hal.h"
#include "hal/smp.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/crc32.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/console/serial.h"
#include "kernel/ke/etw.h"
#include "kernel/ke/object.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"

#define BUFFER_KB 128
#define BUFFERS 64         /* of all processors together: 8 MB, half of what a session may have */
#define FLUSH_SECONDS 3600 /* full buffers only: a flush is an IPI, which would be traced */
#define AREA_PAGES (2 * BUFFER_KB / 4)
#define POLL_NS 2000000u
#define SESSION_NAME u"ntpmu export"

#define CHUNK_MAGIC 0x4b48434eu /* "NCHK" */
enum { CHUNK_METADATA = 1, CHUNK_PACKET, CHUNK_END };

struct chunk {
    uint32_t magic, number;
    uint32_t kind, cpu;
    uint32_t length; /* of what follows */
    uint32_t crc;    /* of the header without `crc`, and of what follows */
};
ABI_SIZE(struct chunk, 24);

struct end {
    uint64_t events, lost;
    uint64_t thread; /* the exporter's id */
};

static struct {
    struct serial port;
    uint32_t chunks;
    struct end end;
    TRACEHANDLE session;
    TRACE_CONSUMER consumer;
    struct ctf_counters counters;
    struct thread *thread;
    uint8_t *area;
} export;

static char reason[160];

/* --- Sending. --- */

/* In two parts, because a packet's header is not in memory before its buffer. */
static void send(uint32_t kind, uint32_t cpu, const void *head, size_t head_size, const void *body,
                 size_t body_size)
{
    struct chunk chunk = {
        CHUNK_MAGIC, export.chunks++, kind, cpu, (uint32_t)(head_size + body_size), 0
    };
    chunk.crc = crc32(0, &chunk, offsetof(struct chunk, crc));
    chunk.crc = crc32(crc32(chunk.crc, head, head_size), body, body_size);
    serial_write(&export.port, &chunk, sizeof chunk);
    serial_write(&export.port, head, head_size);
    serial_write(&export.port, body, body_size);
}

/* The buffer is this thread's own copy. */
static void send_buffer(WMI_BUFFER_HEADER *buffer)
{
    struct ctf_packet packet;
    export.end.events += ctf_packet(buffer, &packet);
    send(CHUNK_PACKET, (uint32_t)packet.cpu_id, &packet, sizeof packet, buffer + 1,
         buffer->SavedOffset - sizeof *buffer);
}

static void send_buffers(uint8_t *at, const uint8_t *end)
{
    while (at < end) {
        WMI_BUFFER_HEADER *buffer = (WMI_BUFFER_HEADER *)(void *)at;
        at += buffer->SavedOffset;
        send_buffer(buffer);
    }
}

static void send_metadata(void)
{
    char *text = (char *)export.area;
    _Static_assert(CTF_METADATA_MAX <= AREA_PAGES * PAGE_SIZE, "it fits");
    size_t length =
        ctf_metadata(text, CTF_METADATA_MAX, export.consumer.Frequency, &export.counters);
    send(CHUNK_METADATA, 0, text, length, NULL, 0);
}

/* Reads until the session has stopped and nothing is left. */
static void run(void *unused)
{
    ULONG n;
    (void)unused;
    send_metadata();
    while (NT_SUCCESS(NtTraceControl(EtwRealtimeReadCode, &export.consumer.Handle,
                                     sizeof export.consumer.Handle, export.area,
                                     AREA_PAGES * PAGE_SIZE, &n))) {
        if (n)
            send_buffers(export.area, export.area + n);
        else
            sched_wait(NULL, clock_ns() + POLL_NS, DelayExecution);
    }
}

/* --- The request. --- */

/* Copies the next word of a list with commas, at most CTF_NAME_MAX - 1 characters; false: none. */
static bool next_word(const char **list, char *word)
{
    unsigned n = 0;
    while (**list == ',')
        ++*list;
    for (; **list && **list != ',' && n < CTF_NAME_MAX - 1; ++*list)
        word[n++] = **list;
    word[n] = 0;
    return n > 0;
}

static const char *choose_events(const char *events, PERFINFO_GROUPMASK *masks,
                                 struct ctf_counters *counters)
{
    char word[CTF_NAME_MAX];
    while (next_word(&events, word)) {
        bool found = false;
        for (const struct ctf_hook *hook = ctf_hooks; hook->name; hook++) {
            if (strcmp(hook->word, word) != 0)
                continue;
            found = true;
            masks->Masks[PERF_MASK_INDEX(hook->mask)] |= PERF_MASK_BITS(hook->mask);
            if (counters->hook_count < ETW_MAX_PMC_EVENTS)
                counters->hooks[counters->hook_count] = hook->id;
            counters->hook_count++;
        }
        if (!found) {
            print_to(reason, sizeof reason,
                     "no event is called %s: thread, cswitch, ready, profile, pmc, syscall, "
                     "interrupt, ipi",
                     word);
            return reason;
        }
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

static bool is_twice(const struct ctf_counters *counters, const char *name)
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

static const char *choose_counters(const char *names, struct ctf_counters *counters)
{
    char word[CTF_NAME_MAX];
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
        if (counters->count == most || counters->count == CTF_COUNTERS_MAX) {
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

/* One of the lists of class 0x1F whose entries are ULONGs behind the handle. */
static NTSTATUS set_list(EVENT_TRACE_INFORMATION_CLASS which, const ULONG *list, unsigned count)
{
    struct {
        EVENT_TRACE_INFORMATION_CLASS which;
        ULONG reserved;
        TRACEHANDLE session;
        ULONG list[CTF_COUNTERS_MAX];
    } info = { which, 0, export.session, { 0 } };
    memcpy(info.list, list, count * sizeof list[0]);
    return NtSetSystemInformation(SystemPerformanceTraceInformation, &info,
                                  (ULONG)(offsetof(__typeof__(info), list) +
                                          count * sizeof list[0]));
}

static NTSTATUS set_counters(bool samples)
{
    const struct ctf_counters *counters = &export.counters;
    ULONG by[CTF_COUNTERS_MAX];
    NTSTATUS status = STATUS_SUCCESS;
    if (counters->count)
        status =
            set_list(EventTraceProfileEventListInformation, counters->hooks, counters->hook_count);
    if (counters->count && NT_SUCCESS(status))
        status =
            set_list(EventTraceProfileCounterListInformation, counters->sources, counters->count);
    if (!samples || !NT_SUCCESS(status))
        return status;
    for (unsigned i = 0; i < counters->count; i++)
        by[i] = counters->sources[i] & ~PROFILE_SOURCE_RING3;
    return set_list(EventTraceProfileConfigInformation, by, counters->count);
}

static NTSTATUS set_masks(const PERFINFO_GROUPMASK *masks)
{
    EVENT_TRACE_GROUPMASK_INFORMATION info = { EventTraceGroupMaskInformation, export.session,
                                               *masks };
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
static NTSTATUS start_session(const PERFINFO_GROUPMASK *masks, bool samples)
{
    WMI_LOGGER_INFORMATION info;
    ULONG n;
    NTSTATUS status = control(EtwStartLoggerCode, &info);
    if (!NT_SUCCESS(status))
        return status;
    export.session = info.Wnode.HistoricalContext;
    status = set_counters(samples);
    if (NT_SUCCESS(status))
        status = NtTraceControl(EtwRealtimeConnectCode, &export.session, sizeof export.session,
                                &export.consumer, sizeof export.consumer, &n);
    if (NT_SUCCESS(status))
        status = set_masks(masks);
    if (!NT_SUCCESS(status))
        return status;
    export.thread = thread_create("trace export", run, NULL, SMP_ALL);
    if (!export.thread)
        return STATUS_NO_MEMORY;
    export.end.thread = export.thread->id;
    return STATUS_SUCCESS;
}

const char *ctf_start(const char *events, const char *names)
{
    PERFINFO_GROUPMASK masks = { { 0 } };
    struct ctf_counters counters = { 0 };
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
    NTSTATUS status = start_session(&masks, samples);
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

bool ctf_stop(void)
{
    WMI_LOGGER_INFORMATION info;
    control(EtwStopLoggerCode, &info);
    sched_wait(&export.thread->object, SCHED_FOREVER, Executive);
    object_release(&export.thread->object);
    handle_close(export.consumer.Handle);
    phys_free(export.area, AREA_PAGES);
    export.end.lost = info.EventsLost;
    send(CHUNK_END, 0, &export.end, sizeof export.end, NULL, 0);
    return export.port.present;
}
