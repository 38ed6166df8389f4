/* SPDX-License-Identifier: MIT */
/* The counters' interrupt (PMI). */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/cpu.h"
#include "kernel/nt/nt_profile.h"

/* Called by each CPU after apic_init_cpu and pmu_init_cpu: unmasks the counters' interrupt. */
void hal_pmi_init_cpu(void);
/* The interrupt, from trap.c, interrupts off, PROFILE_LEVEL; the caller does the EOI. */
void hal_pmi(struct trap_frame *frame);
/* With pmi=nmi on the command line the interrupt is an NMI, which samples code that runs with
 * interrupts off. hal_pmi_use_nmi: before hal_pmi_init_cpu. The NMI handler takes no lock and
 * calls no owner: hal_pmi_nmi clears the status, re-arms the counters that sample, queues the
 * address and requests a self-IPI, whose handler delivers the queued samples, oldest first. */
void hal_pmi_use_nmi(void);
bool hal_pmi_is_nmi(void);
extern bool pmi_by_nmi;                      /* the same, for hal/; const once CPUs run */
bool hal_pmi_nmi(uint64_t rip, uint64_t cs); /* whether a counter had overflowed */
bool hal_pmi_noted(uint64_t *rip, uint64_t *cs, uint64_t *counters);
void hal_pmi_deliver(struct trap_frame *frame, uint64_t counters);
/* Sets a driver's handler for the interrupt. NULL removes it: when this returns it runs on no
 * processor. It is called at PROFILE_LEVEL, with every counter of the processor paused, before the
 * overflow status is read and cleared and the owners' handlers are called. STATUS_NOT_SUPPORTED: no
 * counter works here, or the interrupt is an NMI; STATUS_DEVICE_BUSY: there is one. IRQL
 * PASSIVE_LEVEL. */
NTSTATUS hal_pmi_set_driver(PMIHANDLER handler);
/* For overflow handlers: the frame of the current interrupt. */
static inline struct trap_frame *hal_pmi_frame(void) { return CPU_FIELD(pmi_frame); }
/* Tests that an overflow interrupts this CPU, on which the caller must stay; false: the
 * interrupt does not come. True without a PMU, or if no counter is free. IRQL PASSIVE_LEVEL,
 * interrupts on. */
bool hal_pmi_prove(void);
/* Proves it on the first CPU of each kind, and reports a counter whose interrupt does not come; on
 * other CPUs nothing. */
void hal_pmi_prove_kind(void);
/* For tests alone: whether hal_pmi_set_driver has set one. */
bool hal_pmi_has_driver(void);
