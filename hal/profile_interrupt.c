/* SPDX-License-Identifier: MIT */
/* The profile interrupt: a counter, or the timer, interrupts once an interval on the processors
 * where somebody samples by its source. Users of the same source share one counter on a
 * processor.
 *
 * Locking: `guard` guards grants and users, and is held across IPIs. What the interrupt reads
 * (sources, timer) belongs to its processor, which changes it at PROFILE_LEVEL.
 *
 * Source: ntddk.h; Windows' HalStartProfileInterrupt as ReactOS describes it. */
#include "kernel/base/upcalls.h"
#include "hal/buffers/event_buffer.h"
#include "hal/interrupt.h"
#include "hal/machine/apic.h"
#include "hal/machine/smp.h"
#include "hal/owners.h"
#include "hal/profile_interrupt.h"
#include "hal/sources.h"
#include "hal/source.h"
#include "kernel/base/assert.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/irql.h"
#include "kernel/base/print.h"
#include "kernel/base/refuse.h"
#include "kernel/ke/mutex.h"
#include "pmu/pmu.h"

#define COUNTERS 64
#define GRANTS_MAX 32
#define MISSED_MAX 4096u /* samples of one interrupt; more is only counted */
#define SKID_SPARE 1000u /* events; the skid is in instructions, of which some have several */

/* A counter that is claimed for a source on some processors. */
struct grant {
    HANDLE handle; /* NULL: this place is free */
    KPROFILE_SOURCE source;
    unsigned ctr;
    bool precise;
    uint64_t selects[PMU_KINDS_MAX]; /* by kind of CPU */
    struct cpu_set cpus;
};

static struct mutex guard = MUTEX("the profile interrupt");
static struct grant grants[GRANTS_MAX];      /* L: guard */
static uint16_t users[SOURCE_IDS][MAX_CPUS]; /* L: guard */
static unsigned all_users;                   /* L: guard; their sum */
static uint8_t sources[MAX_CPUS * COUNTERS]; /* by processor and counter; 0: it does not sample */

/* By processor, which alone uses its element: counters that sample. */
static uint64_t sampling[MAX_CPUS];
uint64_t hal_profile_lost[MAX_CPUS];
static uint64_t missed_by_nmi[MAX_CPUS]; /* atomic: the NMI adds, its self-IPI takes */
static bool lost_reported;               /* atomic */

static struct {
    uint64_t period_ns; /* of the timer, while it samples; 0: it does not */
    uint64_t due_ns;    /* time since the last sample */
} timer[MAX_CPUS];

static inline uint8_t *source_of(uint64_t cpu, uint64_t ctr)
{
    return &sources[cpu * COUNTERS + ctr];
}

static void lock_profile(void) { mutex_acquire(&guard); }
static void unlock_profile(void) { mutex_release(&guard); }

/* --- The interrupt. --- */

/* A sample, and one more for each overflow that had no interrupt of its own, because it was lost or
 * came periods late: so samples times the interval are what was counted. */
static void sample_missed(KPROFILE_SOURCE source, uint64_t missed)
{
    hal_profile_lost[cpu_number()] += missed;
    for (uint64_t n = missed < MISSED_MAX ? missed : MISSED_MAX; n; n--)
        KeProfileInterruptWithSource(hal_pmi_frame(), source);
    KeProfileInterruptWithSource(hal_pmi_frame(), source);
}

static __attribute__((noinline)) void sample_late(uint64_t counter, KPROFILE_SOURCE source)
{
    sample_missed(source, pmu_rearm_late((unsigned)bit_lowest(counter), source_interval(source)));
}

/* The overflow handlers of every grant, which has one counter: by PMI, and by an NMI, which has
 * re-armed the counter. */
static void overflowed(ULONGLONG OverflowBits, HANDLE)
{
    uint64_t ctr = bit_lowest(OverflowBits);
    KPROFILE_SOURCE source = (KPROFILE_SOURCE)*source_of(cpu_index(), ctr);
    if (!source)
        return;
    if (pmu_rearm(ctr, source_interval(source)))
        KeProfileInterruptWithSource(hal_pmi_frame(), source);
    else
        sample_late(OverflowBits, source);
}

/* The handler of records: samples that interrupted at the instruction itself. NT: ours. A record
 * that is taken late, because interrupts were off, is the thread's that runs then. */
