/* SPDX-License-Identifier: MIT */
/* Trace sessions: their table, their masks, and reading them.
 *
 * `guard` is held at PASSIVE_LEVEL and across IPIs. It guards the table, the masks and the
 * readers. Hooks read without it. A session's bits in etw_wanted are set last, when the session is
 * ready. They are cleared first; every processor then answers an IPI before the rest is freed. */
#include "hal/machine/clock.h"
#include "hal/machine/smp.h"
#include "kernel/base/upcalls.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/refuse.h"
#include "kernel/base/string.h"
#include "kernel/ke/caller.h"
#include "kernel/etw/etw_lbr.h"
#include "kernel/etw/etw_pmc.h"
#include "kernel/etw/etw_session.h"
#include "kernel/ke/mutex.h"
#include "kernel/ke/process.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"

#define HOOK(hook) (1u << (hook))

static struct mutex guard = MUTEX("trace sessions");

/* What each mask turns on. */
static const struct {
    ULONG mask;
    uint32_t hooks;
} groups[] = {
    { PERF_THREAD, HOOK(ETW_THREAD_CREATE) | HOOK(ETW_THREAD_DELETE) },
    { PERF_CONTEXT_SWITCH, HOOK(ETW_CSWITCH) },
    { PERF_DISPATCHER, HOOK(ETW_READY) },
    { PERF_INTERRUPT, HOOK(ETW_INTERRUPT) },
    { PERF_DPC, HOOK(ETW_DPC) | HOOK(ETW_TIMER_DPC) },
    { PERF_SYSCALL, HOOK(ETW_SYSCALL_ENTER) | HOOK(ETW_SYSCALL_EXIT) },
    { PERF_IPI, HOOK(ETW_IPI) },
    { PERF_PROFILE, HOOK(ETW_PROFILE) | HOOK(ETW_SAMPLES) | HOOK(ETW_SET_INTERVAL) },
    { PERF_PMC_PROFILE, HOOK(ETW_PMC) | HOOK(ETW_SAMPLES) | HOOK(ETW_SET_INTERVAL) },
};

static const struct {
    ULONG flag, mask;
} flags_of_old[] = {
    { EVENT_TRACE_FLAG_CSWITCH, PERF_CONTEXT_SWITCH },
    { EVENT_TRACE_FLAG_DISPATCHER, PERF_DISPATCHER },
    { EVENT_TRACE_FLAG_INTERRUPT, PERF_INTERRUPT },
    { EVENT_TRACE_FLAG_SYSTEMCALL, PERF_SYSCALL },
    { EVENT_TRACE_FLAG_PROFILE, PERF_PROFILE },
    { EVENT_TRACE_FLAG_DPC, PERF_DPC },
};

void etw_enter(void) { mutex_acquire(&guard); }
void etw_leave(void) { mutex_release(&guard); }

/* --- Masks. --- */

PERFINFO_GROUPMASK etw_masks_of_flags(ULONG flags)
{
    PERFINFO_GROUPMASK masks = { { flags } };
    for_each_in(f, flags_of_old)
        if (flags & f->flag)
            masks.Masks[PERF_MASK_INDEX(f->mask)] |= PERF_MASK_BITS(f->mask);
    return masks;
}

/* What class 4 sets may have the flags of StartTrace too. */
static uint32_t hooks_of(const PERFINFO_GROUPMASK *masks)
{
    const PERFINFO_GROUPMASK flags = etw_masks_of_flags(masks->Masks[0]);
    uint32_t hooks = 0;
    for_each_in(g, groups) {
        const unsigned word = PERF_MASK_INDEX(g->mask);
        if ((masks->Masks[word] | flags.Masks[word]) & PERF_MASK_BITS(g->mask))
            hooks |= g->hooks;
    }
    return hooks;
}

static uint32_t wanted_by_all(void)
{
    uint32_t hooks = 0;
    for (unsigned i = 0; i < ETW_LOGGERS; i++)
        hooks |= etw_loggers[i] ? etw_loggers[i]->wanted : 0;
    return hooks;
}

