/* SPDX-License-Identifier: MIT */
/* The profile interrupt: a counter, or the timer, that interrupts once an interval, on the
 * processors where somebody samples by its source. Sources are shared: the second user of one on a
 * processor needs no second counter.
 *
 * Locking: `guard`, held at PASSIVE_LEVEL and across IPIs, guards grants and users. What the
 * interrupt reads (source_of, timer) belongs to its processor, which changes it at PROFILE_LEVEL.
 *
 * Source: ntddk.h; Windows' HalStartProfileInterrupt as ReactOS describes it. */
#include "hal/apic.h"
#include "hal/hal.h"
#include "hal/source.h"
#include "kernel/assert.h"
#include "kernel/cpu.h"
#include "kernel/irql.h"
#include "kernel/smp.h"
#include "pmu/pmu.h"

#define COUNTERS 64
#define GRANTS_MAX 32

/* A counter that we own on some processors for a source. */
struct grant {
    HANDLE handle; /* NULL: this place is free */
    KPROFILE_SOURCE source;
    unsigned ctr;
    uint64_t select;
    uint64_t cpus;
};

static bool guard; /* atomic */
static struct grant grants[GRANTS_MAX];            /* L: guard */
static uint16_t users[SOURCE_IDS][MAX_CPUS];       /* L: guard */
static uint8_t source_of[MAX_CPUS][COUNTERS];      /* what a counter samples by; 0: nothing */

static struct {
    uint64_t period_ns; /* of the timer, while it samples; 0: it does not */
    uint64_t due_ns;    /* time since the last sample */
} timer[MAX_CPUS];

static void enter(void)
{
    ASSERT(irql_current() == PASSIVE_LEVEL);
    while (__atomic_test_and_set(&guard, __ATOMIC_ACQUIRE))
        pause();
}

static void leave(void) { __atomic_clear(&guard, __ATOMIC_RELEASE); }

/* --- The interrupt. --- */

/* The overflow handler of every grant, which has one counter. */
static void overflowed(ULONGLONG OverflowBits, HANDLE OwningHandle)
{
    unsigned ctr = (unsigned)__builtin_ctzll(OverflowBits);
    KPROFILE_SOURCE source = (KPROFILE_SOURCE)source_of[cpu_number()][ctr];
    (void)OwningHandle;
    if (!source)
        return;
    if (!pmi_by_nmi) /* else profile_rearm did it */
        pmu_rearm(ctr, source_interval(source));
    KeProfileInterruptWithSource(hal_pmi_frame(), source);
}

void profile_rearm(uint64_t counters)
{
    const uint8_t *sources = source_of[cpu_number()];
    for (; counters; counters &= counters - 1) {
        unsigned ctr = (unsigned)__builtin_ctzll(counters);
        if (sources[ctr])
            pmu_rearm(ctr, source_interval((KPROFILE_SOURCE)sources[ctr]));
    }
}

void hal_profile_tick(struct trap_frame *frame)
{
    unsigned cpu = cpu_number();
    uint64_t interval_ns = hal_source_interval(ProfileTime) * UINT64_C(100);
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

/* The timer interrupts as often as the scheduler wants, and more often if samples are closer. */
static void set_timer(bool sample)
{
    unsigned cpu = cpu_number();
    uint64_t base = apic_timer_period();
    uint64_t interval_ns = hal_source_interval(ProfileTime) * UINT64_C(100);
    uint64_t was = timer[cpu].period_ns ? timer[cpu].period_ns : base;
    uint64_t now = sample && interval_ns < base ? interval_ns : base;
    if (sample && !timer[cpu].period_ns)
        timer[cpu].due_ns = 0;
    timer[cpu].period_ns = sample ? now : 0;
    if (now != was)
        apic_timer_change(now);
}

static const struct grant *grant_here(KPROFILE_SOURCE source)
{
    for (const struct grant *g = grants; g < grants + GRANTS_MAX; g++)
        if (g->handle && g->source == source && (g->cpus >> cpu_number() & 1))
            return g;
    return NULL;
}

static void start_counter(const struct grant *g)
{
    uint64_t period = hal_source_interval(g->source);
    pmu_program(g->ctr, g->select, -period & pmu_mask(g->ctr));
    source_of[cpu_number()][g->ctr] = (uint8_t)g->source;
    pmu_start(PMU_BIT(g->ctr));
}

VOID HalStartProfileInterrupt(KPROFILE_SOURCE ProfileSource)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    const struct grant *g = grant_here(ProfileSource);
    if (ProfileSource == ProfileTime)
        set_timer(true);
    else if (g && !source_of[cpu_number()][g->ctr])
        start_counter(g);
    irql_lower(old);
}

VOID HalStopProfileInterrupt(KPROFILE_SOURCE ProfileSource)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    const struct grant *g = grant_here(ProfileSource);
    if (ProfileSource == ProfileTime) {
        set_timer(false);
    } else if (g && source_of[cpu_number()][g->ctr]) {
        hal_counters_check(PMU_BIT(g->ctr));
        pmu_clear(PMU_BIT(g->ctr));
        source_of[cpu_number()][g->ctr] = 0;
    }
    irql_lower(old);
}

