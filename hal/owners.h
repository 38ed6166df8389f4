/* SPDX-License-Identifier: MIT */
/* Owners of counters. Counters are numbered as in pmu/pmu.h. A mask of counters is like
 * OverflowBits: bit n is general-purpose counter n, bit 32 + n is fixed counter n. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/cpu.h"
#include "kernel/nt/nt_profile.h"

/* Allocates hardware counters: all that are asked for, or none. It does not program or start
 * them.
 *
 * GroupAffinty (as Windows spells it): GroupCount elements, which together have the processors
 * wanted; NULL and 0: all. ResourceList: the counters wanted, at most one overflow handler, event
 * buffer and tag; NULL: the whole PMU of those processors, exclusively. A counter index is n,
 * 32 + n for fixed counter n, or its RDPMC selector; a range includes its end. CounterSetHandle:
 * out; NULL after every failure.
 *
 * STATUS_SUCCESS
 * STATUS_INVALID_PARAMETER       CounterSetHandle is NULL; only one of GroupAffinty and GroupCount
 *                                is given; a group not 0, an empty mask, a processor that is not
 *                                active, reserved fields not 0; a list without counters and buffer,
 *                                or with a handler and no counter; Flags not 0; an unknown Type; an
 *                                index that the processor lacks; a counter twice; Begin > End; a
 *                                NULL handler; two handlers, buffers or tags; a threshold of 0; a
 *                                size of records that a processor cannot write
 * STATUS_NOT_SUPPORTED           no counter works on this machine; a buffer where a processor
 *                                writes no records; extended configurations
 * STATUS_INSUFFICIENT_RESOURCES  somebody has one of the counters, or the buffer, on one of the
 *                                processors; all owner slots are used; no memory for a buffer
 * They are tested in this order. IRQL PASSIVE_LEVEL. Source: ntddk.h and its pages, Windows 10 1903
 * and later.
 *
 * The handler runs at PROFILE_LEVEL on the processor where the counter overflowed. It gets its
 * owner's bits only; overflow status is cleared, and every counter of the processor is paused. A
 * handler that wants another overflow writes the counter (pmu_write).
 *
 * A buffer's handler runs likewise, when `EventThreshold` records are written, or as many as half a
 * buffer holds, and in the free. The buffer is empty when it returns. EventBuffer is only its own
 * until then. CustomEventBufferEntrySize is the size of the records that its MSR_PEBS_DATA_CFG asks
 * for; 0: the smallest. */
#define HAL_OWNERS_MAX 512 /* two trace sessions with counters on 255 CPUs */
NTSTATUS HalAllocateHardwareCounters(PGROUP_AFFINITY GroupAffinty, ULONG GroupCount,
                                     PPHYSICAL_COUNTER_RESOURCE_LIST ResourceList,
                                     PHANDLE CounterSetHandle);
/* With `hal=1809` the rules are those before Windows 10 1903: GroupAffinty, GroupCount and
 * ResourceList are reserved, and other than NULL, 0, NULL is STATUS_INVALID_PARAMETER; a success
 * gives every counter. Written once, at boot. */
extern bool hal_counters_1809;

/* Which of so many slots has the owner; any, if it is no handle. */
static inline unsigned hal_owner_slot(HANDLE handle)
{
    return (uint64_t)handle >> 2 & (HAL_OWNERS_MAX - 1);
}

/* Stops, clears and frees the counters on their processors. When it returns the handler runs on
 * no processor. STATUS_INVALID_PARAMETER: not a handle, or freed before. IRQL PASSIVE_LEVEL. */
NTSTATUS HalFreeHardwareCounters(HANDLE CounterSetHandle);

/* From now on the owner programs its counters by their registers, as drivers do. Starts and stops
 * of other counters do not change them. STATUS_INVALID_PARAMETER: not a handle. IRQL
 * PASSIVE_LEVEL. */
NTSTATUS hal_counters_lend(HANDLE CounterSetHandle);

/* Like HalAllocateHardwareCounters, for parts of the kernel, which have a name and know pmu/:
 * claims counters on each CPU of a mask; absent CPUs are ignored. The name is kept, not copied.
 * `handler` may be NULL. Freed by HalFreeHardwareCounters. STATUS_INVALID_PARAMETER: no CPU or no
 * counter, or a counter that does not exist; else as above. IRQL PASSIVE_LEVEL. */
