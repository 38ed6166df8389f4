/* SPDX-License-Identifier: MIT */
/* The machine's interrupt hardware, as far as the virtual PMU uses it: the local APIC for PMIs and
 * for NMIs to other hosts; one HPET comparator through the IO-APIC as the alarm. Registers are
 * reached through the boot page tables' direct map. Under -icount such accesses are slow, so
 * ordinary exits make none. Callers hold the token; a CPU touches only its own APIC. Sources: SDM
 * volume 3, "Advanced Programmable Interrupt Controller"; IA-PC HPET 1.0a; 82093AA. */
#include "kernel/base/layout.h"
#include "kernel/base/x86.h"
#include "pmu/virt/guest.h"
#include "pmu/virt/vcpu.h"

enum { APIC_ID = 0x20, APIC_ICR = 0x300, APIC_ICR2 = 0x310, APIC_LVT_PMI = 0x340 };
#define ICR_SELF (1u << 18)
#define LVT_MODE (7u << 8)
#define LVT_FIXED (0u << 8)
#define LVT_NMI (4u << 8)
#define LVT_MASKED (1u << 16)

#define IO_APIC 0xfec00000
enum { IO_INDEX = 0, IO_DATA = 0x10, IO_REDIRECTION = 0x10 };
#define REDIRECT_NMI 0x400u
#define REDIRECT_MASKED 0x10000u
#define REDIRECT_MASK 0x18f00u /* masked, level, to a logical address, kind */
#define IO_PINS 24

enum { HPET_PERIOD = 4, HPET_CONFIG = 0x10, HPET_COUNTER = 0xf0, HPET_TIMERS = 0x100 };
#define HPET_ENABLE 1u
#define TIMER_ENABLE (1u << 2)
#define TIMER_MASK 0x7f4cu    /* FSB delivery, route, 32 bits, value set, periodic, enabled */
#define PERIOD_MAX 100000000u /* fs, by the specification */
#define FS_IN_US 1000000000u
#define LATE 200 /* ticks past its time: the alarm is lost */
#define NEVER (1ul << 50)
#define FAR (1u << 30) /* ticks: as good as never, in the half that is written first */
#define NEAR 20        /* ticks: longer than it takes to set the comparator */
#define UNSURE 8       /* ticks */
#define PAUSES 100
#define MEASURE_TICKS 1000
#define PROOF 20000 /* clock units */

/* MMIO is the one place for volatile: each access happens, once, as wide as written. */
static volatile uint32_t *reg32(uint64_t base, unsigned at)
{
    return (volatile uint32_t *)(DIRECT_MAP + base + at);
}
static volatile uint64_t *reg64(uint64_t base, unsigned at)
{
    return (volatile uint64_t *)(DIRECT_MAP + base + at);
}

uint64_t alarm_tick, clock_us = 1000;
static unsigned timer, pin;
static struct vcpu *owner; /* the CPU to which the comparator's NMI goes; L: the token */

uint32_t host_apic_read(unsigned at) { return *reg32(HOST_APIC, at); }
void host_apic_write(unsigned at, uint32_t value) { *reg32(HOST_APIC, at) = value; }

uint32_t host_apic_id(void) { return *reg32(HOST_APIC, APIC_ID) >> 24; }

void host_apic_pmi(struct vcpu *v, bool mask)
{
    uint32_t lvt = *reg32(HOST_APIC, APIC_LVT_PMI);
    if (lvt & LVT_MASKED)
        return;
    v->statistics.pmi++;
    if (mask)
        *reg32(HOST_APIC, APIC_LVT_PMI) = lvt | LVT_MASKED;
    if ((lvt & LVT_MODE) == LVT_NMI)
        v->nmi.pending = true;
    else if ((lvt & LVT_MODE) == LVT_FIXED)
        host_apic_send_self(lvt & 0xff);
}

/* ICR2 stays the guest's. */
void host_apic_send_self(uint32_t vector) { *reg32(HOST_APIC, APIC_ICR) = ICR_SELF | vector; }

void host_apic_send(uint32_t id, uint32_t command)
{
    uint32_t guests = *reg32(HOST_APIC, APIC_ICR2);
    *reg32(HOST_APIC, APIC_ICR2) = id << 24;
    *reg32(HOST_APIC, APIC_ICR) = command;
    *reg32(HOST_APIC, APIC_ICR2) = guests;
}

