/* SPDX-License-Identifier: MIT */
/* Between the files of kernel/etw*.c only: what a session is.
 *
 * Buffers: each processor has its own, a ring. It alone writes them, with interrupts off; the reader, under the guard, takes
 * those before `head` and moves `tail`. Neither waits for the other. A record that finds no room is lost, and counted. */
#pragma once
#include "hal/hal.h"
#include "kernel/etw.h"
#include "kernel/object.h"
#include "kernel/x86.h"

#define ETW_LOGGERS 9         /* the NT Kernel Logger, 0, and eight others */
#define ETW_NAME_MAX 64       /* with its end */
#define ETW_BUFFERS_MAX 64    /* of a processor */
#define ETW_BUFFERS_DEFAULT 4
#define ETW_BUFFER_KB 64      /* default */
#define ETW_BUFFER_KB_MAX 1024
#define ETW_MEMORY_MAX (16u << 20) /* bytes of a session */

/* What a record of a hook is like in this stream: its head up to the time stamp, how much room it takes, how many
 * counters it has. Changed on its processor. */
struct etw_form {
    uint64_t head;
    uint32_t room, counters;
};

struct etw_stream {
    uint8_t *at, *end;        /* in the buffer that is written */
    uint32_t head;            /* atomic: buffers before it are full */
    uint32_t tail;            /* atomic: those before it were read */
    uint64_t lost;            /* events */
    uint64_t told;            /* of them, what a buffer's flag has told */
    uint32_t count, size;     /* buffers, and bytes of one */
    uint64_t start_ns, start_tsc;
    USHORT logger, cpu;
    struct hal_pmc_counter *counters; /* of the set that records collect */
    struct etw_form forms[ETW_HOOKS];
    uint8_t *buffers[ETW_BUFFERS_MAX];
};

struct etw_logger {
    struct object object;     /* of the consumer's handle; L: guard */
    bool connected;
    bool stopped;             /* nobody but the consumer knows it any more */
    unsigned slot;
    USHORT id;                /* KERNEL_LOGGER_ID, or the slot */
    char name[ETW_NAME_MAX];
    ULONG mode, flush_seconds;
    uint64_t flushed_ns;
    PERFINFO_GROUPMASK masks;
    uint32_t wanted;          /* bit per enum etw_hook */
    struct _ETW_PMC_SUPPORT *pmc;
    ULONG read_count;         /* buffers */
    unsigned next_cpu;        /* whose buffers are read first */
    uint64_t unread;          /* events that were dropped because nobody reads */
    struct etw_stream *streams[64];
};

/* etw.c. */
struct etw_stream *etw_stream_create(unsigned cpu, USHORT logger, uint32_t count, uint32_t size);
void etw_stream_free(struct etw_stream *stream);
/* On its processor, or before anybody else knows it: the hooks of the mask have `count` counters, others none. */
void etw_stream_form(struct etw_stream *stream, uint32_t hooks, ULONG count, PMC_HANDLE pmc);
/* On its processor: gives up a buffer with records in it, if another one is free. */
void etw_stream_flush(struct etw_stream *stream);
/* Nobody writes it any more: gives up the last buffer. */
void etw_stream_finish(struct etw_stream *stream);
/* The oldest full buffer, NULL: none; and done with it. L: guard */
WMI_BUFFER_HEADER *etw_stream_peek(const struct etw_stream *stream);
void etw_stream_next(struct etw_stream *stream);
/* Records in a full buffer. */
unsigned etw_buffer_records(const WMI_BUFFER_HEADER *buffer);
/* Writes a record for every session that wants the hook. The payload has the hook's size. */
void etw_log(enum etw_hook hook, const void *payload);
extern struct etw_logger *etw_loggers[ETW_LOGGERS]; /* atomic; L: guard to write */
/* The hook with this id, as a mask; 0: there is none. */
uint32_t etw_hooks_of_id(ULONG id);

/* On to the next buffer; false: there is none, and the event that it was for is lost. */
bool etw_next_buffer(struct etw_stream *stream);

/* Writes the first n counters of a set; not a loop, for a third of the time. */
static inline void etw_collect(struct hal_pmc_counter *c, uint32_t n, ULONG64 *values)
{
    switch (n) {
    case 7:
        values[6] = hal_pmc_read(c + 6);
        __attribute__((fallthrough));
    case 6:
        values[5] = hal_pmc_read(c + 5);
        __attribute__((fallthrough));
    case 5:
        values[4] = hal_pmc_read(c + 4);
        __attribute__((fallthrough));
    case 4:
        values[3] = hal_pmc_read(c + 3);
        __attribute__((fallthrough));
    case 3:
        values[2] = hal_pmc_read(c + 2);
        __attribute__((fallthrough));
    case 2:
        values[1] = hal_pmc_read(c + 1);
        __attribute__((fallthrough));
    case 1:
        values[0] = hal_pmc_read(c + 0);
    }
}

/* Begins a record of this processor; where its payload goes. NULL: there is no room, and the event is lost. Interrupts off. */
static inline void *etw_begin(struct etw_stream *stream, enum etw_hook hook)
{
    const struct etw_form *form = &stream->forms[hook];
    uint8_t *at = stream->at;
    while (__builtin_expect(at + form->room > stream->end, 0)) {
        if (!etw_next_buffer(stream))
            return NULL;
        at = stream->at;
    }
    ULONG64 *words = (ULONG64 *)(void *)at;
    stream->at = at + form->room;
    words[0] = form->head;
    words[1] = rdtsc();
    etw_collect(stream->counters, form->counters, words + 2);
    return words + 2 + form->counters;
}

/* etw_session.c. The guard: held at PASSIVE_LEVEL and across IPIs; waiters yield. */
void etw_enter(void);
void etw_leave(void);
/* L: guard, all that follow. NULL: none runs; only the low 16 bits count. */
struct etw_logger *etw_find(TRACEHANDLE handle);
struct etw_logger *etw_find_name(const char *name);
NTSTATUS etw_start(const char *name, const WMI_LOGGER_INFORMATION *info, struct etw_logger **started);
void etw_stop(struct etw_logger *logger);
void etw_flush(struct etw_logger *logger);
/* STATUS_NOT_SUPPORTED, STATUS_DEVICE_BUSY: what the masks want to sample by cannot be had; nothing has changed. */
NTSTATUS etw_set_masks(struct etw_logger *logger, const PERFINFO_GROUPMASK *masks);
/* The masks that EnableFlags stand for. */
PERFINFO_GROUPMASK etw_masks_of_flags(ULONG flags);
/* Statuses and buffers as of EtwRealtimeReadCode. */
NTSTATUS etw_read(struct etw_logger *logger, uint8_t *out, ULONG length, ULONG *returned);
uint64_t etw_lost(const struct etw_logger *logger);
/* Frees a session that has stopped and has no consumer. */
void etw_free(struct etw_logger *logger);

/* The caller's memory: ring 3's is checked, a kernel thread's is not. STATUS_ACCESS_VIOLATION. */
NTSTATUS etw_get(void *to, const void *from, size_t size);
NTSTATUS etw_put(void *to, const void *from, size_t size);
bool etw_privileged(void);
bool etw_restricted(void);
