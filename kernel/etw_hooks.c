/* SPDX-License-Identifier: MIT */
/* What each hook's record says. Any IRQL, no lock (etw.h).
 *
 * NT: there are no quanta, C-states and processes with ids: ring 3 is process 4; what does not exist is 0. */
#include "kernel/cpu.h"
#include "kernel/etw_pmc.h"
#include "kernel/process.h"
#include "kernel/thread.h"
#include "kernel/trap.h"

#define RING3_PROCESS 4 /* as GetCurrentProcessId has it */

_Static_assert((int)THREAD_READY == Ready && (int)THREAD_RUNNING == Running && (int)THREAD_WAITING == Waiting &&
               (int)THREAD_DEAD == Terminated, "OldState is thread.state");

void etw_thread(enum etw_hook hook, const struct thread *thread)
{
    WMI_EXTENDED_THREAD_INFORMATION info = {
        .ThreadId = thread->id, .StackBase = thread->stack + KERNEL_STACK_SIZE, .StackLimit = thread->stack,
        .Affinity = thread->affinity, .Win32StartAddr = (PVOID)(uint64_t)thread->start, .BasePriority = (UCHAR)thread->priority,
    };
    if (thread->process) {
        uint64_t top = thread->user_rsp + 8;
        info.ProcessId = RING3_PROCESS;
        info.UserStackBase = (PVOID)top;
        info.UserStackLimit = (PVOID)(top - thread->process->stack_pages * PAGE_SIZE);
        info.Win32StartAddr = (PVOID)thread->user_start;
    }
    etw_log(hook, &info);
}

void etw_context_swap(const struct thread *from, const struct thread *to, KWAIT_REASON reason)
{
    uint64_t flags = read_flags();
    cli();
    struct cpu *cpu = cpu_current();
    for (uint64_t who = __atomic_load_n(&etw_wanted[ETW_CSWITCH], __ATOMIC_ACQUIRE); who; who &= who - 1) {
        struct etw_stream *stream = cpu->streams[(uint32_t)__builtin_ctzl(who)];
        WMI_CONTEXTSWAP *info = etw_begin(stream, ETW_CSWITCH);
        if (!info)
            continue;
        info->NewThreadId = to->id;
        info->OldThreadId = from->id;
        *(ULONG *)(void *)&info->NewPriority = (UCHAR)to->priority; /* and 0 in the three behind it */
        info->OldPriority = from->priority;
        info->OldWaitReason = (CHAR)reason;
        info->OldWaitMode = from->process != NULL;
        info->OldState = (CHAR)from->state;
        info->OldIdealProcessor = (UCHAR)stream->cpu;
        info->NewWaitTime = 0;
        info->OldRemainingQuantum = 0;
    }
    write_flags(flags);
}

void etw_ready_thread(const struct thread *thread)
{
    ETW_READY_THREAD_EVENT info = { .ThreadId = thread->id };
    etw_log(ETW_READY, &info);
}

/* Of the timer, or of a counter that sessions sample by; profile objects may have others. */
void etw_profile(PKTRAP_FRAME frame, KPROFILE_SOURCE source)
{
    const struct thread *thread = thread_current();
    if (source == ProfileTime) {
        PERFINFO_SAMPLED_PROFILE_INFORMATION info = { (PVOID)frame->rip, thread->id, 1, 0, 0 };
        /* Neither in a DPC, for there are none, nor in an interrupt, for they do not nest. */
        info.Flags = (UCHAR)(thread->priority << PROFILE_PRIORITY_SHIFT);
        etw_log(ETW_PROFILE, &info);
    } else if (etw_sampling_by(source)) {
        PERFINFO_PMC_SAMPLE_INFORMATION info = { (PVOID)frame->rip, thread->id, (USHORT)source, 0 };
        etw_log(ETW_PMC, &info);
    }
}

void etw_syscall_enter(uint64_t address)
{
    PERFINFO_SYSCALL_ENTER_DATA info = { (PVOID)address };
    etw_log(ETW_SYSCALL_ENTER, &info);
}

void etw_syscall_exit(NTSTATUS status)
{
    PERFINFO_SYSCALL_EXIT_DATA info = { status };
    etw_log(ETW_SYSCALL_EXIT, &info);
}

void etw_interrupt(uint64_t entered, unsigned vector, uint64_t routine)
{
    PERFINFO_INTERRUPT_INFORMATION info = { entered, (PVOID)routine, TRUE, (USHORT)vector, 0 };
    etw_log(ETW_INTERRUPT, &info);
}

void etw_ipi(uint64_t entered, void (*routine)(void *))
{
    PERFINFO_DPC_INFORMATION info = { entered, (PVOID)(uint64_t)routine };
    etw_log(ETW_IPI, &info);
}

void etw_set_interval(KPROFILE_SOURCE source, ULONG now, ULONG before)
{
    PERFINFO_SAMPLED_PROFILE_CONFIG info = { (ULONG)source, now, before };
    etw_log(ETW_SET_INTERVAL, &info);
}