NTSTATUS hal_counters_claim(const char *name, struct cpu_set among, uint64_t counters,
                            PPHYSICAL_COUNTER_OVERFLOW_HANDLER handler, PHANDLE handle);

/* hal_counters_claim of one counter and of the event buffer, whose smallest records `records` gets,
 * one by one. STATUS_NOT_SUPPORTED: a CPU writes none. */
NTSTATUS hal_counters_claim_records(const char *name, struct cpu_set among, unsigned ctr,
                                    PPHYSICAL_COUNTER_EVENT_BUFFER_OVERFLOW_HANDLER records,
                                    PHANDLE handle);

/* Claims all counters of every CPU except these. If there are no others, it succeeds and *handle is
 * NULL. STATUS_INSUFFICIENT_RESOURCES as above. IRQL PASSIVE_LEVEL. */
NTSTATUS hal_counters_claim_others(const char *name, uint64_t counters, PHANDLE handle);

/* This and the functions below: IRQL <= DISPATCH_LEVEL; the answer may
 * change at once. Counters that nobody owns on any CPU of the mask. */
uint64_t hal_counters_available(struct cpu_set among);
/* The name of the counter's owner on that CPU, for messages; NULL: nobody. */
const char *hal_counter_owner_name(unsigned ctr, unsigned cpu);
/* The owner's ResourceTypeIdenitificationTag, 0 if it gave none. */
ULONG hal_counter_owner_tag(unsigned ctr, unsigned cpu);
/* Counters of that active CPU that we started and whose select or enable bit somebody else has
 * changed since. Their counts are wrong; their free prints a message. IRQL < DISPATCH_LEVEL. */
uint64_t hal_counters_rewritten(unsigned cpu);
/* Called before counters of this CPU are stopped: records such counters for their owner, who
 * frees them later. IRQL PROFILE_LEVEL. */
void hal_counters_check(uint64_t counters);
/* How many owners there are; for leak checks. */
unsigned hal_counters_owned(void);
/* Bits: counters of this CPU whose overflows have an owner, as its interrupt finds it. */
uint64_t hal_counters_owned_here(void);

/* Counters that work on every processor; 0: no PMU. NT: no source says how many Windows reports
 * where processors differ. */
unsigned hal_counter_count(void);
/* Whether RDPMC with this selector reads a counter that works on every processor. *mask: the bits
 * that it has on all of them; *uneven: on some it has more. */
bool hal_counter_selector(uint64_t selector, uint64_t *mask, bool *uneven);

/* From interrupt.c to owners.c: calls the handlers of the owners of these counters, at least one,
 * of this CPU. */
void hal_counters_overflowed(uint64_t counters);

/* For tests alone, which clean up after each other: releases all, after hal_pmc_release_all and
 * hal_profile_release_all, while nobody else uses them. PASSIVE_LEVEL. */
void hal_counters_release_all(void); /* how many: hal_counters_owned */

/* counters_run.c. For thread profiling, which writes, starts and stops counters of other owners. On
 * this CPU, IRQL IPI_LEVEL; counters are bits. */
uint64_t hal_counters(void);                 /* those that work */
uint64_t hal_counter_bit(uint64_t selector); /* 0: the selector names none */
uint64_t hal_counters_running(void);
/* Whether the lowest of them still has its select: what resets one counter resets all. */
bool hal_counters_kept(uint64_t counters);
/* Whether a single write starts or stops any number of counters. */
bool hal_counters_stop_at_once(void);
/* Starts and stops `counters` so that exactly `run` of them run. Writes no register if that is so
 * already. */
void hal_counters_run(uint64_t counters, uint64_t run);
/* Writes as many low bits of the value as the counter takes, and returns them. */
uint64_t hal_counter_write(uint64_t counter, uint64_t value);

/* Whether each of these counters counts the same event on all processors of the mask, so that a
 * thread's counts of several processors can be added; if not, *ctr is a counter that does not. All
 * processors are compared, unless all are of one kind: a driver that programs only some of those
 * knows it. IRQL PASSIVE_LEVEL. */
bool hal_counters_agree(struct cpu_set among, uint64_t counters, unsigned *ctr);
/* The bits that it has on this processor. */
uint64_t hal_counter_mask(uint64_t selector);
