/* SPDX-License-Identifier: MIT */
/* What each hook's record says. Any IRQL, no lock (etw.h).
 *
 * NT: there are no priorities, quanta, C-states and processor ids: idle threads have priority 0 and thread id 0, all
 * others 8; ring 3 is process 4; what does not exist is 0. */
#include "kernel/cpu.h"
#include "kernel/etw_pmc.h"
#include "kernel/process.h"
#include "kernel/thread.h"
#include "kernel/trap.h"

#define PRIORITY 8
#define RING3_PROCESS 4 /* as GetCurrentProcessId has it */

static bool is_idle(const struct thread *thread) { return thread == cpus[thread->cpu]->idle; }
static ULONG id_of(const struct thread *thread) { return is_idle(thread) ? 0 : thread->id; }
static CHAR priority_of(const struct thread *thread) { return is_idle(thread) ? 0 : PRIORITY; }

static CHAR state_of(const struct thread *thread)
{
    static const uint8_t states[] = { [THREAD_READY] = Ready, [THREAD_RUNNING] = Running,
                                      [THREAD_WAITING] = Waiting, [THREAD_DEAD] = Terminated };
    return (CHAR)states[thread->state];
}

void etw_thread(enum etw_hook hook, const struct thread *thread)
{
    WMI_EXTENDED_THREAD_INFORMATION info = {
        .ThreadId = thread->id, .StackBase = thread->stack + KERNEL_STACK_SIZE, .StackLimit = thread->stack,
        .Affinity = thread->affinity, .Win32StartAddr = (PVOID)(uint64_t)thread->start, .BasePriority = PRIORITY,
    };
    if (thread->process) {
        uint64_t top = thread->user_rsp + 8;
        info.ProcessId = RING3_PROCESS;
        info.UserStackBase = (PVOID)top;
        info.UserStackLimit = (PVOID)(top - PROCESS_STACK_PAGES * PAGE_SIZE);
        info.Win32StartAddr = (PVOID)thread->user_start;
    }
    etw_log(hook, &info, sizeof info);
}

void etw_context_swap(const struct thread *from, const struct thread *to, KWAIT_REASON reason)
{
    WMI_CONTEXTSWAP info = {
        .NewThreadId = id_of(to), .OldThreadId = id_of(from), .NewPriority = priority_of(to),
        .OldPriority = priority_of(from), .OldWaitReason = (CHAR)reason, .OldWaitMode = from->process != NULL,
        .OldState = state_of(from), .OldIdealProcessor = (UCHAR)cpu_number(),
    };
    etw_log(ETW_CSWITCH, &info, sizeof info);
}

void etw_ready_thread(const struct thread *thread)
{
    ETW_READY_THREAD_EVENT info = { .ThreadId = thread->id };
    etw_log(ETW_READY, &info, sizeof info);
}

/* Of the timer, or of a counter that sessions sample by; profile objects may have others. */
void etw_profile(PKTRAP_FRAME frame, KPROFILE_SOURCE source)
{
    const struct cpu *cpu = cpu_current();
    ULONG thread = id_of(cpu->thread);
    if (source == ProfileTime) {
        PERFINFO_SAMPLED_PROFILE_INFORMATION info = { (PVOID)frame->rip, thread, 1, 0, 0 };
        /* Neither in a DPC, for there are none, nor in an interrupt, for they do not nest. */
        info.Flags = (UCHAR)(priority_of(cpu->thread) << PROFILE_PRIORITY_SHIFT);
        etw_log(ETW_PROFILE, &info, sizeof info);
    } else if (etw_sampling_by(source)) {
        PERFINFO_PMC_SAMPLE_INFORMATION info = { (PVOID)frame->rip, thread, (USHORT)source, 0 };
        etw_log(ETW_PMC, &info, sizeof info);
    }
}

void etw_syscall_enter(uint64_t address)
{
    PERFINFO_SYSCALL_ENTER_DATA info = { (PVOID)address };
    etw_log(ETW_SYSCALL_ENTER, &info, sizeof info);
}

void etw_syscall_exit(NTSTATUS status)
{
    PERFINFO_SYSCALL_EXIT_DATA info = { status };
    etw_log(ETW_SYSCALL_EXIT, &info, sizeof info);
}

void etw_interrupt(uint64_t entered, unsigned vector, uint64_t routine)
{
    PERFINFO_INTERRUPT_INFORMATION info = { entered, (PVOID)routine, TRUE, (USHORT)vector, 0 };
    etw_log(ETW_INTERRUPT, &info, sizeof info);
}

void etw_ipi(uint64_t entered, void (*routine)(void *))
{
    PERFINFO_DPC_INFORMATION info = { entered, (PVOID)(uint64_t)routine };
    etw_log(ETW_IPI, &info, sizeof info);
}

void etw_set_interval(KPROFILE_SOURCE source, ULONG now, ULONG before)
{
    PERFINFO_SAMPLED_PROFILE_CONFIG info = { (ULONG)source, now, before };
    etw_log(ETW_SET_INTERVAL, &info, sizeof info);
}
