/* SPDX-License-Identifier: MIT */
/* The description of a trace in the Trace Stream Description Language. Records stay as they are in
 * a session's buffers, so their C structures give the description. FIELD takes offset and size from
 * them and does not compile with a wrong type; a missing field is an ASSERT. Source: Common Trace
 * Format 1.8.3. */
#include "kernel/etw/ctf.h"
#include "kernel/base/assert.h"
#include "kernel/base/print.h"

/* clang-format off */
#define FIELD(structure, type, field)                                                          \
    { #type, #field, offsetof(structure, field),                                               \
      sizeof(char[__builtin_types_compatible_p(type, __typeof__(((structure *)0)->field)) ? sizeof(type) : -1]) }
/* A number that stands for a name. */
#define ENUM_FIELD(structure, name, field) { name, #field, offsetof(structure, field), sizeof(((structure *)0)->field) }
/* clang-format on */
#define END                                                                                        \
    {                                                                                              \
        NULL, NULL, 0, 0                                                                           \
    }

typedef uint64_t tsc_t;

static const struct ctf_field packet_header[] = {
    FIELD(struct ctf_packet, ULONG, magic),
    FIELD(struct ctf_packet, ULONG, stream_id),
    END,
};

static const struct ctf_field packet_context[] = {
    FIELD(struct ctf_packet, tsc_t, timestamp_begin),
    FIELD(struct ctf_packet, tsc_t, timestamp_end),
    FIELD(struct ctf_packet, ULONG64, content_size),
    FIELD(struct ctf_packet, ULONG64, packet_size),
    FIELD(struct ctf_packet, ULONG64, packet_seq_num),
    FIELD(struct ctf_packet, ULONG64, events_discarded),
    FIELD(struct ctf_packet, ULONG64, cpu_id),
    END,
};

static const struct ctf_field event_header[] = {
    FIELD(union ctf_event, ULONG64, id),
    FIELD(union ctf_event, tsc_t, timestamp),
    END,
};

static const struct ctf_field thread[] = {
    FIELD(WMI_EXTENDED_THREAD_INFORMATION, ULONG, ProcessId),
    FIELD(WMI_EXTENDED_THREAD_INFORMATION, ULONG, ThreadId),
    FIELD(WMI_EXTENDED_THREAD_INFORMATION, PVOID, StackBase),
    FIELD(WMI_EXTENDED_THREAD_INFORMATION, PVOID, StackLimit),
    FIELD(WMI_EXTENDED_THREAD_INFORMATION, PVOID, UserStackBase),
    FIELD(WMI_EXTENDED_THREAD_INFORMATION, PVOID, UserStackLimit),
    FIELD(WMI_EXTENDED_THREAD_INFORMATION, KAFFINITY, Affinity),
    FIELD(WMI_EXTENDED_THREAD_INFORMATION, PVOID, Win32StartAddr),
    FIELD(WMI_EXTENDED_THREAD_INFORMATION, PVOID, TebBase),
    FIELD(WMI_EXTENDED_THREAD_INFORMATION, ULONG, SubProcessTag),
    FIELD(WMI_EXTENDED_THREAD_INFORMATION, UCHAR, BasePriority),
    FIELD(WMI_EXTENDED_THREAD_INFORMATION, UCHAR, PagePriority),
    FIELD(WMI_EXTENDED_THREAD_INFORMATION, UCHAR, IoPriority),
    FIELD(WMI_EXTENDED_THREAD_INFORMATION, UCHAR, Flags),
    END,
};

static const struct ctf_field context_swap[] = {
    FIELD(WMI_CONTEXTSWAP, ULONG, NewThreadId),
    FIELD(WMI_CONTEXTSWAP, ULONG, OldThreadId),
    FIELD(WMI_CONTEXTSWAP, CHAR, NewPriority),
    FIELD(WMI_CONTEXTSWAP, CHAR, OldPriority),
    FIELD(WMI_CONTEXTSWAP, UCHAR, PreviousCState),
    FIELD(WMI_CONTEXTSWAP, CHAR, NewThreadPriorityDecrement),
    ENUM_FIELD(WMI_CONTEXTSWAP, "enum KWAIT_REASON", OldWaitReason),
    ENUM_FIELD(WMI_CONTEXTSWAP, "enum MODE", OldWaitMode),
    ENUM_FIELD(WMI_CONTEXTSWAP, "enum KTHREAD_STATE", OldState),
    FIELD(WMI_CONTEXTSWAP, UCHAR, OldIdealProcessor),
    FIELD(WMI_CONTEXTSWAP, ULONG, NewWaitTime),
    FIELD(WMI_CONTEXTSWAP, ULONG, OldRemainingQuantum),
    END,
};

static const struct ctf_field ready_thread[] = {
    FIELD(ETW_READY_THREAD_EVENT, ULONG, ThreadId),
    FIELD(ETW_READY_THREAD_EVENT, CHAR, AdjustReason),
    FIELD(ETW_READY_THREAD_EVENT, CHAR, AdjustIncrement),
    FIELD(ETW_READY_THREAD_EVENT, UCHAR, Flags),
    FIELD(ETW_READY_THREAD_EVENT, UCHAR, Reserved),
    END,
};

