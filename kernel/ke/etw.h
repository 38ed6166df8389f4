/* SPDX-License-Identifier: MIT */
/* Trace sessions (ETW). Hooks elsewhere in the kernel test one variable (etw_wants) and then call
 * one of the functions here, which writes a record into the buffers of each session that has
 * enabled it. */
#pragma once
#include "kernel/nt/nt_trace.h"

struct object;
struct thread;

enum etw_hook {
    ETW_THREAD_CREATE,
    ETW_THREAD_DELETE,
    ETW_CSWITCH,
    ETW_READY,
    ETW_PROFILE,
    ETW_PMC,
    ETW_SYSCALL_ENTER,
    ETW_SYSCALL_EXIT,
    ETW_INTERRUPT,
    ETW_DPC,
    ETW_TIMER_DPC,
    ETW_SET_INTERVAL,
    ETW_IPI,
    ETW_SAMPLES, /* one of ETW_PROFILE and ETW_PMC; has no records */
    ETW_EVENT,   /* programs' events, of any size: every session takes them until it stops */
    ETW_HOOKS
};

/* A bit for each session that has enabled the hook. Atomic; written by etw_session.c. */
extern uint16_t etw_wanted[ETW_HOOKS];

/* The slot of the session that alone wants context switches, if nothing follows their records; -1:
 * there is none. Atomic. */
extern int8_t etw_swaps;

/* The whole cost of a hook that no session has enabled. Any IRQL. */
static inline bool etw_wants(enum etw_hook hook)
{
    return __builtin_expect(__atomic_load_n(&etw_wanted[hook], __ATOMIC_RELAXED) != 0, 0);
}

/* The hooks, in etw_hooks.c. Any IRQL, but not in an NMI handler, because the NMI may have
 * interrupted the writing of a record: samples by NMI are recorded by the self-IPI that the NMI
 * requests (hal_pmi_noted). */
void etw_thread(enum etw_hook hook, const struct thread *thread);
void etw_context_swap(const struct thread *from, const struct thread *to, KWAIT_REASON reason);
void etw_ready_thread(const struct thread *thread);
void etw_profile(PKTRAP_FRAME frame, KPROFILE_SOURCE source);
void etw_syscall_enter(uint64_t address);
void etw_syscall_exit(NTSTATUS status);
void etw_interrupt(uint64_t entered, unsigned vector, uint64_t routine);
void etw_dpc(enum etw_hook hook, uint64_t entered, uint64_t routine);
void etw_ipi(uint64_t entered, void (*routine)(void *));
void etw_set_interval(KPROFILE_SOURCE source, ULONG now, ULONG before);
