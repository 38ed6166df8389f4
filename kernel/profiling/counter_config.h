/* SPDX-License-Identifier: MIT */
/* The hardware counter configuration: which counters thread profiling samples. There is one for
 * the whole machine. */
#pragma once
#include "kernel/ke/thread_counters.h"
#include "kernel/nt/ntddk.h"

struct process;

NTSTATUS KeSetHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray, ULONG Count);
NTSTATUS KeQueryHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray, ULONG MaximumCount,
                                             PULONG Count);

/* Adds a user, a thread with hardware counters (returns how many elements are configured, and
 * their generation), or removes one. While there are users the configuration can only be
 * emptied. */
ULONG counter_config_join(uint32_t *generation);
/* True: nobody counts any more, and counter_driver_unused is to be called. */
bool counter_config_leave(void);
/* Threads that have hardware counters enabled. */
unsigned counter_config_users(void);

/* The set for a process, NULL for a driver. STATUS_WMI_ALREADY_ENABLED: a thread has hardware
 * counters enabled, or somebody else than the process configured. */
NTSTATUS counter_config_set(const struct process *owner, PHARDWARE_COUNTER array, ULONG count);
/* Empties the configuration of this process, even if threads use it. */
void counter_config_end(const struct process *owner);

/* counter_driver.c: the counter driver for ring 3, behind the services of the Ke names. */
NTSTATUS counter_driver_set(PHARDWARE_COUNTER CounterArray, ULONG Count);
NTSTATUS counter_driver_query(PHARDWARE_COUNTER CounterArray, ULONG MaximumCount, PULONG Count);
/* The process's last thread ends. */
void counter_driver_end(const struct process *process);
/* Called when no thread has hardware counters enabled any more. */
void counter_driver_unused(void);
