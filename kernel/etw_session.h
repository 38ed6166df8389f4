/* SPDX-License-Identifier: MIT */
/* Between the files of kernel/etw*.c only: what a session is.
 *
 * Buffers: each processor has its own, a ring. It alone writes them, with interrupts off; the reader, under the guard, takes
 * those before `head` and moves `tail`. Neither waits for the other. A record that finds no room is lost, and counted. */
#pragma once
#include "kernel/etw.h"
#include "kernel/object.h"

#define ETW_LOGGERS 9         /* the NT Kernel Logger, 0, and eight others */
#define ETW_NAME_MAX 64       /* with its end */
#define ETW_BUFFERS_MAX 64    /* of a processor */
#define ETW_BUFFERS_DEFAULT 4
#define ETW_BUFFER_KB 64      /* default */
#define ETW_BUFFER_KB_MAX 1024
#define ETW_MEMORY_MAX (16u << 20) /* bytes of a session */

struct etw_stream {
    uint8_t *at, *end;        /* in the buffer that is written */
    uint32_t head;            /* atomic: buffers before it are full */
    uint32_t tail;            /* atomic: those before it were read */
    uint64_t lost;            /* events */
    uint64_t told;            /* of them, what a buffer's flag has told */
    uint32_t count, size;     /* buffers, and bytes of one */
    uint64_t start_ns, start_tsc;
    USHORT logger, cpu;
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
    uint32_t with_counters;   /* the same: those whose records have counters; atomic */
    ULONG counters;           /* how many */
    struct _ETW_PMC_SUPPORT *pmc;
    ULONG read_count;         /* buffers */
    unsigned next_cpu;        /* whose buffers are read first */
    uint64_t unread;          /* events that were dropped because nobody reads */
    struct etw_stream *streams[64];
};

/* etw.c. */
struct etw_stream *etw_stream_create(unsigned cpu, USHORT logger, uint32_t count, uint32_t size);
void etw_stream_free(struct etw_stream *stream);
/* On its processor: gives up a buffer with records in it, if another one is free. */
void etw_stream_flush(struct etw_stream *stream);
/* Nobody writes it any more: gives up the last buffer. */
void etw_stream_finish(struct etw_stream *stream);
/* The oldest full buffer, NULL: none; and done with it. L: guard */
WMI_BUFFER_HEADER *etw_stream_peek(const struct etw_stream *stream);
void etw_stream_next(struct etw_stream *stream);
/* Records in a full buffer. */
unsigned etw_buffer_records(const WMI_BUFFER_HEADER *buffer);
/* Writes a record for every session that wants the hook; size a multiple of 4. */
void etw_log(enum etw_hook hook, const void *payload, size_t size);
extern struct etw_logger *etw_loggers[ETW_LOGGERS]; /* atomic; L: guard to write */
extern const USHORT etw_hook_ids[ETW_HOOKS];

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
