/* SPDX-License-Identifier: MIT */
/* Trace sessions: the buffers of each processor, and how records are written to them.
 *
 * etw_log runs with interrupts off, at any IRQL, and takes no lock: a processor writes only its
 * own buffers. So the records of one processor are complete and in the order of their time
 * stamps. NMIs write no records (etw.h). A session is freed only after every processor has
 * answered an IPI, which is not possible inside etw_log.
 *
 * Sources: PERFINFO_TRACE_HEADER and WMI_BUFFER_HEADER as in nt_trace.h. */
#include "hal/branch_owner.h"
#include "hal/machine/clock.h"
#include "kernel/base/assert.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "kernel/ke/etw_stream.h"
#include "kernel/ke/process.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"

uint16_t etw_wanted[ETW_HOOKS];
int8_t etw_swaps = -1;
struct etw_logger *etw_loggers[ETW_LOGGERS];

static const struct {
    USHORT id, size; /* of the payload, a multiple of 4 */
    UCHAR version;   /* of the payload's layout */
} kinds[ETW_HOOKS] = {
    [ETW_THREAD_CREATE] = { WMI_LOG_TYPE_THREAD_CREATE, sizeof(WMI_EXTENDED_THREAD_INFORMATION),
                            3 },
    [ETW_THREAD_DELETE] = { WMI_LOG_TYPE_THREAD_DELETE, sizeof(WMI_EXTENDED_THREAD_INFORMATION),
                            3 },
    [ETW_CSWITCH] = { PERFINFO_LOG_TYPE_CONTEXTSWAP, sizeof(WMI_CONTEXTSWAP), 4 },
    [ETW_READY] = { PERFINFO_LOG_TYPE_READY_THREAD, sizeof(ETW_READY_THREAD_EVENT), 2 },
    [ETW_PROFILE] = { PERFINFO_LOG_TYPE_SAMPLED_PROFILE,
                      sizeof(PERFINFO_SAMPLED_PROFILE_INFORMATION), 2 },
    [ETW_PMC] = { PERFINFO_LOG_TYPE_PMC_INTERRUPT, sizeof(PERFINFO_PMC_SAMPLE_INFORMATION), 2 },
    [ETW_SYSCALL_ENTER] = { PERFINFO_LOG_TYPE_SYSCALL_ENTER, sizeof(PERFINFO_SYSCALL_ENTER_DATA),
                            2 },
    [ETW_SYSCALL_EXIT] = { PERFINFO_LOG_TYPE_SYSCALL_EXIT, sizeof(PERFINFO_SYSCALL_EXIT_DATA), 2 },
    [ETW_INTERRUPT] = { PERFINFO_LOG_TYPE_INTERRUPT, sizeof(PERFINFO_INTERRUPT_INFORMATION), 2 },
    [ETW_DPC] = { PERFINFO_LOG_TYPE_DPC, sizeof(PERFINFO_DPC_INFORMATION), 2 },
    [ETW_TIMER_DPC] = { PERFINFO_LOG_TYPE_TIMERDPC, sizeof(PERFINFO_DPC_INFORMATION), 2 },
    [ETW_SET_INTERVAL] = { PERFINFO_LOG_TYPE_SAMPLED_PROFILE_SET_INTERVAL,
                           sizeof(PERFINFO_SAMPLED_PROFILE_CONFIG), 2 },
    [ETW_IPI] = { PERFINFO_LOG_TYPE_IPI, sizeof(PERFINFO_DPC_INFORMATION), 2 },
};

uint32_t etw_hooks_of_id(ULONG id)
{
    uint32_t hooks = 0;
    for (unsigned h = 0; h < ETW_HOOKS; h++)
        hooks |= id && kinds[h].id == id ? 1u << h : 0;
    return hooks;
}

ULONG etw_id_of_hook(enum etw_hook hook) { return kinds[hook].id; }

/* --- Buffers. The first three run on the stream's processor, interrupts off, or before the
 * stream is published. --- */

static uint8_t *current(const struct etw_stream *s) { return s->buffers[s->head % s->count]; }

static void begin_buffer(struct etw_stream *s)
{
    WMI_BUFFER_HEADER *header = (WMI_BUFFER_HEADER *)(void *)current(s);
    *header = (WMI_BUFFER_HEADER){ .BufferSize = s->size,
                                   .TimeStamp.QuadPart = (LONGLONG)rdtsc(),
                                   .SequenceNumber = s->head,
                                   .ClientContext = { s->cpu, s->logger },
                                   .BufferFlag = ETW_BUFFER_FLAG_PROC_INDEX,
                                   .StartTime = s->start_ns / 100,
                                   .StartPerfClock = s->start_tsc };
    if (s->reported != s->lost)
        header->BufferFlag |= ETW_BUFFER_FLAG_EVENTS_LOST;
    s->reported = s->lost;
    s->at = (uint8_t *)(header + 1);
    s->end = (uint8_t *)header + s->size;
}

