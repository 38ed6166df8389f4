/* SPDX-License-Identifier: MIT */
/* What others may include from hal/, apart from apic.h: who owns which counter, what profile sources
 * mean, and the profile interrupt. Counters are numbered as in pmu/pmu.h, and masks of them are what OverflowBits is: bit
 * n general-purpose counter n, bit 32 + n fixed counter n. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/nt_profile.h"
#include "kernel/x86.h"

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
#define HAL_OWNERS_MAX 128
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

/* counting.c: claims a counter for each KPROFILE_SOURCE, fixed ones first, and lets it count ring 3, without interrupts,
 * on every CPU; its RDPMC selectors. Freed by HalFreeHardwareCounters. STATUS_NOT_SUPPORTED: a source that this processor lacks;
 * STATUS_INSUFFICIENT_RESOURCES: the free counters cannot count all of them; STATUS_INVALID_PARAMETER: none, or more
 * than MAX_HW_COUNTERS. IRQL PASSIVE_LEVEL. */
NTSTATUS hal_count_sources(const char *name, const ULONG *sources, ULONG count, ULONG *selectors, PHANDLE handle);

/* pmc.c: counters of one processor for events to carry, as trace sessions want them; in HAL_PRIVATE_DISPATCH on Windows.
 * Claims a counter for each of Count sources, fixed ones first, clears them and lets them count both rings; element i of
 * what is collected will be Sources[i]; with PROFILE_SOURCE_RING3 it counts ring 3 only. The same source twice takes two
 * counters. *Handle: out; NULL after a failure.
 *
 * STATUS_SUCCESS
 * STATUS_INVALID_PARAMETER       no such processor; Count is 0 or more than MAX_HW_COUNTERS; Handle is NULL
 * STATUS_NOT_SUPPORTED           one of the sources is no event that this processor counts; ProfileTime is none
 * STATUS_INSUFFICIENT_RESOURCES  not even all counters of the processor could count these together, or all owner slots
 *                                are used
 * STATUS_DEVICE_BUSY             somebody has too many of them (hal_counter_owner_name)
 * They are tested in this order. IRQL PASSIVE_LEVEL. Source: Geoff Chappell's study of HAL_PRIVATE_DISPATCH; which
 * statuses is nowhere said. */
NTSTATUS HalAllocatePmcCounterSet(ULONG Processor, KPROFILE_SOURCE *Sources, ULONG Count, PMC_HANDLE *Handle);
/* Writes one value for each source, 64 bits wide: the counter's wraps are added up as long as one of these calls, or
 * the interrupt of an overflow (there is none without a status register), comes between two. Values begin near 0. On
 * the processor of the set; any IRQL, NMI included; takes no lock. */
VOID HalCollectPmcCounters(PMC_HANDLE PmcCounterSet, ULONG64 *Values);
/* The same of one counter without a call, for records that must be quick; what a set is, only for that. */
struct _HAL_PMC_COUNTERS {
    bool used;    /* L: sets_lock in pmc.c */
    HANDLE owner; /* atomic; of the counters; NULL: none */
    ULONG processor, count;
    struct hal_pmc_counter {
        uint64_t value; /* atomic; what was collected last: its low bits are the counter's of then */
        uint64_t mask;
        uint32_t selector;
        unsigned ctr;
        ULONG source;
    } counters[MAX_HW_COUNTERS];
};
static inline uint64_t hal_pmc_read(struct hal_pmc_counter *c)
{
    /* In this order: who interrupts here leaves a value that the counter has not yet passed. Storing an older one over
     * it is harmless, for it is as good a start to count from. */
    uint64_t value = __atomic_load_n(&c->value, __ATOMIC_RELAXED);
    value += (rdpmc(c->selector) - value) & c->mask;
    __atomic_store_n(&c->value, value, __ATOMIC_RELAXED);
    return value;
}
/* Stops and clears the counters and gives them back. Nobody collects the set any more. IRQL PASSIVE_LEVEL. */
VOID HalFreePmcCounterSet(PMC_HANDLE PmcCounterSet);
/* What the counter counts for a set, ProfileTime if for none. IRQL <= DISPATCH_LEVEL. */
KPROFILE_SOURCE hal_pmc_source(unsigned ctr, unsigned cpu);

/* For these and the rest of the list: IRQL <= DISPATCH_LEVEL, and true only at this moment.
 * Counters that nobody has on any CPU of the mask. */
