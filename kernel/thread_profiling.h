/* SPDX-License-Identifier: MIT */
/* Per-thread counts. */
#pragma once
#include "kernel/counter_config.h"

struct thread;

/* Once, at boot: "accumulate" or "isolate"; false: neither. */
bool thread_profiling_policy(const char *name);

/* profiling_read.c. Ours: the reading of RtlReadThreadProfilingData by the kernel, as a service for ring 3, and for
 * ring 0 of the current thread (STATUS_PROFILING_NOT_STARTED: it is not profiled). */
NTSTATUS NtReadThreadProfilingData(HANDLE PerformanceDataHandle, ULONG Flags, PPERFORMANCE_DATA PerformanceData);
NTSTATUS thread_profiling_read(ULONG flags, PPERFORMANCE_DATA data);

/* NtSetInformationThread and NtQueryInformationThread, class ThreadCounterProfiling. */
NTSTATUS thread_profiling_set(HANDLE ThreadHandle, PVOID ThreadInformation, ULONG ThreadInformationLength);
NTSTATUS thread_profiling_query(HANDLE ThreadHandle, PVOID ThreadInformation, ULONG ThreadInformationLength,
                                PULONG ReturnLength);

/* From switch.asm, under the scheduler's lock, when either thread is profiled. */
void thread_profiling_switch(struct thread *from, struct thread *to, KWAIT_REASON reason);
/* From trap.c: that many time stamp ticks of the current thread went to an interrupt. */
void thread_profiling_exclude(struct thread *thread, uint64_t ticks);
/* The current thread ends. */
void thread_profiling_end(struct thread *thread);
/* At IPI_LEVEL on each CPU, after the configuration was emptied. */
void thread_profiling_refresh(void *unused);
