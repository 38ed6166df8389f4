/* SPDX-License-Identifier: MIT */
/* A thread begins and ends to be profiled. */
#pragma once
#include "kernel/base/cpu.h"
#include "kernel/nt/ntddk.h"

struct thread;

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
