/* SPDX-License-Identifier: MIT */
/* Trace sessions: the buffers of a processor, and how a record gets into them.
 *
 * etw_log runs with interrupts off, at any IRQL, and takes no lock: a processor writes only its own buffers. So records of
 * one processor are whole and in the order of their time stamps. NMIs write none (etw.h). A session goes away only after
 * every processor has answered an IPI, which none does inside etw_log.
 *
 * Sources: PERFINFO_TRACE_HEADER and WMI_BUFFER_HEADER as in nt_trace.h. */
#include "kernel/assert.h"
#include "kernel/cpu.h"
#include "kernel/etw_pmc.h"
#include "kernel/phys.h"
#include "kernel/sched.h"
#include "kernel/x86.h"

uint16_t etw_wanted[ETW_HOOKS];
struct etw_logger *etw_loggers[ETW_LOGGERS];

const USHORT etw_hook_ids[ETW_HOOKS] = {
    [ETW_THREAD_CREATE] = WMI_LOG_TYPE_THREAD_CREATE,
    [ETW_THREAD_DELETE] = WMI_LOG_TYPE_THREAD_DELETE,
    [ETW_CSWITCH] = PERFINFO_LOG_TYPE_CONTEXTSWAP,
    [ETW_READY] = PERFINFO_LOG_TYPE_READY_THREAD,
    [ETW_PROFILE] = PERFINFO_LOG_TYPE_SAMPLED_PROFILE,
    [ETW_PMC] = PERFINFO_LOG_TYPE_PMC_INTERRUPT,
    [ETW_SYSCALL_ENTER] = PERFINFO_LOG_TYPE_SYSCALL_ENTER,
    [ETW_SYSCALL_EXIT] = PERFINFO_LOG_TYPE_SYSCALL_EXIT,
    [ETW_INTERRUPT] = PERFINFO_LOG_TYPE_INTERRUPT,
    [ETW_SET_INTERVAL] = PERFINFO_LOG_TYPE_SAMPLED_PROFILE_SET_INTERVAL,
    [ETW_IPI] = PERFINFO_LOG_TYPE_IPI,
};

/* --- Buffers. The first three: their processor, interrupts off; or nobody else knows the stream. --- */

static uint8_t *current(const struct etw_stream *s) { return s->buffers[s->head % s->count]; }

static void begin(struct etw_stream *s)
{
    WMI_BUFFER_HEADER *header = (WMI_BUFFER_HEADER *)(void *)current(s);
    *header = (WMI_BUFFER_HEADER){ .BufferSize = s->size, .TimeStamp.QuadPart = (LONGLONG)rdtsc(),
                                   .SequenceNumber = s->head, .ClientContext = { s->cpu, s->logger },
                                   .BufferFlag = ETW_BUFFER_FLAG_PROC_INDEX, .StartTime = s->start_ns / 100,
                                   .StartPerfClock = s->start_tsc };
    if (s->told != s->lost)
        header->BufferFlag |= ETW_BUFFER_FLAG_EVENTS_LOST;
    s->told = s->lost;
    s->at = (uint8_t *)(header + 1);
    s->end = (uint8_t *)header + s->size;
}

static void seal(struct etw_stream *s)
{
    WMI_BUFFER_HEADER *header = (WMI_BUFFER_HEADER *)(void *)current(s);
    header->SavedOffset = header->CurrentOffset = header->Offset = (ULONG)(s->at - (uint8_t *)header);
    header->NextBuffer = (PVOID)s->lost;
    __atomic_store_n(&s->head, s->head + 1, __ATOMIC_RELEASE);
}

static bool next_buffer(struct etw_stream *s)
{
    if (s->head + 1 - __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE) >= s->count)
        return false;
    seal(s);
    begin(s);
    return true;
}

static bool is_empty(const struct etw_stream *s) { return s->at == current(s) + sizeof(WMI_BUFFER_HEADER); }

