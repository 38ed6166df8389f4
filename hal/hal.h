/* SPDX-License-Identifier: MIT */
/* What others may include from hal/, apart from apic.h: who owns which counter, and the counters'
 * interrupt. Counters are numbered as in pmu/pmu.h, and masks of them are what OverflowBits is: bit
 * n general-purpose counter n, bit 32 + n fixed counter n. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/nt.h"

/* Takes hardware counters, all that are asked for or none. Programs nothing and starts nothing.
 *
 * GroupAffinty (as Windows spells it): GroupCount elements, the processors wanted, united; NULL and
 * 0: all. ResourceList: the counters wanted, and at most one overflow handler and one tag; NULL:
 * the whole PMU of those processors, exclusively. A counter index is n, 32 + n for fixed counter n,
 * or its RDPMC selector; a range includes its end. CounterSetHandle: out; NULL after every failure.
 *
 * STATUS_SUCCESS
 * STATUS_INVALID_PARAMETER       CounterSetHandle is NULL; only one of GroupAffinty and GroupCount
 *                                is given; a group but 0, an empty mask, a processor that is not
 *                                active, reserved fields not 0; a list without counters; Flags not
 *                                0; an unknown Type; an index that the processor lacks; a counter
 *                                twice; Begin > End; a NULL handler; two handlers; two tags
 * STATUS_NOT_SUPPORTED           no counter works on this machine; extended configurations and
 *                                event buffers
 * STATUS_INSUFFICIENT_RESOURCES  somebody has one of the counters on one of the processors, or all
 *                                owner slots are used
 * They are tested in this order. IRQL PASSIVE_LEVEL. Source: ntddk.h and its pages, Windows 10 1903
 * and later.
 *
 * The handler runs at PROFILE_LEVEL on the processor that overflowed, with its owner's bits only,
 * overflow status cleared, every counter of the processor paused. Who wants another overflow writes
 * the counter there (pmu_write). */
NTSTATUS HalAllocateHardwareCounters(PGROUP_AFFINITY GroupAffinty, ULONG GroupCount,
                                     PPHYSICAL_COUNTER_RESOURCE_LIST ResourceList,
                                     PHANDLE CounterSetHandle);

/* Stops and clears the counters on their processors and gives them back; after that the handler
 * runs nowhere. STATUS_INVALID_PARAMETER: not a handle, or freed before. IRQL PASSIVE_LEVEL. */
NTSTATUS HalFreeHardwareCounters(HANDLE CounterSetHandle);

/* The same for parts of the kernel, which have a name and know pmu/: counters on each CPU of a
 * mask, absent CPUs ignored. The name is kept, not copied. `handler` may be NULL. Freed by
 * HalFreeHardwareCounters. STATUS_INVALID_PARAMETER: no CPU or no counter, or one that does not
 * exist; else as above. IRQL PASSIVE_LEVEL. */
NTSTATUS hal_counters_claim(const char *name, uint64_t cpu_mask, uint64_t counters,
                            PPHYSICAL_COUNTER_OVERFLOW_HANDLER handler, PHANDLE handle);

/* For these and the rest of the list: IRQL <= DISPATCH_LEVEL, and true only at this moment.
 * Counters that nobody has on any CPU of the mask. */
uint64_t hal_counters_available(uint64_t cpu_mask);
/* Who has the counter on that CPU, for a refusal to print; NULL: nobody. */
const char *hal_counter_owner_name(unsigned ctr, unsigned cpu);
/* The owner's ResourceTypeIdenitificationTag, 0 if it gave none. */
ULONG hal_counter_owner_tag(unsigned ctr, unsigned cpu);
/* How many owners there are; for leak checks. */
unsigned hal_counters_owned(void);

/* Counters that work; 0: no PMU. */
unsigned hal_counter_count(void);
/* Whether RDPMC with this selector reads a counter that works, and which bits the counter has. */
bool hal_counter_selector(uint64_t selector, uint64_t *mask);

/* Each CPU, after apic_init_cpu and pmu_init_cpu: lets the counters' interrupt through. */
void hal_pmi_init_cpu(void);
/* The interrupt, from trap.c, interrupts off, PROFILE_LEVEL; the caller does the EOI. Where it hit:
 * rip, and whether in ring 3. */
void hal_pmi(uint64_t rip, bool user);
/* Provokes one interrupt on this CPU; if it does not come, says so as PMU_PMI_LOST. True without a
 * PMU. IRQL PASSIVE_LEVEL, interrupts on. */
bool hal_pmi_prove(void);

/* From interrupt.c to counters.c: calls the handlers of those who own these counters here. */
void hal_counters_overflowed(uint64_t counters);
