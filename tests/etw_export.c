/* SPDX-License-Identifier: MIT */
/* What the metadata of an exported trace say of numbers in its records. */
#include "kernel/base/string.h"
#include "kernel/etw/ctf.h"
#include "kernel/mm/phys.h"
#include "kernel/nt/nt_trace.h"
#include "tests/test.h"

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

static void has(const char *list, const struct name *names, unsigned count)
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
    has(behind(text, "enum KTHREAD_STATE : UCHAR {"), states, sizeof states / sizeof states[0]);
    has(behind(text, "enum KWAIT_REASON : UCHAR {"), reasons, sizeof reasons / sizeof reasons[0]);
    CHECK_EQ(sizeof reasons / sizeof reasons[0], MaximumWaitReason);
    phys_free(text, PAGES);
}
