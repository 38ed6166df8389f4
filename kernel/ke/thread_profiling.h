/* SPDX-License-Identifier: MIT */
/* Per-thread counts. */
#pragma once
#include "hal/measure.h"
#include "kernel/base/cpu.h"
#include "kernel/ke/switch_counters.h"

struct thread;
struct thread_profiling;

/* Called once, at boot: "accumulate" or "isolate"; false: neither. */
bool thread_profiling_policy(const char *name);

/* profiling_read.c. Our own service: reads the calling thread's data as RtlReadThreadProfilingData
 * does in ring 3. STATUS_PROFILING_NOT_STARTED: it is not profiled. */
NTSTATUS NtReadThreadProfilingData(HANDLE PerformanceDataHandle, ULONG Flags,
                                   PPERFORMANCE_DATA PerformanceData);

/* NtSetInformationThread and NtQueryInformationThread, class ThreadCounterProfiling. */
NTSTATUS thread_profiling_set(HANDLE ThreadHandle, PVOID ThreadInformation,
                              ULONG ThreadInformationLength);
NTSTATUS thread_profiling_query(HANDLE ThreadHandle, PVOID ThreadInformation,
                                ULONG ThreadInformationLength, PULONG ReturnLength);

/* From switch_more.c, under the scheduler's lock, when either thread is profiled. */
void thread_profiling_switch(struct thread *from, struct thread *to, KWAIT_REASON reason);
/* Called by trap.c: an interrupt took that many time stamp ticks of the current thread.
 * UpdateCount stays, because counters have not changed: who reads its counters need not begin
 * again. */
void thread_profiling_exclude(struct thread *thread, uint64_t ticks);
/* Changes a thread's affinity. Beside sched_set_affinity's STATUS_DEVICE_CONFIGURATION_ERROR: it
 * is profiled, and a counter does not count the same on all of them. NT: Windows has no such
 * check. PASSIVE_LEVEL. */
NTSTATUS thread_profiling_set_affinity(struct thread *thread, struct cpu_set among);
/* Called by trap.c when a trap takes the current thread out of ring 3: subtracts what the trap
 * adds to its counters. Any IRQL, NMI included. */
void thread_profiling_trapped(struct thread_profiling *p, enum hal_trap trap);
/* How many windows for blocks are taken, one for each profiled thread. */
unsigned thread_profiling_slots(void);
/* The current thread ends. */
void thread_profiling_end(struct thread *thread);
/* At IPI_LEVEL on each CPU, after the configuration was emptied. */
void thread_profiling_refresh(void *unused);