static const struct ctf_field sampled_profile[] = {
    FIELD(PERFINFO_SAMPLED_PROFILE_INFORMATION, PVOID, InstructionPointer),
    FIELD(PERFINFO_SAMPLED_PROFILE_INFORMATION, ULONG, ThreadId),
    FIELD(PERFINFO_SAMPLED_PROFILE_INFORMATION, USHORT, Count),
    FIELD(PERFINFO_SAMPLED_PROFILE_INFORMATION, UCHAR, Flags),
    FIELD(PERFINFO_SAMPLED_PROFILE_INFORMATION, UCHAR, Rank),
    END,
};

static const struct ctf_field pmc_sample[] = {
    FIELD(PERFINFO_PMC_SAMPLE_INFORMATION, PVOID, InstructionPointer),
    FIELD(PERFINFO_PMC_SAMPLE_INFORMATION, ULONG, ThreadId),
    FIELD(PERFINFO_PMC_SAMPLE_INFORMATION, USHORT, ProfileSource),
    FIELD(PERFINFO_PMC_SAMPLE_INFORMATION, USHORT, Reserved),
    END,
};

static const struct ctf_field syscall_enter[] = {
    FIELD(PERFINFO_SYSCALL_ENTER_DATA, PVOID, SysCallAddr),
    END,
};

static const struct ctf_field syscall_exit[] = {
    FIELD(PERFINFO_SYSCALL_EXIT_DATA, NTSTATUS, ReturnValue),
    END,
};

static const struct ctf_field interrupt[] = {
    FIELD(PERFINFO_INTERRUPT_INFORMATION, ULONG64, InitialTime),
    FIELD(PERFINFO_INTERRUPT_INFORMATION, PVOID, ServiceRoutine),
    FIELD(PERFINFO_INTERRUPT_INFORMATION, UCHAR, ReturnValue),
    FIELD(PERFINFO_INTERRUPT_INFORMATION, USHORT, Vector),
    FIELD(PERFINFO_INTERRUPT_INFORMATION, UCHAR, Reserved),
    END,
};

static const struct ctf_field set_interval[] = {
    FIELD(PERFINFO_SAMPLED_PROFILE_CONFIG, ULONG, Source),
    FIELD(PERFINFO_SAMPLED_PROFILE_CONFIG, ULONG, NewInterval),
    FIELD(PERFINFO_SAMPLED_PROFILE_CONFIG, ULONG, OldInterval),
    END,
};

static const struct ctf_field dpc[] = {
    FIELD(PERFINFO_DPC_INFORMATION, ULONG64, InitialTime),
    FIELD(PERFINFO_DPC_INFORMATION, PVOID, DpcRoutine),
    END,
};

#define HOOK(word, mask, group, name, fields, structure)                                           \
    {                                                                                              \
        word, mask, group##_LOG_TYPE_##name, #name, fields, #structure, sizeof(structure)          \
    }
const struct ctf_hook ctf_hooks[] = {
    HOOK("thread", PERF_THREAD, WMI, THREAD_CREATE, thread, WMI_EXTENDED_THREAD_INFORMATION),
    HOOK("thread", PERF_THREAD, WMI, THREAD_DELETE, thread, WMI_EXTENDED_THREAD_INFORMATION),
    HOOK("cswitch", PERF_CONTEXT_SWITCH, PERFINFO, CONTEXTSWAP, context_swap, WMI_CONTEXTSWAP),
    HOOK("ready", PERF_DISPATCHER, PERFINFO, READY_THREAD, ready_thread, ETW_READY_THREAD_EVENT),
    HOOK("profile", PERF_PROFILE, PERFINFO, SAMPLED_PROFILE, sampled_profile,
         PERFINFO_SAMPLED_PROFILE_INFORMATION),
    HOOK("pmc", PERF_PMC_PROFILE, PERFINFO, PMC_INTERRUPT, pmc_sample,
         PERFINFO_PMC_SAMPLE_INFORMATION),
    HOOK("syscall", PERF_SYSCALL, PERFINFO, SYSCALL_ENTER, syscall_enter,
         PERFINFO_SYSCALL_ENTER_DATA),
    HOOK("syscall", PERF_SYSCALL, PERFINFO, SYSCALL_EXIT, syscall_exit, PERFINFO_SYSCALL_EXIT_DATA),
    HOOK("interrupt", PERF_INTERRUPT, PERFINFO, INTERRUPT, interrupt,
         PERFINFO_INTERRUPT_INFORMATION),
    HOOK("", 0, PERFINFO, SAMPLED_PROFILE_SET_INTERVAL, set_interval,
         PERFINFO_SAMPLED_PROFILE_CONFIG),
    HOOK("ipi", PERF_IPI, PERFINFO, IPI, dpc, PERFINFO_DPC_INFORMATION),
    { NULL, 0, 0, NULL, NULL, NULL, 0 },
};

