/* SPDX-License-Identifier: MIT */
/* Suspended threads. Services are for ring-3 threads through the service table, and for drivers.
 * PASSIVE_LEVEL. Handles: STATUS_INVALID_HANDLE, STATUS_OBJECT_TYPE_MISMATCH, STATUS_ACCESS_DENIED.
 * Sources: the Win32 documentation of SuspendThread; phnt's headers. NT: nobody queues calls to a
 * thread (user APCs), and no wait is alertable. */
#pragma once
#include "kernel/nt/nt.h"

struct thread;

#define MAXIMUM_SUSPEND_COUNT 127

/* The thread stops at its next way to ring 3, or in its wait, which goes on when it is resumed;
 * THREAD_SUSPEND_RESUME. *PreviousSuspendCount, which may be NULL: how often it was suspended
 * before. STATUS_ACCESS_VIOLATION; STATUS_THREAD_IS_TERMINATING; STATUS_SUSPEND_COUNT_EXCEEDED. NT:
 * a thread that waits for the kernel, or for a driver, is stopped there too. */
NTSTATUS NtSuspendThread(HANDLE ThreadHandle, PULONG PreviousSuspendCount);
/* Decrements the suspend count; at 0 the thread continues. *PreviousSuspendCount is 0 if it was not
 * suspended. */
NTSTATUS NtResumeThread(HANDLE ThreadHandle, PULONG PreviousSuspendCount);

/* For the kernel. */

/* Whether a thread has ended, or is to. L: dispatcher lock. */
bool suspend_too_late(const struct thread *thread);
/* NtResumeThread without its checks. */
void thread_resume(struct thread *thread);

/* On the way to ring 3: ends the current thread if that was asked for, and stops it while it is
 * suspended. */
void thread_way_out(void);