static void recorded(PVOID buffer, ULONGLONG size, ULONGLONG count, HANDLE)
{
    for (ULONGLONG i = 0; i < count; i++) {
        struct event_buffer_sample sample = event_buffer_sample((uint8_t *)buffer + i * size);
        KPROFILE_SOURCE source = (KPROFILE_SOURCE)*source_of(cpu_index(), sample.ctr);
        if (source) {
            event_buffer_set_period(sample.ctr, source_interval(source));
            profile_record(sample.address, source);
        }
    }
}

static void noted(ULONGLONG OverflowBits, HANDLE)
{
    KPROFILE_SOURCE source = (KPROFILE_SOURCE)*source_of(cpu_number(), bit_lowest(OverflowBits));
    if (source)
        sample_missed(source,
                      __atomic_exchange_n(&missed_by_nmi[cpu_number()], 0, __ATOMIC_RELAXED));
}

static void rearm(uint64_t counters)
{
    for_each_bit(ctr, counters) {
        KPROFILE_SOURCE source = (KPROFILE_SOURCE)*source_of(cpu_number(), (unsigned)ctr);
        if (source && !pmu_rearm((unsigned)ctr, source_interval(source)))
            __atomic_fetch_add(&missed_by_nmi[cpu_number()],
                               pmu_rearm_late((unsigned)ctr, source_interval(source)),
                               __ATOMIC_RELAXED);
    }
}

/* A counter that samples and wrapped, no longer than the skid ago, and has no interrupt pending:
 * the interrupt was lost, and would never come again. Processors and hypervisors lose one of
 * several. One that is only late finds nothing to do. */
static uint64_t find_lost(void)
{
    unsigned cpu = cpu_number();
    const struct pmu_kind *pmu = pmu_here();
    uint64_t lost = 0, skid = (uint64_t)pmu->measured.skid.high + SKID_SPARE;
    for_each_bit(ctr, sampling[cpu]) {
        uint64_t past = pmu_read((unsigned)ctr);
        uint64_t period = source_interval((KPROFILE_SOURCE)*source_of(cpu, (unsigned)ctr));
        if (past <= pmu_mask(pmu, (unsigned)ctr) / 2 && past >= (period < skid ? period : skid) &&
            !apic_is_pending(APIC_PMI_VECTOR))
            lost |= PMU_BIT(ctr);
    }
    return lost;
}

/* The interrupt comes as soon as interrupts are on. Instead of an NMI, which would sample this
 * code, its handler is called as if it had interrupted there. */
static bool send_lost(unsigned cpu, uint64_t rip, uint64_t cs)
{
    uint64_t lost = find_lost();
    if (!lost)
        return false;
    hal_profile_lost[cpu] += bit_count(lost);
    if (!__atomic_exchange_n(&lost_reported, true, __ATOMIC_RELAXED))
        print("# profile: CPU %u: the interrupt of counter %u was lost: it is sent again\n", cpu,
              (unsigned)bit_lowest(lost));
    if (pmi_by_nmi)
        hal_pmi_nmi(rip, cs);
    else
        apic_send_self(APIC_PMI_VECTOR);
    return true;
}

void hal_profile_tick(struct trap_frame *frame, uint64_t rip, uint64_t cs)
{
    unsigned cpu = cpu_number();
    if (__builtin_expect(sampling[cpu] != 0, 0))
        send_lost(cpu, rip, cs);
    uint64_t interval_ns = hal_source_interval(ProfileTime) * 100ul;
    if (!timer[cpu].period_ns)
        return;
    timer[cpu].due_ns += timer[cpu].period_ns;
    if (timer[cpu].due_ns < interval_ns)
        return;
    timer[cpu].due_ns %= interval_ns;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    KeProfileInterruptWithSource(frame, ProfileTime);
    irql_lower(old);
}

/* --- This processor. --- */

/* The timer interrupts as often as the scheduler needs, or more often if samples need that. */
static void set_timer(bool sample)
{
    unsigned cpu = cpu_number();
    uint64_t base = apic_timer_period();
    uint64_t interval_ns = hal_source_interval(ProfileTime) * 100ul;
    uint64_t was = timer[cpu].period_ns ? timer[cpu].period_ns : base;
    uint64_t now = sample && interval_ns < base ? interval_ns : base;
    if (sample && !timer[cpu].period_ns)
        timer[cpu].due_ns = 0;
    timer[cpu].period_ns = sample ? now : 0;
    if (now != was)
        apic_timer_change(now);
}

