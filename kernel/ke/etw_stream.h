/* SPDX-License-Identifier: MIT */
/* For kernel/ke/etw*.c and kernel/etw only: the structure of a session, and its streams.
 *
 * Buffers: each processor has its own, a ring. Only that processor writes them, with interrupts
 * off; the reader, under the guard, takes those before `head` and advances `tail`. Neither waits
 * for the other. A record for which there is no space is lost, and counted. */
#pragma once
#include "hal/pmc.h"
#include "kernel/base/cpu.h"
#include "kernel/base/x86.h"
#include "kernel/ke/etw.h"
#include "kernel/ke/object.h"

struct trap_frame;

#define ETW_LOGGERS 9      /* the NT Kernel Logger, 0, and eight others */
#define ETW_NAME_MAX 64    /* with its end */
#define ETW_BUFFERS_MAX 64 /* of a processor */
#define ETW_BUFFERS_DEFAULT 4
#define ETW_BUFFER_KB 64 /* default */
#define ETW_BUFFER_KB_MAX 1024

/* Bytes that a session may have: 16 MB, or 512 KB of each processor where that is more. */
static inline uint64_t etw_memory_max(void)
{
    return cpu_count > 32 ? (uint64_t)cpu_count << 19 : UINT64_C(16) << 20;
}

/* The layout of a hook's record in this stream: the header before the time stamp, its size, its
 * number of counters. Changed on its processor. */
struct etw_form {
    uint64_t head;
    uint32_t size, counters;
};

/* As Windows 11 has it. The lists of branches belong to the session from the moment when the
 * handle is not 0. */
typedef struct _ETW_LBR_SUPPORT {
    ULONG LbrHandle;
    ULONG LbrOptions;
    ULONG HookIdCount; /* 0: not given yet */
    USHORT HookId[ETW_MAX_LBR_EVENTS];
} ETW_LBR_SUPPORT, *PETW_LBR_SUPPORT;
ABI_SIZE(ETW_LBR_SUPPORT, 0x14);
ABI_FIELD(ETW_LBR_SUPPORT, LbrOptions, 4);
ABI_FIELD(ETW_LBR_SUPPORT, HookIdCount, 8);
ABI_FIELD(ETW_LBR_SUPPORT, HookId, 0x0C);

struct etw_stream {
    uint8_t *at, *end;    /* in the buffer that is written */
    uint32_t head;        /* atomic: buffers before it are full */
    uint32_t tail;        /* atomic: those before it were read */
    uint64_t lost;        /* events */
    uint64_t reported;    /* those of them that a buffer's flag has reported */
    uint32_t count, size; /* buffers, and bytes of one */
    uint64_t start_ns, start_tsc;
    USHORT logger, cpu;
    /* Bits per enum etw_hook; atomic: something follows each of its records, a stack, the branches
     * before it. */
    uint32_t followed, stacks, branches;
    uint32_t filters;                 /* of the branches */
    struct hal_pmc_counter *counters; /* of the set that records collect */
    struct etw_form forms[ETW_HOOKS];
    uint8_t *buffers[ETW_BUFFERS_MAX];
};

struct etw_logger {
    struct object object; /* of the consumer's handle */
    bool connected;       /* L: guard */
    bool stopped;         /* L: guard; only the consumer still has a reference */
    unsigned slot;
    USHORT id; /* KERNEL_LOGGER_ID, or the slot */
    char name[ETW_NAME_MAX];
    ULONG mode, flush_seconds;
    ULONG megabytes; /* the most that a log file may have; 0: no limit */
    uint64_t flushed_ns;
    PERFINFO_GROUPMASK masks;
    uint32_t wanted;           /* bit per enum etw_hook */
    uint32_t stacks, branches; /* the same, of streams */
    ETW_LBR_SUPPORT lbr;
    struct _ETW_PMC_SUPPORT *pmc;
    ULONG read_count;  /* buffers */
    unsigned next_cpu; /* whose buffers are read first */
    uint64_t unread;   /* events lost because no consumer reads */
    struct etw_stream *streams[MAX_CPUS];
};

/* etw.c. */
struct etw_stream *etw_stream_create(unsigned cpu, USHORT logger, uint32_t count, uint32_t size);
void etw_stream_free(struct etw_stream *stream);
/* Runs on its processor, or before the stream is published: gives the hooks of the mask `count`
 * counters, others none. */