static void seal(struct etw_stream *s)
{
    WMI_BUFFER_HEADER *header = (WMI_BUFFER_HEADER *)(void *)current(s);
    header->SavedOffset = header->CurrentOffset = header->Offset =
        (ULONG)(s->at - (uint8_t *)header);
    header->NextBuffer = (PVOID)s->lost;
    __atomic_store_n(&s->head, s->head + 1, __ATOMIC_RELEASE);
}

static bool next_buffer(struct etw_stream *s)
{
    if (s->head + 1 - __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE) >= s->count)
        return false;
    seal(s);
    begin_buffer(s);
    return true;
}

static bool is_empty(const struct etw_stream *s)
{
    return s->at == current(s) + sizeof(WMI_BUFFER_HEADER);
}

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
    *s = (struct etw_stream){ .count = count,
                              .size = size,
                              .start_ns = clock_ns(),
                              .start_tsc = rdtsc(),
                              .logger = logger,
                              .cpu = (USHORT)cpu };
    for (uint32_t i = 0; i < count; i++) {
        s->buffers[i] = phys_alloc(size / PAGE_SIZE);
        if (!s->buffers[i]) {
            etw_stream_free(s);
            return NULL;
        }
    }
    etw_stream_form(s, 0, 0, NULL);
    begin_buffer(s);
    return s;
}