NTSTATUS etw_set_masks(struct etw_logger *logger, const PERFINFO_GROUPMASK *masks)
{
    uint32_t before = logger->wanted;
    logger->wanted = hooks_of(masks) | (logger->stopped ? 0 : HOOK(ETW_EVENT));
    NTSTATUS status = etw_sampling_update(wanted_by_all());
    if (!NT_SUCCESS(status)) {
        logger->wanted = before;
        return status;
    }
    logger->masks = *masks;
    for (unsigned h = 0; h < ETW_HOOKS; h++) {
        uint16_t bit = (uint16_t)(1u << logger->slot);
        if (logger->wanted >> h & 1)
            __atomic_fetch_or(&etw_wanted[h], bit, __ATOMIC_RELEASE);
        else
            __atomic_fetch_and(&etw_wanted[h], (uint16_t)~bit, __ATOMIC_RELEASE);
    }
    etw_choose_swaps();
    return STATUS_SUCCESS;
}

/* --- The table. --- */

struct etw_logger *etw_find(TRACEHANDLE handle)
{
    USHORT id = (USHORT)handle;
    for (unsigned i = 0; i < ETW_LOGGERS; i++)
        if (etw_loggers[i] && etw_loggers[i]->id == id)
            return etw_loggers[i];
    return NULL;
}

struct etw_logger *etw_find_name(const char *name)
{
    for (unsigned i = 0; i < ETW_LOGGERS; i++)
        if (etw_loggers[i] && strcmp(etw_loggers[i]->name, name) == 0)
            return etw_loggers[i];
    return NULL;
}

static unsigned free_slot(bool kernel)
{
    unsigned slot = kernel ? 0 : 1, end = kernel ? 1 : ETW_LOGGERS;
    while (slot < end && etw_loggers[slot])
        slot++;
    return slot < end ? slot : ETW_LOGGERS;
}

static bool make_streams(struct etw_logger *logger, const WMI_LOGGER_INFORMATION *info)
{
    uint32_t kb = info->BufferSize ? info->BufferSize : ETW_BUFFER_KB;
    uint32_t size = (kb > ETW_BUFFER_KB_MAX ? ETW_BUFFER_KB_MAX : kb) * 1024;
    uint32_t wanted =
        info->MaximumBuffers > info->MinimumBuffers ? info->MaximumBuffers : info->MinimumBuffers;
    uint32_t count = wanted ? wanted / cpu_count + (wanted % cpu_count != 0) : ETW_BUFFERS_DEFAULT;
    count = count < 2 ? 2 : count > ETW_BUFFERS_MAX ? ETW_BUFFERS_MAX : count;
    size = (size + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1u);
    if ((uint64_t)size * count * cpu_count > etw_memory_max())
        return false;
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        logger->streams[cpu] = etw_stream_create(cpu, logger->id, count, size);
        if (!logger->streams[cpu])
            return false;
        cpus[cpu]->streams[logger->slot] = logger->streams[cpu];
    }
    return true;
}

void etw_free(struct etw_logger *logger)
{
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        if (logger->streams[cpu])
            etw_stream_free(logger->streams[cpu]);
    phys_free(logger, 1);
}

NTSTATUS etw_start(const char *name, const WMI_LOGGER_INFORMATION *info,
                   struct etw_logger **started)
{
    _Static_assert(sizeof(struct etw_logger) <= PAGE_SIZE, "one page");
    bool kernel = strcmp(name, KERNEL_LOGGER_NAME) == 0;
    if (etw_find_name(name))
        return STATUS_OBJECT_NAME_COLLISION;
    unsigned slot = free_slot(kernel);
    if (slot == ETW_LOGGERS || claim_fails())
        return STATUS_INSUFFICIENT_RESOURCES;
    struct etw_logger *logger = phys_alloc(1);
    if (!logger)
        return STATUS_NO_MEMORY;
    logger->slot = slot;
    logger->id = kernel ? KERNEL_LOGGER_ID : (USHORT)slot;
    logger->mode = info->LogFileMode | (kernel ? EVENT_TRACE_SYSTEM_LOGGER_MODE : 0);
    logger->flush_seconds = info->FlushTimer ? info->FlushTimer : 1;
    logger->megabytes = info->MaximumFileSize;
    memcpy(logger->name, name, strlen(name) + 1);
    NTSTATUS status = make_streams(logger, info) ? STATUS_SUCCESS : STATUS_NO_MEMORY;
    if (NT_SUCCESS(status)) {
        PERFINFO_GROUPMASK masks = etw_masks_of_flags(info->EnableFlags);
        etw_loggers[slot] = logger;
        status = etw_set_masks(logger, &masks);
    }
    if (!NT_SUCCESS(status)) {
        etw_loggers[slot] = NULL;
        etw_free(logger);
        return status;
    }
    *started = logger;
    return STATUS_SUCCESS;
}

