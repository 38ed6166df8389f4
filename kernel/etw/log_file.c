/* SPDX-License-Identifier: MIT */
/* Sessions with a log file. There are no files here: the host, if it listens, makes the .etl of
 * what stream.c sends. All that is known when the session stops stands at the stream's end. */
#include "kernel/base/print.h"
#include "kernel/base/refuse.h"
#include "kernel/base/upcalls.h"
#include "kernel/etw/etw_session.h"
#include "hal/sources.h"
#include "kernel/base/string.h"
#include "kernel/etw/stream.h"
#include "kernel/mm/phys.h"

#define EXTRA 4 /* buffers of the file that the host adds: its header, what was there */

static struct trace_stream *files[STREAM_FILES]; /* L: guard of the sessions */
static uint32_t last_id;                         /* L: the same */

/* The characters after the last backslash or slash. False: no name of a file. */
static bool take_name(const char *path, char *name)
{
    size_t n = 0;
    for (const char *p = path; *p; p++)
        n = *p == '\\' || *p == '/' ? 0 : n + 1;
    memcpy(name, path + strlen(path) - n, n + 1);
    for (const char *p = name; *p; p++)
        if (!((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
              *p == '-' || *p == '_' || (*p == '.' && p > name)))
            return false;
    for (unsigned i = 0; i < STREAM_FILES; i++)
        if (files[i] && !files[i]->logger->stopped && string_same(files[i]->file, name))
            return false;
    return n > 0;
}

/* The session is about to stop: notes what is known of its counters. */
static void note_counters(struct etw_logger *logger)
{
    const ETW_PMC_SUPPORT *pmc = logger->pmc;
    for (unsigned f = 0; f < STREAM_FILES; f++) {
        struct trace_stream *s = files[f];
        if (!s || s->logger != logger)
            continue;
        s->masks = logger->masks;
        s->counters = pmc && pmc->HookIdCount ? pmc->CountersCount : 0;
        for (unsigned i = 0; i < s->counters; i++) {
            const ULONG source = (ULONG)pmc->Source[i];
            print_to(s->names[i], sizeof s->names[i], "%s%s",
                     hal_source_name((KPROFILE_SOURCE)(source & ~PROFILE_SOURCE_RING3)),
                     source & PROFILE_SOURCE_RING3 ? "_u" : "");
        }
    }
}

NTSTATUS log_file_start(struct etw_logger *logger, const char *path,
                        const WMI_LOGGER_INFORMATION *info)
{
    unsigned slot = 0;
    _Static_assert(sizeof(struct trace_stream) <= PAGE_SIZE, "one page");
    while (slot < STREAM_FILES && files[slot])
        slot++;
    if (slot == STREAM_FILES || claim_fails())
        return STATUS_NO_MEMORY;
    struct trace_stream *s = phys_alloc(1);
    if (!s)
        return STATUS_NO_MEMORY;
    *s = (struct trace_stream){ .id = ++last_id, .logger = logger, .mode = info->LogFileMode };
    const uint64_t most = ((uint64_t)logger->megabytes << 20) / logger->streams[0]->size;
    NTSTATUS status = take_name(path, s->file) ? STATUS_SUCCESS : STATUS_OBJECT_PATH_SYNTAX_BAD;
    if (NT_SUCCESS(status) && logger->megabytes && most <= EXTRA)
        status = STATUS_INVALID_PARAMETER;
    if (logger->megabytes && !(s->mode & EVENT_TRACE_FILE_MODE_CIRCULAR))
        s->limit = most - EXTRA;
    if (NT_SUCCESS(status) && !stream_start(s))
        status = STATUS_NO_MEMORY;
    if (!NT_SUCCESS(status)) {
        phys_free(s, 1);
        return status;
    }
    files[slot] = s;
    etw_stopping = note_counters;
    return STATUS_SUCCESS;
}

void log_files_finish(const char *facts)
{
    for (unsigned f = 0; f < STREAM_FILES; f++) {
        if (!files[f])
            continue;
        etw_enter();
        if (!files[f]->logger->stopped)
            etw_stop(files[f]->logger);
        etw_leave();
        stream_finish(files[f], facts);
        phys_free(files[f], 1);
        files[f] = NULL;
    }
}
