/* SPDX-License-Identifier: MIT */
/* The hardware counter configuration: which counters thread profiling samples. There is one for
 * the whole machine. */
#pragma once
#include "kernel/counting/switch_counters.h"
#include "kernel/nt/ntddk.h"

struct process;

NTSTATUS KeSetHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray, ULONG Count);
NTSTATUS KeQueryHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray, ULONG MaximumCount,
                                             PULONG Count);

/* Adds a user: a thread with hardware counters. Returns the number of configured elements and their
 * generation. While there are users the configuration can only be emptied. */
ULONG counter_config_join(uint32_t *generation);
/* Removes a user. True: it was the last one, and the caller calls counter_driver_unused. */
bool counter_config_leave(void);
/* The number of threads that have hardware counters enabled. */
unsigned counter_config_users(void);

/* Sets the configuration for a process, NULL: a driver. STATUS_WMI_ALREADY_ENABLED: a thread has
 * hardware counters enabled, a profile object or trace session has one of these, or the
 * configuration is not the process's. */
NTSTATUS counter_config_set(const struct process *owner, PHARDWARE_COUNTER array, ULONG count);
/* Empties the configuration of this process, even if threads use it. */
void counter_config_end(const struct process *owner);

/* counter_driver.c: the counter driver for ring 3; the services with the Ke names call it. */
NTSTATUS counter_driver_set(PHARDWARE_COUNTER CounterArray, ULONG Count);
NTSTATUS counter_driver_query(PHARDWARE_COUNTER CounterArray, ULONG MaximumCount, PULONG Count);
/* The process's last thread ends. */
void counter_driver_end(const struct process *process);
/* Called when no thread has hardware counters enabled any more. */
void counter_driver_unused(void);
