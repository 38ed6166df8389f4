/* SPDX-License-Identifier: MIT */
/* A session on its way to the host: its buffers, as they are, through the second serial port. */
#pragma once
#include "kernel/etw/etw_pmc.h"

#define STREAM_NAME_MAX 64
#define STREAM_FILES 32 /* in one run */

struct trace_stream {
    uint32_t id; /* 0: the one that `make trace` asks for; others have a log file */
    uint64_t events, buffers;
    uint64_t dropped, dropped_buffers; /* events and buffers that came after the file was full */
    uint64_t limit;                    /* of a sequential file, in buffers; 0: none */
    struct etw_logger *logger;         /* its `connected` is ours */
    struct thread *thread;
    uint8_t *area; /* a buffer, or text */
    unsigned pages;
    uint64_t tsc, time;      /* one moment before the first record: the TSC, 100 ns since 1601 */
    char file[ETW_NAME_MAX]; /* a path has no more characters */
    ULONG mode;              /* of the file */
    unsigned counters;       /* whose values the records carry */
    char names[ETW_PMC_COUNTERS_MAX][STREAM_NAME_MAX];
    PERFINFO_GROUPMASK masks;
};

/* Opens the port, at the first call; false: there is none. Streams come after that. PASSIVE_LEVEL,
 * all of these. */
bool stream_open(void);
/* Starts the thread that sends what the logger records until it has stopped and nothing is left.
 * False: no memory. L: guard of the sessions */
bool stream_start(struct trace_stream *stream);
/* After the session was stopped: waits for the thread, sends the end, with these lines and the
 * events lost, and frees the logger. */
void stream_finish(struct trace_stream *stream, const char *facts);
bool stream_opened(void);
/* False: the port stopped accepting bytes. */
bool stream_alive(void);

/* log_file.c: sessions that StartTrace gave a file. The file is made on the host. L: guard.
 * STATUS_NOT_SUPPORTED: nobody receives files (the run was not started by `make trace`);
 * STATUS_OBJECT_PATH_SYNTAX_BAD: not a name of letters, digits, dot, dash and underscore after the
 * last backslash, or another session's; STATUS_NO_MEMORY. */
NTSTATUS log_file_start(struct etw_logger *logger, const char *name,
                        const WMI_LOGGER_INFORMATION *info);
/* Stops every session that still has a file, and waits until all is sent. */
void log_files_finish(const char *facts);
