/* SPDX-License-Identifier: MIT */
/* Counters of known rate, and how the TSC and the APIC timer are measured by them. Any of them may
 * be absent, gated by firmware, or late: each wait has a limit, and each value is read between two
 * readings of the TSC. Of several windows one whose ends were read in a short time is used: no SMI
 * and no host interrupted the reads. Boot CPU, interrupts off. Sources: IA-PC HPET 1.0a; ACPI 6.4
 * "Power Management Timer"; 8254 data sheet; CPUID: Intel SDM vol. 2. */
#include "hal/machine/apic.h"
#include "hal/machine/clock.h"
#include "kernel/base/bits.h"
#include "kernel/base/layout.h"
#include "kernel/base/x86.h"

#define FEMTOSECONDS 1000000000000000ul
#define HPET_USUAL 0xfed00000u
#define HPET_PERIOD 4
#define HPET_CONFIG 0x10
#define HPET_COUNTER 0xf0
#define HPET_ENABLE 1u
#define HPET_LEGACY 2u
#define HPET_PERIOD_MIN 100000u    /* fs: 10 GHz; no HPET is so fast */
#define HPET_PERIOD_MAX 100000000u /* fs: the specification's */
#define PM_TIMER_HZ 3579545u
#define PIT_HZ 1193182u
#define PIT_MODE 0x43
#define PIT_CHANNEL_2 0x42
#define PIT_GATE 0x61

#define WINDOWS 4
#define WINDOWS_PER_SECOND 500 /* each 2 ms long */
#define TRIES 5                /* attempts to read one end of a window */
#define WAIT_TICKS 40000000u /* of the TSC: the longest wait for a counter, two windows at 10 GHz */
#define LOOKS_STILL 200      /* an unchanged counter stands still after so many looks */
/* Between two looks, of 40 NOPs each: in an emulator a read of a port or a device costs as much as
 * a thousand instructions, and a branch as much as many NOPs. */
#define SPIN 24

static uint64_t hpet_base;
static uint16_t pm_port;

static volatile uint32_t *hpet(unsigned at)
{
    return (volatile uint32_t *)(DIRECT_MAP + hpet_base + at);
}

static uint64_t read_hpet(void) { return *hpet(HPET_COUNTER); }
static uint64_t read_pm_timer(void) { return in32(pm_port); }

/* Channel 2 counts down and raises no interrupt. */
static uint64_t read_pit(void)
{
    out8(PIT_MODE, 0x80); /* latch channel 2 */
    uint64_t low = in8(PIT_CHANNEL_2);
    return ~(low | (uint64_t)in8(PIT_CHANNEL_2) << 8);
}

static void start_pit(void)
{
    out8(PIT_GATE, (in8(PIT_GATE) & 0xfc) | 1); /* gate on, speaker off */
    out8(PIT_MODE, 0xb0);                       /* channel 2, low and high byte, mode 0 */
    out8(PIT_CHANNEL_2, 0xff);
    out8(PIT_CHANNEL_2, 0xff);
}

/* The HPET's rate, 0 if there is none. If it runs already it is not changed: the firmware or a host
 * may use it. */
static uint64_t start_hpet(uint64_t base)
{
    hpet_base = base ? base : HPET_USUAL;
    uint32_t period = *hpet(HPET_PERIOD), config = *hpet(HPET_CONFIG);
    if (period < HPET_PERIOD_MIN || period > HPET_PERIOD_MAX)
        return 0;
    if (!(config & HPET_ENABLE))
        *hpet(HPET_CONFIG) = (config & ~HPET_LEGACY) | HPET_ENABLE;
    return FEMTOSECONDS / period;
}

void clock_counters(const struct clock_sources *sources,
                    struct clock_counter counters[CLOCK_COUNTERS])
{
    pm_port = sources->pm_timer;
    start_pit();
    counters[CLOCK_HPET] =
        (struct clock_counter){ "HPET", start_hpet(sources->hpet), 0xffffffff, read_hpet };
    counters[CLOCK_PM_TIMER] =
        (struct clock_counter){ "PM timer", pm_port ? PM_TIMER_HZ : 0,
                                sources->pm_timer_32 ? 0xffffffff : 0xffffff, read_pm_timer };
    counters[CLOCK_PIT] = (struct clock_counter){ "PIT", PIT_HZ, 0xffff, read_pit };
}

/* --- Windows. --- */

