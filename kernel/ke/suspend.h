/* SPDX-License-Identifier: MIT */
/* Suspended threads, and calls that others queue to a thread (user APCs). Services are for ring-3
 * threads through the service table, and for drivers. PASSIVE_LEVEL. Handles:
 * STATUS_INVALID_HANDLE, STATUS_OBJECT_TYPE_MISMATCH, STATUS_ACCESS_DENIED. Sources: the Win32
 * documentation of SuspendThread and QueueUserAPC; phnt's headers. */
#pragma once
#include "kernel/nt/nt.h"

struct thread;
struct trap_frame;

#define MAXIMUM_SUSPEND_COUNT 127
#define THREAD_APCS 120 /* NT: as many as there is memory for */

/* The thread stops at its next way to ring 3, or in its wait, which goes on when it is resumed;
 * THREAD_SUSPEND_RESUME. *PreviousSuspendCount, which may be NULL: how often it was suspended
 * before. STATUS_ACCESS_VIOLATION; STATUS_THREAD_IS_TERMINATING; STATUS_SUSPEND_COUNT_EXCEEDED. NT:
 * a thread that waits for the kernel, or for a driver, is stopped there too. */
NTSTATUS NtSuspendThread(HANDLE ThreadHandle, PULONG PreviousSuspendCount);
/* Decrements the suspend count; at 0 the thread continues. *PreviousSuspendCount is 0 if it was not
 * suspended. */
NTSTATUS NtResumeThread(HANDLE ThreadHandle, PULONG PreviousSuspendCount);

/* The thread calls ApcRoutine with three arguments at its next alertable wait, which ends by
 * STATUS_USER_APC; all that were queued, first come first. THREAD_SET_CONTEXT. STATUS_UNSUCCESSFUL:
 * it has ended, or is to; STATUS_INVALID_HANDLE: not a thread of a Windows program;
 * STATUS_NO_MEMORY: also if THREAD_APCS are queued. */
NTSTATUS NtQueueApcThread(HANDLE ThreadHandle, PVOID ApcRoutine, PVOID ApcArgument1,
                          PVOID ApcArgument2, PVOID ApcArgument3);
/* Runs the queued calls, as an alertable wait does. STATUS_SUCCESS. */
NTSTATUS NtTestAlert(void);

/* For the kernel. */

/* Whether a thread has ended, or is to. L: dispatcher lock. */
bool suspend_too_late(const struct thread *thread);
/* NtResumeThread without its checks. */
void thread_resume(struct thread *thread);

/* Queues a user APC of the thread; false: no space in its queue, or its process takes no APCs. */
bool apc_queue(struct thread *thread, PVOID routine, PVOID argument1, PVOID argument2,
               PVOID argument3);
/* For timers. Gives the current thread a queue. STATUS_NOT_SUPPORTED: it is not a Windows program's
 * thread, or is in a driver; STATUS_INSUFFICIENT_RESOURCES. */
NTSTATUS apc_have_queue(void);
/* Queues routine(context, low half of the time, high half), unless the queue is full. *mark is true
 * as long as the call is queued. L: dispatcher lock */
void apc_put_timed(struct thread *thread, PVOID routine, PVOID context, uint64_t time, bool *mark);
/* Takes the call with this mark off the queue. L: dispatcher lock */
void apc_take_back(struct thread *thread, bool *mark);
/* Before a system call returns, if apc_due: it returns to ntdll's KiUserApcDispatcher, with a
 * struct apc_frame at RSP. */
void apc_deliver(struct trap_frame *frame);
/* On the way to ring 3: ends the current thread if that was asked for, and stops it while it is
 * suspended. */
void thread_way_out(void);
