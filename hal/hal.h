/* SPDX-License-Identifier: MIT */
/* The interface of hal/, apart from apic.h and clock.h: owners of counters, profile sources, the
 * profile interrupt. Counters are numbered as in pmu/pmu.h. A mask of counters is like
 * OverflowBits: bit n is general-purpose counter n, bit 32 + n is fixed counter n. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/cpu.h"
#include "kernel/nt/nt_profile.h"
#include "kernel/base/x86.h"

/* Allocates hardware counters: all that are asked for, or none. It does not program or start
 * them.
 *
 * GroupAffinty (as Windows spells it): GroupCount elements, which together have the processors
 * wanted; NULL and 0: all. ResourceList: the counters wanted, at most one overflow handler and one
 * tag; NULL: the whole PMU of those processors, exclusively. A counter index is n, 32 + n for fixed
 * counter n, or its RDPMC selector; a range includes its end. CounterSetHandle: out; NULL after
 * every failure.
 *
 * STATUS_SUCCESS
 * STATUS_INVALID_PARAMETER       CounterSetHandle is NULL; only one of GroupAffinty and GroupCount
 *                                is given; a group not 0, an empty mask, a processor that is not
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
 * The handler runs at PROFILE_LEVEL on the processor where the counter overflowed. It gets its
 * owner's bits only; overflow status is cleared, and every counter of the processor is paused. A
 * handler that wants another overflow writes the counter (pmu_write). */
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

/* Claims all counters of every CPU except these. If there are no others, it succeeds and *handle is
 * NULL. STATUS_INSUFFICIENT_RESOURCES as above. IRQL PASSIVE_LEVEL. */
NTSTATUS hal_counters_claim_others(const char *name, uint64_t counters, PHANDLE handle);

/* source_assign.c: claims a counter for each KPROFILE_SOURCE, fixed ones first, to count ring
 * 3, without interrupts, on every CPU. selectors: out, for RDPMC. Freed by HalFreeHardwareCounters.
 * STATUS_NOT_SUPPORTED: a source that this processor lacks; STATUS_INSUFFICIENT_RESOURCES: the free
 * counters cannot count all of them; STATUS_INVALID_PARAMETER: none, or more than MAX_HW_COUNTERS.
 * IRQL PASSIVE_LEVEL. */
NTSTATUS hal_count_sources(const char *name, const ULONG *sources, ULONG count, ULONG *selectors,
                           PHANDLE handle);

/* pmc.c: claims a counter of one processor for each of Count sources, fixed ones first, clears it
 * and lets it count both rings, or with PROFILE_SOURCE_RING3 ring 3 only. Trace sessions read them
 * at events. Element i of what is collected is Sources[i]; a source given twice takes two counters.
 * On Windows in HAL_PRIVATE_DISPATCH. *Handle: out; NULL after a failure. STATUS_SUCCESS, or:
 *
 * STATUS_INVALID_PARAMETER       no such processor; Count 0 or over MAX_HW_COUNTERS; a NULL Handle
 * STATUS_NOT_SUPPORTED           an event that this processor does not count, or ProfileTime
 * STATUS_INSUFFICIENT_RESOURCES  all counters of the processor cannot count these together, or all
 *                                owner slots are used
 * STATUS_DEVICE_BUSY             somebody has too many of them (hal_counter_owner_name)
 * They are tested in this order. IRQL PASSIVE_LEVEL. Source: Geoff Chappell's study of
 * HAL_PRIVATE_DISPATCH. The statuses are our choice: no source gives them. */
NTSTATUS HalAllocatePmcCounterSet(ULONG Processor, KPROFILE_SOURCE *Sources, ULONG Count,
                                  PMC_HANDLE *Handle);
/* Writes a 64-bit value for each source. No wrap of a counter is lost if one of these calls, or the
 * overflow's interrupt (which needs a status register), comes between two wraps. Values begin near
 * 0. On the processor of the set; any IRQL, NMI included; takes no lock. */
VOID HalCollectPmcCounters(PMC_HANDLE PmcCounterSet, ULONG64 *Values);
/* HalCollectPmcCounters reads one counter by this, inline; records, which must be quick, read by it
 * too. Only for this is the structure of a set public. */
struct _HAL_PMC_COUNTERS {
    bool used;    /* L: sets_lock in pmc.c */
    HANDLE owner; /* atomic; of the counters; NULL: none */
    ULONG processor, count;
    struct hal_pmc_counter {
        uint64_t value; /* atomic; collected last; its low bits are what the counter showed then */
        uint64_t mask;
        uint64_t taken_off; /* what traps added to the counter, by hal_trap_adds */
        uint32_t selector;
        unsigned ctr;
        ULONG source;
    } counters[MAX_HW_COUNTERS];
};
static inline uint64_t hal_pmc_read(struct hal_pmc_counter *c)
{
    /* The value is loaded before the counter is read. An interrupt in between may store a newer
     * value. Ours overwrites it, and is as good a start for the next difference. */
    uint64_t value = __atomic_load_n(&c->value, __ATOMIC_RELAXED);
    value += (rdpmc_exact(c->selector) - value) & c->mask;
    __atomic_store_n(&c->value, value, __ATOMIC_RELAXED);
    return value - c->taken_off;
}
/* Writes the first n counters of a set, at most HAL_PMC_QUICK. Unrolled: it takes a third of the
 * time of a loop. */
