/* SPDX-License-Identifier: MIT */
/* Sends sessions to the host (tests/tools/Etw.pm), which makes files of what it gets.
 *
 * On the wire: chunks, each a struct chunk and `length` bytes. Numbers count from 0, so that the
 * host sees a gap. A stream's first chunk and its last one are text, a fact in each line, its name
 * first. Between them each chunk is a buffer of the session up to SavedOffset, as nt_etw.h
 * describes it. Chunks of several streams may alternate. PASSIVE_LEVEL. */
#include "kernel/etw/stream.h"
#include "hal/machine/clock.h"
#include "hal/machine/smp.h"
#include "kernel/etw/etw_session.h"
#include "hal/sources.h"
#include "kernel/base/assert.h"
#include "kernel/base/crc32.h"
#include "kernel/base/print.h"
#include "kernel/console/serial.h"
#include "kernel/ke/mutex.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"
#include "kernel/nt/nt_process.h"
#include "kernel/nt/nt_time.h"

#define POLL_NS 2000000u
#define TEXT_PAGES 32 /* of the beginning or the end: a line for each thread and image */

#define CHUNK_MAGIC 0x4b48434eu /* "NCHK" */
enum { CHUNK_BEGIN = 1, CHUNK_BUFFER, CHUNK_END };

struct chunk {
    uint32_t magic, number;
    uint32_t kind;   /* and from bit 8 on the stream's id */
    uint32_t length; /* of what follows */
    uint32_t crc;    /* of the header without `crc`, and of what follows */
};
ABI_SIZE(struct chunk, 20);

static struct mutex wire = MUTEX("trace streams");
static struct serial port; /* L: wire to write */
static bool opened;
static uint32_t chunks; /* L: wire */

bool stream_open(void)
{
    opened = opened || serial_open(&port, COM2);
    return opened;
}

bool stream_opened(void) { return opened; }
bool stream_alive(void) { return port.present; }

static void send(const struct trace_stream *stream, uint32_t kind, const void *body, size_t size)
{
    mutex_acquire(&wire);
    struct chunk chunk = { CHUNK_MAGIC, chunks++, kind | stream->id << 8, (uint32_t)size, 0 };
    chunk.crc = crc32(crc32(0, &chunk, offsetof(struct chunk, crc)), body, size);
    serial_write(&port, &chunk, sizeof chunk);
    serial_write(&port, body, size);
    mutex_release(&wire);
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
    for (unsigned i = 0; i < ETW_MAX_PROFILING_SOURCES; i++) {
        KPROFILE_SOURCE source = (KPROFILE_SOURCE)etw_sampled[i];
        if (source)
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

/* What the records carry: known at the beginning, or, of a file, at the end. */
static void put_records(struct text *text, const struct trace_stream *s)
{
    for (unsigned i = 0; i < s->counters; i++)
        put_text(text, "counter %s\n", s->names[i]);
    for (unsigned i = 0; i < PERF_NUM_MASKS; i++)
        put_text(text, "mask %u\n", s->masks.Masks[i]);
}

static void send_text(const struct trace_stream *s, uint32_t kind, const struct text *text)
{
    ASSERT(text->left > 1);
    send(s, kind, s->area, (size_t)(text->at - (char *)s->area));
}

static void send_begin(const struct trace_stream *s)
{
    struct text text = { (char *)s->area, s->pages * PAGE_SIZE };
    put_text(&text, "frequency %lu\ntsc %lu\ntime %lu\nboot %lu\nbuild %u\n", clock_tsc_hz, s->tsc,
             s->time, SYSTEM_TIME_AT_BOOT, WINDOWS_BUILD);
    put_text(&text, "cpus %u\nmegabytes %lu\nprocessor %u %u %u\n", cpu_count,
             phys_total_pages() * PAGE_SIZE >> 20, cpu_features.family, cpu_features.model,
             cpu_features.stepping);
    put_text(&text, "buffer %u\nsession %s\n", s->logger->streams[0]->size, s->logger->name);
    if (s->id)
        put_text(&text, "file %s\nmode %u\nmaximum %u\n", s->file, s->mode, s->logger->megabytes);
    else
        put_records(&text, s);
    put_facts(&text);
    send_text(s, CHUNK_BEGIN, &text);
}

static void send_end(const struct trace_stream *s, const char *facts)
{
    struct text text = { (char *)s->area, s->pages * PAGE_SIZE };
    put_text(&text, "events %lu\nlost %lu\nlost_buffers %lu\nexporter %u\nend %lu\n%s", s->events,
             etw_lost(s->logger) + s->dropped, s->dropped_buffers, s->thread->id, rdtsc(), facts);
    if (s->id)
        put_records(&text, s);
    put_facts(&text);
    send_text(s, CHUNK_END, &text);
}

/* False: the session has stopped and nothing is left. A sequential file that is full stops it. */
static bool read_some(struct trace_stream *s, ULONG *n)
{
    etw_enter();
    NTSTATUS status = etw_read(s->logger, s->area, s->pages * PAGE_SIZE, n);
    if (s->limit && s->buffers >= s->limit && !s->logger->stopped)
        etw_stop(s->logger);
    etw_leave();
    return NT_SUCCESS(status);
}

static void stream_run(void *stream)
{
    struct trace_stream *s = stream;
    ULONG n;
    send_begin(s);
    while (read_some(s, &n)) {
        if (!n)
            sched_wait(NULL, clock_ns() + POLL_NS, DelayExecution);
        for (const uint8_t *at = s->area; at < s->area + n;) {
            const WMI_BUFFER_HEADER *buffer = (const WMI_BUFFER_HEADER *)(const void *)at;
            at += buffer->SavedOffset;
            const unsigned events = etw_buffer_records(buffer);
            if (s->limit && s->buffers >= s->limit) { /* came after the file was full */
                s->dropped += events;
                s->dropped_buffers++;
                continue;
            }
            s->events += events;
            s->buffers++;
            send(s, CHUNK_BUFFER, buffer, buffer->SavedOffset);
        }
    }
}

bool stream_start(struct trace_stream *s)
{
    const size_t pages = s->logger->streams[0]->size / PAGE_SIZE;
    s->pages = pages < TEXT_PAGES ? TEXT_PAGES : pages;
    s->area = phys_alloc(s->pages);
    if (!s->area)
        return false;
    s->tsc = s->logger->streams[0]->start_tsc;
    s->time = SYSTEM_TIME_AT_BOOT + s->logger->streams[0]->start_ns / 100;
    s->thread = thread_create("trace export", stream_run, s, SMP_ALL);
    s->logger->connected = s->thread != NULL;
    if (!s->thread)
        phys_free(s->area, s->pages);
    return s->thread != NULL;
}

void stream_finish(struct trace_stream *s, const char *facts)
{
    sched_wait(&s->thread->object, SCHED_FOREVER, Executive);
    send_end(s, facts);
    object_release(&s->thread->object);
    phys_free(s->area, s->pages);
    etw_free(s->logger);
}