/* The index is kept: a foreign guest's CPU may be between its two accesses. */
static void redirect_pin(unsigned half, uint32_t value)
{
    uint32_t index = virt_foreign ? *reg32(IO_APIC, IO_INDEX) : 0;
    *reg32(IO_APIC, IO_INDEX) = IO_REDIRECTION + 2 * pin + half;
    *reg32(IO_APIC, IO_DATA) = value;
    if (virt_foreign)
        *reg32(IO_APIC, IO_INDEX) = index;
}

static uint64_t measure_tick(void)
{
    uint32_t from = *reg32(HPET, HPET_COUNTER);
    uint64_t clock = rdtsc();
    while (*reg32(HPET, HPET_COUNTER) - from < MEASURE_TICKS)
        pause();
    return (rdtsc() - clock + MEASURE_TICKS / 2) / MEASURE_TICKS;
}

static void alarm_after(uint64_t ticks)
{
    *reg64(HPET, HPET_TIMERS + 32 * timer + 8) = *reg64(HPET, HPET_COUNTER) + ticks;
}

/* Its NMI may have come; the time at which the comparator fires is known to a few ticks only. */
static bool may_have_rung(const struct vcpu *v)
{
    uint64_t at = __atomic_load_n(&v->alarm.at, __ATOMIC_RELAXED);
    return at && rdtsc() + UNSURE * alarm_tick >= at;
}

/* Directs the alarm from its last owner to this CPU. This comes before the new time is set, so that
 * no old alarm goes off here, and no new one there. If the old one has gone off already, its owner
 * takes the NMI during a PAUSE, most often the first. */
static void take_over(struct vcpu *v)
{
    alarm_after(FAR);
    redirect_pin(1, v->host_apic_id << 24);
    if (owner) {
        pause();
        for (unsigned i = 0; i < PAUSES && may_have_rung(owner); i++)
            pause();
        owner->alarm.at = 0;
    }
    owner = v;
}

bool alarm_is_near(const struct vcpu *v)
{
    return v->alarm.at && v->alarm.at < rdtsc() + NEAR * alarm_tick;
}

/* A foreign guest masks pins that it does not know, and stops and resets the HPET: this restores
 * what the alarm needs. The comparator first gets a time far ahead, as its last one may have passed
 * without an NMI. The IO-APIC's index is kept: the guest may be between its two accesses. */
static void take_back(const struct vcpu *v)
{
    uint32_t index = *reg32(IO_APIC, IO_INDEX), config = *reg32(HPET, HPET_TIMERS + 32 * timer);
    *reg32(IO_APIC, IO_INDEX) = IO_REDIRECTION + 2 * pin;
    bool ours = (*reg32(IO_APIC, IO_DATA) & REDIRECT_MASK) == REDIRECT_NMI &&
                (config & TIMER_MASK) == (pin << 9 | TIMER_ENABLE);
    if (!ours) {
        alarm_after(FAR);
        *reg32(HPET, HPET_TIMERS + 32 * timer) = pin << 9 | TIMER_ENABLE;
        redirect_pin(1, v->host_apic_id << 24);
        redirect_pin(0, REDIRECT_NMI);
    }
    if (!(*reg32(HPET, HPET_CONFIG) & HPET_ENABLE))
        *reg32(HPET, HPET_CONFIG) |= HPET_ENABLE;
    *reg32(IO_APIC, IO_INDEX) = index;
}

/* Whether the alarm's time has passed without an NMI. QEMU may be late where another timer's time
 * is near: the PAUSE lets its timers go off. */
static bool alarm_is_lost(const struct vcpu *v)
{
    if (!virt_foreign || !v->alarm.at || rdtsc() < v->alarm.at + LATE * alarm_tick)
        return false;
    pause();
    return __atomic_load_n(&v->stack.nmis, __ATOMIC_RELAXED) == v->nmi.seen;
}

bool alarm_want(struct vcpu *v, uint64_t at)
{
    bool lost = alarm_is_lost(v);
    if (v->alarm.at && v->alarm.at <= at && !lost)
        return false;
    if (virt_foreign)
        take_back(v);
    if (owner != v)
        take_over(v);
    /* The counter is read before the clock: what runs between makes the alarm early, never late. */
    uint64_t counter = *reg64(HPET, HPET_COUNTER), now = rdtsc();
    uint64_t ticks = at > now + alarm_tick ? (at - now) / alarm_tick : 1;
    *reg64(HPET, HPET_TIMERS + 32 * timer + 8) = counter + ticks;
    v->alarm.at = now + ticks * alarm_tick;
    return true;
}

