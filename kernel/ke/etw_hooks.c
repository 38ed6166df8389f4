/* SPDX-License-Identifier: MIT */
/* The record of each hook. Any IRQL, no lock (etw.h).
 *
 * NT: there are no quanta, C-states or process ids: ring 3 is process 4; fields of what does not
 * exist are 0. */
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/vectors.h"
#include "kernel/ke/etw_stream.h"
#include "kernel/ke/process.h"
#include "kernel/ke/thread.h"

_Static_assert((int)THREAD_READY == Ready && (int)THREAD_RUNNING == Running &&
                   (int)THREAD_WAITING == Waiting && (int)THREAD_DEAD == Terminated,
               "OldState is thread.state");

void etw_thread(enum etw_hook hook, const struct thread *thread)
{
    WMI_EXTENDED_THREAD_INFORMATION info = {
        .ThreadId = thread->id,
        .StackBase = (PVOID)((uint64_t)thread->stack + KERNEL_STACK_SIZE),
        .StackLimit = thread->stack,
        .Affinity = cpu_set_primary(thread->affinity).Mask,
        .Win32StartAddr = (PVOID)(uint64_t)thread->start,
        .BasePriority = (UCHAR)thread->priority,
    };
    if (thread->process) {
        info.ProcessId = PROCESS_ID;
        info.UserStackBase = (PVOID)thread->user_stack_top;
        info.UserStackLimit = (PVOID)thread->user_stack;
        info.Win32StartAddr = (PVOID)thread->user_start;
    }
    etw_log(hook, &info, NULL);
}

static inline void put_swap(WMI_CONTEXTSWAP *info, const struct thread *from,
                            const struct thread *to, KWAIT_REASON reason, USHORT cpu)
{
    info->NewThreadId = to->id;
    info->OldThreadId = from->id;
    /* One store for four fields, because etw_rate.cost limits the instructions of a record:
     * OldPriority follows, PreviousCState and NewThreadPriorityDecrement stay 0. */
    *(ULONG *)(void *)&info->NewPriority = (UCHAR)to->priority;
    info->OldPriority = from->priority;
    info->OldWaitReason = (CHAR)reason;
    info->OldWaitMode = from->process != NULL;
    info->OldState = (CHAR)from->state;
    info->OldIdealProcessor = (UCHAR)cpu;
    info->NewWaitTime = 0;
    info->OldRemainingQuantum = 0;
}

/* Records of any number of sessions, with or without space, and what follows them; then
 * interrupts as in `flags`. */
static __attribute__((noinline)) void put_swaps(const struct thread *from, const struct thread *to,
                                                KWAIT_REASON reason, uint64_t flags)
{
    struct cpu *cpu = cpu_current();
    for_each_bit(who, __atomic_load_n(&etw_wanted[ETW_CSWITCH], __ATOMIC_ACQUIRE)) {
        struct etw_stream *stream = cpu->streams[who];
        WMI_CONTEXTSWAP *info = etw_begin(stream, ETW_CSWITCH);
        if (info)
            put_swap(info, from, to, reason, stream->cpu);
        if (info && etw_is_followed(stream, ETW_CSWITCH))
            etw_follow(stream, ETW_CSWITCH, etw_stamp_of(stream, ETW_CSWITCH, info), from, to,
                       NULL);
    }
    write_flags(flags);
}

/* The usual case is one session, whose buffer has space: no register is saved for it, because what
 * it needs before the counters is not needed after them. */
void etw_context_swap(const struct thread *from, const struct thread *to, KWAIT_REASON reason)
{
    uint64_t flags = read_flags();
    cli();
    int64_t slot = __atomic_load_n(&etw_swaps, __ATOMIC_ACQUIRE);
    if (slot < 0)
        return put_swaps(from, to, reason, flags);
    struct etw_stream *stream = CPU_ELEMENT(streams, slot);
    const struct etw_form *form = &stream->forms[ETW_CSWITCH];
    uint8_t *at = stream->at;
    if (__builtin_expect(at + form->size > stream->end, 0))
        return put_swaps(from, to, reason, flags);
    ULONG64 *record = (ULONG64 *)(void *)at;
    uint32_t counters = form->counters;
    stream->at = at + form->size;
    record[0] = form->head;
    put_swap((WMI_CONTEXTSWAP *)(void *)(record + 2 + counters), from, to, reason, stream->cpu);
    etw_stamp(stream, record, counters);
    write_flags(flags);
}

void etw_ready_thread(const struct thread *thread)
{
    ETW_READY_THREAD_EVENT info = { .ThreadId = thread->id };
    etw_log(ETW_READY, &info, NULL);
}

ULONG etw_sampled[ETW_MAX_PROFILING_SOURCES];

static bool sampling_by(KPROFILE_SOURCE source)
{
    for (unsigned i = 0; i < ETW_MAX_PROFILING_SOURCES; i++)
        if (source && __atomic_load_n(&etw_sampled[i], __ATOMIC_RELAXED) == (ULONG)source)
            return true;
    return false;
}

/* A sample of the timer, or of a source that sessions sample by; profile objects may sample by
 * other sources. */
void etw_profile(PKTRAP_FRAME frame, KPROFILE_SOURCE source)
{
    const struct thread *thread = thread_current();
    if (source == ProfileTime) {
        PERFINFO_SAMPLED_PROFILE_INFORMATION info = { (PVOID)frame->rip, thread->id, 1, 0, 0 };
        /* PROFILE_IN_ISR is 0: interrupts do not nest. */
        info.Flags = (UCHAR)(thread->priority << PROFILE_PRIORITY_SHIFT |
                             (CPU_FIELD(in_dpc) ? PROFILE_IN_DPC : 0));
        etw_log(ETW_PROFILE, &info, frame);
    } else if (sampling_by(source)) {
        PERFINFO_PMC_SAMPLE_INFORMATION info = { (PVOID)frame->rip, thread->id, (USHORT)source, 0 };
        etw_log(ETW_PMC, &info, frame);
    }
}

void etw_syscall_enter(uint64_t address)
{
    PERFINFO_SYSCALL_ENTER_DATA info = { (PVOID)address };
    etw_log(ETW_SYSCALL_ENTER, &info, NULL);
}

void etw_syscall_exit(NTSTATUS status)
{
    PERFINFO_SYSCALL_EXIT_DATA info = { status };
    etw_log(ETW_SYSCALL_EXIT, &info, NULL);
}

void etw_interrupt(uint64_t entered, unsigned vector, uint64_t routine)
{
    PERFINFO_INTERRUPT_INFORMATION info = { entered, (PVOID)routine, TRUE, (USHORT)vector, 0 };
    etw_log(ETW_INTERRUPT, &info, NULL);
}

void etw_dpc(enum etw_hook hook, uint64_t entered, uint64_t routine)
{
    PERFINFO_DPC_INFORMATION info = { entered, (PVOID)routine };
    etw_log(hook, &info, NULL);
}

void etw_ipi(uint64_t entered, void (*routine)(void *))
{
    PERFINFO_DPC_INFORMATION info = { entered, (PVOID)(uint64_t)routine };
    etw_log(ETW_IPI, &info, NULL);
}

void etw_set_interval(KPROFILE_SOURCE source, ULONG now, ULONG before)
{
    PERFINFO_SAMPLED_PROFILE_CONFIG info = { (ULONG)source, now, before };
    etw_log(ETW_SET_INTERVAL, &info, NULL);
}