uint64_t hal_counters_available(uint64_t cpu_mask);
/* Who has the counter on that CPU, for a refusal to print; NULL: nobody. */
const char *hal_counter_owner_name(unsigned ctr, unsigned cpu);
/* The owner's ResourceTypeIdenitificationTag, 0 if it gave none. */
ULONG hal_counter_owner_tag(unsigned ctr, unsigned cpu);
/* Counters of that CPU, which is active, that we let run and that somebody else has stopped or given another event
 * since: what they counted is not to be trusted. Freeing such counters prints it. IRQL < DISPATCH_LEVEL. */
uint64_t hal_counters_rewritten(unsigned cpu);
/* Before counters of this CPU are stopped: remembers for their owner, who frees them later, which are such. IRQL
 * PROFILE_LEVEL. */
void hal_counters_check(uint64_t counters);
/* How many owners there are; for leak checks. */
unsigned hal_counters_owned(void);

/* isolate.c, for thread profiling, which may put its counters to other uses than their driver. On this CPU, IRQL
 * IPI_LEVEL; counters are bits. */
uint64_t hal_counters(void); /* that work */
uint64_t hal_counter_bit(uint64_t selector); /* 0: the selector names none */
uint64_t hal_counters_running(void);
/* Whether one write starts or stops any number of them. */
bool hal_counters_stop_at_once(void);
/* Of `counters` exactly `run` run afterwards. Writes nothing if that is so. */
void hal_counters_run(uint64_t counters, uint64_t run);
/* Writes as many low bits of the value as the counter takes, and returns them. */
uint64_t hal_counter_write(uint64_t counter, uint64_t value);

/* Counters that work; 0: no PMU. */
unsigned hal_counter_count(void);
/* Whether RDPMC with this selector reads a counter that works, and which bits the counter has. */
bool hal_counter_selector(uint64_t selector, uint64_t *mask);

/* Each CPU, after apic_init_cpu and pmu_init_cpu: lets the counters' interrupt through. */
void hal_pmi_init_cpu(void);
/* The interrupt, from trap.c, interrupts off, PROFILE_LEVEL; the caller does the EOI. */
void hal_pmi(struct trap_frame *frame);
/* With NMIs (command line: pmi=nmi) code is sampled that runs with interrupts off. hal_pmi_use_nmi:
 * before hal_pmi_init_cpu. The NMI handler takes no lock and calls nobody: hal_pmi_nmi clears the
 * status, arms what samples, notes the place and asks for the vector, whose handler then takes the
 * notes one by one, oldest first, and has each delivered. */
void hal_pmi_use_nmi(void);
bool hal_pmi_is_nmi(void);
void hal_pmi_nmi(uint64_t rip, uint64_t cs);
bool hal_pmi_noted(uint64_t *rip, uint64_t *cs, uint64_t *counters);
void hal_pmi_deliver(struct trap_frame *frame, uint64_t counters);
/* A driver's handler for the interrupt; NULL: none again, and it runs nowhere when this returns. It is called at
 * PROFILE_LEVEL, every counter of the processor paused, before the overflow status is read and cleared and the owners
 * of what overflowed get their call. STATUS_NOT_SUPPORTED: no counter works here, or the interrupt is an NMI;
 * STATUS_DEVICE_BUSY: there is one. IRQL PASSIVE_LEVEL. */
NTSTATUS hal_pmi_set_driver(PMIHANDLER handler);
/* For overflow handlers: the frame of the interrupt that they are in. */
struct trap_frame *hal_pmi_frame(void);
/* Provokes one interrupt on this CPU; false if it does not come. True without a PMU, or if no counter
 * is free. IRQL PASSIVE_LEVEL, interrupts on. */
bool hal_pmi_prove(void);

/* From interrupt.c to counters.c: calls the handlers of those who own these counters here. */
void hal_counters_overflowed(uint64_t counters);

/* --- Sources (source.c). ProfileTime always is one. IRQL <= DISPATCH_LEVEL. --- */
#define HAL_SOURCE_NAME_MAX 33 /* with its end */
#define HAL_SOURCE_CODE_MAX 0xfff

