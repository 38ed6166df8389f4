/* SPDX-License-Identifier: MIT */
/* An exported trace: what its metadata say of numbers in its records, and the headers of
 * packets. */
#include "kernel/base/string.h"
#include "kernel/etw/ctf.h"
#include "kernel/mm/phys.h"
#include "kernel/nt/nt_trace.h"
#include "tests/harness/test.h"

#define PAGES (CTF_METADATA_MAX / PAGE_SIZE)

struct name {
    const char *name;
    unsigned value;
};
#define NAME(name)                                                                                 \
    {                                                                                              \
#name, name                                                                                \
    }

static bool in_word(char c) { return c && c != ' ' && c != ',' && c != '\n' && c != '}'; }

/* The text behind the first place where it says that; NULL: nowhere. */
static const char *behind(const char *text, const char *what)
{
    size_t n = strlen(what);
    for (; *text; text++)
        if (memcmp(text, what, n) == 0)
            return text + n;
    return NULL;
}

/* The place of a word in the list that ends with a brace; ~0: it is not there. */
static unsigned place_of(const char *list, const char *word)
{
    for (unsigned n = 0; *list && *list != '}'; n++) {
        while (*list && *list != '}' && !in_word(*list))
            list++;
        size_t length = 0;
        while (in_word(list[length]))
            length++;
        if (length == strlen(word) && memcmp(list, word, length) == 0)
            return n;
        list += length;
    }
    return ~0u;
}

static void has_names(const char *list, const struct name *names, unsigned count)
{
    if (!CHECK(list != NULL))
        return;
    for (unsigned i = 0; i < count; i++)
        CHECK_EQ(place_of(list, names[i].name), names[i].value);
}

TEST(etw_export, names,
     "the states of threads and the reasons of waits have Windows' numbers in a trace's metadata")
{
    static const struct name states[] = { NAME(Initialized), NAME(Ready),      NAME(Running),
                                          NAME(Standby),     NAME(Terminated), NAME(Waiting) };
    static const struct name reasons[] = { NAME(Executive),
                                           NAME(FreePage),
                                           NAME(PageIn),
                                           NAME(PoolAllocation),
                                           NAME(DelayExecution),
                                           NAME(Suspended),
                                           NAME(UserRequest),
                                           NAME(WrExecutive),
                                           NAME(WrFreePage),
                                           NAME(WrPageIn),
                                           NAME(WrPoolAllocation),
                                           NAME(WrDelayExecution),
                                           NAME(WrSuspended),
                                           NAME(WrUserRequest),
                                           NAME(WrEventPair),
                                           NAME(WrQueue),
                                           NAME(WrLpcReceive),
                                           NAME(WrLpcReply),
                                           NAME(WrVirtualMemory),
                                           NAME(WrPageOut),
                                           NAME(WrRendezvous),
                                           NAME(WrKeyedEvent),
                                           NAME(WrTerminated),
                                           NAME(WrProcessInSwap),
                                           NAME(WrCpuRateControl),
                                           NAME(WrCalloutStack),
                                           NAME(WrKernel),
                                           NAME(WrResource),
                                           NAME(WrPushLock),
                                           NAME(WrMutex),
                                           NAME(WrQuantumEnd),
                                           NAME(WrDispatchInt),
                                           NAME(WrPreempted),
                                           NAME(WrYieldExecution),
                                           NAME(WrFastMutex),
                                           NAME(WrGuardedMutex),
                                           NAME(WrRundown),
                                           NAME(WrAlertByThreadId),
                                           NAME(WrDeferredPreempt),
                                           NAME(WrPhysicalFault),
                                           NAME(WrIoRing),
                                           NAME(WrMdlCache),
                                           NAME(WrRcu) };
    const struct ctf_counters none = { 0 };
    char *text = phys_alloc(PAGES);
    REQUIRE(text != NULL);
    size_t length = ctf_metadata(text, CTF_METADATA_MAX, 1000, &none);
    CHECK(length > 0 && length < CTF_METADATA_MAX && !text[length]);
    has_names(behind(text, "enum KTHREAD_STATE : UCHAR {"), states,
              sizeof states / sizeof states[0]);
    has_names(behind(text, "enum KWAIT_REASON : UCHAR {"), reasons,
              sizeof reasons / sizeof reasons[0]);
    CHECK_EQ(sizeof reasons / sizeof reasons[0], MaximumWaitReason);
    phys_free(text, PAGES);
}

static const struct {
    USHORT hook, size;
    uint64_t time;
} sent[] = { { PERFINFO_LOG_TYPE_CONTEXTSWAP, 40, 1001 },
             { PERFINFO_LOG_TYPE_READY_THREAD, 24, 1002 },
             { PERFINFO_LOG_TYPE_SYSCALL_ENTER, 20, 1005 } };
#define SENT (sizeof sent / sizeof sent[0])

static struct {
    WMI_BUFFER_HEADER header;
    uint64_t records[11];
} buffer;

static void fill_buffer(void)
{
    uint8_t *at = (uint8_t *)buffer.records;
    memset(&buffer, 0x5a, sizeof buffer);
    buffer.header.TimeStamp.QuadPart = 1000;
    buffer.header.SequenceNumber = 7;
    buffer.header.NextBuffer = (PVOID)9; /* lost */
    buffer.header.ClientContext.ProcessorIndex = 3;
    buffer.header.SavedOffset = sizeof buffer;
    for (unsigned i = 0; i < SENT; i++) {
        *(PERFINFO_TRACE_HEADER *)(void *)at =
            (PERFINFO_TRACE_HEADER){ PERFINFO_MARKER, sent[i].size, sent[i].hook, sent[i].time };
        at += (sent[i].size + 7) & ~7;
    }
}

TEST(etw_export, packet,
     "a buffer's packet reports CPU, number, times, lost events, and its length with and without "
     "the padding after the last record")
{
    struct ctf_packet packet;
    fill_buffer();
    CHECK_EQ(ctf_packet(&buffer.header, &packet), SENT);
    CHECK_EQ(packet.magic, CTF_MAGIC);
    CHECK_EQ(packet.stream_id, 0);
    CHECK_EQ(packet.timestamp_begin, 1000);
    CHECK_EQ(packet.timestamp_end, sent[SENT - 1].time);
    CHECK_EQ(packet.packet_seq_num, 7);
    CHECK_EQ(packet.events_discarded, 9);
    CHECK_EQ(packet.cpu_id, 3);
    CHECK_EQ(packet.packet_size, 8 * (sizeof packet + sizeof buffer.records));
    CHECK_EQ(packet.content_size, 8 * (sizeof packet + sizeof buffer.records - 4));
    CHECK_EQ(buffer.records[0], sent[0].hook);
    CHECK_EQ(buffer.records[1], sent[0].time);
    CHECK_EQ(buffer.records[5], sent[1].hook);
    CHECK_EQ(buffer.records[8], sent[2].hook);
    CHECK_EQ(buffer.records[10], 0x5a5a5a5a5a5a5a5aul);
}