/* The source starts, or stops, on some of the processors that are asked. */
struct change {
    KPROFILE_SOURCE source;
    uint64_t cpus;
};

static void start_here(void *source) { HalStartProfileInterrupt(*(const KPROFILE_SOURCE *)source); }

static void stop_here(void *argument)
{
    const struct change *change = argument;
    if (change->cpus >> cpu_number() & 1)
        HalStopProfileInterrupt(change->source);
}

static void retime_here(void *unused)
{
    (void)unused;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    if (timer[cpu_number()].period_ns)
        set_timer(true);
    irql_lower(old);
}

/* --- All processors. --- */

static uint64_t active_cpus(void) { return ~UINT64_C(0) >> (64 - cpu_count); }

/* L: guard. The processors of `cpu_mask` where nobody samples by the source. */
static uint64_t unused_on(KPROFILE_SOURCE source, uint64_t cpu_mask)
{
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        if (users[source][cpu])
            cpu_mask &= ~(UINT64_C(1) << cpu);
    return cpu_mask;
}

static uint64_t granted_on(KPROFILE_SOURCE source)
{
    uint64_t cpu_mask = 0;
    for (const struct grant *g = grants; g < grants + GRANTS_MAX; g++)
        if (g->handle && g->source == source)
            cpu_mask |= g->cpus;
    return cpu_mask;
}

/* L: guard. One counter for the first of the processors, and for all others where it is free. */
static NTSTATUS grant(KPROFILE_SOURCE source, uint64_t cpu_mask, uint64_t *granted)
{
    uint64_t select, first = cpu_mask & -cpu_mask;
    uint64_t able = source_counters(source, &select) & hal_counters_available(first);
    struct grant *g = grants;
    while (g < grants + GRANTS_MAX && g->handle)
        g++;
    if (!able || g == grants + GRANTS_MAX)
        return STATUS_DEVICE_BUSY;
    *g = (struct grant){ .source = source, .ctr = (unsigned)__builtin_ctzll(able),
                         .select = select, .cpus = first };
    for (uint64_t rest = cpu_mask & (cpu_mask - 1); rest; rest &= rest - 1)
        if (hal_counters_available(rest & -rest) >> g->ctr & 1)
            g->cpus |= rest & -rest;
    NTSTATUS status =
        hal_counters_claim("profile", g->cpus, PMU_BIT(g->ctr), overflowed, &g->handle);
    *granted = g->cpus;
    return NT_SUCCESS(status) ? status : STATUS_DEVICE_BUSY;
}

/* L: guard. Gives back the counters of processors without users. */
static void return_unused(KPROFILE_SOURCE source)
{
    for (struct grant *g = grants; g < grants + GRANTS_MAX; g++) {
        if (!g->handle || g->source != source || unused_on(source, g->cpus) != g->cpus)
            continue;
        NTSTATUS status = HalFreeHardwareCounters(g->handle);
        ASSERT(NT_SUCCESS(status));
        g->handle = NULL;
    }
}

/* L: guard */
static void add_users(KPROFILE_SOURCE source, uint64_t cpu_mask, int n)
{
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        if (cpu_mask >> cpu & 1)
            users[source][cpu] = (uint16_t)(users[source][cpu] + n);
}

NTSTATUS hal_profile_reserve(KPROFILE_SOURCE source, uint64_t cpu_mask)
{
    NTSTATUS status = STATUS_SUCCESS;
    if (!hal_source_supported(source))
        return STATUS_NOT_SUPPORTED;
    enter();
    cpu_mask &= active_cpus();
    uint64_t need = source == ProfileTime ? 0 : cpu_mask & ~granted_on(source);
    while (need && NT_SUCCESS(status)) {
        uint64_t granted = 0;
        status = grant(source, need, &granted);
        need &= ~granted;
    }
    if (NT_SUCCESS(status))
        add_users(source, cpu_mask, 1);
    else
        return_unused(source);
    leave();
    return status;
}

void hal_profile_start(KPROFILE_SOURCE source, uint64_t cpu_mask)
{
    enter();
    smp_call(cpu_mask, start_here, &source);
    leave();
}

void hal_profile_stop(KPROFILE_SOURCE source, uint64_t cpu_mask)
{
    enter();
    cpu_mask &= active_cpus();
    add_users(source, cpu_mask, -1);
    struct change stop = { source, unused_on(source, cpu_mask) };
    smp_call(SMP_ALL, stop_here, &stop);
    return_unused(source);
    leave();
}

KPROFILE_SOURCE hal_profile_source(unsigned ctr, unsigned cpu)
{
    return cpu < cpu_count && ctr < COUNTERS ? (KPROFILE_SOURCE)source_of[cpu][ctr] : ProfileTime;
}

bool profile_in_use(KPROFILE_SOURCE source)
{
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        if (__atomic_load_n(&users[(uint8_t)source][cpu], __ATOMIC_RELAXED))
            return true;
    return false;
}

void profile_time_changed(void) { smp_call(SMP_ALL, retime_here, NULL); }