/* L: guard: who calls this CPU has it. */
static const struct grant *grant_here(KPROFILE_SOURCE source)
{
    for_each_in(g, grants)
        if (g->handle && g->source == source && cpu_set_has(&g->cpus, cpu_number()))
            return g;
    return NULL;
}

static void start_counter(const struct grant *g)
{
    uint64_t period = hal_source_interval(g->source);
    const struct pmu_kind *pmu = pmu_here();
    pmu_program(g->ctr, g->selects[pmu_kind_number(pmu)], -period & pmu_mask(pmu, g->ctr));
    *source_of(cpu_number(), g->ctr) = (uint8_t)g->source;
    if (g->precise)
        event_buffer_arm(g->ctr, period);
    else
        sampling[cpu_number()] |= PMU_BIT(g->ctr);
    pmu_start(PMU_BIT(g->ctr));
}

VOID HalStartProfileInterrupt(KPROFILE_SOURCE ProfileSource)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    const struct grant *g = grant_here(ProfileSource);
    if (ProfileSource == ProfileTime)
        set_timer(true);
    else if (g && !*source_of(cpu_number(), g->ctr))
        start_counter(g);
    irql_lower(old);
}

VOID HalStopProfileInterrupt(KPROFILE_SOURCE ProfileSource)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    const struct grant *g = grant_here(ProfileSource);
    if (ProfileSource == ProfileTime) {
        set_timer(false);
    } else if (g && *source_of(cpu_number(), g->ctr)) {
        hal_counters_check(PMU_BIT(g->ctr));
        pmu_clear(PMU_BIT(g->ctr));
        if (g->precise)
            event_buffer_arm(g->ctr, 0);
        sampling[cpu_number()] &= ~PMU_BIT(g->ctr);
        *source_of(cpu_number(), g->ctr) = 0;
    }
    irql_lower(old);
}

/* For stop_here: the source, and the processors on which it stops. */
struct change {
    KPROFILE_SOURCE source;
    struct cpu_set cpus;
};

static void start_here(void *source) { HalStartProfileInterrupt(*(const KPROFILE_SOURCE *)source); }

static void stop_here(void *argument)
{
    const struct change *change = argument;
    if (cpu_set_has(&change->cpus, cpu_number()))
        HalStopProfileInterrupt(change->source);
}

static void send_lost_here(void *found)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    if (sampling[cpu_number()] &&
        send_lost(cpu_number(), (uint64_t)__builtin_return_address(0), SEL_KERNEL_CS))
        __atomic_store_n((bool *)found, true, __ATOMIC_RELAXED);
    irql_lower(old);
}

static void answer_here(void *unused) { (void)unused; }

static void retime_here(void *)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    if (timer[cpu_number()].period_ns)
        set_timer(true);
    irql_lower(old);
}

/* --- All processors. --- */

/* L: guard. The processors of `among` where nobody samples by the source. */
static struct cpu_set unused_on(KPROFILE_SOURCE source, struct cpu_set among)
{
    for_all_cpus(cpu)
        if (users[source][cpu])
            cpu_set_remove(&among, cpu);
    return among;
}

static struct cpu_set granted_on(KPROFILE_SOURCE source)
{
    struct cpu_set among = cpu_set_none();
    for_each_in(g, grants)
        if (g->handle && g->source == source)
            among = cpu_set_or(among, g->cpus);
    return among;
}

/* L: guard. Free counters of a CPU that can sample by the source. Stores the select for the kind
 * of that CPU. */
static uint64_t able_on(unsigned cpu, KPROFILE_SOURCE source, uint64_t selects[PMU_KINDS_MAX])
{
    const struct pmu_kind *pmu = pmu_of(cpu);
    return source_counters(pmu, source, &selects[pmu_kind_number(pmu)]) &
           hal_counters_available(cpu_set_one(cpu));
}

static struct grant *free_grant(void)
{
    for_each_in(g, grants)
        if (!g->handle)
            return g;
    return NULL;
}

/* L: guard. Claims a counter of the first processor, and the same counter on each other processor
 * where it is free and can count the source. */