void etw_stream_form(struct etw_stream *s, uint32_t hooks, ULONG count, PMC_HANDLE pmc)
{
    uint64_t flags = read_flags();
    cli();
    s->counters = pmc ? pmc->counters : NULL;
    for (unsigned h = 0; h < ETW_HOOKS; h++) {
        ULONG n = hooks >> h & 1 ? count : 0;
        uint64_t marker = PERFINFO_MARKER | kinds[h].version | n << TRACE_HEADER_PMC_COUNTERS_SHIFT,
                 size = sizeof(PERFINFO_TRACE_HEADER) + n * sizeof(ULONG64) + kinds[h].size;
        s->forms[h] = (struct etw_form){ marker | size << 32 | (uint64_t)kinds[h].id << 48,
                                         (uint32_t)(size + 7) & ~7u, n };
    }
    write_flags(flags);
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

void etw_stream_next(struct etw_stream *s)
{
    __atomic_store_n(&s->tail, s->tail + 1, __ATOMIC_RELEASE);
}

unsigned etw_buffer_records(const WMI_BUFFER_HEADER *buffer)
{
    unsigned n = 0;
    const uint8_t *at = (const uint8_t *)(buffer + 1),
                  *end = (const uint8_t *)buffer + buffer->SavedOffset;
    for (; at < end; n++)
        at += (trace_record_size(at) + 7u) & ~7u;
    return n;
}

/* --- A record. --- */

bool etw_next_buffer(struct etw_stream *s)
{
    ASSERT(!(read_flags() & RFLAGS_IF)); /* nothing else writes to this CPU's buffer */
    if (next_buffer(s))
        return true;
    __atomic_store_n(&s->lost, s->lost + 1, __ATOMIC_RELAXED);
    return false;
}

/* After a record of this processor. Interrupts off. */
static void write_stack(struct etw_stream *stream, uint64_t stamp, const struct thread *thread,
                        const struct trap_frame *sample)
{
    uint64_t at[ETW_STACK_MOST];
    unsigned count = etw_walk(thread, sample, at);
    uint64_t size = sizeof(PERFINFO_TRACE_HEADER) + sizeof(ETW_STACK_WALK) + count * sizeof at[0];
    while (stream->at + size > stream->end)
        if (!etw_next_buffer(stream))
            return;
    uint64_t *record = (uint64_t *)(void *)stream->at;
    stream->at += size;
    record[0] = (PERFINFO_MARKER | 2) | size << 32 | (uint64_t)PERFINFO_LOG_TYPE_STACKWALK << 48;
    record[1] = rdtsc();
    *(ETW_STACK_WALK *)(void *)(record + 2) =
        (ETW_STACK_WALK){ stamp, thread->process ? PROCESS_ID : 0, thread->id };
    for (unsigned i = 0; i < count; i++)
        record[4 + i] = at[i];
}

/* --- What follows a record: the branches that the processor took before it, and a stack. The
 * newest branches of a list are those of the way to here, unless the session hides ring 0's. --- */

static void put_branches(struct etw_stream *stream, uint64_t stamp, const struct thread *ran,
                         const struct hal_branch *list, unsigned count)
{
    const uint32_t process = ran->process ? PROCESS_ID : 0;
    const size_t size = sizeof(EVENT_TRACE_HEADER) + sizeof(ETW_LAST_BRANCH_RECORD) +
                        count * sizeof(ETW_LAST_BRANCH);
    while (stream->at + size > stream->end)
        if (!etw_next_buffer(stream))
            return;
    EVENT_TRACE_HEADER *header = (EVENT_TRACE_HEADER *)(void *)stream->at;
    ETW_LAST_BRANCH_RECORD *record = (ETW_LAST_BRANCH_RECORD *)(void *)(header + 1);
    ETW_LAST_BRANCH *entries = (ETW_LAST_BRANCH *)(void *)(record + 1);
    stream->at += size;
    *header = (EVENT_TRACE_HEADER){ .Size = (USHORT)size,
                                    .HeaderType = TRACE_HEADER_TYPE_FULL_HEADER64,
                                    .MarkerFlags = TRACE_HEADER_FLAGS,
                                    .Class = { LAST_BRANCH_TYPE, 0, LAST_BRANCH_VERSION },
                                    .ThreadId = ran->id,
                                    .ProcessId = process,
                                    .TimeStamp.QuadPart = (LONGLONG)rdtsc(),
                                    .Guid = LAST_BRANCH_GUID };
    *record = (ETW_LAST_BRANCH_RECORD){ stamp, process, ran->id, stream->filters, 0 };
    for (unsigned i = 0; i < count; i++)
        entries[i] = (ETW_LAST_BRANCH){ list[i].from, list[i].to, 0 };
}

void etw_follow(struct etw_stream *stream, enum etw_hook hook, uint64_t stamp,
                const struct thread *ran, const struct thread *thread,
                const struct trap_frame *sample)
{
    struct hal_branch list[HAL_BRANCHES_MAX];
    const bool branches = stream->branches >> hook & 1;
    if (branches) {
        hal_branches_pause();
        put_branches(stream, stamp, ran, list, hal_branches_take(list));
    }
    if (stream->stacks >> hook & 1)
        write_stack(stream, stamp, thread, sample);
    if (branches)
        hal_branches_resume();
}

void etw_choose_swaps(void)
{
    uint32_t wanted = __atomic_load_n(&etw_wanted[ETW_CSWITCH], __ATOMIC_RELAXED);
    int8_t slot = -1;
    if (wanted && !(wanted & (wanted - 1))) {
        const struct etw_logger *logger = etw_loggers[bit_lowest(wanted)];
        if (!((logger->stacks | logger->branches) >> ETW_CSWITCH & 1))
            slot = (int8_t)logger->slot;
    }
    __atomic_store_n(&etw_swaps, slot, __ATOMIC_RELEASE);
}

void etw_tell_followed(const struct etw_logger *logger)
{
    for_all_cpus(cpu) {
        struct etw_stream *stream = logger->streams[cpu];
        __atomic_store_n(&stream->stacks, logger->stacks, __ATOMIC_RELAXED);
        __atomic_store_n(&stream->branches, logger->branches, __ATOMIC_RELAXED);
        __atomic_store_n(&stream->followed, logger->stacks | logger->branches, __ATOMIC_RELEASE);
    }
    etw_choose_swaps();
}

void etw_log(enum etw_hook hook, const void *payload, const struct trap_frame *sample)
{
    const uint32_t *from = payload;
    uint64_t flags = read_flags();
    cli(); /* from here on this thread stays on its processor */
    struct cpu *cpu = cpu_current();
    for_each_bit(who, __atomic_load_n(&etw_wanted[hook], __ATOMIC_ACQUIRE)) {
        struct etw_stream *stream = cpu->streams[who];
        uint32_t *to = etw_begin(stream, hook);
        for (size_t i = 0; to && i < kinds[hook].size / sizeof *to; i++)
            to[i] = from[i];
        if (to && etw_is_followed(stream, hook))
            etw_follow(stream, hook, etw_stamp_of(stream, hook, to), cpu->thread, cpu->thread,
                       sample);
    }
    write_flags(flags);
}

NTSTATUS etw_event(TRACEHANDLE session, EVENT_TRACE_HEADER *event)
{
    const uint16_t slot = (uint16_t)session;
    const uint32_t size = (event->Size + 7u) & ~7u;
    NTSTATUS status = STATUS_SUCCESS;
    uint64_t flags = read_flags();
    cli(); /* from here on this thread stays on its processor, and the session */
    struct etw_stream *s = NULL;
    if (slot && slot < ETW_LOGGERS &&
        __atomic_load_n(&etw_wanted[ETW_EVENT], __ATOMIC_ACQUIRE) >> slot & 1)
        s = cpu_current()->streams[slot];
    if (!s)
        status = STATUS_INVALID_HANDLE;
    else if (size > s->size - sizeof(WMI_BUFFER_HEADER))
        status = STATUS_BUFFER_OVERFLOW;
    else if (s->at + size > s->end && !etw_next_buffer(s))
        status = STATUS_NO_MEMORY;
    if (NT_SUCCESS(status)) {
        event->TimeStamp.QuadPart = (LONGLONG)rdtsc();
        memcpy(s->at, event, event->Size);
        s->at += size;
    }
    write_flags(flags);
    return status;
}

/* --- Callers. --- */

bool etw_privileged(void)
{
    const struct process *caller = thread_current()->process;
    return !caller || caller->profile_privilege;
}

bool etw_restricted(void)
{
    const struct process *caller = thread_current()->process;
    return caller && caller->restricted;
}
