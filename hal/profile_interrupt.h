/* SPDX-License-Identifier: MIT */
/* The profile interrupt. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/cpu.h"
#include "kernel/nt/nt_profile.h"

/* Reserves the counter that the source needs on these processors (ProfileTime: none), unless
 * another user has done so. Each success needs a hal_profile_stop. STATUS_NOT_SUPPORTED;
 * STATUS_DEVICE_BUSY: no counter is free somewhere. PASSIVE_LEVEL, as for the next two. */
NTSTATUS hal_profile_reserve(KPROFILE_SOURCE source, struct cpu_set among);
/* Starts the interrupts. */
void hal_profile_start(KPROFILE_SOURCE source, struct cpu_set among);
/* The last user's stop ends the interrupts and frees the counters. When this returns every
 * processor has answered an IPI, so none is still in an earlier interrupt. */
void hal_profile_stop(KPROFILE_SOURCE source, struct cpu_set among);
/* The source that a counter of a processor samples by at this moment; ProfileTime: none. */
KPROFILE_SOURCE hal_profile_source(unsigned ctr, unsigned cpu);
/* Starts and stops the interrupt of a source on this processor. No effect if it was not reserved,
 * or is already started or stopped. IRQL <= PROFILE_LEVEL. */
VOID HalStartProfileInterrupt(KPROFILE_SOURCE ProfileSource);
VOID HalStopProfileInterrupt(KPROFILE_SOURCE ProfileSource);
/* Whether somebody samples by the source. */
bool profile_in_use(KPROFILE_SOURCE source);
/* The time between samples has changed. */
void profile_time_changed(void);
/* From trap.c, at each interrupt of the timer. */
void hal_profile_tick(struct trap_frame *frame, uint64_t rip, uint64_t cs);
/* Before a stop: samples of overflows whose interrupt was lost come now, not at the next tick. */
void hal_profile_collect(struct cpu_set among);
/* By processor: overflows of counters that sample without an interrupt of their own, because it was
 * lost, which a tick finds, or periods late. Each became a sample nevertheless. */
extern uint64_t hal_profile_lost[MAX_CPUS];
/* The one call that goes up, to kernel/profiling/profile.c, at PROFILE_LEVEL: one interrupt of the
 * source. */
VOID KeProfileInterruptWithSource(PKTRAP_FRAME TrapFrame, KPROFILE_SOURCE Source);
/* A sample of what was interrupted (hal_pmi_frame), at another address. */
void profile_record(uint64_t address, KPROFILE_SOURCE source);

/* For tests alone, as hal_counters_release_all: the successes of hal_profile_reserve, each once a
 * processor, and their end. */
unsigned hal_profile_users(void);
void hal_profile_release_all(void);