void alarm_claim(struct vcpu *v, uint64_t at)
{
    if (owner && owner != v && owner->alarm.at)
        alarm_want(v, at);
}

bool alarm_due(struct vcpu *v)
{
    if (!may_have_rung(v))
        return false;
    v->alarm.at = 0;
    v->statistics.alarms++;
    return true;
}

/* An alarm that is still to come stays where it is by the clock. A guest that stopped the HPET has
 * the time it set. */
uint64_t alarm_set_back(uint64_t clock)
{
    uint64_t ticks = clock / alarm_tick;
    uint32_t config = *reg32(HPET, HPET_CONFIG);
    volatile uint64_t *comparator = reg64(HPET, HPET_TIMERS + 32 * timer + 8);
    if (!(config & HPET_ENABLE))
        return clock;
    *reg32(HPET, HPET_CONFIG) = config & ~HPET_ENABLE;
    uint64_t counter = *reg64(HPET, HPET_COUNTER), at = *comparator;
    bool waits = owner && owner->alarm.at && at > counter;
    *reg64(HPET, HPET_COUNTER) = counter - ticks;
    *comparator = waits ? at - ticks : counter + NEVER; /* what has passed would come again */
    *reg32(HPET, HPET_CONFIG) = config;
    return ticks * alarm_tick;
}

/* Tests whether the alarm by `timer` and `pin` arrives as an NMI. */
static bool try_route(struct vcpu *v)
{
    uint32_t seen = __atomic_load_n(&v->stack.nmis, __ATOMIC_RELAXED);
    uint64_t until = rdtsc() + 100 * PROOF;
    redirect_pin(1, v->host_apic_id << 24);
    redirect_pin(0, REDIRECT_NMI);
    /* First a time far ahead: for an emulator the comparator's reset value is in the past, and
     * would fire at once. */
    alarm_after(FAR);
    *reg32(HPET, HPET_TIMERS + 32 * timer) = pin << 9 | TIMER_ENABLE;
    owner = v;
    alarm_want(v, rdtsc() + PROOF);
    while (__atomic_load_n(&v->stack.nmis, __ATOMIC_RELAXED) == seen && rdtsc() < until)
        pause();
    v->alarm.at = 0;
    v->nmi.seen = __atomic_load_n(&v->stack.nmis, __ATOMIC_RELAXED);
    if (v->nmi.seen != seen)
        return true;
    *reg32(HPET, HPET_TIMERS + 32 * timer) = 0;
    redirect_pin(0, REDIRECT_MASKED);
    return false;
}

/* A foreign guest finds what firmware has left; with the first alarm take_back() has it again. */
static void give_back(uint32_t config)
{
    redirect_pin(0, REDIRECT_MASKED);
    redirect_pin(1, 0);
    *reg32(HPET, HPET_TIMERS + 32 * timer) = 0;
    *reg64(HPET, HPET_TIMERS + 32 * timer + 8) = UINT64_MAX;
    *reg32(HPET, HPET_CONFIG) = config;
    if (!(config & HPET_ENABLE))
        *reg64(HPET, HPET_COUNTER) = 0;
}

static bool find_route(struct vcpu *v)
{
    timer = *reg32(HPET, 0) >> 8 & 31; /* the last */
    /* Pins from 16 up carry no ISA interrupt. QEMU's older board connects all of them, although
     * its HPET reports none. */
    for (pin = IO_PINS; pin-- > 16;)
        if (try_route(v))
            return true;
    return false;
}

bool alarm_init(struct vcpu *v)
{
    uint32_t period = *reg32(HPET, HPET_PERIOD), config = *reg32(HPET, HPET_CONFIG);
    if (!period || period > PERIOD_MAX)
        return false;
    *reg32(HPET, HPET_CONFIG) = HPET_ENABLE;
    alarm_tick = measure_tick();
    clock_us = alarm_tick * FS_IN_US / period;
    bool found = alarm_tick && find_route(v);
    if (virt_foreign)
        give_back(config);
    return found;
}