void etw_stream_form(struct etw_stream *stream, uint32_t hooks, ULONG count, PMC_HANDLE pmc);
/* Runs on its processor: completes a buffer that holds records, if another one is free. */
void etw_stream_flush(struct etw_stream *stream);
/* When nobody writes the stream any more: completes the last buffer. */
void etw_stream_finish(struct etw_stream *stream);
/* The oldest complete buffer, NULL: none; and its release. L: guard */
WMI_BUFFER_HEADER *etw_stream_peek(const struct etw_stream *stream);
void etw_stream_next(struct etw_stream *stream);
/* Records in a full buffer. */
unsigned etw_buffer_records(const WMI_BUFFER_HEADER *buffer);
/* Writes a record for every session that has enabled the hook. The payload has the hook's size;
 * `sample` is NULL but for samples. */
void etw_log(enum etw_hook hook, const void *payload, const struct trap_frame *sample);
/* Writes a program's event, with its time, for one session. Statuses as of NtTraceEvent. */
NTSTATUS etw_event(TRACEHANDLE session, EVENT_TRACE_HEADER *event);
#define ETW_STACK_MOST 128 /* addresses */
/* etw_stack.c. The addresses of a stack, and their number: where the current thread stands, where
 * another one waits that comes next, or where the sample was taken. Interrupts off. */
unsigned etw_walk(const struct thread *thread, const struct trap_frame *sample,
                  uint64_t at[ETW_STACK_MOST]);
/* Writes what follows a record of this processor: the branches before it, which are
 * those of `ran`, then a stack of `thread`, or what of it the session wants. Interrupts off. */
void etw_follow(struct etw_stream *stream, enum etw_hook hook, uint64_t stamp,
                const struct thread *ran, const struct thread *thread,
                const struct trap_frame *sample);
static inline bool etw_is_followed(const struct etw_stream *stream, enum etw_hook hook)
{
    return __builtin_expect(__atomic_load_n(&stream->followed, __ATOMIC_RELAXED) >> hook & 1, 0);
}
extern struct etw_logger *etw_loggers[ETW_LOGGERS]; /* atomic; L: guard to write */
/* Finds etw_swaps again, when etw_wanted or what follows records has changed. L: guard */
void etw_choose_swaps(void);
/* Tells the streams what the session wants after which records. L: guard */
void etw_tell_followed(const struct etw_logger *logger);
/* The hook with this id, as a mask; 0: there is none. And back. */
uint32_t etw_hooks_of_id(ULONG id);
ULONG etw_id_of_hook(enum etw_hook hook);

/* Advances to the next buffer; false: there is none, and the event is lost. */
bool etw_next_buffer(struct etw_stream *stream);

/* The time stamp and the counters of a record that was begun. */
static inline void etw_stamp(const struct etw_stream *stream, ULONG64 *record, uint32_t counters)
{
    record[1] = rdtsc();
    hal_pmc_collect(stream->counters, counters, record + 2);
}

/* Begins a record of this processor; returns the address for its payload. NULL: there is no
 * space, and the event is lost. Interrupts off. */
static inline void *etw_begin(struct etw_stream *stream, enum etw_hook hook)
{
    const struct etw_form *form = &stream->forms[hook];
    uint8_t *at = stream->at;
    while (__builtin_expect(at + form->size > stream->end, 0)) {
        if (!etw_next_buffer(stream))
            return NULL;
        at = stream->at;
    }
    ULONG64 *record = (ULONG64 *)(void *)at;
    stream->at = at + form->size;
    record[0] = form->head;
    etw_stamp(stream, record, form->counters);
    return record + 2 + form->counters;
}

/* The time stamp of a record by its payload. */
static inline uint64_t etw_stamp_of(const struct etw_stream *stream, enum etw_hook hook,
                                    const void *payload)
{
    return ((const ULONG64 *)payload - stream->forms[hook].counters)[-1];
}

bool etw_privileged(void);
bool etw_restricted(void);
/* etw_hooks.c. Sources whose interrupts are recorded; 0: none. Atomic; L: guard to write. */
extern ULONG etw_sampled[ETW_MAX_PROFILING_SOURCES];
