/* SPDX-License-Identifier: MIT */
/* Hardware counter configuration and per-thread counts. */
#pragma once
#include "kernel/nt.h"

struct thread;

NTSTATUS KeSetHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray, ULONG Count);
NTSTATUS KeQueryHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray, ULONG MaximumCount, PULONG Count);

/* NtSetInformationThread and NtQueryInformationThread, class ThreadCounterProfiling. */
NTSTATUS thread_profiling_set(HANDLE ThreadHandle, PVOID ThreadInformation, ULONG ThreadInformationLength);
NTSTATUS thread_profiling_query(HANDLE ThreadHandle, PVOID ThreadInformation, ULONG ThreadInformationLength,
                                PULONG ReturnLength);

/* From sched.c, under its lock, when either thread is profiled. */
void thread_profiling_switch(struct thread *from, struct thread *to, KWAIT_REASON reason);
/* From trap.c: that many time stamp ticks of the current thread went to an interrupt. */
void thread_profiling_exclude(struct thread *thread, uint64_t ticks);
/* The current thread ends. */
void thread_profiling_end(struct thread *thread);
/* Threads that have hardware counters enabled. */
unsigned thread_profiling_users(void);