bool hal_source_supported(KPROFILE_SOURCE source);
/* The next supported source after this one, by number; ProfileTime: there is none. */
KPROFILE_SOURCE hal_source_next(KPROFILE_SOURCE source);
/* As tools print it: the symbol without Profile; "Timer". NULL: unsupported. */
const char *hal_source_name(KPROFILE_SOURCE source);
/* Of a supported source: events, or 100 ns of time, between two interrupts. Any IRQL. */
ULONG hal_source_interval(KPROFILE_SOURCE source);
void hal_source_limits(KPROFILE_SOURCE source, ULONG *lowest, ULONG *preset, ULONG *highest);
/* Sets it on all processors, clamped to the limits; what it is now, 0 if unsupported. Who samples
 * notices with the next interrupt at the latest. IRQL < DISPATCH_LEVEL. */
ULONG hal_source_set_interval(KPROFILE_SOURCE source, ULONG_PTR interval);
/* The same for ProfileTime, in 100 ns. */
ULONG_PTR HalSetProfileInterval(ULONG_PTR Interval);
/* Adds a source for an event of the processor; flags as pmu_raw_select has them; interval 0: the
 * usual one. STATUS_NOT_SUPPORTED: no counters here; STATUS_INVALID_PARAMETER: name or code;
 * STATUS_INSUFFICIENT_RESOURCES: the name exists, or there are too many. */
NTSTATUS hal_source_add(const char *name, unsigned code, uint8_t umask, uint32_t flags,
                        ULONG interval, KPROFILE_SOURCE *source);
/* source_event.c: the event bytes of an EVENT_TRACE_PROFILE_ADD_INFORMATION, by whoever made this processor.
 * STATUS_INVALID_PARAMETER: version is not 2 or 3; STATUS_NOT_SUPPORTED: family, model or stepping in `hierarchy` are another
 * processor's (0xFFFFFFFF: any), or there are no counters. Any IRQL. */
NTSTATUS hal_source_event(UCHAR version, const UCHAR event[8], const ULONG hierarchy[3], HAL_PROFILE_SOURCE_ADD *add);
/* STATUS_INVALID_PARAMETER: was not added; STATUS_DEVICE_BUSY: somebody samples by it or counts it. */
NTSTATUS hal_source_remove(KPROFILE_SOURCE source);

/* --- The profile interrupt (profile.c). --- */

/* Takes what sampling by the source needs on these processors, if nobody has it yet: each success
 * needs its hal_profile_stop. STATUS_NOT_SUPPORTED; STATUS_DEVICE_BUSY: no counter is free
 * somewhere. PASSIVE_LEVEL, as the other two. */
NTSTATUS hal_profile_reserve(KPROFILE_SOURCE source, uint64_t cpu_mask);
/* From here on there are interrupts. */
void hal_profile_start(KPROFILE_SOURCE source, uint64_t cpu_mask);
/* The last user's stop ends them, and gives the counters back. Every processor has answered an IPI when this returns:
 * none is in an interrupt of before. */
void hal_profile_stop(KPROFILE_SOURCE source, uint64_t cpu_mask);
/* The source that a counter of a processor samples by at this moment; ProfileTime: none. */
KPROFILE_SOURCE hal_profile_source(unsigned ctr, unsigned cpu);
/* Starts and stops the interrupt of a source on this processor, which must have been reserved;
 * nothing happens if not, or if it is so already. IRQL <= PROFILE_LEVEL. */
VOID HalStartProfileInterrupt(KPROFILE_SOURCE ProfileSource);
VOID HalStopProfileInterrupt(KPROFILE_SOURCE ProfileSource);
/* From trap.c, at each interrupt of the timer. */
void hal_profile_tick(struct trap_frame *frame);
/* The one call that goes up, to kernel/profile.c, at PROFILE_LEVEL: one interrupt of the source. */
VOID KeProfileInterruptWithSource(PKTRAP_FRAME TrapFrame, KPROFILE_SOURCE Source);

/* information.c. Classes 1, 20, 44, 45, 52, 53; 0, 1, 20, 21. STATUS_INVALID_INFO_CLASS;
 * STATUS_INFO_LENGTH_MISMATCH: the buffer is too small and stays as it is, *ReturnedLength (may be
 * NULL) says the size where it depends; and those of what the class does. PASSIVE_LEVEL. */
NTSTATUS HalQuerySystemInformation(HAL_QUERY_INFORMATION_CLASS InformationClass, ULONG BufferSize,
                                   PVOID Buffer, PULONG ReturnedLength);
NTSTATUS HalSetSystemInformation(HAL_SET_INFORMATION_CLASS InformationClass, ULONG BufferSize,
                                 PVOID Buffer);