void etw_stream_flush(struct etw_stream *s)
{
    uint64_t flags = read_flags();
    cli();
    if (!is_empty(s))
        next_buffer(s);
    write_flags(flags);
}

void etw_stream_finish(struct etw_stream *s)
{
    if (!is_empty(s))
        seal(s);
}

struct etw_stream *etw_stream_create(unsigned cpu, USHORT logger, uint32_t count, uint32_t size)
{
    _Static_assert(sizeof(struct etw_stream) <= PAGE_SIZE, "one page");
    struct etw_stream *s = phys_alloc(1);
    ASSERT(count > 0);
    if (!s)
        return NULL;
    *s = (struct etw_stream){ .count = count, .size = size, .start_ns = sched_time_ns(), .start_tsc = rdtsc(),
                              .logger = logger, .cpu = (USHORT)cpu };
    for (uint32_t i = 0; i < count; i++) {
        s->buffers[i] = phys_alloc(size / PAGE_SIZE);
        if (!s->buffers[i]) {
            etw_stream_free(s);
            return NULL;
        }
    }
    begin(s);
    return s;
}

void etw_stream_free(struct etw_stream *s)
{
    for (uint32_t i = 0; i < s->count && s->buffers[i]; i++)
        phys_free(s->buffers[i], s->size / PAGE_SIZE);
    phys_free(s, 1);
}

/* --- The reader. --- */

WMI_BUFFER_HEADER *etw_stream_peek(const struct etw_stream *s)
{
    if (s->tail == __atomic_load_n(&s->head, __ATOMIC_ACQUIRE))
        return NULL;
    return (WMI_BUFFER_HEADER *)(void *)s->buffers[s->tail % s->count];
}

void etw_stream_next(struct etw_stream *s) { __atomic_store_n(&s->tail, s->tail + 1, __ATOMIC_RELEASE); }

unsigned etw_buffer_records(const WMI_BUFFER_HEADER *buffer)
{
    unsigned n = 0;
    const uint8_t *at = (const uint8_t *)(buffer + 1), *end = (const uint8_t *)buffer + buffer->SavedOffset;
    for (; at < end; n++)
        at += (((const PERFINFO_TRACE_HEADER *)(const void *)at)->Size + 7u) & ~7u;
    return n;
}

/* --- A record. --- */

static void write(const struct etw_logger *logger, enum etw_hook hook, const uint32_t *payload, size_t size)
{
    unsigned cpu = cpu_number();
    struct etw_stream *s = logger->streams[cpu];
    ULONG n = logger->with_counters >> hook & 1 ? logger->counters : 0;
    size_t whole = sizeof(PERFINFO_TRACE_HEADER) + n * sizeof(ULONG64) + size, room = (whole + 7) & ~(size_t)7;
    if ((size_t)(s->end - s->at) < room && !next_buffer(s)) {
        s->lost++;
        return;
    }
    PERFINFO_TRACE_HEADER *header = (PERFINFO_TRACE_HEADER *)(void *)s->at;
    s->at += room;
    header->Marker = PERFINFO_MARKER | n << TRACE_HEADER_PMC_COUNTERS_SHIFT;
    header->Size = (USHORT)whole;
    header->HookId = etw_hook_ids[hook];
    header->TimeStamp = rdtsc();
    ULONG64 *counters = (ULONG64 *)(header + 1);
    if (n)
        etw_pmc_collect(logger->pmc, cpu, counters);
    uint32_t *to = (uint32_t *)(counters + n);
    for (size_t i = 0; i < size / sizeof *to; i++)
        to[i] = payload[i];
}

void etw_log(enum etw_hook hook, const void *payload, size_t size)
{
    uint64_t flags = read_flags();
    cli();
    for (unsigned who = __atomic_load_n(&etw_wanted[hook], __ATOMIC_ACQUIRE); who; who &= who - 1)
        write(etw_loggers[__builtin_ctz(who)], hook, payload, size);
    write_flags(flags);
}