/* Types by Windows' names, then the enumerations. */
static const char types[] =
    "typealias integer { size = 8; align = 8; signed = true; } := CHAR;\n"
    "typealias integer { size = 8; align = 8; signed = false; } := UCHAR;\n"
    "typealias integer { size = 16; align = 8; signed = false; } := USHORT;\n"
    "typealias integer { size = 32; align = 8; signed = false; } := ULONG;\n"
    "typealias integer { size = 32; align = 8; signed = true; } := LONG;\n"
    "typealias integer { size = 32; align = 8; signed = false; base = 16; } := NTSTATUS;\n"
    "typealias integer { size = 64; align = 8; signed = false; } := ULONG64;\n"
    "typealias integer { size = 64; align = 8; signed = true; } := LONGLONG;\n"
    "typealias integer { size = 64; align = 8; signed = false; base = 16; } := KAFFINITY;\n"
    "typealias integer { size = 64; align = 8; signed = false; base = 16; } := PVOID;\n"
    "typealias integer { size = 64; align = 8; signed = false; map = clock.tsc.value; } := tsc_t;\n"
    "enum MODE : UCHAR { KernelMode, UserMode };\n"
    "enum KTHREAD_STATE : UCHAR { Initialized, Ready, Running, Standby, Terminated, Waiting };\n"
    "enum KWAIT_REASON : UCHAR { Executive, FreePage, PageIn, PoolAllocation, DelayExecution, "
    "Suspended,\n"
    "    UserRequest, WrExecutive, WrFreePage, WrPageIn, WrPoolAllocation, WrDelayExecution, "
    "WrSuspended,\n"
    "    WrUserRequest, WrEventPair, WrQueue, WrLpcReceive, WrLpcReply, WrVirtualMemory, "
    "WrPageOut, WrRendezvous,\n"
    "    WrKeyedEvent, WrTerminated, WrProcessInSwap, WrCpuRateControl, WrCalloutStack, WrKernel, "
    "WrResource,\n"
    "    WrPushLock, WrMutex, WrQuantumEnd, WrDispatchInt, WrPreempted, WrYieldExecution, "
    "WrFastMutex,\n"
    "    WrGuardedMutex, WrRundown, WrAlertByThreadId, WrDeferredPreempt, WrPhysicalFault, "
    "WrIoRing, WrMdlCache,\n"
    "    WrRcu };\n";

struct text {
    char *at;
    size_t left;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t n = print_to_va(text->at, text->left, format, args);
    va_end(args);
    text->at += n;
    text->left -= n;
}

/* The fields must follow each other without a gap, from `at` to `end`. */
static void put_fields(struct text *text, const struct ctf_field *field, unsigned at, unsigned end)
{
    for (; field->name; field++) {
        ASSERT(field->offset == at);
        put(text, "        %s %s;\n", field->type, field->name);
        at += field->size;
    }
    ASSERT(at == end);
}

static unsigned counters_in(USHORT hook, const struct ctf_counters *counters)
{
    for (unsigned i = 0; i < counters->hook_count; i++)
        if (counters->hooks[i] == hook)
            return counters->count;
    return 0;
}

static void put_event(struct text *text, const struct ctf_hook *hook,
                      const struct ctf_counters *counters)
{
    unsigned n = counters_in(hook->id, counters);
    put(text, "event {\n    name = \"%s\";\n    id = 0x%x;\n    stream_id = 0;\n", hook->name,
        hook->id);
    if (n)
        put(text, "    context := struct {\n");
    for (unsigned i = 0; i < n; i++)
        put(text, "        ULONG64 %s;\n", counters->names[i]);
    put(text, "%s    fields := struct { /* %s */\n", n ? "    };\n" : "", hook->structure);
    put_fields(text, hook->fields, 0, hook->size);
    put(text, "    };\n};\n\n");
}

size_t ctf_metadata(char *buffer, size_t size, uint64_t frequency,
                    const struct ctf_counters *counters)
{
    struct text text = { buffer, size };
    put(&text,
        "/* CTF 1.8 */\n\nclock { name = \"tsc\"; description = \"time stamp counter\"; freq = "
        "%lu; };\n\n",
        frequency);
    put(&text,
        "%s\ntrace {\n    major = 1;\n    minor = 8;\n    byte_order = le;\n    packet.header := "
        "struct {\n",
        types);
    put_fields(&text, packet_header, 0, offsetof(struct ctf_packet, timestamp_begin));
    put(&text, "    };\n};\n\nenv { domain = \"kernel\"; tracer_name = \"ntpmu\"; };\n\n"
               "stream {\n    id = 0;\n    packet.context := struct {\n");
    put_fields(&text, packet_context, offsetof(struct ctf_packet, timestamp_begin),
               sizeof(struct ctf_packet));
    put(&text, "    };\n    event.header := struct {\n");
    put_fields(&text, event_header, 0, sizeof(union ctf_event));
    put(&text, "    } align(64);\n};\n\n");
    for (const struct ctf_hook *hook = ctf_hooks; hook->name; hook++)
        put_event(&text, hook, counters);
    ASSERT(text.left > 1);
    return size - text.left;
}
