/* SPDX-License-Identifier: MIT */
/* Sends the buffers of a trace session through the second serial port. The host (tests/trace)
 * stores them as a Common Trace Format trace. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "kernel/nt/nt_trace.h"

#define CTF_COUNTERS_MAX 7 /* values in a record */
#define CTF_NAME_MAX 64

/* Starts a session and the thread that sends it. `events`: words of ctf_hooks, separated by commas.
 * `counters`: names of sources likewise, "" for none; ":u" after a name counts ring 3 alone. Every
 * record carries all of them. Returns NULL, or the reason of the failure; then nothing runs. */
const char *ctf_start(const char *events, const char *counters);
/* Ends the session and waits until all is sent. False: the port stopped accepting bytes. */
bool ctf_stop(void);

/* --- Between the files of the export only. --- */

struct ctf_field {
    const char *type, *name;
    unsigned offset, size;
};

/* A kind of record: the word of `events` that selects it, and its payload. */
struct ctf_hook {
    const char *word;
    ULONG mask; /* group mask */
    USHORT id;
    const char *name;
    const struct ctf_field *fields; /* the last one has no name */
    const char *structure;
    unsigned size;
};

extern const struct ctf_hook ctf_hooks[]; /* the last one has no name */

/* The header of a CTF packet, which replaces the WMI_BUFFER_HEADER of a buffer. */
struct ctf_packet {
    uint32_t magic, stream_id;
    uint64_t timestamp_begin, timestamp_end; /* TSC */
    uint64_t content_size, packet_size;      /* bits */
    uint64_t packet_seq_num;
    uint64_t events_discarded; /* of this processor, so far */
    uint64_t cpu_id;
};
ABI_SIZE(struct ctf_packet, 0x40);

/* The header of a record: a PERFINFO_TRACE_HEADER, and the CTF header that replaces it. */
union ctf_event {
    PERFINFO_TRACE_HEADER record;
    struct {
        uint64_t id, timestamp;
    };
};
ABI_SIZE(union ctf_event, sizeof(PERFINFO_TRACE_HEADER));
ABI_FIELD(union ctf_event, timestamp, offsetof(PERFINFO_TRACE_HEADER, TimeStamp));

#define CTF_MAGIC 0xc1fc1fc1

/* The header for what follows the buffer's own; returns the number of events. babeltrace2 warns
 * about fields of an event's header that it does not know, so the hook's id replaces the 8 bytes
 * before each time stamp. Nothing is lost: marker and size are the same in all records of a
 * hook. */
uint64_t ctf_packet(WMI_BUFFER_HEADER *buffer, struct ctf_packet *packet);

/* The values that records carry, and the hooks whose records carry them. */
struct ctf_counters {
    unsigned count, hook_count;
    char names[CTF_COUNTERS_MAX][CTF_NAME_MAX];
    ULONG sources[CTF_COUNTERS_MAX];
    ULONG hooks[ETW_MAX_PMC_EVENTS];
};

#define CTF_METADATA_MAX 12288

/* The trace's description, with a NUL behind it; returns its length. */
size_t ctf_metadata(char *buffer, size_t size, uint64_t frequency,
                    const struct ctf_counters *counters);
