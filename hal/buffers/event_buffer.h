/* SPDX-License-Identifier: MIT */
/* Event buffers: records that a processor itself writes of events (PEBS), one buffer a CPU. Their
 * owner is that of bit 62 in hal/owners.c, which is the bit of their overflow status. */
#pragma once
#include "kernel/base/cpu_set.h"
#include "kernel/nt/nt_profile.h"

struct pmu_kind;

/* On each CPU, when it starts. */
void event_buffer_init_cpu(void);
/* Counters that can write records on CPUs of a kind that has started; 0: there are none. */
uint64_t event_buffer_counters(const struct pmu_kind *pmu);
/* Whether each CPU of the set writes records of the size wanted; 0: the smallest it has.
 * STATUS_NOT_SUPPORTED: one writes none; STATUS_INVALID_PARAMETER: one writes none of that size.
 * PASSIVE_LEVEL, as for open and close. */
NTSTATUS event_buffer_check(struct cpu_set among, ULONG entry_size);
/* For the owner: gives each of these CPUs an empty buffer. The threshold is in records, and at most
 * what half a buffer holds. False: no memory, or a CPU that does not take its address; the owner
 * is freed then, which detaches and closes what there is. */
bool event_buffer_open(struct cpu_set among, ULONG entry_size, ULONG threshold);
/* Frees buffers that each CPU has detached. */
void event_buffer_close(struct cpu_set among);

/* On this CPU, at PROFILE_LEVEL, while its counters pause. Hands the records over, oldest first;
 * one call for those of one size that follow each other. Then the buffer is empty. */
void event_buffer_drain(PPHYSICAL_COUNTER_EVENT_BUFFER_OVERFLOW_HANDLER handler, HANDLE owner);
/* A record's counter, the lowest of several, and the instruction of the event. */
struct event_buffer_sample {
    unsigned ctr;
    uint64_t address;
};
struct event_buffer_sample event_buffer_sample(const void *record);
/* For the kernel's own records, of the smallest size, on this CPU: the counter, which has stopped,
 * writes one each `period` events, from 2 on, from the next pmu_start on. 0: none any more. */
void event_buffer_arm(unsigned ctr, uint64_t period);
/* For the periods after the next record. */
void event_buffer_set_period(unsigned ctr, uint64_t period);
/* The counters' owner frees them: they write no records any more, if he had them do so. */
void event_buffer_forget(uint64_t counters);
/* The buffer's owner does: drains it. Or that of everything, who has none. No more records then. */
void event_buffer_detach(PPHYSICAL_COUNTER_EVENT_BUFFER_OVERFLOW_HANDLER handler, HANDLE owner);
