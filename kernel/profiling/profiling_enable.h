/* SPDX-License-Identifier: MIT */
/* A thread begins and ends to be profiled. */
#pragma once
#include "kernel/base/cpu.h"
#include "kernel/nt/ntddk.h"

struct thread;
struct thread_profiling;

/* NtSetInformationThread and NtQueryInformationThread, class ThreadCounterProfiling. */
NTSTATUS thread_profiling_set(HANDLE ThreadHandle, PVOID ThreadInformation,
                              ULONG ThreadInformationLength);
NTSTATUS thread_profiling_query(HANDLE ThreadHandle, PVOID ThreadInformation,
                                ULONG ThreadInformationLength, PULONG ReturnLength);
/* Changes a thread's affinity. Beside sched_set_affinity's STATUS_DEVICE_CONFIGURATION_ERROR: it
 * is profiled, and a counter does not count the same on all of them. NT: Windows has no such
 * check. PASSIVE_LEVEL. */
NTSTATUS thread_profiling_set_affinity(struct thread *thread, struct cpu_set among);
/* How many windows for blocks are taken, one for each profiled thread. */
unsigned thread_profiling_slots(void);
/* The current thread ends. */
void thread_profiling_end(struct thread *thread);

/* profiling_read.c. Our own service: reads the calling thread's data as
 * RtlReadThreadProfilingData does in ring 3. STATUS_PROFILING_NOT_STARTED: it is not profiled. */
NTSTATUS NtReadThreadProfilingData(HANDLE PerformanceDataHandle, ULONG Flags,
                                   PPERFORMANCE_DATA PerformanceData);

/* isolate_policy.c. A thread with a mask enables (PASSIVE_LEVEL), or has disabled. The first one
 * takes every counter that is not configured, so that ring 3's RDPMC, which opens all, shows nobody
 * else's: STATUS_INSUFFICIENT_RESOURCES if another owner has one. */
NTSTATUS isolate_join(struct thread_profiling *p);
void isolate_leave(void);