#define HAL_PMC_QUICK 7
static inline void hal_pmc_collect(struct hal_pmc_counter *c, ULONG n, ULONG64 *values)
{
    switch (n) {
    case 7: values[6] = hal_pmc_read(c + 6); __attribute__((fallthrough));
    case 6: values[5] = hal_pmc_read(c + 5); __attribute__((fallthrough));
    case 5: values[4] = hal_pmc_read(c + 4); __attribute__((fallthrough));
    case 4: values[3] = hal_pmc_read(c + 3); __attribute__((fallthrough));
    case 3: values[2] = hal_pmc_read(c + 2); __attribute__((fallthrough));
    case 2: values[1] = hal_pmc_read(c + 1); __attribute__((fallthrough));
    case 1: values[0] = hal_pmc_read(c + 0); break;
    case 0: break;
    default: __builtin_unreachable();
    }
}
/* Called by trap.c on the CPU that took a trap out of ring 3: subtracts what the trap added
 * (hal_trap_adds) from the sets of this CPU. Any IRQL, NMI included. */
enum hal_trap { HAL_INTERRUPT, HAL_EXCEPTION, HAL_NMI, HAL_TRAPS };
void hal_pmc_trapped(enum hal_trap trap);
/* Stops, clears and frees the counters. Nobody may collect the set any more. IRQL PASSIVE_LEVEL. */
VOID HalFreePmcCounterSet(PMC_HANDLE PmcCounterSet);
/* The source that the counter counts for a set; ProfileTime: none. IRQL <= DISPATCH_LEVEL. */
KPROFILE_SOURCE hal_pmc_source(unsigned ctr, unsigned cpu);
/* information.c. The source that the counter samples by or counts for a set; ProfileTime: neither.
 * IRQL <= DISPATCH_LEVEL. */
KPROFILE_SOURCE hal_counter_source(unsigned ctr, unsigned cpu);

/* This and the functions below, up to the next section: IRQL <= DISPATCH_LEVEL; the answer may
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

/* isolate.c, for thread profiling, which writes, starts and stops counters of other owners. On
 * this CPU, IRQL IPI_LEVEL; counters are bits. */
uint64_t hal_counters(void);                 /* those that work */
uint64_t hal_counter_bit(uint64_t selector); /* 0: the selector names none */
uint64_t hal_counters_running(void);
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

/* Counters that work on every processor; 0: no PMU. NT: no source says how many Windows reports
 * where processors differ. */
unsigned hal_counter_count(void);
/* Whether RDPMC with this selector reads a counter that works on every processor. *mask: the bits
 * that it has on all of them; *uneven: on some it has more. */
bool hal_counter_selector(uint64_t selector, uint64_t *mask, bool *uneven);
/* The bits that it has on this processor. */
uint64_t hal_counter_mask(uint64_t selector);

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

/* From interrupt.c to owners.c: calls the handlers of the owners of these counters, at least one,
 * of this CPU. */
void hal_counters_overflowed(uint64_t counters);

/* --- What counters of ring 3 count too much (measure.c). --- */

/* A run in ring 3, which kernel/ makes: an exception if `what` says so, then `iterations` of a
 * loop of two instructions. RFLAGS.IF is `interrupts`. */
struct hal_ring3_run {
    enum { HAL_RING3_PLAIN, HAL_RING3_UNDEFINED, HAL_RING3_PAGE_FAULT } what;
    bool interrupts;
    uint64_t iterations;
    uint32_t selector; /* of RDPMC */
    unsigned taken;    /* out: interrupts and NMIs that came in ring 3 */
    unsigned nmis;     /* out: those of them that were NMIs */
    uint64_t value;    /* out: what the counter showed at the first of them */
};
/* Whether this CPU's kind is not measured yet. hal_measure does it (struct pmu_measured), in some
 * ms; `nmi`: NMIs are allowed. The function that runs ring 3 handles the counters' interrupt and
 * NMIs. CPU start, interrupts off. */
bool hal_unmeasured(void);
void hal_measure(void (*run)(struct hal_ring3_run *), bool nmi);
/* How many counts a trap out of ring 3 adds to a counter of this CPU beyond what ring 3 executed; 0
 * if that is not the same number each time. ctr: its number. Any IRQL, NMI included. */
