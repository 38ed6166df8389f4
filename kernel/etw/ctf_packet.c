/* SPDX-License-Identifier: MIT */
/* A buffer of records as a packet of the Common Trace Format. */
#include "kernel/base/assert.h"
#include "kernel/etw/ctf.h"

uint64_t ctf_packet(WMI_BUFFER_HEADER *buffer, struct ctf_packet *packet)
{
    uint8_t *records = (uint8_t *)(buffer + 1), *at = records, *content_end = at;
    const uint8_t *end = (const uint8_t *)buffer + buffer->SavedOffset;
    uint64_t events = 0;
    *packet = (struct ctf_packet){
        .magic = CTF_MAGIC,
        .timestamp_begin = (uint64_t)buffer->TimeStamp.QuadPart,
        .timestamp_end = (uint64_t)buffer->TimeStamp.QuadPart,
        .packet_seq_num = (uint64_t)buffer->SequenceNumber,
        .events_discarded = (uint64_t)buffer->NextBuffer,
        .cpu_id = buffer->ClientContext.ProcessorIndex,
    };
    for (; at < end; events++) {
        union ctf_event *event = (union ctf_event *)(void *)at;
        unsigned size = event->record.Size;
        ASSERT(size >= sizeof *event);
        event->id = event->record.HookId;
        packet->timestamp_end = event->timestamp;
        content_end = at + size;
        at += (size + 7) & ~7u;
    }
    packet->content_size = 8 * (sizeof *packet + (uint64_t)(content_end - records));
    packet->packet_size = 8 * (sizeof *packet + (uint64_t)(end - records));
    return events;
}