static NTSTATUS grant(KPROFILE_SOURCE source, struct cpu_set among, struct cpu_set *granted)
{
    struct grant new = { .source = source, .precise = source_is_precise(source) };
    uint64_t able = able_on(cpu_set_next(&among, 0), source, new.selects);
    struct grant *g = able && !claim_fails() ? free_grant() : NULL;
    if (g) {
        new.ctr = bit_lowest(able);
        for_each_cpu(cpu, &among)
            if (able_on(cpu, source, new.selects) >> new.ctr & 1)
                cpu_set_add(&new.cpus, cpu);
        *g = new;
        if (g->precise)
            hal_counters_claim_records("profile", g->cpus, g->ctr, recorded, &g->handle);
        else
            hal_counters_claim("profile", g->cpus, PMU_BIT(g->ctr), pmi_by_nmi ? noted : overflowed,
                               &g->handle);
        *granted = g->cpus;
    }
    return g && g->handle ? STATUS_SUCCESS : STATUS_DEVICE_BUSY;
}

/* L: guard. Frees the counters of processors without users. */
static void return_unused(KPROFILE_SOURCE source)
{
    for_each_in(g, grants) {
        if (!g->handle || g->source != source ||
            !cpu_set_equal(unused_on(source, g->cpus), g->cpus))
            continue;
        NTSTATUS status = HalFreeHardwareCounters(g->handle);
        ASSERT(NT_SUCCESS(status));
        g->handle = NULL;
    }
}

/* L: guard */
static void add_users(KPROFILE_SOURCE source, struct cpu_set among, int n)
{
    for_each_cpu(cpu, &among) {
        __atomic_fetch_add(&users[source][cpu], n, __ATOMIC_RELAXED);
        __atomic_fetch_add(&all_users, n, __ATOMIC_RELAXED);
    }
}

NTSTATUS hal_profile_reserve(KPROFILE_SOURCE source, struct cpu_set among)
{
    NTSTATUS status = STATUS_SUCCESS;
    among = cpu_set_and(among, cpu_all());
    if (!hal_source_supported_on(source, among))
        return STATUS_NOT_SUPPORTED;
    lock_profile();
    pmi_rearm = rearm;
    struct cpu_set need =
        source == ProfileTime ? cpu_set_none() : cpu_set_minus(among, granted_on(source));
    while (!cpu_set_empty(need) && NT_SUCCESS(status)) {
        struct cpu_set granted = cpu_set_none();
        status = grant(source, need, &granted);
        need = cpu_set_minus(need, granted);
    }
    if (NT_SUCCESS(status))
        add_users(source, among, 1);
    else
        return_unused(source);
    unlock_profile();
    return status;
}

void hal_profile_start(KPROFILE_SOURCE source, struct cpu_set among)
{
    lock_profile();
    smp_call(among, start_here, &source);
    unlock_profile();
}

void hal_profile_collect(struct cpu_set among)
{
    bool found = false;
    smp_call(among, send_lost_here, &found);
    if (__atomic_load_n(&found, __ATOMIC_RELAXED))
        smp_call(among, answer_here, NULL); /* the interrupts come first */
}

void hal_profile_stop(KPROFILE_SOURCE source, struct cpu_set among)
{
    lock_profile();
    among = cpu_set_and(among, cpu_all());
    add_users(source, among, -1);
    struct change stop = { source, unused_on(source, among) };
    smp_call(SMP_ALL, stop_here, &stop);
    return_unused(source);
    unlock_profile();
}

KPROFILE_SOURCE hal_profile_source(unsigned ctr, unsigned cpu)
{
    return cpu < cpu_count && ctr < COUNTERS ? (KPROFILE_SOURCE)*source_of(cpu, ctr) : ProfileTime;
}

bool profile_in_use(KPROFILE_SOURCE source)
{
    for_all_cpus(cpu)
        if (__atomic_load_n(&users[(uint8_t)source][cpu], __ATOMIC_RELAXED))
            return true;
    return false;
}

unsigned hal_profile_users(void) { return __atomic_load_n(&all_users, __ATOMIC_RELAXED); }

/* L: guard: nobody begins meanwhile. */
void hal_profile_release_all(void)
{
    for (unsigned source = 0; source < SOURCE_IDS; source++)
        for_all_cpus(cpu)
            while (users[source][cpu])
                hal_profile_stop((KPROFILE_SOURCE)source, cpu_set_one(cpu));
}

void profile_time_changed(void) { smp_call(SMP_ALL, retime_here, NULL); }