int64_t hal_trap_adds(unsigned ctr, enum hal_trap trap);
bool hal_traps_add(void); /* whether any trap adds to any counter */

/* --- Sources (source.c). ProfileTime is always supported. IRQL <= DISPATCH_LEVEL. --- */

#define HAL_SOURCE_NAME_MAX 33 /* with its end */
#define HAL_SOURCE_CODE_MAX 0xfff

/* Called once, at boot: each gets its default interval. */
void hal_sources_init(void);
/* Whether every processor, or each one in the mask, can sample by the source and counts the same
 * event for it. NT: Windows says nothing of processors that differ. Without a mask the answer is
 * for all processors; a source that only some have can be used on those. */
bool hal_source_supported(KPROFILE_SOURCE source);
bool hal_source_supported_on(KPROFILE_SOURCE source, struct cpu_set among);
/* Whether some processor can sample by it: then it has an interval. */
bool hal_source_known(KPROFILE_SOURCE source);
/* The supported source with the next higher number; ProfileTime: there is none. */
KPROFILE_SOURCE hal_source_next(KPROFILE_SOURCE source);
/* The name that tools print: the symbol without "Profile"; "Timer" for ProfileTime. NULL:
 * unsupported. */
const char *hal_source_name(KPROFILE_SOURCE source);
/* Of a known source: events, or 100 ns of time, between two interrupts. Any IRQL. */
ULONG hal_source_interval(KPROFILE_SOURCE source);
/* Prints the sources that some kind of CPU has, as tools on Windows list them. */
void hal_sources_print(void);
void hal_source_limits(KPROFILE_SOURCE source, ULONG *lowest, ULONG *preset, ULONG *highest);
/* Sets it on all processors, clamped to the limits. Returns the new interval, 0 if the source is
 * unknown. It holds from the next interrupt on. IRQL < DISPATCH_LEVEL. */
ULONG hal_source_set_interval(KPROFILE_SOURCE source, ULONG_PTR interval);
/* hal_source_set_interval for ProfileTime, in 100 ns. */
ULONG_PTR HalSetProfileInterval(ULONG_PTR Interval);
/* Adds a source for an event of the processor; flags as pmu_raw_select has them; interval 0: the
 * usual one. STATUS_NOT_SUPPORTED: no counters here, or their selects do not take the code or a
 * flag; STATUS_INVALID_PARAMETER: name or code; STATUS_INSUFFICIENT_RESOURCES: the name exists, or
 * no place is free. */
NTSTATUS hal_source_add(const char *name, unsigned code, uint8_t umask, uint32_t flags,
                        ULONG interval, KPROFILE_SOURCE *source);
/* Decodes the event bytes of an EVENT_TRACE_PROFILE_ADD_INFORMATION, in the format
 * of this processor's maker. STATUS_INVALID_PARAMETER: version is not 2 or 3; STATUS_NOT_SUPPORTED:
 * family, model or stepping in `hierarchy` (0xFFFFFFFF: any) is not this processor's, or there are
 * no counters. Any IRQL. */
NTSTATUS hal_source_event(UCHAR version, const UCHAR event[8], const ULONG hierarchy[3],
                          HAL_PROFILE_SOURCE_ADD *add);
/* Removes an added source. STATUS_INVALID_PARAMETER: it was not added; STATUS_DEVICE_BUSY:
 * somebody samples or counts by it. */
NTSTATUS hal_source_remove(KPROFILE_SOURCE source);

/* --- The profile interrupt (profile.c). --- */

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

/* --- For tests alone, which clean up after each other: count the resources in use, and release
 * them, whoever owns them. In this order, while nobody else uses them. PASSIVE_LEVEL. --- */
unsigned hal_profile_users(void); /* each success of hal_profile_reserve, once a processor */
void hal_profile_release_all(void);
unsigned hal_pmc_sets(void);
void hal_pmc_release_all(void);
void hal_counters_release_all(void); /* how many: hal_counters_owned */
bool hal_pmi_has_driver(void);

/* information.c. Query: classes 1, 20, 44, 45, 52, 53; set: 0, 1, 20, 21.
 * STATUS_INVALID_INFO_CLASS; STATUS_INFO_LENGTH_MISMATCH: the buffer is too small and unchanged;
 * *ReturnedLength (may be NULL) is the size needed, where that varies; else the status of the
 * class's function. PASSIVE_LEVEL. */
NTSTATUS HalQuerySystemInformation(HAL_QUERY_INFORMATION_CLASS InformationClass, ULONG BufferSize,
                                   PVOID Buffer, PULONG ReturnedLength);
NTSTATUS HalSetSystemInformation(HAL_SET_INFORMATION_CLASS InformationClass, ULONG BufferSize,
                                 PVOID Buffer);