static void nothing(void *unused) { (void)unused; }

/* Counts as lost the records that nobody will read. */
static void drop_unread(struct etw_logger *logger)
{
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        for (const WMI_BUFFER_HEADER *b; (b = etw_stream_peek(logger->streams[cpu])) != NULL;) {
            logger->unread += etw_buffer_records(b);
            etw_stream_next(logger->streams[cpu]);
        }
}

void etw_stop(struct etw_logger *logger)
{
    static const PERFINFO_GROUPMASK none;
    if (etw_stopping)
        etw_stopping(logger);
    logger->stopped = true;
    etw_set_masks(logger, &none);
    smp_call(SMP_ALL, nothing, NULL);
    etw_pmc_free(logger);
    etw_lbr_free(logger);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        etw_stream_finish(logger->streams[cpu]);
    etw_loggers[logger->slot] = NULL;
    if (!logger->connected)
        drop_unread(logger);
}

uint64_t etw_lost(const struct etw_logger *logger)
{
    uint64_t lost = logger->unread;
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        lost += __atomic_load_n(&logger->streams[cpu]->lost, __ATOMIC_RELAXED);
    return lost;
}

/* --- Reading. --- */

static void flush_here(void *logger)
{
    etw_stream_flush(((struct etw_logger *)logger)->streams[cpu_number()]);
}

void etw_flush(struct etw_logger *logger)
{
    logger->flushed_ns = clock_ns();
    smp_call(SMP_ALL, flush_here, logger);
}

static NTSTATUS read_full(struct etw_logger *logger, uint8_t *out, ULONG length, ULONG *returned)
{
    for (unsigned i = 0; i < cpu_count; i++) {
        /* Each call begins with another CPU, so that none is read last for ever. */
        struct etw_stream *s = logger->streams[logger->next_cpu++ % cpu_count];
        const WMI_BUFFER_HEADER *b;
        while ((b = etw_stream_peek(s)) != NULL && b->SavedOffset <= length - *returned) {
            NTSTATUS status = caller_put(out + *returned, b, b->SavedOffset);
            if (!NT_SUCCESS(status))
                return *returned ? STATUS_SUCCESS : status; /* buffers already taken are reported */
            *returned += b->SavedOffset;
            logger->read_count++;
            etw_stream_next(s);
        }
    }
    logger->next_cpu++;
    return STATUS_SUCCESS;
}

NTSTATUS etw_read(struct etw_logger *logger, uint8_t *out, ULONG length, ULONG *returned)
{
    *returned = 0;
    if (length < logger->streams[0]->size)
        return STATUS_BUFFER_TOO_SMALL;
    NTSTATUS status = read_full(logger, out, length, returned);
    if (*returned || !NT_SUCCESS(status))
        return status;
    if (logger->stopped)
        return STATUS_WMI_INSTANCE_NOT_FOUND;
    if (clock_ns() - logger->flushed_ns < logger->flush_seconds * 1000000000ul)
        return status;
    etw_flush(logger);
    return read_full(logger, out, length, returned);
}

/* Called when the last handle of a consumer is closed. */
static void disconnect(struct object *object)
{
    struct etw_logger *logger = CONTAINING_RECORD(object, struct etw_logger, object);
    etw_enter();
    logger->connected = false;
    bool stopped = logger->stopped;
    etw_leave();
    if (stopped)
        etw_free(logger);
}

const struct object_type trace_type = { .name = "EtwConsumer",
                                        .destroy = disconnect,
                                        .all = TRACELOG_GUID_ENABLE };