struct end {
    uint64_t value, tsc,
        took; /* the counter's value; the TSC in the middle of the read; the length of the read */
};

/* The reading that took the shortest time. */
static struct end read_end(uint64_t (*read)(void))
{
    struct end best = { 0, 0, ~0ul };
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t before = rdtsc(), value = read(), took = rdtsc() - before;
        if (took < best.took)
            best = (struct end){ value, before + took / 2, took };
    }
    return best;
}

static void spin_shortly(void)
{
    for (unsigned i = 0; i < SPIN; i++)
        asm volatile(".fill 40, 1, 0x90");
}

static bool stands_still(const struct clock_counter *c)
{
    uint64_t first = c->read() & c->mask;
    for (unsigned i = 0; i < LOOKS_STILL; i++) {
        spin_shortly();
        if ((c->read() & c->mask) != first)
            return false;
    }
    return true;
}

/* Waits until the counter has advanced by `advance`; false if that takes longer than on any
 * processor. The counter is read once more after the time is over: a host may have taken the
 * processor away for longer than that. */
static bool wait_for_count(const struct clock_counter *c, uint64_t from, uint64_t advance)
{
    uint64_t begin = rdtsc(), waited = 0;
    for (; ((c->read() - from) & c->mask) < advance; spin_shortly()) {
        if (waited > WAIT_TICKS)
            return false;
        waited = rdtsc() - begin;
    }
    return true;
}

/* counts * hz / per, if that can be computed; else 0. */
static uint64_t rate(uint64_t counts, uint64_t hz, uint64_t per)
{
    uint64_t product;
    return per && !__builtin_mul_overflow(counts, hz, &product) ? product / per : 0;
}

struct window {
    uint64_t hz, took;
};

/* The smallest rate of the windows whose ends were read in at most twice the time of the fastest. A
 * delay between the counter and the TSC lengthens the read. A delay so long that the counter
 * wrapped makes the rate larger. */
static uint64_t least_disturbed(const struct window (*windows)[WINDOWS])
{
    uint64_t fastest = ~0ul, smallest = ~0ul;
    for_each_in(w, *windows)
        if (w->hz && w->took < fastest)
            fastest = w->took;
    for_each_in(w, *windows)
        if (w->hz && w->took / 2 <= fastest && w->hz < smallest)
            smallest = w->hz;
    return smallest == ~0ul ? 0 : smallest;
}

uint64_t clock_measure_tsc(const struct clock_counter *c)
{
    struct window windows[WINDOWS];
    if (!c->hz || stands_still(c))
        return 0;
    for (unsigned i = 0; i < WINDOWS; i++) {
        struct end from = read_end(c->read);
        if (!wait_for_count(c, from.value, c->hz / WINDOWS_PER_SECOND))
            return 0;
        struct end to = read_end(c->read);
        uint64_t advanced = (to.value - from.value) & c->mask;
        windows[i] =
            (struct window){ rate(to.tsc - from.tsc, c->hz, advanced), from.took + to.took };
    }
    return least_disturbed(&windows);
}

uint64_t clock_measure_timer(uint64_t tsc_hz)
{
    struct window windows[WINDOWS];
    for (unsigned i = 0; i < WINDOWS; i++) {
        apic_timer_count();
        struct end from = read_end(apic_timer_elapsed);
        while (rdtsc() - from.tsc < tsc_hz / WINDOWS_PER_SECOND)
            spin_shortly();
        struct end to = read_end(apic_timer_elapsed);
        windows[i] = (struct window){ rate(to.value - from.value, tsc_hz, to.tsc - from.tsc),
                                      from.took + to.took };
    }
    return least_disturbed(&windows);
}

/* --- The clock on the wall. --- */

#define RTC_SECONDS 0
#define RTC_STATUS_B 0x0b
#define RTC_BINARY 4u /* status B: the clock counts in binary, not in BCD */

static unsigned read_rtc(uint8_t at)
{
    out8(0x70, at | 0x80); /* NMIs stay off */
    return in8(0x71);
}

unsigned clock_rtc_seconds(unsigned value, bool binary)
{
    return (binary ? value : (value >> 4 & 7) * 10 + (value & 15)) % 60;
}

unsigned clock_wall_second(void)
{
    return clock_rtc_seconds(read_rtc(RTC_SECONDS), read_rtc(RTC_STATUS_B) & RTC_BINARY);
}
