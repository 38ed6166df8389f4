/* SPDX-License-Identifier: MIT */
/* The hardware counter configuration: which counters thread profiling samples. Of the machine, not of a thread. */
#pragma once
#include "kernel/ntddk.h"

struct process;

struct counter_element {
    uint32_t selector; /* of RDPMC */
    uint64_t width;    /* mask of the counter's bits */
};

/* Changed only while counter_config_users is 0, so whoever is a user reads it without a lock. */
extern struct counter_element counter_config[MAX_HW_COUNTERS];
extern ULONG counter_config_count;
/* Atomic. Another number: the configuration was changed, or emptied under its users. */
extern uint32_t counter_config_generation;

NTSTATUS KeSetHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray, ULONG Count);
NTSTATUS KeQueryHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray, ULONG MaximumCount, PULONG Count);

/* A thread with hardware counters comes (returns how many elements are configured, and their generation), or goes.
 * The configuration stays as it is until it is gone, unless somebody empties it. */
ULONG counter_config_join(uint32_t *generation);
void counter_config_leave(void); /* PASSIVE_LEVEL */
/* Threads that have hardware counters enabled. */
unsigned counter_config_users(void);

/* The set for a process, NULL for a driver. STATUS_WMI_ALREADY_ENABLED: a thread has hardware counters enabled, or
 * somebody else than the process configured. */
NTSTATUS counter_config_set(const struct process *owner, PHARDWARE_COUNTER array, ULONG count);
/* Empties what this process configured, whoever counts with it. */
void counter_config_end(const struct process *owner);

/* counter_driver.c: the counter driver for ring 3, behind the services of the Ke names. */
NTSTATUS counter_driver_set(PHARDWARE_COUNTER CounterArray, ULONG Count);
NTSTATUS counter_driver_query(PHARDWARE_COUNTER CounterArray, ULONG MaximumCount, PULONG Count);
/* The process's last thread ends. */
void counter_driver_end(const struct process *process);
/* No thread has hardware counters enabled any more. */
void counter_driver_unused(void);
