/* SPDX-License-Identifier: MIT */
/* A thread's profiling, from enabling to its end, and what is asked of it by handles. */
#pragma once
#include "hal/measure.h"
#include "kernel/base/cpu.h"
#include "kernel/base/cpu_set.h"
#include "kernel/nt/nt.h"

struct thread;

/* NtSetInformationThread and NtQueryInformationThread, class ThreadCounterProfiling. */
NTSTATUS thread_profiling_set(HANDLE ThreadHandle, PVOID ThreadInformation,
                              ULONG ThreadInformationLength);
NTSTATUS thread_profiling_query(HANDLE ThreadHandle, PVOID ThreadInformation,
                                ULONG ThreadInformationLength, PULONG ReturnLength);
/* profiling_read.c. Our own service: reads the calling thread's data as RtlReadThreadProfilingData
 * does in ring 3. STATUS_PROFILING_NOT_STARTED: it is not profiled. */
NTSTATUS NtReadThreadProfilingData(HANDLE PerformanceDataHandle, ULONG Flags,
                                   PPERFORMANCE_DATA PerformanceData);
/* Changes a thread's affinity. Beside sched_set_affinity's STATUS_DEVICE_CONFIGURATION_ERROR: it
 * is profiled, and a counter does not count the same on all of them. NT: Windows has no such
 * check. PASSIVE_LEVEL. */
NTSTATUS thread_profiling_set_affinity(struct thread *thread, struct cpu_set among);
/* How many windows for blocks are taken, one for each profiled thread. */
unsigned thread_profiling_slots(void);
/* The current thread ends. */
void thread_profiling_end(struct thread *thread);
